/* SPDX-License-Identifier: GPL-2.0-or-later */
/* read_inflate: compressed records become what they hold. */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_INFLATE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_INFLATE_H

#include "profile/format/perfdata/private.h"

/* Returns whether a record of this type holds others. */
bool perfdata_is_compressed(uint32_t type);

/*
 * Copy the records into v->flat, those of the parts behind those of the file, compressed ones
 * as what they hold, and let v->records, data_off and data_end be of the copy. Damage ends a
 * part early, and is marked.
 */
int perfdata_inflate(struct perfdata *p, const char *name, struct err *e);

#endif
