/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of programs' stacks is found, against libdwfl on stopped processes.
 *
 *	bench_user_stacks [OPTION]... -- COMMAND...
 *	--stacks N --every-us N --stack-bytes N --no-cfi --tables FILE --show N --figures FILE
 *
 * The command is started, stopped at random moments, and each of its threads' stacks is
 * unwound twice: by libdwfl from the live process, and by unwind() from a copy of its
 * registers and of the bytes at its stack pointer, as capture takes them. It is started
 * anew until there are N stacks. One line of figures: stacks, of these whole (as long as
 * libdwfl's, and ended as such), frames of libdwfl, found, wrong (another address than
 * libdwfl's, or frames beyond its end), cut (behind the copied bytes), untold (missing
 * behind code without tables), and the time of one unwind(). --show prints the first N
 * stacks that differ. --tables: unwind() has the tables of this file for the program, which
 * is the same code with others than libdwfl reads.
 *
 * libdwfl is believed up to the first frame without tables: there it takes rbp for a frame
 * pointer, also in a prologue, and may leave a caller out. Where it gives up with an error,
 * frames beyond that are nobody's.
 */
#include "base/clock.h"
#include "base/file.h"
#include "symbolizer/cfi/cfi_cache.h"
#include "symbolizer/program/userelf_cfi.h"
#include "symbolizer/unwind/unwind.h"
#include "tests/unit/symbolizer/unwind/no_text.h"

#include <dirent.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define USER_CS 0x33
#define SPACE 0xc43000u
#define MAX_THREADS 64u
#define MAX_MAPS 4096u
#define MAX_FILES 1024u
#define MAX_TRUTH 512u
#define STACK_MOST (1u << 20) /* more than capture copies: to see what more would bring */

struct options {
	unsigned long stacks, every_us, stack_bytes, show;
	bool no_cfi;
	const char *figures; /* a file; NULL: standard output */
	const char *tables;  /* the program's; NULL: its own */
	char **argv;
};

struct counts {
	unsigned long stacks, whole, frames, found, wrong, cut, untold;
	unsigned long end[STACK_END_COUNT], timed, shown;
	uint64_t ns;
};

/* One mapped file. */
struct file {
	char path[512];
	struct file_map map;
	struct file_bytes bytes;
	struct userelf elf;
	struct userelf_cfi *cfi;
	bool usable;
};

struct map {
	uint64_t start, end, off;
	int file; /* -1: none */
};

/* The memory of one stopped process, its pages read once: as cheap as a guest's. */
struct page {
	uint64_t va;
	bool there;
	uint8_t bytes[4096];
};
#define PAGES 8192u

struct process {
	pid_t pid;
	struct map map[MAX_MAPS];
	size_t n;
};

static struct file file[MAX_FILES];
static size_t nfiles;
static struct process process;
static const char *program_path, *program_tables; /* values of --tables; else NULL */
static struct page *pages;
static struct cfi_cache *cache;
static uint8_t sample_bytes[sizeof(struct sample) + STACK_MOST] __attribute__((aligned(16)));

