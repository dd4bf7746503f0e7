/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_cfi: the call frame information (CFI) of the guest's programs, for the unwinder.
 *
 * An address is looked up in the file that the sampled process has mapped there, as far as its
 * mappings are known when the sample is unwound. The file is read from the guest's page cache;
 * bytes that are missing there are read from the file of the same build id in the root directory or
 * the caches on the host. A file without tables of its own has those of its debug file. Results are
 * cached for each address (cfi_cache.h); what was missing is tried again after GUEST_CFI_RETRY_NS.
 *
 * All functions are called by the consumer thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_CFI_H
#define KVMPROF_PROFILE_RECORD_GUEST_CFI_H

#include "profile/record/guest/maps.h"
#include "symbolizer/cfi/cfi_cache.h"
#include "symbolizer/unwind/unwind.h"

/* The most files whose tables are read; each costs 4 KiB. */
#define GUEST_CFI_MAX_FILES 4096u
/* The most files of the host that stay mapped, for bytes that the guest's memory lacks. */
#define GUEST_CFI_MAX_HOST 256u
/* Missing bytes are tried again after this time, as they may be in memory then. */
#define GUEST_CFI_RETRY_NS 500000000u

struct guest_cfi_stats {
	struct cfi_cache_stats cache;
	uint64_t files, without; /* files that were opened; those without any tables */
	uint64_t beyond;	 /* lookups in files beyond GUEST_CFI_MAX_FILES */
	uint64_t from_host;	 /* files of which a part was read from the host */
};

struct guest_cfi;

/* The objects that are read; all must outlive the guest_cfi. */
struct guest_cfi_parts {
	const struct linux_mm_layout *layout;
	const struct memory *memory;
	struct guest_dsos *dsos;
};
/* Returns 0 or -ENOMEM. The caller frees *out with guest_cfi_destroy(). */
int guest_cfi_create(struct guest_cfi **out, const struct guest_cfi_parts *parts, struct err *e);
/* Frees g; NULL is allowed. */
void guest_cfi_destroy(struct guest_cfi *g);

/*
 * Prepares for samples of the process and time of *s. *owner is copied; NULL if the owner of the
 * sample is unknown. To be called before each sample, and again after the process's mappings were
 * read, because lookups in mappings are remembered until then.
 */
void guest_cfi_begin(struct guest_cfi *g, const struct guest_owner *owner, const struct sample *s);
/*
 * Returns the functions by which the unwinder looks up addresses. They are valid until
 * guest_cfi_destroy().
 */
struct unwind_cfi guest_cfi_unwind(struct guest_cfi *g);

/* Copies the counters. */
void guest_cfi_stats(const struct guest_cfi *g, struct guest_cfi_stats *out);

#endif
