/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kslide: determines by how much KASLR has moved a running x86-64 Linux kernel.
 *
 * slide = runtime address - link address, the same for everything between the kernel's _text and
 * _end; 0 is a normal result. A wrong slide would give wrong names to everything, so it is accepted
 * only if two independent kinds of evidence agree and none disagrees:
 *
 *	LSTAR		the MSR against the symbol of the system call entry
 *	IDT		handlers of exceptions against their symbols, as one piece
 *	TEXT		samples of the image's code against memory, at every place where
 *			the kernel could be; bytes that a kernel patches are allowed for
 *	BUILD_ID	the note in memory against the image's, at every such place
 *
 * A register that has not been set up yet (before the kernel runs, early in its boot) or points
 * elsewhere (the entry trampolines of 4.15 to 4.19) is no evidence. TEXT and BUILD_ID also have a
 * veto: the bytes at the place that the others name must not differ. So function-granular KASLR,
 * whose entry code stays in order while functions are shuffled, is rejected.
 *
 * kslide_prepare() copies everything that it needs from image and symbols, which may be freed
 * afterwards. kslide_solve() is a pure function of that, memory and registers; it allocates nothing
 * and may run on any thread that may use the memory. While the kernel is not mapped yet, it costs
 * about two reads of memory for each of 512 places.
 *
 * Sources: arch/x86/kernel/idt.c, head_64.S, boot/compressed/kaslr.c
 * (find_random_virt_addr), Documentation/arch/x86/x86_64/mm.rst; gates: SDM vol. 3, 6.14.1.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_KSLIDE_H
#define KVMPROF_SYMBOLIZER_KERNEL_KSLIDE_H

#include "symbolizer/core/kimage.h"
#include "symbolizer/core/memory.h"
#include "symbolizer/core/symtab.h"

#include <stdbool.h>
#include <stdint.h>

/* Slides are multiples of this, the least CONFIG_PHYSICAL_ALIGN. */
#define KSLIDE_ALIGN (UINT64_C(2) << 20)
/* Range that contains kernel text (__START_KERNEL_map, KERNEL_IMAGE_SIZE with KASLR). */
#define KSLIDE_MAP UINT64_C(0xffffffff80000000)
#define KSLIDE_MAP_END UINT64_C(0xffffffffc0000000)

#define KSLIDE_MAX_WINDOWS 64u
#define KSLIDE_WINDOW 64u /* bytes of a window */
#define KSLIDE_VECTORS 32u
#define KSLIDE_MAX_HANDLERS 5u /* addresses to which one gate may lead */
#define KSLIDE_NOTE_MAX (16u + KIMAGE_BUILD_ID_MAX)

enum kslide_kind { KSLIDE_LSTAR, KSLIDE_IDT, KSLIDE_TEXT, KSLIDE_BUILD_ID, KSLIDE_KINDS };

enum kslide_status {
	KSLIDE_NOT_YET, /* too little evidence so far: try again later */
	KSLIDE_SOLVED,
	/* The evidence is contradictory: with no slide is this image the running kernel. */
	KSLIDE_CONFLICT,
};

/* Facts of an image that a running kernel is compared with. All addresses are as linked. */
struct kslide_ref {
	uint64_t text, end; /* as in struct kimage */
	/* Address of entry_SYSCALL_64; 0: unknown. */
	uint64_t syscall;
	uint64_t handler[KSLIDE_VECTORS][KSLIDE_MAX_HANDLERS]; /* 0: none */
	uint64_t note_va;				       /* address of the build id's note */
	uint8_t note[KSLIDE_NOTE_MAX];			       /* header, name, id */
	unsigned int note_len;				       /* bytes; 0: the image has none */
	unsigned int nwindows;
	uint64_t window_va[KSLIDE_MAX_WINDOWS];
	uint8_t window[KSLIDE_MAX_WINDOWS][KSLIDE_WINDOW];
};

/* Registers of one vCPU. */
struct kslide_cpu {
	uint64_t lstar; /* MSR 0xc0000082; 0: unknown or not set */
	uint64_t idt_base;
};

struct kslide_evidence {
	bool found;	      /* it names a slide */
	bool against;	      /* it denies the slide that others named, or contradicts itself */
	uint64_t slide;	      /* valid if found */
	unsigned int yes, of; /* gates or windows that agree, and their total number */
};

struct kslide {
	enum kslide_status status;
	uint64_t slide; /* valid if SOLVED */
	struct kslide_evidence by[KSLIDE_KINDS];
	char reason[200]; /* one line: the evidence, or what is missing */
};

/*
 * Fills *r from an image and its frozen symbols with link addresses; t is NULL if there are none.
 * Nothing in *r refers to k or t afterwards. Any thread.
 */
void kslide_prepare(struct kslide_ref *r, const struct kimage *k, const struct symtab *t);

/*
 * Determines the slide from guest memory and registers, and writes the whole of *out. Cannot fail:
 * out->status has the result.
 */
void kslide_solve(struct kslide *out, const struct kslide_ref *r, const struct memory *m,
		  const struct kslide_cpu *cpu);

/* Returns the name of a kind of evidence for messages; static text. */
const char *kslide_kind_name(enum kslide_kind kind);

#endif
