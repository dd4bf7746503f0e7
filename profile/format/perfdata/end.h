/* SPDX-License-Identifier: GPL-2.0-or-later */
/* end: the last bytes of a file, and how much of it is kept when they don't fit. */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_END_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_END_H

#include "profile/format/perfdata/write_feature.h"

/*
 * The held records, the features and the final header. After a failed write
 * now or before (disk full) the file is cut back to whole records, far enough that the
 * rest of the format has room, and the number of samples that are missing becomes a record of
 * lost samples: `readable` and `kept_samples` say what there is. The failure is returned all
 * the same: only 0 means that all is there.
 */
int perfdata_write_end(struct perfdata_writer *w, const struct perfdata_about *about,
		       struct err *e);

/* json, which is one object or NULL, with what is missing, if anything is: a member "profile". */
void perfdata_put_totals(struct buf *b, const struct perfdata_writer *w, const char *json);

#endif
