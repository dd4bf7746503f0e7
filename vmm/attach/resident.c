/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/resident.h"

#include "base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u
#define PRESENT (UINT64_C(1) << 63)
#define SWAPPED (UINT64_C(1) << 62)
/* Pages of the largest piece of memory that one fault brings, except for huge pages of 1 GiB. */
#define AROUND 512u
/* Entries of pagemap that are read at once. */
#define ENTRIES 64u
/* Time for which a page that was found present counts as present, in steady areas. */
#define KNOWN_NS UINT64_C(20000000)
/*
 * Time for which each page is looked up after one was found absent, because pages are being
 * swapped.
 */
#define SUSPECT_NS (10 * NSEC_PER_SEC)
/* Time for which the list of areas is valid. */
#define AREAS_NS NSEC_PER_SEC
/* Bytes of the list of mounts that are read. */
#define MOUNTS_MAX (1u << 20)
/* Smaller areas are not the guest's memory: their pages are looked up each time. */
#define STEADY_BYTES (UINT64_C(16) << 20)
#define FILE_BYTES (UINT64_C(2) << 20)

static int open_file(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* -- areas -------------------------------------------------------------------------------------- */

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Returns whether the area is writable, and anonymous or of a file that is in memory alone (mm/shmem.c). */
static bool is_memory(const char *permissions, unsigned long inode, const char *name)
{
	return permissions[0] == 'r' && permissions[1] == 'w' &&
	       (!inode || has_prefix(name, "/memfd:") || has_prefix(name, "/dev/zero") ||
		has_prefix(name, "/dev/shm/") || has_prefix(name, "/SYSV"));
}

/* Returns whether reads of this type of file system may wait for another machine or process. */
static bool is_remote_type(const char *type)
{
	static const char *const remote[] = { "fuse", "nfs",	  "cifs",    "smb",
					      "ceph", "9p",	  "afs",     "ocfs2",
					      "gfs2", "lustre",	  "gluster", "virtiofs",
					      "coda", "orangefs", "beegfs",  "gpfs" };

	for (size_t i = 0; i < sizeof(remote) / sizeof(remote[0]); i++)
		if (has_prefix(type, remote[i]))
			return true;
	return false;
}

bool resident_is_remote(const char *mounts, unsigned int major, unsigned int minor)
{
	for (const char *line = mounts; line && *line; line = strchr(line, '\n')) {
		unsigned int m, n;
		const char *type;

		line += *line == '\n';
		type = strstr(line, " - ");
		if (type && sscanf(line, "%*u %*u %u:%u", &m, &n) == 2 && m == major && n == minor)
			return is_remote_type(type + 3);
	}
	/* Not mounted where that process sees it: only a block device is surely local. */
	return major == 0;
}

static void append_area(struct resident_area *list, unsigned int *n,
			const struct resident_area *area)
{
	list[*n] = *area;
	++*n;
}

static void append_file(struct resident *r, const struct resident_area *area, uint64_t offset,
			unsigned long inode, const char *path)
{
	struct resident_file *f = &r->file[r->nfiles];

	if (!inode || area->remote || area->end - area->start < FILE_BYTES ||
	    strlen(path) >= sizeof(f->path) || r->nfiles == RESIDENT_FILES)
		return;
	*f = (struct resident_file){ .start = area->start, .end = area->end, .offset = offset };
	f->inode = inode;
	memcpy(f->path, path, strlen(path) + 1);
	r->nfiles++;
}

void resident_parse(struct resident *r, const char *line, struct resident_area *area)
{
	uint64_t from, to, offset;
	char permissions[8];
	unsigned int major, minor;
	unsigned long inode;
	int name = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %lu %n", &from, &to,
		   permissions, &offset, &major, &minor, &inode, &name) == 7) {
		*area = (struct resident_area){ .start = from, .end = to };
		area->steady =
			to - from >= STEADY_BYTES && is_memory(permissions, inode, line + name);
		area->remote = inode && !is_memory("rw", inode, line + name) &&
			       resident_is_remote(r->mounts, major, minor);
		append_file(r, area, offset, inode, line + name);
		return;
	}
	if (!has_prefix(line, "VmFlags:"))
		return;
	if (area->remote || strstr(line, " um") || strstr(line, " uw") || strstr(line, " ui")) {
		if (r->nserved == RESIDENT_AREAS)
			r->all_served = true;
		else
			append_area(r->served, &r->nserved, area);
	} else if (area->steady && r->nsteady < RESIDENT_AREAS) {
		append_area(r->steady, &r->nsteady, area);
	}
}

/* Parses the complete lines of a text. Returns their length in bytes. */
static size_t parse_lines(struct resident *r, char *text, struct resident_area *area)
{
	char *line = text, *stop;

	while ((stop = strchr(line, '\n'))) {
		*stop = 0;
		resident_parse(r, line, area);
		line = stop + 1;
	}
	return (size_t)(line - text);
}

/* Returns the list of mounts in mountinfo (proc(5)), which the caller frees; NULL if it cannot be read. */
static char *read_mounts(int fd)
{
	char *text = fd < 0 ? NULL : calloc(1, MOUNTS_MAX + 1);
	size_t have = 0;
	ssize_t n;

	while (text && have < MOUNTS_MAX &&
	       (n = pread(fd, text + have, MOUNTS_MAX - have, (off_t)have)) > 0)
		have += (size_t)n;
	return text;
}

