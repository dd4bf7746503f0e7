/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/host_bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KERNEL_TYPES "/sys/kernel/btf/vmlinux"

/* Discards the messages of libbpf, which it would otherwise write to standard error. */
static int print_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static int load_error(int ret, struct err *e)
{
	if (ret == -EPERM || ret == -EACCES)
		return err_set(e, EPERM,
			       "the BPF program may not be loaded: root is needed, or CAP_BPF and "
			       "CAP_PERFMON");
	return err_set(e, -ret,
		       "this kernel does not take the BPF program (%s): Linux 5.10 or later, built "
		       "with KVM and CONFIG_DEBUG_INFO_BTF, is needed",
		       strerror(-ret));
}

static int map_block(struct host_bpf *b, struct err *e)
{
	struct bpf_map *map = bpf_object__find_map_by_name(b->object, ".bss");
	void *at;

	if (!map || bpf_map__value_size(map) < b->block_len)
		return err_set(e, EINVAL, "the BPF program has no room for its answers");
	at = mmap(NULL, b->block_len, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (at == MAP_FAILED)
		return err_set(e, errno, "cannot map a BPF program's memory: %s", strerror(errno));
	b->block = at;
	return 0;
}

static int load_program(struct host_bpf *b, const uint8_t *object, size_t len, const char *name,
			struct err *e)
{
	struct bpf_program *program;
	int ret;

	b->object = bpf_object__open_mem(object, len, NULL);
	if (!b->object)
		return err_set(e, errno, "cannot open the BPF program: %s", strerror(errno));
	ret = bpf_object__load(b->object);
	if (ret)
		return load_error(ret, e);
	program = bpf_object__find_program_by_name(b->object, name);
	if (!program)
		return err_set(e, EINVAL, "the BPF program is incomplete");
	b->program_fd = bpf_program__fd(program);
	return map_block(b, e);
}

int host_bpf_open(struct host_bpf *b, const uint8_t *object, size_t len, const char *name,
		  size_t block_len, struct err *e)
{
	int ret;

	*b = (struct host_bpf){ .block_len = block_len };
	if (access(KERNEL_TYPES, R_OK) < 0)
		return err_set(e, errno,
			       KERNEL_TYPES ": %s: this kernel does not tell its types "
					    "(CONFIG_DEBUG_INFO_BTF), which a BPF program needs",
			       strerror(errno));
	libbpf_set_print(print_nothing);
	ret = load_program(b, object, len, name, e);
	if (ret)
		host_bpf_close(b);
	return ret;
}

void host_bpf_close(struct host_bpf *b)
{
	if (b->block)
		munmap(b->block, b->block_len);
	bpf_object__close(b->object);
	*b = (struct host_bpf){ 0 };
}

int host_bpf_run(const struct host_bpf *b, int cpu)
{
	LIBBPF_OPTS(bpf_test_run_opts, o);

	if (cpu >= 0) {
		o.flags = BPF_F_TEST_RUN_ON_CPU;
		o.cpu = (__u32)cpu;
	}
	return bpf_prog_test_run_opts(b->program_fd, &o);
}
