/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * summary_tasks: what --off-cpu did and cost, for people and as JSON.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_TASKS_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_TASKS_H

#include "base/buf.h"
#include "profile/record/pipeline/offcpu.h"

#include <stdio.h>

/* Nothing when it was not asked for. */
void summary_tasks_print(const struct offcpu_stats *s, FILE *out);
/* ,"off_cpu":{...}; null when it was not asked for. */
void summary_tasks_json(const struct offcpu_stats *s, struct buf *b);

#endif