static void die(const char *what)
{
	fprintf(stderr, "bench_user_stacks: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* -- the process ----------------------------------------------------------------- */

static size_t read_direct(uint64_t va, void *dst, size_t len)
{
	struct iovec to = { dst, len }, from = { (void *)(uintptr_t)va, len };
	ssize_t n = process_vm_readv(process.pid, &to, 1, &from, 1, 0);

	return n < 0 ? 0 : (size_t)n;
}

static size_t read_program(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	size_t done = 0;

	(void)ctx;
	(void)space;
	while (done < len) {
		uint64_t at = va + done, page = at & ~4095ull, off = at & 4095;
		struct page *p = &pages[(page >> 12) * 0x9e3779b97f4a7c15ull >> 51];
		size_t n = 4096 - off < len - done ? 4096 - off : len - done;

		if (p->va != page) {
			p->there = read_direct(page, p->bytes, 4096) == 4096;
			p->va = page;
		}
		if (!p->there)
			break;
		memcpy((uint8_t *)dst + done, p->bytes + off, n);
		done += n;
	}
	return done;
}

static int file_of(const char *path)
{
	struct file *f;
	struct err e = { 0 };
	struct file_source src;

	for (size_t i = 0; i < nfiles; i++)
		if (!strcmp(file[i].path, path))
			return (int)i;
	if (nfiles == MAX_FILES)
		return -1;
	f = &file[nfiles];
	snprintf(f->path, sizeof(f->path), "%s", path);
	if (!strcmp(path, "[vdso]")) {
		uint8_t *copy = calloc(1, 16384);

		for (size_t i = 0; copy && i < process.n; i++)
			if (process.map[i].file == -2)
				f->bytes = (struct file_bytes){
					copy, read_direct(process.map[i].start, copy,
							  process.map[i].end - process.map[i].start)
				};
	} else if (file_map_open(&f->map,
				 program_tables && !strcmp(path, program_path) ? program_tables
									       : path,
				 2ull << 30, &e) == 0) {
		f->bytes = (struct file_bytes){ f->map.data, f->map.len };
	}
	src = filepiece_source_of_bytes(&f->bytes);
	f->usable = f->bytes.len && userelf_open(&f->elf, f->path, &src, &e) == 0 &&
		    userelf_cfi_open(&f->cfi, &f->elf) == CFI_FOUND;
	return (int)nfiles++;
}

static void read_maps(void)
{
	char path[64], line[1024];
	FILE *f;

	process.n = 0;
	snprintf(path, sizeof(path), "/proc/%d/maps", process.pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && process.n < MAX_MAPS) {
		struct map *m = &process.map[process.n];
		unsigned long start, end, off;
		char perms[5], name[512] = "";

		if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %511[^\n]", &start, &end, perms, &off,
			   name) < 4 ||
		    perms[2] != 'x')
			continue;
		*m = (struct map){ start, end, off, -1 };
		process.n++;
		if (!strcmp(name, "[vdso]")) {
			m->file = -2;
			m->file = file_of(name);
		} else if (name[0] == '/') {
			m->file = file_of(name);
		}
	}
	if (f)
		fclose(f);
}

/* -- what unwind() asks ---------------------------------------------------------- */

static bool find_cfi(void *ctx, uint64_t va, struct unwind_place *out)
{
	size_t lo = 0, hi = process.n;
	const struct map *m;
	struct cfi_slot *s;
	uint64_t off;

	(void)ctx;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (process.map[mid].end <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	m = &process.map[lo];
	if (lo == process.n || va < m->start)
		return false;
	*out = (struct unwind_place){ .row = NULL };
	if (m->file < 0)
		return true;
	off = va - m->start + m->off;
	s = cfi_cache_find(cache, (uint32_t)m->file, off);
	if (!s) {
		struct file *f = &file[m->file];
		enum cfi_found found = CFI_NONE;
		struct cfi_row row;
		uint64_t at;

		if (f->usable && userelf_va_of(&f->elf, off, &at))
			found = userelf_cfi_row(f->cfi, at, &row);
		s = cfi_cache_keep(cache, (uint32_t)m->file, off, found, &row);
		if (!s)
			return false;
	}
	out->row = cfi_cache_row(cache, s);
	out->call = &s->call;
	return true;
}

/* -- truth ----------------------------------------------------------------------- */

struct truth {
	uint64_t ip[MAX_TRUTH];
	unsigned int n;
	bool ended;  /* by a function that has no caller on its stack */
	bool failed; /* ended with an error: it may go on */
};

/*
 * Go's first functions of a stack, and those that go over to another one. What its tables
 * say of their callers is nobody's: libdwfl takes what happens to lie there for addresses.
 */
static bool is_go_end(Dwfl *dwfl, uint64_t pc)
{
	static const char *const ends[] = { "goexit", "mstart",	   "systemstack",
					    "mcall",  "morestack", "asmcgocall" };
	Dwfl_Module *mod = dwfl_addrmodule(dwfl, pc);
	const char *name = mod ? dwfl_module_addrname(mod, pc) : NULL;

	for (size_t i = 0; name && i < sizeof(ends) / sizeof(ends[0]); i++) {
		size_t n = strlen(ends[i]);

		if (!strncmp(name, "runtime.", 8) && !strncmp(name + 8, ends[i], n) &&
		    (name[8 + n] == '\0' || name[8 + n] == '.'))
			return true;
	}
	return false;
}

static int truth_frame(Dwfl_Frame *frame, void *arg)
{
	struct truth *t = arg;
	Dwarf_Addr pc;
	bool activation;

	if (t->n == MAX_TRUTH || !dwfl_frame_pc(frame, &pc, &activation))
		return DWARF_CB_ABORT;
	t->ip[t->n++] = pc;
	t->ended = is_go_end(dwfl_thread_dwfl(dwfl_frame_thread(frame)), pc - !activation);
	return t->ended ? DWARF_CB_ABORT : DWARF_CB_OK;
}

static int no_debuginfo(Dwfl_Module *mod, void **data, const char *name, Dwarf_Addr base,
			const char *path, const char *link, GElf_Word crc, char **out)
{
	(void)mod;
	(void)data;
	(void)name;
	(void)base;
	(void)path;
	(void)link;
	(void)crc;
	(void)out;
	return -1;
}

static Dwfl *truth_begin(void)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = no_debuginfo,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	if (!dwfl || dwfl_linux_proc_report(dwfl, process.pid) ||
	    dwfl_report_end(dwfl, NULL, NULL) ||
	    dwfl_linux_proc_attach(dwfl, process.pid, true) < 0) {
		dwfl_end(dwfl);
		return NULL;
	}
	return dwfl;
}

