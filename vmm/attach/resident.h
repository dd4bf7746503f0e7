/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * resident: which pages of another process are in memory, so that a read of them waits for nobody.
 *
 * A page that is absent may come from a swap device, from a file system of the network, or from a server of its own (userfaultfd), and may never
 * come. Sources: Documentation/admin-guide/mm/pagemap.rst (bit 63: the page is present, told without privileges); proc(5), smaps, VmFlags
 * (um, uw and ui: the area is registered with userfaultfd), and mountinfo. A read that waits for a FUSE server may not even end with its process
 * (fs/fuse/dev.c, request_wait_answer).
 */
#ifndef KVMPROF_VMM_ATTACH_RESIDENT_H
#define KVMPROF_VMM_ATTACH_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RESIDENT_AREAS 256u
#define RESIDENT_FILES 16u
#define RESIDENT_KNOWN 1024u /* power of two */

struct resident_area {
	uint64_t start, end;
	bool steady; /* only swapping takes pages away */
	bool remote; /* a file of another machine, or of a server process */
};

/* An area that is mapped from a file, on whose absent pages the file's content is. */
struct resident_file {
	uint64_t start, end;
	uint64_t offset; /* bytes: of `start` in the file */
	unsigned long inode;
	char path[256]; /* as /proc/PID/maps has it */
};

struct resident {
	/* Files of /proc/PID, open since resident_open(); -1: it cannot be read. */
	int pagemap, smaps, mountinfo;
	/* Areas whose pages a server may bring, and areas whose pages only swapping takes away. */
	struct resident_area served[RESIDENT_AREAS], steady[RESIDENT_AREAS];
	unsigned int nserved, nsteady;
	struct resident_file file[RESIDENT_FILES];
	unsigned int nfiles;
	bool all_served; /* which areas have a server is not known, or there are too many */
	char *mounts;	 /* while smaps is read */
	uint64_t looked_ns;
	uint64_t absent_ns; /* when a page was last found absent */
	/* Pages of steady areas that were found present a short time ago, and when (ns). */
	uint64_t known[RESIDENT_KNOWN], known_ns[RESIDENT_KNOWN];
};

/* For reads by one thread. Without the files nothing counts as present. */
void resident_open(struct resident *r, pid_t pid);
void resident_close(struct resident *r);

/*
 * Returns how many bytes of [host, host + len) lie on present pages before the first one that is absent. Pages of steady areas are looked up
 * again after some milliseconds, others each time. When one has been absent lately, all are looked up each time.
 */
size_t resident_bytes(struct resident *r, uint64_t host, size_t len);
/* Returns whether a server may have to bring the page. Reads smaps anew when the list of areas is older than a second, and opens nothing. */
bool resident_is_served(struct resident *r, uint64_t host);
/*
 * Returns the file that has the content of an absent page, or NULL. A page that was swapped out is in no file. The list is as old as
 * that of resident_is_served(), which has to be called before.
 */
const struct resident_file *resident_file_of(const struct resident *r, uint64_t host);
/*
 * Returns how many bytes are present of the 2 MiB around host, aligned to them. A read of one absent page can bring as many: huge pages,
 * and neighbours that are in the page cache (mm/memory.c, do_fault_around()).
 */
size_t resident_around(const struct resident *r, uint64_t host);

/* Returns whether a file of this device may wait for another machine or process; mounts: the text of mountinfo. */
bool resident_is_remote(const char *mounts, unsigned int major, unsigned int minor);
/* Reads one line of smaps. *area, zero before the first line, is the area that the line is about. */
void resident_parse(struct resident *r, const char *line, struct resident_area *area);

#endif
