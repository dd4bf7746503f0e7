/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a made-up profile of a guest with tasks, modules and user programs,
 * whose every share is known, for tests.
 *
 *   mktasks [-1] OUT PROGRAM.elf LIBRARY.so VDSO.so
 *     -1  single file
 *
 * PROGRAM is linked to a fixed place and has prog_main, prog_work; LIBRARY and
 * VDSO can be loaded anywhere and have lib_entry, lib_work and vdso_time.
 *
 * What happens is the table in main(): forks with and without exec, threads, a
 * pid that comes again as another program, code made at run time whose names come from
 * jit-root/tmp/perf-PID.map (made here, in the current directory), modules that come before and after
 * the first sample, go and come again elsewhere. Prints `COMM DSO SYMBOL SAMPLES`
 * for what was innermost, and `total N`. The kernel runs 448 MiB from where it is
 * linked.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/sample.h"
#include "profile/record/guest/jit.h"
#include "profile/format/perfdata/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT (0xffffffff81000000u + 0x1c000000u)
#define MODULES 0xffffffffc0000000u
#define FUNC 0x90u
#define T0 5000000000u
#define STEP 1000000u
#define MAX_EXPECTED 256u

static const char *const kernel_name[] = { "guest_start", "guest_idle", "guest_syscall",
					   "guest_write", "guest_exec", "guest_fork" };

enum object { PROGRAM, LIBRARY, VDSO, OBJECTS };

static struct {
	struct file_map file;
	struct kimage image;
	struct symtab *symbols;
	const char *path;
} object[OBJECTS] = {
	[PROGRAM] = { .path = "/usr/bin/prog" },
	[LIBRARY] = { .path = "/usr/lib/libwork.so" },
	[VDSO] = { .path = "[vdso]" },
};

static struct {
	char key[160];
	unsigned int n;
} expected[MAX_EXPECTED];
static unsigned int nexpected, total;

static struct sink *sink;
static struct err err;
static uint64_t now = T0;

static void must(int ret)
{
	if (ret) {
		fprintf(stderr, "mktasks: %s\n", err.text);
		exit(1);
	}
}

static void expect(const char *comm, const char *dso, const char *symbol, unsigned int n)
{
	char key[160];
	unsigned int i;

	snprintf(key, sizeof(key), "%s %s %s", comm, dso, symbol);
	for (i = 0; i < nexpected && strcmp(expected[i].key, key); i++)
		;
	if (i == nexpected)
		snprintf(expected[nexpected++].key, sizeof(key), "%s", key);
	expected[i].n += n;
	total += n;
}

/* -- kernel and modules ------------------------------------------------------------- */

static size_t read_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	(void)va;
	memset(dst, 0x93, len); /* xchg %eax,%ebx; perf leaves nops at the end of a function out */
	return len;
}

static struct symtab *kernel_symbols(void)
{
	struct symtab *t = symtab_create();

	symtab_add(t, TEXT, 0, 'T', "_text");
	for (unsigned int i = 0; i < ARRAY_SIZE(kernel_name); i++)
		symtab_add(t, TEXT + i * FUNC, FUNC, 'T', kernel_name[i]);
	symtab_add(t, TEXT + 0x1000000, 0, 'B', "_end");
	must(symtab_freeze(t, &err));
	return t;
}

#define MAX_LOADED 8
static struct {
	char name[32];
	struct symtab *symbols;
	uint64_t addr;
} loaded[MAX_LOADED];
static unsigned int nloaded;

/* Functions NAME_init, NAME_read and NAME_write, and a name that the kernel has, too. */
static void load_module(const char *name, uint64_t addr)
{
	static const char *const suffix[] = { "init", "read", "write" };
	struct symtab *t = symtab_create();
	char symbol[64];
	struct profile_module m = {
		.name = name, .addr = addr, .len = 0x3000, .time_ns = now, .symbols = t
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(suffix); i++) {
		snprintf(symbol, sizeof(symbol), "%s_%s", name, suffix[i]);
		symtab_add(t, addr + i * FUNC, FUNC, 't', symbol);
	}
	symtab_add(t, addr + 3 * FUNC, FUNC, 't', "guest_write");
	must(symtab_freeze(t, &err));
	must(sink->ops->module(sink, &m, &err));
	snprintf(loaded[nloaded].name, sizeof(loaded[0].name), "%s", name);
	loaded[nloaded].symbols = t;
	loaded[nloaded++].addr = addr;
}

