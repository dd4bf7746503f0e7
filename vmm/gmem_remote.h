/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gmem_remote: guest RAM that is mapped in another process, read from outside.
 *
 * Small reads, as page-table walks make them, come out of a few whole pages that are
 * kept for one sample: gmem_remote_forget() drops them, or what was read would be older
 * than what is looked at. Nothing is ever written. One thread for each of these.
 *
 * Source: process_vm_readv(2).
 */
#ifndef KVMPROF_VMM_GMEM_REMOTE_H
#define KVMPROF_VMM_GMEM_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GMEM_REMOTE_PAGE 4096u
#define GMEM_REMOTE_PAGES 64u  /* power of two */
#define GMEM_REMOTE_SMALL 256u /* bytes; longer reads are not kept */

struct gmem_remote {
	/* 0 or -errno; what is read may be older than the call by no more than a sample. */
	int (*fetch)(struct gmem_remote *r, uint64_t host, void *dst, size_t len);
	void *ctx;			   /* the caller's, for fetch */
	pid_t pid;			   /* of a process */
	uint64_t calls;			   /* system calls made */
	uint64_t generation;		   /* of what is kept */
	uint64_t at[GMEM_REMOTE_PAGES];	   /* host address of the page kept there */
	uint64_t valid[GMEM_REMOTE_PAGES]; /* the generation that it is of */
	uint8_t page[GMEM_REMOTE_PAGES][GMEM_REMOTE_PAGE];
};

void gmem_remote_init(struct gmem_remote *r, pid_t pid);
/* The same with a way of the caller's own to read. */
void gmem_remote_init_by(struct gmem_remote *r,
			 int (*fetch)(struct gmem_remote *r, uint64_t host, void *dst, size_t len),
			 void *ctx);
void gmem_remote_forget(struct gmem_remote *r);

/* What is kept of this one page, or a part of it, without reading; false: nothing. */
bool gmem_remote_kept(const struct gmem_remote *r, uint64_t host, void *dst, size_t len);

/* All of it or nothing: 0, -EFAULT (not mapped there), -ESRCH (gone), -EPERM. */
int gmem_remote_read(struct gmem_remote *r, uint64_t host, void *dst, size_t len);

#endif
