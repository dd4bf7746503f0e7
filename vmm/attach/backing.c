/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/backing.h"

#include "base/cleanup.h"
#include "vmm/attach/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096u

int backing_of(const struct backing *b, const struct resident_file *f)
{
	for (unsigned int i = 0; f && i < b->n; i++)
		if (b->file[i].inode == f->inode)
			return b->file[i].fd;
	return -1;
}

bool backing_note(struct backing *b, const struct resident_file *f, uint64_t offset)
{
	const uint64_t page = offset / PAGE;

	for (unsigned int i = 0; i < b->n; i++) {
		uint8_t *seen = b->file[i].seen;
		bool is_new;

		if (b->file[i].inode != f->inode)
			continue;
		if (!seen || page >= b->file[i].pages)
			return true;
		is_new = !(seen[page / 8] >> page % 8 & 1);
		seen[page / 8] |= (uint8_t)(1u << page % 8);
		return is_new;
	}
	return true;
}

/*
 * Copies the descriptor if it is that of a file of *r. The names are compared first, because
 * unknown files may wait for a server, even in fstat(2).
 */
static void take_file(struct backing *b, pid_t pid, int fd, const char *path,
		      const struct resident *r)
{
	for (unsigned int i = 0; i < r->nfiles && b->n < RESIDENT_FILES; i++) {
		const struct resident_file *f = &r->file[i];
		cleanup_close int copy = -1;
		struct err ignored = { 0 };
		struct stat st;

		if (strcmp(f->path, path) != 0 || backing_of(b, f) >= 0)
			continue;
		copy = process_borrow(pid, fd, &ignored);
		if (copy < 0 || fstat(copy, &st) < 0 || !S_ISREG(st.st_mode) ||
		    st.st_ino != f->inode || (fcntl(copy, F_GETFL) & O_ACCMODE) == O_WRONLY)
			continue;
		b->file[b->n].inode = f->inode;
		b->file[b->n].pages = (uint64_t)st.st_size / PAGE;
		b->file[b->n].seen = calloc(1, b->file[b->n].pages / 8 + 1);
		b->file[b->n++].fd = copy;
		copy = -1;
	}
}

void backing_open(struct backing *b, pid_t pid, const struct resident *r)
{
	cleanup_closedir DIR *d = NULL;
	struct dirent *entry;
	char path[320], link[sizeof(r->file[0].path)];

	b->n = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = r->nfiles ? opendir(path) : NULL;
	while (d && (entry = readdir(d))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, entry->d_name);
		n = readlink(path, link, sizeof(link));
		if (n <= 0 || n == (ssize_t)sizeof(link))
			continue;
		link[n] = 0;
		take_file(b, pid, atoi(entry->d_name), link, r);
	}
}

void backing_close(struct backing *b)
{
	for (unsigned int i = 0; i < b->n; i++) {
		close(b->file[i].fd);
		free(b->file[i].seen);
	}
	b->n = 0;
}
