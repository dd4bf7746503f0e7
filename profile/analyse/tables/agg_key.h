/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agg_key: the keys by which a report can be grouped.
 *
 * A new key needs an entry in the table of agg_key.c only. Keys are constants; any thread may use
 * them.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_TABLES_AGG_KEY_H
#define KVMPROF_PROFILE_ANALYSE_TABLES_AGG_KEY_H

#include "base/sample.h"
#include "profile/format/names/tasks.h"
#include "symbolizer/core/symtab.h"

enum agg_mode {
	AGG_KERNEL,
	AGG_USER,
	AGG_IDLE,	  /* all frames of a halted vCPU */
	AGG_GUEST_KERNEL, /* this and the following correspond to enum perfdata_owner */
	AGG_GUEST_USER,
	AGG_HYPERVISOR,
	AGG_NO_MODE,
	AGG_MODES
};

/* One frame with the facts of its sample: the input of a key. */
struct agg_frame {
	const struct symbol *symbol; /* NULL: unnamed; addr distinguishes such frames */
	const char *name;	     /* the symbol's name for display; NULL: unnamed */
	const char *line;	     /* "path:line", one pointer for equal texts; NULL: unknown */
	/* address looked up; for an unnamed frame in a file: its offset there */
	uint64_t addr;
	const char *dso;
	enum agg_mode mode;
	enum sample_where where; /* state of the vCPU's thread, given by the whole stack */
	uint32_t comm;		 /* the task's name, a number of struct tasks */
	uint32_t pid, tid, cpu;
	uint64_t code_page, data_page; /* bytes; 0 unknown */
};

/* Frames with equal values belong to one group. */
struct agg_value {
	uint64_t a, b;
};

/* Facts of a sample that a key needs. Stacks that differ only in other facts are counted as one. */
enum agg_need {
	AGG_NEED_COMM = 1,
	AGG_NEED_PID = 2,
	AGG_NEED_TID = 4,
	AGG_NEED_CPU = 8,
	AGG_NEED_LINE = 16, /* not a fact of the sample: the line follows from the addresses */
	AGG_NEED_CODE_PAGE = 32,
	AGG_NEED_DATA_PAGE = 64,
};

struct agg_key {
	/* for --sort, for the column's header, and as JSON member */
	const char *name, *header, *json;
	int width;	   /* minimum width of the column */
	unsigned int need; /* bits of enum agg_need */
	bool number;	   /* in JSON without quotes; right-aligned in its column */
	/* Returns the group of a frame. */
	struct agg_value (*value)(const struct agg_frame *f);
	/* Order of rows of equal weight: below, equal to or above 0. */
	int (*compare)(const struct tasks *t, const struct agg_frame *x, const struct agg_frame *y);
	/*
	 * Returns the text for a frame: its own string, or one written to buf, cut to size bytes.
	 */
	const char *(*format)(const struct tasks *t, const struct agg_frame *f, char *buf,
			      size_t size);
};

/* Returns the key with this name, or NULL. */
const struct agg_key *agg_key_find(const char *name);
/* Writes "comm, pid, ..." to out, cut to size bytes with the NUL. */
void agg_key_list(char *out, size_t size);

#endif
