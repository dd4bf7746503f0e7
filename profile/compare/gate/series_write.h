/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_series_write: appends the steps of a history to a buffer, in formats for people and for
 * programs. Functions return 0 or -ENOMEM. One thread uses a series at a time.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_SERIES_WRITE_H
#define KVMPROF_PROFILE_COMPARE_GATE_SERIES_WRITE_H

#include "base/buf.h"
#include "profile/compare/gate/series.h"

/* Appends the steps as text; dir is the name of the history. */
int gate_series_write_text(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e);
/* Appends the steps as a JSON object. */
int gate_series_write_json(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e);
/* Appends an HTML page without scripts: the table of steps, and a graph of each series. */
int gate_series_write_html(struct buf *out, const struct gate_series *s, const char *dir,
			   struct err *e);

#endif