/* -- samples ------------------------------------------------------------------------ */

static struct profile_sample start_sample(uint32_t pid, uint32_t tid, struct stack *st)
{
	memset(st, 0, sizeof(*st));
	st->end = STACK_END_ROOT;
	return (struct profile_sample){
		.pid = pid,
		.tid = tid,
		.cpu = tid & 1,
		.period = STEP,
		.mode = SAMPLE_KERNEL,
		.stack = st,
	};
}

static void put(struct profile_sample *s, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		s->time_ns = now += STEP;
		must(sink->ops->sample(sink, s, &err));
	}
}

static void push(struct stack *st, uint64_t ip, bool kernel)
{
	st->exact[st->n] = true;
	st->ip[st->n++] = ip;
	if (kernel)
		st->n_kernel = st->n;
}

/* n samples in kernel function f, called by guest_start. */
static void in_kernel(uint32_t pid, uint32_t tid, const char *comm, unsigned int f, unsigned int n)
{
	static struct stack st;
	struct profile_sample s = start_sample(pid, tid, &st);

	push(&st, TEXT + f * FUNC + 0x10, true);
	push(&st, TEXT + 0x20, true);
	put(&s, n);
	expect(comm, "[kernel.kallsyms]", kernel_name[f], n);
}

/* n samples in function f of the module loaded as number m, called by guest_syscall. */
static void in_module(uint32_t pid, const char *comm, unsigned int m, unsigned int f,
		      unsigned int n)
{
	static const char *const suffix[] = { "_init", "_read", "_write" };
	static struct stack st;
	struct profile_sample s = start_sample(pid, pid, &st);
	char dso[40], symbol[64];

	push(&st, loaded[m].addr + f * FUNC + 0x11, true);
	push(&st, TEXT + 2 * FUNC + 0x10, true);
	put(&s, n);
	snprintf(dso, sizeof(dso), "[%s]", loaded[m].name);
	snprintf(symbol, sizeof(symbol), "%s%s", f < 3 ? loaded[m].name : "guest_write",
		 f < 3 ? suffix[f] : "");
	expect(comm, dso, symbol, n);
}

/* n samples in a function of a program loaded `bias` from where it is linked. */
static void in_user(uint32_t pid, uint32_t tid, const char *comm, enum object o, uint64_t bias,
		    const char *symbol, unsigned int n)
{
	static struct stack st;
	struct profile_sample s = start_sample(pid, tid, &st);
	const struct symbol *sym = symtab_find(object[o].symbols, symbol);
	const struct symbol *root = symtab_find(object[PROGRAM].symbols, "prog_main");

	if (!sym || !root)
		must(err_set(&err, ENOENT, "no symbol %s", symbol));
	s.mode = SAMPLE_USER;
	push(&st, bias + sym->addr + 1, false);
	push(&st, root->addr + 2, false);
	put(&s, n);
	expect(comm, object[o].path[0] == '[' ? object[o].path : strrchr(object[o].path, '/') + 1,
	       symbol, n);
}

/* -- code made at run time ---------------------------------------------------------- */

#define JIT 0x7f8800000000u

static struct guest_jit *jit;
static struct userfile_finder finder;

static void jit_create(void)
{
	struct userfile_options opt = { .guest_root = "jit-root", .system_debug = "", .cache = "" };

	must(file_mkdirs("jit-root/tmp", &err));
	must(userfile_finder_init(&finder, &opt, &err));
	must(guest_jit_create(&jit, &finder, sink, &err));
}

static void jit_file(uint32_t pid, const char *text)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "jit-root/tmp/perf-%" PRIu32 ".map", pid);
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		must(err_set(&err, EIO, "%s: cannot write", path));
}

static void jit_region(uint32_t pid, uint64_t mm, uint64_t off, uint64_t len)
{
	struct profile_map m = {
		.pid = pid, .tid = pid, .time_ns = now, .addr = JIT + off, .len = len
	};

	must(guest_jit_map(jit, mm, &m, &err));
}