/* -- one stack ------------------------------------------------------------------- */

static struct sample *take_sample(const struct user_regs_struct *r, unsigned long stack_bytes)
{
	struct sample *s = (struct sample *)sample_bytes;
	const uint64_t gpr[GPR_COUNT] = { r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp,
					  r->rsi, r->rdi, r->r8,  r->r9,  r->r10, r->r11,
					  r->r12, r->r13, r->r14, r->r15 };
	size_t n = 0;

	/* Up to the page that is not there. */
	while (n < stack_bytes) {
		size_t want = 4096 - (r->rsp + n) % 4096, got;

		want = want < stack_bytes - n ? want : stack_bytes - n;
		got = read_direct(r->rsp + n, s->stack + n, want);
		n += got;
		if (got < want)
			break;
	}
	memset(s, 0, sizeof(*s));
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_USER;
	s->regs.cs = USER_CS;
	s->regs.cr3 = SPACE;
	s->regs.rip = r->rip;
	memcpy(s->regs.gpr, gpr, sizeof(gpr));
	s->nslices = 1;
	s->slice[0] = (struct sample_slice){ .va = r->rsp, .len = (uint32_t)n };
	s->stack_len = (uint32_t)n;
	return s;
}

static void show_place(const char *what, uint64_t ip)
{
	for (size_t i = 0; i < process.n; i++) {
		const struct map *m = &process.map[i];

		if (ip >= m->start && ip < m->end) {
			printf("  %s %#llx = %s+%#llx\n", what, (unsigned long long)ip,
			       m->file >= 0 ? file[m->file].path : "(no file)",
			       (unsigned long long)(ip - m->start + m->off));
			return;
		}
	}
	printf("  %s %#llx\n", what, (unsigned long long)ip);
}

static void show(const struct stack *got, const struct truth *t, unsigned int common)
{
	printf("differs: libdwfl has %u%s, found %u (%s)\n", t->n, t->failed ? " and an error" : "",
	       got->n, stack_end_name((enum stack_end)got->end));
	for (unsigned int i = common ? common - 1 : 0; i < common + 2; i++) {
		if (i < t->n)
			show_place("libdwfl", t->ip[i]);
		if (i < got->n)
			show_place("unwind ", got->ip[i]);
	}
}

/*
 * Returns whether libdwfl has a table that says how to go on from here. Our own tables do not answer that: Go's .gopclntab,
 * for example, is not read by libdwfl, which takes rbp for a frame pointer there.
 */
static bool is_told(Dwfl *dwfl, uint64_t va)
{
	Dwfl_Module *mod = dwfl_addrmodule(dwfl, va);
	Dwarf_Addr bias = 0;
	Dwarf_Frame *frame = NULL;
	Dwarf_CFI *cfi;

	if (!mod)
		return false;
	cfi = dwfl_module_eh_cfi(mod, &bias);
	if (!cfi || dwarf_cfi_addrframe(cfi, va - bias, &frame) != 0) {
		cfi = dwfl_module_dwarf_cfi(mod, &bias);
		if (!cfi || dwarf_cfi_addrframe(cfi, va - bias, &frame) != 0)
			return false;
	}
	free(frame);
	return true;
}

