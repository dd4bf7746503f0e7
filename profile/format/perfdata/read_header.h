/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * read_header: reads the header, the attributes and the features of files and pipes. Called by the
 * reader's thread; functions with e return 0 or -errno; name is for messages.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_HEADER_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_HEADER_H

#include "profile/format/perfdata/private.h"

/* Reads the header of v->file. For a pipe, sets data_off and data_end only. */
int perfdata_read_header(struct perfdata *p, const char *name, struct err *e);
/* Applies a record of a pipe that has a part of a file's header; ignores other records. */
int perfdata_pipe_record(struct perfdata *p, const char *name, struct cursor c, struct err *e);
/*
 * Sets p->kernel_id from the table of build ids, unless a mapping has set it. Call it after all
 * records were read.
 */
void perfdata_find_kernel_id(struct perfdata *p);
/*
 * Checks, after all attributes were read, that their records can be distinguished. Returns 0 or
 * -EINVAL.
 */
int perfdata_check_layouts(struct perfdata *p, const char *name, struct err *e);

#endif
