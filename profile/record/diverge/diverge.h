/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diverge: finds the first instruction at which the runs of two exact profiles diverge.
 *
 * Both runs are repeated several times: for checksums after every DIVERGE_STEP instructions; for
 * what was executed between the last equal checksum and the first different one; for the stacks
 * there. All functions are called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_DIVERGE_DIVERGE_H
#define KVMPROF_PROFILE_RECORD_DIVERGE_DIVERGE_H

#include "base/buf.h"
#include "base/reporter.h"
#include "profile/record/diverge/difference.h"
#include "profile/format/files/debuginfo.h"

/* Instructions between two checksums. */
#define DIVERGE_STEP 100000u
/*
 * Instructions that are recorded before the step in which control diverges, to find out since when
 * registers differ.
 */
#define DIVERGE_BACK 1000000u

struct diverge;

struct diverge_options {
	const char *path[2]; /* profiles of `kvmprof run --engine exact`; borrowed */
	struct debuginfo_places places;
	const struct reporter *reporter; /* prints the progress; borrowed */
	bool quiet;			 /* print no progress */
};

/*
 * Finds the divergence. Returns 0, or -errno with the reason in *e: -EINVAL (no such profile),
 * -ESTALE (an input has changed since), -EIO (a run failed), or others. In either case the caller
 * frees *out with diverge_destroy().
 */
int diverge_find(struct diverge **out, const struct diverge_options *o, struct err *e);
/* Frees d; NULL is allowed. */
void diverge_destroy(struct diverge *d);

/*
 * Returns whether the runs executed the same instructions and no value that was read or written
 * differed, as far as QEMU shows it.
 */
bool diverge_is_same(const struct diverge *d);
/*
 * Append the result as text and as JSON. Without a disassembler the text has the instructions'
 * bytes, and *e the reason. A lack of memory sets out->failed.
 */
void diverge_text(const struct diverge *d, struct buf *out, struct err *e);
void diverge_json(const struct diverge *d, struct buf *out, struct err *e);

#endif
