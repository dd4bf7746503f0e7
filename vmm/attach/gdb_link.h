/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb_link: stops, reads and resumes a machine behind a gdbstub.
 *
 * The machine runs or is stopped as a whole. Registers and memory can be read while it is stopped.
 * QEMU reads guest-physical memory on request (its "Qqemu.PhyMemMode"); other stubs read virtual
 * addresses of one vCPU only. One thread at a time uses a link, except for gdb_link_limit_wait().
 *
 * Functions that return int return 0 or a negative error. After any error except -EFAULT and -EBUSY
 * the link is dead, and only gdb_link_close() is allowed.
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
	bool dead;	   /* after an error: the stub gets no more requests */
	bool let_alone;	   /* another debugger has stopped the machine, and it stays stopped */
	uint64_t idt, gdt; /* table bases of vCPU 0 at the last query; 0: not known */
	uint64_t stops;
	uint64_t stopped_at, stood_ns, longest_ns; /* ended stops */
};

/*
 * Connects to the stub at `where` (rsp_connect()) and queries its capabilities. The machine is then
 * stopped, as all stubs stop it for a connection. After an error it runs on, and nothing is left
 * open.
 */
int gdb_link_open(struct gdb_link *l, const char *where, struct err *e);
/*
 * Limits the total time for which the stub is waited for from now on to `ms` milliseconds. An
 * earlier, shorter limit remains. Called by any thread.
 */
void gdb_link_limit_wait(struct gdb_link *l, unsigned int ms);
/*
 * Detaches from the stub and closes the connection. The machine runs on, unless let_alone is set.
 */
void gdb_link_close(struct gdb_link *l);

/*
 * Stops the machine, if it runs. Returns -EBUSY if let_alone is set, and -EPIPE if the link is
 * dead.
 */
int gdb_link_stop(struct gdb_link *l, struct err *e);
/* Resumes the machine, if it is stopped. Errors are those of gdb_link_stop(). */
int gdb_link_resume(struct gdb_link *l, struct err *e);
/*
 * Handles, without waiting, what the stub sent while the machine runs. Sets let_alone if another
 * debugger has stopped it. Returns -EPIPE if the machine has ended.
 */
int gdb_link_poll(struct gdb_link *l, struct err *e);
/* Returns now_ns (CLOCK_MONOTONIC) minus the time for which the machine has been stopped. */
uint64_t gdb_link_time(const struct gdb_link *l, uint64_t now_ns);

/*
 * Reads the registers of vCPU i in KVM's format, and selects this vCPU for reads by virtual
 * address. Stores 0 in *kernel_gs if it is not known. Returns 0, -EPROTO for a reply that does not
 * match the stub's description, or an error of the connection.
 */
int gdb_link_regs(struct gdb_link *l, unsigned int i, struct kvm_run *out, uint64_t *kernel_gs,
		  struct err *e);
/*
 * Queries the bases of vCPU 0's descriptor tables for l->idt and l->gdt. Returns 0 also if the stub
 * does not report them; they then keep their values.
 */
int gdb_link_tables(struct gdb_link *l, struct err *e);
/*
 * Reads len bytes at `addr`, an address in a region of gdb_link_regions(). Returns -EFAULT, without
 * setting *e, if they are not mapped; -EBUSY if the machine runs.
 */
int gdb_link_read(struct gdb_link *l, uint64_t addr, void *dst, size_t len, struct err *e);
/*
 * Adds the regions of memory that can be read to *m. Their .host is not a pointer but an address
 * for gdb_link_read(). Sets m->is_virtual if the stub reads virtual addresses.
 */
int gdb_link_regions(struct gdb_link *l, struct gmem *m, struct err *e);

#endif
