/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * export_private: output functions for the formats, and the functions of export.c's table. The
 * output functions keep errors in o->ret; the rules of export.h for threads apply.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PRIVATE_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PRIVATE_H

#include "profile/analyse/export/export.h"
#include "profile/analyse/export/stacks.h"

/* The first two write len bytes, and a text without its NUL. */
void export_out_mem(struct export_out *o, const void *data, size_t len);
void export_out_text(struct export_out *o, const char *text);
/* Writes the text in the form that utf8_clean() gives it. */
void export_out_clean(struct export_out *o, const char *text);
/* Writes a byte encoded as in coded.h. */
void export_out_coded(struct export_out *o, char c);
void export_out_char(struct export_out *o, char c);
/* Write a decimal number, and a hexadecimal number without "0x". */
void export_out_u64(struct export_out *o, uint64_t v);
void export_out_hex(struct export_out *o, uint64_t v);
void export_out_printf(struct export_out *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Writes the bytes that other code has appended to o->buf, such as a json_writer, if there are
 * many.
 */
void export_out_flush(struct export_out *o);

/* Declares the writer of a format; see struct export_format.write. */
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
