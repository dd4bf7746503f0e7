/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_counter: can this host count the instructions that a guest retires?
 *
 * Asks the kernel for a counter of hardware instructions that runs in guests only
 * (perf_event_open(2), exclude_host), as sampling by instructions needs it. Any thread.
 */
#ifndef KVMPROF_PROFILE_COMPARE_BENCH_COUNTER_H
#define KVMPROF_PROFILE_COMPARE_BENCH_COUNTER_H

#include "base/err.h"

/* 0, or -errno with the reason. */
int bench_counter_check(struct err *e);

#endif
