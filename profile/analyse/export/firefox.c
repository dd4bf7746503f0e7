/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * firefox: the "processed profile" of the Firefox Profiler (profiler.firefox.com), in
 * version 59 of its format, as its repository describes it in src/types/profile.ts and
 * docs-developer/CHANGELOG-formats.md. Newer readers bring it up to date.
 *
 *   { meta, libs, shared: { stringArray, sources }, threads: [ thread... ] }
 *   thread = { samples, stackTable, frameTable, funcTable, resourceTable, ... }
 *
 * A table is an object of equally long arrays and `length`. Tables are of one thread,
 * strings of all. Times are milliseconds since the first sample, weights as well
 * ("tracing-ms"). Threads go by pid and tid: the halted time of each vCPU is a thread of
 * pid 0 of its own, and what had a tid before has it with a number behind it.
 */
#include "profile/analyse/export/private.h"

#include "base/json.h"
#include "base/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define FORMAT_VERSION 59u
#define GECKO_VERSION 32u
#define NONE UINT32_MAX

/* Index into meta.categories; the reader treats "transparent" as idle. */
enum category { OTHER, KERNEL, MODULE, USER, JIT, IDLE };

static const char categories[] =
	"[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},\n"
	"{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]},\n"
	"{\"name\":\"Kernel module\",\"color\":\"purple\",\"subcategories\":[\"Other\"]},\n"
	"{\"name\":\"User\",\"color\":\"blue\",\"subcategories\":[\"Other\"]},\n"
	"{\"name\":\"JIT\",\"color\":\"green\",\"subcategories\":[\"Other\"]},\n"
	"{\"name\":\"Idle\",\"color\":\"transparent\",\"subcategories\":[\"Other\"]}]";

static const char no_symbols[] = "{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],"
				 "\"functionSize\":[]}";
static const char no_markers[] = "{\"length\":0,\"data\":[],\"name\":[],\"startTime\":[],"
				 "\"endTime\":[],\"phase\":[],\"category\":[]}";

/* Numbers within one thread for objects that all threads share. */
struct local {
	uint32_t *index; /* for each object: its number, or NONE */
	uint32_t *thing; /* for each number: its object */
	size_t n, max;
};

struct firefox {
	const struct stackset *s;
	const struct export_options *opt;
	struct export_out *o;
	struct json_writer w; /* writes to o */
	struct export_labels *labels;
	struct export_tracks tracks;
	struct export_tree *tids; /* labels are tids; .samples: number of threads with that tid */
	struct table strings;	  /* const char * */
	struct table dsos;	  /* const char * */
	uint32_t *label_string, *label_dso;
	/*
	 * Tables of the thread that is being written. A frame is label * 2, plus 1 if it is idle.
	 */
	struct local frames, funcs, resources;
};

/* -- tables ------------------------------------------------------------------------------------ */

static bool equal_pointer(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return *(const char *const *)a == *(const char *const *)b;
}

static int add_text(struct table *t, const char *text, uint32_t *index)
{
	bool fresh;

	return table_add(t, table_mix((uint64_t)(uintptr_t)text, 1), &text, index, &fresh);
}

static const char *text_at(const struct table *t, size_t i)
{
	return ((const char *const *)t->item)[i];
}

static int local_init(struct local *l, size_t max)
{
	l->max = max;
	l->index = calloc(max + 1, sizeof(*l->index));
	l->thing = calloc(max + 1, sizeof(*l->thing));
	if (!l->index || !l->thing)
		return -ENOMEM;
	for (size_t i = 0; i < max; i++)
		l->index[i] = NONE;
	return 0;
}

static void local_deinit(struct local *l)
{
	free(l->index);
	free(l->thing);
}

static void local_clear(struct local *l)
{
	while (l->n)
		l->index[l->thing[--l->n]] = NONE;
}

static uint32_t local_add(struct local *l, uint32_t thing)
{
	if (l->index[thing] == NONE) {
		l->index[thing] = (uint32_t)l->n;
		l->thing[l->n++] = thing;
	}
	return l->index[thing];
}

