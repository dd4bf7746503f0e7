/* SPDX-License-Identifier: GPL-2.0-or-later */
/* private: what one open reader holds, for the files it is made of (read*.c). */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_PRIVATE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_PRIVATE_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/table.h"
#include "profile/format/perfdata/read.h"

/* The form of an event's records, as its attr describes it. */
struct perfdata_layout {
	uint64_t sample_type, read_format, period;
	uint64_t branch_type, regs_user, regs_intr;
	bool sample_id_all;
	bool marker; /* the event of our markers */
	bool offcpu; /* perf's offcpu-time: the fields of its samples are in RAW */
	bool inherit;
};

struct perfdata_id {
	uint64_t id;
	uint32_t event;
};

/* The value that a counter had at its last sample, of one thread if it is inherited. */
struct perfdata_count {
	uint64_t id, value;
	uint32_t tid;
};

/* A chain of a program that the kernel recorded after its samples. */
struct perfdata_deferred {
	uint64_t cookie;
	uint32_t tid, nr;
	const uint8_t *words; /* in the file */
};

struct perfdata_chains {
	struct table kept;	    /* chains that perfdata_keep_chain() has */
	struct chain_block *blocks; /* owned, with their words */
	struct table deferred;
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
	uint64_t data_off, data_end; /* range of the readable records */
	bool pipe;
	struct file_map *part_map; /* nparts, or NULL: the parts are borrowed */
	struct cursor *part;	   /* records of their own, to be merged with the file's */
	uint32_t nparts;
	bool split; /* the file says that there are parts */
	uint32_t
		unknown_type; /* type of the first record whose type is unknown; `unknown` counts them */
	uint64_t unknown; /* number of records whose type is unknown */

	struct perfdata_layout layout[PERFDATA_MAX_ATTRS];
	uint32_t nlayouts;
	struct perfdata_id *ids; /* sorted */
	size_t nids, ids_cap;
	uint64_t last_id;
	uint32_t last_event;

	bool has_idle;		 /* as in struct perfdata */
	uint32_t chosen;	 /* event */
	uint64_t from_ns, to_ns; /* range of the samples; to_ns 0: all */
	bool groups;		 /* samples have the values of counters; see read_group.h */
	struct table counts;	 /* struct perfdata_count */
	struct perfdata_chains chains;
	struct perfdata_build_id_entry *build_ids;
	size_t build_ids_cap;
	uint64_t pos;		      /* next record, unsorted walk */
	struct perfdata_place *order; /* NULL: the file is sorted */
	size_t norder, order_pos;
	struct perfdata
		*reading;  /* the later kernel's profile whose records come next; NULL: this one */
	uint64_t released; /* bytes of the mapped file that were released */
};

/* Sets `partial` and `message`, unless something was said before. */
void perfdata_mark_partial(struct perfdata *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
