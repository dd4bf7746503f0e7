/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/publish/place.h"

#include "base/cleanup.h"
#include "profile/record/publish/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_MODE 0600
#define DIR_MODE 0700
/* A profile is two levels deep. An earlier profile may contain other files of the user's. */
#define MAX_DEPTH 16u
#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The first bytes of a perf.data file. */
#define FILE_MAGIC "PERFILE2"
/* Suffix of a profile in a single file that the run names while its guest runs. */
#define FILE_SUFFIX ".data"
#define EPOCH_DIR "epoch-"
#define EPOCH_DIGITS 2u

/* The names that a profile's directory may contain. */
static const char *const top_files[] = { "data", "text", "kvmprof.json", NULL };
static const char *const kcore_files[] = { "kallsyms", "kallsyms.new", "kcore",
					   "modules",  "modules.full", NULL };

static bool is_dot(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

static bool is_component(const char *name)
{
	return *name && !strchr(name, '/') && !is_dot(name);
}

static bool is_one_of(const char *name, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(name, *list))
			return true;
	return false;
}

/*
 * Returns whether the name is that of the profile of a later kernel, in the first one's directory.
 */
static bool is_epoch(const char *name)
{
	size_t len = strlen(EPOCH_DIR),
	       digits = strncmp(name, EPOCH_DIR, len) ? 0 : strlen(name + len);

	return digits && digits <= EPOCH_DIGITS && strspn(name + len, "0123456789") == digits;
}

static bool is_build_id(const char *name)
{
	return *name && strspn(name, "0123456789abcdef") == strlen(name);
}

/* -- checks --------------------------------------------------------------------------------- */

static bool type_fits(enum place_kind kind, mode_t mode)
{
	return kind == PLACE_FILE || kind == PLACE_SNAPSHOT ? S_ISREG(mode)
	       : kind == PLACE_SOCKET			    ? S_ISSOCK(mode)
							    : S_ISDIR(mode);
}

static bool names_fit(const struct place *p)
{
	bool named = p->kind == PLACE_PROFILE || p->kind == PLACE_FILE || p->kind == PLACE_SNAPSHOT;
	bool may = p->kind == PLACE_CACHE && *p->name;

	return strnlen(p->tmp, sizeof(p->tmp)) <= NAME_MAX &&
	       strnlen(p->name, sizeof(p->name)) <= NAME_MAX && is_component(p->tmp) &&
	       is_component(p->name) == (named || may) && (!named || strcmp(p->name, p->tmp));
}

static int stat_temporary(const struct place *p, struct stat *st)
{
	return p->kind == PLACE_SNAPSHOT && p->file >= 0
		       ? fstat(p->file, st)
		       : fstatat(p->dir, p->tmp, st, AT_SYMLINK_NOFOLLOW);
}

int place_check(struct place *p, struct err *e)
{
	struct stat st;

	if ((unsigned int)p->kind >= PLACE_KINDS || !names_fit(p))
		return err_set(e, EINVAL, "not the name of a result");
	if (stat_temporary(p, &st) < 0)
		return err_set(e, errno, "%s: %s", p->tmp, strerror(errno));
	if (!type_fits(p->kind, st.st_mode))
		return err_set(e, EINVAL, "%s: not the type of a result", p->tmp);
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	p->uid = st.st_uid;
	p->gid = st.st_gid;
	return 0;
}

/*
 * Opens the temporary, if it is still the registered file or directory. Returns the descriptor or
 * -errno.
 */
static int place_open(const struct place *p, struct err *e)
{
	bool is_file = p->kind == PLACE_FILE || p->kind == PLACE_SNAPSHOT;
	cleanup_close int fd = openat(p->dir, p->tmp, is_file ? OPEN_FILE : OPEN_DIR);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(e, errno, "%s: cannot open: %s", p->tmp, strerror(errno));
	if (st.st_dev != p->dev || st.st_ino != p->ino)
		return err_set(e, EPERM, "%s: is another file than the run created", p->tmp);
	return cleanup_take_fd(&fd);
}

/* Gives a file of the run's user to the first owner of the temporary. Returns 0 or -errno. */
static int set_owner(const struct place *p, int fd, const struct stat *st)
{
	return st->st_uid != p->uid && st->st_uid == p->run && fchown(fd, p->uid, p->gid) < 0
		       ? -errno
		       : 0;
}

/*
 * Checks and adopts a file. Hard links may lead to files elsewhere: only copies of a run's own
 * programs (dso) may have them.
 */
