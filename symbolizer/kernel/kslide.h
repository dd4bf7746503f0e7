/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kslide: by how much KASLR has moved a running Linux kernel, for x86-64.
 *
 * slide = run-time address - linked address, the same for everything between the
 * kernel's _text and _end; 0 is an ordinary answer. A wrong slide would give
 * wrong names to everything, so it is believed only when two independent pieces
 * of evidence say the same and none says otherwise:
 *
 *	LSTAR		the MSR against the symbol of the system call entry
 *	IDT		handlers of exceptions against their symbols, as one piece
 *	TEXT		samples of the image's code against memory, at every place where
 *			the kernel could be; bytes that a kernel patches are allowed for
 *	BUILD_ID	the note in memory against the image's, at every such place
 *
 * What has not been set up yet (before the kernel runs, early in its boot) or
 * leads elsewhere (the entry trampolines of 4.15 to 4.19) is no evidence. TEXT and
 * BUILD_ID also have a veto: where the others say the kernel is, its bytes must not
 * be different. That is how function-granular KASLR, whose entry code stays in
 * order while functions are shuffled, is refused.
 *
 * kslide_prepare() copies all that it needs of image and symbols; the two can go
 * afterwards. kslide_solve() is a pure function of that, memory and registers; it
 * neither allocates nor keeps anything and may run on any thread. While the kernel
 * isn't mapped yet it costs about two reads of memory for each of 512 places.
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

/* CONFIG_PHYSICAL_ALIGN is this or a multiple; slides are multiples of it. */
#define KSLIDE_ALIGN (UINT64_C(2) << 20)
/* Kernel text is mapped in this GiB (__START_KERNEL_map, KERNEL_IMAGE_SIZE with KASLR). */
#define KSLIDE_MAP UINT64_C(0xffffffff80000000)
#define KSLIDE_MAP_END UINT64_C(0xffffffffc0000000)

#define KSLIDE_MAX_WINDOWS 64u
#define KSLIDE_WINDOW 64u /* bytes */
#define KSLIDE_VECTORS 32u
#define KSLIDE_MAX_HANDLERS 5u /* addresses that one gate may lead to */
#define KSLIDE_NOTE_MAX (16u + KIMAGE_BUILD_ID_MAX)

enum kslide_kind { KSLIDE_LSTAR, KSLIDE_IDT, KSLIDE_TEXT, KSLIDE_BUILD_ID, KSLIDE_KINDS };

enum kslide_status {
	KSLIDE_NOT_YET, /* too little evidence so far: ask again later */
	KSLIDE_SOLVED,
	KSLIDE_CONFLICT, /* pieces contradict each other: no slide makes this image what runs */
};

/* What an image says about a running kernel; all addresses as linked. */
struct kslide_ref {
	uint64_t text, end;				       /* as in struct kimage */
	uint64_t syscall;				       /* entry_SYSCALL_64; 0 unknown */
	uint64_t handler[KSLIDE_VECTORS][KSLIDE_MAX_HANDLERS]; /* 0: none */
	uint64_t note_va;				       /* of the build id's note */
	uint8_t note[KSLIDE_NOTE_MAX];			       /* header, name, id */
	unsigned int note_len;				       /* 0: the image has none */
	unsigned int nwindows;
	uint64_t window_va[KSLIDE_MAX_WINDOWS];
	uint8_t window[KSLIDE_MAX_WINDOWS][KSLIDE_WINDOW];
};

/* Of one vCPU. */
struct kslide_cpu {
	uint64_t lstar; /* MSR 0xc0000082; 0: not known or not set */
	uint64_t idt_base;
};

struct kslide_evidence {
	bool found;	      /* it says something */
	bool against;	      /* it says no to the slide that others named, or contradicts itself */
	uint64_t slide;	      /* when found */
	unsigned int yes, of; /* gates or windows that agree, and those looked at */
};

struct kslide {
	enum kslide_status status;
	uint64_t slide; /* when SOLVED */
	struct kslide_evidence by[KSLIDE_KINDS];
	char reason[200]; /* one line: who said what, or what is missing */
};

/* t: symbols with linked addresses, frozen; NULL when there are none. */
void kslide_prepare(struct kslide_ref *r, const struct kimage *k, const struct symtab *t);

void kslide_solve(struct kslide *out, const struct kslide_ref *r, const struct memory *m,
		  const struct kslide_cpu *cpu);

const char *kslide_kind_name(enum kslide_kind kind);

#endif
