/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * target: the kernel that shall run, with everything we know about its code.
 *
 * Joins what a loader says of its image with what the symbolizer finds there, and
 * decides what the unwinder may rely on.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_TARGET_H
#define KVMPROF_PROFILE_RECORD_GUEST_TARGET_H

#include "base/capture_plan.h"
#include "base/file.h"
#include "base/gmem.h"
#include "symbolizer/linux/facts.h"
#include "symbolizer/core/kimage.h"
#include "symbolizer/kernel/symfile.h"
#include "symbolizer/unwind/unwind.h"

struct target {
	const char *name;   /* for messages */
	bool is_linux;	    /* its stacks are 16 KiB, unless its types say otherwise */
	bool is_elf32;	    /* the file is one; `elf` was widened from it */
	bool stays;	    /* `elf` is there for as long as the program runs */
	const uint8_t *elf; /* the kernel as an ELF64; NULL: there is none, or not any more */
	size_t elf_len;
	uint8_t *unpacked;    /* owned; `elf` may lie in it, or in ... */
	struct file_map file; /* ... this one; empty if `stays` */
	struct kimage kernel;
	const char *symbol_source; /* where names come from, for the summary; NULL: nowhere */
	struct symtab *symbols;	   /* owned, NULL when there are none */
	struct err symbol_note; /* why there are none although none were given; code 0: no such */
	bool frame_pointers;
	bool frame_pointers32; /* in the code that runs in 32-bit mode */
	struct orc *orc;       /* owned; NULL: the kernel has none, or see orc_note */
	struct err orc_note;   /* why a table that is there could not be used */
	/* Ring-3 text that is part of the image (a bare-metal kernel's own user part); 0,0 none. */
	uint64_t user_start, user_end;
	char osrelease[65];	       /* as uname -r says in the guest; "" unknown */
	uint64_t init_start, init_end; /* [_sinittext, _einittext), or .init.text; 0,0 unknown */
	uint8_t *init_text;	       /* owned copy of it, after target_settle() */
	uint64_t irq_stack_ptr;	       /* as in struct capture_plan; 0 unknown */
	bool irq_stack_percpu;
	struct file_map symbols_file; /* given by the user; kept while it may tell types */
	bool adopted; /* `kernel` is that file, not the image, which has no 64-bit addresses */
	bool live;    /* names and tables are to come out of guest memory: --symbols live */
	struct target_linux linux_facts; /* with linked addresses until target_move() */
	const struct gmem *mem;		 /* set by target_bind; text is read from the live guest */
	/*
	 * From linked to run-time addresses, virtual and physical. symbols and orc have
	 * run-time ones after target_move(), kernel keeps the linked ones.
	 */
	uint64_t slide, pa_slide;
};

/* In place of a file with symbols: names and tables are read out of the guest's memory. */
#define TARGET_LIVE "live"

/* A kernel's image in memory, and what its loader knows of it. Members as in struct target. */
struct target_image {
	const char *name; /* borrowed */
	bool is_linux, is_elf32, stays;
	const uint8_t *elf;
	size_t elf_len;
	/* Owned by the target after target_open(), also when that fails. */
	uint8_t *unpacked;
	struct file_map file;
	struct file_map symbols_file; /* of symbols_path; empty: it is opened */
	/*
	 * A System.map that came with it, or NULL; it serves when neither a file with symbols is
	 * given nor the kernel has names of its own.
	 */
	const char *map_name;
	const uint8_t *map;
	size_t map_len;
};
/*
 * Finds the names in the image, or takes those in symbols_path (NULL: not given), which are
 * refused when they belong to another kernel.
 */
int target_open(struct target *t, const struct target_image *image, const char *symbols_path,
		struct err *e);
/*
 * A guest that runs already, of which there is no image: it is taken for a Linux until
 * its memory has told otherwise. name is borrowed.
 */
void target_open_running(struct target *t, const char *name);
void target_close(struct target *t);

/*
 * The image is in guest memory now and its facts are known: keep only what the
 * guest may overwrite (init text) and give the rest of the file back. Nothing
 * but target_read_text() may look at the image's bytes afterwards. A target
 * with user text of its own keeps them, as the profile carries them.
 */
void target_settle(struct target *t);

/* From now on text is read from this guest's memory; mem must outlive t's users. */
void target_bind(struct target *t, const struct gmem *mem);

/*
 * Text at a run-time address as it is in the guest now, through the image's own
 * va-to-pa mapping; ctx is the target. Init text, which the kernel gives back after boot,
 * comes from the image.
 */
size_t target_read_text(void *ctx, uint64_t va, void *dst, size_t len);

/*
 * The same bytes where they are in this process, as far as they follow each other from *va on;
 * NULL: they are not, or cannot be told yet. For who reads them often; after target_move().
 */
const uint8_t *target_text(const struct target *t, uint64_t *va, uint64_t *len);

/*
 * The kernel runs `slide` from where it was linked and was loaded pa_slide from where
 * its headers say. Once, before target_settle() and before names are given out.
 */
int target_move(struct target *t, uint64_t slide, uint64_t pa_slide, struct err *e);

/* They turned out to be another kernel's: names and tables at wrong addresses are worse than none. */
void target_drop_names(struct target *t);

/*
 * Take names, tables and types from what was read out of memory, at run-time
 * addresses, in place of the image's. What l owns is taken over; l can go. Init text,
 * which is given back soon, is copied from m.
 */
struct livekernel;
void target_take_live(struct target *t, struct livekernel *l, const struct memory *m);

/*
 * Of a kernel stack, where it is Linux: bytes, by the kernel's types, else 16 KiB. Kernels
 * with KASAN have 32 KiB.
 */
uint32_t target_stack_size(const struct target *t);
/* Where capture finds the running task, and what it can copy of it. l->have_current. */
struct capture_task_plan target_task_plan(const struct target_linux *facts);

/* How stacks look in this kernel, for the capture path; stack_max bytes of one stack at most. */
struct capture_plan target_capture_plan(const struct target *t, uint32_t stack_max);

/* What the unwinder may use; valid as long as t. */
struct unwinder target_unwinder(const struct target *t);

#endif
