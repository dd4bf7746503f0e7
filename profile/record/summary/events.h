/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * summary_events: what a run's summary says of its events, and of devices.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_EVENTS_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_EVENTS_H

#include "base/buf.h"
#include "profile/record/counters/events.h"
#include "profile/record/pipeline/pipeline.h"

#include <stdio.h>

/* What the first event's samples are by: " at 997 Hz", " of exit:io". */
void summary_events_head(const struct events *ev, double freq_hz, char *out, size_t size);
/* Are all by time? Then a missed period is a sample less; an exit's weight stays exact. */
bool summary_events_are_timers(const struct events *ev);
/*
 * A line for each event but a lone `wall', for what was refused, and for counters that the kernel
 * kept from counting.
 */
void summary_events_print(const struct events *ev, const struct vm *vm,
			  const struct pipeline_stats *p, FILE *out);
/* ,"events":[...] */
void summary_events_json(const struct events *ev, const struct vm *vm,
			 const struct pipeline_stats *p, struct buf *b);
/* ,"devices":[...]: how often the guest came to each. */
void summary_devices_json(const struct vm *vm, struct buf *b);

#endif
