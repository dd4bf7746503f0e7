/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/tables/memagg.h"

#include "base/cleanup.h"
#include "symbolizer/core/demangle.h"
#include "profile/analyse/tables/memagg_pages.h"
#include "profile/format/names/reader.h"
#include "base/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_HALF (UINT64_C(1) << 63)

struct memagg_func {
	const struct symbol *symbol; /* NULL: all code of the DSO without a name */
	const char *dso;
	bool kernel;
};

enum { SPACE_KERNEL, SPACE_USER, SPACE_DEVICE };

/* Accesses that agree in all these members are summed up. */
struct cell_key {
	uint32_t func;
	int16_t node;
	uint8_t code, space; /* code: a reference of the instruction itself */
	uint8_t region, access, guest_shift, host_shift;
};

struct cell {
	struct cell_key key;
	uint64_t weight, count;
};

struct memagg_inside {
	struct reader in;
	struct display_names display;
	struct table func, cell;
	struct memagg_pages pages;
};

/* -- functions --------------------------------------------------------------------------- */

static bool same_func(const void *a, const void *b, const void *ctx)
{
	const struct memagg_func *x = a, *y = b;

	(void)ctx;
	return x->symbol == y->symbol && x->dso == y->dso && x->kernel == y->kernel;
}

static int func_of(struct memagg_inside *in, const struct perfdata_record *r, uint32_t *out,
		   struct err *e)
{
	struct memagg_func f = { .kernel = r->kernel };
	struct name name;
	bool fresh;
	int ret;

	names_lookup(in->in.names, r->pid, r->kernel, r->sample.ip, &name);
	f.symbol = name.symbol;
	f.dso = name.dso;
	ret = table_add(&in->func, table_mix((uintptr_t)f.symbol, (uintptr_t)f.dso + f.kernel), &f,
			out, &fresh);
	return ret ? err_nomem(e) : 0;
}

/* -- samples ----------------------------------------------------------------------------- */

static bool same_cell(const void *a, const void *b, const void *ctx)
{
	const struct cell_key *x = &((const struct cell *)a)->key;
	const struct cell_key *y = &((const struct cell *)b)->key;

	(void)ctx;
	return x->func == y->func && x->node == y->node && x->code == y->code &&
	       x->space == y->space && x->region == y->region && x->access == y->access &&
	       x->guest_shift == y->guest_shift && x->host_shift == y->host_shift;
}

/*
 * Returns the space by the page's rights; for unmapped addresses by the half of the address space.
 */
static uint8_t space_of(const struct mem_ref *r)
{
	if (r->flags & MEM_FLAG_DEVICE)
		return SPACE_DEVICE;
	if (r->status == MEM_OK)
		return r->flags & MEM_FLAG_USER ? SPACE_USER : SPACE_KERNEL;
	return r->va & KERNEL_HALF ? SPACE_KERNEL : SPACE_USER;
}

static int add_cell(struct memagg_inside *in, uint32_t func, const struct mem_ref *r, bool code,
		    uint64_t weight, struct err *e)
{
	struct cell c = {
		.key = { .func = func,
			 .node = r->node,
			 .code = code,
			 .space = space_of(r),
			 .region = r->region,
			 .access = r->access,
			 .guest_shift = r->guest_shift,
			 .host_shift = r->host_shift },
	};
	uint64_t hash = table_mix((uint64_t)func << 32 | (uint64_t)(uint16_t)r->node << 16 |
					  (uint64_t)code << 8 | c.key.space,
				  (uint64_t)r->region << 24 | (uint64_t)r->access << 16 |
					  (uint64_t)r->guest_shift << 8 | r->host_shift);
	uint32_t at;
	bool fresh;

	if (table_add(&in->cell, hash, &c, &at, &fresh))
		return err_nomem(e);
	((struct cell *)in->cell.item)[at].weight += weight;
	((struct cell *)in->cell.item)[at].count++;
	return 0;
}

static int add_access(struct memagg *m, uint32_t func, const struct perfdata_record *r,
		      const struct mem_ref *ref, struct err *e)
{
	uint64_t weight = r->sample.period;
	int ret = add_cell(m->inside, func, ref, false, weight, e);

	m->accesses++;
	m->access_weight += weight;
	m->status[ref->status] += weight;
	if (ref->status == MEM_OK)
		m->host[ref->host] += weight;
	if (!ref->access)
		m->unknown_access += weight;
	if (ret || ref->status != MEM_OK || ref->flags & MEM_FLAG_DEVICE)
		return ret;
	/* All processes share the kernel's half. */
	return memagg_pages_add(&m->inside->pages, ref->va & KERNEL_HALF ? 0 : r->pid, ref, weight,
				e);
}

