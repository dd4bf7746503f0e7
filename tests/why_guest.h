/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * why_guest: a generated guest for profile/record/why: memory as a byte array, types in which each
 * member has a place of its own, symbols, tasks with stacks. It stands in for profile/record/guest
 * and for the walk of tasks, whose functions are defined here. Included by one file of a program.
 */
#ifndef KVMPROF_TESTS_WHY_GUEST_H
#define KVMPROF_TESTS_WHY_GUEST_H

#include "profile/record/why/private.h"

#include "profile/record/guest/target.h"
#include "symbolizer/linux/hang.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WG_BASE 0xffff888000000000ull
#define WG_BYTES 0x80000u
#define WG_TASKS 8u
#define WG_CPUS 2u
#define WG_STACK_SIZE 0x4000u
#define WG_TASK(i) (WG_BASE + 0x10000 + 0x1000 * (uint64_t)(i))
#define WG_STACK(i) (WG_BASE + 0x20000 + WG_STACK_SIZE * (uint64_t)(i))
#define WG_SP(i) (WG_STACK(i) + WG_STACK_SIZE - 0x400)
#define WG_VAR(i) (WG_BASE + 0x1000 + 0x100 * (uint64_t)(i)) /* variables of the kernel */
#define WG_OBJECT(i) (WG_BASE + 0x40000 + 0x1000 * (uint64_t)(i))
#define WG_OBJECTS 24u
#define WG_PERCPU(cpu) (WG_BASE + 0x60000 + 0x8000 * (uint64_t)(cpu))
#define WG_SLOT 64u /* distance of members */
#define WG_STRUCT 0x600u
#define WG_TASK_STACK 0x700u
#define WG_SECOND UINT64_C(1000000000)
#define WG_JIFFY UINT64_C(4000000)
#define WG_MAX_FRAMES 6u

/* Variables, in the order of WG_VAR(), and per-CPU variables, at 0x800 times their index. */
static const char *const wg_variable[] = {
	"__per_cpu_offset",    "__cpu_online_mask", "system_state", "panic_cpu",
	"tainted_mask",	       "jiffies",	    "tick_length",  "tick_next_period",
	"blockdev_superblock", "saved_root_name",
};
static const char *const wg_percpu[] = {
	"runqueues",	    "__preempt_count", "tick_cpu_device",
	"cpu_worker_pools", "kstat",	       "vm_event_states",
};
/* Structures that are variables themselves: rcu_state, contig_page_data at WG_OBJECT(i). */
static const char *const wg_structure[] = { "rcu_state", "contig_page_data" };
/* Functions, 0x100 bytes each from WG_TEXT on. */
#define WG_TEXT 0xffffffff81000000ull
static const char *const wg_function[] = {
	"schedule",
	"__mutex_lock",
	"rwsem_down_write_slowpath",
	"rwsem_down_read_slowpath",
	"kthread",
	"native_queued_spin_lock_slowpath",
	"default_idle",
	"io_schedule",
	"work_of_mine",
	"wait_for_completion",
	"asm_sysvec_apic_timer_interrupt",
	"try_to_free_pages",
	"rcu_reader",
	"do_one_initcall",
};
#define WG_COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct wg_task {
	struct linux_task t;
	struct linux_sched s;
	const char *frame[WG_MAX_FRAMES]; /* names of functions; NULL: no more */
};

struct wg {
	uint8_t bytes[WG_BYTES];
	bool gone[WG_BYTES / 0x1000];
	uint64_t reads;
	struct wg_task task[WG_TASKS];
	unsigned int ntasks;
	const char *vcpu_frame[WG_CPUS][WG_MAX_FRAMES];
	struct memory memory;
	struct target target;
	struct linux_sched_layout sched;
	struct err unknown; /* code 0: the kernel is known */
};

static struct wg wg;

/* -- memory and types ------------------------------------------------------------------------- */

