/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_guest: the memory of a generated Linux with a few tasks and modules, as byte arrays, and
 * the facts that its types would show.
 */
#ifndef KVMPROF_TESTS_LINUX_GUEST_H
#define KVMPROF_TESTS_LINUX_GUEST_H

#include "symbolizer/core/memory.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/types/types.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GUEST_BASE 0xffff888000100000ull
#define GUEST_BYTES 0x20000u
#define GUEST_STRIDE 0x800u /* distance between tasks, in bytes */
#define GUEST_TASKS 9u	    /* as in guest_task below; the last one is a thread */
#define GUEST_SIGNALS (GUEST_BASE + 0x10000)
#define GUEST_CURRENT (GUEST_BASE + 0x14000)
#define GUEST_MODULES (GUEST_BASE + 0x16000)
#define GUEST_MODULE(i) (GUEST_BASE + 0x17000 + 0x400 * (uint64_t)(i))
#define GUEST_NMODULES 2u
#define GUEST_KALLSYMS (GUEST_BASE + 0x18000)
#define GUEST_NOTES (GUEST_KALLSYMS + 0x1000)
#define GUEST_ORC_IP 0xffffffffa0010000ull
#define GUEST_TEXT(i) (0xffffffffa0000000ull + 0x4000 * (uint64_t)(i))
#define GUEST_TEXT_BYTES 0x1000u
#define GUEST_NORCS 64u

/* The number of bytes that exist at the end of each kernel stack. */
#define GUEST_STACK_TOP 256u
#define GUEST_STACK(i) (0xffffc90000000000ull + 0x8000 * (uint64_t)(i))
#define GUEST_SP(i) (GUEST_STACK(i) + 16384 - GUEST_STACK_TOP)
/* The address where all sleeping tasks will continue. */
#define GUEST_SWITCH 0xffffffff81000100ull
#define GUEST_USER_SP 0x7ffd12340000ull

/* Offsets in struct task_struct. */
enum {
	G_STATE = 24,
	G_STACK = 32,
	G_FLAGS = 44,
	G_TASKS = 560,
	G_MM = 576,
	G_PID = 696, /* 8 less with a canary */
	G_PARENT = 704,
	G_CHILDREN = 720,
	G_SIBLING = 736,
	G_LEADER = 752,
	G_THREAD_NODE = 880,
	G_START = 984,
	G_COMM = 1168,
	G_SIGNAL = 1216,
	G_PRIO = 1304,
	G_POLICY = 1308,
	G_RUN_NS = 1312,
	G_EXIT_STATE = 1320,
	G_SWITCHES = 1328, /* two */
	G_SP = 1984,
};

/* Offsets in struct module and struct mod_kallsyms. */
enum {
	GM_STATE = 0,
	GM_LIST = 8,
	GM_NAME = 24,
	GM_TEXT = 128,
	GM_TEXT_SIZE = 136,
	GM_INIT = 144,
	GM_INIT_SIZE = 152,
	GM_NORCS = 160,
	GM_ORC_IP = 168,
	GM_ORC = 176,
	GM_KALLSYMS = 184,
	GM_BUILD_ID = 192,
	GM_NOTES = 216,
	GK_SYMTAB = 0,
	GK_NUM = 8,
	GK_STRTAB = 16,
	GK_TYPETAB = 24,
};

static const struct {
	const char *comm;
	uint32_t pid, tgid;
	unsigned int parent;
} guest_task[GUEST_TASKS] = {
	{ "swapper/0", 0, 0, 0 },   { "init", 1, 1, 0 },       { "kthreadd", 2, 2, 0 },
	{ "kworker/0:0", 3, 3, 2 }, { "rcu_gp", 4, 4, 2 },     { "ksoftirqd/0", 5, 5, 2 },
	{ "worker", 17, 17, 1 },    { "my shell", 18, 18, 1 }, { "w-alpha", 19, 17, 1 },
};

struct guest {
	uint8_t bytes[GUEST_BYTES];
	uint8_t orc_ip[4 * GUEST_NORCS], orc[6 * GUEST_NORCS];
	uint8_t stack[GUEST_TASKS][GUEST_STACK_TOP];
	uint32_t pid; /* offset */
	uint64_t reads;
};

#define GUEST_ORC (GUEST_ORC_IP + sizeof(((struct guest *)0)->orc_ip))

static inline uint64_t guest_task_va(unsigned int i)
{
	return GUEST_BASE + (uint64_t)i * GUEST_STRIDE;
}

