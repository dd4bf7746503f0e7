/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/known.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/format/files/buildid_cache.h"
#include "symbolizer/kernel/live_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNEL "[kernel.kallsyms]"
#define FILE_NAME "kvmprof"

static char *copy_dir(const char *dir)
{
	return dir ? strdup(dir) : buildid_default_dir();
}

/* Returns a descriptor of the file if its mark fits, or -1. */
static int open_fitting(const char *dir, const char *id, uint64_t inside, size_t *len)
{
	cleanup_close int fd = -1;
	cleanup_free char *path = NULL;
	uint8_t head[LIVE_COPY_HEAD];
	struct live_copy_mark mark;
	struct stat st;

	if (asprintf(&path, "%s/%s/%s", dir, id, FILE_NAME) < 0) {
		path = NULL;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size > GUEST_KNOWN_MAX_BYTES ||
	    pread(fd, head, sizeof(head), 0) != sizeof(head) ||
	    !live_copy_mark(head, sizeof(head), &mark) || (mark.inside - inside) % LIVE_COPY_SLIDE)
		return -1;
	*len = (size_t)st.st_size;
	return cleanup_take_fd(&fd);
}

static uint8_t *read_whole(int fd, size_t len)
{
	uint8_t *bytes = malloc(len);
	size_t have = 0;
	ssize_t n = 1;

	while (bytes && have < len && (n = pread(fd, bytes + have, len - have, (off_t)have)) > 0)
		have += (size_t)n;
	if (have == len)
		return bytes;
	free(bytes);
	return NULL;
}

uint8_t *guest_known_load(const char *dir, uint64_t inside, unsigned int n, size_t *len)
{
	cleanup_free char *cache = copy_dir(dir), *kernels = NULL;
	cleanup_closedir DIR *d = NULL;
	struct dirent *entry;

	if (!cache || asprintf(&kernels, "%s/%s", cache, KERNEL) < 0) {
		kernels = NULL;
		return NULL;
	}
	d = opendir(kernels);
	while (d && (entry = readdir(d))) {
		cleanup_close int fd = -1;

		if (entry->d_name[0] == '.')
			continue;
		fd = open_fitting(kernels, entry->d_name, inside, len);
		if (fd >= 0 && !n--)
			return read_whole(fd, *len);
	}
	return NULL;
}

void guest_known_store(const char *dir, const uint8_t *build_id, size_t id_len,
		       const uint8_t *bytes, size_t len)
{
	const struct buildid_file_entry x = { KERNEL, build_id, id_len, FILE_NAME, bytes, len };
	cleanup_free char *cache = copy_dir(dir);
	struct err ignored = { 0 };

	if (cache && len <= GUEST_KNOWN_MAX_BYTES)
		(void)buildid_cache_add(cache, &x, &ignored);
}
