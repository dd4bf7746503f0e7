/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * epoch: detects that another kernel runs than the one that was found.
 *
 * A kexec or a reboot replaces the kernel in the same memory. The symbols would be wrong for the
 * next kernel's addresses, so each sample is proven to be of the kernel that was found: the vCPU's
 * page tables lead to the same physical page as before, with the same banner in it. The kernel's
 * own data would prove nothing, as its memory may outlive it.
 *
 * A proof holds for EPOCH_PROOF_NS, within which no kernel can be replaced by another one: kexec
 * verifies the new image, firmware starts, and a decompressor runs in between. All functions are
 * called by the consumer thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_EPOCH_H
#define KVMPROF_PROFILE_RECORD_GUEST_EPOCH_H

#include "base/gmem.h"
#include "base/sample.h"

#include <stdbool.h>
#include <stdint.h>

#define EPOCH_PROOF_NS 5000000u
/* Longer behind a gdbstub, because each read of memory stops the machine there. Both in ns. */
#define EPOCH_PROOF_SLOW_NS 20000000u
#define EPOCH_MARK_BYTES 96u

enum epoch_state {
	EPOCH_SAME,  /* the kernel that was found */
	EPOCH_DOUBT, /* unproven: the page tables or the memory are gone, or firmware ran */
	EPOCH_OTHER, /* another kernel's code ran, with that kernel's page tables */
};

/*
 * Bytes that identify a kernel in memory. If all members are zero nothing is known, and each sample
 * counts as EPOCH_SAME.
 */
struct epoch_mark {
	uint64_t va, gpa; /* address of the bytes; gpa 0: not known yet */
	uint8_t bytes[EPOCH_MARK_BYTES];
	uint32_t len;	    /* number of bytes; 0: there is no mark */
	uint64_t proven_ns; /* time of the last sample that was proven; 0: none */
};

/*
 * Sets the mark to the bytes at va, as the page tables of *s map them. If they cannot be read there
 * is no mark afterwards.
 */
void epoch_set(struct epoch_mark *m, const struct gmem *mem, const struct sample *s, uint64_t va);

/*
 * Sets the mark to the text that is expected at va. The first epoch_check() that finds it there
 * adds more bytes to the mark, and their physical address.
 */
void epoch_expect(struct epoch_mark *m, uint64_t va, const char *text);

/*
 * Compares the mark with the memory as the page tables of *s map it. Returns the result, and stores
 * the sample's time on a proof.
 */
enum epoch_state epoch_check(struct epoch_mark *m, const struct gmem *mem, const struct sample *s);

#endif
