/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * target: the kernel of a run, with everything that is known about its code.
 *
 * Joins what a loader knows about its image with what the symbolizer finds there, and decides what
 * the unwinder may rely on. Not thread-safe: the main thread opens a target, then the consumer
 * thread uses it until that thread has ended.
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
	const char *name;   /* for messages; borrowed */
	bool is_linux;	    /* its stacks are 16 KiB unless its types say otherwise */
	bool is_elf32;	    /* the file is one; `elf` was widened from it */
	bool stays;	    /* `elf` exists as long as the program runs */
	const uint8_t *elf; /* the kernel as an ELF64; NULL: there is none, or no longer */
	size_t elf_len;
	uint8_t *unpacked;    /* owned; `elf` may point into it, or into `file` */
	struct file_map file; /* owned; empty if `stays` is set */
	struct kimage kernel;
	const char *symbol_source; /* source of the symbols, for the summary; NULL: none */
	struct symtab *symbols;	   /* owned; NULL if there are none */
	/* why there are no symbols although no file was given; code 0: no reason */
	struct err symbol_note;
	bool frame_pointers;
	bool frame_pointers32; /* in the code that runs in 32-bit mode */
	struct orc *orc;       /* owned; NULL: the kernel has none, or see orc_note */
	struct err orc_note;   /* why an existing table could not be used */
	/*
	 * Ring-3 text that is part of the image (a bare-metal kernel's own user part); 0,0: none.
	 */
	uint64_t user_start, user_end;
	char osrelease[65];	       /* as uname -r prints it in the guest; "": unknown */
	uint64_t init_start, init_end; /* [_sinittext, _einittext), or .init.text; 0,0: unknown */
	uint8_t *init_text;	       /* owned copy of it, after target_settle() */
	uint64_t irq_stack_ptr;	       /* as in struct capture_plan; 0: unknown */
	bool irq_stack_percpu;
	/* given by the user; kept while types may be read from it */
	struct file_map symbols_file;
	/* `kernel` is that file, not the image, which has no 64-bit addresses */
	bool adopted;
	/* symbols and tables are to be read from guest memory: --symbols live */
	bool live;
	bool explains; /* linux_target_explain() is called for each kernel that is read */
	struct target_linux linux_facts; /* has linked addresses until target_move() */
	/* set by target_bind(); text is read from the live guest */
	const struct gmem *mem;
	/*
	 * Distances from linked to run-time addresses, virtual and physical. symbols and orc have
	 * run-time addresses after target_move(); kernel keeps the linked ones.
	 */
	uint64_t slide, pa_slide;
};

/* The name to give instead of a symbol file to read symbols and tables from guest memory. */
#define TARGET_LIVE "live"

/*
 * A kernel's image in memory, and what its loader knows about it. Members are as in struct target.
 */
struct target_image {
	const char *name; /* borrowed */
	bool is_linux, is_elf32, stays;
	const uint8_t *elf;
	size_t elf_len;
	/* Owned by the target after target_open(), even if that fails. */
	uint8_t *unpacked;
	struct file_map file;
	/* content of symbols_path; empty: target_open() opens that file */
	struct file_map symbols_file;
	/*
	 * A System.map that came with the image, or NULL. It is used if no file with symbols is
	 * given and the kernel has no symbols of its own. Borrowed during target_open().
	 */
	const char *map_name;
	const uint8_t *map;
	size_t map_len;
};
/*
 * Finds the symbols in the image, or reads those in symbols_path (NULL: not given), which are
 * refused if they belong to another kernel. *t is initialized here. Returns 0 or -errno with the
 * reason in *e; nothing has to be closed on failure. Otherwise the caller frees its content with
 * target_close().
 */
int target_open(struct target *t, const struct target_image *image, const char *symbols_path,
		struct err *e);
/*
 * Initializes *t for a guest that runs already and of which there is no image. It is assumed to be
 * Linux until its memory shows otherwise. name is borrowed. It cannot fail.
 */
void target_open_running(struct target *t, const char *name);
/*
 * Also finds the facts that `why` and `dmesg` need, in the kernel that is known and in each that is read later.
 * To be called before target_move().
 */
void target_explain(struct target *t);
/* Frees what *t owns. */
void target_close(struct target *t);

/*
 * Releases the image after it was loaded into guest memory, except for what the guest may overwrite
 * (init text). Afterwards only target_read_text() may read the image's bytes. A target with user
 * text of its own keeps them, because the profile contains them.
 */
void target_settle(struct target *t);

/* Makes the target read text from this guest's memory, which must outlive the users of *t. */
void target_bind(struct target *t, const struct gmem *mem);

/*
 * Reads text at a run-time address as it is in the guest now, through the image's own va-to-pa
 * mapping; ctx is the target. Init text, which the kernel frees after boot, comes from the image.
 * Returns the number of bytes read, len or 0.
 */
size_t target_read_text(void *ctx, uint64_t va, void *dst, size_t len);

/*
 * Returns a pointer to the same bytes in this process, as far as they are contiguous from *va on
 * (*va and *len are set), for callers that read them often. Returns NULL if they are not in this
 * process or not known yet. To be called after target_move(); valid as long as the guest's memory.
 */
const uint8_t *target_text(const struct target *t, uint64_t *va, uint64_t *len);

/*
 * Moves the target: the kernel runs `slide` from its linked addresses and was loaded pa_slide from
 * the addresses in its headers. To be called at most once, before target_settle() and before
 * symbols are handed out. Returns 0 or -errno with the reason in *e.
 */
int target_move(struct target *t, uint64_t slide, uint64_t pa_slide, struct err *e);

/*
 * Frees symbols and tables, because they turned out to be another kernel's: at wrong addresses they
 * are worse than none.
 */
void target_drop_names(struct target *t);

struct livekernel;
/*
 * Takes symbols, tables and types that were read from guest memory, at run-time addresses, in place
 * of the image's. What *l owns is moved to *t; the caller still destroys l. Init text, which is
 * freed soon, is copied from m.
 */
void target_adopt_live(struct target *t, struct livekernel *l, const struct memory *m);

/*
 * Returns the size of a kernel stack in bytes, by the kernel's types, else 16 KiB. Kernels with
 * KASAN have 32 KiB.
 */
uint32_t target_stack_size(const struct target *t);
/*
 * Returns how the capture path finds the running task, and what it copies of it. Requires
 * facts->have_current.
 */
struct capture_task_plan target_task_plan(const struct target_linux *facts);

/*
 * Returns the layout of this kernel's stacks for the capture path, with at most stack_max bytes of
 * one stack.
 */
struct capture_plan target_capture_plan(const struct target *t, uint32_t stack_max);

/* Returns what the unwinder may use; valid as long as *t. */
struct unwinder target_unwinder(const struct target *t);

#endif
