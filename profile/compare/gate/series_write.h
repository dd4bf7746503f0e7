/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_series_write: the steps of a history for people and for programs, appended to a buffer.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_SERIES_WRITE_H
#define KVMPROF_PROFILE_COMPARE_GATE_SERIES_WRITE_H

#include "base/buf.h"
#include "profile/compare/gate/series.h"

/* dir is how the history is called. -ENOMEM. */
int gate_series_write_text(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e);
int gate_series_write_json(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e);
/* A page by itself, without scripts: the table of steps, and a graph of each series with its levels and steps. */
int gate_series_write_html(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e);

#endif
