/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * user_profile: a perf.data of samples in chosen functions of one user file, with the file, or one
 * made from it, in a build-id cache: for tests that query stock perf for the names. Include it
 * after cmocka's prerequisites (setjmp.h, stdarg.h).
 */
#ifndef KVMPROF_TESTS_UNIT_USER_PROFILE_H
#define KVMPROF_TESTS_UNIT_USER_PROFILE_H

#include "base/file.h"
#include "base/sample.h"
#include "profile/format/perfdata/sink.h"
#include "symbolizer/program/userelf.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LOAD_BIAS 0x7f1234000000ull

struct original {
	struct file_map map;
	struct file_bytes bytes;
	struct userelf u;
	struct symtab *t;
};

static inline void original_open(struct original *o, const char *path)
{
	struct file_source src;
	struct err e = { 0 };

	if (file_map_open(&o->map, path, 1u << 30, &e) < 0)
		fail_msg("%s", e.text);
	o->bytes = (struct file_bytes){ o->map.data, o->map.len };
	src = filepiece_source_of_bytes(&o->bytes);
	if (userelf_open(&o->u, path, &src, &e) < 0 || userelf_symbols(&o->u, &o->t, NULL, &e) < 0)
		fail_msg("%s", e.text);
}

static inline void original_close(struct original *o)
{
	symtab_destroy(o->t);
	file_map_close(&o->map);
}

/* Up to max functions with a size, a symbol and no alias, spread over the file; returns how many. */
static inline unsigned int pick(const struct original *o, const struct symbol **out,
				unsigned int max)
{
	size_t n = symtab_count(o->t), step = n / max + 1;
	unsigned int k = 0;

	for (size_t i = 1; i + 1 < n && k < max; i += step) {
		const struct symbol *s = symtab_at(o->t, i);

		/* perf 6.1 miscounts PLT entries. */
		if (s->size >= 16 && !strstr(s->name, "@plt") &&
		    symtab_at(o->t, i - 1)->addr + symtab_at(o->t, i - 1)->size <= s->addr &&
		    symtab_at(o->t, i + 1)->addr >= s->addr + s->size)
			out[k++] = s;
	}
	return k;
}

static inline void write_profile(const struct original *o, const char *root, const void *elf,
				 size_t elf_len, const uint8_t *id, const struct symbol **s,
				 unsigned int n)
{
	char path[128], cache[128];
	char *argv[] = { path, NULL };
	struct err e = { 0 }, note = { 0 };
	struct sink_perfdata_options opt = { .path = path, .buildid_dir = cache, .note = &note };
	struct profile_info info = { .event = { PROFILE_EVENT_WALL(1000) },
				     .nevents = 1,
				     .vcpus = 1,
				     .hostname = "host",
				     .argc = 1,
				     .argv = argv };
	struct profile_totals totals = { .json = "{}" };
	struct profile_map map = { .pid = 7,
				   .tid = 7,
				   .time_ns = 5000000000u,
				   .build_id = id,
				   .path = "/opt/guest/libguest.so.1",
				   .elf = elf,
				   .elf_len = elf_len };
	struct sink *sink;
	int ret;

	snprintf(path, sizeof(path), "%s/perf.data", root);
	snprintf(cache, sizeof(cache), "%s/.debug", root);
	ret = perfdata_sink_create(&sink, &opt, &e);
	ret = ret ? ret : sink->ops->begin(sink, &info, &e);
	ret = ret ? ret
		  : sink->ops->comm(sink,
				    &(struct profile_comm){ 7, 7, "guestprog", false, 5000000000u },
				    &e);
	for (unsigned int i = 0; i < o->u.nseg; i++) {
		const struct userelf_segment *g = &o->u.seg[i];

		if (!(g->flags & PF_X))
			continue;
		map.addr = LOAD_BIAS + (g->va & ~4095ull);
		map.pgoff = g->file_off & ~4095ull;
		map.len = (g->mem_len + (g->va & 4095) + 4095) & ~4095ull;
		ret = ret ? ret : sink->ops->map(sink, &map, &e);
	}
	for (unsigned int i = 0; i < n && ret == 0; i++) {
		static struct stack st;
		struct profile_sample p = { .pid = 7,
					    .tid = 7,
					    .period = 1000000,
					    .stack = &st,
					    .mode = SAMPLE_USER,
					    .time_ns = 5000001000u + i * 1000000ull };

		st.n = 1;
		st.end = STACK_END_ROOT;
		st.exact[0] = 1;
		st.ip[0] = LOAD_BIAS + s[i]->addr + s[i]->size / 2;
		ret = sink->ops->sample(sink, &p, &e);
	}
	ret = ret ? ret : sink->ops->end(sink, &totals, &e);
	if (ret || note.code)
		fail_msg("%s%s", e.text, note.text);
	sink->ops->destroy(sink);
}

#endif
