/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/leftover.h"

#include "base/cleanup.h"
#include "base/outfile.h"
#include "profile/format/perfdata/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK ".tmp-"

struct leftover {
	unsigned int n;
	char newest[256];
	struct timespec time;
};

/* Returns true for "17" or "17-1". */
static bool is_number(const char *s)
{
	return *s && strspn(s, "0123456789-") == strlen(s);
}

/* Returns true if the file begins like a profile and no process has it locked. */
static bool is_left(int fd)
{
	char magic[8];

	if (pread(fd, magic, sizeof(magic), 0) != sizeof(magic) ||
	    memcmp(magic, PERFDATA_MAGIC, sizeof(magic)) != 0)
		return false;
	return flock(fd, LOCK_SH | LOCK_NB) == 0;
}

static void look_at(struct leftover *l, int dir, const char *name)
{
	char data[512];
	struct stat st;
	cleanup_close int fd = -1;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) ||
	    (size_t)snprintf(data, sizeof(data), "%s%s", name,
			     S_ISDIR(st.st_mode) ? "/data" : "") >= sizeof(data))
		return;
	fd = openat(dir, data, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !is_left(fd))
		return;
	if (!l->n++ || st.st_mtim.tv_sec > l->time.tv_sec ||
	    (st.st_mtim.tv_sec == l->time.tv_sec && st.st_mtim.tv_nsec > l->time.tv_nsec)) {
		snprintf(l->newest, sizeof(l->newest), "%s", name);
		l->time = st.st_mtim;
	}
}

bool leftover_text(const char *path, char *text, size_t size)
{
	cleanup_free char *at = outfile_target(path && *path ? path : "perf.data");
	cleanup_closedir DIR *list = NULL;
	struct leftover l = { 0 };
	struct dirent *d;
	char *slash, more[32] = "";
	const char *base;
	size_t len;

	for (len = at ? strlen(at) : 0; len > 1 && at[len - 1] == '/'; len--)
		at[len - 1] = '\0';
	if (!at)
		return false;
	slash = strrchr(at, '/');
	base = slash ? slash + 1 : at;
	len = strlen(base);
	if (slash)
		*slash = '\0';
	list = opendir(!slash ? "." : slash == at ? "/" : at);
	while (list && (d = readdir(list)))
		if (!strncmp(d->d_name, base, len) &&
		    !strncmp(d->d_name + len, MARK, strlen(MARK)) &&
		    is_number(d->d_name + len + strlen(MARK)))
			look_at(&l, dirfd(list), d->d_name);
	if (!l.n)
		return false;
	if (l.n > 1)
		snprintf(more, sizeof(more), " (and %u more)", l.n - 1);
	snprintf(text, size,
		 "%s%s%s%s is the unfinished profile of a run that was killed: `kvmprof report -i "
		 "%s%s%s` shows it",
		 slash ? at : "", slash ? "/" : "", l.newest, more, slash ? at : "",
		 slash ? "/" : "", l.newest);
	return true;
}
