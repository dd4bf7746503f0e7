/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/files/userfile.h"

#include "base/cleanup.h"
#include "profile/format/files/buildid_cache.h"
#include "symbolizer/program/userelf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* State of a search: the result so far, or the most specific failure if nothing was found. */
struct userfile_search {
	struct userfile *f;
	const uint8_t *id;
	unsigned int id_len;
	enum userfile_reason reason; /* MISSING until a file was found */
	struct err why;
};

int userfile_finder_init(struct userfile_finder *u, const struct userfile_options *opt,
			 struct err *e)
{
	struct userfile_finder x = { .opt = *opt, .root_fd = -1 };

	if (opt->guest_root) {
		x.root_fd = open(opt->guest_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (x.root_fd < 0)
			return err_set(e, errno,
				       "%s: cannot be used as the guest's root directory: %s",
				       opt->guest_root, strerror(errno));
	}
	if (!x.opt.system_debug)
		x.opt.system_debug = "/usr/lib/debug";
	if (!x.opt.cache)
		x.opt.cache = x.default_cache = buildid_default_dir();
	*u = x;
	return 0;
}

void userfile_finder_deinit(struct userfile_finder *u)
{
	if (u->root_fd >= 0)
		close(u->root_fd);
	free(u->default_cache);
	u->root_fd = -1;
	u->default_cache = NULL;
}

void userfile_close(struct userfile *f)
{
	file_map_close(&f->map);
	free(f->path);
	memset(f, 0, sizeof(*f));
}

static int map_fd(struct file_map *m, int fd, uint64_t max)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	if (st.st_size == 0)
		return -ENODATA;
	if ((uint64_t)st.st_size > max)
		return -EFBIG;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	*m = (struct file_map){ .data = p, .len = (size_t)st.st_size };
	return 0;
}

/* Records a failure unless a more specific one is recorded. */
static void remark(struct userfile_search *s, enum userfile_reason r, int code, const char *path,
		   const char *text)
{
	if (s->reason == USERFILE_MISMATCH || (s->reason == r && r != USERFILE_MISSING))
		return;
	s->reason = r;
	err_clear(&s->why);
	(void)err_set(&s->why, code, "%s: %s", path, text);
}

static void remark_mismatch(struct userfile_search *s, const char *path, const struct userelf *u)
{
	char want[BUILDID_HEX_MAX], have[BUILDID_HEX_MAX], text[160];

	buildid_hex(want, s->id, s->id_len);
	buildid_hex(have, u->build_id, u->build_id_len);
	snprintf(text, sizeof(text), "not the guest's file: build id %s, the guest's has %s",
		 u->build_id_len ? have : "none", want);
	remark(s, USERFILE_MISMATCH, ESTALE, path, text);
}

/* Returns true and fills s->f if the open file is the wanted one. Closes fd in any case. */
static bool try_fd(struct userfile_search *s, int fd, const char *path, enum userfile_place place)
{
	struct userelf *u;
	struct file_bytes bytes;
	struct file_source src;
	struct file_map map;
	struct err e = { 0 };
	bool same;
	int ret;

	if (fd < 0) {
		if (fd != -ENOENT && fd != -ENOTDIR)
			remark(s, USERFILE_UNREADABLE, EACCES, path, strerror(-fd));
		return false;
	}
	ret = map_fd(&map, fd, USERFILE_MAX_LEN);
	close(fd);
	if (ret < 0) {
		remark(s, USERFILE_UNREADABLE, EACCES, path, strerror(-ret));
		return false;
	}
	bytes = (struct file_bytes){ map.data, map.len };
	src = filepiece_source_of_bytes(&bytes);
	u = malloc(sizeof(*u));
	if (!u || userelf_open(u, path, &src, &e) < 0) {
		if (s->reason == USERFILE_MISSING) {
			s->reason = USERFILE_UNREADABLE;
			s->why = e;
			s->why.code = EACCES;
		}
		free(u);
		file_map_close(&map);
		return false;
	}
	same = s->id_len && u->build_id_len == s->id_len && !memcmp(u->build_id, s->id, s->id_len);
	if (s->id_len && !same)
		remark_mismatch(s, path, u);
	free(u);
	if (s->id_len && !same) {
		file_map_close(&map);
		return false;
	}
	*s->f = (struct userfile){
		.map = map, .path = strdup(path), .place = place, .verified = same
	};
	s->reason = same ? USERFILE_FOUND : USERFILE_UNVERIFIED;
	return true;
}

