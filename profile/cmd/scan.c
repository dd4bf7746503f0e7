/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_scan: `kvmprof scan`: which files below some directories have which build ids.
 *
 * Reads headers and notes, never whole files. Symbolic links are not followed, but for
 * the directories named on the command line; /proc and /sys are left out, other mounts
 * are entered unless -x says not to, as find(1) does.
 */
#include "profile/cmd/cmd.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/outfile.h"
#include "profile/format/files/buildid_cache.h"
#include "profile/format/files/buildid_map.h"
#include "profile/cmd/common.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define MAX_DEPTH 64u /* directories inside each other, each of which is an open one */

struct scan_scan {
	const char *output; /* NULL: standard output */
	struct buildid_map map;
	bool one_fs;
	dev_t dev;
	char path[PATH_MAX];
	unsigned long files, ids, unreadable, skipped;
	char first[PATH_MAX + 64]; /* unreadable one, and why */
};

static void note_unreadable(struct scan_scan *s, int code)
{
	if (s->unreadable++ == 0)
		snprintf(s->first, sizeof(s->first), "%s: %s", s->path, strerror(code));
}

static int scan_file(struct scan_scan *s, int fd, struct err *e)
{
	uint8_t id[ELF_ID_MAX];
	int n = elf_id_read(fd, id);

	s->files++;
	if (n < 0 && n != -ENOEXEC && n != -EINVAL)
		note_unreadable(s, -n);
	if (n <= 0)
		return 0;
	/* The map has no way to write such a path. */
	if (strchr(s->path, '\n')) {
		s->skipped++;
		return 0;
	}
	s->ids++;
	n = buildid_map_add(&s->map, id, (size_t)n, s->path, strlen(s->path));
	return n ? err_set(e, -n, "%s: cannot keep more than %zu entries: %s", s->path, s->map.n,
			   strerror(-n))
		 : 0;
}

/* What looks like files there is made by the kernel on the fly. */
static bool is_pseudo(int fd)
{
	struct statfs st;

	return fstatfs(fd, &st) == 0 &&
	       (st.f_type == PROC_SUPER_MAGIC || st.f_type == SYSFS_MAGIC ||
		st.f_type == DEBUGFS_MAGIC || st.f_type == TRACEFS_MAGIC);
}

static int scan_dir(struct scan_scan *s, int fd, unsigned int depth, struct err *e);

/* name in the directory at; s->path is that of at and gets it appended while it is looked at. */
static int scan_entry(struct scan_scan *s, int at, const char *name, unsigned int depth,
		      struct err *e)
{
	size_t len = strlen(s->path), room = sizeof(s->path) - len;
	cleanup_close int fd = -1;
	struct stat st;
	int ret = 0;

	if (snprintf(s->path + len, room, "%s%s", len && s->path[len - 1] == '/' ? "" : "/",
		     name) >= (int)room) {
		s->path[len] = 0;
		s->skipped++;
		return 0;
	}
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		note_unreadable(s, errno);
	} else if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) {
		fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			note_unreadable(s, errno);
		else if (S_ISREG(st.st_mode))
			ret = scan_file(s, fd, e);
		else if (depth == MAX_DEPTH)
			s->skipped++;
		else if ((!s->one_fs || st.st_dev == s->dev) && !is_pseudo(fd))
			ret = scan_dir(s, cleanup_take_fd(&fd), depth, e);
	}
	s->path[len] = 0;
	return ret;
}

/* Takes fd. */
static int scan_dir(struct scan_scan *s, int fd, unsigned int depth, struct err *e)
{
	DIR *d = fdopendir(fd);
	struct dirent *x;
	int ret = 0;

	if (!d) {
		close(fd);
		note_unreadable(s, errno);
		return 0;
	}
	while (!ret && (x = readdir(d)))
		if (strcmp(x->d_name, ".") && strcmp(x->d_name, ".."))
			ret = scan_entry(s, dirfd(d), x->d_name, depth + 1, e);
	closedir(d);
	return ret;
}

/* A directory or file of the command line. */
static int scan_top(struct scan_scan *s, const char *arg, struct err *e)
{
	cleanup_close int fd = -1;
	struct stat st;

	if (!realpath(arg, s->path))
		return err_set(e, errno, "%s: %s", arg, strerror(errno));
	fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, errno, "%s: cannot read: %s", arg, strerror(errno));
	s->dev = st.st_dev;
	if (S_ISREG(st.st_mode))
		return scan_file(s, fd, e);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ENOTDIR, "%s: neither a directory nor a file", arg);
	return scan_dir(s, cleanup_take_fd(&fd), 0, e);
}

/* -- the map -------------------------------------------------------------------------------- */

static void put_map(const struct buildid_map *m, struct buf *out)
{
	char hex[BUILDID_HEX_MAX];

	for (size_t i = 0; i < m->n; i++) {
		buildid_hex(hex, m->at[i].id, m->at[i].len);
		buf_printf(out, "%s %s\n", hex, m->at[i].path);
	}
}

static int write_map(struct scan_scan *s, struct err *e)
{
	struct buf b = { 0 };
	int ret;

	buildid_map_sort(&s->map);
	put_map(&s->map, &b);
	ret = b.failed ? err_nomem(e)
		       : outfile_write(s->output ? s->output : "-", b.data, b.len, e);
	buf_deinit(&b);
	return ret;
}

static void print_totals(const struct scan_scan *s)
{
	fprintf(stderr, "kvmprof: %lu files, %lu with a build id%s%s\n", s->files, s->ids,
		s->output ? "; wrote " : "", s->output ? s->output : "");
	if (s->unreadable)
		fprintf(stderr, "kvmprof: %lu could not be read; the first: %s\n", s->unreadable,
			s->first);
	if (s->skipped)
		fprintf(stderr,
			"kvmprof: %lu left out: path too long or with a newline, or more than %u "
			"directories deep\n",
			s->skipped, MAX_DEPTH);
}

#define OPTION_STRUCT struct scan_scan

static const struct option_row rows[] = {
	{ "output", 'o', "FILE", "the map; it appears when it is complete (default: stdout)",
	  OPTION_TEXT_OF(output, "a file") },
	{ "one-file-system", 'x', NULL, "do not enter other file systems",
	  OPTION_PUT(one_fs, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof scan [-x] [-o FILE] DIR...\n"
		 "\n"
		 "Look at all ELF files below the DIRs and write a map from build ids to paths, "
		 "one\n"
		 "`BUILD-ID PATH` per line, for the option --build-id-map of script and symbols.\n"
		 "Symbolic links are not followed.\n"
		 "\n",
	.after = "\n"
		 "Exit status: 0 fine, also when single files could not be read; 1 failed; 2 wrong "
		 "usage.\n",
	.rows = rows,
	.column = 28,
};

int cmd_scan(int argc, char **argv)
{
	cleanup_free struct scan_scan *s = calloc(1, sizeof(*s));
	struct err e = { 0 };
	int status, ret = 0;

	if (!s) {
		fputs("kvmprof scan: out of memory\n", stderr);
		return 1;
	}
	status = cmd_options(&set, s, argc, argv);
	if (status >= 0)
		return status;
	if (optind == argc)
		return cmd_wrong(argv, "which directories?");
	for (int i = optind; i < argc && !ret; i++)
		ret = scan_top(s, argv[i], &e);
	ret = ret ? ret : write_map(s, &e);
	if (ret)
		fprintf(stderr, "kvmprof scan: %s\n", e.text);
	else
		print_totals(s);
	buildid_map_deinit(&s->map);
	return ret ? 1 : 0;
}
