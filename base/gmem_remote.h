/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gmem_remote: reads guest RAM that is mapped in another process. It never writes.
 *
 * Small reads, as page-table walks make them, are served from a cache of a few whole pages that is
 * valid for one sample: gmem_remote_invalidate() empties it, because otherwise the bytes would be
 * older than the sample. Not thread-safe: each struct gmem_remote is used by one thread.
 *
 * A system call costs more than copying a page, and a sample mostly needs the pages that the sample
 * before it needed. gmem_remote_prefetch() reads all of these with one call. Only the choice of
 * pages is a prediction, never their contents: pages that were predicted wrongly are not used, and
 * others are read when needed.
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
#define GMEM_REMOTE_PAGES 64u /* power of two */
/* bytes; longer reads use the cache only after gmem_remote_prefetch() */
#define GMEM_REMOTE_SMALL 256u

/*
 * The maximum number of pages read ahead, and the number of samples for which an unused page stays
 * predicted.
 */
#define GMEM_REMOTE_EXPECT 32u
#define GMEM_REMOTE_AGE 2u

/* The pages that the samples of one vCPU use; all zero at first. */
struct gmem_remote_expected {
	unsigned int n;
	uint64_t at[GMEM_REMOTE_EXPECT]; /* host addresses of pages */
	uint8_t age[GMEM_REMOTE_EXPECT]; /* number of samples since its last use */
};

struct gmem_remote {
	/*
	 * Copies len bytes. Returns 0 or -errno. The bytes may be at most one sample older than the
	 * call.
	 */
	int (*fetch)(struct gmem_remote *r, uint64_t host, void *dst, size_t len);
	void *ctx; /* for fetch() or present(); borrowed */
	pid_t pid; /* process whose memory is read; 0: only fetch() can read */
	/*
	 * Returns how many of these bytes can be read without waiting for a page to be loaded;
	 * NULL: all of them.
	 */
	size_t (*present)(void *ctx, uint64_t host, size_t len);
	uint64_t absent; /* number of reads refused because a page is not in memory */
	bool tables; /* fetch() reads the kernel's own tables, which are needed whatever they cost */
	bool as_is;  /* each read is one fetch() and nothing is cached */
	bool lacking;	     /* set by fetch() when it cannot provide something */
	uint64_t calls;	     /* number of system calls made */
	uint64_t generation; /* generation of the valid cache entries */
	/* Where the use of pages is noted; borrowed; NULL: nowhere. */
	struct gmem_remote_expected *expected;
	uint64_t at[GMEM_REMOTE_PAGES];	   /* host address of the cached page */
	uint64_t valid[GMEM_REMOTE_PAGES]; /* generation of the cached page */
	uint8_t page[GMEM_REMOTE_PAGES][GMEM_REMOTE_PAGE];
};

/* Initialises *r to read the process pid with process_vm_readv(2). Nothing needs to be released. */
void gmem_remote_init(struct gmem_remote *r, pid_t pid);
/* Initialises *r to read with fetch(), which gets r and may use r->ctx. */
void gmem_remote_init_by(struct gmem_remote *r,
			 int (*fetch)(struct gmem_remote *r, uint64_t host, void *dst, size_t len),
			 void *ctx);
/* Invalidates the cache and stops noting which pages are used. */
void gmem_remote_invalidate(struct gmem_remote *r);
/*
 * Invalidates the cache, reads the pages predicted by *x into it, and notes in *x which pages are
 * used from now on. *x is borrowed until the next call of this function or of
 * gmem_remote_invalidate(). Without a process (gmem_remote_init_by()) it only invalidates.
 */
void gmem_remote_prefetch(struct gmem_remote *r, struct gmem_remote_expected *x);

/*
 * Copies bytes of one page from the cache. Returns false if they are not cached; never reads the
 * process.
 */
bool gmem_remote_cached(const struct gmem_remote *r, uint64_t host, void *dst, size_t len);

/* Restricts reads of a process to memory that present(ctx, ...) reports as loaded. */
void gmem_remote_only_present(struct gmem_remote *r,
			      size_t (*present)(void *ctx, uint64_t host, size_t len), void *ctx);

/*
 * Copies len bytes from the address `host` of the process. Returns 0, -EFAULT (not mapped there),
 * -ENODATA (not in memory), -ESRCH (the process is gone), -EPERM, or an error of fetch(). After an
 * error the contents of dst are undefined.
 */
int gmem_remote_read(struct gmem_remote *r, uint64_t host, void *dst, size_t len);

#endif