/* n samples at an offset of the code; the name is what the map says in the end. */
static void in_jit(uint32_t pid, const char *comm, const char *dso, uint64_t off,
		   const char *symbol, unsigned int n)
{
	static struct stack st;
	struct profile_sample s = start_sample(pid, pid, &st);

	s.mode = SAMPLE_USER;
	push(&st, JIT + off, false);
	put(&s, n);
	expect(comm, dso, symbol, n);
}

/* -- tasks --------------------------------------------------------------------------- */

static void map_object(uint32_t pid, enum object o, uint64_t bias)
{
	const struct kimage *k = &object[o].image;
	struct profile_map m = {
		.pid = pid,
		.tid = pid,
		.time_ns = now,
		.path = object[o].path,
		.build_id = k->build_id,
		.elf = object[o].file.data,
		.elf_len = object[o].file.len,
	};

	/* The kernel maps its vdso whole, and perf takes that for granted. */
	if (o == VDSO) {
		m.addr = bias;
		m.len = (object[o].file.len + 4095) & ~4095ull;
		must(sink->ops->map(sink, &m, &err));
	}
	for (unsigned int i = 0; i < k->nseg && o != VDSO; i++) {
		if (!(k->seg[i].flags & 1))
			continue;
		m.pgoff = k->seg[i].file_off & ~4095ull;
		m.addr = bias + (k->seg[i].va & ~4095ull);
		m.len = ((k->seg[i].va & 4095) + k->seg[i].mem_len + 4095) & ~4095ull;
		must(sink->ops->map(sink, &m, &err));
	}
}

static void task_fork(uint32_t pid, uint32_t tid, uint32_t ppid)
{
	must(sink->ops->fork(sink, &(struct profile_fork){ pid, tid, ppid, ppid, now }, &err));
}

static void task_exec(uint32_t pid, const char *comm)
{
	must(sink->ops->comm(sink, &(struct profile_comm){ pid, pid, comm, true, now }, &err));
}

static void load_object(enum object o, const char *path)
{
	must(file_map_open(&object[o].file, path, 16u << 20, &err));
	must(kimage_parse(&object[o].image, path, object[o].file.data, object[o].file.len, &err));
	must(kimage_symbols(&object[o].image, &object[o].symbols, &err));
}

