/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pprof: profile.proto (pprof.proto beside this file), compressed by gzip.
 *
 * Sample types are samples/count and wall/nanoseconds (or the event's name/count). A
 * sample is a stack on one vCPU, with the labels comm, pid, tid, cpu and mode. Locations
 * are the profile's frames; of the kernel and its modules with run-time addresses, of
 * files with offsets in them, as processes map those to different places. A mapping
 * covers what was seen of its DSO.
 *
 * Messages that are written one behind the other are one message to a reader: repeated
 * fields go on where they were (protobuf's documentation, "Encoding": Last One Wins). So
 * each part is packed alone and forgotten.
 */
#include "profile/analyse/export/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/table.h"

#include <errno.h>
#include <pprof.pb-c.h>
#include <stdlib.h>
#include <string.h>

struct pprof {
	const struct stackset *s;
	struct export_out *o;
	uint64_t began_ns;
	/* const char *; the string's index is one more, because "" is the first */
	struct table strings;
	struct table dsos; /* struct pprof_dso */
	uint32_t *dso_of;  /* indexed by function */
	uint8_t *packed;
	size_t packed_cap;
	int ret;
};

struct pprof_dso {
	const char *name;
	bool kernel; /* addresses are run-time addresses */
	uint64_t start, end;
};

static bool equal_pointer(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return *(const char *const *)a == *(const char *const *)b;
}

/* Returns the index of a text. Equal texts of a stackset are one pointer. */
static int64_t string(struct pprof *p, const char *text)
{
	uint32_t index = 0;
	bool fresh;

	if (!*text)
		return 0;
	if (table_add(&p->strings, table_mix((uint64_t)(uintptr_t)text, 1), &text, &index, &fresh) <
	    0)
		p->ret = -ENOMEM;
	return (int64_t)index + 1;
}

static void pprof_put(struct pprof *p, const Perftools__Profiles__Profile *part)
{
	size_t size = perftools__profiles__profile__get_packed_size(part);

	if (ARRAY_FIT(p->packed, size, p->packed_cap))
		p->ret = -ENOMEM;
	else
		export_out_mem(p->o, p->packed,
			       perftools__profiles__profile__pack(part, p->packed));
}

static void put_head(struct pprof *p)
{
	Perftools__Profiles__ValueType samples = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
	Perftools__Profiles__ValueType weight = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
	Perftools__Profiles__ValueType *types[] = { &samples, &weight };
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
	static const char count[] = "count", ns[] = "nanoseconds", name[] = "samples";
	const char *event = *p->s->event ? p->s->event : "event";
	int64_t comment = string(p, p->s->osrelease);

	samples.type = string(p, name);
	samples.unit = string(p, count);
	weight.type = string(p, event);
	weight.unit = string(p, p->s->weight_is_ns ? ns : count);
	part.sample_type = types;
	part.n_sample_type = ARRAY_SIZE(types);
	part.period_type = &weight;
	part.period = p->s->samples ? (int64_t)(p->s->weight / p->s->samples) : 0;
	part.time_nanos = (int64_t)p->began_ns;
	part.duration_nanos = (int64_t)(p->s->last_ns - p->s->first_ns);
	part.default_sample_type = weight.type;
	if (comment) {
		part.comment = &comment;
		part.n_comment = 1;
	}
	pprof_put(p, &part);
}

static bool equal_dso(const void *a, const void *b, const void *ctx)
{
	const struct pprof_dso *x = a, *y = b;

	(void)ctx;
	return x->name == y->name && x->kernel == y->kernel;
}

static uint64_t address_of(const struct pprof *p, const struct stackset_frame *f)
{
	const struct pprof_dso *d = (struct pprof_dso *)p->dsos.item + p->dso_of[f->func];

	return d->kernel ? f->addr : f->image;
}

static void find_dsos(struct pprof *p)
{
	const struct stackset *s = p->s;

	for (size_t i = 0; i < s->nfuncs && !p->ret; i++) {
		/* For code without a file only the run-time address is known. */
		struct pprof_dso like = { .name = s->func[i].dso,
					  .kernel = s->func[i].kind != STACKSET_KIND_USER,
					  .start = UINT64_MAX };
		bool fresh;

		p->ret = table_add(&p->dsos, table_mix((uint64_t)(uintptr_t)like.name, like.kernel),
				   &like, &p->dso_of[i], &fresh);
	}
	for (size_t i = 0; i < s->nframes && !p->ret; i++) {
		struct pprof_dso *d =
			(struct pprof_dso *)p->dsos.item + p->dso_of[s->frame[i].func];
		uint64_t addr = address_of(p, &s->frame[i]);

		d->start = addr < d->start ? addr : d->start;
		d->end = addr >= d->end ? addr + (addr != UINT64_MAX) : d->end;
	}
}

static void put_mappings(struct pprof *p)
{
	for (size_t i = 0; i < p->dsos.n && !p->ret; i++) {
		const struct pprof_dso *d = (struct pprof_dso *)p->dsos.item + i;
		Perftools__Profiles__Mapping mapping = PERFTOOLS__PROFILES__MAPPING__INIT;
		Perftools__Profiles__Mapping *one = &mapping;
		Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;

		mapping.id = i + 1;
		mapping.memory_start = d->start & ~0xfffull;
		mapping.memory_limit = d->end;
		mapping.file_offset = d->kernel ? 0 : mapping.memory_start;
		mapping.filename = string(p, d->name);
		mapping.has_functions = true; /* readers need not symbolize again */
		part.mapping = &one;
		part.n_mapping = 1;
		pprof_put(p, &part);
	}
}

static void put_functions(struct pprof *p)
{
	for (size_t i = 0; i < p->s->nfuncs && !p->ret; i++) {
		Perftools__Profiles__Function function = PERFTOOLS__PROFILES__FUNCTION__INIT;
		Perftools__Profiles__Function *one = &function;
		Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;

		if (!p->s->func[i].named)
			continue;
		function.id = i + 1;
		function.name = function.system_name = string(p, p->s->func[i].name);
		part.function = &one;
		part.n_function = 1;
		pprof_put(p, &part);
	}
}

static void put_locations(struct pprof *p)
{
	for (size_t i = 0; i < p->s->nframes && !p->ret; i++) {
		const struct stackset_frame *f = &p->s->frame[i];
		Perftools__Profiles__Line line = PERFTOOLS__PROFILES__LINE__INIT, *lines = &line;
		Perftools__Profiles__Location location = PERFTOOLS__PROFILES__LOCATION__INIT;
		Perftools__Profiles__Location *one = &location;
		Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;

		line.function_id = f->func + 1;
		location.id = i + 1;
		location.mapping_id = p->dso_of[f->func] + 1;
		location.address = address_of(p, f);
		/* Readers show the address of a location without a function. */
		location.line = &lines;
		location.n_line = p->s->func[f->func].named ? 1 : 0;
		part.location = &one;
		part.n_location = 1;
		pprof_put(p, &part);
	}
}

static void set_label(struct pprof *p, Perftools__Profiles__Label *l, const char *key,
		      const char *str, int64_t num)
{
	perftools__profiles__label__init(l);
	l->key = string(p, key);
	l->str = str ? string(p, str) : 0;
	l->num = num;
}

static void put_sample(struct pprof *p, const struct export_node *node, uint64_t *ids)
{
	static const char comm[] = "comm", pid[] = "pid", tid[] = "tid", cpu[] = "cpu",
			  mode[] = "mode";
	static const char *const modes[] = { "kernel", "user", "idle", "guest" };
	const struct stackset_stack *st = &p->s->stack[node->parent];
	const struct stackset_task *task = &p->s->task[st->task];
	Perftools__Profiles__Label label[5], *labels[5];
	int64_t value[] = { (int64_t)node->samples, (int64_t)node->weight };
	Perftools__Profiles__Sample sample = PERFTOOLS__PROFILES__SAMPLE__INIT, *one = &sample;
	Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;

	for (uint32_t i = 0; i < st->n; i++)
		ids[i] = (uint64_t)st->frame[i] + 1;
	set_label(p, &label[0], comm, task->comm, 0);
	set_label(p, &label[1], mode, modes[st->mode % ARRAY_SIZE(modes)], 0);
	set_label(p, &label[2], pid, NULL, task->pid);
	set_label(p, &label[3], tid, NULL, task->tid);
	set_label(p, &label[4], cpu, NULL, node->label);
	for (size_t i = 0; i < ARRAY_SIZE(label); i++)
		labels[i] = &label[i];
	sample.location_id = ids;
	sample.n_location_id = st->n;
	sample.value = value;
	sample.n_value = ARRAY_SIZE(value);
	sample.label = labels;
	sample.n_label = ARRAY_SIZE(labels);
	part.sample = &one;
	part.n_sample = 1;
	pprof_put(p, &part);
}

/*
 * Writes the samples: one for each stack and vCPU, which are the nodes of a tree, vCPUs below the
 * stacks' numbers.
 */
static void put_samples(struct pprof *p)
{
	struct export_tree *by_cpu = export_tree_create();
	cleanup_free uint64_t *ids = NULL;
	size_t deepest = 1;

	for (size_t i = 0; i < p->s->nstacks; i++)
		deepest = p->s->stack[i].n > deepest ? p->s->stack[i].n : deepest;
	ids = calloc(deepest, sizeof(*ids));
	if (!by_cpu || !ids)
		p->ret = -ENOMEM;
	for (size_t i = 0; i < p->s->nsamples && !p->ret; i++) {
		const struct stackset_sample *sample = &p->s->sample[i];
		uint32_t node;

		p->ret = export_tree_add(by_cpu, sample->stack, sample->cpu, &node);
		if (p->ret)
			break;
		export_node(by_cpu, node)->samples++;
		export_node(by_cpu, node)->weight += sample->weight;
	}
	for (size_t i = 0; !p->ret && i < export_tree_count(by_cpu); i++)
		put_sample(p, export_node(by_cpu, (uint32_t)i), ids);
	export_tree_destroy(by_cpu);
}

static void put_strings(struct pprof *p)
{
	for (size_t i = 0; i <= p->strings.n && !p->ret; i++) {
		Perftools__Profiles__Profile part = PERFTOOLS__PROFILES__PROFILE__INIT;
		char *text = utf8_copy(i ? ((const char **)p->strings.item)[i - 1] : "");

		if (!text) {
			p->ret = -ENOMEM;
			return;
		}
		part.string_table = &text;
		part.n_string_table = 1;
		pprof_put(p, &part);
		free(text);
	}
}

EXPORT_WRITER(pprof)
{
	struct pprof p = { .s = s, .o = o, .began_ns = opt->began_ns };

	(void)path;
	p.strings = TABLE_OF(const char *, equal_pointer);
	p.dsos = TABLE_OF(struct pprof_dso, equal_dso);
	p.dso_of = calloc(s->nfuncs + 1, sizeof(*p.dso_of));
	if (!p.dso_of)
		p.ret = -ENOMEM;
	else
		find_dsos(&p);
	if (!p.ret) {
		put_head(&p);
		put_mappings(&p);
		put_functions(&p);
		put_locations(&p);
		put_samples(&p);
		put_strings(&p);
	}
	table_deinit(&p.strings);
	table_deinit(&p.dsos);
	free(p.dso_of);
	free(p.packed);
	return p.ret ? err_set(e, -p.ret, "out of memory") : 0;
}
