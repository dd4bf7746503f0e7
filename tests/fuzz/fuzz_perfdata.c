/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: 4000 runs */
/*
 * The reader of perf.data files, with what report does on top of it: any bytes
 * must end in a refusal or in records that stay inside the file.
 * Seeds: tests/fuzz/make-corpus-perfdata.py
 */
#include "tests/fuzz/fuzz.h"

#include "base/cleanup.h"
#include "base/cursor.h"
#include "profile/analyse/tables/agg_tree.h"
#include "profile/format/sink/exittime.h"
#include "profile/format/sink/markers.h"
#include "profile/format/names/names.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/names/tasks.h"

#include <stdlib.h>

/* Touch what a record points at, so that the sanitizer sees where it leads. */
static uint64_t touch(const struct perfdata_record *r)
{
	struct perfdata_walk walk;
	struct perfdata_frame f;
	uint64_t sum = r->time_ns;

	switch (r->kind) {
	case PERFDATA_SAMPLE:
		perfdata_walk_begin(&walk, r);
		while (perfdata_walk_next(&walk, &f))
			sum += f.ip;
		sum += exittime_parse(r->sample.raw, r->sample.raw_len);
		break;
	case PERFDATA_DEFERRED: /* parts of samples */
	case PERFDATA_EPOCH:	/* only directories have several kernels */
		abort();
	case PERFDATA_MARKER:
		perfdata_walk_begin(&walk, r);
		while (perfdata_walk_next(&walk, &f))
			sum += f.ip;
		sum += strlen(r->marker_name) + strlen(markers_kind_name(r->marker_kind));
		break;
	case PERFDATA_COMM:
		sum += strlen(r->comm);
		break;
	case PERFDATA_MAP:
		sum += strlen(r->map.path) +
		       (r->map.build_id ? r->map.build_id[r->map.build_id_len - 1] : 0);
		break;
	case PERFDATA_LOST:
		sum += r->lost;
		break;
	case PERFDATA_FORK:
	case PERFDATA_EXIT:
		sum += r->fork.ppid + r->fork.ptid;
		break;
	}
	return sum;
}

/* A node never weighs more than its parent, and its words are functions. */
static void check_nodes(const struct agg *a, const struct agg_tree *t, uint32_t first, uint32_t n,
			uint64_t limit)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct agg_node *node = &t->node[first + i];

		if (!node->n || node->weight > limit || !a->func[node->func[node->n - 1]].dso)
			abort();
		check_nodes(a, t, node->child, node->nchildren, node->weight);
	}
}

static void check_trees(const struct agg *a)
{
	for (size_t i = 0; i < a->nrows && i < 4; i++) {
		const struct agg_tree_options opt = { .caller = i & 1, .min_weight = i };
		struct agg_tree t;

		if (agg_tree_build(&t, a, &a->row[i], &opt) < 0)
			continue;
		check_nodes(a, &t, 0, t.nroots, a->row[i].children);
		agg_tree_deinit(&t);
	}
}

static size_t words_of(const struct perfdata *p)
{
	char **words;
	int n = perfdata_command(p, &words);
	size_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += strlen(words[i]);
	if (n > 0) {
		if (words[n])
			abort();
		free(words);
	}
	return sum;
}

/* "SPLIT", u8 n: the last n KiB / 4 are the file data.0 of perf record --threads. */
static void split(const uint8_t *data, size_t size, struct cursor *file, struct cursor *part)
{
	size_t tail = 0;

	if (size > 6 && !memcmp(data, "SPLIT", 5)) {
		tail = data[5] * 256u;
		data += 6;
		size -= 6;
		tail = tail < size ? tail : size;
	}
	cursor_init(file, data, size - tail);
	cursor_init(part, data + size - tail, tail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const key[] = { "sym", "comm", "dso", "mode",
					   "pid", "tid",  "cpu", "code_page_size" };
	struct perfdata *p = NULL;
	struct names *n = NULL;
	struct tasks *t = tasks_create();
	struct agg *a = NULL;
	struct agg_config config = { 0 };
	struct perfdata_record r;
	struct err e = { 0 };
	volatile uint64_t sum __attribute__((unused)) = 0; /* reading is the point */
	uint64_t samples = 0, weight = 0, total = 0;
	bool wraps = false; /* weights of a hostile file */
	struct cursor file, part;
	int ret;

	if (!t)
		return 0;
	split(data, size, &file, &part);
	if (perfdata_open_split(&p, "input", &file, &part, part.len ? 1 : 0, &e) < 0) {
		/* A refusal says why. */
		if (!e.code || !e.text[0])
			abort();
		tasks_destroy(t);
		return 0;
	}
	for (size_t i = 0; i < p->nbuild_ids; i++)
		sum += strlen(p->build_ids[i].name) + p->build_ids[i].id[p->build_ids[i].len - 1];
	if (p->json && p->json_len)
		sum += (uint8_t)p->json[p->json_len - 1];
	if (p->partial != (p->message[0] != '\0'))
		abort();
	sum += words_of(p);
	/* A directory without files: no seed may depend on what lies on this machine. */
	ret = names_create(&n, p, "/nonexistent", &e);
	/* One set of keys or another, by the input's size. */
	config.exact = p->ours;
	config.keep_stacks = size & 2;
	for (unsigned int i = 0; i < ARRAY_SIZE(key) && config.nkeys < AGG_MAX_KEYS; i++)
		if (size >> i & 1)
			config.key[config.nkeys++] = agg_key_find(key[i]);
	if (!ret)
		ret = agg_create(&a, &config, n, t, &e);
	while (!ret && perfdata_next(p, &r)) {
		if (r.kind == PERFDATA_SAMPLE && p->has_stacks)
			names_unwind_copy(n, p, &r);
		sum += touch(&r);
		ret = names_record(n, &r, &e);
		ret = ret ? ret : tasks_record(t, &r, &e);
		if (!ret && r.kind == PERFDATA_SAMPLE) {
			wraps |= __builtin_add_overflow(total, r.sample.period, &total);
			ret = agg_add(a, &r, &e);
		}
	}
	if (!ret && !agg_finish(a, size & 1 ? AGG_BY_SELF : AGG_BY_CHILDREN, &e)) {
		if (a->samples != p->nsamples)
			abort();
		for (size_t i = 0; i < a->nrows; i++) {
			samples += a->row[i].self_samples;
			weight += a->row[i].self;
			if (a->row[i].self_samples > a->row[i].children_samples)
				abort();
		}
		if (config.keep_stacks && !wraps)
			check_trees(a);
		/* Where weights wrap around, they do so in both sums. */
		if (samples != a->samples || weight != a->weight)
			abort();
	}
	agg_destroy(a);
	names_destroy(n);
	tasks_destroy(t);
	perfdata_close(p);
	return 0;
}