static int check_file(const struct place *p, int fd, const char *name, bool links, struct err *e)
{
	struct stat st;
	int ret;

	if (fstat(fd, &st) < 0)
		return err_set(e, errno, "%s: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, EPERM, "%s: not a regular file", name);
	if (st.st_nlink != 1)
		return links ? 0 : err_set(e, EPERM, "%s: has several names", name);
	if (fchmod(fd, FILE_MODE) < 0)
		return err_set(e, errno, "%s: cannot set its mode: %s", name, strerror(errno));
	ret = set_owner(p, fd, &st);
	return ret ? err_set(e, -ret, "%s: cannot set its owner: %s", name, strerror(-ret)) : 0;
}

static int check_file_at(const struct place *p, int dir, const char *name, bool links,
			 struct err *e)
{
	cleanup_close int fd = openat(dir, name, OPEN_FILE);

	/* ELOOP is a symbolic link, ENXIO a socket. */
	return fd < 0 ? err_set(e, errno, "%s: no file of a profile: %s", name, strerror(errno))
		      : check_file(p, fd, name, links, e);
}

enum level { LEVEL_TOP, LEVEL_EPOCH, LEVEL_KCORE, LEVEL_DSO };

static int check_level(const struct place *p, int fd, enum level level, struct err *e);

static int check_entry(const struct place *p, int dir, enum level level, const char *name,
		       struct err *e)
{
	bool profile = level == LEVEL_TOP || level == LEVEL_EPOCH;
	enum level below = !strcmp(name, "kcore_dir")		  ? LEVEL_KCORE
			   : !strcmp(name, "dso")		  ? LEVEL_DSO
			   : level == LEVEL_TOP && is_epoch(name) ? LEVEL_EPOCH
								  : LEVEL_TOP;
	int fd;

	if (profile && below != LEVEL_TOP) {
		fd = openat(dir, name, OPEN_DIR);
		return fd < 0 ? err_set(e, errno, "%s: no directory of a profile: %s", name,
					strerror(errno))
			      : check_level(p, fd, below, e);
	}
	if ((profile && is_one_of(name, top_files)) ||
	    (level == LEVEL_KCORE && is_one_of(name, kcore_files)) ||
	    (level == LEVEL_DSO && is_build_id(name)))
		return check_file_at(p, dir, name, level == LEVEL_DSO, e);
	return err_set(e, EPERM, "%s: a profile has no such file", name);
}

/* Checks one directory of a profile and sets modes. Closes fd. */
static int check_level(const struct place *p, int fd, enum level level, struct err *e)
{
	cleanup_closedir DIR *list = fdopendir(fd);
	struct dirent *d;
	struct stat st;
	int ret = 0;

	if (!list) {
		ret = err_set(e, errno, "cannot read a directory: %s", strerror(errno));
		close(fd);
		return ret;
	}
	if (fchmod(dirfd(list), DIR_MODE) < 0 || fstat(dirfd(list), &st) < 0)
		return err_set(e, errno, "cannot set a directory's mode: %s", strerror(errno));
	ret = set_owner(p, dirfd(list), &st);
	if (ret)
		return err_set(e, -ret, "cannot set a directory's owner: %s", strerror(-ret));
	for (errno = 0; !ret && (d = readdir(list)); errno = 0)
		if (!is_dot(d->d_name))
			ret = check_entry(p, dirfd(list), level, d->d_name, e);
	return ret || !errno ? ret
			     : err_set(e, errno, "cannot read a directory: %s", strerror(errno));
}

/* -- removal -------------------------------------------------------------------------------- */

static int remove_at(const struct place *p, int dir, const char *name, unsigned int depth,
		     struct err *e);

static int remove_entries(const struct place *p, int fd, unsigned int depth, struct err *e)
{
	cleanup_closedir DIR *list = fdopendir(fd);
	struct dirent *d;
	int ret = 0;

	if (!list) {
		ret = err_set(e, errno, "cannot read a directory: %s", strerror(errno));
		close(fd);
		return ret;
	}
	for (errno = 0; !ret && (d = readdir(list)); errno = 0)
		if (!is_dot(d->d_name))
			ret = remove_at(p, dirfd(list), d->d_name, depth + 1, e);
	return ret || !errno ? ret
			     : err_set(e, errno, "cannot read a directory: %s", strerror(errno));
}

/* Removes the entry of this name, with everything below it. A missing one is not an error. */
static int remove_at(const struct place *p, int dir, const char *name, unsigned int depth,
		     struct err *e)
{
	struct stat st;
	int fd, ret;

	if (p->progress)
		p->progress(p->ctx);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_set(e, errno, "%s: %s", name, strerror(errno));
	if (!S_ISDIR(st.st_mode)) {
		if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
			return 0;
		return err_set(e, errno, "%s: cannot remove: %s", name, strerror(errno));
	}
	if (depth > MAX_DEPTH)
		return err_set(e, ELOOP, "%s: too many levels of directories to remove", name);
	fd = openat(dir, name, OPEN_DIR);
	if (fd < 0)
		return err_set(e, errno, "%s: cannot open: %s", name, strerror(errno));
	/*
	 * A profile that is only partly removed, because this process was killed, must not look
	 * like a profile.
	 */
	(void)unlinkat(fd, "data", 0);
	ret = remove_entries(p, fd, depth, e);
	if (!ret && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		ret = err_set(e, errno, "%s: cannot remove: %s", name, strerror(errno));
	return ret;
}

/* Removes the cache's own directory, if it is empty: rmdir(2) fails otherwise. */
static void remove_cache(const struct place *p)
{
	cleanup_close int up = openat(p->dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat own, st;

	if (up >= 0 && fstat(p->dir, &own) == 0 &&
	    fstatat(up, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == own.st_dev &&
	    st.st_ino == own.st_ino)
		(void)unlinkat(up, p->name, AT_REMOVEDIR);
}

int place_remove(const struct place *p, struct err *e)
{
	struct stat st;
	int ret;

	if (p->kind == PLACE_SNAPSHOT && p->file >= 0)
		return 0;
	if (fstatat(p->dir, p->tmp, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_set(e, errno, "%s: %s", p->tmp, strerror(errno));
	if (st.st_dev != p->dev || st.st_ino != p->ino)
		return err_set(e, EPERM, "%s: is another file than the run created", p->tmp);
	ret = remove_at(p, p->dir, p->tmp, 0, e);
	if (!ret && p->kind == PLACE_CACHE && *p->name)
		remove_cache(p);
	return ret;
}

/* -- the final name --------------------------------------------------------------------------- */

/*
 * Checks the existing entry of a final name: a file, a link, or an earlier profile. Returns 1 if
 * the name is free.
 */
static int check_replaceable(int dir, const char *name, struct err *e)
{
	cleanup_close int fd = -1;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 1 : err_set(e, errno, "%s: %s", name, strerror(errno));
	if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		return 0;
	if (!S_ISDIR(st.st_mode))
		return err_set(e, EEXIST, "%s: exists and is neither a file nor a directory", name);
	fd = openat(dir, name, OPEN_DIR);
	if (fd < 0)
		return err_set(e, errno, "%s: cannot open: %s", name, strerror(errno));
	return fstatat(fd, "data", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode)
		       ? err_set(e, EEXIST, "%s: is a directory but not a profile", name)
		       : 0;
}

static int move_at(const struct place *p, const char *from, const char *to, struct err *e)
{
	return renameat(p->dir, from, p->dir, to) == 0
		       ? 0
		       : err_set(e, errno, "%s: cannot rename %s to it: %s", to, from,
				 strerror(errno));
}

/*
 * Exchanges the temporary with the existing result. If the file system can exchange names, the name
 * always leads to one of the two complete results.
 */
static int place_exchange(const struct place *p, const char *old, struct err *e)
{
	int ret;

	if (renameat2(p->dir, p->tmp, p->dir, p->name, RENAME_EXCHANGE) == 0) {
		if (renameat2(p->dir, p->tmp, p->dir, old, RENAME_EXCHANGE) == 0)
			return remove_at(p, p->dir, p->tmp, 0, e);
		return move_at(p, p->tmp, old, e);
	}
	ret = remove_at(p, p->dir, old, 0, e);
	if (ret)
		return ret;
	ret = move_at(p, p->name, old, e);
	return ret ? ret : move_at(p, p->tmp, p->name, e);
}

static int place_merge(const struct place *p, int fd, struct err *e)
{
	const struct publish_merge m = { p->dir, p->uid, p->run, p->gid, p->progress, p->ctx };

	return publish_merge_cache(&m, fd, e);
}

/*
 * Publishes a complete file. linkat(2) replaces nothing, so an existing name is replaced by a
 * rename of another one.
 */
static int place_publish_snapshot(const struct place *p, struct err *e)
{
	cleanup_close int named = p->file < 0 ? place_open(p, e) : -1;
	int fd = p->file < 0 ? named : p->file, ret;
	char self[64];
	struct stat st;

	if (fd < 0)
		return fd;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (p->file >= 0 && linkat(AT_FDCWD, self, p->dir, p->tmp, AT_SYMLINK_FOLLOW) < 0)
		return err_set(e, errno, "%s: cannot give it a name: %s", p->name, strerror(errno));
	ret = check_file(p, fd, p->name, false, e);
	if (!ret && fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
		ret = err_set(e, EEXIST, "%s: exists and is no regular file", p->name);
	ret = ret ? ret : move_at(p, p->tmp, p->name, e);
	if (ret)
		(void)unlinkat(p->dir, p->tmp, 0);
	return ret;
}

static bool has_final_name(enum place_kind kind)
{
	return kind != PLACE_SCRATCH && kind != PLACE_STAGE && kind != PLACE_SOCKET;
}

int place_publish(const struct place *p, struct err *e)
{
	char old[sizeof(p->name) + 4];
	int fd, ret, taken;

	if (!has_final_name(p->kind))
		return err_set(e, EINVAL, "%s: has no final name", p->tmp);
	if (p->kind == PLACE_SNAPSHOT)
		return place_publish_snapshot(p, e);
	fd = place_open(p, e);
	if (fd < 0)
		return fd;
	if (p->kind == PLACE_CACHE)
		return place_merge(p, fd, e);
	if (p->kind == PLACE_PROFILE) {
		ret = check_level(p, fd, LEVEL_TOP, e);
	} else {
		ret = check_file(p, fd, p->tmp, false, e);
		close(fd);
	}
	if (ret)
		return ret;
	taken = check_replaceable(p->dir, p->name, e);
	if (taken == 1)
		return move_at(p, p->tmp, p->name, e);
	snprintf(old, sizeof(old), "%s.old", p->name);
	ret = taken ? taken : check_replaceable(p->dir, old, e);
	return ret < 0 ? ret : place_exchange(p, old, e);
}

/* -- entries of a stage ----------------------------------------------------------------------- */

static bool has_magic(int dir, const char *name)
{
	cleanup_close int fd = openat(dir, name, OPEN_FILE);
	char head[sizeof(FILE_MAGIC) - 1];

	return fd >= 0 && read(fd, head, sizeof(head)) == (ssize_t)sizeof(head) &&
	       !memcmp(head, FILE_MAGIC, sizeof(head));
}

/*
 * Checks that a file to be replaced is a profile: the run chooses this name while its guest runs,
 * and place_publish() would replace other files, too.
 */
static int check_is_profile(int dir, const char *name, struct err *e)
{
	cleanup_close int fd = -1;
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_set(e, errno, "%s: %s", name, strerror(errno));
	if (S_ISDIR(st.st_mode))
		fd = openat(dir, name, OPEN_DIR);
	if (S_ISDIR(st.st_mode) ? fd >= 0 && has_magic(fd, "data") : has_magic(dir, name))
		return 0;
	return err_set(e, EEXIST, "%s: exists and is not a profile; give another name", name);
}

/* Copies the path and finds its last component in the copy. Returns 0 or -EINVAL. */
static int split_path(char copy[PATH_MAX], const char *path, char **last, struct err *e)
{
	size_t len = strnlen(path, PATH_MAX);

	if (len == PATH_MAX)
		return err_set(e, EINVAL, "not the name of a result");
	for (const char *at = path; at; at = strchr(at, '/'), at += at != NULL) {
		if (!*at || *at == '/')
			return err_set(e, EINVAL, "not the name of a result");
		if (*at == '.')
			return err_set(e, EINVAL,
				       "%s: is hidden, or below a hidden directory, where a run "
				       "that is confined names no profile; give another name",
				       path);
	}
	memcpy(copy, path, len + 1);
	*last = strrchr(copy, '/');
	return 0;
}

static int open_beneath(int dir, const char *path)
{
	const struct open_how how = {
		.flags = OPEN_DIR,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd;

	do
		fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	while (fd < 0 && errno == EAGAIN); /* a concurrent rename */
	return fd < 0 ? -errno : fd;
}

static bool has_suffix(const char *name)
{
	const size_t len = strlen(name), suffix = sizeof(FILE_SUFFIX) - 1;

	return len > suffix && !strcmp(name + len - suffix, FILE_SUFFIX);
}

/* Determines the type of the entry `one`, which the run can no longer reach by name. */
static int check_what(struct place *one, struct err *e)
{
	struct stat st;

	if (fstatat(one->dir, one->tmp, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, errno, "%s: %s", one->name, strerror(errno));
	one->kind = S_ISDIR(st.st_mode) ? PLACE_PROFILE : PLACE_FILE;
	if (one->kind == PLACE_PROFILE)
		return 0;
	if (!has_magic(one->dir, one->tmp))
		return err_set(e, EPERM, "%s: is not a profile", one->name);
	/*
	 * The run still has the file open: other programs must not use it as a file of their own,
	 * such as a makefile.
	 */
	if (!has_suffix(one->name))
		return err_set(e, EINVAL,
			       "%s: a profile of one file needs a name that ends in " FILE_SUFFIX
			       " here; give another name",
			       one->name);
	return 0;
}

/* Moves the entry to a directory in which the run cannot rename anything, before it is checked. */
static int take_entry(const struct place *p, struct place *one, int to, struct err *e)
{
	char hidden[sizeof(one->tmp)];
	int ret;

	/* The stage's name is hidden, and unique to this run. */
	snprintf(hidden, sizeof(hidden), "%.200s-entry", p->tmp);
	ret = renameat2(one->dir, one->tmp, to, hidden, RENAME_NOREPLACE);
	if (ret < 0 && errno == EINVAL) /* the file system does not support the flag */
		ret = renameat(one->dir, one->tmp, to, hidden);
	if (ret < 0 && errno == EXDEV)
		return err_set(
			e, EXDEV,
			"%s: is on another file system than the directory that the run began in",
			one->name);
	if (ret < 0)
		return err_set(e, errno, "%s: cannot rename %s to it: %s", one->name, one->tmp,
			       strerror(errno));
	memcpy(one->tmp, hidden, sizeof(hidden));
	one->dir = to;
	return 0;
}

/*
 * Publishes the entry `one` in the directory `to`. After a failure one->dir and one->tmp give its
 * location.
 */
static int publish_entry(const struct place *p, struct place *one, int to, struct err *e)
{
	char old[sizeof(one->name) + 4];
	int ret;

	snprintf(old, sizeof(old), "%s.old", one->name);
	ret = check_is_profile(to, one->name, e);
	if (ret)
		return ret;
	ret = check_is_profile(to, old, e);
	if (ret)
		return ret;
	ret = take_entry(p, one, to, e);
	if (ret)
		return ret;
	ret = check_what(one, e);
	if (ret)
		return ret;
	ret = place_check(one, e);
	if (ret)
		return ret;
	/*
	 * The stage belonged to the user before it belonged to the run, so its entries belong to
	 * the user.
	 */
	one->uid = p->uid;
	one->gid = p->gid;
	return place_publish(one, e);
}

int place_publish_entry(const struct place *p, const char *entry, const char *path, struct err *e)
{
	cleanup_close int stage = -1, to = -1;
	struct place one = { .run = p->run, .file = -1, .progress = p->progress, .ctx = p->ctx };
	char copy[PATH_MAX], *last = NULL;
	struct err ignored = { 0 };
	const char *name;
	int ret;

	if (p->kind != PLACE_STAGE || strnlen(entry, sizeof(one.tmp)) > NAME_MAX ||
	    !is_component(entry))
		return err_set(e, EINVAL, "not the name of a result");
	memcpy(one.tmp, entry, strlen(entry) + 1);
	stage = place_open(p, e);
	if (stage < 0)
		return stage;
	one.dir = stage;
	ret = split_path(copy, path, &last, e);
	name = ret ? "" : last ? last + 1 : copy;
	if (strlen(name) + sizeof(".old") > sizeof(one.name))
		ret = err_set(e, ENAMETOOLONG, "%s: name too long", name);
	if (!ret) {
		memcpy(one.name, name, strlen(name) + 1);
		if (last)
			*last = 0;
		to = open_beneath(p->dir, last ? copy : ".");
		if (to < 0)
			ret = err_set(e, -to, "%s: cannot open its directory: %s", path,
				      strerror(-to));
	}
	ret = ret ? ret : publish_entry(p, &one, to, e);
	/* An entry without a name would use space until the end of the run. */
	if (ret)
		(void)remove_at(p, one.dir, one.tmp, 0, &ignored);
	return ret;
}
