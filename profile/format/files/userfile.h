/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * userfile: finds the host's copy of a file of the guest.
 *
 * The guest's root directory (--guest-root DIR: a mounted image, a shared or an unpacked file
 * system) is searched by path. Symbolic links in it are resolved as if DIR were "/", so that no
 * path, ".." or link made by the guest leads to a file of the host. Debug directories are searched
 * by build id, which alone identifies the file:
 *
 *	DIR/.build-id/xx/yyyy.debug	--debuginfo DIR, /usr/lib/debug, and the
 *					guest root's own /usr/lib/debug
 *	DIR/.build-id/xx/yyyy/elf	perf's cache, $HOME/.debug
 *
 * A file whose build id differs from the guest's is refused and counted. Not thread-safe: the
 * caller serialises calls on one finder.
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
/*
 * Maximum size in bytes of a JIT's map; node and java write about 100 bytes for each compiled
 * function.
 */
#define USERFILE_MAX_PERFMAP (256u << 20)

/* How symbolic links are resolved: by openat2(2), or one by one, as kernels before 5.6 require. */
enum userfile_resolver { USERFILE_BY_OPENAT2, USERFILE_BY_STEPS };

struct userfile_options {
	const char *guest_root;			  /* --guest-root; NULL: none */
	const char *debuginfo[USERFILE_MAX_DIRS]; /* directories; the list ends at the first NULL */
	const char *system_debug;		  /* NULL: /usr/lib/debug; "": none */
	const char *cache;			  /* NULL: $HOME/.debug; "": none */
	enum userfile_resolver way;
	/*
	 * CLOCK_REALTIME in s: perf maps last written before this time belong to an earlier run; 0:
	 * accept any
	 */
	time_t not_before;
};

/* Result of a search; each search is counted under one of them. */
enum userfile_reason {
	USERFILE_FOUND = 0,
	USERFILE_UNVERIFIED, /* found, but the guest's build id is not known */
	USERFILE_MISSING,    /* no file was found */
	USERFILE_MISMATCH,   /* only files with another build id or none were found */
	/* not a regular file, not ELF for x86-64, no permission, or too long */
	USERFILE_UNREADABLE,
	USERFILE_REASONS
};

struct userfile_finder {
	struct userfile_options opt; /* the strings are borrowed for the finder's lifetime */
	/* owned; $HOME/.debug if opt.cache was NULL */
	char *default_cache;
	/* O_PATH descriptor of guest_root */
	int root_fd;
	/* searches by userfile_open() and userfile_open_debug(), by result */
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
	char *path;    /* owned; the path on the host, for messages; may be NULL */
	uint8_t place; /* enum userfile_place */
	bool verified; /* its build id equals the guest's */
};

/*
 * Opens the guest's root directory and fills in the defaults. Returns 0, or -errno if guest_root
 * cannot be opened. The caller calls userfile_finder_deinit() after success.
 */
int userfile_finder_init(struct userfile_finder *u, const struct userfile_options *opt,
			 struct err *e);
/* Closes the root directory and frees the finder's strings. */
void userfile_finder_deinit(struct userfile_finder *u);

/*
 * Opens the program or library itself: from the guest root, otherwise from perf's cache. guest_path
 * is the absolute path in the guest. id_len 0 means that the guest's build id is not known. On
 * success the caller releases *f with userfile_close(). Returns 0, -ENOENT (not found), -ESTALE
 * (build id differs), or -EACCES or another -errno (unreadable); e has the file and the reason.
 * Counts the result in u->count.
 */
int userfile_open(struct userfile *f, struct userfile_finder *u, const char *guest_path,
		  const uint8_t *id, unsigned int id_len, struct err *e);
/*
 * Opens the debug file, which has the symbols that were stripped. Its program headers have no valid
 * file offsets; use the program's. Result, ownership and counting are those of userfile_open().
 */
int userfile_open_debug(struct userfile *f, struct userfile_finder *u, const uint8_t *id,
			unsigned int id_len, struct err *e);
/*
 * Opens /tmp/perf-PID.map below the guest root; pid is the guest's number. Returns 0, -ENOENT
 * without such a file or a guest root, -ESTALE if it is older than opt.not_before, or another
 * -errno. Not counted. The caller releases *f with userfile_close().
 */
int userfile_open_perfmap(struct userfile *f, struct userfile_finder *u, uint32_t pid,
			  struct err *e);
/* Unmaps the file, frees its path and zeroes *f. A zeroed *f is allowed. */
void userfile_close(struct userfile *f);

/*
 * Opens the regular file at path below root_fd for reading; symbolic links cannot lead out of
 * root_fd. Returns a descriptor that the caller closes, or -errno: -ELOOP for too many links,
 * -EISDIR for a directory, -EACCES for another file that is not regular. Public for tests, too.
 */
int userfile_open_in_root(int root_fd, const char *path, enum userfile_resolver way);

#endif