static inline void guest_put(struct guest *g, uint64_t va, const void *src, size_t len)
{
	memcpy(g->bytes + (va - GUEST_BASE), src, len);
}

static inline void guest_u64(struct guest *g, uint64_t va, uint64_t v)
{
	guest_put(g, va, &v, 8);
}

static inline void guest_u32(struct guest *g, uint64_t va, uint32_t v)
{
	guest_put(g, va, &v, 4);
}

static inline size_t guest_read(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	struct guest *g = ctx;
	const struct {
		uint64_t va;
		const uint8_t *p;
		size_t len;
	} part[] = {
		{ GUEST_BASE, g->bytes, sizeof(g->bytes) },
		{ GUEST_ORC_IP, g->orc_ip, sizeof(g->orc_ip) + sizeof(g->orc) },
	};

	g->reads++;
	for (unsigned int i = 0; i < 2 && space == MEMORY_KERNEL; i++)
		if (va - part[i].va < part[i].len) {
			size_t n = part[i].len - (size_t)(va - part[i].va);

			n = n < len ? n : len;
			memcpy(dst, part[i].p + (va - part[i].va), n);
			return n;
		}
	for (unsigned int i = 0; i < GUEST_TASKS && space == MEMORY_KERNEL; i++)
		if (va - GUEST_SP(i) < GUEST_STACK_TOP) {
			size_t n = GUEST_STACK_TOP - (size_t)(va - GUEST_SP(i));

			n = n < len ? n : len;
			memcpy(dst, g->stack[i] + (va - GUEST_SP(i)), n);
			return n;
		}
	/* The stack of a program. */
	if (space != MEMORY_KERNEL && va == GUEST_USER_SP) {
		memset(dst, 0x5a, len < 64 ? len : 64);
		return len < 64 ? len : 64;
	}
	return 0;
}

/* Links n list_heads to a list; [0] is its head. */
static inline void guest_list(struct guest *g, const uint64_t *head, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		guest_u64(g, head[i], head[(i + 1) % n]);
		guest_u64(g, head[(i + 1) % n] + 8, head[i]);
	}
}

/* Stores the frame that the switch left, and a program's registers at the stack's end. */
static inline void guest_sleep(struct guest *g, unsigned int i)
{
	uint64_t t = guest_task_va(i), ret = GUEST_SWITCH, bp = GUEST_SP(i) + 128;
	const uint64_t regs[] = { 0x401000, 0x33, 0x246, GUEST_USER_SP, 0x2b };

	memset(g->stack[i], 0, GUEST_STACK_TOP);
	memcpy(g->stack[i] + 40, &bp, 8);
	memcpy(g->stack[i] + 48, &ret, 8);
	if (i == 1 || i > 5)
		memcpy(g->stack[i] + GUEST_STACK_TOP - sizeof(regs), regs, sizeof(regs));
	guest_u64(g, t + G_SP, GUEST_SP(i));
	guest_u32(g, t + G_STATE, i == 0 ? 0 : i == 3 ? 0x402 : 1);
	guest_u32(g, t + G_PRIO, 120 + (i == 4 ? -20 : 0));
	guest_u64(g, t + G_RUN_NS, 1000000000ull * i);
	guest_u64(g, t + G_SWITCHES, 10 * i);
	guest_u64(g, t + G_SWITCHES + 8, i);
}

static inline void guest_make_task(struct guest *g, unsigned int i)
{
	uint64_t t = guest_task_va(i), signal = GUEST_SIGNALS + 0x100 * (uint64_t)(i == 8 ? 6 : i);
	bool program = i == 1 || i > 5;
	uint64_t start = i ? 5000000000ull + 1000000ull * guest_task[i].pid : 0;

	guest_u64(g, t + G_STACK, GUEST_STACK(i));
	guest_sleep(g, i);
	guest_u32(g, t + G_STACK + 8, 1 + i % 3);
	guest_u32(g, t + G_FLAGS, program ? 0x400100 : 0x208040);
	guest_u32(g, t + g->pid, guest_task[i].pid);
	guest_u32(g, t + g->pid + 4, guest_task[i].tgid);
	if (g->pid + 8 < G_PARENT)
		guest_u64(g, t + g->pid + 8, 0x5bd1e995aa55ff00ull * (i + 1));
	guest_u64(g, t + G_PARENT, guest_task_va(guest_task[i].parent));
	guest_u64(g, t + G_PARENT + 8, guest_task_va(guest_task[i].parent));
	guest_u64(g, t + G_LEADER, guest_task_va(i == 8 ? 6 : i));
	if (program) {
		guest_u64(g, t + G_MM, 0xffff888003000000ull + 0x1000 * (uint64_t)(i == 8 ? 6 : i));
		guest_u64(g, t + G_MM + 8,
			  0xffff888003000000ull + 0x1000 * (uint64_t)(i == 8 ? 6 : i));
	} else if (i == 0) {
		guest_u64(g, t + G_MM + 8, 0xffff888003001000ull);
	}
	guest_u64(g, t + G_START, start);
	guest_u64(g, t + G_START + 8, i ? start + 700 : 0);
	guest_put(g, t + G_COMM, guest_task[i].comm, strlen(guest_task[i].comm) + 1);
	guest_u64(g, t + G_SIGNAL, signal);
	guest_list(g, (uint64_t[]){ t + G_CHILDREN }, 1);
	guest_list(g, (uint64_t[]){ t + G_SIBLING }, 1);
	if (i != 8)
		guest_list(g, (uint64_t[]){ signal + 16, t + G_THREAD_NODE }, 2);
}

