/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Programs for which the assembler wrote .sframe beside .eh_frame. The rows of both come to the
 * same caller at each address. Where .eh_frame was taken away, a running program's stacks are the
 * same at each instruction.
 */
#include "symbolizer/unwind/unwind.h"

#include "base/file.h"
#include "symbolizer/cfi/cfi_cache.h"
#include "symbolizer/cfi/sframe.h"
#include "symbolizer/program/userelf_cfi.h"
#include "tests/unit/skip.h"
#include "no_text.h"

#include <elf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define STACK_BYTES 16384u
#define SPACE 0xc43000u
#define USER_CS 0x33
#define STEPS 6000u

/* Frames of fixed and of variable size, registers that are kept, calls of the C library and back. */
static const char source[] =
	"#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
	"#define SHAPE __attribute__((noinline, noclone))\n"
	"static volatile int sink = 1, table[] = { 5, 3, 9, 1, 7 };\n"
	"SHAPE int leaf(int a) { sink += a; return a * 3 + sink; }\n"
	"SHAPE int kept(int a, int b, int c, int d, int e, int f, int g, int h)\n"
	"{ int s = 0; for (int i = 0; i < 3; i++)\n"
	"  s += leaf(a + i) * leaf(b) ^ leaf(c) * leaf(d) + leaf(e) * leaf(f) - leaf(g + h);\n"
	"  return s + a + b + c + d + e + f + g + h; }\n"
	"SHAPE int large(int n) { volatile char b[3000]; memset((char *)b, n, sizeof(b));\n"
	"  return leaf(b[n & 63]) + b[7]; }\n"
	"SHAPE int varying(int n) { char b[n + 32]; memset(b, n, sizeof(b));\n"
	"  if (n > 40) return b[1]; return leaf(b[n]) + large(b[0]) + b[2]; }\n"
	"SHAPE int early(int n) { if (n < 3) return n; if (n == 7) return kept(n, 1, 2, 3, 4, 5, "
	"6, 7);\n"
	"  switch (n & 7) { case 0: return leaf(n) + 1; case 1: return large(n) + 2;\n"
	"  case 2: return varying(n & 31) + 3; default: return kept(1, 2, n, 3, 4, 5, 6, 7) + n; } "
	"}\n"
	/* The assembler writes .sframe for it since version 3 alone. */
	"static char *volatile escaped;\n"
	"SHAPE int aligned(int n) { char b[128] __attribute__((aligned(64))), c[n];\n"
	"  memset(b, n, sizeof(b)); memset(c, n, sizeof(c)); escaped = c; escaped = b;\n"
	"  return leaf(escaped[n]) + 1; }\n"
	"static int compare(const void *a, const void *b)\n"
	"{ return leaf(*(const int *)a) + early(*(const int *)b) > 40; }\n"
	"SHAPE int outer(int n) { int copy[5]; char text[64];\n"
	"  for (int i = 0; i < 5; i++) copy[i] = table[i] + n;\n"
	"  qsort(copy, 5, sizeof(copy[0]), compare);\n"
	"  snprintf(text, sizeof(text), \"%d %s\", copy[0], \"text\");\n"
	"  return text[0] + varying(n) + early(7) + early(copy[2]); }\n"
	"int main(int argc, char **argv) { sink = outer(argc);\n"
	"  if (argv[0]) __asm__ volatile(\"int3\");\n"
	"  if (sink) sink += atoi(\"7\"); /* not bound yet */\n"
	"  sink += outer(argc + 1); return sink == 12345 ? aligned(argc) : 0; }\n";

static char dir[] = "/tmp/kvmprof-sframe-XXXXXX";
static bool built;

static int run(const char *name, const char *flags)
{
	char cmd[1024];

	snprintf(cmd, sizeof(cmd),
		 "cd %s && gcc -Wa,--gsframe %s -o %s p.c 2>/dev/null && "
		 "objdump -h %s | grep -q ' \\.sframe ' && "
		 "objcopy -R .eh_frame -R .eh_frame_hdr %s %s-bare && "
		 "objcopy -R .sframe %s-bare %s-without",
		 dir, flags, name, name, name, name, name, name);
	return system(cmd);
}

static int setup(void **state)
{
	char path[64];
	FILE *f;

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/p.c", dir);
	f = fopen(path, "we");
	if (!f || fputs(source, f) < 0 || fclose(f))
		return -1;
	built = run("plain", "-O2 -fcf-protection=none -Wl,-z,lazy") == 0 &&
		run("marked", "-O2 -fcf-protection -Wl,-z,ibtplt -Wl,-z,lazy") == 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	file_remove_tree(dir, NULL);
	return 0;
}

