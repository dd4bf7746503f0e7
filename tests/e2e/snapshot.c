/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Boots a guest, stops it SECONDS after a text on its console, and keeps its
 * memory and vCPU state, so that what reads guest memory can be tried on it again
 * and again (tests/snapshot.h reads it).
 *
 *   snapshot OUT IMAGE INITRD MIB VCPUS TEXT SECONDS [APPEND]
 *
 * Writes OUT.mem (guest RAM from address 0 on, sparse) and OUT.vcpus, a line
 * `rip rsp cr0 cr3 cr4 efer gs kernel_gs lstar idt cpl` of hex numbers each.
 */
#include "base/clock.h"
#include "base/file.h"
#include "profile/live/target.h"
#include "profile/run/tune.h"
#include "vmm/machine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MSR_LSTAR 0xc0000082u
#define MSR_KERNEL_GS_BASE 0xc0000102u
#define TIMEOUT_S 900

static char console[1 << 20];
static volatile size_t console_len;

static void put(void *ctx, uint8_t byte)
{
	(void)ctx;
	if (console_len + 1 < sizeof(console))
		console[console_len++] = (char)byte;
	putchar(byte);
}

static int fail(const struct err *e)
{
	fprintf(stderr, "snapshot: %s\n", e->text);
	return 1;
}

static void write_vcpu(FILE *f, struct vcpu *v)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry[2];
	} msrs = { .head.nmsrs = 2,
		   .entry = { { .index = MSR_LSTAR }, { .index = MSR_KERNEL_GS_BASE } } };
	struct kvm_regs r;
	struct kvm_sregs s;

	if (ioctl(v->fd, KVM_GET_REGS, &r) || ioctl(v->fd, KVM_GET_SREGS, &s) ||
	    ioctl(v->fd, KVM_GET_MSRS, &msrs) < 0) {
		perror("snapshot: vCPU state");
		exit(1);
	}
	fprintf(f, "%llx %llx %llx %llx %llx %llx %llx %llx %llx %llx %x\n", r.rip, r.rsp, s.cr0,
		s.cr3, s.cr4, s.efer, s.gs.base, msrs.entry[1].data, msrs.entry[0].data, s.idt.base,
		s.cs.dpl & 3);
}

static int write_memory(const char *name, const struct gmem *m)
{
	static const uint8_t zero[65536];
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0)
		return -1;
	for (unsigned int i = 0; i < m->n; i++) {
		const struct gmem_region *g = &m->region[i];

		if (ftruncate(fd, (off_t)(g->gpa + g->size)))
			return -1;
		for (uint64_t at = 0; at < g->size; at += sizeof(zero))
			if (memcmp(g->host + at, zero, sizeof(zero)) != 0 &&
			    pwrite(fd, g->host + at, sizeof(zero), (off_t)(g->gpa + at)) !=
				    (ssize_t)sizeof(zero))
				return -1;
	}
	return close(fd);
}

int main(int argc, char **argv)
{
	struct kvm_host host = { .fd = -1 };
	struct buf cmdline, tuned;
	struct file_map initrd;
	struct vm_config cfg;
	struct quirks quirks;
	struct target target;
	struct err e = { 0 };
	struct vm *vm;
	char name[512];
	FILE *f;

	if (argc < 8) {
		fprintf(stderr,
			"usage: snapshot OUT IMAGE INITRD MIB VCPUS TEXT SECONDS [APPEND]\n");
		return 2;
	}
	if (target_open(&target, argv[2], NULL, &e) ||
	    file_map_open(&initrd, argv[3], 1ull << 30, &e) || kvm_host_open(&host, &e) ||
	    kvm_host_require(&host, &e))
		return fail(&e);
	quirks_probe(&host, &quirks);
	buf_init(&cmdline);
	buf_init(&tuned);
	cfg = (struct vm_config){
		.host = &host,
		.quirks = &quirks,
		.image = &target.image,
		.initrd = initrd.data,
		.initrd_len = initrd.len,
		.mem_size = strtoull(argv[4], NULL, 0) << 20,
		.vcpus = (unsigned int)atoi(argv[5]),
		.slow_tick = quirks.interpreted,
		.event = { { .kind = VM_EVENT_WALL, .period = 10000000 } },
		.nevents = 1,
		.plan = target_capture_plan(&target, 16384),
		.ring_size = 4u << 20,
		.console = put,
	};
	tune_cmdline(&(struct tune_request){ .is_linux = true,
					     .tune = true,
					     .vcpus = cfg.vcpus,
					     .tsc_khz = quirks.tsc_khz,
					     .append = argc > 8 ? argv[8] : NULL },
		     &quirks, &cmdline, &tuned);
	cfg.cmdline = (const char *)cmdline.data;
	if (vm_create(&vm, &cfg, &e) || vm_start(vm, &e))
		return fail(&e);
	for (int i = 0; i < TIMEOUT_S * 10 && !strstr(console, argv[6]); i++)
		usleep(100000);
	if (!strstr(console, argv[6])) {
		fprintf(stderr, "snapshot: the guest never printed '%s'\n", argv[6]);
		return 1;
	}
	usleep((useconds_t)(atof(argv[7]) * 1e6));
	vm_end(vm, VM_END_DURATION);
	vm_join(vm);
	snprintf(name, sizeof(name), "%s.vcpus", argv[1]);
	f = fopen(name, "w");
	if (!f) {
		perror(name);
		return 1;
	}
	for (unsigned int i = 0; i < vm->nvcpus; i++)
		write_vcpu(f, &vm->vcpu[i]);
	fclose(f);
	snprintf(name, sizeof(name), "%s.mem", argv[1]);
	if (write_memory(name, vm_memory(vm))) {
		perror(name);
		return 1;
	}
	vm_destroy(vm);
	return 0;
}
