/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory for the test, and a sink that writes a profile of a small kernel there. */
#ifndef KVMPROF_TESTS_PERFDATA_FIXTURE_H
#define KVMPROF_TESTS_PERFDATA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/sample.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read.h"
#include "profile/format/perfdata/sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT 0xffffffff81000000u

static char root[64];

static inline int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/kvmprof-test.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static inline int teardown(void **state)
{
	(void)state;
	return file_remove_tree(root, NULL);
}

static inline const char *in_root(const char *name)
{
	static char path[4][128];
	static unsigned int turn;
	char *p = path[turn++ & 3];

	snprintf(p, 128, "%s/%s", root, name);
	return p;
}

static inline bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static inline size_t read_nops(void *ctx, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	(void)va;
	memset(dst, 0x90, len);
	return len;
}

static inline struct symtab *make_symbols(void)
{
	struct symtab *t = symtab_create();

	assert_int_equal(symtab_add(t, TEXT, 0, 'T', "_text"), 0);
	assert_int_equal(symtab_add(t, TEXT, 0x100, 'T', "first"), 0);
	assert_int_equal(symtab_add(t, TEXT + 0x100, 0x100, 't', "second"), 0);
	assert_int_equal(symtab_add(t, TEXT + 0x100, 0x100, 'W', "second_alias_of_weak_kind"), 0);
	assert_int_equal(symtab_add(t, TEXT + 0x9000, 0x100, 'T', "far"), 0);
	assert_int_equal(symtab_add(t, TEXT + 0xa000, 0, 'D', "data"), 0);
	assert_int_equal(symtab_freeze(t, NULL), 0);
	return t;
}

static inline struct profile_info make_info(void)
{
	static char arg0[] = "kvmprof";
	static char *argv[] = { arg0, NULL };

	return (struct profile_info){
		.event = { PROFILE_EVENT_WALL(1000) },
		.nevents = 1,
		.vcpus = 2,
		.hostname = "h",
		.argc = 1,
		.argv = argv,
	};
}

static inline struct profile_kernel make_kernel(const struct symtab *t)
{
	return (struct profile_kernel){
		.osrelease = "6.9.0",
		.symbols = t,
		.text = TEXT,
		.end = TEXT + 0x10000,
		.read_text = read_nops,
	};
}

static inline int begin(struct sink *s, const struct symtab *t)
{
	static struct profile_info info;
	struct profile_kernel k = make_kernel(t);
	int ret;

	info = make_info();
	ret = s->ops->begin(s, &info, NULL);
	return ret ? ret : s->ops->kernel(s, &k, NULL);
}

static inline struct sink *make_sink(const char *path, bool single)
{
	struct sink_perfdata_options opt = {
		.path = path,
		.single_file = single,
		.buildid_dir = in_root("cache"),
	};
	struct sink *s = NULL;
	struct err e = { 0 };

	assert_int_equal(perfdata_sink_create(&s, &opt, &e), 0);
	return s;
}

static inline void add_sample(struct sink *s, uint64_t time_ns, uint32_t cpu, const uint64_t *ip,
			      unsigned int n, unsigned int nk)
{
	static struct stack st;
	struct profile_sample sample = {
		.pid = 1,
		.tid = 1 + cpu,
		.cpu = cpu,
		.time_ns = time_ns,
		.period = 1000 + cpu,
		.mode = nk ? SAMPLE_KERNEL : SAMPLE_USER,
		.stack = &st,
	};
	struct err e = { 0 };

	memset(&st, 0, sizeof(st));
	st.n = (uint16_t)n;
	st.n_kernel = (uint16_t)nk;
	for (unsigned int i = 0; i < n; i++)
		st.ip[i] = ip[i];
	assert_int_equal(s->ops->sample(s, &sample, &e), 0);
}

#endif