static int add_sample(struct memagg *m, const struct perfdata_record *r, struct err *e)
{
	uint64_t weight = r->sample.period;
	struct mem_refs refs;
	uint32_t func;
	int ret;

	if (!r->sample.raw || !memref_parse(r->sample.raw, r->sample.raw_len, &refs))
		return err_set(e, EINVAL,
			       "a sample at time %" PRIu64
			       " does not contain kvmprof's memory accesses",
			       r->time_ns);
	m->samples++;
	m->weight += weight;
	if (r->idle) {
		m->idle += weight;
		return 0;
	}
	ret = func_of(m->inside, r, &func, e);
	if (ret)
		return ret;
	ret = add_cell(m->inside, func, &refs.code, true, weight, e);
	if (ret)
		return ret;
	m->why[refs.why] += refs.why != MEMOP_OK ? weight : 0;
	m->none += refs.why == MEMOP_OK && !refs.n ? weight : 0;
	m->with += refs.n ? weight : 0;
	for (unsigned int i = 0; !ret && i < refs.n; i++)
		ret = add_access(m, func, r, &refs.ref[i], e);
	return ret;
}

static int add_all(struct memagg *m, const struct memagg_options *opt, struct err *e)
{
	struct memagg_inside *in = m->inside;
	struct perfdata_record r;
	int ret;

	while ((ret = reader_next(&in->in, &r, e)) > 0) {
		if (r.kind != PERFDATA_SAMPLE || r.owner != PERFDATA_RECORDED ||
		    (opt->mode != MEMAGG_ALL && r.kernel != (opt->mode == MEMAGG_KERNEL)))
			continue;
		ret = add_sample(m, &r, e);
		if (ret)
			break;
	}
	return ret;
}

/* -- life -------------------------------------------------------------------------------- */

int memagg_load(struct memagg **out, const struct memagg_options *opt, struct err *e)
{
	const struct reader_options from = { .input = opt->input ? opt->input : "perf.data",
					     .event = opt->event,
					     .buildid_dir = opt->buildid_dir };
	struct memagg *m = calloc(1, sizeof(*m));
	struct memagg_inside *in = calloc(1, sizeof(*in));
	int ret;

	if (!m || !in) {
		free(m);
		free(in);
		return err_nomem(e);
	}
	m->inside = in;
	in->func = TABLE_OF(struct memagg_func, same_func);
	in->cell = TABLE_OF(struct cell, same_cell);
	memagg_pages_init(&in->pages);
	demangle_names_init(&in->display, opt->no_demangle ? DEMANGLE_NONE : DEMANGLE_PROGRAMS);
	ret = reader_open(&in->in, &from, e);
	if (!ret && !(in->in.p->ours && in->in.p->has_raw && in->in.p->has_data_page))
		ret = err_set(e, ENODATA,
			      "%s has no memory accesses: record it with `kvmprof run --mem`",
			      from.input);
	ret = ret ? ret : add_all(m, opt, e);
	ret = ret ? ret : memagg_pages_finish(&in->pages, m, e);
	if (ret) {
		memagg_destroy(m);
		return ret;
	}
	snprintf(m->event, sizeof(m->event), "%s", in->in.p->event);
	m->lost = in->in.p->nlost;
	m->partial = in->in.p->partial;
	m->message = in->in.p->message;
	*out = m;
	return 0;
}

void memagg_destroy(struct memagg *m)
{
	struct memagg_inside *in;

	if (!m)
		return;
	in = m->inside;
	demangle_names_deinit(&in->display);
	reader_close(&in->in);
	table_deinit(&in->func);
	table_deinit(&in->cell);
	memagg_pages_deinit(&in->pages);
	free(in);
	free(m->huge);
	free(m);
}

/* -- rows -------------------------------------------------------------------------------- */

static enum memagg_size size_of(uint8_t shift)
{
	return shift == 12   ? MEMAGG_4K
	       : shift == 21 ? MEMAGG_2M
	       : shift == 30 ? MEMAGG_1G
			     : MEMAGG_NO_SIZE;
}

static const char *size_name(uint8_t shift)
{
	static const char *const name[MEMAGG_SIZES] = { "4K", "2M", "1G", "unknown" };

	return name[size_of(shift)];
}