static size_t wg_read(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	uint64_t off = va - WG_BASE;

	(void)ctx;
	(void)space;
	wg.reads++;
	if (off >= WG_BYTES || len > WG_BYTES - off)
		return 0;
	for (uint64_t page = off / 0x1000; page <= (off + (len ? len - 1 : 0)) / 0x1000; page++)
		if (wg.gone[page])
			return 0;
	memcpy(dst, wg.bytes + off, len);
	return len;
}

static inline void wg_put(uint64_t va, const void *src, size_t len)
{
	memcpy(wg.bytes + (va - WG_BASE), src, len);
}

static inline void wg_u64(uint64_t va, uint64_t v)
{
	wg_put(va, &v, sizeof(v));
}

static const struct {
	const char *structure, *path;
} wg_member_name[] = {
#define WG_MEMBER(name, structure, path) { structure, path },
	LINUX_HANG_TABLE(WG_MEMBER)
#undef WG_MEMBER
};

/* Members follow each other in the order of the table. Those of kernels since 7.1 are left out. */
static int wg_member(void *ctx, const char *structure, const char *path, struct type_member *out)
{
	uint32_t off = 0;

	(void)ctx;
	if (!strcmp(path, "first_waiter") || !strcmp(path, "__curr"))
		return -ENOENT;
	for (size_t i = 0; i < WG_COUNT(wg_member_name); i++) {
		if (strcmp(wg_member_name[i].structure, structure) != 0)
			continue;
		if (!strcmp(wg_member_name[i].path, path)) {
			*out = (struct type_member){ .off = off, .size = 8 };
			return 0;
		}
		off += WG_SLOT;
	}
	return -ENOENT;
}

static int wg_size(void *ctx, const char *structure, uint64_t *out)
{
	(void)ctx;
	(void)structure;
	*out = WG_STRUCT;
	return 0;
}

static int wg_enumerator(void *ctx, const char *name, int64_t *out)
{
	(void)ctx;
	*out = !strcmp(name, "SYSTEM_RUNNING")	  ? 3
	       : !strcmp(name, "MQ_RQ_IN_FLIGHT") ? 1
	       : !strcmp(name, "OOM_KILL")	  ? 4
	       : !strncmp(name, "PGSCAN", 6)	  ? 0
	       : !strncmp(name, "PGSTEAL", 7)	  ? 2
						  : 1;
	return 0;
}

static const struct types wg_types = { wg_member, wg_size, wg_enumerator, NULL };

static inline uint64_t wg_at(uint64_t object, enum linux_hang_member m)
{
	return object + wg.target.linux_facts.hang.off[m];
}

static inline void wg_set(uint64_t object, enum linux_hang_member m, uint64_t v)
{
	if (linux_hang_has(&wg.target.linux_facts.hang, m))
		wg_u64(wg_at(object, m), v);
}

static inline uint64_t wg_find(const char *name)
{
	const struct symbol *s = symtab_find(wg.target.symbols, name);

	if (!s)
		abort();
	return s->addr;
}

static inline uint64_t wg_percpu_at(const char *name, unsigned int cpu)
{
	return WG_PERCPU(cpu) + wg_find(name);
}

/* A list_head of nodes. */
static inline void wg_list(uint64_t head, const uint64_t *node, unsigned int n)
{
	uint64_t before = head;

	for (unsigned int i = 0; i <= n; i++) {
		uint64_t at = i < n ? node[i] : head;

		wg_u64(before, at);
		wg_u64(at + 8, before);
		before = at;
	}
}

/* -- what profile/record/guest would do ------------------------------------------------------- */

const struct symbol *guest_function(const struct guest *g, const char *name)
{
	(void)g;
	return symtab_find(wg.target.symbols, name);
}

const struct symbol *guest_kernel_symbol(const struct guest *g, uint64_t va, uint64_t *off)
{
	(void)g;
	return symtab_lookup(wg.target.symbols, va, off);
}