static inline void guest_make_module(struct guest *g, unsigned int i)
{
	static const char *const name[] = { "configfs", "nf_tables" };
	uint64_t m = GUEST_MODULE(i);

	guest_put(g, m + GM_NAME, name[i], strlen(name[i]) + 1);
	guest_u64(g, m + GM_TEXT, GUEST_TEXT(i));
	guest_u32(g, m + GM_TEXT_SIZE, GUEST_TEXT_BYTES);
	guest_u64(g, m + GM_KALLSYMS, GUEST_KALLSYMS);
	guest_u64(g, m + GM_BUILD_ID, 0x1122334455667788ull + i);
	if (i == 0) {
		guest_u64(g, m + GM_INIT, GUEST_TEXT(2));
		guest_u32(g, m + GM_INIT_SIZE, GUEST_TEXT_BYTES);
		guest_u32(g, m + GM_STATE, 1);
		guest_u32(g, m + GM_NORCS, GUEST_NORCS);
		guest_u64(g, m + GM_ORC_IP, GUEST_ORC_IP);
		guest_u64(g, m + GM_ORC, GUEST_ORC);
	}
}

/* Symbols of the first module; the last column is the letter in typetab. */
static const struct {
	const char *name;
	uint64_t va, size;
	uint16_t shndx;
	char letter;
} guest_symbol[] = {
	{ "", 0, 0, 0, 'U' },
	{ "", GUEST_TEXT(0), 0, 1, 't' },
	{ "configfs_open", GUEST_TEXT(0), 64, 1, 't' },
	{ "configfs_read", GUEST_TEXT(0) + 64, 0x80, 1, 'T' },
	{ ".L17", GUEST_TEXT(0) + 80, 0, 1, 't' },
	{ "printk", 0xffffffff81000000ull, 10, SHN_UNDEF, 'U' },
	{ "a_value", GUEST_TEXT(0) + 8, 0, SHN_ABS, 'a' },
	{ "some_data", GUEST_TEXT(0) + 0x800, 8, 3, 'd' },
	{ "elsewhere", GUEST_TEXT(1), 8, 1, 't' },
	{ "configfs_init", GUEST_TEXT(2), 0x100, 2, 't' },
	{ "too_long", GUEST_TEXT(0) + 0xff0, 0x100, 1, 't' },
};
#define GUEST_NSYMBOLS (sizeof(guest_symbol) / sizeof(guest_symbol[0]))

static inline void guest_make_symbols(struct guest *g)
{
	uint64_t symtab = GUEST_KALLSYMS + 0x100, strtab = symtab + 0x400, type = strtab + 0x400;
	uint32_t at = 1;

	guest_u64(g, GUEST_KALLSYMS + GK_SYMTAB, symtab);
	guest_u32(g, GUEST_KALLSYMS + GK_NUM, GUEST_NSYMBOLS);
	guest_u64(g, GUEST_KALLSYMS + GK_STRTAB, strtab);
	guest_u64(g, GUEST_KALLSYMS + GK_TYPETAB, type);
	for (unsigned int i = 0; i < GUEST_NSYMBOLS; i++) {
		size_t len = strlen(guest_symbol[i].name);
		Elf64_Sym s = { .st_name = len ? at : 0,
				.st_info = 2,
				.st_shndx = guest_symbol[i].shndx,
				.st_value = guest_symbol[i].va,
				.st_size = guest_symbol[i].size };

		guest_put(g, symtab + i * sizeof(s), &s, sizeof(s));
		guest_put(g, strtab + at, guest_symbol[i].name, len + 1);
		guest_put(g, type + i, &guest_symbol[i].letter, 1);
		at += (uint32_t)len + 1;
	}
}

