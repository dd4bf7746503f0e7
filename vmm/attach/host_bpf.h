/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_bpf: loads and runs a small BPF program of kvmprof in the host's kernel.
 *
 * Each program has one block of memory that it shares with this process. The caller writes a
 * request there, runs the program, and reads the answer. Program and memory belong to the
 * descriptors, and are freed with them.
 *
 * Sources: bpf(2), Documentation/bpf/libbpf. All functions are called by one thread.
 */
#ifndef KVMPROF_VMM_ATTACH_HOST_BPF_H
#define KVMPROF_VMM_ATTACH_HOST_BPF_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct host_bpf {
	struct bpf_object *object; /* NULL: not open */
	int program_fd;
	void *block;
	size_t block_len;
};

/*
 * Loads the program `name` of the compiled object in object[0, len). Its .bss becomes b->block,
 * which has block_len bytes. This takes about 20 ms, because the kernel's types are searched.
 * Returns 0; -EPERM without the rights; -ENOENT if the kernel has no type information; or another
 * -errno if the kernel does not accept the program. *b is closed after an error.
 */
int host_bpf_open(struct host_bpf *b, const uint8_t *object, size_t len, const char *name,
		  size_t block_len, struct err *e);
/* Unloads the program and unmaps its block. Does nothing if it is not open. */
void host_bpf_close(struct host_bpf *b);

/*
 * Runs the program on processor `cpu` in an interrupt, or for -1 in the context of this thread, and
 * waits for its end. Returns 0 or -errno.
 */
int host_bpf_run(const struct host_bpf *b, int cpu);

#endif