static void judge(const struct options *o, Dwfl *dwfl, const struct stack *got,
		  const struct truth *t, struct counts *n)
{
	unsigned int common = 0, again = 0, wrong = 0, told = 0;
	bool is_cut = got->end == STACK_END_CUT;
	/* libdwfl ends a stack whose outermost frame has no caller by the address 0. */
	unsigned int real = t->n && t->ip[t->n - 1] == 0 ? t->n - 1 : t->n;

	while (told < real && is_told(dwfl, t->ip[told] - (told != 0)))
		told++;
	while (common < got->n && common < real && got->ip[common] == t->ip[common])
		common++;
	/* The caller of the last told frame is libdwfl's guess, and so is all behind it. */
	if (common < got->n && (common < real || !t->failed) && (common <= told || told == real))
		wrong = got->n - common;
	/* Where libdwfl has left a caller out, what follows may be the same again. */
	for (unsigned int i = common, k = common; !wrong && common > told && k < got->n; k++)
		if (i < real && got->ip[k] == t->ip[i]) {
			i++;
			again++;
		}
	n->stacks++;
	n->end[got->end]++;
	n->frames += real;
	n->found += common + again;
	n->wrong += wrong;
	n->cut += is_cut && !wrong ? real - common : 0;
	n->untold += is_cut || wrong || common <= told ? 0 : real - common - again;
	n->whole += common + again == real && (t->failed || got->end == STACK_END_ROOT);
	if ((wrong || (common < real && !is_cut)) && n->shown++ < o->show)
		show(got, t, common);
}

static void unwind_timed(const struct unwinder *u, const struct sample *s, struct stack *got,
			 struct counts *n)
{
	uint64_t begin;

	/* Once for what is found, and to have what a second sample of this place finds known. */
	unwind(u, s, got);
	begin = clock_mono_ns();
	unwind(u, s, got);
	n->ns += clock_mono_ns() - begin;
	n->timed++;
}

static void look_at(const struct options *o, Dwfl *dwfl, pid_t tid, struct counts *n)
{
	const struct unwinder u = {
		.read_text = no_text,
		.programs = { read_program, NULL },
		.cfi = { o->no_cfi ? NULL : find_cfi, NULL },
	};
	static struct stack got;
	static struct truth t;
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &r) < 0)
		return;
	t.n = 0;
	t.ended = false;
	t.failed = dwfl_getthread_frames(dwfl, tid, truth_frame, &t) != 0 && !t.ended;
	if (t.n == 0)
		return;
	/* Its first frame is the one that it was asked for. */
	unwind_timed(&u, take_sample(&r, o->stack_bytes), &got, n);
	judge(o, dwfl, &got, &t, n);
}

/* -- running --------------------------------------------------------------------- */

/* Some never stop: the first thread of a process, once it has ended before the others. */
static bool stop_one(pid_t t)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	int status;

	if (ptrace(PTRACE_INTERRUPT, t, NULL, NULL) < 0)
		return false;
	for (unsigned int i = 0; i < 200; i++) {
		pid_t got = waitpid(t, &status, __WALL | WNOHANG);

		if (got != 0)
			return got == t && WIFSTOPPED(status);
		nanosleep(&ms, NULL);
	}
	return false;
}

/* All threads stopped; how many. */
static size_t stop_all(pid_t *tid)
{
	char path[64];
	size_t n = 0;
	struct dirent *d;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", process.pid);
	dir = opendir(path);
	while (dir && (d = readdir(dir)) && n < MAX_THREADS) {
		pid_t t = atoi(d->d_name);

		if (t <= 0 || ptrace(PTRACE_SEIZE, t, NULL, NULL) < 0)
			continue;
		if (!stop_one(t))
			continue;
		tid[n++] = t;
	}
	if (dir)
		closedir(dir);
	return n;
}

