/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/disk_budget.h"

#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096u

void disk_budget_init(struct disk_budget *b, uint64_t limit)
{
	memset(b, 0, sizeof(*b));
	pthread_mutex_init(&b->lock, NULL);
	b->limit = limit;
}

void disk_budget_deinit(struct disk_budget *b)
{
	pthread_mutex_destroy(&b->lock);
}

int disk_budget_join(struct disk_budget *b, int fd)
{
	int ret = -ENOSPC;

	pthread_mutex_lock(&b->lock);
	if (b->n < DISK_BUDGET_FILES) {
		b->fd[b->n++] = fd;
		ret = 0;
	}
	pthread_mutex_unlock(&b->lock);
	return ret;
}

void disk_budget_leave(struct disk_budget *b, int fd)
{
	pthread_mutex_lock(&b->lock);
	for (unsigned int i = 0; i < b->n; i++)
		if (b->fd[i] == fd) {
			b->fd[i] = b->fd[--b->n];
			break;
		}
	pthread_mutex_unlock(&b->lock);
}

/*
 * Updates b->left from the kernel's counts; called with the lock. Writes in flight may be counted
 * twice, but never missed.
 */
static void count_left(struct disk_budget *b)
{
	uint64_t used = b->writing;

	for (unsigned int i = 0; i < b->n; i++) {
		struct stat st;

		if (file_fstat(b->fd[i], &st) == 0)
			used += (uint64_t)st.st_blocks * 512;
	}
	b->left = used < b->limit ? b->limit - used : 0;
}

/* Returns the bytes of [from, to) that have no page yet. */
static uint64_t count_missing(int fd, uint64_t from, uint64_t to)
{
	uint64_t missing = 0;

	while (from < to) {
		off_t data = lseek(fd, (off_t)from, SEEK_DATA), hole;

		if (data < 0 || (uint64_t)data >= to)
			return missing + (to - from);
		missing += (uint64_t)data - from;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole < 0)
			return missing + (to - (uint64_t)data);
		from = (uint64_t)hole;
	}
	return missing;
}

int disk_budget_reserve(struct disk_budget *b, int fd, uint64_t off, uint64_t len, uint64_t *taken)
{
	uint64_t from = off / PAGE * PAGE, to = (off + len + PAGE - 1) / PAGE * PAGE;
	uint64_t want = to - from;
	int ret = 0;

	pthread_mutex_lock(&b->lock);
	if (b->left < want)
		count_left(b);
	if (b->left < want)
		want = count_missing(fd, from, to);
	if (b->left < want) {
		ret = -ENOSPC;
	} else {
		b->left -= want;
		b->writing += want;
		*taken = want;
	}
	pthread_mutex_unlock(&b->lock);
	return ret;
}

void disk_budget_return(struct disk_budget *b, uint64_t taken)
{
	pthread_mutex_lock(&b->lock);
	b->writing -= taken;
	pthread_mutex_unlock(&b->lock);
}
