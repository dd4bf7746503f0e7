/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * epoch: whether the kernel that was found is still the one that runs.
 *
 * A kexec or a reboot replaces the kernel in the same memory. Its names would be wrong for the next kernel's addresses, so each
 * sample is proven to be of the kernel that was found: the page tables that the vCPU used lead to the same physical page as
 * before, with the same banner in it. Nothing that the kernel keeps for itself would do, as its memory may outlive it.
 *
 * A proof holds for EPOCH_PROOF_NS, in which no kernel can be replaced by another one: kexec checks the new image's bytes,
 * firmware starts, and a decompressor runs in between. On the consumer's thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_EPOCH_H
#define KVMPROF_PROFILE_RECORD_GUEST_EPOCH_H

#include "base/gmem.h"
#include "base/sample.h"

#include <stdbool.h>
#include <stdint.h>

#define EPOCH_PROOF_NS 5000000u
/* Through a gdbstub each look stops the machine. */
#define EPOCH_PROOF_SLOW_NS 20000000u
#define EPOCH_MARK_BYTES 96u

enum epoch_state {
	EPOCH_SAME, /* the kernel that was found */
	EPOCH_DOUBT, /* the sample proves nothing: its page tables or the memory are gone, or firmware ran */
	EPOCH_OTHER, /* another kernel's code ran, by that kernel's page tables */
};

/* A mark identifies a kernel in memory. All zero: nothing is known, and each sample counts as one of the same kernel. */
struct epoch_mark {
	uint64_t va, gpa; /* of the bytes, at run time */
	uint8_t bytes[EPOCH_MARK_BYTES];
	uint32_t len;	    /* of bytes; 0: there is no mark */
	uint64_t proven_ns; /* the time of the last sample that proved it; 0: none */
};

/* Stores the bytes at va, as the page tables of *s map them, as the mark. Without them there is no mark. */
void epoch_set(struct epoch_mark *m, const struct gmem *mem, const struct sample *s, uint64_t va);

/* Returns whether *s is of the kernel of *m, and stores its time if it proves that. */
enum epoch_state epoch_check(struct epoch_mark *m, const struct gmem *mem, const struct sample *s);

#endif
