/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hostile tasks. The input: a byte of flags (1: with a stack_canary, 2: by types),
 * then changes to a sound guest's memory: u8 kind, u16 where, u16 what.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "symbolizer/linux/sched_find.h"
#include "symbolizer/linux/sleeper.h"
#include "symbolizer/linux/task.h"
#include "tests/linux_guest.h"
#include "tests/sample_check.h"

#define MAX_CHANGES 4096u

static void change(struct guest *g, struct cursor *c)
{
	uint8_t kind = cursor_u8(c);
	uint64_t at = GUEST_BASE + cursor_u16(c) * 8ull % (GUEST_BYTES - 64);
	uint16_t what = cursor_u16(c);

	switch (kind & 7) {
	case 0: /* a pointer to anywhere in the guest */
		guest_u64(g, at, GUEST_BASE + what * 8ull % GUEST_BYTES);
		break;
	case 1: /* ... to a task's member */
		guest_u64(g, at, guest_task_va(what % GUEST_TASKS) + what / GUEST_TASKS % 256 * 8);
		break;
	case 2:
		guest_u32(g, at + (kind >> 3 & 4), what);
		break;
	case 3:
		guest_u64(g, at, (uint64_t)what << 48);
		break;
	case 4:
		guest_put(g, at + (kind >> 3 & 7), "kthreadd", 9);
		break;
	case 5:
		guest_put(g, at + (kind >> 3 & 7), "swapper/0", 10);
		break;
	case 6: /* a task like another one */
		memcpy(g->bytes + what % GUEST_TASKS * GUEST_STRIDE,
		       g->bytes + what / 16 % GUEST_TASKS * GUEST_STRIDE, GUEST_STRIDE);
		break;
	default:
		guest_u64(g, at, what);
		break;
	}
}

static void check_layout(const struct linux_task_layout *l)
{
	const uint32_t off[] = { l->pid, l->tgid, l->comm, l->mm, l->real_parent, l->group_leader };

	for (unsigned int i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		if (off[i] > LINUX_TASK_MAX_OFFSET)
			abort();
	if ((l->signal == LINUX_TASK_NONE) != (l->thread_head == LINUX_TASK_NONE))
		abort();
}

static void check_list(const struct linux_task_layout *l, const struct memory *m)
{
	struct linux_task_list list;

	if (linux_task_list(l, m, &list, NULL))
		return;
	if (list.n > LINUX_TASK_MAX_LIST)
		abort();
	for (size_t i = 0; i < list.n; i++) {
		const struct linux_task *t = &list.task[i];

		if ((linux_task_check(t->pid, t->tgid, t->comm) && (!t->pid || *t->comm)) ||
		    t->parent_pid > LINUX_TASK_MAX_PID)
			abort();
		for (size_t j = 0; j < i; j++)
			if (list.task[j].task == t->task)
				abort();
	}
	linux_task_list_deinit(&list);
}

/* Whatever is taken for a sleeping task is a sample that the unwinder may have. */
static void check_sleepers(const struct linux_task_layout *l, const struct types *types,
			   const struct memory *m)
{
	static const uint64_t text[2] = { 0xffffffff81000000ull, 0xffffffff82000000ull };
	static _Alignas(8) uint8_t room[sizeof(struct sample) + LINUX_SLEEPER_ROOM];
	struct sample *s = (struct sample *)room;
	static const struct linux_graph_layout graph = { 1400, 1408, 32, true, 32, 0, 24 };
	static const struct linux_rethook_layout rethook = { 1416, 16, 32, 40, 48 };
	struct linux_sleeper_from from = {
		.task = l, .memory = m, .ncpus = 4, .graph = &graph, .rethook = &rethook
	};
	struct linux_sched_layout sched;
	struct linux_sched state;
	struct linux_task t;

	linux_sched_none(&sched);
	if (types ? linux_sched_from_types(&sched, types, NULL)
		  : linux_sched_from_content(&sched, l, m, text, NULL))
		return;
	from.sched = &sched;
	for (unsigned int i = 0; i < GUEST_TASKS; i++) {
		int what;

		if (linux_task_read(l, m, guest_task_va(i), &t) != LINUX_TASK_GOOD)
			continue;
		what = linux_sleeper_sample(&from, &t, i % 2 ? 0x1000 : 0, s, &state);
		if (what < 0 || what >= (int)LINUX_SLEEPER_COUNT)
			abort();
		if (what != LINUX_SLEEPER_UNREADABLE && !strchr("RSDTtXZPI-", state.state))
			abort();
		if (what == LINUX_SLEEPER_GOOD && sample_check(s, sample_size(s)))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct guest g;
	static struct symtab *symbols;
	const struct memory m = { guest_read, &g };
	struct linux_task_layout l;
	struct linux_task t;
	struct cursor c;
	uint8_t flags;

	cursor_init(&c, data, size);
	flags = cursor_u8(&c);
	guest_make(&g, flags & 1);
	if (!symbols)
		symbols = guest_symbols();
	for (unsigned int i = 0; i < MAX_CHANGES && cursor_left(&c) >= 5; i++)
		change(&g, &c);
	if (linux_task_layout(&l, (flags & 2) ? &guest_types : NULL, symbols, &m, NULL))
		return 0;
	check_layout(&l);
	check_list(&l, &m);
	check_sleepers(&l, (flags & 2) ? &guest_types : NULL, &m);
	for (unsigned int i = 0; i < GUEST_TASKS; i++)
		if (linux_task_read(&l, &m, guest_task_va(i), &t) == LINUX_TASK_GOOD &&
		    linux_task_check(t.pid, t.tgid, t.comm) && (!t.pid || *t.comm))
			abort();
	return 0;
}
