/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kimage: reads the facts that an ELF64 kernel image contains about itself: build id, Linux
 * banner, addresses of sections and segments, text bytes by virtual address, and whether its code
 * keeps frame pointers.
 *
 * A struct kimage borrows the bytes of the file, owns nothing and is constant after
 * kimage_parse(). Functions do no I/O and may be called by any thread.
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
	const uint8_t *elf; /* the file, borrowed */
	size_t elf_len;
	struct kimage_segment seg[KIMAGE_MAX_SEGMENTS];
	unsigned int nseg;
	/*
	 * Derived from segments and sections, only from those in the kernel's half of the address
	 * space if there are any. text: start of the first executable segment (Linux: _text).
	 * etext: end of executable bytes, including init code (so it is after Linux's _etext).
	 * end: end of memory, rounded up to a page (Linux: _end).
	 */
	uint64_t text, etext, end;
	uint8_t build_id[KIMAGE_BUILD_ID_MAX];
	unsigned int build_id_len; /* bytes; 0: it has none */
	char banner[256];	   /* "Linux version ..." up to the newline, or "" */
	bool has_orc;		   /* it has a section .orc_unwind */
	bool has_symtab;	   /* it has a non-empty .symtab */
	/* Called before kimage_read() reads; NULL: all bytes are there. */
	void (*need)(void *ctx, uint64_t va, size_t len);
	void *need_ctx;
};

/*
 * Parses a file of len bytes into *k. name is for messages. Returns 0, or -EINVAL with *e set if
 * it is not a valid ELF64 x86-64 executable.
 */
int kimage_parse(struct kimage *k, const char *name, const uint8_t *elf, size_t len, struct err *e);

/*
 * Copies len bytes of the image at virtual address va. Returns 0, or -EFAULT outside file-backed
 * segments.
 */
int kimage_read(const struct kimage *k, uint64_t va, void *dst, size_t len);
/*
 * Returns a pointer to the file bytes at va, and in *avail how many follow in that segment, or
 * NULL.
 */
const uint8_t *kimage_ptr(const struct kimage *k, uint64_t va, size_t *avail);

/* Stores address and length of the section of this name. Returns false if there is none. */
bool kimage_section(const struct kimage *k, const char *name, uint64_t *va, uint64_t *len);

/*
 * Reads the symbols of .symtab into a new, frozen table. Returns 0; -ENOENT if there is none,
 * -EINVAL if it is damaged, or another -errno, with *e set. The caller frees *out with
 * symtab_destroy().
 */
int kimage_symbols(const struct kimage *k, struct symtab **out, struct err *e);

/*
 * Returns whether this code keeps frame pointers. False if it has an ORC section. Otherwise a
 * sample of functions is examined: at least 90 % of those that call something must execute push
 * %rbp and mov %rsp,%rbp before their first call (the compiler may put other instructions before
 * and between). False if none calls. t may be NULL: then call targets found in the text serve as
 * function starts.
 */
bool kimage_keeps_frame_pointers(const struct kimage *k, const struct symtab *t);
/*
 * Does the same for 32-bit code: at least three quarters of the functions that are long enough
 * begin with push %ebp; mov %esp,%ebp. False without symbols.
 */
bool kimage_keeps_frame_pointers32(const struct kimage *k, const struct symtab *t);

/*
 * Returns the runtime address of link address va: addresses in [text, end] move by slide. Per-CPU
 * symbols of kernels before 6.15 are offsets near 0, which do not move; later ones are linked
 * among the kernel's addresses and move with them, as does the code that uses them.
 */
static inline uint64_t kimage_run_address(uint64_t text, uint64_t end, uint64_t slide, uint64_t va)
{
	return va >= text && va <= end ? va + slide : va;
}

#endif
