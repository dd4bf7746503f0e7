/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state of a task and where it waits, in a hand-made guest's memory. */
#include "base/linux_regs.h"
#include "symbolizer/linux/sched_find.h"
#include "symbolizer/linux/sleeper.h"

#include "tests/linux_guest.h"
#include "tests/sample_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const uint64_t text[2] = { 0xffffffff81000000ull, 0xffffffff82000000ull };
static struct guest g;
static struct linux_task_layout l;
static struct linux_sched_layout sched;

/* Changes the guest just after a task's stack was read; NULL: no change. */
static void (*change)(void);

static size_t read_guest(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	size_t n = guest_read(ctx, space, va, dst, len);

	if (change && va == GUEST_SP(7))
		change();
	return n;
}

static struct memory mem = { read_guest, &g };

static void prepare(const struct types *types)
{
	struct symtab *s = guest_symbols();

	change = NULL;
	guest_make(&g, false);
	assert_int_equal(linux_task_layout(&l, types, s, &mem, NULL), 0);
	linux_sched_none(&sched);
	linux_sched_symbols(&sched, s);
	if (types)
		assert_int_equal(linux_sched_from_types(&sched, types, NULL), 0);
	symtab_destroy(s);
}

static void by_types(void **state)
{
	struct types old = guest_types;

	(void)state;
	prepare(&guest_types);
	assert_int_equal(sched.source, LINUX_TASK_BY_TYPES);
	assert_int_equal(sched.state, G_STATE);
	assert_int_equal(sched.sp, G_SP);
	assert_int_equal(sched.run_ns, G_RUN_NS);
	assert_int_equal(sched.switches[1], G_SWITCHES + 8);
	assert_int_equal(sched.on_cpu, LINUX_TASK_NONE);
	assert_int_equal(sched.stack_size, LINUX_STACK_LEN);
	/* Facts that a kernel does not have are unknown, which is no error. */
	old.ctx = (void *)(uintptr_t) "thread.sp";
	linux_sched_none(&sched);
	assert_int_equal(linux_sched_from_types(&sched, &old, NULL), 0);
	assert_int_equal(sched.sp, LINUX_TASK_NONE);
	assert_int_equal(sched.state, G_STATE);
}

static void find(void)
{
	linux_sched_none(&sched);
	assert_int_equal(linux_sched_from_content(&sched, &l, &mem, text, NULL), 0);
}

static void by_content(void **state)
{
	(void)state;
	prepare(NULL);
	find();
	assert_int_equal(sched.source, LINUX_TASK_BY_CONTENT);
	assert_int_equal(sched.state, G_STATE);
	assert_int_equal(sched.sp, G_SP);
	assert_int_equal(sched.run_ns, LINUX_TASK_NONE);
}

/* Two places, or one task that disagrees, and there is none. */
static void no_guess(void **state)
{
	(void)state;
	prepare(NULL);
	for (unsigned int i = 0; i < GUEST_TASKS; i++)
		guest_u64(&g, guest_task_va(i) + 1400, GUEST_SP(i));
	find();
	assert_int_equal(sched.sp, LINUX_TASK_NONE);
	assert_int_equal(sched.state, G_STATE);
	prepare(NULL);
	guest_u64(&g, guest_task_va(4) + G_SP, GUEST_SP(5));
	guest_u32(&g, guest_task_va(4) + G_STATE, 0x40000000);
	find();
	assert_int_equal(sched.sp, LINUX_TASK_NONE);
	assert_int_equal(sched.state, LINUX_TASK_NONE);
	assert_int_equal(sched.source, 0);
	/* a frame that returns to no code */
	prepare(NULL);
	memset(g.stack[3] + 48, 0, 8);
	find();
	assert_int_equal(sched.sp, LINUX_TASK_NONE);
}

/* As 4.14.y, 4.19.y and 5.4: flags below the registers. */
static int with_flags(void *ctx, const char *structure, const char *path, struct type_member *out)
{
	const uint32_t *ret_at = ctx;

	if (!strcmp(structure, "inactive_task_frame") && !strcmp(path, "ret_addr")) {
		*out = (struct type_member){ .off = *ret_at, .size = 8 };
		return 0;
	}
	return guest_member(NULL, structure, path, out);
}

