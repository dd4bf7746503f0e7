/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fids of a session for a snapshot:
 *
 * 	u32 msize, u32 n, then n times: u32 fid, u8 kind and u64 number of the file (as in its
 * 	qid), u16 length and bytes of its path below the shared directory ("": itself)
 *
 * On restore a path is walked again, one name at a time as the guest would. The descriptor of an
 * open file is not a state that could be saved.
 */
#include "vmm/dev/p9_state.h"

#include "vmm/dev/p9_session.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the path of a node below the root, whose path is `root`; NULL: it has none any more. */
static const char *below(const struct p9_node *n, const char *root, char path[PATH_MAX])
{
	size_t len = strlen(root);
	struct stat st;

	p9_link_of(n->p9, n->fd, path, PATH_MAX);
	/* A removed file or directory has no links left. */
	if (fstat(n->fd, &st) < 0 || !st.st_nlink || strncmp(path, root, len))
		return NULL;
	if (path[len] == '\0' || !strcmp(root, "/"))
		return path + len;
	return path[len] == '/' ? path + len + 1 : NULL;
}

static int save_fid(const struct p9 *p, const struct p9_fid *f, const char *root, struct buf *out,
		    struct err *e)
{
	char path[PATH_MAX];
	const char *name = below(f->node, root, path);
	uint8_t qid[P9_QID];
	struct p9_out o = { .data = qid, .cap = sizeof(qid) };
	struct stat st;

	if (!name || fstat(f->node->fd, &st) < 0)
		return err_set(e, ENOTSUP,
			       "%.200s: the guest uses a removed file of this share, which cannot "
			       "be saved",
			       p->shown);
	if (f->fd >= 0 || f->dir)
		return err_set(e, ENOTSUP,
			       "%.200s: the guest has '%.200s' of this share open, which a "
			       "snapshot cannot store: close it before the marker",
			       p->shown, *name ? name : ".");
	p9_put_qid(p, &o, &st);
	buf_u32(out, f->id);
	buf_u8(out, qid[0]);
	buf_add(out, qid + P9_QID - sizeof(uint64_t), sizeof(uint64_t));
	buf_u16(out, (uint16_t)strlen(name));
	buf_add(out, name, strlen(name));
	return 0;
}

int p9_save(const struct p9 *p, struct buf *out, struct err *e)
{
	char root[PATH_MAX];
	int ret = 0;

	p9_link_of(p, p->root->fd, root, sizeof(root));
	buf_u32(out, p->msize);
	buf_u32(out, p->nfids);
	for (unsigned int i = 0; i < P9_BUCKETS; i++)
		for (const struct p9_fid *f = p->fid[i]; !ret && f; f = f->next)
			ret = save_fid(p, f, root, out, e);
	return ret;
}

/* Walks from the root, by names that the guest could have used. Stores a reference in *out. */
static int p9_state_walk(struct p9 *p, char *path, struct p9_node **out)
{
	struct p9_node *at = p9_node_ref(p->root);
	char *rest = *path ? path : NULL;

	for (const char *name; (name = strsep(&rest, "/"));) {
		struct p9_node *next;
		int ret = !*name || !strcmp(name, ".") || !strcmp(name, "..")
				  ? -EINVAL
				  : p9_step(at, name, &next);
		p9_node_put(at);
		if (ret)
			return ret;
		at = next;
	}
	*out = at;
	return 0;
}

static int restore_fid(struct p9 *p, struct cursor *in, struct err *e)
{
	uint32_t id = cursor_u32(in);
	uint8_t kind = cursor_u8(in), qid[P9_QID] = { 0 };
	uint64_t number = cursor_u64(in), now;
	struct p9_out o = { .data = qid, .cap = sizeof(qid) };
	char path[PATH_MAX], whole[PATH_MAX];
	struct p9_node *n;
	struct stat st;
	int ret = p9_get_string(in, path, sizeof(path));

	if (ret || in->bad)
		return err_set(e, EINVAL, "the snapshot's data of a share are damaged");
	strcpy(whole, path);
	ret = p9_state_walk(p, path, &n);
	if (ret)
		return err_set(e, -ret, "the snapshot's share has no '%.200s' any more: %s", whole,
			       strerror(-ret));
	if (fstat(n->fd, &st) == 0)
		p9_put_qid(p, &o, &st);
	memcpy(&now, qid + P9_QID - sizeof(now), sizeof(now));
	if (o.len != P9_QID || qid[0] != kind || now != number)
		ret = err_set(e, ESTALE,
			      "'%.200s' of the snapshot's share is another file now than when it "
			      "was saved",
			      *whole ? whole : ".");
	else if (p9_fid_add(p, id, n, NULL) < 0)
		ret = err_set(e, EINVAL, "the snapshot's data of a share are damaged (fid %u)", id);
	if (ret)
		p9_node_put(n);
	return ret;
}

int p9_restore(struct p9 *p, struct cursor *in, struct err *e)
{
	uint32_t msize = cursor_u32(in), n = cursor_u32(in);
	int ret = 0;

	p9_reset(p);
	if (in->bad || msize < P9_MSIZE_MIN || msize > P9_MSIZE || n > P9_MAX_FIDS)
		return err_set(e, EINVAL, "the snapshot's data of a share are damaged");
	p->msize = msize;
	while (!ret && n--)
		ret = restore_fid(p, in, e);
	if (ret)
		p9_reset(p);
	return ret;
}
