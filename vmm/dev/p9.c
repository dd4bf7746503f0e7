/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/p9.h"

#include "base/cleanup.h"
#include "vmm/dev/p9_dir.h"
#include "vmm/dev/p9_file.h"
#include "vmm/dev/p9_session.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* -- bytes ------------------------------------------------------------------------------ */

void p9_put(struct p9_out *o, const void *src, size_t len)
{
	if (len > o->cap - o->len) {
		o->full = true;
		return;
	}
	memcpy(o->data + o->len, src, len);
	o->len += len;
}

void p9_put8(struct p9_out *o, uint8_t v)
{
	p9_put(o, &v, sizeof(v));
}

void p9_put16(struct p9_out *o, uint16_t v)
{
	p9_put(o, &v, sizeof(v));
}

void p9_put32(struct p9_out *o, uint32_t v)
{
	p9_put(o, &v, sizeof(v));
}

void p9_put64(struct p9_out *o, uint64_t v)
{
	p9_put(o, &v, sizeof(v));
}

void p9_put_string(struct p9_out *o, const char *s, size_t len)
{
	p9_put16(o, (uint16_t)len);
	p9_put(o, s, len);
}

/* Files below a mount point may have inode numbers of other files. */
uint64_t p9_path(const struct p9 *p, dev_t dev, ino_t ino)
{
	return dev == p->dev ? ino : ino ^ (uint64_t)dev * UINT64_C(0x9e3779b97f4a7c15);
}

void p9_put_qid(const struct p9 *p, struct p9_out *o, const struct stat *st)
{
	/* QTDIR, QTSYMLINK, QTFILE */
	p9_put8(o, S_ISDIR(st->st_mode) ? 0x80 : S_ISLNK(st->st_mode) ? 0x02 : 0);
	p9_put32(o, 0);
	p9_put64(o, p9_path(p, st->st_dev, st->st_ino));
}

int p9_get_string(struct cursor *c, char *s, size_t cap)
{
	uint16_t len = cursor_u16(c);
	const uint8_t *from = cursor_bytes(c, len);

	if (!from || memchr(from, 0, len))
		return -EINVAL;
	if (len >= cap)
		return -ENAMETOOLONG;
	memcpy(s, from, len);
	s[len] = 0;
	return 0;
}

int p9_get_name(struct cursor *c, char s[P9_NAME_MAX + 1])
{
	int ret = p9_get_string(c, s, P9_NAME_MAX + 1);

	if (!ret && (!*s || strchr(s, '/') || !strcmp(s, ".") || !strcmp(s, "..")))
		ret = -EINVAL;
	return ret;
}

/* -- nodes and fids ---------------------------------------------------------------------- */

