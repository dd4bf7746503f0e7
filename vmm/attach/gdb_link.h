/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb_link: a machine behind a gdbstub: stopped, looked at, let go.
 *
 * It stands or runs as a whole. Registers and memory can be had while it stands. QEMU reads
 * guest-physical memory on demand (its "Qqemu.PhyMemMode"), others give virtual addresses of
 * one vCPU only. One thread at a time.
 */
#ifndef KVMPROF_VMM_ATTACH_GDB_LINK_H
#define KVMPROF_VMM_ATTACH_GDB_LINK_H

#include "vmm/attach/gdb_guard.h"
#include "vmm/attach/rsp.h"
#include "vmm/attach/rsp_query.h"
#include "vmm/attach/rsp_regs.h"
#include "base/gmem.h"

#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>

struct gdb_link {
	struct rsp rsp;
	struct rsp_layout layout;
	struct gdb_guard guard;
	char thread[RSP_MAX_THREADS][RSP_THREAD_ID]; /* a vCPU each */
	unsigned int nthreads;
	bool is_physical; /* and it is a QEMU */
	bool can_vcont;
	bool running;
	bool dead;	   /* an error: nothing more can be said */
	bool let_alone;	   /* somebody else has stopped it: so it stays */
	uint64_t idt, gdt; /* table bases of vCPU 0 at the last query; 0: not known */
	uint64_t stops;
	uint64_t stopped_at, stood_ns, longest_ns; /* ended stops */
};

/* Connect; the machine stands then, as all stubs have it. Errors leave it running. */
int gdb_link_open(struct gdb_link *l, const char *where, struct err *e);
/* From now on the stub is waited for so long at most. Any thread may call it. */
void gdb_link_limit_wait(struct gdb_link *l, unsigned int ms);
/* Detach; it runs on, but where let_alone is set. */
void gdb_link_close(struct gdb_link *l);

/* Both do nothing where that is so already. */
int gdb_link_stop(struct gdb_link *l, struct err *e);
int gdb_link_resume(struct gdb_link *l, struct err *e);
/* While it runs: has it ended (-EPIPE), was it stopped by somebody else (let_alone)? */
int gdb_link_poll(struct gdb_link *l, struct err *e);
/* CLOCK_MONOTONIC without the time that it stood. */
uint64_t gdb_link_time(const struct gdb_link *l, uint64_t now_ns);

/*
 * Reads the registers of vCPU i in KVM's format, and selects this vCPU for reads by virtual address.
 * Stores 0 in *kernel_gs if it is not known. Returns 0, -EPROTO for a reply that does not match the
 * stub's description, or an error of the connection.
 */
int gdb_link_regs(struct gdb_link *l, unsigned int i, struct kvm_run *out, uint64_t *kernel_gs,
		  struct err *e);
/* Ask for idt and gdt again; not to know them is no error. */
int gdb_link_tables(struct gdb_link *l, struct err *e);
/* -EFAULT, without a text: not there. */
int gdb_link_read(struct gdb_link *l, uint64_t addr, void *dst, size_t len, struct err *e);
/* The regions that can be read; .host is what gdb_link_read() takes. */
int gdb_link_regions(struct gdb_link *l, struct gmem *m, struct err *e);

#endif
