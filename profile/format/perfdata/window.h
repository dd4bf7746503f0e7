/* SPDX-License-Identifier: GPL-2.0-or-later */
/* window: records on their way to the file: held back, sorted, written. */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_WINDOW_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_WINDOW_H

#include "profile/format/perfdata/write.h"

/* Remember the first failure; return -err with a message. */
int perfdata_fail(struct perfdata_writer *w, int err, struct err *e);
int perfdata_no_memory(struct perfdata_writer *w, struct err *e);

/* Hand what has been collected in `out` to the kernel. */
int perfdata_push(struct perfdata_writer *w, struct err *e);
/* A record has been appended to `held` from `start` on: enter it, and make room when it is time. */
int perfdata_hold(struct perfdata_writer *w, size_t start, uint64_t time_ns, struct err *e);

/*
 * Now and then, at least once a second: the records of before before_ns go to the file, and
 * the file can be read up to there.
 */
int perfdata_write_flush(struct perfdata_writer *w, uint64_t before_ns, struct err *e);
/* All records; nothing but perfdata_write_early() and _end() comes after it. */
int perfdata_write_drain(struct perfdata_writer *w, struct err *e);

#endif
