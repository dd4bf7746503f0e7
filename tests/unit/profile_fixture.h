/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * profile_fixture: small profiles of which the test makes every sample, written as the program
 * writes them: a kernel, one module, one program, one process's JIT code. Include it after cmocka's
 * prerequisites (setjmp.h, stdarg.h).
 */
#ifndef KVMPROF_TESTS_UNIT_PROFILE_FIXTURE_H
#define KVMPROF_TESTS_UNIT_PROFILE_FIXTURE_H

#include "base/file.h"
#include "base/sample.h"
#include "profile/format/perfdata/sink.h"
#include "symbolizer/program/elfsynth.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FX_TEXT 0xffffffff81000000u
#define FX_MODULE 0xffffffffc0000000u
#define FX_USER 0x555500000000u /* address at which /bin/prog is mapped */
#define FX_USER_VA 0x401000u	/* address in its file, at offset 0x1000 */
#define FX_JIT 0x7f0000000000u
#define FX_T0 5000000000u /* time of the first sample, if a test uses it */

/* Kernel functions of 0x100 bytes: fx_k(0) is outer. */
static const char *const fx_kernel_name[] = { "outer", "middle", "inner", "idle_loop" };
#define fx_k(i, off) (FX_TEXT + (uint64_t)(i)*0x100 + (off))
#define fx_m(off) (FX_MODULE + (uint64_t)(off))
/* Program functions: 0 main, 1 work(int) */
#define fx_u(i, off) (FX_USER + (uint64_t)(i)*0x100 + (off))

struct fx {
	char root[64];
	struct symtab *kernel, *module;
	struct sink *sink;
	/* NULL, or makes a sink in front of the file's sink */
	struct sink *(*wrap)(struct sink *s);
	bool overwrite; /* sink_perfdata_options.late_samples */
};

static inline int fx_setup(struct fx *f)
{
	*f = (struct fx){ .kernel = symtab_create(), .module = symtab_create() };
	snprintf(f->root, sizeof(f->root), "/tmp/kvmprof-test.XXXXXX");
	for (unsigned int i = 0; i < 4; i++)
		symtab_add(f->kernel, fx_k(i, 0), 0x100, 'T', fx_kernel_name[i]);
	symtab_add(f->module, FX_MODULE + 0x40, 0x100, 't', "mod_write");
	symtab_add(f->module, FX_MODULE + 0x140, 0x100, 't', "mod_read");
	if (symtab_freeze(f->kernel, NULL) || symtab_freeze(f->module, NULL))
		return -1;
	return mkdtemp(f->root) ? 0 : -1;
}

static inline int fx_teardown(struct fx *f)
{
	if (f->sink)
		f->sink->ops->destroy(f->sink);
	symtab_destroy(f->kernel);
	symtab_destroy(f->module);
	return file_remove_tree(f->root, NULL);
}

static inline const char *fx_path(const struct fx *f, const char *name)
{
	static char path[4][128];
	static unsigned int turn;
	char *p = path[turn++ & 3];

	snprintf(p, sizeof(path[0]), "%s/%s", f->root, name);
	return p;
}

static inline void fx_program(struct buf *out, const uint8_t *id)
{
	static struct userelf u;
	struct symtab *t = symtab_create();

	u = (struct userelf){ .type = ET_EXEC, .entry = FX_USER_VA, .nseg = 1 };
	u.seg[0] = (struct userelf_segment){ .va = FX_USER_VA,
					     .file_off = 0x1000,
					     .file_len = 0x1000,
					     .mem_len = 0x1000,
					     .align = 0x1000,
					     .flags = PF_R | PF_X };
	symtab_add(t, FX_USER_VA, 0x100, 'T', "main");
	symtab_add(t, FX_USER_VA + 0x100, 0x100, 'T', "_Z4worki");
	assert_int_equal(symtab_freeze(t, NULL), 0);
	assert_int_equal(elfsynth_write(out, &u, id, 20, t, NULL), 0);
	symtab_destroy(t);
}

