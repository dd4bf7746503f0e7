/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_side: the files beside the samples, from which perf gets the functions and the code of a
 * guest kernel. The functions keep no state; the sink's thread calls them.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_SIDE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_SIDE_H

#include "base/buf.h"
#include "profile/format/sink/sink.h"

/*
 * Maximum size in bytes of a kernel image for which a kcore is written: its address space from -2
 * GiB up.
 */
#define PERFDATA_KCORE_MAX (2ull << 30)

/*
 * Appends the functions of the kernel as /proc/kallsyms text to out: in ascending order, one line
 * for each address (the name that symtab_lookup() returns), and a weak `_text`, from which perf
 * computes the slide. out->failed is set if out of memory.
 */
void perfdata_kallsyms(struct buf *out, const struct profile_kernel *k);

/*
 * Appends the same list merged with the functions of modules, each line with a tab and `[NAME]`.
 * kernel is the output of perfdata_kallsyms(); m has n modules sorted by address.
 */
void perfdata_kallsyms_modules(struct buf *out, const struct buf *kernel,
			       const struct profile_module *const *m, size_t n);

/*
 * Writes the kernel's id: its build id, or 20 bytes hashed from its image, or without an image from
 * kallsyms, and from osrelease. Without an id, perf would print the names of the HOST's kernel.
 * Returns the length in bytes.
 */
unsigned int perfdata_kernel_id(uint8_t id[KIMAGE_BUILD_ID_MAX], const struct profile_kernel *k,
				const struct buf *kallsyms);
/* Writes 20 bytes hashed from data, as the id of an object without a build id. */
void perfdata_hash_id(uint8_t id[KIMAGE_BUILD_ID_MAX], const void *data, size_t len);

/*
 * Writes an ELF core to the empty file fd, with one PT_LOAD over [text, end), in which only the
 * pages of the functions at the nip sampled addresses have contents. Writes nothing if no code can
 * be read. path is for messages. Returns 0 or -errno.
 */
int perfdata_kcore(int fd, const char *path, const struct profile_kernel *k, const uint64_t *ip,
		   size_t nip, struct err *e);

#endif
