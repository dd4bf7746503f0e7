/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/cmd.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "profile/cmd/common.h"
#include "profile/analyse/tables/memagg.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ROWS 20u
#define MAX_WIDTH 48

/* Tables in the order in which they are shown. */
static const struct mem_view {
	const char *key, *title, *head, *json;
	enum memagg_key rows;
} views[] = {
	{ "page", "Data by page: the guest's, and what the host backs it with", "Guest    Host",
	  "data_pages", MEMAGG_PAGE },
	{ "code", "Code by page, in samples", "Guest    Host", "code_pages", MEMAGG_CODE },
	{ "space", "Data by whose the page is", "Space", "spaces", MEMAGG_SPACE },
	{ "region", "Data by region", "Region", "regions", MEMAGG_REGION },
	{ "node", "Data by NUMA node of the host", "Node", "nodes", MEMAGG_NODE },
	{ "symbol", "Data by function", "Mode    Symbol", "symbols", MEMAGG_SYMBOL },
};
#define VIEWS ARRAY_SIZE(views)
#define TABLES "page, code, space, region, node, symbol"
#define ALL_VIEWS ((1u << VIEWS) - 1)

struct mem_options {
	struct memagg_options load;
	unsigned int shown; /* bits: indexes into views */
	unsigned long top;
	bool json;
};

static double mem_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* -- text -------------------------------------------------------------------------------- */

/* The guest's words: no byte of them commands the terminal. */
static void mem_put_text(const char *s, int width)
{
	int n = (int)strlen(s);

	utf8_put(stdout, s);
	while (n++ < width)
		putchar(' ');
}

static void mem_put_reason(const char *what, const char *why, uint64_t part, uint64_t whole)
{
	if (part)
		printf("#   %6.2f %%  %s%s%s\n", mem_percent(part, whole), what, *why ? ": " : "",
		       why);
}

static void print_header(const struct memagg *m)
{
	uint64_t busy = m->weight - m->idle;

	printf("# event %s: %" PRIu64 " samples, %.2f %% idle", m->event, m->samples,
	       mem_percent(m->idle, m->weight));
	if (m->lost)
		printf(", %" PRIu64 " lost", m->lost);
	puts("\n# The others' instructions:");
	printf("#   %6.2f %%  access memory: %" PRIu64 " operands\n", mem_percent(m->with, busy),
	       m->accesses);
	mem_put_reason("do not", "", m->none, busy);
	for (uint8_t i = 1; i < MEMOP_WHY_COUNT; i++)
		mem_put_reason("unknown", memop_why_text(i), m->why[i], busy);
	for (uint8_t i = 1; i < MEM_STATUS_COUNT; i++)
		mem_put_reason("of the accesses have no page", memref_status_text(i), m->status[i],
			       m->access_weight);
	for (uint8_t i = 1; i < MEM_HOST_COUNT; i++)
		if (i != MEM_HOST_DEVICE)
			mem_put_reason("of the accesses: host page unknown", memref_host_text(i),
				       m->host[i], m->access_weight);
	mem_put_reason("of the accesses: read or write is not known", "", m->unknown_access,
		       m->access_weight);
	if (!strcmp(m->event, "wall") || !strcmp(m->event, "cpu"))
		puts("# The timer favours instructions that wait for memory: see `man "
		     "kvmprof-mem`.");
}

static void print_row(const struct mem_view *v, const struct memagg_row *r, uint64_t whole,
		      int width)
{
	printf("%7.2f%%", mem_percent(r->weight, whole));
	if (v->rows != MEMAGG_CODE)
		printf(" %7.2f%% %7.2f%%", mem_percent(r->read, whole),
		       mem_percent(r->write, whole));
	if (v->rows != MEMAGG_PAGE && v->rows != MEMAGG_CODE)
		for (unsigned int i = 0; i < MEMAGG_SIZES; i++)
			printf(" %7.2f%%", mem_percent(r->size[i], whole));
	printf(" %9" PRIu64 "  ", r->count);
	switch (v->rows) {
	case MEMAGG_PAGE:
	case MEMAGG_CODE:
		printf("%-9s%s\n", r->name, r->detail);
		break;
	case MEMAGG_SYMBOL:
		printf("%-6s  ", r->mode);
		mem_put_text(r->name, width);
		fputs("  ", stdout);
		mem_put_text(r->detail, 0);
		putchar('\n');
		break;
	default:
		puts(r->name);
	}
}

