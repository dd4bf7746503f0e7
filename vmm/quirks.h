/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * quirks: what this host's KVM lacks, found by running a tiny probe guest.
 *
 * On a host with VMX or SVM every flag stays false and nothing that hangs on
 * them runs. Hosts whose KVM is built on page tables alone (kvm_pvm) interpret
 * guest ring 0; docs/hosts.md lists what was seen there and why each
 * work-around is safe.
 */
#ifndef KVMPROF_VMM_QUIRKS_H
#define KVMPROF_VMM_QUIRKS_H

#include "base/err.h"
#include "vmm/kvm.h"

#include <stdbool.h>
#include <stdint.h>

struct probe;

struct quirks {
	/* Ring 0 is interpreted: kernel time is inflated against user time. */
	bool interpreted;
	/* SYSCALL from ring 3 arrives at LSTAR still at CPL 3 and faults there. */
	bool syscall_keeps_cpl;
	/* The interpreter refuses instructions that a kernel needs (int3, XSAVE forms, ...). */
	bool refuses_insns;
	/* A hypercall never returns, whichever it is: hide the paravirtual features that use them. */
	bool hypercalls_hang;
	/* LZCNT and TZCNT run as BSR and BSF, without a word: guests must not know of them. */
	bool zero_counts_wrong;
	/* CPUID leaf 7 has the host's bits, whatever KVM was given: only without it are they gone. */
	bool cpuid_leaks;
	/* A guest's TSC is the host's: KVM takes another value, and nothing comes of it. */
	bool tsc_fixed;
	/* Evidence, for `kvmprof check`. */
	uint64_t ring0_ps_per_insn; /* picoseconds of thread CPU time, without the VM exit */
	uint32_t tsc_khz;	    /* of a guest on this host; 0 unknown */
	uint64_t probe_ns;	    /* what the probe itself took */
	bool probed;		    /* false: the probe guest could not run (see why) */
	char why[160];
	struct probe *probe; /* what is left of it, until quirks_release() */
};

/*
 * Run the probe guest (one vCPU, 64 KiB of memory). Failing to
 * run it is not an error of the caller: q->probed is false and q->why says why.
 * A build without it learns tsc_khz alone.
 */
void quirks_probe(const struct kvm_host *h, struct quirks *q);

/*
 * Starts to close the probe guest, on a thread of its own: KVM waits for grace periods there, several ms, for which the
 * real guest's start need not wait. Before rights are given up.
 */
void quirks_close(struct quirks *q);

/* Closes the probe guest, or waits until it is closed. Nothing happens if that is done. */
void quirks_release(struct quirks *q);

/* Is a work-around needed while the machine runs? A TSC that can't be set needs none then. */
static inline bool quirks_at_run_time(const struct quirks *q)
{
	return q->interpreted || q->syscall_keeps_cpl || q->refuses_insns || q->hypercalls_hang ||
	       q->zero_counts_wrong || q->cpuid_leaks;
}

/* Any at all? */
static inline bool quirks_any(const struct quirks *q)
{
	return quirks_at_run_time(q) || q->tsc_fixed;
}

#endif
