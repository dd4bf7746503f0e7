/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_output: where a gate's reports go. For the commands that end in one (gate, bench).
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_OUTPUT_H
#define KVMPROF_PROFILE_COMPARE_GATE_OUTPUT_H

#include "profile/compare/gate/write.h"

#define GATE_MAX_OUTPUTS 16u

struct gate_outputs {
	struct {
		gate_write_fn *write;
		const char *path; /* borrowed; "-" is standard output */
	} to[GATE_MAX_OUTPUTS];
	unsigned int n;
	const char *flamegraph; /* file of the picture of the difference; NULL: none */
	const char *link;	/* what reports call it; NULL: the file's name */
};

/* -E2BIG: more than GATE_MAX_OUTPUTS. */
int gate_outputs_add(struct gate_outputs *o, gate_write_fn *write, const char *path, struct err *e);

/* The picture, if there is to be one, and all reports. Files appear when they are complete. */
int gate_outputs_write(const struct gate_outputs *o, const struct gate_report *r, struct err *e);

#endif