/* Makes the first module's note sections: one of another kind, one with two notes. */
static inline void guest_make_notes(struct guest *g)
{
	static const uint32_t other[] = { 4, 4, 256, 0x756e694c, 7 };
	static const uint32_t two[] = {
		4, 1, 1, 0x00554e47, 9, 4, 20, 3, 0x00554e47, 1, 2, 3, 4, 5
	};

	guest_u64(g, GUEST_MODULE(0) + GM_NOTES, GUEST_NOTES);
	guest_u32(g, GUEST_NOTES + 8, 2);
	guest_u64(g, GUEST_NOTES + 16 + 16, sizeof(other));
	guest_u64(g, GUEST_NOTES + 16 + 24, GUEST_NOTES + 0x100);
	guest_u64(g, GUEST_NOTES + 80 + 16, sizeof(two));
	guest_u64(g, GUEST_NOTES + 80 + 24, GUEST_NOTES + 0x200);
	guest_put(g, GUEST_NOTES + 0x100, other, sizeof(other));
	guest_put(g, GUEST_NOTES + 0x200, two, sizeof(two));
}

/* Makes ORC tables: half of the entries for the text, half for the init text; 6.4's layout. */
static inline void guest_make_orc(struct guest *g)
{
	for (unsigned int i = 0; i < GUEST_NORCS; i++) {
		uint64_t va = i < GUEST_NORCS / 2 ? GUEST_TEXT(0) + 16 * i
						  : GUEST_TEXT(2) + 16 * (i - GUEST_NORCS / 2);
		int32_t rel = (int32_t)(va - (GUEST_ORC_IP + 4 * i));
		uint16_t e[3] = { (uint16_t)(8 + 8 * (i % 4)), 0, 0x205 };

		memcpy(g->orc_ip + 4 * i, &rel, 4);
		memcpy(g->orc + 6 * i, e, 6);
	}
}

/* Builds the guest. canary: the tasks have a stack_canary. */
static inline void guest_make(struct guest *g, bool canary)
{
	memset(g, 0, sizeof(*g));
	g->pid = canary ? G_PID - 8 : G_PID;
	for (unsigned int i = 0; i < GUEST_TASKS; i++)
		guest_make_task(g, i);
	for (unsigned int p = 0; p < 3; p++) {
		uint64_t list[GUEST_TASKS] = { guest_task_va(p) + G_CHILDREN };
		unsigned int n = 1;

		for (unsigned int i = 1; i + 1 < GUEST_TASKS; i++)
			if (guest_task[i].parent == p)
				list[n++] = guest_task_va(i) + G_SIBLING;
		guest_list(g, list, n);
	}
	{
		uint64_t list[GUEST_TASKS];

		for (unsigned int i = 0; i + 1 < GUEST_TASKS; i++)
			list[i] = guest_task_va(i) + G_TASKS;
		guest_list(g, list, GUEST_TASKS - 1);
	}
	guest_list(g,
		   (uint64_t[]){ GUEST_SIGNALS + 0x600 + 16, guest_task_va(6) + G_THREAD_NODE,
				 guest_task_va(8) + G_THREAD_NODE },
		   3);
	guest_u64(g, GUEST_CURRENT, guest_task_va(6));
	for (unsigned int i = 0; i < GUEST_NMODULES; i++)
		guest_make_module(g, i);
	guest_list(g,
		   (uint64_t[]){ GUEST_MODULES, GUEST_MODULE(0) + GM_LIST,
				 GUEST_MODULE(1) + GM_LIST },
		   3);
	guest_make_symbols(g);
	guest_make_notes(g);
	guest_make_orc(g);
}

/*
 * Returns the kernel's symbols, which the caller frees. With one CPU current_task is an ordinary
 * variable.
 */
static inline struct symtab *guest_symbols(void)
{
	struct symtab *s = symtab_create();

	if (!s || symtab_add(s, GUEST_CURRENT, 8, 'D', "current_task") ||
	    symtab_add(s, guest_task_va(0), GUEST_STRIDE, 'D', "init_task") ||
	    symtab_add(s, GUEST_MODULES, 16, 'd', "modules") ||
	    symtab_add(s, 0xffffffff81000000ull, 0, 'T', "_text") ||
	    symtab_add(s, 0xffffffff82000000ull, 0, 'B', "_end") || symtab_freeze(s, NULL))
		abort();
	return s;
}