struct program {
	char path[256];
	struct file_map map;
	struct file_bytes bytes;
	struct userelf u;
	struct userelf_cfi *cfi;
	enum cfi_found found;
};

static void load(struct program *p, const char *path)
{
	struct file_source src;
	struct err e = { 0 };

	snprintf(p->path, sizeof(p->path), "%s", path);
	if (file_map_open(&p->map, path, 1u << 28, &e) < 0)
		fail_msg("%s", e.text);
	p->bytes = (struct file_bytes){ p->map.data, p->map.len };
	src = filepiece_source_of_bytes(&p->bytes);
	assert_int_equal(userelf_open(&p->u, path, &src, &e), 0);
	p->found = userelf_cfi_open(&p->cfi, &p->u);
}

static void load_built(struct program *p, const char *name, const char *end)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s%s", dir, name, end);
	load(p, path);
}

static void unload(struct program *p)
{
	if (p->found == CFI_FOUND)
		userelf_cfi_destroy(p->cfi);
	file_map_close(&p->map);
}

/* -- rows ------------------------------------------------------------------------------ */

static size_t read_mapped(void *ctx, uint64_t va, void *dst, size_t len)
{
	const struct program *p = ctx;
	uint64_t off;

	if (!userelf_off_of(&p->u, va, &off) || off >= p->bytes.len)
		return 0;
	len = len < p->bytes.len - off ? len : (size_t)(p->bytes.len - off);
	memcpy(dst, p->bytes.data + off, len);
	return len;
}

/* Each word of the stack is another number, and rsp is far from all of them. */
static bool read_stack(void *ctx, uint64_t va, uint64_t *out)
{
	(void)ctx;
	*out = va * 0x9e3779b97f4a7c15u | 1;
	return true;
}

static enum cfi_step step(const struct cfi_row *row, uint64_t rip, struct cfi_regs *out)
{
	struct cfi_stack stack = { .read = read_stack };
	struct cfi_regs g = { .known = 0 };

	for (unsigned int i = 0; i < CFI_REGS; i++)
		cfi_set(&g, i, 0x7ffd00000000u + 0x10000 * i);
	cfi_set(&g, CFI_RSP, 0x7ffc00000000u);
	cfi_set(&g, CFI_RIP, rip);
	return cfi_step(row, &g, &stack, out);
}

struct counts {
	unsigned long bytes, both, frames_only, sframe_only, rbp, plt;
};

/*
 * In an entry of a PLT with endbr64, or of .plt.got: GNU's linkers write the rows of others for the
 * first before binutils 2.44 (its bug 32296), for the second up to 2.47. userelf_cfi knows these.
 */
static bool is_linkers_mistake(const struct program *p, const struct sframe *t, uint64_t va)
{
	static const uint8_t push[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x68 };
	static const uint8_t jump[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25 };
	void *ctx = (void *)(uintptr_t)p;
	uint8_t b[sizeof(jump)];

	if (read_mapped(ctx, va & ~15ull, b, sizeof(b)) == sizeof(b) &&
	    (!memcmp(b, push, sizeof(push)) || !memcmp(b, jump, sizeof(jump))))
		return true;
	return sframe_is_repeated(t, va) && read_mapped(ctx, va & ~7ull, b, 2) == 2 &&
	       !memcmp(b, jump + 4, 2);
}

static void compare_at(const struct program *p, const struct sframe *t, uint64_t va,
		       struct counts *n)
{
	static const uint8_t regs[] = { CFI_RSP, CFI_RIP, CFI_RBP };
	struct cfi_row frame, row;
	struct cfi_regs a, b;
	bool has = userelf_cfi_row(p->cfi, va, &frame) == CFI_FOUND;
	enum cfi_found found = sframe_row(t, va, &row);

