/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs, libraries and modules that take each other's place, while samples are named late.
 *
 * A made-up guest runs in virtual time, one step a millisecond. At each step something may be replaced, a sample is captured, and
 * the sample of `delay` steps before is processed with the guest's memory as it is now. A name in the profile is what the sink was told last for
 * the address and the time. The truth is what was there at the capture.
 */
#include "base/cleanup.h"
#include "profile/record/guest/code.h"
#include "profile/record/guest/maps.h"

#define LM_ARENA (1u << 20)
#include "tests/unit/guest_fixture.h"

#include <limits.h>
#include <setjmp.h>

#include <cmocka.h>

#define STEP UINT64_C(1000000) /* ns */
#define SAMPLES 20000u
#define LIFETIME 2000u /* steps */
#define KINDS 3u
#define RX (LINUX_VM_READ | LINUX_VM_EXEC)
#define CODE UINT64_C(0x400000)
#define LIB UINT64_C(0x7f0000100000)
#define TEXT UINT64_C(0xffffffffa0000000)
#define MAX_TOLD 20000u

static struct lm g;
static struct memory mem;
static struct linux_task_layout task_layout;
static struct linux_mm_layout mm_layout;
static struct linux_file_layout file_layout;
static struct linux_module_layout module_layout;
static struct gf_sink sink;
static struct sink_ops ops;
static struct guest_tasks *tasks;
static struct guest_dsos *dsos;
static struct guest_jit *jit;
static struct guest_maps *maps;
static struct guest_code *code;
static uint64_t now, root, mnt, program, file[KINDS], dentry[KINDS], inode[KINDS];
static const char *const names[KINDS] = { "/a", "/b", "/c" };

/* The reports to the sink about the place that is watched. */
static struct {
	uint64_t time_ns;
	char name[24];
} told[MAX_TOLD];
static unsigned int ntold;
static uint64_t watched;

/* The fate of a sample. */
static struct {
	uint64_t time_ns;
	unsigned int truth;
	bool marked; /* the frame has no name */
} result[SAMPLES];

static uint64_t look_now(void *ctx)
{
	(void)ctx;
	return now + 1000;
}

static void note(uint64_t time_ns, uint64_t addr, uint64_t len, const char *name)
{
	if (watched - addr >= len)
		return;
	assert_true(ntold < MAX_TOLD);
	told[ntold].time_ns = time_ns;
	snprintf(told[ntold++].name, sizeof(told[0].name), "%s", name);
}

static int on_map(struct sink *s, const struct profile_map *m, struct err *e)
{
	(void)s;
	(void)e;
	note(m->time_ns, m->addr, m->len, m->path);
	return 0;
}

static int on_module(struct sink *s, const struct profile_module *m, struct err *e)
{
	(void)s;
	(void)e;
	note(m->time_ns, m->addr, m->len, m->name);
	return 0;
}

/* Another program: nothing is mapped any more. */
static int on_comm(struct sink *s, const struct profile_comm *c, struct err *e)
{
	(void)s;
	(void)e;
	if (c->exec)
		note(c->time_ns, watched, 1, "");
	return 0;
}

/* As a reader of the profile finds it: by time, and of one time by the order of the calls. */
static const char *name_of(uint64_t time_ns)
{
	const char *name = "";
	uint64_t best = 0;

	for (unsigned int i = 0; i < ntold; i++)
		if (told[i].time_ns <= time_ns && told[i].time_ns >= best) {
			best = told[i].time_ns;
			name = told[i].name;
		}
	return name;
}