static inline void fx_map_program(struct fx *f, uint32_t pid)
{
	static const uint8_t id[20] = { 0x11, 0x22 };
	struct profile_map m = { .pid = pid,
				 .tid = pid,
				 .addr = FX_USER,
				 .len = 0x1000,
				 .pgoff = 0x1000,
				 .time_ns = FX_T0 - 10,
				 .path = "/bin/prog",
				 .build_id = id };
	struct buf elf;

	buf_init(&elf);
	fx_program(&elf, id);
	m.elf = elf.data;
	m.elf_len = elf.len;
	assert_int_equal(f->sink->ops->map(f->sink, &m, NULL), 0);
	buf_deinit(&elf);
}

/*
 * Opens f->root/NAME, with its cache in f->root/cache: processes 7 ("prog") and 8 (forked by it),
 * which have mapped /bin/prog; 7 also has code without a file.
 */
static inline void fx_begin(struct fx *f, const char *name, bool single)
{
	static const uint8_t jit_id[20] = { 0x33, 0x44 };
	static struct profile_info info = { .event = { PROFILE_EVENT_WALL(1000) },
					    .nevents = 1,
					    .vcpus = 2 };
	char path[128], cache[128];
	struct sink_perfdata_options opt = { .path = path,
					     .single_file = single,
					     .late_samples = f->overwrite,
					     .buildid_dir = cache };
	struct profile_kernel k = { .symbols = f->kernel,
				    .text = FX_TEXT,
				    .end = FX_TEXT + 0x10000,
				    .osrelease = "6.1.0-fx" };
	struct profile_module m = { .name = "fxmod",
				    .addr = FX_MODULE,
				    .len = 0x2000,
				    .time_ns = FX_T0 - 10,
				    .symbols = f->module };
	struct profile_map jit = { .pid = 7,
				   .tid = 7,
				   .addr = FX_JIT,
				   .len = 0x1000,
				   .pgoff = FX_JIT,
				   .time_ns = FX_T0 - 10,
				   .path = "[jit:7]",
				   .build_id = jit_id };
	struct sink *s;

	snprintf(path, sizeof(path), "%s/%s", f->root, name);
	snprintf(cache, sizeof(cache), "%s/cache", f->root);
	assert_int_equal(perfdata_sink_create(&f->sink, &opt, NULL), 0);
	if (f->wrap)
		f->sink = f->wrap(f->sink);
	s = f->sink;
	assert_int_equal(s->ops->begin(s, &info, NULL), 0);
	assert_int_equal(s->ops->kernel(s, &k, NULL), 0);
	assert_int_equal(s->ops->module(s, &m, NULL), 0);
	assert_int_equal(s->ops->comm(s, &(struct profile_comm){ 7, 7, "prog", false, FX_T0 - 30 },
				      NULL),
			 0);
	assert_int_equal(s->ops->fork(s, &(struct profile_fork){ 8, 8, 7, 7, FX_T0 - 20 }, NULL),
			 0);
	fx_map_program(f, 7);
	fx_map_program(f, 8);
	assert_int_equal(s->ops->map(s, &jit, NULL), 0);
}

/* One sample; frames innermost first, the kernel's before the program's. */
struct fx_sample {
	uint64_t after_ns, weight; /* after FX_T0 */
	uint32_t pid, tid, cpu;
	bool idle;
	unsigned int n;
	uint64_t ip[8];
};

static inline void fx_add(struct fx *f, const struct fx_sample *x)
{
	static struct stack st;
	struct profile_sample s = { .pid = x->pid,
				    .tid = x->tid ? x->tid : x->pid,
				    .cpu = x->cpu,
				    .time_ns = FX_T0 + x->after_ns,
				    .period = x->weight,
				    .stack = &st };

	memset(&st, 0, sizeof(st));
	st.end = STACK_END_ROOT;
	for (unsigned int i = 0; i < x->n; i++) {
		st.ip[st.n] = x->ip[i];
		st.exact[st.n++] = i == 0;
		st.n_kernel += x->ip[i] >> 63;
	}
	s.mode = x->idle ? SAMPLE_IDLE : st.n_kernel ? SAMPLE_KERNEL : SAMPLE_USER;
	assert_int_equal(f->sink->ops->sample(f->sink, &s, NULL), 0);
}

static inline void fx_end(struct fx *f)
{
	struct profile_totals t = { .json = "{\"made_up\":true}" };

	assert_int_equal(f->sink->ops->end(f->sink, &t, NULL), 0);
	f->sink->ops->destroy(f->sink);
	f->sink = NULL;
}

#endif
