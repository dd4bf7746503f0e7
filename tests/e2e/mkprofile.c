/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a made-up profile whose every share is known, for tests and benchmarks.
 *
 *   mkprofile [-1] [-s] [-x] [-n SAMPLES] [-b STACKS] OUT [USER.elf]
 *     -1  single file          -s  guest kernel without symbols
 *     -u  the same, and not even its addresses are known
 *     -x  guest kernel with a build id of its own (default: kvmprof makes one)
 *     -p  as kvmprof once wrote them: no sample says that the vCPU was running
 *     -b  benchmark: that many stacks of depth 16 to 24 instead of the known ones
 *
 * Prints `NAME SELF CHILDREN` for each symbol, in samples of the total given by
 * the line `total N`. Kernel names begin with guest_, so that a name of the
 * host's kernel is recognised at once.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "profile/format/perfdata/sink.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sample.h"

#define TEXT 0xffffffff81000000u
#define FUNC_SIZE 0x90u /* not a multiple of 64, so that functions straddle pages */
#define NFUNC 1500u
#define T0 5000000000u /* ns: perf takes small times for "none" */
#define PERIOD 1000000u

static uint8_t text[NFUNC * FUNC_SIZE];
static uint64_t self_count[NFUNC + 16], children_count[NFUNC + 16];
static unsigned int nuser;
static const struct symbol *user_sym[3];
static const char *const user_name[3] = { "demo_start", "demo_loop", "demo_leaf" };

static size_t read_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	if (va < TEXT || va - TEXT >= sizeof(text))
		return 0;
	if (len > sizeof(text) - (va - TEXT))
		len = sizeof(text) - (va - TEXT);
	memcpy(dst, text + (va - TEXT), len);
	return len;
}

static void func_name(char *name, size_t size, unsigned int f)
{
	static const char *const known[] = {
		"guest_startup",   "guest_start_kernel", "guest_idle",
		"guest_irq_entry", "guest_tick",	 "guest_syscall",
		"guest_write",	   "guest_copy",	 "guest_recurse",
	};

	if (f < ARRAY_SIZE(known))
		snprintf(name, size, "%s", known[f]);
	else
		snprintf(name, size, "guest_func_%04u", f);
}

static uint64_t func(unsigned int f)
{
	return TEXT + f * FUNC_SIZE;
}

/* push %rbp; mov %rsp,%rbp; nops with a call in between; a call as the last instruction. */
static void fill_text(void)
{
	static const uint8_t prologue[] = { 0x55, 0x48, 0x89, 0xe5 };

	memset(text, 0x90, sizeof(text));
	for (unsigned int f = 0; f < NFUNC; f++) {
		uint8_t *p = text + f * FUNC_SIZE;

		memcpy(p, prologue, sizeof(prologue));
		p[0x20] = 0xe8;
		memset(p + 0x21, 0, 4);
		p[FUNC_SIZE - 5] = 0xe8;
		memset(p + FUNC_SIZE - 4, 0, 4);
	}
}

static struct symtab *make_symbols(void)
{
	struct symtab *t = symtab_create();
	char name[64];

	symtab_add(t, TEXT, 0, 'T', "_text");
	for (unsigned int f = 0; f < NFUNC; f++) {
		func_name(name, sizeof(name), f);
		symtab_add(t, func(f), FUNC_SIZE, f % 3 ? 't' : 'T', name);
	}
	symtab_add(t, TEXT + 0x1000000, 0, 'B', "_end");
	symtab_freeze(t, NULL);
	return t;
}

/* The frame of function f: inside it (innermost), behind its call, or behind its last one. */
enum place { INSIDE = 0x41, BEHIND_CALL = 0x25, BEHIND_LAST = FUNC_SIZE };

static void push(struct stack *st, uint64_t ip, bool exact)
{
	st->exact[st->n] = exact;
	st->ip[st->n++] = ip;
}

static void kernel_frame(struct stack *st, unsigned int f, enum place at)
{
	push(st, func(f) + (uint64_t)at, st->n == 0);
	st->n_kernel = st->n;
}

static void count(unsigned int f, bool self)
{
	children_count[f]++;
	self_count[f] += self;
}