static uint64_t mem_sum(const struct memagg_row *r, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += r[i].weight;
	return sum;
}

static void print_view(const struct mem_view *v, const struct memagg_row *r, size_t n,
		       unsigned long top)
{
	size_t shown = top && top < n ? top : n;
	uint64_t whole = mem_sum(r, n);
	int width = 6;

	if (!n)
		return;
	for (size_t i = 0; i < shown; i++) {
		int len = (int)strnlen(r[i].name, MAX_WIDTH);

		width = len > width ? len : width;
	}
	printf("#\n# %s\n#  Share", v->title);
	if (v->rows != MEMAGG_CODE)
		fputs("     Read    Write", stdout);
	if (v->rows != MEMAGG_PAGE && v->rows != MEMAGG_CODE)
		fputs("       4K       2M       1G  unknown", stdout);
	printf(" %9s  ", v->rows == MEMAGG_CODE ? "Samples" : "Accesses");
	if (v->rows == MEMAGG_SYMBOL)
		printf("Mode    %-*s  DSO\n", width, "Symbol");
	else
		puts(v->head);
	for (size_t i = 0; i < shown; i++)
		print_row(v, &r[i], whole, width);
	if (shown < n)
		printf("# and %zu more (-n 0 shows all)\n", n - shown);
}

static void print_huge(const struct memagg *m)
{
	if (!m->nhuge)
		return;
	printf("#\n# What huge pages would change: 4K pages that samples saw in use, in ranges of "
	       "2M of\n# addresses. Dense: %u or more of a range's 512; there a huge page wastes "
	       "least. Samples see\n# some of the accesses: pages are at least so many.\n",
	       MEMAGG_DENSE);
	puts("#  Share  4K pages    Ranges     Dense  in dense  Region");
	for (size_t i = 0; i < m->nhuge; i++) {
		const struct memagg_huge *h = &m->huge[i];

		printf("%7.2f%% %9" PRIu64 " %9" PRIu64 " %9" PRIu64 "  %7.2f%%  %s\n",
		       mem_percent(h->weight, m->access_weight), h->pages, h->ranges, h->dense,
		       mem_percent(h->dense_weight, m->access_weight),
		       memref_region_name(h->region));
	}
	puts("# Pages that a TLB must hold for a share of the accesses; as they are, and if each "
	     "range, or\n# each dense one, were one page of 2M (assumed: contiguous, of one "
	     "owner):");
	puts("#  Share        4K        2M        1G       all  ranges huge  dense huge");
	for (unsigned int i = 0; i < 2; i++) {
		const struct memagg_reach *r = &m->reach[i];

		printf("%6u %%", r->percent);
		for (unsigned int k = 0; k < 3; k++)
			printf(" %9" PRIu64, r->now[k]);
		printf(" %9" PRIu64 " %12" PRIu64 " %11" PRIu64 "\n",
		       r->now[0] + r->now[1] + r->now[2], r->huge, r->huge_dense);
	}
}

/* -- JSON -------------------------------------------------------------------------------- */

static struct json_value mem_share(uint64_t part, uint64_t whole)
{
	return json_short(6, mem_percent(part, whole));
}

