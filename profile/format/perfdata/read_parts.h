/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * read_parts: opens the files of a directory that perf record --threads writes.
 *
 *   DIR/data      a perf.data file: header, features, records of the main thread
 *   DIR/data.N    the records of thread N from 0 on, without a header
 *
 * Source: tools/perf/util/data.c, perf_data__open_dir(), and session.c,
 * __perf_session__process_dir_events() (Linux 6.1). Called by the reader's thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_PARTS_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_PARTS_H

#include "profile/format/perfdata/private.h"

/* Maps the files data.N of the directory into v->part, if there are any. Returns 0 or -errno. */
int perfdata_open_parts(struct perfdata *p, const char *dir, struct err *e);
/*
 * Sets v->part to a copy of n cursors, whose bytes are borrowed until perfdata_close(). Returns 0
 * or -errno.
 */
int perfdata_borrow_parts(struct perfdata *p, const struct cursor *part, uint32_t n, struct err *e);
/* Unmaps the parts and frees their list. */
void perfdata_close_parts(struct perfdata_private *v);

#endif