const struct target *guest_target(const struct guest *g)
{
	(void)g;
	return &wg.target;
}

const char *guest_release(const struct guest *g)
{
	(void)g;
	return "6.1.0-test";
}

bool guest_view(struct guest *g, struct guest_view *out, struct err *e)
{
	(void)g;
	if (wg.unknown.code) {
		err_set(e, EAGAIN, "%s", wg.unknown.text);
		return false;
	}
	*out = (struct guest_view){ .target = &wg.target, .memory = &wg.memory, .vcpus = WG_CPUS };
	return true;
}

const struct memory *guest_reader(struct guest *g, struct err *e)
{
	(void)g;
	(void)e;
	return &wg.memory;
}

void guest_unwind(struct guest *g, const struct sample *s, struct stack *stack)
{
	const char *const *frame = wg.vcpu_frame[s->vcpu % WG_CPUS];

	(void)g;
	for (unsigned int i = 0; i < wg.ntasks && s->reason == SAMPLE_OFFCPU; i++)
		if (wg.task[i].t.pid == s->task.tid)
			frame = wg.task[i].frame;
	memset(stack, 0, sizeof(*stack));
	for (unsigned int i = 0; i < WG_MAX_FRAMES && frame[i]; i++)
		stack->ip[stack->n++] = wg_find(frame[i]) + 0x10;
	if (!stack->n)
		stack->ip[stack->n++] = s->regs.rip;
	stack->exact[0] = 1;
}

struct task_walk {
	int unused;
};

int task_walk_create(struct task_walk **out, struct guest *g, struct err *e)
{
	(void)g;
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : err_nomem(e);
}

void task_walk_destroy(struct task_walk *l)
{
	free(l);
}

const struct linux_sched_layout *task_walk_layout(const struct task_walk *l)
{
	(void)l;
	return &wg.sched;
}

int task_walk_run(struct task_walk *l, enum task_walk_depth at, task_walk_fn each, void *ctx,
		  struct err *e)
{
	static _Alignas(8) uint8_t room[sizeof(struct sample)];
	struct sample *s = (struct sample *)room;
	int ret = 0;

	(void)l;
	(void)at;
	for (unsigned int i = 0; !ret && i < wg.ntasks; i++) {
		memset(room, 0, sizeof(room));
		s->reason = SAMPLE_OFFCPU;
		s->task.tid = wg.task[i].t.pid;
		ret = each(ctx, &wg.task[i].t, &wg.task[i].s, LINUX_SLEEPER_GOOD,
			   wg.task[i].s.running ? NULL : s, e);
	}
	return ret;
}

/* -- a sound guest ---------------------------------------------------------------------------- */

static inline struct symtab *wg_symbols(void)
{
	struct symtab *t = symtab_create();
	int ret = t ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < WG_COUNT(wg_variable); i++)
		ret = symtab_add(t, WG_VAR(i), 0, 'd', wg_variable[i]);
	for (size_t i = 0; !ret && i < WG_COUNT(wg_percpu); i++)
		ret = symtab_add(t, 0x800 * (i + 1), 0, 'd', wg_percpu[i]);
	for (size_t i = 0; !ret && i < WG_COUNT(wg_structure); i++)
		ret = symtab_add(t, WG_OBJECT(i), 0, 'd', wg_structure[i]);
	for (size_t i = 0; !ret && i < WG_COUNT(wg_function); i++)
		ret = symtab_add(t, WG_TEXT + 0x100 * i, 0x100, 't', wg_function[i]);
	if (ret || symtab_freeze(t, NULL))
		abort();
	return t;
}

