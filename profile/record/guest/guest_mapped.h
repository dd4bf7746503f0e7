/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_mapped: one process's mappings with code, and whether they are still those.
 *
 * The kernel hands out the addresses of structures again. So a mapping is the one it
 * was when its file is, and a file is told by what is in its inode (linux_file_id),
 * in kernels without types by its inode's address and its path. Used by the
 * consumer's thread alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_GUEST_MAPPED_H
#define KVMPROF_PROFILE_RECORD_GUEST_GUEST_MAPPED_H

#include "symbolizer/linux/mm.h"

/* What a mapping's addresses do not say. */
struct guest_mark {
	struct linux_file_id file; /* all 0: none, or it cannot be read */
	uint64_t path;		   /* a hash; 0 where files can be told apart without */
	uint64_t checked_ns;	   /* it was so at this moment of the host's clock */
	uint32_t dso;		   /* 1 + number of its guest_dso; 0: not asked for yet */
	bool told;		   /* the sink knows it */
};

struct guest_mapped {
	struct linux_vmas vmas;
	struct guest_mark *mark; /* one for each of vmas */
	size_t cap;		 /* of mark */
	bool counted;		 /* the kernel had this number of changes before they were read */
	uint32_t changes;
};

void guest_mapped_deinit(struct guest_mapped *m);

/*
 * Read them all anew; nothing is told, and all was so at now_ns. Other than LINUX_OK: what
 * was found in order. LINUX_NO_MEMORY: ours.
 */
enum linux_why guest_mapped_read(struct guest_mapped *m, const struct linux_mm_layout *l,
				 const struct memory *memory, uint64_t mm, uint64_t now_ns);

/* Behind the last of m, go on as old has it, which stays as it is. false: no memory. */
bool guest_mapped_append(struct guest_mapped *m, const struct guest_mapped *old);

/* Its mark; v is one of m->vmas. */
static inline struct guest_mark *guest_mapped_mark(const struct guest_mapped *m,
						   const struct linux_vma *v)
{
	return &m->mark[v - m->vmas.v];
}

/* i-th of a and k-th of b: where both are, do they show the same bytes of the same file? */
bool guest_mapped_agree(const struct guest_mapped *a, size_t i, const struct guest_mapped *b,
			size_t k);

/* Has nothing gone or changed since they were read? false: it cannot be known without a look. */
bool guest_mapped_unchanged(const struct guest_mapped *m, const struct linux_mm_layout *l,
			    const struct memory *memory, uint64_t mm);

/* Does the process have this mapping at this moment? false, too, where that cannot be known. */
bool guest_mapped_holds(const struct guest_mapped *m, const struct linux_mm_layout *l,
			const struct memory *memory, uint64_t mm, const struct linux_vma *v);

#endif