static int firefox_prepare(struct firefox *x)
{
	size_t n = export_labels_count(x->labels);
	uint32_t unused;
	int ret;

	x->strings = x->dsos = TABLE_OF(const char *, equal_pointer);
	x->tids = export_tree_create();
	x->label_string = calloc(n + 1, sizeof(*x->label_string));
	x->label_dso = calloc(n + 1, sizeof(*x->label_dso));
	if (!x->tids || !x->label_string || !x->label_dso)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct export_label *l = export_label(x->labels, (uint32_t)i);

		ret = add_text(&x->strings, l->text, &x->label_string[i]);
		if (ret)
			return ret;
		ret = add_text(&x->dsos, l->dso, &x->label_dso[i]);
		if (ret)
			return ret;
	}
	/* The strings are shared by labels and DSOs, so a text may exist already. */
	for (size_t i = 0; i < x->dsos.n; i++) {
		ret = add_text(&x->strings, text_at(&x->dsos, i), &unused);
		if (ret)
			return ret;
	}
	ret = local_init(&x->frames, n * 2);
	if (ret)
		return ret;
	ret = local_init(&x->funcs, n);
	if (ret)
		return ret;
	return local_init(&x->resources, x->dsos.n);
}

/* -- a thread ---------------------------------------------------------------------------------- */

static void begin_table(struct firefox *x, const char *name, size_t n)
{
	json_object_begin(&x->w, name);
	json_u64(&x->w, "length", n);
}

static void put_ms(struct firefox *x, const char *key, uint64_t ns)
{
	json_number(&x->w, key, "%" PRIu64 ".%06" PRIu64, ns / 1000000, ns % 1000000);
	export_out_flush(x->o);
}

static void put_node(struct firefox *x, uint32_t node)
{
	if (node == EXPORT_ROOT)
		json_str(&x->w, NULL, NULL);
	else
		json_u64(&x->w, NULL, node);
	export_out_flush(x->o);
}

/* Writes an array with the result of value() for each object. */
static void put_column(struct firefox *x, const char *name, const struct local *l,
		       uint32_t (*value)(struct firefox *x, uint32_t thing))
{
	json_array_begin(&x->w, name);
	for (size_t i = 0; i < l->n; i++)
		json_u64(&x->w, NULL, value(x, l->thing[i]));
	json_array_end(&x->w);
	export_out_flush(x->o);
}

static void put_constant(struct firefox *x, const char *name, const char *value, size_t n)
{
	json_array_begin(&x->w, name);
	for (size_t i = 0; i < n; i++)
		json_raw(&x->w, NULL, value);
	json_array_end(&x->w);
	export_out_flush(x->o);
}

static uint32_t category_of(struct firefox *x, uint32_t frame)
{
	static const uint8_t of_kind[] = {
		[STACKSET_KIND_KERNEL] = KERNEL, [STACKSET_KIND_MODULE] = MODULE,
		[STACKSET_KIND_USER] = USER,	 [STACKSET_KIND_JIT] = JIT,
		[STACKSET_KIND_UNKNOWN] = OTHER, [STACKSET_KIND_HOST] = OTHER,
		[STACKSET_KIND_WAITING] = OTHER
	};
	uint8_t kind = export_label(x->labels, frame / 2)->kind;

	return frame & 1 ? IDLE : kind < sizeof(of_kind) ? of_kind[kind] : OTHER;
}

static uint32_t func_of_frame(struct firefox *x, uint32_t frame)
{
	return local_add(&x->funcs, frame / 2);
}

static uint32_t name_of_func(struct firefox *x, uint32_t label)
{
	return x->label_string[label];
}

static uint32_t resource_of_func(struct firefox *x, uint32_t label)
{
	return local_add(&x->resources, x->label_dso[label]);
}

static uint32_t name_of_resource(struct firefox *x, uint32_t dso)
{
	uint32_t index = 0;

	/* it exists already, so this cannot fail */
	add_text(&x->strings, text_at(&x->dsos, dso), &index);
	return index;
}

static void put_frames(struct firefox *x)
{
	size_t n = x->frames.n;

	begin_table(x, "frameTable", n);
	put_constant(x, "address", "-1", n);
	put_constant(x, "inlineDepth", "0", n);
	put_column(x, "category", &x->frames, category_of);
	put_constant(x, "subcategory", "0", n);
	put_column(x, "func", &x->frames, func_of_frame);
	put_constant(x, "nativeSymbol", "null", n);
	put_constant(x, "innerWindowID", "0", n);
	put_constant(x, "line", "null", n);
	put_constant(x, "column", "null", n);
	json_object_end(&x->w);
	n = x->funcs.n;
	begin_table(x, "funcTable", n);
	put_column(x, "name", &x->funcs, name_of_func);
	put_constant(x, "isJS", "false", n);
	put_constant(x, "relevantForJS", "false", n);
	put_column(x, "resource", &x->funcs, resource_of_func);
	put_constant(x, "source", "null", n);
	put_constant(x, "lineNumber", "null", n);
	put_constant(x, "columnNumber", "null", n);
	json_object_end(&x->w);
	n = x->resources.n;
	begin_table(x, "resourceTable", n);
	put_constant(x, "lib", "null", n);
	put_column(x, "name", &x->resources, name_of_resource);
	put_constant(x, "host", "null", n);
	put_constant(x, "type", "1", n); /* library */
	json_object_end(&x->w);
	json_raw(&x->w, "nativeSymbols", no_symbols);
}

