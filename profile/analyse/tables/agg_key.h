/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * agg_key: what a report can be grouped by.
 *
 * A key to come needs an entry in the table of agg_key.c and nothing else.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_TABLES_AGG_KEY_H
#define KVMPROF_PROFILE_ANALYSE_TABLES_AGG_KEY_H

#include "base/sample.h"
#include "profile/format/names/tasks.h"
#include "symbolizer/core/symtab.h"

enum agg_mode {
	AGG_KERNEL,
	AGG_USER,
	AGG_IDLE,	  /* any frame of a halted vCPU */
	AGG_GUEST_KERNEL, /* from here on as in enum perfdata_owner */
	AGG_GUEST_USER,
	AGG_HYPERVISOR,
	AGG_NO_MODE,
	AGG_MODES
};

/* One frame with what its sample knows: all that a key may group by. */
struct agg_frame {
	const struct symbol *symbol; /* NULL: unnamed, then addr tells them apart */
	const char *name;	     /* the symbol's name as it is shown; NULL: unnamed */
	const char *line;	     /* "path:line", one pointer for one text; NULL: not known */
	uint64_t addr;		     /* looked up; of an unnamed one in a file: its offset there */
	const char *dso;
	enum agg_mode mode;
	enum sample_where where; /* its whole stack: of the vCPU's thread */
	uint32_t comm;		 /* the task's name, a number of struct tasks */
	uint32_t pid, tid, cpu;
	uint64_t code_page, data_page; /* bytes; 0 not known */
};

/* Two frames are of one group when their values are equal. */
struct agg_value {
	uint64_t a, b;
};

/* The facts of a sample that a key needs. Stacks that differ only in other facts are counted as one. */
enum agg_need {
	AGG_NEED_COMM = 1,
	AGG_NEED_PID = 2,
	AGG_NEED_TID = 4,
	AGG_NEED_CPU = 8,
	AGG_NEED_LINE = 16, /* nothing of the sample: the line follows from the addresses */
	AGG_NEED_CODE_PAGE = 32,
	AGG_NEED_DATA_PAGE = 64,
};

struct agg_key {
	const char *name, *header, *json; /* in --sort, above the column, as a field */
	int width;			  /* least of the column */
	unsigned int need;		  /* enum agg_need */
	bool number;			  /* in JSON without quotes; to the right in its column */
	struct agg_value (*value)(const struct agg_frame *f);
	/* Order of rows that weigh the same. */
	int (*compare)(const struct tasks *t, const struct agg_frame *x, const struct agg_frame *y);
	/* May return a text of the frame; else writes into buf. */
	const char *(*format)(const struct tasks *t, const struct agg_frame *f, char *buf,
			      size_t size);
};

/* NULL when there is none of that name. */
const struct agg_key *agg_key_find(const char *name);
/* "comm, pid, ..." */
void agg_key_list(char *out, size_t size);

#endif