static bool try_root(struct userfile_search *s, const struct userfile_finder *u,
		     const char *guest_path)
{
	cleanup_free char *path = NULL;

	if (u->root_fd < 0 || guest_path[0] != '/')
		return false;
	if (asprintf(&path, "%s%s", u->opt.guest_root, guest_path) < 0) {
		path = NULL;
		return false;
	}
	return try_fd(s, userfile_open_in_root(u->root_fd, guest_path, u->opt.way), path,
		      USERFILE_IN_GUEST_ROOT);
}

/* Tries DIR/.build-id/xx/yyyySUFFIX. Symbolic links of the host may lead anywhere. */
static bool try_build_id(struct userfile_search *s, const char *dir, const char *suffix,
			 enum userfile_place place)
{
	cleanup_free char *path = NULL;
	char hex[BUILDID_HEX_MAX];
	int fd;

	if (!dir || !*dir || s->id_len < 2)
		return false;
	buildid_hex(hex, s->id, s->id_len);
	if (asprintf(&path, "%s/.build-id/%.2s/%s%s", dir, hex, hex + 2, suffix) < 0) {
		path = NULL;
		return false;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return try_fd(s, fd < 0 ? -errno : fd, path, place);
}

static int userfile_finish(struct userfile_search *s, struct userfile_finder *u, const char *what,
			   struct err *e)
{
	u->count[s->reason]++;
	switch (s->reason) {
	case USERFILE_FOUND:
	case USERFILE_UNVERIFIED:
		return 0;
	case USERFILE_MISSING:
		return err_set(e, ENOENT,
			       "%s: found neither below the guest's root directory nor "
			       "by its build id",
			       what);
	default:
		return err_set(e, s->why.code ? s->why.code : EACCES, "%s", s->why.text);
	}
}

int userfile_open(struct userfile *f, struct userfile_finder *u, const char *guest_path,
		  const uint8_t *id, unsigned int id_len, struct err *e)
{
	struct userfile_search s = {
		.f = f, .id = id, .id_len = id_len, .reason = USERFILE_MISSING
	};

	memset(f, 0, sizeof(*f));
	if (!try_root(&s, u, guest_path))
		(void)try_build_id(&s, u->opt.cache, "/elf", USERFILE_IN_CACHE);
	return userfile_finish(&s, u, guest_path, e);
}

int userfile_open_debug(struct userfile *f, struct userfile_finder *u, const uint8_t *id,
			unsigned int id_len, struct err *e)
{
	struct userfile_search s = {
		.f = f, .id = id, .id_len = id_len, .reason = USERFILE_MISSING
	};
	char hex[BUILDID_HEX_MAX], in_guest[128];
	bool found = false;

	memset(f, 0, sizeof(*f));
	buildid_hex(hex, id, id_len);
	for (unsigned int i = 0; i < USERFILE_MAX_DIRS && u->opt.debuginfo[i] && !found; i++)
		found = try_build_id(&s, u->opt.debuginfo[i], ".debug", USERFILE_IN_DEBUGINFO);
	if (!found && id_len >= 2) {
		snprintf(in_guest, sizeof(in_guest), "/usr/lib/debug/.build-id/%.2s/%s.debug", hex,
			 hex + 2);
		found = try_root(&s, u, in_guest);
	}
	if (!found)
		found = try_build_id(&s, u->opt.system_debug, ".debug", USERFILE_IN_SYSTEM_DEBUG);
	if (!found)
		(void)try_build_id(&s, u->opt.cache, "/debug", USERFILE_IN_CACHE);
	return userfile_finish(&s, u, hex, e);
}

int userfile_open_perfmap(struct userfile *f, struct userfile_finder *u, uint32_t pid,
			  struct err *e)
{
	cleanup_close int fd = -1;
	char name[48];
	struct stat st;
	int ret;

	memset(f, 0, sizeof(*f));
	snprintf(name, sizeof(name), "/tmp/perf-%u.map", pid);
	if (u->root_fd < 0)
		return err_set(e, ENOENT, "%s: the guest's root directory is not known", name);
	ret = fd = userfile_open_in_root(u->root_fd, name, u->opt.way);
	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_mtime < u->opt.not_before)
		return err_set(e, ESTALE,
			       "%s%s: it is older than this run, and not of this process",
			       u->opt.guest_root, name);
	if (fd >= 0)
		ret = map_fd(&f->map, fd, USERFILE_MAX_PERFMAP);
	if (ret < 0)
		return err_set(e, -ret, "%s%s: %s", u->opt.guest_root, name, strerror(-ret));
	if (asprintf(&f->path, "%s%s", u->opt.guest_root, name) < 0)
		f->path = NULL;
	f->place = USERFILE_IN_GUEST_ROOT;
	return 0;
}

/* -- a file below a directory that stands for "/", whatever links say ------------------------- */

