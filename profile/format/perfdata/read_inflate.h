/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * read_inflate: decompresses records. Called by the reader's thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_INFLATE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_INFLATE_H

#include "profile/format/perfdata/private.h"

/* Returns true if a record of this type contains compressed records. */
bool perfdata_is_compressed(uint32_t type);

/*
 * Copies all records to v->flat, those of the parts after those of the file, with compressed ones
 * decompressed, and sets v->records, data_off and data_end to the copy. Damaged data ends a part
 * early and sets `partial`. Returns 0 or -errno; name is for messages.
 */
int perfdata_inflate(struct perfdata *p, const char *name, struct err *e);

#endif
