/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * export_private: what the formats write with, and the functions of export.c's table.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PRIVATE_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PRIVATE_H

#include "profile/analyse/export/export.h"
#include "profile/analyse/export/stacks.h"

void export_out_mem(struct export_out *o, const void *data, size_t len);
void export_out_text(struct export_out *o, const char *text);
/* Writes the text as utf8_clean() makes it. */
void export_out_clean(struct export_out *o, const char *text);
/* Writes a byte as coded.h has it. */
void export_out_coded(struct export_out *o, char c);
void export_out_char(struct export_out *o, char c);
void export_out_u64(struct export_out *o, uint64_t v);
void export_out_hex(struct export_out *o, uint64_t v);
void export_out_printf(struct export_out *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Writes what others have appended to o->buf, such as a json_writer, once it is much. */
void export_out_flush(struct export_out *o);

/* The writer of a format: struct export_format.write. */
#define EXPORT_WRITER(name)                                                                 \
	int export_##name(struct export_out *o, const char *path, const struct stackset *s, \
			  const struct export_options *opt, struct err *e)
EXPORT_WRITER(folded);
EXPORT_WRITER(perf_script);
EXPORT_WRITER(speedscope);
EXPORT_WRITER(firefox);
EXPORT_WRITER(callgrind);
EXPORT_WRITER(perfetto);
EXPORT_WRITER(kp);
EXPORT_WRITER(iprof);

#endif
