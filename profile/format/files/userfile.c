/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/files/userfile.h"

#include "base/cleanup.h"
#include "profile/format/files/buildid_cache.h"
#include "symbolizer/program/userelf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* What one search has come to so far: the worst thing that was met, if nothing is found. */
struct search {
	struct userfile *f;
	const uint8_t *id;
	unsigned int id_len;
	enum userfile_reason reason; /* MISSING until something is there */
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

/* A reason replaces one that says less. */
static void remark(struct search *s, enum userfile_reason r, int code, const char *path,
		   const char *text)
{
	if (s->reason == USERFILE_MISMATCH || (s->reason == r && r != USERFILE_MISSING))
		return;
	s->reason = r;
	err_clear(&s->why);
	(void)err_set(&s->why, code, "%s: %s", path, text);
}

static void remark_mismatch(struct search *s, const char *path, const struct userelf *u)
{
	char want[BUILDID_HEX_MAX], have[BUILDID_HEX_MAX], text[160];

	buildid_hex(want, s->id, s->id_len);
	buildid_hex(have, u->build_id, u->build_id_len);
	snprintf(text, sizeof(text), "not the guest's file: build id %s, the guest's has %s",
		 u->build_id_len ? have : "none", want);
	remark(s, USERFILE_MISMATCH, ESTALE, path, text);
}

/* Is this open file the one? Takes fd. true: s->f has it. */
static bool try_fd(struct search *s, int fd, const char *path, enum userfile_place place)
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
	src = file_source_of_bytes(&bytes);
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

static bool try_root(struct search *s, const struct userfile_finder *u, const char *guest_path)
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

/* DIR/.build-id/xx/yyyySUFFIX; links on the host may lead anywhere. */
static bool try_build_id(struct search *s, const char *dir, const char *suffix,
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

static int userfile_finish(struct search *s, struct userfile_finder *u, const char *what,
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
	struct search s = { .f = f, .id = id, .id_len = id_len, .reason = USERFILE_MISSING };

	memset(f, 0, sizeof(*f));
	if (!try_root(&s, u, guest_path))
		(void)try_build_id(&s, u->opt.cache, "/elf", USERFILE_IN_CACHE);
	return userfile_finish(&s, u, guest_path, e);
}

int userfile_open_debug(struct userfile *f, struct userfile_finder *u, const uint8_t *id,
			unsigned int id_len, struct err *e)
{
	struct search s = { .f = f, .id = id, .id_len = id_len, .reason = USERFILE_MISSING };
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
		return err_set(e, ESTALE, "%s%s: it is older than this run, and not of this process",
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
