/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * choice: by which technique the next sample is tried first, where both work (--technique auto).
 *
 * BPF costs the guest less, so it is preferred, unless it is seen to do worse: on a host where
 * vCPUs wait for processors it may see fewer of the periods than ptrace, whose stop comes when the
 * thread runs again. Periods that passed and samples taken are counted for each technique; one
 * sample in so many is tried by the other one first, so that both are known.
 *
 * Pure: no system calls, no clock. One thread.
 */
#ifndef KVMPROF_VMM_ATTACH_CHOICE_H
#define KVMPROF_VMM_ATTACH_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

enum choice_technique { CHOICE_BPF, CHOICE_PTRACE, CHOICE_TECHNIQUES };

/* Samples that were tried by one technique first. */
struct choice_tally {
	uint64_t samples, periods;
	uint64_t hits; /* BPF: samples that it took itself; the others fell back to ptrace */
};

/* All zero: nothing is known, BPF is preferred. */
struct choice {
	struct choice_tally recent[CHOICE_TECHNIQUES]; /* older samples count for less */
	struct choice_tally all[CHOICE_TECHNIQUES];
	uint64_t turns; /* samples so far */
	enum choice_technique preferred;
};

enum choice_technique choice_next(const struct choice *c);
/*
 * A sample that was tried by `first` was taken, and so many periods have passed since the one
 * before. hit: BPF took it.
 */
void choice_note(struct choice *c, enum choice_technique first, uint64_t periods, bool hit);

#endif
