/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diverge: the first instruction at which the runs of two exact profiles part.
 *
 * Both runs are made again, several times: for sums at each DIVERGE_STEP instructions; for what was executed
 * between the last equal sum and the first that is not; for the stacks there. Main thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_DIVERGE_DIVERGE_H
#define KVMPROF_PROFILE_RECORD_DIVERGE_DIVERGE_H

#include "base/buf.h"
#include "base/reporter.h"
#include "profile/record/diverge/part.h"
#include "profile/format/files/debuginfo.h"

#define DIVERGE_STEP 100000u
/* What is recorded before the step in which control parts: to see since when registers differ. */
#define DIVERGE_BACK 1000000u

struct diverge;

struct diverge_options {
	const char *path[2]; /* profiles of `kvmprof run --engine exact` */
	struct debuginfo_places places;
	const struct reporter *reporter; /* prints the progress */
	bool quiet;			 /* nothing about what is being done */
};

/*
 * 0: *out has the answer; else e says what can't be done: -EINVAL (no such profile), -ESTALE (an input
 * is another one now), -EIO (a run failed) and others. diverge_destroy() also then.
 */
int diverge_find(struct diverge **out, const struct diverge_options *o, struct err *e);
void diverge_destroy(struct diverge *d);

/* The same instructions, and no value that was read or written differed as far as QEMU tells. */
bool diverge_is_same(const struct diverge *d);
/* For people, and for programs. */
void diverge_text(const struct diverge *d, struct buf *out, struct err *e);
void diverge_json(const struct diverge *d, struct buf *out, struct err *e);

#endif
