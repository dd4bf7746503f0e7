/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/countfile.h"

#include "base/cursor.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define STATS (sizeof(struct callstacks_stats) / sizeof(uint64_t))
#define HEAD (24 + 8 * STATS)
#define NODE 32u
#define COUNT 16u
#define BLOCK 10u /* minimum bytes of a block */
#define OUT 65536u

_Static_assert(STATS == 10, "the grammar above says how many");

/* -- writing -------------------------------------------------------------------------------------- */

struct countfile_out {
	int fd, ret;
	size_t n;
	uint8_t bytes[OUT];
};

static void countfile_flush(struct countfile_out *o)
{
	size_t done = 0;

	while (!o->ret && done < o->n) {
		ssize_t n = write(o->fd, o->bytes + done, o->n - done);

		if (n > 0)
			done += (size_t)n;
		else if (errno != EINTR)
			o->ret = errno ? -errno : -EIO;
	}
	o->n = 0;
}

static void countfile_put(struct countfile_out *o, const void *p, size_t n)
{
	if (n > OUT - o->n)
		countfile_flush(o);
	memcpy(o->bytes + o->n, p, n);
	o->n += n;
}

static void countfile_put_block(struct countfile_out *o, const struct callstacks_block *b)
{
	static const uint16_t first = 0;

	countfile_put(o, &b->pc, sizeof(b->pc));
	countfile_put(o, &b->insns, sizeof(b->insns));
	if (b->insns)
		countfile_put(o, b->off ? b->off : &first,
			      (b->off ? b->insns : 1u) * sizeof(first));
}

int countfile_write(int fd, const struct callstacks *c)
{
	const struct calltree *t = callstacks_tree(c);
	struct callstacks_stats stats;
	struct countfile_out *o = calloc(1, sizeof(*o));
	uint64_t magic = COUNTFILE_MAGIC;
	uint32_t head[4];
	int ret;

	if (!o)
		return -ENOMEM;
	o->fd = fd;
	callstacks_stats(c, &stats);
	head[0] = t->nnodes;
	head[1] = (uint32_t)stats.blocks;
	head[2] = t->ncounts;
	head[3] = 0;
	countfile_put(o, &magic, sizeof(magic));
	countfile_put(o, head, sizeof(head));
	countfile_put(o, &stats, sizeof(stats));
	for (uint32_t i = 0; i < t->nnodes; i++) {
		const struct calltree_node *n = &t->node[i];

		countfile_put(o, n, NODE);
	}
	for (uint32_t i = 0; i < head[1]; i++)
		countfile_put_block(o, callstacks_block_at(c, i));
	for (uint32_t i = 0; i < t->ncounts; i++)
		countfile_put(o, &t->count[i], COUNT);
	countfile_flush(o);
	ret = o->ret;
	free(o);
	return ret;
}

_Static_assert(sizeof(struct calltree_node) == NODE && sizeof(struct calltree_count) == COUNT,
	       "written as they lie");

/* -- reading -------------------------------------------------------------------------------------- */

static int countfile_bad(struct err *e, const char *what, uint32_t at)
{
	return err_set(e, EINVAL, "exact counts: %s %u is damaged", what, at);
}

static int countfile_nodes(struct countfile *f, struct cursor *c, struct err *e)
{
	for (uint32_t i = 0; i < f->nnodes; i++) {
		struct calltree_node *n = &f->node[i];

		n->parent = cursor_u32(c);
		n->kind = cursor_u32(c);
		n->ret = cursor_u64(c);
		n->entry = cursor_u64(c);
		n->calls = cursor_u64(c);
		if (c->bad || n->kind >= CALLTREE_KINDS ||
		    (n->parent != CALLTREE_NONE && n->parent >= i))
			return countfile_bad(e, "node", i);
	}
	return 0;
}

static int countfile_blocks(struct countfile *f, struct cursor *c, struct err *e)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < f->nblocks; i++) {
		struct countfile_block *b = &f->block[i];

		b->pc = cursor_u64(c);
		b->insns = cursor_u16(c);
		b->off = used;
		if (b->insns > COUNTFILE_MAX_INSNS)
			return countfile_bad(e, "block", i);
		/* Each offset consumes 2 bytes of the file, so `off` has room for all of them. */
		for (uint16_t k = 0; k < b->insns && !c->bad; k++)
			f->off[used++] = cursor_u16(c);
		if (c->bad)
			return countfile_bad(e, "block", i);
	}
	return 0;
}

static int countfile_counts(struct countfile *f, struct cursor *c, struct err *e)
{
	for (uint32_t i = 0; i < f->ncounts; i++) {
		struct calltree_count *x = &f->count[i];

		x->node = cursor_u32(c);
		x->block = cursor_u32(c);
		x->times = cursor_u64(c);
		if (c->bad || x->node >= f->nnodes || x->block >= f->nblocks ||
		    x->times > UINT64_MAX / 2 / COUNTFILE_MAX_INSNS)
			return countfile_bad(e, "count", i);
	}
	return c->pos == c->len ? 0 : countfile_bad(e, "the end behind count", f->ncounts);
}

int countfile_parse(struct countfile *out, const void *data, size_t len, struct err *e)
{
	struct countfile f = { 0 };
	struct cursor c;
	uint64_t stats[STATS];
	int ret;

	cursor_init(&c, data, len);
	if (cursor_u64(&c) != COUNTFILE_MAGIC)
		return err_set(e, EINVAL, "exact counts: there are none");
	f.nnodes = cursor_u32(&c);
	f.nblocks = cursor_u32(&c);
	f.ncounts = cursor_u32(&c);
	(void)cursor_u32(&c);
	for (unsigned int i = 0; i < STATS; i++)
		stats[i] = cursor_u64(&c);
	memcpy(&f.stats, stats, sizeof(stats));
	/* Damaged numbers must not request more memory than the file has bytes for. */
	if (c.bad ||
	    (uint64_t)f.nnodes * NODE + (uint64_t)f.nblocks * BLOCK + (uint64_t)f.ncounts * COUNT >
		    len - HEAD)
		return err_set(e, EINVAL, "exact counts: they are cut off");
	f.node = calloc(f.nnodes + 1u, sizeof(*f.node));
	f.block = calloc(f.nblocks + 1u, sizeof(*f.block));
	f.count = calloc(f.ncounts + 1u, sizeof(*f.count));
	f.off = calloc(len / sizeof(*f.off) + 1, sizeof(*f.off));
	ret = f.node && f.block && f.count && f.off ? 0 : err_nomem(e);
	ret = ret ? ret : countfile_nodes(&f, &c, e);
	ret = ret ? ret : countfile_blocks(&f, &c, e);
	ret = ret ? ret : countfile_counts(&f, &c, e);
	if (ret)
		countfile_deinit(&f);
	else
		*out = f;
	return ret;
}

void countfile_deinit(struct countfile *f)
{
	free(f->node);
	free(f->block);
	free(f->count);
	free(f->off);
	*f = (struct countfile){ 0 };
}
