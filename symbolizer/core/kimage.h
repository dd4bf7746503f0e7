/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kimage: what an ELF64 kernel image says about itself.
 *
 * Build id, Linux banner, section and segment addresses, text bytes by virtual
 * address, whether its code keeps frame pointers. Borrowed bytes, no I/O.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_KIMAGE_H
#define KVMPROF_SYMBOLIZER_CORE_KIMAGE_H

#include "base/err.h"
#include "symbolizer/core/symtab.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KIMAGE_MAX_SEGMENTS 32
#define KIMAGE_MAX_SECTIONS 65535
#define KIMAGE_BUILD_ID_MAX 20

struct kimage_segment {
	uint64_t va, pa;
	uint64_t file_off, file_len, mem_len;
	uint32_t flags; /* PF_R | PF_W | PF_X */
};

struct kimage {
	const uint8_t *elf; /* borrowed */
	size_t elf_len;
	struct kimage_segment seg[KIMAGE_MAX_SEGMENTS];
	unsigned int nseg;
	/*
	 * From segments and sections, those of the kernel's half of the address
	 * space alone when there are any: where the first executable segment
	 * starts (Linux: _text); the end of executable bytes, init code included
	 * (so it lies beyond Linux's _etext); the end of memory, rounded up to a
	 * page (Linux: _end).
	 */
	uint64_t text, etext, end;
	uint8_t build_id[KIMAGE_BUILD_ID_MAX];
	unsigned int build_id_len; /* 0 when there is none */
	char banner[256];	   /* "Linux version ..." up to the newline, or "" */
	bool has_orc;		   /* an .orc_unwind section exists */
	bool has_symtab;	   /* a non-empty .symtab exists */
};

/* name is for messages. Returns -EINVAL for anything that is not a sane ELF64 x86-64 executable. */
int kimage_parse(struct kimage *k, const char *name, const uint8_t *elf, size_t len, struct err *e);

/* Copy len bytes of the image at virtual address va; -EFAULT outside file-backed segments. */
int kimage_read(const struct kimage *k, uint64_t va, void *dst, size_t len);
/* Pointer to the file bytes at va and how many follow in that segment, or NULL. */
const uint8_t *kimage_ptr(const struct kimage *k, uint64_t va, size_t *avail);

/* Addresses of the section of this name; false when there is none. */
bool kimage_section(const struct kimage *k, const char *name, uint64_t *va, uint64_t *len);

/* Symbols of .symtab; -ENOENT when there is none. *out is frozen; caller destroys. */
int kimage_symbols(const struct kimage *k, struct symtab **out, struct err *e);

/*
 * Does this code keep frame pointers? No when an ORC section is there; else a
 * spread of functions is looked at: at least 90 % of those that call something
 * must have done push %rbp and mov %rsp,%rbp before their first call (the
 * compiler may put other instructions before and between). No when none calls.
 * t may be NULL: then call targets found in the text serve as function starts.
 */
bool kimage_keeps_frame_pointers(const struct kimage *k, const struct symtab *t);
/*
 * The same for 32-bit code: at least three quarters of the functions that are long
 * enough for it begin with push %ebp; mov %esp,%ebp. No without symbols.
 */
bool kimage_keeps_frame_pointers32(const struct kimage *k, const struct symtab *t);

/*
 * Run-time address of a linked one: what lies in [text, end] moves. Per-CPU symbols
 * of kernels before 6.15 are offsets near 0, which stay; later ones are linked among
 * the kernel's own addresses and move with them, as does the code that uses them.
 */
static inline uint64_t kimage_run_address(uint64_t text, uint64_t end, uint64_t slide, uint64_t va)
{
	return va >= text && va <= end ? va + slide : va;
}

#endif
