/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memagg: sums of a profile's memory accesses by their target.
 *
 * The input is a perf.data file whose samples contain profile/format/sink/memref.h. An access is a
 * memory operand of a sampled instruction and has its sample's weight; each of several operands
 * counts. The object is built once, then const: any thread may read it.
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
	enum memagg_mode mode;	 /* mode of the code that accesses memory */
	bool no_demangle;
};

/* The fact by which rows are made. */
enum memagg_key {
	MEMAGG_PAGE,  /* sizes of the guest's and the host's page */
	MEMAGG_CODE,  /* the same for the code: rows of samples, not of accesses */
	MEMAGG_SPACE, /* kernel, user or device, by the page's access rights */
	MEMAGG_REGION,
	MEMAGG_NODE,
	MEMAGG_SYMBOL,
};

enum memagg_size { MEMAGG_4K, MEMAGG_2M, MEMAGG_1G, MEMAGG_NO_SIZE, MEMAGG_SIZES };

/* Sums of weights. An access that reads and writes counts in both. */
struct memagg_row {
	/* e.g. "4K", and for the host's page "4K"; "" if there is none */
	const char *name, *detail;
	const char *mode; /* for symbols: "kernel" or "user"; otherwise "" */
	uint64_t count;	  /* accesses (for code: samples) */
	uint64_t weight, read, write;
	uint64_t size[MEMAGG_SIZES];
};

/*
 * Pages with observed accesses: 4 KiB pages in each 2 MiB range of addresses. Samples see only some
 * accesses, so the numbers are lower limits.
 */
struct memagg_huge {
	uint8_t region;
	uint64_t pages;	       /* number of 4 KiB pages */
	uint64_t ranges;       /* number of 2 MiB ranges that contain them */
	uint64_t dense;	       /* ranges with MEMAGG_DENSE pages or more */
	uint64_t weight;       /* weight of the accesses to these pages */
	uint64_t dense_weight; /* weight of the accesses in dense ranges */
};
#define MEMAGG_DENSE 64u /* number of pages, an eighth of a range */

/* The number of pages, the busiest first, that receive this share of the accesses. */
struct memagg_reach {
	unsigned int percent;
	uint64_t now[3];     /* by enum memagg_size, with the present pages */
	uint64_t huge;	     /* if each 2 MiB range of 4 KiB pages were one page */
	uint64_t huge_dense; /* if only dense ranges were */
};

struct memagg {
	char event[64];
	bool partial;
	const char *message; /* if partial: the reason */
	uint64_t samples, lost;
	/*
	 * Weights: all samples; halted; and the others by the result of decoding the instruction.
	 */
	uint64_t weight, idle, none, with, why[MEMOP_WHY_COUNT];
	uint64_t accesses, access_weight;
	uint64_t status[MEM_STATUS_COUNT]; /* weight of accesses, by status */
	uint64_t host[MEM_HOST_COUNT];	   /* weight of mapped accesses */
	uint64_t unknown_access;
	struct memagg_huge *huge; /* sorted by weight; owned */
	size_t nhuge;
	struct memagg_reach reach[2];
	struct memagg_inside *inside;
};

/*
 * Loads a profile; the caller frees *out with memagg_destroy(). Returns 0, -ENODATA if the profile
 * was made without --mem, or another -errno.
 */
int memagg_load(struct memagg **out, const struct memagg_options *opt, struct err *e);
/* Frees m; does nothing for NULL. */
void memagg_destroy(struct memagg *m);

/*
 * Stores an array of *n rows, sorted by weight, in *out; the caller frees it with free(). Its texts
 * belong to m. Returns 0 or -ENOMEM.
 */
int memagg_rows(const struct memagg *m, enum memagg_key key, struct memagg_row **out, size_t *n,
		struct err *e);

#endif
