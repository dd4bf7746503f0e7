/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * quirks: the deficiencies of this host's KVM, detected by running a small probe guest.
 *
 * On a host with VMX or SVM all flags stay false and no work-around is active. Hosts whose KVM is
 * built on page tables alone (kvm_pvm) interpret guest ring 0; docs/hosts.md lists the
 * observations and why each work-around is safe. The main thread calls these functions.
 */
#ifndef KVMPROF_VMM_QUIRKS_H
#define KVMPROF_VMM_QUIRKS_H

#include "base/err.h"
#include "vmm/kvm.h"

#include <stdbool.h>
#include <stdint.h>

struct probe;

struct quirks {
	/* Ring 0 is interpreted: kernel time is inflated relative to user time. */
	bool interpreted;
	/* SYSCALL from ring 3 reaches LSTAR still at CPL 3 and faults there. */
	bool syscall_keeps_cpl;
	/* The interpreter refuses instructions that a kernel needs (int3, XSAVE forms, ...). */
	bool refuses_insns;
	/* No hypercall ever returns: the paravirtual features that use them must be hidden. */
	bool hypercalls_hang;
	/* LZCNT and TZCNT silently execute as BSR and BSF: guests must not use them. */
	bool zero_counts_wrong;
	/*
	 * CPUID leaf 7 shows the host's bits, whatever KVM was told; they disappear only if the
	 * leaf is left out.
	 */
	bool cpuid_leaks;
	/* A guest's TSC is the host's: KVM accepts another value without effect. */
	bool tsc_fixed;
	/* Evidence, for `kvmprof check`. */
	/* Picoseconds of thread CPU time per instruction, without the VM exit. */
	uint64_t ring0_ps_per_insn;
	uint32_t tsc_khz;  /* TSC frequency of a guest on this host; 0: unknown */
	uint64_t probe_ns; /* duration of the probe, or of reading its stored result */
	bool probed;	   /* false: the probe guest could not run (see why) */
	bool from_cache;   /* the result of an earlier run (quirks_cache.h) */
	char why[160];
	struct probe *probe; /* rest of the probe guest, until quirks_release() */
};

/*
 * Runs the probe guest (one vCPU, 64 KiB of memory) and fills *q. Failing to run it is not an
 * error: q->probed is false and q->why has the reason. A build without it determines only tsc_khz.
 * The caller must call quirks_release().
 */
void quirks_probe(const struct kvm_host *h, struct quirks *q);

/*
 * Starts closing the probe guest on a thread of its own: closing waits several ms for grace
 * periods, which must not delay the start of the real guest. Call it before rights are given up.
 */
void quirks_close(struct quirks *q);

/* Closes the probe guest, or waits until it is closed. Later calls do nothing. */
void quirks_release(struct quirks *q);

/*
 * Returns whether a work-around is needed while the machine runs. A TSC that cannot be set needs
 * none then.
 */
static inline bool quirks_at_run_time(const struct quirks *q)
{
	return q->interpreted || q->syscall_keeps_cpl || q->refuses_insns || q->hypercalls_hang ||
	       q->zero_counts_wrong || q->cpuid_leaks;
}

/* Returns whether the host has any quirk. */
static inline bool quirks_any(const struct quirks *q)
{
	return quirks_at_run_time(q) || q->tsc_fixed;
}

#endif
