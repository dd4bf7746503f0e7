/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * events: the events that samples were taken by, those that were refused, and counters that the host's kernel kept from counting.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_EVENTS_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_EVENTS_H

#include "profile/record/summary/facts.h"
#include "profile/record/summary/summary.h"

/* "events"; "off_cpu". A lone event `wall` has no line. */
void summary_events(const struct facts_out *o, const struct summary *s);
void summary_off_cpu(const struct facts_out *o, const struct offcpu_stats *s);
/* Returns whether all are by time. Then a missed period is a sample less; an exit's weight stays exact. */
bool summary_events_are_timers(const struct events *ev);

#endif
