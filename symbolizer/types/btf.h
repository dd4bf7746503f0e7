/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * btf: reads the kernel's description of its own types (CONFIG_DEBUG_INFO_BTF).
 *
 *	header	u16 magic 0xeb9f, u8 version 1, u8 flags, u32 hdr_len, then u32 each,
 *		counted from the end of the header: type_off, type_len, str_off, str_len
 *	types	records of u32 name, u32 info, u32 size or type, and what the kind adds;
 *		the first has id 1, id 0 is void
 *	strings	closed by NUL each; the first is empty
 *
 *	info	vlen:16, :8, kind:5, :2, kind_flag:1
 *
 * Format: Documentation/bpf/btf.rst and include/uapi/linux/btf.h of Linux. Little
 * endian only. A module's BTF extends its kernel's and is rejected.
 *
 * Offsets are in bytes. Everything is checked when it is opened; afterwards it is constant and may
 * be used by several threads. The bytes are borrowed.
 */
#ifndef KVMPROF_SYMBOLIZER_TYPES_BTF_H
#define KVMPROF_SYMBOLIZER_TYPES_BTF_H

#include "base/err.h"
#include "symbolizer/core/kimage.h"

#include <stddef.h>
#include <stdint.h>

#define BTF_MAX_BYTES (256u << 20)
#define BTF_MAX_TYPES 0xfffffu /* Linux's BTF_MAX_TYPE; a typical kernel has some 100,000 */
/* Maximum nesting of structures, including arrays and modifiers; Linux allows 32. */
#define BTF_MAX_DEPTH 64u

struct btf;

/*
 * Checks and indexes len bytes, which are borrowed until btf_destroy(). name is for messages.
 * Returns 0; -EINVAL if it is not supported BTF (magic, version, endianness, a newer kind of type,
 * part of a module's); -EBADMSG if it contradicts itself, with the offset in *e; -E2BIG beyond a
 * limit; or -ENOMEM. The caller frees *out with btf_destroy(), which accepts NULL.
 */
int btf_open(struct btf **out, const uint8_t *bytes, size_t len, const char *name, struct err *e);

/*
 * Opens the BTF of an image: its .BTF section or, without section headers, the first bytes that
 * are valid BTF. Borrows k->elf. Returns as btf_open(), and -ENOENT if the image has none.
 */
int btf_from_image(struct btf **out, const struct kimage *k, const char *name, struct err *e);

void btf_destroy(struct btf *b);

/* Returns the number of types, without void. */
uint32_t btf_count(const struct btf *b);
/* Returns the number of bytes that the BTF occupies, including its header. */
size_t btf_size(const struct btf *b);

#endif
