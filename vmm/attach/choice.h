/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * choice: decides by which technique the next sample is tried first, if both work (--technique
 * auto).
 *
 * BPF costs the guest less, so it is preferred unless it performs worse: on a host where vCPUs wait
 * for processors, BPF may see fewer of the periods than ptrace, whose stop takes effect when the
 * thread runs again. For each technique, periods that passed and samples taken are counted. A fixed
 * part of the samples is tried by the other technique first, so that both are measured.
 *
 * The functions make no system calls and read no clock.
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

/* Returns the technique by which the next sample is to be tried first. */
enum choice_technique choice_next(const struct choice *c);
/*
 * Counts a sample that was tried by `first`. periods: number of periods since the sample before, at
 * least 1. hit: BPF took the sample.
 */
void choice_note(struct choice *c, enum choice_technique first, uint64_t periods, bool hit);

#endif
