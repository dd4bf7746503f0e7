/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_cache: the rows of addresses that were asked for, so that each is looked up once.
 *
 * An address is one of a file, by its number and the file's own virtual address. Few
 * rows are different: each is kept once. The number of addresses and of rows is bounded;
 * what is asked for most stays longest. Memory grows with use, up to 4 MiB.
 *
 * One thread. What was given out is valid until the next call.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_CACHE_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_CACHE_H

#include "symbolizer/cfi/cfi_table.h"

#define CFI_CACHE_SLOTS (1u << 16)
#define CFI_CACHE_ROWS 8192u

/* Is the instruction that ends behind this byte a call? Answered once for an address. */
enum cfi_call { CFI_CALL_UNKNOWN, CFI_CALL, CFI_NO_CALL };

struct cfi_slot {
	uint64_t va;
	uint32_t file; /* 1 + number; 0: free */
	uint16_t row;  /* index, for CFI_FOUND */
	uint8_t found; /* enum cfi_found */
	uint8_t call;  /* enum cfi_call, kept for who asks */
};

struct cfi_cache_stats {
	uint64_t asked, looked_up;
	uint64_t found[CFI_FOUND_COUNT]; /* of looked_up */
	uint64_t emptied;		 /* times that there were too many different rows */
};

struct cfi_cache;

struct cfi_cache *cfi_cache_create(void); /* NULL: no memory */
void cfi_cache_destroy(struct cfi_cache *c);

/* NULL: not known, or not any more. */
struct cfi_slot *cfi_cache_find(struct cfi_cache *c, uint32_t file, uint64_t va);
/* Keep what cfi_table_row() said; row may be NULL but for CFI_FOUND. NULL: no memory. */
struct cfi_slot *cfi_cache_keep(struct cfi_cache *c, uint32_t file, uint64_t va,
				enum cfi_found found, const struct cfi_row *row);
/* Of a slot; NULL where nothing was found. */
const struct cfi_row *cfi_cache_row(const struct cfi_cache *c, const struct cfi_slot *s);

const struct cfi_cache_stats *cfi_cache_stats(const struct cfi_cache *c);

#endif