static void json_rows(struct json_writer *w, const struct mem_view *v, const struct memagg_row *r,
		      size_t n)
{
	uint64_t whole = mem_sum(r, n);

	json_array_begin(w, v->json);
	for (size_t i = 0; i < n; i++) {
		bool page = v->rows == MEMAGG_PAGE || v->rows == MEMAGG_CODE;

		json_line(w);
		json_object_begin(w, NULL);
		json_str(w, page ? "guest" : v->key, r[i].name);
		if (page || v->rows == MEMAGG_SYMBOL)
			json_str(w, page ? "host" : "dso", r[i].detail);
		if (v->rows == MEMAGG_SYMBOL)
			json_str(w, "mode", r[i].mode);
		json_put(w, "count", r[i].count, "share", mem_share(r[i].weight, whole));
		if (v->rows != MEMAGG_CODE)
			json_put(w, "read", mem_share(r[i].read, whole), "write",
				 mem_share(r[i].write, whole));
		if (!page)
			json_put(w, "4K", mem_share(r[i].size[MEMAGG_4K], whole), "2M",
				 mem_share(r[i].size[MEMAGG_2M], whole), "1G",
				 mem_share(r[i].size[MEMAGG_1G], whole), "unknown",
				 mem_share(r[i].size[MEMAGG_NO_SIZE], whole));
		json_object_end(w);
	}
	json_array_end(w);
}

static void json_unknown(struct json_writer *w, const struct memagg *m)
{
	uint64_t busy = m->weight - m->idle;

	json_put_object(w, "instructions", "with", mem_share(m->with, busy), "without",
			mem_share(m->none, busy), "no_bytes",
			mem_share(m->why[MEMOP_NO_BYTES], busy), "not_known",
			mem_share(m->why[MEMOP_UNKNOWN_INSN], busy), "vector_index",
			mem_share(m->why[MEMOP_VECTOR_INDEX], busy));
	json_put_object(w, "addresses", "mapped", mem_share(m->status[MEM_OK], m->access_weight),
			"gone", mem_share(m->status[MEM_GONE], m->access_weight), "not_canonical",
			mem_share(m->status[MEM_NOT_CANONICAL], m->access_weight), "no_paging",
			mem_share(m->status[MEM_NO_PAGING], m->access_weight), "access_not_known",
			mem_share(m->unknown_access, m->access_weight), "host_no_right",
			mem_share(m->host[MEM_HOST_NO_RIGHT], m->access_weight), "host_absent",
			mem_share(m->host[MEM_HOST_ABSENT], m->access_weight), "host_no_file",
			mem_share(m->host[MEM_HOST_NO_FILE], m->access_weight), "device",
			mem_share(m->host[MEM_HOST_DEVICE], m->access_weight));
}

static void json_huge(struct json_writer *w, const struct memagg *m)
{
	json_object_begin(w, "huge");
	json_put(w, "dense_pages", MEMAGG_DENSE);
	json_array_begin(w, "regions");
	for (size_t i = 0; i < m->nhuge; i++) {
		const struct memagg_huge *h = &m->huge[i];

		json_line(w);
		json_put_object(w, NULL, "region", memref_region_name(h->region), "pages", h->pages,
				"ranges", h->ranges, "dense", h->dense, "share",
				mem_share(h->weight, m->access_weight), "dense_share",
				mem_share(h->dense_weight, m->access_weight));
	}
	json_array_end(w);
	json_array_begin(w, "reach");
	for (unsigned int i = 0; i < 2; i++) {
		const struct memagg_reach *r = &m->reach[i];

		json_put_object(w, NULL, "percent", r->percent, "4K", r->now[0], "2M", r->now[1],
				"1G", r->now[2], "ranges_huge", r->huge, "dense_huge",
				r->huge_dense);
	}
	json_array_end(w);
	json_object_end(w);
}

/* -- the command ---------------------------------------------------------------------------- */