/* Adds a task in this state that last ran at `ran_ns`. Returns its index. */
static inline unsigned int wg_add(const char *comm, char state, uint64_t ran_ns)
{
	unsigned int i = wg.ntasks++;
	struct wg_task *t = &wg.task[i];

	memset(t, 0, sizeof(*t));
	t->t = (struct linux_task){
		.task = WG_TASK(i), .pid = i + 1, .tgid = i + 1, .stack = WG_STACK(i)
	};
	memcpy(t->t.comm, comm, strlen(comm));
	t->s = (struct linux_sched){
		.state = state, .sp = WG_SP(i), .switches = 5, .run_ns = WG_SECOND
	};
	t->s.raw_state = state == 'D' ? 2 : state == 'S' ? 1 : 0;
	t->frame[0] = "schedule";
	wg_set(WG_TASK(i), LINUX_HANG_TASK_EXEC_START, ran_ns);
	wg_u64(WG_STACK(i), 0x57ac6e9d); /* STACK_END_MAGIC */
	wg_u64(WG_TASK(i) + WG_TASK_STACK, WG_STACK(i));
	return i;
}

/* All clocks of the guest show this time. */
static inline void wg_tick(uint64_t now)
{
	for (unsigned int cpu = 0; cpu < WG_CPUS; cpu++)
		wg_set(wg_percpu_at("runqueues", cpu), LINUX_HANG_RQ_CLOCK, now);
	wg_u64(wg_find("jiffies"), 0xffffffff + now / WG_JIFFY);
	wg_u64(wg_find("tick_next_period"), now + WG_JIFFY);
}

static inline void wg_make(bool with_types)
{
	struct symtab *symbols = wg.target.symbols;

	memset(&wg, 0, sizeof(wg));
	wg.target.symbols = symbols ? symbols : wg_symbols();
	wg.memory = (struct memory){ wg_read, NULL };
	wg.sched = (struct linux_sched_layout){ .source = 1, .stack_size = WG_STACK_SIZE };
	wg.target.linux_facts.task.per_cpu = true;
	wg.target.linux_facts.task.stack = WG_TASK_STACK;
	err_set(&wg.target.linux_facts.printk_note, ENOENT, "no log");
	linux_hang_layout(&wg.target.linux_facts.hang, with_types ? &wg_types : NULL);
	wg_u64(wg_find("panic_cpu"), 0xffffffff);
	if (!with_types)
		return;
	for (unsigned int cpu = 0; cpu < WG_CPUS; cpu++) {
		uint64_t rq = wg_percpu_at("runqueues", cpu),
			 pool = wg_percpu_at("cpu_worker_pools", cpu);

		wg_u64(wg_find("__per_cpu_offset") + 8ull * cpu, WG_PERCPU(cpu));
		wg_set(rq, LINUX_HANG_RQ_NR_RUNNING, 0);
		wg_u64(wg_percpu_at("__preempt_count", cpu), 0x80000000);
		wg_list(wg_at(pool, LINUX_HANG_POOL_WORKLIST), NULL, 0);
		wg_list(wg_at(pool, LINUX_HANG_POOL_WORKERS), NULL, 0);
	}
	wg_u64(wg_find("__cpu_online_mask"), 3);
	wg_u64(wg_find("system_state"), 3);
	wg_u64(wg_find("tick_length"), WG_JIFFY << 32);
	wg_tick(100 * WG_SECOND);
}

/* -- locks ------------------------------------------------------------------------------------ */

/* Task i waits for the mutex at `lock`, with its waiter on its stack. owner: a task, or -1. */
static inline void wg_wait_for_mutex(unsigned int i, uint64_t lock, int owner)
{
	uint64_t waiter = WG_SP(i) + 0x40, node = wg_at(waiter, LINUX_HANG_MUTEX_WAITER_LIST);

	wg_set(waiter, LINUX_HANG_MUTEX_WAITER_TASK, WG_TASK(i));
	wg_list(wg_at(lock, LINUX_HANG_MUTEX_WAIT_LIST), &node, 1);
	wg_set(lock, LINUX_HANG_MUTEX_OWNER, (owner < 0 ? 0 : WG_TASK(owner)) | 1);
	wg.task[i].frame[1] = "__mutex_lock";
	wg.task[i].frame[2] = "kthread";
}

