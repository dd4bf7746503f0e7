/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symfile: a symbol file given by the user, and whether it belongs to the kernel.
 *
 * Forms, recognised by content: ELF64 (vmlinux); text as in symfile_text.h:
 * System.map, /proc/kallsyms (with module column), the output of `nm` with any of
 * -C, -S, -n and -P, and plain lists of addresses and names.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_SYMFILE_H
#define KVMPROF_SYMBOLIZER_KERNEL_SYMFILE_H

#include "symbolizer/core/kimage.h"

enum symfile_kind {
	SYMFILE_ELF = 1,
	SYMFILE_TEXT, /* System.map, nm, kallsyms, lists */
};

struct symfile {
	enum symfile_kind kind;
	struct symtab *symbols; /* frozen, owned */
	bool untyped;		/* addresses and names alone: nothing tells code from data */
	uint8_t build_id[KIMAGE_BUILD_ID_MAX];
	unsigned int build_id_len; /* 0 for text forms */
	char banner[256];	   /* ELF only */
	/* ELF only: FNV-1a of the first text_len text bytes, for files without a build id. */
	uint64_t text_va, text_len, text_hash;
};

/*
 * Parse bytes; none of them is kept. -EINVAL for a file of no known form
 * (message: path, line or offset, what was expected) and for the placeholder
 * that Debian installs as System.map; -EPERM for kallsyms whose addresses are
 * all zero (kptr_restrict), with the sysctl that mends it.
 */
int symfile_parse(struct symfile *f, const char *name, const uint8_t *data, size_t len,
		  struct err *e);
void symfile_deinit(struct symfile *f);

/*
 * Does it describe this kernel? ELF: build ids are compared, and where one side
 * has none, text bytes. Text for Linux: linux_banner must lie at the named address in the
 * image, _text, _etext and _end must agree with it, and the targets of direct calls in the
 * image's text must be symbol addresses (at least 95 % of a large sample).
 * Text for other kernels: symfile.c says how.
 * A mismatch is -ESTALE with both identities in the message.
 */
int symfile_verify(const struct symfile *f, const char *name, const struct kimage *k,
		   const char *kname, struct err *e);

#endif