/* One of the known stacks; also counts what a right report must say. */
static void known_stack(struct stack *st, unsigned int i, struct profile_sample *s)
{
	unsigned int kind = i % 20;

	memset(st, 0, offsetof(struct stack, ip));
	st->end = STACK_END_ROOT;
	s->mode = SAMPLE_KERNEL;
	if (kind < 8) { /* 40 %: idle; its callers never come back */
		s->pid = s->tid = 0;
		s->mode = SAMPLE_IDLE;
		kernel_frame(st, 2, INSIDE);
		kernel_frame(st, 1, BEHIND_LAST);
		kernel_frame(st, 0, BEHIND_LAST);
		count(2, true);
		count(1, false);
		count(0, false);
	} else if (kind < 12) { /* 20 %: interrupted at a function's first byte */
		kernel_frame(st, 4, INSIDE);
		kernel_frame(st, 3, BEHIND_CALL);
		push(st, func(7), true);
		st->n_kernel = st->n;
		kernel_frame(st, 6, BEHIND_CALL);
		count(4, true);
		count(3, false);
		count(7, false);
		count(6, false);
	} else if (kind < 15) { /* 15 %: recursion counts once; the idle task, not halted */
		s->pid = s->tid = 0;
		for (unsigned int k = 0; k < 4; k++)
			kernel_frame(st, 8, k ? BEHIND_CALL : INSIDE);
		kernel_frame(st, 5, BEHIND_CALL);
		count(8, true);
		count(5, false);
	} else if (kind < 18 || !nuser) { /* 15 %: a system call, with the user's part */
		kernel_frame(st, 7, INSIDE);
		kernel_frame(st, 6, BEHIND_CALL);
		kernel_frame(st, 5, BEHIND_CALL);
		count(7, true);
		count(6, false);
		count(5, false);
		for (unsigned int u = 0; u < nuser && u < 2; u++) {
			push(st, user_sym[1 - u]->addr + 5, true);
			count(NFUNC + 1 - u, false);
		}
	} else { /* 10 %: user */
		s->mode = SAMPLE_USER;
		for (unsigned int u = 0; u < 3; u++) {
			push(st, user_sym[2 - u]->addr + (u ? 5 : 2), u == 0);
			count(NFUNC + 2 - u, u == 0);
		}
	}
}

/* Depth 16 to 24, reproducible. */
static void bench_stack(struct stack *st, unsigned int i, unsigned int nstacks)
{
	uint32_t x = (i * 2654435761u >> 8) % nstacks;
	unsigned int depth = 16 + x % 9;

	memset(st, 0, offsetof(struct stack, ip));
	for (unsigned int k = 0; k < depth; k++) {
		x = x * 1664525u + 1013904223u;
		kernel_frame(st, 10 + (k < 4 ? x >> 8 : x >> 20) % (NFUNC - 10),
			     k ? BEHIND_CALL : INSIDE);
	}
}

static int load_user(const char *path, struct kimage *k, struct file_map *m, struct symtab **syms,
		     struct err *e)
{
	int ret = file_map_open(m, path, 16u << 20, e);

	if (!ret)
		ret = kimage_parse(k, path, m->data, m->len, e);
	if (!ret)
		ret = kimage_symbols(k, syms, e);
	for (unsigned int u = 0; u < 3 && !ret; u++) {
		user_sym[u] = symtab_find(*syms, user_name[u]);
		if (!user_sym[u])
			ret = err_set(e, 2, "%s: no %s", path, user_name[u]);
	}
	nuser = ret ? 0 : 3;
	return ret;
}

static void print_expected(unsigned int samples)
{
	char name[64];

	printf("total %u\n", samples);
	for (unsigned int f = 0; f < NFUNC + nuser; f++) {
		if (!children_count[f])
			continue;
		if (f < NFUNC)
			func_name(name, sizeof(name), f);
		printf("%s %" PRIu64 " %" PRIu64 "\n", f < NFUNC ? name : user_name[f - NFUNC],
		       self_count[f], children_count[f]);
	}
}

