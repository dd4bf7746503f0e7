/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * read_private: inside of the reader, for the files it is made of.
 *
 *   read.c          open and close, order, walking
 *   read_header.c   header, attributes and features, of files and pipes
 *   read_record.c   the fields of one record
 *   read_inflate.c  compressed records
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_PRIVATE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_PRIVATE_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/file.h"
#include "profile/format/perfdata/read.h"

/* What an event's attr says about its records. */
struct perfdata_layout {
	uint64_t sample_type, read_format, period;
	uint64_t branch_type, regs_user, regs_intr;
	bool sample_id_all;
	bool marker; /* the event of our markers */
};

struct perfdata_id {
	uint64_t id;
	uint32_t event;
};

/* Where a record is, with its time, when the file is not sorted as it stands. */
struct perfdata_place {
	uint64_t time_ns;
	uint64_t off;
};

struct perfdata_private {
	struct file_map map;
	struct buf stream;	     /* what came through a pipe */
	struct buf flat;	     /* records, when some were compressed */
	struct cursor file, command; /* command: of PERFDATA_FEAT_CMDLINE; empty: none */
	struct cursor records;	     /* the file's bytes, or flat's */
	uint64_t data_off, data_end; /* of the readable records */
	bool pipe;

	struct perfdata_layout layout[PERFDATA_MAX_ATTRS];
	uint32_t nlayouts;
	struct perfdata_id *ids; /* sorted */
	size_t nids, ids_cap;
	uint64_t last_id;
	uint32_t last_event;

	bool has_idle;		 /* as in struct perfdata */
	uint32_t chosen;	 /* event */
	uint64_t from_ns, to_ns; /* of samples; to_ns 0: all */
	struct perfdata_build_id_entry *build_ids;
	size_t build_ids_cap;
	uint64_t pos;		      /* next record, unsorted walk */
	struct perfdata_place *order; /* NULL: the file is sorted */
	size_t norder, order_pos;
	uint64_t released; /* of the mapped file: what comes before was let go */
};

/* Sets `partial` and `message`, unless something was said before. */
void perfdata_mark_partial(struct perfdata *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* -- perfdata_header ------------------------------------------------------------------- */

/* Header of v->file; in a pipe's, data_off and data_end alone. */
int perfdata_read_header(struct perfdata *p, const char *name, struct err *e);
/* Take in a record that a pipe has for what is in a file's header; others are ignored. */
int perfdata_pipe_record(struct perfdata *p, const char *name, struct cursor c, struct err *e);
/* All attributes are known: can their records be told apart? */
int perfdata_check_layouts(struct perfdata *p, const char *name, struct err *e);

/* -- perfdata_record ------------------------------------------------------------------- */

enum perfdata_parsed {
	PERFDATA_PARSED,       /* r is filled in */
	PERFDATA_PARSED_OTHER, /* a kind of record that nobody asks for */
	PERFDATA_PARSED_BAD,
};

/* The record at off of v->records; bad when it has no room for a header or is cut. */
struct cursor perfdata_record_at(const struct perfdata_private *v, uint64_t off);
/* Bytes behind the record that belong to it; UINT64_MAX: nonsense. */
uint64_t perfdata_record_extra(const struct perfdata_private *v, struct cursor c);
/* c is one whole record. *event: whose sample it is. */
enum perfdata_parsed perfdata_parse(struct perfdata_private *v, struct cursor *c,
				    struct perfdata_record *r, uint32_t *event);

/* -- perfdata_inflate ------------------------------------------------------------------ */

/*
 * Copy the records into v->flat, compressed ones as what they hold, and let
 * v->records, data_off and data_end be of the copy. Damage ends it early, and is marked.
 */
int perfdata_inflate(struct perfdata *p, const char *name, struct err *e);

#endif