static int mem_show(const struct memagg *m, const struct mem_options *o, struct err *e)
{
	struct json_writer w;
	int ret = 0;

	json_open(&w);
	json_put(&w, "event", m->event, "samples", m->samples, "lost", m->lost, "accesses",
		 m->accesses, "idle", mem_share(m->idle, m->weight));
	json_unknown(&w, m);
	if (!o->json)
		print_header(m);
	for (unsigned int i = 0; i < VIEWS && !ret; i++) {
		cleanup_free struct memagg_row *row = NULL;
		size_t n = 0;

		if (!(o->shown & 1u << i) && !o->json)
			continue;
		ret = memagg_rows(m, views[i].rows, &row, &n, e);
		if (!ret && o->json)
			json_rows(&w, &views[i], row, n);
		else if (!ret)
			print_view(&views[i], row, n, o->top);
	}
	json_huge(&w, m);
	if (!ret && !o->json && (o->shown & 1u))
		print_huge(m);
	if (json_close(&w, o->json && !ret ? stdout : NULL))
		return err_nomem(e);
	return ret;
}

static int parse_keys(void *at, char *arg, struct err *e)
{
	struct mem_options *o = at;
	char *save = NULL;

	o->shown = 0;
	for (char *word = strtok_r(arg, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		unsigned int i = 0;

		while (i < VIEWS && strcmp(views[i].key, word) != 0)
			i++;
		if (i == VIEWS)
			return err_set(e, EINVAL, "no such table '%.60s': " TABLES, word);
		o->shown |= 1u << i;
	}
	return o->shown ? 0 : err_set(e, EINVAL, "names no table: " TABLES);
}

static int parse_mode(void *at, char *arg, struct err *e)
{
	struct mem_options *o = at;

	(void)e;
	o->load.mode = !strcmp(arg, "kernel") ? MEMAGG_KERNEL
		       : !strcmp(arg, "user") ? MEMAGG_USER
					      : MEMAGG_ALL;
	return o->load.mode != MEMAGG_ALL ? 0 : -EINVAL;
}

#define OPTION_STRUCT struct mem_options

static const struct option_row rows[] = {
	CMD_INPUT(load.input),
	{ "sort", 's', "KEYS",
	  "tables to show: " TABLES ";\n"
	  "several with commas (default: all)",
	  OPTION_CALL(parse_keys, NULL) },
	{ "mode", 0, "MODE", "only accesses of code in this mode: kernel, user",
	  OPTION_CALL(parse_mode, "kernel or user") },
	{ "event", 'e', "NAME", "show this one of several events (default: the first)",
	  OPTION_TEXT(load.event) },
	{ "top", 'n', "N", "rows of each table, 0 for all (default: 20)",
	  OPTION_WHOLE(top, 0, ULONG_MAX, "a number of rows") },
	{ "json", 0, NULL, "for programs: all tables, shares in percent", OPTION_PUT(json, true) },
	CMD_NO_DEMANGLE(load.no_demangle),
	CMD_BUILDID_DIR(load.buildid_dir),
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage =
		"Usage: kvmprof mem [OPTIONS] [PROFILE]\n"
		"\n"
		"Show which memory a guest's code uses, from a profile of `kvmprof run --mem`: how "
		"many\n"
		"accesses go to pages of 4K, 2M and 1G, to which regions and host nodes, by which\n"
		"function, and what huge pages would change. An access has the weight of its "
		"sample.\n"
		"\n",
	.rows = rows,
	.order = OPTION_ALONE,
};

int cmd_mem(int argc, char **argv)
{
	struct mem_options o = { .shown = ALL_VIEWS, .top = DEFAULT_ROWS };
	struct memagg *m = NULL;
	struct err e = { 0 };
	int status = cmd_options(&set, &o, argc, argv), ret;

	if (status >= 0)
		return status;
	ret = memagg_load(&m, &o.load, &e);
	if (!ret && m->partial)
		fprintf(stderr, "kvmprof: %s\n", m->message);
	ret = ret ? ret : mem_show(m, &o, &e);
	memagg_destroy(m);
	return cmd_status(ret, &e);
}