int main(int argc, char **argv)
{
	static struct kimage kernel, user;
	static struct stack st;
	struct sink_perfdata_options opt = { 0 };
	struct err e = { 0 }, note = { 0 };
	struct file_map m = { 0 };
	struct symtab *user_syms = NULL, *syms = make_symbols();
	unsigned int samples = 10000, bench = 0;
	bool past = false;
	struct sink *sink = NULL;
	struct profile_info info = {
		.event = { PROFILE_EVENT_WALL(1000) },
		.nevents = 1,
		.vcpus = 2,
		.hostname = "host",
		.argc = argc,
		.argv = argv,
	};
	struct profile_kernel where = {
		.osrelease = "6.9.0-guest",
		.symbols = syms,
		.text = TEXT,
		.end = TEXT + 0x1000000,
		.read_text = read_text,
	};
	struct profile_totals totals = { .json = "{\"made_up\":true}" };
	int c, ret;

	while ((c = getopt(argc, argv, "1supxn:b:")) != -1) {
		if (c == '1')
			opt.single_file = true;
		else if (c == 's')
			where.symbols = NULL;
		else if (c == 'u') {
			where.symbols = NULL;
			where.text = where.end = 0;
		} else if (c == 'x') {
			kernel.build_id_len = 20;
			memset(kernel.build_id, 0x5a, 20);
			where.image = &kernel;
		} else if (c == 'p')
			past = true;
		else if (c == 'n')
			samples = (unsigned int)atoi(optarg);
		else if (c == 'b')
			bench = (unsigned int)atoi(optarg);
		else
			return 2;
	}
	if (optind >= argc)
		return 2;
	opt.path = argv[optind];
	opt.note = &note;
	fill_text();
	ret = optind + 1 < argc ? load_user(argv[optind + 1], &user, &m, &user_syms, &e) : 0;
	if (!ret)
		ret = perfdata_sink_create(&sink, &opt, &e);
	if (!ret)
		ret = sink->ops->begin(sink, &info, &e);
	if (!ret)
		ret = sink->ops->kernel(sink, &where, &e);
	if (!ret)
		ret = sink->ops->comm(sink, &(struct profile_comm){ 1, 1, "guest", false, T0 }, &e);
	if (!ret)
		ret = sink->ops->comm(sink, &(struct profile_comm){ 1, 2, "vcpu1", false, T0 }, &e);
	if (!ret && nuser) {
		struct profile_map map = {
			.pid = 1,
			.tid = 1,
			.time_ns = T0,
			.path = "demo-user",
			.build_id = user.build_id,
			.elf = m.data,
			.elf_len = m.len,
		};

		for (unsigned int i = 0; i < user.nseg; i++)
			if (user.seg[i].flags & 1) {
				map.addr = user.seg[i].va;
				map.len = (user.seg[i].mem_len + 4095) & ~4095ull;
				map.pgoff = user.seg[i].file_off;
			}
		ret = sink->ops->map(sink, &map, &e);
	}
	for (unsigned int i = 0; i < samples && !ret; i++) {
		/* Bursts of one vCPU, then of the other: out of order, as rings are drained. */
		unsigned int burst = i / 200, cpu = burst & 1, at = (burst / 2) * 200 + i % 200;
		struct profile_sample s = {
			.pid = 1,
			.tid = 1 + cpu,
			.cpu = cpu,
			.period = PERIOD,
			.stack = &st,
			.time_ns = T0 + 1000 + (uint64_t)at * PERIOD + cpu * 7777,
		};

		if (bench)
			bench_stack(&st, i, bench);
		else
			known_stack(&st, i, &s);
		if (past)
			s.mode = SAMPLE_IDLE;
		ret = sink->ops->sample(sink, &s, &e);
	}
	if (!ret && !bench)
		ret = sink->ops->lost(sink, 1, 3, T0 + 2000000, &e);
	if (!ret)
		ret = sink->ops->end(sink, &totals, &e);
	if (ret)
		fprintf(stderr, "mkprofile: %s\n", e.text);
	else if (note.code)
		fprintf(stderr, "mkprofile: note: %s\n", note.text);
	if (!ret && !bench)
		print_expected(samples);
	if (sink)
		sink->ops->destroy(sink);
	symtab_destroy(syms);
	symtab_destroy(user_syms);
	file_map_close(&m);
	return ret ? 1 : 0;
}