	assert_true(found == CFI_FOUND || found == CFI_NONE);
	n->bytes++;
	n->both += has && found == CFI_FOUND;
	n->frames_only += has && found != CFI_FOUND;
	n->sframe_only += !has && found == CFI_FOUND;
	if (!has || found != CFI_FOUND)
		return;
	assert_int_equal(step(&frame, va, &a), step(&row, va, &b));
	for (unsigned int i = 0; i < sizeof(regs); i++) {
		unsigned int reg = regs[i];

		if (cfi_knows(&a, reg) && cfi_knows(&b, reg) && a.r[reg] == b.r[reg])
			continue;
		if (!is_linkers_mistake(p, t, va))
			fail_msg("%s: at %#llx register %u is %#llx, by .eh_frame %#llx", p->path,
				 (unsigned long long)va, reg, (unsigned long long)b.r[reg],
				 (unsigned long long)a.r[reg]);
		n->plt++;
		return;
	}
	n->rbp += b.r[CFI_RBP] != 0x7ffd00000000u + 0x10000 * CFI_RBP;
	/* SFrame never knows more than .eh_frame. */
	assert_int_equal(b.known & ~a.known, 0);
	assert_false(cfi_knows(&b, CFI_RBX));
}

static void compare_rows(const char *name)
{
	struct program p = { .found = CFI_NONE };
	struct counts n = { 0 };
	struct sframe t;

	load_built(&p, name, "");
	assert_int_equal(p.found, CFI_FOUND);
	assert_true(p.u.frames_len && p.u.sframe_len);
	assert_int_equal(sframe_open(&t, &(struct cfi_source){ read_mapped, &p }, p.u.sframe_va,
				     p.u.sframe_len),
			 CFI_FOUND);
	for (unsigned int i = 0; i < p.u.nseg; i++)
		for (uint64_t k = 0; p.u.seg[i].flags & PF_X && k < p.u.seg[i].file_len; k++)
			compare_at(&p, &t, p.u.seg[i].va + k, &n);
	print_message(
		"%s: version %u, %u functions: %lu bytes, both tell of %lu, .eh_frame alone of "
		"%lu, .sframe alone of %lu; rbp was saved at %lu; %lu differ by the linker's "
		"mistake\n",
		name, t.version, t.nfuncs, n.bytes, n.both, n.frames_only, n.sframe_only, n.rbp,
		n.plt);
	/*
	 * SFrame has nothing for functions that realign their stack, and for those of the C
	 * library.
	 */
	assert_true(n.both > 700 && n.frames_only < n.both / 3);
	assert_true(n.rbp > 20);
	sframe_deinit(&t);
	unload(&p);
}

static void rows_as_eh_frame(void **state)
{
	static const char *const flags[][2] = {
		{ "slow", "-O0 -no-pie" },
		{ "small", "-Os -fPIC -Wl,-z,lazy" },
		{ "framed", "-O2 -fno-omit-frame-pointer" },
	};

	(void)state;
	if (!built)
		SKIP("the assembler here writes no .sframe");
	compare_rows("plain");
	compare_rows("marked");
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		assert_int_equal(run(flags[i][0], flags[i][1]), 0);
		compare_rows(flags[i][0]);
	}
}

/* At instructions; the rest of an entry of .plt.got is nobody's. */
static void same_caller(uint64_t va, const struct cfi_row *frame, const struct cfi_row *row)
{
	struct cfi_regs a, b;

	assert_int_equal(step(frame, va, &a), step(row, va, &b));
	if (va % 8 >= 6 && a.r[CFI_RSP] != b.r[CFI_RSP])
		return;
	assert_int_equal(a.r[CFI_RSP], b.r[CFI_RSP]);
	assert_int_equal(a.r[CFI_RIP], b.r[CFI_RIP]);
	assert_int_equal(a.r[CFI_RBP], b.r[CFI_RBP]);
}

/* By the file as a guest's: with both tables .eh_frame's is asked, else .sframe's. */
static void compare_files(const char *name)
{
	struct program whole = { .found = CFI_NONE }, bare = whole, without = whole;
	unsigned long first = 0, second = 0;
	struct cfi_row a, b;

	load_built(&whole, name, "");
	load_built(&bare, name, "-bare");
	load_built(&without, name, "-without");
	assert_int_equal(whole.found, CFI_FOUND);
	assert_int_equal(bare.found, CFI_FOUND);
	assert_int_equal(without.found, CFI_NONE);
	for (unsigned int i = 0; i < whole.u.nseg; i++)
		for (uint64_t k = 0; whole.u.seg[i].flags & PF_X && k < whole.u.seg[i].file_len;
		     k++) {
			uint64_t va = whole.u.seg[i].va + k;
			bool one = userelf_cfi_row(whole.cfi, va, &a) == CFI_FOUND;
			bool two = userelf_cfi_row(bare.cfi, va, &b) == CFI_FOUND;

			first += one && a.rule[CFI_R15].how != CFI_UNDEFINED;
			second += two;
			assert_true(!two || b.rule[CFI_R15].how == CFI_UNDEFINED);
			if (one && two)
				same_caller(va, &a, &b);
		}
	print_message("%s: .eh_frame tells of %lu bytes, .sframe alone of %lu\n", name, first,
		      second);
	assert_true(second > 700 && first > second);
	/* By its section, where the program header is another one. */
	bare.u.sframe_len = 0;
	userelf_cfi_destroy(bare.cfi);
	assert_int_equal(userelf_cfi_open(&bare.cfi, &bare.u), CFI_FOUND);
	assert_int_equal(userelf_cfi_row(bare.cfi, whole.u.entry, &a), CFI_NONE);
	bare.u.shoff = 0;
	userelf_cfi_destroy(bare.cfi);
	bare.found = userelf_cfi_open(&bare.cfi, &bare.u);
	assert_int_equal(bare.found, CFI_NONE);
	unload(&whole);
	unload(&bare);
	unload(&without);
}

