/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * btf: the kernel's description of its own types (CONFIG_DEBUG_INFO_BTF).
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
 * endian alone. A module's BTF continues its kernel's and is refused.
 *
 * Offsets are in bytes. Everything is checked when it is opened, afterwards it is
 * const and lock-free; the bytes are borrowed and must stay.
 */
#ifndef KVMPROF_SYMBOLIZER_TYPES_BTF_H
#define KVMPROF_SYMBOLIZER_TYPES_BTF_H

#include "base/err.h"
#include "symbolizer/core/kimage.h"

#include <stddef.h>
#include <stdint.h>

#define BTF_MAX_BYTES (256u << 20)
#define BTF_MAX_TYPES 0xfffffu /* Linux's BTF_MAX_TYPE; a stock kernel has some 100,000 */
/* Structures inside of each other, arrays and modifiers included; Linux allows 32. */
#define BTF_MAX_DEPTH 64u

struct btf;

/*
 * name is for messages. -EINVAL: no BTF that is understood (magic, version,
 * endianness, a kind of type from the future, part of a module's); -EBADMSG: it
 * contradicts itself, the message says at which offset; -E2BIG over a cap; -ENOMEM.
 */
int btf_open(struct btf **out, const uint8_t *bytes, size_t len, const char *name, struct err *e);

/*
 * The BTF of an image: its .BTF section or, where there are no section headers, the
 * first bytes that are BTF in all respects. -ENOENT when it has none. k->elf must stay.
 */
int btf_from_image(struct btf **out, const struct kimage *k, const char *name, struct err *e);

void btf_destroy(struct btf *b);

/* Types, void not among them. */
uint32_t btf_count(const struct btf *b);
/* Bytes that it takes, header included. */
size_t btf_size(const struct btf *b);

#endif