/* Returns a number that identifies the row of a cell. */
static uint64_t row_number(const struct cell_key *k, enum memagg_key key)
{
	switch (key) {
	case MEMAGG_REGION:
		return k->space == SPACE_DEVICE ? MEM_REGION_COUNT : k->region;
	case MEMAGG_SPACE:
		return k->space;
	case MEMAGG_NODE:
		return k->node < 0 ? UINT64_MAX : k->node < 16 ? (uint64_t)k->node : 16;
	case MEMAGG_SYMBOL:
		return k->func;
	default:
		return (uint64_t)(k->space == SPACE_DEVICE) << 16 | (uint64_t)k->guest_shift << 8 |
		       k->host_shift;
	}
}

/* On hosts with more nodes, the last ones share a row. */
static const char *node_name(int16_t node)
{
	static const char *const name[] = { "0", "1", "2",  "3",  "4",	"5",  "6",  "7",
					    "8", "9", "10", "11", "12", "13", "14", "15" };

	if (node < 0)
		return "unknown";
	return (size_t)node < ARRAY_SIZE(name) ? name[node] : "16 and above";
}

static const char *const space_name[] = {
	[SPACE_KERNEL] = "kernel",
	[SPACE_USER] = "user",
	[SPACE_DEVICE] = "device",
};

static void name_row(struct memagg_inside *in, const struct cell_key *k, enum memagg_key key,
		     struct memagg_row *row)
{
	const struct memagg_func *f = &((const struct memagg_func *)in->func.item)[k->func];

	row->detail = row->mode = "";
	switch (key) {
	case MEMAGG_REGION:
		row->name =
			k->space == SPACE_DEVICE ? "device (MMIO)" : memref_region_name(k->region);
		break;
	case MEMAGG_SPACE:
		row->name = space_name[k->space];
		break;
	case MEMAGG_NODE:
		row->name = node_name(k->node);
		break;
	case MEMAGG_SYMBOL:
		row->name = f->symbol ? demangle_shown(&in->display, f->symbol, f->kernel)
				      : "[unknown]";
		row->detail = f->dso;
		row->mode = f->kernel ? "kernel" : "user";
		break;
	default:
		row->name = size_name(k->guest_shift);
		row->detail = k->space == SPACE_DEVICE ? "device" : size_name(k->host_shift);
		break;
	}
}

static int by_weight(const void *a, const void *b)
{
	const struct memagg_row *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(x->name, y->name);
}

struct numbered {
	uint64_t number;
	struct memagg_row row;
};

static bool same_number(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return ((const struct numbered *)a)->number == ((const struct numbered *)b)->number;
}

static int add_to_row(struct memagg_inside *in, struct table *rows, const struct cell *c,
		      enum memagg_key key)
{
	struct numbered like = { .number = row_number(&c->key, key) };
	struct memagg_row *row;
	bool fresh;
	uint32_t at;
	int ret = table_add(rows, table_mix(like.number, 1), &like, &at, &fresh);

	if (ret)
		return ret;
	row = &((struct numbered *)rows->item)[at].row;
	if (fresh)
		name_row(in, &c->key, key, row);
	row->count += c->count;
	row->weight += c->weight;
	row->read += c->key.access & MEMOP_READ ? c->weight : 0;
	row->write += c->key.access & MEMOP_WRITE ? c->weight : 0;
	row->size[size_of(c->key.guest_shift)] += c->weight;
	return 0;
}

int memagg_rows(const struct memagg *m, enum memagg_key key, struct memagg_row **out, size_t *n,
		struct err *e)
{
	struct memagg_inside *in = m->inside;
	const struct cell *cell = in->cell.item;
	struct table rows = TABLE_OF(struct numbered, same_number);
	struct memagg_row *list = NULL;
	int ret = 0;

	for (size_t i = 0; i < in->cell.n && !ret; i++)
		if (cell[i].key.code == (key == MEMAGG_CODE))
			ret = add_to_row(in, &rows, &cell[i], key);
	if (!ret)
		list = calloc(rows.n + 1, sizeof(*list));
	if (list) {
		for (size_t i = 0; i < rows.n; i++)
			list[i] = ((struct numbered *)rows.item)[i].row;
		qsort(list, rows.n, sizeof(*list), by_weight);
		*out = list;
		*n = rows.n;
	}
	table_deinit(&rows);
	return list ? 0 : err_nomem(e);
}