static void by_file(void **state)
{
	(void)state;
	if (!built)
		SKIP("the assembler here writes no .sframe");
	compare_files("plain");
	compare_files("marked");
}

/* -- a running program ------------------------------------------------------------------- */

#define MAX_MAPS 16u
#define MAX_FILES 8u
#define TABLES 3u

static struct {
	pid_t pid;
	struct mapped {
		uint64_t start, end, off;
		unsigned int file;
	} map[MAX_MAPS];
	unsigned int n, nfiles;
	struct program file[MAX_FILES]; /* 0 to 2: the program with different tables */
	unsigned int tables;		/* which of them are asked */
	struct cfi_cache *cache;
} process;

static unsigned int file_of(const char *path)
{
	struct program *p;

	for (unsigned int i = TABLES; i < process.nfiles; i++)
		if (!strcmp(process.file[i].path, path))
			return i;
	assert_true(process.nfiles < MAX_FILES);
	p = &process.file[process.nfiles];
	memset(p, 0, sizeof(*p));
	load(p, path);
	return process.nfiles++;
}

static void read_maps(const char *name)
{
	static const char *const suffix[TABLES] = { "", "-bare", "-without" };
	char line[512], path[256], self[128];
	FILE *f;

	snprintf(self, sizeof(self), "%s/%s", dir, name);
	process.n = 0;
	for (process.nfiles = 0; process.nfiles < TABLES; process.nfiles++) {
		memset(&process.file[process.nfiles], 0, sizeof(process.file[0]));
		load_built(&process.file[process.nfiles], name, suffix[process.nfiles]);
	}
	snprintf(path, sizeof(path), "/proc/%d/maps", process.pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (process.n < MAX_MAPS && fgets(line, sizeof(line), f)) {
		struct mapped *m = &process.map[process.n];
		unsigned long start, end, off;

		if (sscanf(line, "%lx-%lx r-xp %lx %*s %*s %255s", &start, &end, &off, path) != 4 ||
		    path[0] != '/')
			continue;
		*m = (struct mapped){ start, end, off, strcmp(path, self) ? file_of(path) : 0 };
		process.n++;
	}
	fclose(f);
	process.cache = cfi_cache_create();
	assert_non_null(process.cache);
}

static void forget_maps(void)
{
	for (unsigned int i = 0; i < process.nfiles; i++)
		unload(&process.file[i]);
	cfi_cache_destroy(process.cache);
}

static bool find_row(void *ctx, uint64_t va, struct unwind_place *out)
{
	(void)ctx;
	for (unsigned int i = 0; i < process.n; i++) {
		const struct mapped *m = &process.map[i];
		unsigned int number = m->file ? m->file : process.tables;
		struct program *p = &process.file[number];
		enum cfi_found found = CFI_NONE;
		struct cfi_slot *slot;
		struct cfi_row row;
		uint64_t at;

		if (va < m->start || va >= m->end)
			continue;
		slot = cfi_cache_find(process.cache, number, va);
		if (!slot) {
			if (p->found == CFI_FOUND &&
			    userelf_va_of(&p->u, va - m->start + m->off, &at))
				found = userelf_cfi_row(p->cfi, at, &row);
			slot = cfi_cache_keep(process.cache, number, va, found, &row);
			assert_non_null(slot);
		}
		out->row = cfi_cache_row(process.cache, slot);
		out->call = &slot->call;
		return true;
	}
	return false;
}

static size_t read_process(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	struct iovec to = { dst, len }, from = { (void *)(uintptr_t)va, len };
	ssize_t n = process_vm_readv(process.pid, &to, 1, &from, 1, 0);

	(void)ctx;
	assert_int_equal(space, SPACE);
	return n < 0 ? 0 : (size_t)n;
}

static void take_sample(struct sample *s)
{
	struct user_regs_struct r;
	size_t n = 0, got;

	assert_int_equal(ptrace(PTRACE_GETREGS, process.pid, NULL, &r), 0);
	do {
		size_t want = 4096 - (r.rsp + n) % 4096;

		want = want < STACK_BYTES - n ? want : STACK_BYTES - n;
		got = read_process(NULL, SPACE, r.rsp + n, s->stack + n, want);
		n += got;
	} while (got && n < STACK_BYTES);
	memset(s, 0, sizeof(*s));
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_USER;
	s->regs.cs = USER_CS;
	s->regs.cr3 = SPACE;
	s->regs.rip = r.rip;
	memcpy(s->regs.gpr,
	       (const uint64_t[GPR_COUNT]){ r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi,
					    r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15 },
	       sizeof(s->regs.gpr));
	s->nslices = 1;
	s->slice[0] = (struct sample_slice){ .va = r.rsp, .len = (uint32_t)n };
	s->stack_len = (uint32_t)n;
}

static bool is_of_program(uint64_t va)
{
	for (unsigned int i = 0; i < process.n; i++)
		if (va >= process.map[i].start && va < process.map[i].end)
			return process.map[i].file == 0;
	return false;
}

struct walked {
	unsigned long whole, same, frames,
		by_tables; /* frames: callers of the program's functions */
};

static void count(const struct stack *got, const struct stack *truth, struct walked *n)
{
	n->whole += got->end == STACK_END_ROOT;
	n->same += got->n == truth->n && !memcmp(got->ip, truth->ip, got->n * sizeof(got->ip[0]));
	for (unsigned int i = 1; i < got->n; i++)
		if (is_of_program(got->ip[i - 1])) {
			n->frames++;
			n->by_tables += got->quality[i] == FRAME_CFI;
		}
}

/* To the int3 of its main(). */
static void start(const char *name)
{
	char path[128];
	int status;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	process.pid = fork();
	if (process.pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execle(path, path, (char *)NULL, (char *[]){ NULL });
		_exit(127);
	}
	/* After execve(), too. */
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
		assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
		if (i == 0)
			assert_int_equal(ptrace(PTRACE_CONT, process.pid, NULL, NULL), 0);
	}
}

