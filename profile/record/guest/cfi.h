/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_cfi: the call frame information of the guest's programs, for the unwinder.
 *
 * An address is looked up in the file that the sampled process has mapped there, as far
 * as its mappings are known when the sample is unwound. The file's bytes come from the
 * guest's page cache; what is not there from the file of the same build id in the root
 * directory or the caches on the host. A file without tables of its own has those of its
 * debug file. What was found out of an address is kept (cfi_cache.h); what was missing
 * is asked for again after a while. Used by the consumer's thread alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_CFI_H
#define KVMPROF_PROFILE_RECORD_GUEST_CFI_H

#include "profile/record/guest/maps.h"
#include "symbolizer/cfi/cfi_cache.h"
#include "symbolizer/unwind/unwind.h"

/* Files whose tables are read; each takes 4 KiB. */
#define GUEST_CFI_MAX_FILES 4096u
/* Files of the host that stay mapped for what the guest's memory lacks. */
#define GUEST_CFI_MAX_HOST 256u
/* What was missing may have come to memory after this. */
#define GUEST_CFI_RETRY_NS 500000000u

struct guest_cfi_stats {
	struct cfi_cache_stats cache;
	uint64_t files, without; /* files that were asked; those without any tables */
	uint64_t beyond;	 /* addresses of files beyond GUEST_CFI_MAX_FILES */
	uint64_t from_host;	 /* files of which the guest's memory had not all */
};

struct guest_cfi;

/* All must outlive it. */
struct guest_cfi_parts {
	const struct linux_mm_layout *layout;
	const struct memory *memory;
	struct guest_dsos *dsos;
};
int guest_cfi_create(struct guest_cfi **out, const struct guest_cfi_parts *parts, struct err *e);
void guest_cfi_destroy(struct guest_cfi *g);

/*
 * The samples that are unwound from now on are like s, of this owner, which is copied; NULL: nobody knows whose.
 * Call it again after the mappings were read: what is found until then is remembered by them.
 */
void guest_cfi_begin(struct guest_cfi *g, const struct guest_owner *owner, const struct sample *s);
/* For the unwinder; valid as long as g. */
struct unwind_cfi guest_cfi_unwind(struct guest_cfi *g);

void guest_cfi_stats(const struct guest_cfi *g, struct guest_cfi_stats *out);

#endif
