/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/control/view_names.h"

#include <string.h>

/* Names are of tables that stay, so equal ones are one pointer. */
static bool equal_func(const void *a, const void *b, const void *ctx)
{
	const struct live_func *x = a, *y = b;

	(void)ctx;
	return x->name == y->name && x->dso == y->dso && x->addr == y->addr;
}

bool live_names_init(struct live_names *n)
{
	*n = (struct live_names){ .names = names_create_live(), .tasks = tasks_create() };
	n->func = TABLE_OF(struct live_func, equal_func);
	display_names_init(&n->display, DEMANGLE_PROGRAMS);
	return n->names && n->tasks;
}

void live_names_deinit(struct live_names *n)
{
	display_names_deinit(&n->display);
	table_deinit(&n->func);
	tasks_destroy(n->tasks);
	names_destroy(n->names);
}

void live_names_kernel(struct live_names *n, const struct profile_kernel *k)
{
	n->kernel = *k;
	n->have_kernel = true;
	names_kernel(n->names, k);
}

static bool has_room(const struct live_names *n, uint32_t tid)
{
	return tasks_threads(n->tasks) < LIVE_MAX_THREADS || tasks_known(n->tasks, tid);
}

void live_names_fork(struct live_names *n, uint32_t pid, uint32_t tid, uint32_t ppid, uint32_t ptid)
{
	if (pid == tid)
		(void)names_fork(n->names, pid, ppid, NULL);
	if (has_room(n, tid))
		(void)tasks_fork(n->tasks, tid, ptid, NULL);
}

void live_names_comm(struct live_names *n, const struct profile_comm *c)
{
	if (c->exec)
		(void)names_exec(n->names, c->pid, NULL);
	if (has_room(n, c->tid))
		(void)tasks_comm(n->tasks, c->tid, c->name, NULL);
}

const struct symbol *live_names_kernel_symbol(const struct live_names *n, uint64_t addr,
					      const char **dso)
{
	struct name name;

	names_lookup(n->names, 0, NAMES_KERNEL, addr, &name);
	*dso = name.dso;
	return name.symbol;
}

uint32_t live_names_func(struct live_names *n, uint32_t pid, enum names_of whose, uint64_t addr)
{
	struct live_func f = { "", NULL, addr, 0 };
	struct name name;
	uint32_t index;
	bool fresh;

	names_lookup(n->names, pid, whose, addr, &name);
	f.dso = name.dso;
	if (name.symbol) {
		f.name = display_name(&n->display, name.symbol, whose);
		f.addr = name.symbol->addr;
		f.size = name.symbol->size;
	}
	if (n->func.n >= LIVE_MAX_FUNCS)
		return UINT32_MAX;
	return table_add(&n->func,
			 table_mix(f.addr, table_mix((uintptr_t)f.name, (uintptr_t)f.dso)), &f,
			 &index, &fresh)
		       ? UINT32_MAX
		       : index;
}
