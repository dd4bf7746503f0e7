/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_reader: reads guest memory for the consumer, without waiting for pages that may never
 * arrive.
 *
 * Present pages are read at once. An absent page is not read if a server would have to bring it
 * (userfaultfd), because the server may never do so and the guest has not asked for the page. Any
 * other absent page is read by a separate thread, for which the caller waits at most a second.
 * After that has happened once, absent pages count as unreadable. The thread reads the page from
 * the file that it is mapped from, if the process still has that file open; this brings nothing
 * into the memory of the process. Else the page comes into memory. At most ATTACH_READER_BUDGET
 * bytes are brought in like this, apart from the kernel's tables.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_READER_H
#define KVMPROF_VMM_ATTACH_ATTACH_READER_H

#include "base/err.h"
#include "vmm/attach/backing.h"
#include "vmm/attach/resident.h"
#include "base/gmem_remote.h"

#include <pthread.h>
#include <stdatomic.h>

#define ATTACH_READER_BUDGET (1u << 20)

enum attach_reader_phase {
	ATTACH_READER_IDLE,
	ATTACH_READER_ASKED,
	ATTACH_READER_ENDS,
};

struct attach_reader {
	pid_t pid;
	struct resident resident;
	struct backing backing;
	pthread_t thread;
	bool started;
	bool stuck; /* the thread hangs in a read; it ends with the process */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	enum attach_reader_phase phase;
	uint64_t host;
	size_t len;
	int fd;		 /* descriptor of the file that has the bytes; -1: the process has them */
	uint64_t offset; /* in that file */
	int result;
	uint8_t bytes[4096];	/* at most one page is requested */
	size_t others;		/* bytes brought into memory, except for the kernel's tables */
	atomic_ulong brought;	/* bytes of absent pages that came into memory */
	atomic_ulong from_file; /* bytes of pages that were read from the file of their memory */
	atomic_ulong absent;	/* reads that ended at a page that is not in memory */
};

/*
 * Starts a thread for reads of a process's memory, and initialises *out, through which one thread
 * may read. *out is valid until attach_reader_destroy(), which the caller calls. Returns NULL with
 * *e set on an error.
 */
struct attach_reader *attach_reader_create(struct gmem_remote *out, pid_t pid, struct err *e);
/*
 * Ends the thread and frees *r. If the thread is stuck in a read, it does nothing, and both remain
 * until the process ends.
 */
void attach_reader_destroy(struct attach_reader *r);

#endif