static int setup_kernel(bool counts)
{
	struct buf elf;

	memset(&g, 0, sizeof(g));
	memset(result, 0, sizeof(result));
	ntold = 0;
	mem = lm_memory(&g);
	task_layout = gf_task_layout();
	lm_layout(&mm_layout, true);
	if (!counts)
		mm_layout.mm_changes = LINUX_NO_MEMBER;
	gf_file_layout(&file_layout);
	gf_sink_init(&sink);
	ops = *sink.sink.ops;
	ops.map = on_map;
	ops.module = on_module;
	ops.comm = on_comm;
	sink.sink.ops = &ops;
	now = UINT64_C(1) << 40;
	root = lm_dentry(&g, 0, "/");
	mnt = lm_mount(&g, root, 0, 0);
	gf_elf(&elf, 0xaa, "fn", 4);
	program = gf_file(&g, mnt, lm_dentry(&g, root, "prog"), 7, elf.data, elf.len, UINT_MAX);
	for (unsigned int i = 0; i < KINDS; i++) {
		file[i] = gf_file(&g, mnt, lm_dentry(&g, root, names[i] + 1), 10 + i, elf.data,
				  elf.len, UINT_MAX);
		memcpy(&inode[i], lm_ptr(&g, file[i] + 8, 8), 8);
		memcpy(&dentry[i], lm_ptr(&g, file[i] + 16, 8), 8);
	}
	buf_deinit(&elf);
	module_layout = gf_module_layout(lm_alloc(&g, 16, 16));
	module_layout.kernel_start = UINT64_C(0xffffffff81000000);
	module_layout.kernel_end = module_layout.kernel_start + 0x1000000;
	gf_set_list(&g, module_layout.modules, GF_M_LIST, NULL, 0);
	if (guest_tasks_create(&tasks, &task_layout, &mem, &sink.sink, NULL) ||
	    guest_dsos_create(&dsos, &mm_layout, &file_layout, &mem, NULL, NULL) ||
	    guest_jit_create(&jit, NULL, &sink.sink, NULL) ||
	    guest_maps_create(&maps,
			      &(struct guest_maps_parts){ &mm_layout, &mem, tasks, dsos, jit,
							  &sink.sink },
			      NULL) ||
	    guest_code_create(&code, &mem, &sink.sink, NULL))
		return -1;
	guest_tasks_members_known(tasks);
	guest_maps_set_clock(maps, look_now, NULL);
	guest_code_set_clock(code, look_now, NULL);
	guest_code_use_modules(code, &module_layout);
	return 0;
}

static void end_kernel(void)
{
	guest_code_destroy(code);
	guest_maps_destroy(maps);
	guest_jit_destroy(jit);
	guest_dsos_destroy(dsos);
	guest_tasks_destroy(tasks);
	gf_sink_deinit(&sink);
}

/* -- the guest ------------------------------------------------------------------------ */

struct chain {
	const char *what;
	uint64_t watched;
	void (*begin)(void);
	void (*replace)(unsigned int kind);
	bool (*process)(struct sample *s); /* false: the frame has no name */
};

static uint64_t mm[2], task, library, module[KINDS];
static unsigned int turn;

/* One mapping of the program, and one of `second`, or none. */
static void map_files(uint64_t at, uint64_t first, uint64_t second)
{
	uint64_t vma[2] = { lm_vma(&g, at, CODE, CODE + 0x2000, RX, 0, first), 0 };
	uint32_t changes;

	if (second)
		vma[1] = lm_vma(&g, at, LIB, LIB + 0x3000, RX, 0, second);
	lm_maple(&g, at, vma, second ? 2 : 1, 7, 3, LM_MAPLE_ARANGE);
	if (mm_layout.mm_changes == LINUX_NO_MEMBER)
		return;
	memcpy(&changes, lm_ptr(&g, at + mm_layout.mm_changes, 4), 4);
	lm_put32(&g, at + mm_layout.mm_changes, changes + 1);
}

static void begin_program(void)
{
	mm[0] = lm_alloc(&g, LM_MM_SIZE, 8);
	mm[1] = lm_alloc(&g, LM_MM_SIZE, 8);
	map_files(mm[0], program, 0);
	task = gf_task(&g, 70, 70, "prog", mm[0], 6, 0);
	lm_put32(&g, task + GF_EXEC, 1);
	library = file[0];
	turn = 0;
}

/* dlclose() and dlopen(): the slab hands out the same struct file, of another file. */
static void replace_library(unsigned int kind)
{
	lm_put64(&g, library + 8, inode[kind]);
	lm_put64(&g, library + 16, dentry[kind]);
	map_files(mm[0], program, library);
}

/* exec: the address of the mm before the last one comes again. */
static void replace_program(unsigned int kind)
{
	turn++;
	map_files(mm[turn & 1], file[kind], 0);
	lm_put64(&g, task + GF_MM, mm[turn & 1]);
	lm_put32(&g, task + GF_EXEC, 1 + turn);
}

