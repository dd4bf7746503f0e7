/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * events: the part of the summary about the events, those that were refused, and counters that the
 * host's kernel did not always schedule. Called by the thread that writes the summary.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_EVENTS_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_EVENTS_H

#include "profile/record/summary/facts.h"
#include "profile/record/summary/summary.h"

/* Write "events" and "off_cpu". A single event `wall` has no line. */
void summary_events(const struct facts_out *o, const struct summary *s);
void summary_off_cpu(const struct facts_out *o, const struct offcpu_stats *s);
/*
 * Returns whether all events are by time. Then a missed period is a missing sample; an exit's
 * weight stays exact.
 */
bool summary_events_are_timers(const struct events *ev);

#endif