static void story(void)
{
	const uint64_t lib = 0x7f1200000000, lib2 = 0x7f5600000000, vdso = 0x7ffd00000000;

	must(sink->ops->comm(sink, &(struct profile_comm){ 1, 1, "init", false, now }, &err));
	load_module("early", MODULES);
	in_kernel(0, 0, "swapper", 1, 40);
	in_kernel(1, 1, "init", 3, 10);
	in_module(1, "init", 0, 1, 10);

	/* A child has its parent's name and mappings until it runs something else. */
	map_object(1, PROGRAM, 0);
	map_object(1, LIBRARY, lib);
	in_user(1, 1, "init", LIBRARY, lib, "lib_work", 7);
	task_fork(100, 100, 1);
	in_kernel(100, 100, "init", 5, 3);
	in_user(100, 100, "init", LIBRARY, lib, "lib_entry", 5);
	task_exec(100, "shell");
	map_object(100, PROGRAM, 0);
	map_object(100, VDSO, vdso);
	in_user(100, 100, "shell", PROGRAM, 0, "prog_work", 11);
	in_user(100, 100, "shell", VDSO, vdso, "vdso_time", 9);
	/* The parent kept what it had. */
	in_user(1, 1, "init", LIBRARY, lib, "lib_work", 2);

	/* A thread, first by the process's name, then by its own. */
	task_fork(100, 101, 100);
	in_user(100, 101, "shell", PROGRAM, 0, "prog_work", 4);
	must(sink->ops->comm(sink, &(struct profile_comm){ 100, 101, "worker thread", false, now },
			     &err));
	in_user(100, 101, "worker thread", PROGRAM, 0, "prog_main", 6);
	in_kernel(100, 101, "worker thread", 2, 3);

	/* It compiles something, more than it had room for, and something anew. */
	jit_region(100, 1, 0, 0x1000);
	in_jit(100, "shell", "[jit:100]", 0x10, "first", 3);
	jit_region(100, 1, 0x100000, 0x1000);
	jit_region(100, 1, 0, 0x3000);
	in_jit(100, "shell", "[jit:100]", 0x10, "first", 1);
	in_jit(100, "shell", "[jit:100]", 0x2010, "grown", 2);
	in_jit(100, "shell", "[jit:100]", 0x100010, "far", 5);
	in_jit(100, "shell", "[jit:100]", 0x100120, "anew [or older code]", 4);
	jit_file(100, "7f8800000000 1000 first\n7f8800002000 20 grown\n"
		      "7f8800100000 1000 far\n7f8800100100 40 anew\n");

	/* Modules that come late, go, and come again elsewhere. */
	load_module("late", MODULES + 0x10000);
	in_module(100, "shell", 1, 2, 12);
	in_module(100, "shell", 1, 3, 5);
	load_module("late", MODULES + 0x40000);
	in_module(100, "shell", 2, 1, 8);
	in_module(1, "init", 0, 2, 3);

	/* The pid comes again. The library lies elsewhere, over the old one's vdso. */
	must(sink->ops->exit(sink, 100, 101, now, &err));
	must(sink->ops->exit(sink, 100, 100, now, &err));
	now += STEP;
	task_fork(100, 100, 1);
	in_user(100, 100, "init", LIBRARY, lib, "lib_work", 1);
	task_exec(100, "copy");
	map_object(100, PROGRAM, 0);
	map_object(100, LIBRARY, lib2);
	in_user(100, 100, "copy", LIBRARY, lib2, "lib_work", 13);
	/* Its code lies where the former program's was, and has other names. */
	jit_region(100, 2, 0, 0x1000);
	jit_file(100, "7f8800000000 1000 of_another\n");
	in_jit(100, "copy", "[jit:100#2]", 0x10, "of_another", 6);
	map_object(100, LIBRARY, vdso);
	in_user(100, 100, "copy", LIBRARY, vdso, "lib_entry", 4);
	in_kernel(100, 100, "copy", 4, 6);
	/* This task never got a name. */
	in_kernel(200, 200, ":200", 2, 5);
	in_kernel(0, 0, "swapper", 1, 20);
}

int main(int argc, char **argv)
{
	struct sink_perfdata_options opt = { 0 };
	struct err note = { 0 };
	struct profile_totals totals = { .json = "{\"made_up\":true}" };
	struct symtab *symbols = kernel_symbols();
	struct profile_info info = {
		.event = { PROFILE_EVENT_WALL(1000) },
		.nevents = 1,
		.vcpus = 2,
		.hostname = "host",
		.argc = argc,
		.argv = argv,
	};
	struct profile_kernel kernel = {
		.symbols = symbols,
		.text = TEXT,
		.end = TEXT + 0x1000000,
		.read_text = read_text,
		.osrelease = "6.9.0-guest",
	};

	if (argc > 1 && !strcmp(argv[1], "-1")) {
		opt.single_file = true;
		argv++;
		argc--;
	}
	if (argc != 5)
		return 2;
	for (unsigned int o = 0; o < OBJECTS; o++)
		load_object(o, argv[2 + o]);
	opt.path = argv[1];
	opt.note = &note;
	must(perfdata_sink_create(&sink, &opt, &err));
	must(sink->ops->begin(sink, &info, &err));
	must(sink->ops->kernel(sink, &kernel, &err));
	jit_create();
	story();
	must(guest_jit_finish(jit, &err));
	must(sink->ops->end(sink, &totals, &err));
	sink->ops->destroy(sink);
	printf("total %u\n", total);
	for (unsigned int i = 0; i < nexpected; i++)
		printf("%u %s\n", expected[i].n, expected[i].key);
	for (unsigned int i = 0; i < nloaded; i++)
		symtab_destroy(loaded[i].symbols);
	for (unsigned int o = 0; o < OBJECTS; o++) {
		symtab_destroy(object[o].symbols);
		file_map_close(&object[o].file);
	}
	symtab_destroy(symbols);
	guest_jit_destroy(jit);
	userfile_finder_deinit(&finder);
	return note.code ? 1 : 0;
}