static void push_flags(void)
{
	for (unsigned int i = 0; i < GUEST_TASKS; i++) {
		memmove(g.stack[i] + 8, g.stack[i], 56);
		memset(g.stack[i], 0, 8);
		g.stack[i][0] = 0x46;
	}
}

static void saved_flags_by_content(void **state)
{
	(void)state;
	prepare(NULL);
	push_flags();
	find();
	assert_int_equal(sched.sp, G_SP);
	assert_int_equal(sched.sp_skip, 8);
	/* Code where both forms have their caller is no evidence for either. */
	for (unsigned int i = 0; i < GUEST_TASKS; i++)
		memcpy(g.stack[i] + 48, g.stack[i] + 56, 8);
	find();
	assert_int_equal(sched.sp, LINUX_TASK_NONE);
}

static char letter(uint32_t value, uint32_t exit_state)
{
	struct linux_sched s;

	guest_u32(&g, guest_task_va(7) + G_STATE, value);
	guest_u32(&g, guest_task_va(7) + G_EXIT_STATE, exit_state);
	assert_true(linux_sched_read(&sched, &mem, guest_task_va(7), NULL, &s));
	return s.state;
}

/* As the kernel's own task_state_index() has them. */
static void states(void **state)
{
	(void)state;
	prepare(&guest_types);
	assert_int_equal(letter(0, 0), 'R');
	assert_int_equal(letter(1, 0), 'S');
	assert_int_equal(letter(2, 0), 'D');
	assert_int_equal(letter(0x102, 0), 'D'); /* TASK_KILLABLE */
	assert_int_equal(letter(0x402, 0), 'I');
	assert_int_equal(letter(0x104, 0), 'T');
	assert_int_equal(letter(0x108, 0), 't');
	assert_int_equal(letter(0x40, 0), 'P');
	assert_int_equal(letter(0x80, 0x20), 'Z');
	assert_int_equal(letter(0x80, 0x10), 'X');
	assert_int_equal(letter(0x80, 0), 'Z');
	assert_int_equal(letter(0x8000, 0), 'D'); /* TASK_FROZEN */
}

static void reads(void **state)
{
	struct linux_running now;
	struct linux_sched s;

	(void)state;
	prepare(&guest_types);
	linux_sched_running(&sched, &l, &mem, 8, &now);
	assert_int_equal(now.n, 1);
	assert_int_equal(now.task[0], guest_task_va(6));
	assert_true(linux_sched_read(&sched, &mem, guest_task_va(6), &now, &s));
	assert_true(s.running);
	assert_true(linux_sched_read(&sched, &mem, guest_task_va(4), &now, &s));
	assert_false(s.running);
	assert_int_equal(s.run_ns, 4000000000ull);
	assert_int_equal(s.switches, 44);
	assert_int_equal(s.nice, -20);
	assert_string_equal(linux_sched_policy_name(s.policy), "other");
	guest_u32(&g, guest_task_va(4) + G_PRIO, 7);
	guest_u32(&g, guest_task_va(4) + G_POLICY, 99);
	assert_true(linux_sched_read(&sched, &mem, guest_task_va(4), &now, &s));
	assert_int_equal(s.nice, INT32_MIN);
	assert_int_equal(s.policy, -1);
	assert_false(linux_sched_read(&sched, &mem, 0xffff800000000000ull, &now, &s));
}

static _Alignas(8) uint8_t room[sizeof(struct sample) + LINUX_SLEEPER_ROOM];
static struct sample *const sample = (struct sample *)room;
static struct linux_sched found;

/* Where tasks are traced and probed; in this guest nobody is, at first. */
enum { G_TRACED = 1400, G_TRACED_INDEX = 1408, G_PROBED = 1416, ENTRY = 32, NODE = 48, LINK = 16 };
static const struct linux_graph_layout graph = {
	G_TRACED, G_TRACED_INDEX, ENTRY, true, ENTRY, 0, 24
};
static const struct linux_rethook_layout rethook = { G_PROBED, LINK, 32, 40, NODE };

static int take(unsigned int i, uint64_t space)
{
	const struct linux_sleeper_from from = {
		.task = &l,
		.sched = &sched,
		.graph = &graph,
		.rethook = &rethook,
		.memory = &mem,
		.ncpus = 1,
	};
	struct linux_task t;

	assert_int_equal(linux_task_read(&l, &mem, guest_task_va(i), &t), 0);
	return linux_sleeper_sample(&from, &t, space, sample, &found);
}