/* -- types ------------------------------------------------------------------------ */

struct guest_type {
	const char *structure, *path;
	uint32_t off, size;
};

static const struct guest_type guest_types_table[] = {
	{ "task_struct", "pid", G_PID, 4 },
	{ "task_struct", "tgid", G_PID + 4, 4 },
	{ "task_struct", "comm", G_COMM, 16 },
	{ "task_struct", "mm", G_MM, 8 },
	{ "task_struct", "real_parent", G_PARENT, 8 },
	{ "task_struct", "group_leader", G_LEADER, 8 },
	{ "task_struct", "flags", G_FLAGS, 4 },
	{ "task_struct", "stack", G_STACK, 8 },
	{ "task_struct", "tasks", G_TASKS, 16 },
	{ "task_struct", "thread_node", G_THREAD_NODE, 16 },
	{ "task_struct", "signal", G_SIGNAL, 8 },
	{ "task_struct", "start_time", G_START, 8 },
	{ "task_struct", "start_boottime", G_START + 8, 8 },
	{ "signal_struct", "thread_head", 16, 16 },
	{ "task_struct", "__state", G_STATE, 4 },
	{ "task_struct", "exit_state", G_EXIT_STATE, 4 },
	{ "task_struct", "thread.sp", G_SP, 8 },
	{ "task_struct", "se.sum_exec_runtime", G_RUN_NS, 8 },
	{ "task_struct", "static_prio", G_PRIO, 4 },
	{ "task_struct", "policy", G_POLICY, 4 },
	{ "task_struct", "nvcsw", G_SWITCHES, 8 },
	{ "task_struct", "nivcsw", G_SWITCHES + 8, 8 },
	{ "pcpu_hot", "current_task", 16, 8 },
	{ "module", "state", GM_STATE, 4 },
	{ "module", "list", GM_LIST, 16 },
	{ "module", "name", GM_NAME, 56 },
	{ "module", "mem[3].base", GM_TEXT, 8 },
	{ "module", "mem[3].size", GM_TEXT_SIZE, 4 },
	{ "module", "mem[5].base", GM_INIT, 8 },
	{ "module", "mem[5].size", GM_INIT_SIZE, 4 },
	{ "module", "kallsyms", GM_KALLSYMS, 8 },
	{ "module", "build_id", GM_BUILD_ID, 20 },
	{ "module", "notes_attrs", GM_NOTES, 8 },
	{ "module_notes_attrs", "notes", 8, 4 },
	{ "module_notes_attrs", "attrs", 16, 0 },
	{ "bin_attribute", "size", 16, 8 },
	{ "bin_attribute", "private", 24, 8 },
	{ "module", "arch.num_orcs", GM_NORCS, 4 },
	{ "module", "arch.orc_unwind_ip", GM_ORC_IP, 8 },
	{ "module", "arch.orc_unwind", GM_ORC, 8 },
	{ "mod_kallsyms", "symtab", GK_SYMTAB, 8 },
	{ "mod_kallsyms", "num_symtab", GK_NUM, 4 },
	{ "mod_kallsyms", "strtab", GK_STRTAB, 8 },
	{ "mod_kallsyms", "typetab", GK_TYPETAB, 8 },
};

/* Implements the types' callback; ctx is the path of a member that these types lack, or NULL. */
static inline int guest_member(void *ctx, const char *structure, const char *path,
			       struct type_member *out)
{
	for (size_t i = 0; i < sizeof(guest_types_table) / sizeof(guest_types_table[0]); i++) {
		const struct guest_type *t = &guest_types_table[i];

		if (strcmp(t->structure, structure) != 0 || strcmp(t->path, path) != 0 ||
		    (ctx && !strcmp(ctx, path)))
			continue;
		*out = (struct type_member){ .off = t->off, .size = t->size };
		return 0;
	}
	return -ENOENT;
}

static inline int guest_size(void *ctx, const char *structure, uint64_t *out)
{
	(void)ctx;
	if (strcmp(structure, "bin_attribute") != 0)
		return -ENOENT;
	*out = 64;
	return 0;
}

static inline int guest_enumerator(void *ctx, const char *name, int64_t *out)
{
	(void)ctx;
	if (strcmp(name, "MOD_TEXT") != 0 && strcmp(name, "MOD_INIT_TEXT") != 0)
		return -ENOENT;
	*out = strcmp(name, "MOD_TEXT") != 0 ? 5 : 3;
	return 0;
}

static const struct types guest_types = { guest_member, guest_size, guest_enumerator, NULL };

#endif
