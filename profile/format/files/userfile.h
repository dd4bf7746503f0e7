/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userfile: where on the host a file of the guest is.
 *
 * The guest's root directory (--guest-root DIR: a mounted image, a shared or an
 * unpacked file system) is searched by path; links in it are followed as if DIR
 * were "/", so that no path, ".." or link of the guest's making leads to a file
 * of the host. Debug directories are searched by build id, which is the only
 * thing that tells whose file it is:
 *
 *	DIR/.build-id/xx/yyyy.debug	--debuginfo DIR, /usr/lib/debug, and the
 *					guest root's own /usr/lib/debug
 *	DIR/.build-id/xx/yyyy/elf	perf's cache, $HOME/.debug
 *
 * A file whose build id is not the one that the guest has is refused and counted.
 * One thread at a time.
 */
#ifndef KVMPROF_PROFILE_FORMAT_FILES_USERFILE_H
#define KVMPROF_PROFILE_FORMAT_FILES_USERFILE_H

#include "base/err.h"
#include "base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define USERFILE_MAX_LEN (2ull << 30)
#define USERFILE_MAX_DIRS 16u
/* A JIT's map; node and java write some 100 bytes for each compiled function. */
#define USERFILE_MAX_PERFMAP (256u << 20)

/* How links are followed: by openat2(2), or one by one as on kernels before 5.6. */
enum userfile_way { USERFILE_BY_OPENAT2, USERFILE_BY_STEPS };

struct userfile_options {
	const char *guest_root;			  /* NULL: none */
	const char *debuginfo[USERFILE_MAX_DIRS]; /* up to the first NULL */
	const char *system_debug;		  /* NULL: /usr/lib/debug; "": none */
	const char *cache;			  /* NULL: $HOME/.debug; "": none */
	enum userfile_way way;
	/* CLOCK_REALTIME, s: perf maps that were last written before are of an earlier run; 0: any will do. */
	time_t not_before;
};

/* What became of a search: one of these is counted for each. */
enum userfile_reason {
	USERFILE_FOUND = 0,
	USERFILE_UNVERIFIED, /* found, but the guest's build id is not known */
	USERFILE_MISSING,    /* no such file anywhere */
	USERFILE_MISMATCH,   /* only files with another build id, or without one */
	USERFILE_UNREADABLE, /* not a regular file, not ELF for x86-64, no permission, too long */
	USERFILE_REASONS
};

struct userfile_finder {
	struct userfile_options opt; /* strings are borrowed, but for cache */
	char *default_cache;
	int root_fd;
	uint64_t count[USERFILE_REASONS];
};

enum userfile_place {
	USERFILE_IN_GUEST_ROOT = 1,
	USERFILE_IN_DEBUGINFO,
	USERFILE_IN_SYSTEM_DEBUG,
	USERFILE_IN_CACHE,
};

struct userfile {
	struct file_map map;
	char *path;    /* on the host, for messages */
	uint8_t place; /* enum userfile_place */
	bool verified; /* its build id is the guest's */
};

/* -ENOTDIR and the like when guest_root cannot be used. */
int userfile_finder_init(struct userfile_finder *u, const struct userfile_options *opt,
			 struct err *e);
void userfile_finder_deinit(struct userfile_finder *u);

/*
 * The program or library itself: in the guest root, else in perf's cache.
 * guest_path is absolute, as the guest has it; id_len 0: the guest's build id is
 * not known. -ENOENT, -ESTALE (mismatch), -EACCES (unreadable): e says which file
 * and why; each is counted.
 */
int userfile_open(struct userfile *f, struct userfile_finder *u, const char *guest_path,
		  const uint8_t *id, unsigned int id_len, struct err *e);
/*
 * Its debug file, which has the names that were stripped off. Program headers of
 * debug files do not tell file offsets: take these from the program.
 */
int userfile_open_debug(struct userfile *f, struct userfile_finder *u, const uint8_t *id,
			unsigned int id_len, struct err *e);
/* The guest root's /tmp/perf-PID.map, pid as the guest counts. Not counted. -ESTALE: opt.not_before. */
int userfile_open_perfmap(struct userfile *f, struct userfile_finder *u, uint32_t pid,
			  struct err *e);
void userfile_close(struct userfile *f);

/*
 * A regular file below root_fd, opened for reading; links are resolved inside of
 * it. -ELOOP: too many links; -EACCES: not a regular file. For tests too.
 */
int userfile_open_in_root(int root_fd, const char *path, enum userfile_way way);

#endif