static void put_stacks(struct firefox *x, struct export_tree *tree)
{
	size_t n = export_tree_count(tree);

	begin_table(x, "stackTable", n);
	json_array_begin(&x->w, "frame");
	for (size_t i = 0; i < n; i++)
		json_u64(&x->w, NULL, export_node(tree, (uint32_t)i)->label);
	json_array_end(&x->w);
	json_array_begin(&x->w, "prefix");
	for (size_t i = 0; i < n; i++)
		put_node(x, export_node(tree, (uint32_t)i)->parent);
	json_array_end(&x->w);
	json_object_end(&x->w);
}

static int add_stack(struct firefox *x, struct export_tree *tree, uint32_t stack, uint32_t *node)
{
	const struct stackset_stack *st = &x->s->stack[stack];
	const uint32_t *label;
	size_t n = export_stack_labels(x->labels, st, &label);
	int ret = 0;

	*node = EXPORT_ROOT;
	for (size_t i = 0; !ret && i < n; i++) {
		bool idle = st->mode == STACKSET_IDLE && i + 1 == n;

		ret = export_tree_add(tree, *node, local_add(&x->frames, label[i] * 2 + idle),
				      node);
	}
	return ret;
}

static int put_samples(struct firefox *x, const struct export_track *t, struct export_tree *tree)
{
	bool ms = x->s->weight_is_ns && !x->opt->count_samples;
	const struct stackset_sample *sample = x->s->sample;
	int ret = 0;

	begin_table(x, "samples", t->n);
	json_str(&x->w, "weightType", ms ? "tracing-ms" : "samples");
	json_array_begin(&x->w, "stack");
	for (size_t i = 0; !ret && i < t->n; i++) {
		uint32_t node;

		ret = add_stack(x, tree, sample[t->sample[i]].stack, &node);
		put_node(x, node);
	}
	json_array_end(&x->w);
	json_array_begin(&x->w, "time");
	for (size_t i = 0; i < t->n; i++)
		put_ms(x, NULL, sample[t->sample[i]].time_ns - x->s->first_ns);
	json_array_end(&x->w);
	json_array_begin(&x->w, "weight");
	for (size_t i = 0; i < t->n; i++) {
		uint64_t weight = export_weight(x->opt, sample[t->sample[i]].weight, 1);

		if (ms)
			put_ms(x, NULL, weight);
		else
			json_u64(&x->w, NULL, weight);
	}
	json_array_end(&x->w);
	/* Write the processor time of the thread; none while it was halted. */
	json_array_begin(&x->w, "threadCPUDelta");
	for (size_t i = 0; i < t->n; i++) {
		const struct stackset_sample *at = &sample[t->sample[i]];
		bool idle = x->s->stack[at->stack].mode == STACKSET_IDLE;

		json_u64(&x->w, NULL, idle || !x->s->weight_is_ns ? 0 : at->weight);
		export_out_flush(x->o);
	}
	json_array_end(&x->w);
	json_object_end(&x->w);
	return ret;
}

static int put_ids(struct firefox *x, const struct export_track *t)
{
	const struct stackset_task *task = &x->s->task[t->task];
	uint64_t first = x->s->sample[t->sample[0]].time_ns - x->s->first_ns;
	uint64_t last = x->s->sample[t->sample[t->n - 1]].time_ns - x->s->first_ns;
	char name[256];
	uint32_t node;
	int ret = export_tree_add(x->tids, EXPORT_ROOT, task->tid, &node);

	if (ret)
		return ret;
	export_track_name(t, x->s, EXPORT_TRACK_OF_THREAD, name, sizeof(name));
	json_str(&x->w, "processType", "default");
	put_ms(x, "processStartupTime", first);
	json_str(&x->w, "processShutdownTime", NULL);
	put_ms(x, "registerTime", first);
	put_ms(x, "unregisterTime", last);
	put_constant(x, "pausedRanges", NULL, 0);
	json_put(&x->w, "showMarkersInTimeline", json_of_bool(false), "name", name, "processName",
		 task->comm, "isMainThread", json_of_bool(task->pid == task->tid));
	json_strf(&x->w, "pid", "%u", task->pid);
	if (t->idle)
		json_strf(&x->w, "tid", "0.%u", t->cpu);
	else if (!export_node(x->tids, node)->samples++)
		json_u64(&x->w, "tid", task->tid);
	else
		json_strf(&x->w, "tid", "%u.%" PRIu64, task->tid,
			  export_node(x->tids, node)->samples);
	return 0;
}