static uint64_t linux_sleeper_entry(uint32_t off)
{
	uint64_t v;

	memcpy(&v, sample->stack + off, 8);
	return v;
}

static void sleeper(void **state)
{
	(void)state;
	prepare(&guest_types);
	assert_int_equal(take(7, 0x5000), LINUX_SLEEPER_GOOD);
	assert_int_equal(sample_check(sample, sample_size(sample)), 0);
	assert_int_equal(sample->reason, SAMPLE_OFFCPU);
	assert_int_equal(sample->regs.rip, GUEST_SWITCH);
	assert_int_equal(sample->regs.gpr[GPR_RSP], GUEST_SP(7) + 56);
	assert_int_equal(sample->regs.gpr[GPR_RBP], GUEST_SP(7) + 128);
	assert_int_equal(sample->regs.cr3, 0x5000);
	assert_int_equal(sample->task.tid, 18);
	assert_string_equal(sample->task.comm, "my shell");
	assert_int_equal(sample->nslices, 2);
	assert_int_equal(sample->slice[0].va, GUEST_SP(7));
	assert_int_equal(sample->slice[0].len, GUEST_STACK_TOP);
	assert_int_equal(sample->slice[1].va, GUEST_USER_SP);
	assert_int_equal(sample->slice[1].len, 64);
	assert_int_equal(found.state, 'S');
	/* without its space, and of a kernel thread: the kernel's part alone */
	assert_int_equal(take(7, 0), LINUX_SLEEPER_GOOD);
	assert_int_equal(sample->nslices, 1);
	assert_int_equal(take(3, 0x5000), LINUX_SLEEPER_GOOD);
	assert_int_equal(sample->nslices, 1);
	assert_int_equal(found.state, 'I');
}

/* Return addresses that tracers keep come with the stack. */
static void traced_sleeper(void **state)
{
	uint64_t t = guest_task_va(7), at = GUEST_BASE + 0x1f000;
	uint32_t off;

	(void)state;
	prepare(&guest_types);
	assert_int_equal(take(7, 0x5000), LINUX_SLEEPER_GOOD);
	assert_int_equal(sample->returns.len, 0);
	guest_u64(&g, t + G_TRACED, at);
	guest_u32(&g, t + G_TRACED_INDEX, 1);
	guest_u64(&g, at + ENTRY, 0x1234567890);
	assert_int_equal(take(7, 0x5000), LINUX_SLEEPER_GOOD);
	assert_int_equal(sample_check(sample, sample_size(sample)), 0);
	assert_int_equal(sample->nslices, 2);
	assert_int_equal(sample->returns.len, 2 * ENTRY);
	off = sample->returns.off;
	assert_int_equal(linux_sleeper_entry(off + ENTRY), 0x1234567890);
	/* and probed, which is behind that */
	guest_u64(&g, t + G_PROBED, at + 0x400 + LINK);
	guest_u64(&g, at + 0x400 + LINK, 0);
	guest_u64(&g, at + 0x400 + 32, 0xabcdef);
	assert_int_equal(take(7, 0x5000), LINUX_SLEEPER_GOOD);
	assert_int_equal(sample->returns.len, 2 * ENTRY + NODE);
	assert_int_equal(linux_sleeper_entry(off + 2 * ENTRY + 32), 0xabcdef);
	/* the topmost ones of very many entries, and some of a list that never ends */
	guest_u32(&g, t + G_TRACED_INDEX, 70);
	guest_u64(&g, at + 0x400 + LINK, at + 0x400 + LINK);
	guest_u64(&g, at + 70 * ENTRY, 0x777);
	assert_int_equal(take(7, 0x5000), LINUX_SLEEPER_GOOD);
	assert_int_equal(sample_check(sample, sample_size(sample)), 0);
	assert_int_equal(sample->returns.len, SAMPLE_MAX_RETURNS);
	assert_int_equal(linux_sleeper_entry(off + SAMPLE_MAX_RETURNS - 8 * NODE - ENTRY), 0x777);
	guest_u64(&g, t + G_TRACED, at + 4);
	guest_u64(&g, t + G_PROBED, 0x400);
	assert_int_equal(take(7, 0x5000), LINUX_SLEEPER_GOOD);
	assert_int_equal(sample->returns.len, 0);
}

