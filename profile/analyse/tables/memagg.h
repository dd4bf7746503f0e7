/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memagg: the memory accesses of a profile, counted by what they went to.
 *
 * From a perf.data file alone, whose samples carry profile/format/sink/memref.h. An access is a
 * memory operand of a sampled instruction, and weighs what its sample weighs; each of
 * several operands counts. Built once, then const. One thread.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_TABLES_MEMAGG_H
#define KVMPROF_PROFILE_ANALYSE_TABLES_MEMAGG_H

#include "base/err.h"
#include "profile/format/sink/memref.h"

enum memagg_mode { MEMAGG_ALL, MEMAGG_KERNEL, MEMAGG_USER };

struct memagg_options {
	const char *input;	 /* NULL: perf.data */
	const char *buildid_dir; /* NULL: $HOME/.debug */
	const char *event;	 /* NULL: the first one with samples */
	enum memagg_mode mode;	 /* of the code that accesses */
	bool no_demangle;
};

/* What to make a row of. */
enum memagg_key {
	MEMAGG_PAGE,  /* sizes of the guest's and the host's page */
	MEMAGG_CODE,  /* the same of the code: rows of samples, not of accesses */
	MEMAGG_SPACE, /* kernel, user, device: by the page's rights */
	MEMAGG_REGION,
	MEMAGG_NODE,
	MEMAGG_SYMBOL,
};

enum memagg_size { MEMAGG_4K, MEMAGG_2M, MEMAGG_1G, MEMAGG_NO_SIZE, MEMAGG_SIZES };

/* Sums of weights. What reads and writes counts in both. */
struct memagg_row {
	const char *name, *detail; /* "4K", and of the host's page "4K"; "" when there is none */
	const char *mode;	   /* symbols: "kernel" or "user"; else "" */
	uint64_t count;		   /* accesses (of code: samples) */
	uint64_t weight, read, write;
	uint64_t size[MEMAGG_SIZES];
};

/*
 * Pages that accesses were seen to go to: of 4 KiB in each 2 MiB of addresses. Samples see
 * some of the accesses: pages are at least so many.
 */
struct memagg_huge {
	uint8_t region;
	uint64_t pages;	       /* of 4 KiB */
	uint64_t ranges;       /* of 2 MiB that they lie in */
	uint64_t dense;	       /* ranges with MEMAGG_DENSE pages or more */
	uint64_t weight;       /* of accesses to them */
	uint64_t dense_weight; /* in dense ranges */
};
#define MEMAGG_DENSE 64u /* an eighth of a range */

/* How many pages, the busiest first, take this share of the accesses. */
struct memagg_reach {
	unsigned int percent;
	uint64_t now[3];     /* by enum memagg_size, as things are */
	uint64_t huge;	     /* if each 2 MiB range of 4 KiB pages were one page */
	uint64_t huge_dense; /* if only dense ones were */
};

struct memagg {
	char event[64];
	bool partial;
	const char *message; /* when partial */
	uint64_t samples, lost;
	/* Weights: all samples; halted; and the rest by what their instruction was. */
	uint64_t weight, idle, none, with, why[MEMOP_WHY_COUNT];
	uint64_t accesses, access_weight;
	uint64_t status[MEM_STATUS_COUNT]; /* accesses' weight by it */
	uint64_t host[MEM_HOST_COUNT];	   /* of those that are mapped */
	uint64_t unknown_access;
	struct memagg_huge *huge; /* by weight */
	size_t nhuge;
	struct memagg_reach reach[2];
	struct memagg_inside *inside;
};

/* -ENODATA: the profile was made without --mem. */
int memagg_load(struct memagg **out, const struct memagg_options *opt, struct err *e);
void memagg_destroy(struct memagg *m);

/* Rows by weight; freed by the caller, their texts are m's. */
int memagg_rows(const struct memagg *m, enum memagg_key key, struct memagg_row **out, size_t *n,
		struct err *e);

#endif
