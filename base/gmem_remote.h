/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gmem_remote: guest RAM that is mapped in another process, read from outside.
 *
 * Small reads, as page-table walks make them, come out of a few whole pages that are
 * kept for one sample: gmem_remote_forget() drops them, or what was read would be older
 * than what is looked at. Nothing is ever written. One thread for each of these.
 *
 * A system call costs more than a page that it copies. What a sample needs is mostly what
 * the one before it needed: gmem_remote_expect() reads all of that with one call. It is a
 * guess at which pages, never at what is in them: pages that were guessed wrong are not
 * looked at, others are read when they are asked for.
 *
 * Source: process_vm_readv(2).
 */
#ifndef KVMPROF_BASE_GMEM_REMOTE_H
#define KVMPROF_BASE_GMEM_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GMEM_REMOTE_PAGE 4096u
#define GMEM_REMOTE_PAGES 64u  /* power of two */
#define GMEM_REMOTE_SMALL 256u /* bytes; longer reads are kept only where they are expected */

/* At most so many pages at once, and for how many samples a page is expected after its last use. */
#define GMEM_REMOTE_EXPECT 32u
#define GMEM_REMOTE_AGE 2u

/* What samples of one vCPU read; zero in the beginning. */
struct gmem_remote_expected {
	unsigned int n;
	uint64_t at[GMEM_REMOTE_EXPECT]; /* host addresses of pages */
	uint8_t age[GMEM_REMOTE_EXPECT]; /* samples since its last use */
};

struct gmem_remote {
	/* 0 or -errno; what is read may be older than the call by no more than a sample. */
	int (*fetch)(struct gmem_remote *r, uint64_t host, void *dst, size_t len);
	void *ctx; /* the caller's, for fetch */
	pid_t pid; /* the process whose memory is read */
	/* Returns how many of these bytes can be read without waiting for a page; NULL: all of them. */
	size_t (*present)(void *ctx, uint64_t host, size_t len);
	uint64_t absent;     /* reads that ended at a page that is not in memory */
	bool as_is;	     /* each read is one fetch, nothing is kept */
	bool lacking;	     /* fetch had to say that it does not have something */
	uint64_t calls;	     /* system calls made */
	uint64_t generation; /* of what is kept */
	struct gmem_remote_expected *expected; /* where use is noted; NULL: nowhere */
	uint64_t at[GMEM_REMOTE_PAGES];	       /* host address of the page kept there */
	uint64_t valid[GMEM_REMOTE_PAGES];     /* the generation that it is of */
	uint8_t page[GMEM_REMOTE_PAGES][GMEM_REMOTE_PAGE];
};

void gmem_remote_init(struct gmem_remote *r, pid_t pid);
/* The same with a way of the caller's own to read. */
void gmem_remote_init_by(struct gmem_remote *r,
			 int (*fetch)(struct gmem_remote *r, uint64_t host, void *dst, size_t len),
			 void *ctx);
void gmem_remote_forget(struct gmem_remote *r);
/*
 * Forget, read what is expected, and note what is used from now on in *x until the next of these
 * calls or gmem_remote_forget(). Borrowed until then. Only of a process; else it just forgets.
 */
void gmem_remote_expect(struct gmem_remote *r, struct gmem_remote_expected *x);

/* What is kept of this one page, or a part of it, without reading; false: nothing. */
bool gmem_remote_kept(const struct gmem_remote *r, uint64_t host, void *dst, size_t len);

/* From now on, of a process: reads only what present(ctx, ...) says is in memory. */
void gmem_remote_only_present(struct gmem_remote *r,
			      size_t (*present)(void *ctx, uint64_t host, size_t len), void *ctx);

/* All of it or nothing: 0, -EFAULT (not mapped there), -ENODATA (not in memory), -ESRCH (gone), -EPERM. */
int gmem_remote_read(struct gmem_remote *r, uint64_t host, void *dst, size_t len);

#endif