/* The kernel's MAXSYMLINKS. */
#define MAX_LINKS 40u
/* Bytes for the remaining path, with its links replaced. */
#define MAX_REST (2u * PATH_MAX)
#define MAX_DEPTH 64u

/*
 * The open directories from the root to the current position. ".." returns to one of them, so
 * directories that are renamed meanwhile cannot lead it above the root.
 */
struct userfile_walk {
	int root;
	int dir[MAX_DEPTH];
	unsigned int depth;
	char rest[MAX_REST];
};

static int here(const struct userfile_walk *w)
{
	return w->depth ? w->dir[w->depth - 1] : w->root;
}

static void go_up(struct userfile_walk *w, unsigned int to)
{
	while (w->depth > to)
		close(w->dir[--w->depth]);
}

/* Prepends the link's text to the remaining path, which is empty or begins with '/'. */
static int userfile_root_follow(struct userfile_walk *w, int link)
{
	char text[PATH_MAX];
	ssize_t n = readlinkat(link, "", text, sizeof(text));
	size_t rest = strlen(w->rest);

	if (n <= 0 || (size_t)n >= sizeof(text))
		return n < 0 ? -errno : -ENAMETOOLONG;
	if ((size_t)n + rest + 1 > sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + n, w->rest, rest + 1);
	memcpy(w->rest, text, (size_t)n);
	if (text[0] == '/')
		go_up(w, 0);
	return 0;
}

/* Moves the next component of the path into name; returns false at the end. */
static bool next_name(struct userfile_walk *w, char name[NAME_MAX + 1], bool *too_long)
{
	size_t skip = strspn(w->rest, "/"), len = strcspn(w->rest + skip, "/");

	*too_long = len > NAME_MAX;
	if (len == 0 || *too_long)
		return false;
	memcpy(name, w->rest + skip, len);
	name[len] = 0;
	memmove(w->rest, w->rest + skip + len, strlen(w->rest + skip + len) + 1);
	return true;
}

/* Returns an O_PATH descriptor of the file that the path leads to, or -errno. */
static int walk_path(struct userfile_walk *w)
{
	cleanup_close int fd = -1;
	unsigned int links = 0;
	char name[NAME_MAX + 1];
	bool too_long;

	while (next_name(w, name, &too_long)) {
		struct stat st;
		int ret;

		if (!strcmp(name, "."))
			continue;
		if (!strcmp(name, "..")) {
			go_up(w, w->depth ? w->depth - 1 : 0);
			continue;
		}
		if (fd >= 0)
			close(cleanup_take_fd(&fd));
		fd = openat(here(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &st) < 0)
			return -errno;
		if (S_ISLNK(st.st_mode)) {
			if (++links > MAX_LINKS)
				return -ELOOP;
			ret = userfile_root_follow(w, fd);
			if (ret < 0)
				return ret;
		} else if (S_ISDIR(st.st_mode)) {
			if (w->depth == MAX_DEPTH)
				return -ENAMETOOLONG;
			w->dir[w->depth++] = cleanup_take_fd(&fd);
		} else {
			/* "file/" and "file/.." are not files. */
			return w->rest[0] ? -ENOTDIR : cleanup_take_fd(&fd);
		}
	}
	return too_long ? -ENAMETOOLONG : -EISDIR;
}

static int open_by_steps(int root_fd, const char *path)
{
	struct userfile_walk w = { .root = root_fd };
	int ret;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	strcpy(w.rest, path);
	ret = walk_path(&w);
	go_up(&w, 0);
	return ret;
}

static int open_at_once(int root_fd, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	long fd;

	/* EAGAIN: a directory below the root was renamed meanwhile; openat2(2) says to retry. */
	for (unsigned int try = 0; try < 8; try++) {
		fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

int userfile_open_in_root(int root_fd, const char *path, enum userfile_resolver way)
{
	int fd = way == USERFILE_BY_STEPS ? -ENOSYS : open_at_once(root_fd, path);
	char self[48];
	struct stat st;
	int ret = 0;

	/* EPERM: the answer of container runtimes' seccomp filters to unknown system calls. */
	if (fd == -ENOSYS || fd == -EPERM)
		fd = open_by_steps(root_fd, path);
	if (fd < 0)
		return fd;
	/* Opening a device or pipe may have effects: the descriptor so far is O_PATH. */
	if (fstat(fd, &st) < 0)
		ret = -errno;
	else if (!S_ISREG(st.st_mode))
		ret = S_ISDIR(st.st_mode) ? -EISDIR : -EACCES;
	if (ret == 0) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		ret = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (ret < 0)
			ret = -errno;
	}
	close(fd);
	return ret;
}