static int put_thread(struct firefox *x, const struct export_track *t)
{
	struct export_tree *tree = export_tree_create();
	int ret;

	json_line(&x->w);
	json_object_begin(&x->w, NULL);
	ret = tree ? put_ids(x, t) : -ENOMEM;
	local_clear(&x->frames);
	local_clear(&x->funcs);
	local_clear(&x->resources);
	if (!ret)
		ret = put_samples(x, t, tree);
	if (!ret) {
		put_stacks(x, tree);
		put_frames(x);
		json_raw(&x->w, "markers", no_markers);
	}
	json_object_end(&x->w);
	export_tree_destroy(tree);
	return ret;
}

/* -- the file ---------------------------------------------------------------------------------- */

static void put_meta(struct firefox *x)
{
	uint64_t period =
		x->s->samples && x->s->weight_is_ns ? x->s->weight / x->s->samples : 1000000;
	const struct json_value yes = json_of_bool(true), no = json_of_bool(false);

	json_object_begin(&x->w, "meta");
	put_ms(x, "interval", period ? period : 1);
	json_put(&x->w, "startTime", 0u, "processType", 0u, "product",
		 *x->s->osrelease ? x->s->osrelease : "kvmprof", "oscpu", x->s->osrelease);
	json_strf(&x->w, "importedFrom", "kvmprof %s", x->opt->version);
	json_put(&x->w, "stackwalk", 1u, "debug", no, "version", GECKO_VERSION,
		 "preprocessedProfileVersion", FORMAT_VERSION, "symbolicated", yes,
		 "symbolicationNotSupported", yes, "usesOnlyOneStackType", yes,
		 "sourceCodeIsNotOnSearchfox", yes);
	put_constant(x, "markerSchema", NULL, 0);
	json_raw(&x->w, "extensions", "{\"length\":0,\"baseURL\":[],\"id\":[],\"name\":[]}");
	json_put_object(&x->w, "sampleUnits", "time", "ms", "eventDelay", "ms", "threadCPUDelta",
			"ns");
	if (x->s->ncpus)
		json_u64(&x->w, "logicalCPUs", x->s->ncpus);
	json_raw(&x->w, "categories", categories);
	json_object_end(&x->w);
	put_constant(x, "libs", NULL, 0);
}

static void put_shared(struct firefox *x)
{
	json_object_begin(&x->w, "shared");
	json_array_begin(&x->w, "stringArray");
	for (size_t i = 0; i < x->strings.n; i++) {
		json_line(&x->w);
		json_str(&x->w, NULL, text_at(&x->strings, i));
		export_out_flush(x->o);
	}
	json_array_end(&x->w);
	json_raw(&x->w, "sources", "{\"length\":0,\"uuid\":[],\"filename\":[]}");
	json_object_end(&x->w);
}

EXPORT_WRITER(firefox)
{
	struct firefox x = { .s = s, .opt = opt, .o = o };
	int ret = export_labels_create(&x.labels, s, opt->names, e);

	(void)path;
	if (!ret)
		ret = export_tracks_create(&x.tracks, s, EXPORT_TRACK_OF_THREAD, e);
	if (!ret && firefox_prepare(&x) < 0)
		ret = err_nomem(e);
	if (!ret) {
		json_begin(&x.w, &o->buf);
		json_object_begin(&x.w, NULL);
		put_meta(&x);
		put_shared(&x);
		json_array_begin(&x.w, "threads");
	}
	for (size_t i = 0; !ret && i < x.tracks.n; i++)
		if (put_thread(&x, &x.tracks.track[i]) < 0)
			ret = err_set(e, ENOMEM, "out of memory for thread %zu", i);
	if (!ret) {
		json_array_end(&x.w);
		json_object_end(&x.w);
		export_out_char(o, '\n');
	}
	local_deinit(&x.frames);
	local_deinit(&x.funcs);
	local_deinit(&x.resources);
	free(x.label_string);
	free(x.label_dso);
	table_deinit(&x.strings);
	table_deinit(&x.dsos);
	export_tree_destroy(x.tids);
	export_tracks_destroy(&x.tracks);
	export_labels_destroy(x.labels);
	return ret;
}