static void read_areas(struct resident *r)
{
	char text[8192];
	struct resident_area area = { 0 };
	size_t have = 0;
	off_t at = 0;
	ssize_t n;

	r->looked_ns = clock_mono_ns();
	r->mounts = read_mounts(r->mountinfo);
	r->nserved = r->nsteady = r->nfiles = 0;
	r->all_served = r->smaps < 0;
	while (r->smaps >= 0 &&
	       (n = pread(r->smaps, text + have, sizeof(text) - 1 - have, at)) > 0) {
		size_t used;

		at += n;
		have += (size_t)n;
		text[have] = 0;
		used = parse_lines(r, text, &area);
		/* A line is never so long: the name of a file is at most PATH_MAX. */
		if (!used && have == sizeof(text) - 1)
			used = have;
		memmove(text, text + used, have - used);
		have -= used;
	}
	if (!at)
		r->all_served = true;
	free(r->mounts);
	r->mounts = NULL;
}

static bool is_in(const struct resident_area *list, unsigned int n, uint64_t host)
{
	for (unsigned int i = 0; i < n; i++)
		if (host >= list[i].start && host < list[i].end)
			return true;
	return false;
}

bool resident_is_served(struct resident *r, uint64_t host)
{
	if (clock_mono_ns() - r->looked_ns > AREAS_NS)
		read_areas(r);
	return r->all_served || is_in(r->served, r->nserved, host);
}

void resident_open(struct resident *r, pid_t pid)
{
	memset(r, 0, sizeof(*r));
	r->pagemap = open_file(pid, "pagemap");
	r->smaps = open_file(pid, "smaps");
	r->mountinfo = open_file(pid, "mountinfo");
	read_areas(r);
}

void resident_close(struct resident *r)
{
	if (r->pagemap >= 0)
		close(r->pagemap);
	if (r->smaps >= 0)
		close(r->smaps);
	if (r->mountinfo >= 0)
		close(r->mountinfo);
	r->pagemap = r->smaps = r->mountinfo = -1;
}

/* -- pages -------------------------------------------------------------------------------------- */

static size_t slot_of(uint64_t page)
{
	return (size_t)(page * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (RESIDENT_KNOWN - 1);
}

static bool is_known(const struct resident *r, uint64_t page, uint64_t now)
{
	const size_t i = slot_of(page);

	return r->known[i] == page && now - r->known_ns[i] < KNOWN_NS &&
	       now - r->absent_ns > SUSPECT_NS;
}

static void note_known(struct resident *r, uint64_t page, uint64_t now)
{
	const size_t i = slot_of(page);

	if (!is_in(r->steady, r->nsteady, page * PAGE))
		return;
	r->known[i] = page;
	r->known_ns[i] = now;
}

/*
 * Returns the distance in bytes from `host` to the beginning of `page`; 0 if host is in that page.
 */
static size_t before(uint64_t page, uint64_t host)
{
	return page == host / PAGE ? 0 : (size_t)(page * PAGE - host);
}

const struct resident_file *resident_file_of(const struct resident *r, uint64_t host)
{
	const off_t at = (off_t)(host / PAGE * sizeof(uint64_t));
	uint64_t entry;

	if (pread(r->pagemap, &entry, sizeof(entry), at) != sizeof(entry) || (entry & SWAPPED))
		return NULL;
	for (unsigned int i = 0; i < r->nfiles; i++)
		if (host >= r->file[i].start && host < r->file[i].end)
			return &r->file[i];
	return NULL;
}

size_t resident_around(const struct resident *r, uint64_t host)
{
	const uint64_t first = host / PAGE / AROUND * AROUND;
	uint64_t entry[AROUND];
	const ssize_t n = pread(r->pagemap, entry, sizeof(entry), (off_t)(first * sizeof(*entry)));
	size_t present = 0;

	for (ssize_t i = 0; i < n / (ssize_t)sizeof(*entry); i++)
		present += entry[i] & PRESENT ? PAGE : 0;
	return present;
}

size_t resident_bytes(struct resident *r, uint64_t host, size_t len)
{
	const uint64_t now = clock_mono_ns();
	const uint64_t first = host / PAGE, last = len ? (host + len - 1) / PAGE : first;
	uint64_t page = first;

	while (page <= last) {
		uint64_t entry[ENTRIES];
		ssize_t n;
		size_t want = last - page + 1 < ENTRIES ? (size_t)(last - page + 1) : ENTRIES;

		if (is_known(r, page, now)) {
			page++;
			continue;
		}
		n = pread(r->pagemap, entry, want * sizeof(*entry), (off_t)(page * sizeof(*entry)));
		if (n < (ssize_t)sizeof(*entry))
			break;
		for (size_t i = 0; i < (size_t)n / sizeof(*entry); i++, page++) {
			if (!(entry[i] & PRESENT)) {
				r->absent_ns = now;
				return before(page, host);
			}
			note_known(r, page, now);
		}
	}
	return page > last ? len : before(page, host);
}