static inline void wg_wait_for_rwsem(unsigned int i, uint64_t lock, int owner, bool reader_owned)
{
	uint64_t waiter = WG_SP(i) + 0x40, node = wg_at(waiter, LINUX_HANG_RWSEM_WAITER_LIST);

	wg_set(waiter, LINUX_HANG_RWSEM_WAITER_TASK, WG_TASK(i));
	wg_list(wg_at(lock, LINUX_HANG_RWSEM_WAIT_LIST), &node, 1);
	wg_set(lock, LINUX_HANG_RWSEM_OWNER,
	       (owner < 0 ? 0 : WG_TASK(owner)) | (reader_owned ? 1 : 0));
	wg_set(lock, LINUX_HANG_RWSEM_COUNT, reader_owned ? 0x102 : 3);
	wg.task[i].frame[1] = "rwsem_down_write_slowpath";
}

/* -- disks ------------------------------------------------------------------------------------ */

/* A disk with `queues` queues of `tags` requests each, as struct blk_mq_tag_set has them. */
static inline void wg_make_disk(uint64_t queues, uint64_t tags)
{
	uint64_t super = WG_OBJECT(8), inode = WG_OBJECT(9), disk = WG_OBJECT(10),
		 q = WG_OBJECT(11), set = WG_OBJECT(12), array = WG_OBJECT(13), t = WG_OBJECT(14),
		 list = WG_OBJECT(15), rq = WG_OBJECT(16);
	uint64_t bdev = wg_at(inode, LINUX_HANG_BDEV_BDEV);
	uint64_t node = wg_at(wg_at(inode, LINUX_HANG_BDEV_INODE), LINUX_HANG_INODE_SB_LIST);

	wg_u64(wg_find("blockdev_superblock"), super);
	wg_list(wg_at(super, LINUX_HANG_SB_INODES), &node, 1);
	wg_set(bdev, LINUX_HANG_BDEV_DISK, disk);
	wg_put(wg_at(disk, LINUX_HANG_DISK_NAME), "vda", 4);
	wg_set(disk, LINUX_HANG_DISK_QUEUE, q);
	wg_set(q, LINUX_HANG_QUEUE_TAG_SET, set);
	wg_set(set, LINUX_HANG_SET_TAGS, array);
	wg_set(set, LINUX_HANG_SET_NR_QUEUES, queues);
	for (unsigned int i = 0; i < 512; i++) {
		wg_u64(array + 8ull * i, t);
		wg_u64(list + 8ull * i, rq);
	}
	wg_set(t, LINUX_HANG_TAGS_NR, tags);
	wg_set(t, LINUX_HANG_TAGS_STATIC, list);
	wg_set(rq, LINUX_HANG_RQ_STATE, 1);
	wg_set(rq, LINUX_HANG_RQ_QUEUE, q);
	wg_set(rq, LINUX_HANG_RQ_START, 60 * WG_SECOND);
	wg_set(rq, LINUX_HANG_RQ_SECTOR, 7);
}

/* -- looks ------------------------------------------------------------------------------------ */

/* One sample of each vCPU, in the mode, with RFLAGS.IF as said. */
static inline void wg_samples(struct why *w, uint8_t mode, bool interrupts, unsigned int n)
{
	static _Alignas(8) uint8_t room[sizeof(struct sample)];
	struct sample *s = (struct sample *)room;

	for (unsigned int i = 0; i < n; i++)
		for (uint16_t cpu = 0; cpu < WG_CPUS; cpu++) {
			memset(room, 0, sizeof(room));
			s->vcpu = cpu;
			s->mode = mode;
			s->regs.rip = WG_TEXT + 0x610;
			s->regs.rflags = interrupts ? 0x202 : 2;
			s->regs.gs_base = WG_PERCPU(cpu);
			s->regs.gpr[GPR_RDI] = WG_OBJECT(20);
			why_sample(w, (const struct guest *)&wg, s);
		}
}

#endif
