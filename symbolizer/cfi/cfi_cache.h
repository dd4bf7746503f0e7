/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cfi_cache: caches the rows of addresses, so that each address is looked up once.
 *
 * An address is identified by the number of its file and the file's own virtual address. Few rows
 * are different: each is stored once. The number of addresses and of rows is limited; the most
 * recently used addresses are kept. Memory grows with use, up to 4 MiB.
 *
 * Not thread-safe: one thread per cache. Returned pointers are valid until the next call.
 */
#ifndef KVMPROF_SYMBOLIZER_CFI_CFI_CACHE_H
#define KVMPROF_SYMBOLIZER_CFI_CFI_CACHE_H

#include "symbolizer/cfi/cfi_table.h"

#define CFI_CACHE_SLOTS (1u << 16)
#define CFI_CACHE_ROWS 8192u

/*
 * Whether the instruction that ends before this address is a call. Determined once for each
 * address.
 */
enum cfi_call { CFI_CALL_UNKNOWN, CFI_CALL, CFI_NO_CALL };

struct cfi_slot {
	uint64_t va;
	uint32_t file; /* 1 + file number; 0: free slot */
	uint16_t row;  /* index of the row, for CFI_FOUND */
	uint8_t found; /* enum cfi_found */
	uint8_t call;  /* enum cfi_call, stored by the caller */
};

struct cfi_cache_stats {
	uint64_t asked, looked_up; /* number of queries, and of addresses looked up in a table */
	uint64_t found[CFI_FOUND_COUNT]; /* results of the lookups */
	/* How often the rows were discarded because there were too many. */
	uint64_t emptied;
};

struct cfi_cache;

/*
 * Creates an empty cache, or returns NULL if out of memory. The caller frees it with
 * cfi_cache_destroy(), which accepts NULL.
 */
struct cfi_cache *cfi_cache_create(void);
void cfi_cache_destroy(struct cfi_cache *c);

/* Returns the slot of an address, or NULL if it is not in the cache. */
struct cfi_slot *cfi_cache_find(struct cfi_cache *c, uint32_t file, uint64_t va);
/*
 * Stores the result of cfi_table_row(); row may be NULL unless found is CFI_FOUND. Returns the
 * slot, or NULL if out of memory.
 */
struct cfi_slot *cfi_cache_keep(struct cfi_cache *c, uint32_t file, uint64_t va,
				enum cfi_found found, const struct cfi_row *row);
/* Returns the row of a slot, or NULL if its lookup found none. */
const struct cfi_row *cfi_cache_row(const struct cfi_cache *c, const struct cfi_slot *s);

/* Returns the statistics, which belong to c. */
const struct cfi_cache_stats *cfi_cache_stats(const struct cfi_cache *c);

#endif
