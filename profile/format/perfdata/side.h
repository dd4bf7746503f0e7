/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_side: what travels beside the samples so that perf can name and
 * disassemble a guest kernel that it has never seen.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_SIDE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_SIDE_H

#include "base/buf.h"
#include "profile/format/sink/sink.h"

/* Widest kernel image for which a kcore is written: its address space from -2 GiB up. */
#define PERFDATA_KCORE_MAX (2ull << 30)

/*
 * Functions of the kernel as /proc/kallsyms text, ascending, one line for each
 * address (the name that symtab_lookup gives), and a weak `_text`, by which
 * perf finds the slide. Check out->failed.
 */
void perfdata_kallsyms(struct buf *out, const struct profile_kernel *k);

/*
 * The same with the functions of modules, each line with a tab and `[NAME]`:
 * kernel holds what perfdata_kallsyms() wrote, m the modules by address.
 */
void perfdata_kallsyms_modules(struct buf *out, const struct buf *kernel,
			       const struct profile_module *const *m, size_t n);

/*
 * The kernel's identity: its build id, or 20 bytes hashed from its image, its
 * symbols or its name, whichever comes first. Without any, perf would print
 * the names of the HOST's kernel. Returns the length.
 */
unsigned int perfdata_kernel_id(uint8_t id[KIMAGE_BUILD_ID_MAX], const struct profile_kernel *k,
				const struct buf *kallsyms);
/* 20 bytes hashed from these: the identity of what has no build id. */
void perfdata_hash_id(uint8_t id[KIMAGE_BUILD_ID_MAX], const void *data, size_t len);

/*
 * An ELF core with one PT_LOAD over [text, end), in which only the pages of the
 * functions at the nip addresses are filled. Nothing is written when there is
 * nothing to read. fd is an empty file.
 */
int perfdata_kcore(int fd, const char *path, const struct profile_kernel *k, const uint64_t *ip,
		   size_t nip, struct err *e);

#endif