static void begin_modules(void)
{
	begin_program();
	for (unsigned int i = 0; i < KINDS; i++)
		module[i] = gf_new_module(&g, names[i] + 1, TEXT);
}

static void replace_module(unsigned int kind)
{
	gf_set_list(&g, module_layout.modules, GF_M_LIST, &module[kind], 1);
}

/* -- capture, and what comes of it later ---------------------------------------------- */

static struct sample chains_capture(void)
{
	struct sample s = gf_sample(&g, task, now);

	s.regs.cr3 = LM_CR3;
	s.task.has_changes = mm_layout.mm_changes != LINUX_NO_MEMBER;
	if (s.task.has_changes)
		memcpy(&s.mm_changes, lm_ptr(&g, s.task.mm + mm_layout.mm_changes, 4), 4);
	return s;
}

static bool process_mappings(struct sample *s)
{
	const uint64_t ip[2] = { CODE + 8, watched + 8 };
	const struct guest_task *seen;
	struct guest_owner owner;
	uint32_t pid, tid;

	assert_int_equal(guest_tasks_identify(tasks, s, &pid, &tid, &seen, NULL), 0);
	assert_non_null(seen);
	owner = guest_maps_owner(maps, seen);
	assert_int_equal(guest_maps_update(maps, &owner, s, ip, 2, NULL), 0);
	return true;
}

static bool process_code(struct sample *s)
{
	const uint64_t ip[1] = { watched + 8 };

	assert_int_equal(guest_code_update(code, ip[0], GUEST_IP_ELSEWHERE, s->time_ns, NULL), 0);
	assert_int_equal(guest_code_prove(code, ip, 1, s->time_ns, NULL), 0);
	return !guest_code_is_uncertain(code, ip[0], s->time_ns);
}

static const struct chain chains[] = {
	{ "libraries", LIB, begin_program, replace_library, process_mappings },
	{ "programs", CODE, begin_program, replace_program, process_mappings },
	{ "modules", TEXT, begin_modules, replace_module, process_code },
};

/* Runs a chain, with samples that are named `delay` steps later. */
static void run(const struct chain *c, bool counts, unsigned int delay)
{
	static struct sample waiting[SAMPLES];
	unsigned int wrong = 0, marked = 0, kind = 0, bound;

	assert_int_equal(setup_kernel(counts), 0);
	watched = c->watched;
	c->begin();
	for (unsigned int i = 0; i < SAMPLES + delay; i++) {
		now += STEP;
		if (i % LIFETIME == 0) {
			kind = (kind + 1) % KINDS;
			c->replace(kind);
		}
		if (i < SAMPLES) {
			waiting[i] = chains_capture();
			result[i].time_ns = now;
			result[i].truth = kind;
		}
		if (i >= delay)
			result[i - delay].marked = !c->process(&waiting[i - delay]);
	}
	for (unsigned int i = 0; i < SAMPLES; i++) {
		const char *name = result[i].marked ? "" : name_of(result[i].time_ns);
		bool nameless = !*name || *name == '[';

		marked += nameless;
		/* A module's name is no path. */
		wrong += !nameless && strcmp(name, names[result[i].truth] + (*name != '/')) != 0;
	}
	/* At most 1 %, and the share of the time in which the samples of one were named under the next one. */
	bound = SAMPLES / 100 + (delay ? SAMPLES / LIFETIME * delay : 0);
	print_message("%s, %s, named %u ms later: %u wrong, %u of %u without a name\n", c->what,
		      counts ? "changes counted" : "not counted", delay, wrong, marked, SAMPLES);
	end_kernel();
	assert_int_equal(wrong, 0);
	assert_in_range(marked, 0, bound);
}

static void test_chain(const struct chain *c)
{
	static const unsigned int delays[] = { 0, 10, 100, 1000 };

	for (size_t i = 0; i < ARRAY_SIZE(delays); i++) {
		run(c, true, delays[i]);
		run(c, false, delays[i]);
	}
}

static void libraries(void **state)
{
	(void)state;
	test_chain(&chains[0]);
}

static void programs(void **state)
{
	(void)state;
	test_chain(&chains[1]);
}

static void modules(void **state)
{
	(void)state;
	test_chain(&chains[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libraries),
		cmocka_unit_test(programs),
		cmocka_unit_test(modules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
