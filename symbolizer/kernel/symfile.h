/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symfile: parses a symbol file that the user gives, and checks whether it belongs to the kernel.
 *
 * Formats, recognised by content: ELF64 (vmlinux); text as in symfile_text.h: System.map,
 * /proc/kallsyms (with module column), the output of `nm` with any of -C, -S, -n and -P, and plain
 * lists of addresses and names. Pure functions over bytes; any thread.
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
	/* The file has only addresses and names: code and data are not distinguished. */
	bool untyped;
	uint8_t build_id[KIMAGE_BUILD_ID_MAX];
	unsigned int build_id_len; /* bytes; 0 for text formats */
	char banner[256];	   /* ELF only */
	/* ELF only: FNV-1a of the first text_len text bytes, for files without a build id. */
	uint64_t text_va, text_len, text_hash;
};

/*
 * Parses a file of len bytes into *f, which refers to none of them afterwards. Returns 0; -EINVAL
 * for an unknown format (the message has path, line or offset, and what was expected) and for the
 * placeholder that Debian installs as System.map; -EPERM for a kallsyms whose addresses are all
 * zero (kptr_restrict), with the sysctl that mends it; or another -errno. The caller frees *f with
 * symfile_deinit().
 */
int symfile_parse(struct symfile *f, const char *name, const uint8_t *data, size_t len,
		  struct err *e);
/* Frees the symbols. */
void symfile_deinit(struct symfile *f);

/*
 * Checks whether the file describes this kernel. ELF: compares build ids, or text bytes if one
 * side has none. Text for Linux: linux_banner must be at the named address in the image, _text,
 * _etext and _end must agree with it, and at least 95 % of a large sample of direct calls must
 * lead to symbols. Text for other kernels: see symfile.c. Returns 0, or -ESTALE with both
 * identities in *e.
 */
int symfile_verify(const struct symfile *f, const char *name, const struct kimage *k,
		   const char *kname, struct err *e);

#endif
