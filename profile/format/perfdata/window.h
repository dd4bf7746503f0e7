/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * window: holds records back, sorts them, and writes them to the file. Called by the writer's
 * thread (write.h). Functions with e return 0 or -errno.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_WINDOW_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_WINDOW_H

#include "profile/format/perfdata/write.h"

/*
 * Stores err, a positive errno, as w->failed unless that is set, and a message in *e. Returns -err.
 */
int perfdata_fail(struct perfdata_writer *w, int err, struct err *e);
/* Does the same for ENOMEM. */
int perfdata_no_memory(struct perfdata_writer *w, struct err *e);

/* Writes the bytes in w->out to the file. */
int perfdata_push(struct perfdata_writer *w, struct err *e);
/*
 * Indexes the record that was appended to w->held at offset start, and writes older records if the
 * window is full.
 */
int perfdata_hold(struct perfdata_writer *w, size_t start, uint64_t time_ns, struct err *e);

/*
 * Writes the records with a time before before_ns and updates the header, so that the file can be
 * read up to there. Called at least once per second.
 */
int perfdata_write_flush(struct perfdata_writer *w, uint64_t before_ns, struct err *e);
/*
 * Writes all held records. Only perfdata_write_early() and perfdata_write_end() may be called
 * afterwards.
 */
int perfdata_write_drain(struct perfdata_writer *w, struct err *e);

#endif