static void sleeper_with_flags(void **state)
{
	uint32_t ret_at = 56;
	struct types old = guest_types;

	(void)state;
	old.member = with_flags;
	old.ctx = &ret_at;
	prepare(&old);
	push_flags();
	assert_int_equal(take(7, 0x5000), LINUX_SLEEPER_GOOD);
	assert_int_equal(sample->regs.rip, GUEST_SWITCH);
	assert_int_equal(sample->regs.gpr[GPR_RSP], GUEST_SP(7) + 64);
	assert_int_equal(sample->regs.gpr[GPR_RBP], GUEST_SP(7) + 128);
	/* A form that nobody knows: no stack instead of a wrong one. */
	ret_at = 64;
	prepare(&old);
	assert_int_equal(take(7, 0x5000), LINUX_SLEEPER_UNKNOWN);
}

/* CONFIG_X86_FRED: two more words above, and more in that of cs where the processor has it. */
static void sleeper_with_padding(void **state)
{
	uint8_t *top = g.stack[7] + GUEST_STACK_TOP;
	uint64_t fred_cs = 0x1200050033;

	(void)state;
	prepare(&guest_types);
	memmove(top - 56, top - 40, 40);
	memset(top - 16, 0, 16);
	assert_int_equal(take(7, 0x5000), LINUX_SLEEPER_GOOD);
	assert_int_equal(sample->nslices, 2);
	assert_int_equal(sample->slice[1].va, GUEST_USER_SP);
	memcpy(top - 48, &fred_cs, 8);
	assert_int_equal(take(7, 0x5000), LINUX_SLEEPER_GOOD);
	assert_int_equal(sample->nslices, 2);
	/* words that no processor saves: reserved flags */
	memset(top - 40, 0xff, 8);
	assert_int_equal(take(7, 0x5000), LINUX_SLEEPER_GOOD);
	assert_int_equal(sample->nslices, 1);
}

static void no_sleeper(void **state)
{
	(void)state;
	prepare(&guest_types);
	assert_int_equal(take(6, 0), LINUX_SLEEPER_RUNS);
	guest_u32(&g, guest_task_va(7) + G_EXIT_STATE, 0x20);
	assert_int_equal(take(7, 0), LINUX_SLEEPER_DEAD);
	prepare(&guest_types);
	guest_u64(&g, guest_task_va(7) + G_SP, GUEST_SP(8));
	assert_int_equal(take(7, 0), LINUX_SLEEPER_UNKNOWN);
	guest_u64(&g, guest_task_va(7) + G_SP, GUEST_SP(7) + 4);
	assert_int_equal(take(7, 0), LINUX_SLEEPER_UNKNOWN);
	/* up to the end of the stack there is no room for a frame */
	guest_u64(&g, guest_task_va(7) + G_SP, GUEST_STACK(7) + 16384 - 48);
	assert_int_equal(take(7, 0), LINUX_SLEEPER_UNKNOWN);
	guest_u64(&g, guest_task_va(7) + G_SP, GUEST_STACK(7) + 8);
	assert_int_equal(take(7, 0), LINUX_SLEEPER_UNREADABLE);
}

static void wakes(void)
{
	guest_u32(&g, guest_task_va(7) + G_STATE, 0);
}

static void runs(void)
{
	guest_u64(&g, GUEST_CURRENT, guest_task_va(7));
}

static void sleeps_again(void)
{
	guest_u64(&g, guest_task_va(7) + G_SWITCHES, 71);
}

static void becomes_another(void)
{
	guest_u32(&g, guest_task_va(7) + g.pid, 99);
	guest_u32(&g, guest_task_va(7) + g.pid + 4, 99);
}

/* Whatever moves after the first look and before the last read is seen. */
static void moves(void **state)
{
	void (*const what[])(void) = { wakes, runs, sleeps_again, becomes_another };

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		prepare(&guest_types);
		change = what[i];
		assert_int_equal(take(7, 0), LINUX_SLEEPER_CHANGED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_types),
		cmocka_unit_test(by_content),
		cmocka_unit_test(no_guess),
		cmocka_unit_test(states),
		cmocka_unit_test(reads),
		cmocka_unit_test(sleeper),
		cmocka_unit_test(no_sleeper),
		cmocka_unit_test(sleeper_with_padding),
		cmocka_unit_test(moves),
		cmocka_unit_test(traced_sleeper),
		cmocka_unit_test(sleeper_with_flags),
		cmocka_unit_test(saved_flags_by_content),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
