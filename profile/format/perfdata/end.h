/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * end: writes the last bytes of a file, and truncates it if they do not fit. Called by the writer's
 * thread (write.h).
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_END_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_END_H

#include "profile/format/perfdata/write_feature.h"

/*
 * Writes the held records, the features and the final header, and closes the file. After a failed
 * write, now or before (disk full), the file is truncated to whole records, so that the rest of the
 * format has room, and the number of missing samples becomes a record of lost samples; w->readable
 * and w->kept_samples describe the result. The error is returned nevertheless: 0 means that
 * everything was written. Otherwise returns -errno.
 */
int perfdata_write_end(struct perfdata_writer *w, const struct perfdata_about *about,
		       struct err *e);

/*
 * Appends the totals to b: json (one object, or NULL) and, if records are missing, a member
 * "profile". b->failed is set if out of memory.
 */
void perfdata_put_totals(struct buf *b, const struct perfdata_writer *w, const char *json);

#endif
