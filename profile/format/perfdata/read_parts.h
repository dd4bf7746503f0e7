/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * read_parts: the directory that perf record --threads writes.
 *
 *   DIR/data      a perf.data file: header, features, records of the main thread
 *   DIR/data.N    the records of thread N from 0 on, without a header
 *
 * Source: tools/perf/util/data.c, perf_data__open_dir(), and session.c,
 * __perf_session__process_dir_events() (Linux 6.1).
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_PARTS_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_PARTS_H

#include "profile/format/perfdata/private.h"

/* Maps the files data.N of the directory into v->part; 0 if there are none. */
int perfdata_open_parts(struct perfdata *p, const char *dir, struct err *e);
int perfdata_borrow_parts(struct perfdata *p, const struct cursor *part, uint32_t n, struct err *e);
void perfdata_close_parts(struct perfdata_private *v);

#endif
