/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * live_copy: a copy of the memory that a running kernel's image occupies, of which only the pages that are needed are read.
 *
 * A read may bring a page into memory that the guest itself does not use, as of a guest that was restored from a snapshot. The kernel's tables
 * are a part of its image, and few pages show where they lie (live_find.h).
 *
 * A copy can be stored as bytes, and used for another guest that runs the same kernel, at another address or not. All functions are called by
 * the thread that may use the guest's memory.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_LIVE_COPY_H
#define KVMPROF_SYMBOLIZER_KERNEL_LIVE_COPY_H

#include "base/err.h"
#include "symbolizer/core/memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIVE_PAGE UINT64_C(4096)

/* The rights of a page, and where the large page that it is in ends. */
struct live_page {
	uint64_t end;
	bool write, exec;
};

/* The running guest. */
struct live_guest {
	struct memory memory;
	/* Returns whether va is mapped in the kernel's address space, and stores how. NULL: a byte is read of each page. */
	bool (*page)(void *ctx, uint64_t va, struct live_page *out);
	/* Says whether further reads are of the kernel's tables, which are needed whatever they cost. NULL: nothing is to be done. */
	void (*reads_tables)(void *ctx, bool tables);
	/*
	 * Stored copies of kernels whose mark fits `inside`: load() returns the one of number n, from 0 on, or NULL; the caller frees it with
	 * free(). store() keeps the copy of a kernel that was read. NULL: there is no store, or `inside` is not the same place in each kernel.
	 */
	uint8_t *(*load)(void *ctx, uint64_t inside, unsigned int n, size_t *len);
	void (*store)(void *ctx, const uint8_t *build_id, size_t id_len, const uint8_t *bytes,
		      size_t len);
	void *ctx; /* passed to the functions above */
};

struct live_copy {
	const struct live_guest *guest; /* NULL: nothing more is read */
	uint64_t va;
	uint8_t *bytes; /* owned; zeros where nothing was read */
	uint8_t *state; /* owned, of each page: LIVE_* */
	size_t len;	/* whole pages */
};

#define LIVE_MAPPED 1u
#define LIVE_CONST 2u	/* neither writable nor executable */
#define LIVE_DATA 4u	/* not executable */
#define LIVE_TRIED 8u	/* it was read, or could not be */
#define LIVE_READ 16u	/* it was read */
#define LIVE_PROBED 32u /* live_find() has looked at it */
#define LIVE_SHOWS 64u	/* code that shows which kernel this is */

/* Finds the mapped memory around `inside`. Returns 0 or -errno as livekernel_read(). The caller frees *c with live_copy_close(). */
int live_copy_open(struct live_copy *c, const struct live_guest *g, uint64_t inside, struct err *e);
void live_copy_close(struct live_copy *c);

/* Reads the pages of [va, va + len) that are mapped and that were not read yet. */
void live_copy_need(struct live_copy *c, uint64_t va, uint64_t len, bool tables);
/* Reads the page of code at va, which then identifies the kernel where its notes are absent. */
void live_copy_show(struct live_copy *c, uint64_t va);
/* Reads whole pages only until `budget` bytes were read by this call. */
void live_copy_want(struct live_copy *c, uint64_t va, uint64_t len, uint64_t budget);

/*
 * What identifies a kernel in another guest: the low bits of `inside`, which KASLR does not change, and the bytes of its notes, which have
 * its build id. A guest whose memory comes by a page server does not have its notes in memory, but has the code that it runs: then
 * at least LIVE_COPY_CODE pages of the code that live_copy_show() was called for must be there, and each that is there must be the same. A
 * kernel in which a function has another length has its calls elsewhere, so that such a page differs.
 */
#define LIVE_COPY_CODE 6u
struct live_copy_mark {
	uint64_t inside, notes, notes_len;
};
#define LIVE_COPY_SLIDE \
	(UINT64_C(2) << 20) /* KASLR moves a kernel by multiples of it (CONFIG_PHYSICAL_ALIGN) */
/* Bytes of a stored copy that hold its mark. */
#define LIVE_COPY_HEAD 64u

/* Returns the bytes of a copy for live_copy_load(), or NULL. The caller frees them with free(). */
uint8_t *live_copy_store(const struct live_copy *c, const struct live_copy_mark *mark, size_t *len);
/* Reads the mark in the first LIVE_COPY_HEAD bytes of a stored copy. Returns false if they are not one's. */
bool live_copy_mark(const uint8_t *bytes, size_t len, struct live_copy_mark *out);
/*
 * Takes a stored copy if the guest runs the kernel that it is of. Returns false if it does not, or if that is not seen. *slide is
 * the distance of the guest's kernel from the addresses in the copy.
 */
bool live_copy_load(struct live_copy *c, const struct live_guest *g, uint64_t inside,
		    const uint8_t *bytes, size_t len, uint64_t *slide);

#endif