static bool look(const struct options *o, struct counts *n)
{
	pid_t tid[MAX_THREADS];
	size_t threads = stop_all(tid);
	Dwfl *dwfl;

	if (!threads)
		return false;
	read_maps();
	for (size_t i = 0; i < PAGES; i++)
		pages[i].va = 1;
	dwfl = truth_begin();
	for (size_t i = 0; dwfl && i < threads; i++)
		look_at(o, dwfl, tid[i], n);
	dwfl_end(dwfl);
	for (size_t i = 0; i < threads; i++)
		ptrace(PTRACE_DETACH, tid[i], NULL, NULL);
	return true;
}

/* The descendant that is to be looked at: what a driver such as gcc has started, if anything. */
static void run_once(const struct options *o, struct counts *n, unsigned int *seed)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		die("fork");
	if (child == 0) {
		execvp(o->argv[0], o->argv);
		_exit(127);
	}
	process.pid = child;
	while (n->stacks < o->stacks) {
		struct timespec t = { .tv_nsec = (long)(rand_r(seed) % (2 * o->every_us)) * 1000 };

		nanosleep(&t, NULL);
		/* -1: what stopped it has seen its end. */
		if (waitpid(child, &status, WNOHANG) != 0 ||
		    (!look(o, n) && waitpid(child, &status, 0) != 0)) {
			child = 0;
			break;
		}
	}
	if (child) {
		kill(child, SIGKILL);
		waitpid(child, &status, 0);
	}
}

static void parse(struct options *o, int argc, char **argv)
{
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--"); i++) {
		unsigned long *to = !strcmp(argv[i], "--stacks")	? &o->stacks
				    : !strcmp(argv[i], "--every-us")	? &o->every_us
				    : !strcmp(argv[i], "--stack-bytes") ? &o->stack_bytes
				    : !strcmp(argv[i], "--show")	? &o->show
									: NULL;

		if (!strcmp(argv[i], "--no-cfi"))
			o->no_cfi = true;
		else if (!strcmp(argv[i], "--figures") && i + 1 < argc)
			o->figures = argv[++i];
		else if (!strcmp(argv[i], "--tables") && i + 1 < argc)
			o->tables = argv[++i];
		else if (to && i + 1 < argc)
			*to = strtoul(argv[++i], NULL, 10);
		else
			break;
	}
	if (i + 1 >= argc || strcmp(argv[i], "--") || o->stack_bytes > STACK_MOST) {
		fprintf(stderr, "usage: bench_user_stacks [OPTION]... -- COMMAND...\n"
				"see the beginning of its source\n");
		exit(2);
	}
	o->argv = argv + i + 1;
}

/* false: the file cannot be written. */
static bool tell(const struct options *o, const struct counts *n)
{
	FILE *f = o->figures ? fopen(o->figures, "we") : stdout;

	if (!f)
		return false;
	fprintf(f,
		"programs=1 stacks=%lu whole=%lu frames=%lu found=%lu wrong=%lu cut=%lu untold=%lu "
		"ns=%lu",
		n->stacks, n->whole, n->frames, n->found, n->wrong, n->cut, n->untold,
		n->timed ? (unsigned long)(n->ns / n->timed) : 0);
	for (unsigned int i = 1; i < STACK_END_COUNT; i++)
		if (n->end[i])
			fprintf(f, " end-%s=%lu", stack_end_name((enum stack_end)i), n->end[i]);
	fprintf(f, "\n");
	return !o->figures || fclose(f) == 0;
}

int main(int argc, char **argv)
{
	struct options o = { .stacks = 200,
			     .every_us = 5000,
			     .stack_bytes = SAMPLE_MAX_USER_SLICE };
	struct counts n = { 0 };
	unsigned int seed = 1;

	/* Run by `make bench`: the script of this name calls it. */
	if (argc == 1) {
		printf("see tests/bench/bench_user_stacks.py\n");
		return 0;
	}
	parse(&o, argc, argv);
	program_path = o.argv[0];
	program_tables = o.tables;
	pages = calloc(PAGES, sizeof(*pages));
	cache = cfi_cache_create();
	if (!pages || !cache)
		die("memory");
	for (unsigned int runs = 0; n.stacks < o.stacks && runs < o.stacks; runs++)
		run_once(&o, &n, &seed);
	return n.stacks == 0 || !tell(&o, &n);
}
