/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest that stands still (tests/e2e/snapshot.c) runs: its current
 * tasks, all tasks and all modules with their symbols, to compare with what its console says.
 *
 *   inspect SNAPSHOT VMLINUX [plain]
 *
 * plain: as if the kernel had no type information. Link it like snapshot.c, with
 * build/libkvmprof.a.
 */
#include "base/clock.h"
#include "symbolizer/types/btf.h"
#include "symbolizer/linux/module.h"
#include "symbolizer/linux/task.h"
#include "symbolizer/kernel/symfile.h"
#include "tests/snapshot.h"

#include <stdlib.h>

static struct snapshot snap;
static struct memory mem;
static uint64_t reads;

static size_t counted(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	reads++;
	return snapshot_read(ctx, space, va, dst, len);
}

static int fail(const char *what, const struct err *e)
{
	fprintf(stderr, "inspect: %s: %s\n", what, e->text);
	return 1;
}

static void print_task(const struct linux_task *t)
{
	printf("  %u/%u %s%s parent %u/%u start %.6f mm %llx stack %llx\n", t->tgid, t->pid,
	       t->comm, t->is_kthread ? " (kernel)" : "", t->parent_tgid, t->parent_pid,
	       (double)t->start_time / 1e9, (unsigned long long)t->mm,
	       (unsigned long long)t->stack);
}

static int show_tasks(const struct types *types, const struct symtab *symbols)
{
	struct linux_task_layout l;
	struct linux_task_list list;
	struct err e = { 0 };
	uint64_t t0 = clock_mono_ns();

	if (linux_task_layout(&l, types, symbols, &mem, &e))
		return fail("layout", &e);
	printf("layout: %s, %.3f ms, %llu reads\n",
	       l.source == LINUX_TASK_BY_TYPES ? "types" : "content",
	       (double)(clock_mono_ns() - t0) / 1e6, (unsigned long long)reads);
	printf("  current %s0x%llx pid %d tgid %d comm %d mm %d real_parent %d group_leader %d\n"
	       "  start %d%s flags %d stack %d tasks %d thread_node %d thread_group %d signal %d "
	       "thread_head %d\n",
	       l.per_cpu ? "gs:" : "", (unsigned long long)l.current, (int)l.pid, (int)l.tgid,
	       (int)l.comm, (int)l.mm, (int)l.real_parent, (int)l.group_leader, (int)l.start_time,
	       l.start_is_boottime ? " (boot)" : "", (int)l.flags, (int)l.stack, (int)l.tasks,
	       (int)l.thread_node, (int)l.thread_group, (int)l.signal, (int)l.thread_head);
	for (unsigned int i = 0; i < snap.nvcpus; i++) {
		uint64_t at = linux_task_current(&l, snap.vcpu[i].percpu), task = 0;
		struct linux_task t;
		int ret = memory_u64(&mem, at, &task) ? linux_task_read(&l, &mem, task, &t)
						      : LINUX_TASK_UNREADABLE;

		printf("vCPU %u: current at %llx: %llx: %s\n", i, (unsigned long long)at,
		       (unsigned long long)task, linux_task_doubt_name((enum linux_task_doubt)ret));
		if (!ret)
			print_task(&t);
	}
	t0 = clock_mono_ns();
	if (linux_task_list(&l, &mem, &list, &e))
		return fail("list", &e);
	printf("%zu tasks, %zu skipped%s, %.3f ms\n", list.n, list.skipped, list.cut ? ", cut" : "",
	       (double)(clock_mono_ns() - t0) / 1e6);
	for (size_t i = 0; i < list.n; i++)
		print_task(&list.task[i]);
	linux_task_list_deinit(&list);
	return 0;
}

static void print_symbols(const struct symtab *t)
{
	for (size_t i = 0; t && i < symtab_count(t); i++) {
		const struct symbol *s = symtab_at(t, i);

		printf("    %llx %llx %c %s\n", (unsigned long long)s->addr,
		       (unsigned long long)s->size, s->type, s->name);
	}
}

static int show_modules(const struct types *types, const struct symtab *symbols)
{
	struct linux_module_layout l;
	struct linux_module_list list;
	struct err e = { 0 };
	uint64_t t0, hash = 0;

	if (linux_module_layout(&l, types, symbols, &e)) {
		printf("no modules: %s\n", e.text);
		return 0;
	}
	if (linux_module_list(&l, &mem, &list, &e))
		return fail("modules", &e);
	t0 = clock_mono_ns();
	printf("%zu modules, %zu skipped%s; hash: %d, ", list.n, list.skipped,
	       list.cut ? ", cut" : "", linux_module_hash(&l, &mem, &hash));
	printf("%llx, %.3f ms\n", (unsigned long long)hash, (double)(clock_mono_ns() - t0) / 1e6);
	for (size_t i = 0; i < list.n; i++) {
		struct linux_module *x = &list.module[i];

		err_clear(&e);
		if (linux_module_load(&l, &mem, x, &e))
			printf("  %s\n", e.text);
		printf("  %s state %d text %llx-%llx init %llx-%llx %zu symbols, %zu + %zu ORC, "
		       "build id ",
		       x->name, (int)x->state, (unsigned long long)x->text.start,
		       (unsigned long long)x->text.end, (unsigned long long)x->init_text.start,
		       (unsigned long long)x->init_text.end,
		       x->symbols ? symtab_count(x->symbols) : 0, x->orc ? orc_count(x->orc) : 0,
		       x->init_orc ? orc_count(x->init_orc) : 0);
		for (unsigned int b = 0; b < x->build_id_len; b++)
			printf("%02x", x->build_id[b]);
		printf("\n");
		print_symbols(x->symbols);
	}
	linux_module_list_deinit(&list);
	return 0;
}

int main(int argc, char **argv)
{
	struct file_map file;
	struct symfile f;
	struct kimage k;
	struct btf *btf = NULL;
	struct types types;
	struct err e = { 0 };
	bool plain = argc > 3 && !strcmp(argv[3], "plain");

	if (argc < 3)
		return 2;
	if (!snapshot_open(&snap, argv[1], &mem))
		return 1;
	mem.read = counted;
	if (file_map_open(&file, argv[2], 4ull << 30, &e) ||
	    symfile_parse(&f, argv[2], file.data, file.len, &e) ||
	    kimage_parse(&k, argv[2], file.data, file.len, &e))
		return fail(argv[2], &e);
	if (!plain && btf_from_image(&btf, &k, argv[2], &e))
		printf("no types: %s\n", e.text);
	err_clear(&e);
	if (btf)
		types = btf_types(btf);
	if (show_tasks(btf ? &types : NULL, f.symbols) ||
	    show_modules(btf ? &types : NULL, f.symbols))
		return 1;
	btf_destroy(btf);
	symfile_deinit(&f);
	snapshot_close(&snap);
	return 0;
}
