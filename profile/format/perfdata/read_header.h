/* SPDX-License-Identifier: GPL-2.0-or-later */
/* read_header: header, attributes and features, of files and pipes. */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_HEADER_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_HEADER_H

#include "profile/format/perfdata/private.h"

/* Header of v->file; in a pipe's, data_off and data_end alone. */
int perfdata_read_header(struct perfdata *p, const char *name, struct err *e);
/* Take in a record that a pipe has for what is in a file's header; others are ignored. */
int perfdata_pipe_record(struct perfdata *p, const char *name, struct cursor c, struct err *e);
/* Sets p->kernel_id from the table of build ids, unless a mapping has it. Called when all records are known. */
void perfdata_find_kernel_id(struct perfdata *p);
/* All attributes are known: can their records be told apart? */
int perfdata_check_layouts(struct perfdata *p, const char *name, struct err *e);

#endif