int p9_open_beneath(int dir, const char *name, uint64_t flags, uint32_t mode)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC | O_NOFOLLOW,
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	/* With O_PATH and O_NOFOLLOW a link at the end is opened itself: openat2(2). */
	do
		fd = syscall(SYS_openat2, dir, name, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

int p9_open_again(const struct p9 *p, int fd, int flags)
{
	char number[16];
	int ret;

	snprintf(number, sizeof(number), "%d", fd);
	ret = openat(p->proc, number, flags | O_CLOEXEC | O_NOCTTY);
	return ret < 0 ? -errno : ret;
}

void p9_link_of(const struct p9 *p, int fd, char *path, size_t cap)
{
	char number[16];
	ssize_t n;

	snprintf(number, sizeof(number), "%d", fd);
	n = readlinkat(p->proc, number, path, cap - 1);
	path[n > 0 ? n : 0] = '\0';
}

struct p9_node *p9_node_ref(struct p9_node *n)
{
	n->refs++;
	return n;
}

void p9_node_put(struct p9_node *n)
{
	while (n && --n->refs == 0) {
		struct p9_node *parent = n->parent;

		n->p9->nfiles--;
		close(n->fd);
		free(n);
		n = parent;
	}
}

int p9_files_left(const struct p9 *p, unsigned int n)
{
	return p->nfiles + n > p->max_files ? -EMFILE : 0;
}

struct p9_node *p9_node_new(struct p9 *p, struct p9_node *parent, int fd)
{
	struct p9_node *n = calloc(1, sizeof(*n));

	if (!n) {
		close(fd);
		return NULL;
	}
	*n = (struct p9_node){ .p9 = p, .fd = fd, .refs = 1 };
	p->nfiles++;
	n->parent = parent ? p9_node_ref(parent) : NULL;
	return n;
}

struct p9_fid *p9_find(struct p9 *p, uint32_t id)
{
	struct p9_fid *f = p->fid[id % P9_BUCKETS];

	while (f && f->id != id)
		f = f->next;
	return f;
}

int p9_fid_add(struct p9 *p, uint32_t id, struct p9_node *node, struct p9_fid **out)
{
	struct p9_fid *f;

	if (p9_find(p, id))
		return -EINVAL;
	if (p->nfids == P9_MAX_FIDS)
		return -EMFILE;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	*f = (struct p9_fid){ .id = id, .node = node, .fd = -1, .next = p->fid[id % P9_BUCKETS] };
	p->fid[id % P9_BUCKETS] = f;
	p->nfids++;
	if (out)
		*out = f;
	return 0;
}

void p9_fid_remove(struct p9 *p, struct p9_fid *f)
{
	struct p9_fid **at = &p->fid[f->id % P9_BUCKETS];

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	p->nfids--;
	if (f->dir || f->fd >= 0)
		p->nfiles--;
	if (f->dir)
		closedir(f->dir);
	if (f->fd >= 0)
		close(f->fd);
	p9_node_put(f->node);
	free(f);
}

void p9_reset(struct p9 *p)
{
	for (unsigned int i = 0; i < P9_BUCKETS; i++)
		while (p->fid[i])
			p9_fid_remove(p, p->fid[i]);
	p->msize = P9_MSIZE;
}

int p9_create(struct p9 **out, const struct p9_share *share, struct err *e)
{
	const char *shown = share->shown ? share->shown : share->dir;
	int proc = share->proc > 0 ? share->proc
				   : open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = open(share->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct p9 *p = calloc(1, sizeof(*p));
	struct stat st;

	if (fd < 0 || !p || fstat(fd, &st) < 0) {
		int error = p ? errno : ENOMEM;

		if (fd >= 0)
			close(fd);
		if (proc >= 0)
			close(proc);
		free(p);
		return err_set(e, error, "%.200s: %s", shown, strerror(error));
	}
	p->proc = proc;
	snprintf(p->shown, sizeof(p->shown), "%s", shown);
	p->root = p9_node_new(p, NULL, fd);
	if (!p->root) {
		close(proc);
		free(p);
		return err_nomem(e);
	}
	p->dev = st.st_dev;
	p->read_only = share->read_only;
	p->msize = P9_MSIZE;
	p->max_files = share->max_files < P9_MAX_FILES ? share->max_files : P9_MAX_FILES;
	*out = p;
	return 0;
}

void p9_destroy(struct p9 *p)
{
	if (!p)
		return;
	p9_reset(p);
	p9_node_put(p->root);
	if (p->proc >= 0)
		close(p->proc);
	free(p);
}

struct p9_stats p9_stats(const struct p9 *p)
{
	return p->stats;
}

/* -- requests ---------------------------------------------------------------------------- */

static p9_request *handler(uint8_t type)
{
	switch (type) {
	case P9_TVERSION:
		return p9_do_version;
	case P9_TATTACH:
		return p9_do_attach;
	case P9_TFLUSH:
		return p9_do_flush;
	case P9_TWALK:
		return p9_do_walk;
	case P9_TCLUNK:
		return p9_do_clunk;
	case P9_TSTATFS:
		return p9_do_statfs;
	case P9_TLOPEN:
		return p9_do_lopen;
	case P9_TREAD:
		return p9_do_read;
	case P9_TWRITE:
		return p9_do_write;
	case P9_TGETATTR:
		return p9_do_getattr;
	case P9_TSETATTR:
		return p9_do_setattr;
	case P9_TFSYNC:
		return p9_do_fsync;
	case P9_TLOCK:
		return p9_do_lock;
	case P9_TGETLOCK:
		return p9_do_getlock;
	case P9_TREADLINK:
		return p9_do_readlink;
	case P9_TLCREATE:
		return p9_do_lcreate;
	case P9_TMKDIR:
		return p9_do_mkdir;
	case P9_TSYMLINK:
		return p9_do_symlink;
	case P9_TUNLINKAT:
		return p9_do_unlinkat;
	case P9_TRENAMEAT:
		return p9_do_renameat;
	case P9_TREADDIR:
		return p9_do_readdir;
	default:
		return NULL;
	}
}

/* Returns whether a request changes the share. (lopen and setattr check this themselves.) */
static bool changes(uint8_t type)
{
	return type == P9_TWRITE || type == P9_TSETATTR || type == P9_TLCREATE ||
	       type == P9_TMKDIR || type == P9_TSYMLINK || type == P9_TUNLINKAT ||
	       type == P9_TRENAMEAT;
}

size_t p9_error(const uint8_t *request, size_t len, uint32_t error, uint8_t answer[P9_ERROR_LEN])
{
	const uint32_t size = P9_ERROR_LEN;

	if (len < P9_HEADER)
		return 0;
	memcpy(answer, &size, sizeof(size));
	answer[4] = P9_RLERROR;
	memcpy(answer + 5, request + 5, sizeof(uint16_t));
	memcpy(answer + P9_HEADER, &error, sizeof(error));
	return size;
}

size_t p9_handle(struct p9 *p, const uint8_t *request, size_t len, uint8_t *reply, size_t cap)
{
	struct p9_out o = { .data = reply, .len = P9_HEADER, .cap = cap };
	struct cursor c;
	uint32_t size;
	uint8_t type;
	uint16_t tag;
	p9_request *f;
	int ret;

	cursor_init(&c, request, len);
	size = cursor_u32(&c);
	type = cursor_u8(&c);
	tag = cursor_u16(&c);
	if (c.bad || cap < P9_ERROR_LEN)
		return 0;
	p->stats.requests++;
	/* The message may be shorter than its carrier, but never longer. */
	if (size < len)
		c.len = size < P9_HEADER ? P9_HEADER : size;
	if (cap > p->msize)
		o.cap = p->msize;
	f = handler(type);
	if (size > len || size < P9_HEADER)
		ret = -EINVAL;
	else if (!f)
		ret = -EOPNOTSUPP;
	else
		ret = p->read_only && changes(type) ? -EROFS : f(p, &c, &o);
	if (!ret && (c.bad || o.full))
		ret = c.bad ? -EINVAL : -EMSGSIZE;
	if (ret) {
		p->stats.errors++;
		return p9_error(request, len, (uint32_t)-ret, reply);
	}
	size = (uint32_t)o.len;
	memcpy(reply, &size, sizeof(size));
	reply[4] = type + 1;
	memcpy(reply + 5, &tag, sizeof(tag));
	return o.len;
}
