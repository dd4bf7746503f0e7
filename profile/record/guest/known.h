/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * known: tables of kernels that were read from guest memory before, in the build-id cache.
 *
 * A kernel is looked for by the low bits of its page-fault handler's address, and identified by its notes, which have its build id (live_copy.h).
 * The files are DIR/[kernel.kallsyms]/BUILD-ID/kvmprof. What is in them was a guest's memory, and is parsed as such.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_KNOWN_H
#define KVMPROF_PROFILE_RECORD_GUEST_KNOWN_H

#include <stddef.h>
#include <stdint.h>

#define GUEST_KNOWN_MAX_BYTES (UINT64_C(48) << 20)

/*
 * Returns the bytes of the n-th stored kernel in dir (NULL: perf's default) that fits `inside`, or NULL. The caller frees them with free().
 */
uint8_t *guest_known_load(const char *dir, uint64_t inside, unsigned int n, size_t *len);
/* Stores a kernel. One that is there is not replaced, and one that cannot be stored is read again by the next guest. */
void guest_known_store(const char *dir, const uint8_t *build_id, size_t id_len,
		       const uint8_t *bytes, size_t len);

#endif
