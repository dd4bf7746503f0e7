/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handlers of requests about the session and about walks. */
#include "vmm/dev/p9_session.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#define VERSION "9P2000.L"
#define V9FS_MAGIC 0x01021997u /* linux/magic.h */

int p9_do_version(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	uint32_t msize = cursor_u32(c);
	char version[32];
	int ret = p9_get_string(c, version, sizeof(version));
	const char *agreed = !ret && !strcmp(version, VERSION) ? VERSION : "unknown";

	if (ret == -EINVAL || msize < P9_MSIZE_MIN)
		return -EINVAL;
	p9_reset(p);
	p->msize = msize < P9_MSIZE ? msize : P9_MSIZE;
	p9_put32(o, p->msize);
	p9_put_string(o, agreed, strlen(agreed));
	return 0;
}

static int put_node_qid(const struct p9 *p, const struct p9_node *n, struct p9_out *o)
{
	struct stat st;

	if (fstat(n->fd, &st) < 0)
		return -errno;
	p9_put_qid(p, o, &st);
	return 0;
}

int p9_do_attach(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	uint32_t id = cursor_u32(c);
	int ret;

	/* afid, names and a user number are ignored: all get one directory. */
	if (c->bad)
		return -EINVAL;
	ret = put_node_qid(p, p->root, o);
	if (ret)
		return ret;
	ret = p9_fid_add(p, id, p->root, NULL);
	if (ret)
		return ret;
	p9_node_ref(p->root);
	return 0;
}

/* Does nothing: each request is complete before the next one is taken. */
int p9_do_flush(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	(void)p;
	(void)o;
	cursor_u16(c);
	return 0;
}

int p9_do_clunk(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	struct p9_fid *f = p9_find(p, cursor_u32(c));

	(void)o;
	if (!f || c->bad)
		return -EBADF;
	p9_fid_remove(p, f);
	return 0;
}

int p9_step(struct p9_node *from, const char *name, struct p9_node **out)
{
	int fd;

	if (!strcmp(name, "..")) {
		*out = p9_node_ref(from->parent ? from->parent : from);
		return 0;
	}
	if (p9_files_left(from->p9, 1))
		return -EMFILE;
	fd = p9_open_beneath(from->fd, name, O_PATH, 0);
	if (fd < 0)
		return fd;
	*out = p9_node_new(from->p9, from, fd);
	return *out ? 0 : -ENOMEM;
}

static int walk_names(struct p9 *p, struct cursor *c, unsigned int n, struct p9_node **at,
		      struct p9_out *o, unsigned int *walked)
{
	for (*walked = 0; *walked < n; (*walked)++) {
		char name[P9_NAME_MAX + 1];
		struct p9_node *next;
		int ret = p9_get_string(c, name, sizeof(name));

		if (!ret && (!*name || strchr(name, '/') || !strcmp(name, ".")))
			ret = -EINVAL;
		ret = ret ? ret : p9_step(*at, name, &next);
		if (ret)
			return ret;
		p9_node_put(*at);
		*at = next;
		ret = put_node_qid(p, next, o);
		if (ret)
			return ret;
	}
	return 0;
}

int p9_do_walk(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	struct p9_fid *f = p9_find(p, cursor_u32(c));
	uint32_t new_id = cursor_u32(c);
	unsigned int n = cursor_u16(c), walked = 0;
	size_t count_at = o->len;
	struct p9_node *at;
	int ret;

	if (c->bad || n > P9_MAX_WALK)
		return -EINVAL;
	if (!f)
		return -EBADF;
	at = p9_node_ref(f->node);
	p9_put16(o, 0);
	ret = walk_names(p, c, n, &at, o, &walked);
	if (o->full)
		ret = ret ? ret : -EMSGSIZE;
	if (ret == 0 && new_id == f->id && n) {
		/* The fid itself moves; an open fid must not. */
		ret = f->fd >= 0 || f->dir ? -EINVAL : 0;
		if (!ret) {
			p9_node_put(f->node);
			f->node = p9_node_ref(at);
		}
	} else if (ret == 0 && new_id != f->id) {
		ret = p9_fid_add(p, new_id, at, NULL);
		if (!ret)
			p9_node_ref(at);
	}
	p9_node_put(at);
	/* A partial walk succeeds with the names walked so far, and creates no fid (9P, "walk"). */
	if (ret && walked && walked < n && ret != -EMSGSIZE && !o->full)
		ret = 0;
	if (!ret) {
		uint16_t count = (uint16_t)walked;

		memcpy(o->data + count_at, &count, sizeof(count));
	}
	return ret;
}

int p9_do_statfs(struct p9 *p, struct cursor *c, struct p9_out *o)
{
	struct p9_fid *f = p9_find(p, cursor_u32(c));
	struct statfs s;

	if (!f)
		return -EBADF;
	if (fstatfs(f->node->fd, &s) < 0)
		return -errno;
	p9_put32(o, V9FS_MAGIC);
	p9_put32(o, (uint32_t)s.f_bsize);
	p9_put64(o, s.f_blocks);
	p9_put64(o, s.f_bfree);
	p9_put64(o, s.f_bavail);
	p9_put64(o, s.f_files);
	p9_put64(o, s.f_ffree);
	p9_put64(o, 0);
	p9_put32(o, P9_NAME_MAX);
	return 0;
}
