/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * resident: finds out which pages of another process are in memory, so that a read of them does not
 * block.
 *
 * An absent page may come from a swap device, a network file system or a server process
 * (userfaultfd), and may never arrive. A read that waits for a FUSE server may not even end when
 * the reading process is killed (fs/fuse/dev.c, request_wait_answer). Sources:
 * Documentation/admin-guide/mm/pagemap.rst (bit 63: the page is present; readable without
 * privileges); proc(5), smaps, VmFlags (um, uw and ui: the area is registered with userfaultfd),
 * and mountinfo.
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

/* An area that is mapped from a file. Its absent pages have the file's content. */
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

/*
 * Opens the files of the process in /proc, which resident_close() closes, and reads its areas. If
 * they cannot be opened, no page counts as present. *r is used by one thread.
 */
void resident_open(struct resident *r, pid_t pid);
/* Closes the files. */
void resident_close(struct resident *r);

/*
 * Returns how many bytes of [host, host + len), addresses in that process, are on present pages
 * before the first absent one. Pages of steady areas are looked up again after some milliseconds,
 * others each time. If one has been absent lately, all are looked up each time.
 */
size_t resident_bytes(struct resident *r, uint64_t host, size_t len);
/*
 * Returns whether a server may have to bring the page of address `host`. Reads smaps again if the
 * list of areas is older than a second; opens no file.
 */
bool resident_is_served(struct resident *r, uint64_t host);
/*
 * Returns the file, in *r, that has the content of the absent page of address `host`, or NULL; a
 * page that was swapped out is in no file. Uses the list of areas that resident_is_served() has
 * read, which must be called before.
 */
const struct resident_file *resident_file_of(const struct resident *r, uint64_t host);
/*
 * Returns how many bytes are present in the aligned 2 MiB around `host`. A read of one absent page
 * can bring as many: huge pages, and neighbours that are in the page cache (mm/memory.c,
 * do_fault_around()).
 */
size_t resident_around(const struct resident *r, uint64_t host);

/*
 * Returns whether a file on this device may wait for another machine or process. mounts: the text
 * of mountinfo.
 */
bool resident_is_remote(const char *mounts, unsigned int major, unsigned int minor);
/*
 * Parses one line of smaps and adds its area to the lists of *r. *area, zero before the first line,
 * keeps the area that the line belongs to between calls.
 */
void resident_parse(struct resident *r, const char *line, struct resident_area *area);

#endif