/* One instruction after another, each stack by each of the tables. */
static unsigned long walk(const char *name, struct walked *n)
{
	static uint8_t mem[sizeof(struct sample) + STACK_BYTES] __attribute__((aligned(16)));
	struct sample *s = (struct sample *)mem;
	const struct unwinder u = {
		.read_text = no_text,
		.programs = { read_process, NULL },
		.cfi = { .find = find_row },
	};
	static struct stack got[TABLES];
	unsigned long steps = 0;
	int status;

	start(name);
	read_maps(name);
	do {
		take_sample(s);
		for (process.tables = 0; process.tables < TABLES; process.tables++) {
			unwind(&u, s, &got[process.tables]);
			count(&got[process.tables], &got[0], &n[process.tables]);
		}
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, process.pid, NULL, NULL), 0);
		assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
	} while (++steps < STEPS && WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	forget_maps();
	kill(process.pid, SIGKILL);
	waitpid(process.pid, &status, 0);
	return steps;
}

static void running(const char *name)
{
	struct walked n[TABLES] = { { .whole = 0 } };
	unsigned long steps = walk(name, n);

	print_message(
		"%s: %lu stacks: by .eh_frame %lu whole; by .sframe %lu whole, %lu the same, %lu "
		"of %lu callers by tables; by neither %lu whole, %lu the same, %lu of %lu\n",
		name, steps, n[0].whole, n[1].whole, n[1].same, n[1].by_tables, n[1].frames,
		n[2].whole, n[2].same, n[2].by_tables, n[2].frames);
	assert_true(steps > 2000);
	assert_int_equal(n[0].whole, steps);
	assert_int_equal(n[1].whole, steps);
	assert_int_equal(n[1].same, steps);
	assert_true(n[1].by_tables >= n[1].frames - n[1].frames / 100);
	assert_int_equal(n[2].by_tables, 0);
}

static void stacks(void **state)
{
	(void)state;
	if (!built)
		SKIP("the assembler here writes no .sframe");
	running("plain");
	running("marked");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_as_eh_frame),
		cmocka_unit_test(by_file),
		cmocka_unit_test(stacks),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
