/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private: state of an open reader, shared by read*.c. The rules of read.h for threads and errors
 * apply.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_PRIVATE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_PRIVATE_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/table.h"
#include "profile/format/perfdata/read.h"

/* The layout of an event's records, as its attr describes it. */
struct perfdata_layout {
	uint64_t sample_type, read_format, period;
	uint64_t branch_type, regs_user, regs_intr;
	bool sample_id_all;
	bool marker; /* the event of kvmprof's markers */
	bool offcpu; /* perf's offcpu-time: the fields of its samples are in RAW */
	bool inherit;
};

struct perfdata_id {
	uint64_t id;
	uint32_t event;
};

/* The last value of a counter, per thread if the counter is inherited. */
struct perfdata_count {
	uint64_t id, value;
	uint32_t tid;
};

/* The user part of a call chain, which the kernel recorded after the samples. */
struct perfdata_deferred {
	uint64_t cookie;
	uint32_t tid, nr;
	const uint8_t *words; /* in the mapped file */
};

struct perfdata_chains {
	struct table kept;	    /* chains stored by perfdata_keep_chain() */
	struct chain_block *blocks; /* owned; memory for their words */
	struct table deferred;
};

/* Offset and time of a record, for files that are not sorted. */
struct perfdata_place {
	uint64_t time_ns;
	uint64_t off;
};

struct perfdata_private {
	struct file_map map;
	struct buf stream; /* contents of a pipe */
	struct buf flat;   /* all records, if some were compressed */
	/* command: the feature PERFDATA_FEAT_CMDLINE, empty if absent */
	struct cursor file, command;
	struct cursor records;	     /* the bytes of the file or of flat */
	uint64_t data_off, data_end; /* range of the readable records */
	bool pipe;
	struct file_map *part_map; /* nparts maps, owned; NULL: the parts are borrowed */
	struct cursor *part;	   /* further records, to be merged with the file's */
	uint32_t nparts;
	bool split; /* the header says that there are parts */
	/* type of the first record whose type is unknown; `unknown` counts them */
	uint32_t unknown_type;
	uint64_t unknown; /* count of records of unknown types */

	struct perfdata_layout layout[PERFDATA_MAX_ATTRS];
	uint32_t nlayouts;
	struct perfdata_id *ids; /* sorted by id */
	size_t nids, ids_cap;
	uint64_t last_id;
	uint32_t last_event;

	bool has_idle;		 /* becomes struct perfdata.has_idle */
	uint32_t chosen;	 /* index of the event that is read */
	uint64_t from_ns, to_ns; /* range of the samples returned; to_ns 0: no range */
	bool groups;		 /* samples have values of counters; see read_group.h */
	struct table counts;	 /* struct perfdata_count */
	struct perfdata_chains chains;
	struct perfdata_build_id_entry *build_ids;
	size_t build_ids_cap;
	uint64_t pos;		      /* offset of the next record if the file is sorted */
	struct perfdata_place *order; /* owned; NULL: the file is sorted */
	size_t norder, order_pos;
	/* the later kernel's profile that is read at present; NULL: this one */
	struct perfdata *reading;
	uint64_t released; /* number of mapped bytes that were released */
};

/* Sets `partial` and `message`, unless they are set already. */
void perfdata_mark_partial(struct perfdata *p, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
