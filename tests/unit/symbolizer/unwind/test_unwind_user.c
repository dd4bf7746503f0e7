/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * User frames against the truth: a child runs code with and without frame pointers,
 * its own and the C library's, one instruction at a time. Calls and returns are
 * watched from outside; the frames found at each instruction must be those, from
 * the innermost on, as far as they go. Once by the code alone, once by the call frame
 * information of the files that the child has mapped, as this process has.
 */
#include "symbolizer/unwind/unwind.h"

#include "base/file.h"
#include "symbolizer/core/insn.h"
#include "symbolizer/program/userelf_cfi.h"
#include "no_text.h"

#include <capstone/capstone.h>
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

#define STACK_BYTES 8192u
#define MAX_DEPTH 64u
#define USER_CS 0x33

#define SHAPE __attribute__((noinline, noclone, no_sanitize("address", "undefined")))
/* As distributions compile it. */
#define BARE SHAPE __attribute__((optimize("omit-frame-pointer")))

static volatile int sink;
static volatile int table[] = { 5, 3, 9, 1, 7 };

BARE static int bare_leaf(int a)
{
	return a * 3 + sink;
}

SHAPE static int framed_leaf(int a)
{
	sink += bare_leaf(a);
	return sink;
}

BARE static int bare_middle(int a)
{
	int keep[6];

	for (int i = 0; i < 6; i++)
		keep[i] = framed_leaf(a + i);
	return keep[a % 6] + bare_leaf(keep[1]);
}

SHAPE static int framed_outer(int a)
{
	return bare_middle(a) + framed_leaf(a);
}

static int compare(const void *a, const void *b)
{
	return framed_leaf(*(const int *)a) > *(const int *)b;
}

SHAPE static void tree(void)
{
	char text[64];
	int copy[5];

	sink = framed_outer(2);
	for (int i = 0; i < 5; i++)
		copy[i] = table[i];
	qsort(copy, 5, sizeof(copy[0]), compare);
	snprintf(text, sizeof(text), "%d %s", copy[0], "text");
	sink += text[0];
}

static size_t read_child(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	struct iovec to = { dst, len }, from = { (void *)(uintptr_t)va, len };
	ssize_t n;

	assert_int_equal(space, 0xc43000);
	n = process_vm_readv(*(pid_t *)ctx, &to, 1, &from, 1, 0);
	return n < 0 ? 0 : (size_t)n;
}

typedef size_t (*read_program)(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len);

/* A part of the child's text is missing now and then; the stack is in the sample. */
static unsigned int reads;

static size_t read_sometimes(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	return reads++ % 4 ? read_child(ctx, space, va, dst, len) : 0;
}

static size_t read_never(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	(void)space;
	(void)va;
	(void)dst;
	(void)len;
	return 0;
}

/* -- call frame information ---------------------------------------------------------- */

#define MAX_MAPS 64u

static struct mapped {
	uint64_t start, end, off;
	struct file_map map;
	struct file_bytes bytes;
	struct userelf elf;
	struct userelf_cfi *cfi;
} mapped[MAX_MAPS];
static unsigned int nmapped;

static void read_maps(void)
{
	char line[512], path[256];
	FILE *f = fopen("/proc/self/maps", "re");
	struct file_source src;
	struct err e = { 0 };

	assert_non_null(f);
	while (nmapped < MAX_MAPS && fgets(line, sizeof(line), f)) {
		struct mapped *m = &mapped[nmapped];
		unsigned long start, end, off;

		if (sscanf(line, "%lx-%lx r-xp %lx %*s %*s %255s", &start, &end, &off, path) != 4 ||
		    path[0] != '/' || file_map_open(&m->map, path, 1u << 30, &e) < 0)
			continue;
		m->start = start;
		m->end = end;
		m->off = off;
		m->bytes = (struct file_bytes){ m->map.data, m->map.len };
		src = filepiece_source_of_bytes(&m->bytes);
		assert_int_equal(userelf_open(&m->elf, "", &src, &e), 0);
		assert_int_equal(userelf_cfi_open(&m->cfi, &m->elf), CFI_FOUND);
		nmapped++;
	}
	fclose(f);
}

static void forget_maps(void)
{
	while (nmapped) {
		userelf_cfi_destroy(mapped[--nmapped].cfi);
		file_map_close(&mapped[nmapped].map);
	}
}

/* The facts about addresses that the unwinder has cached. */
static struct {
	uint64_t va;
	uint8_t call;
} noted[4096];

static uint8_t *note_of(uint64_t va)
{
	unsigned int i = 0;

	while (noted[i].va && noted[i].va != va)
		assert_true(++i < 4096);
	noted[i].va = va;
	return &noted[i].call;
}

static bool find_row(void *ctx, uint64_t va, struct unwind_place *out)
{
	static struct cfi_row row;
	uint64_t at;

	(void)ctx;
	for (unsigned int i = 0; i < nmapped; i++) {
		struct mapped *m = &mapped[i];

		if (va < m->start || va >= m->end)
			continue;
		*out = (struct unwind_place){ .call = note_of(va) };
		if (userelf_va_of(&m->elf, va - m->start + m->off, &at) &&
		    userelf_cfi_row(m->cfi, at, &row) == CFI_FOUND)
			out->row = &row;
		return true;
	}
	return false;
}

/* The child is a fork of this process. */
static size_t file_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	for (unsigned int i = 0; i < nmapped; i++)
		if (va >= mapped[i].start && va < mapped[i].end && len <= mapped[i].end - va) {
			memcpy(dst, (const void *)(uintptr_t)va, len);
			return len;
		}
	return 0;
}

/* -- the child ------------------------------------------------------------------------- */

static void take_sample(pid_t pid, const struct user_regs_struct *r, struct sample *s)
{
	struct iovec to = { s->stack, STACK_BYTES },
		     from = { (void *)(uintptr_t)r->rsp, STACK_BYTES };
	ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);

	assert_true(n > 0);
	memset(s, 0, sizeof(*s));
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_USER;
	s->regs.cs = USER_CS;
	s->regs.cr3 = 0xc43000;
	s->regs.rip = r->rip;
	s->regs.gpr[GPR_RAX] = r->rax;
	s->regs.gpr[GPR_RCX] = r->rcx;
	s->regs.gpr[GPR_RDX] = r->rdx;
	s->regs.gpr[GPR_RBX] = r->rbx;
	s->regs.gpr[GPR_RSP] = r->rsp;
	s->regs.gpr[GPR_RBP] = r->rbp;
	s->regs.gpr[GPR_R10] = r->r10;
	s->regs.gpr[GPR_R12] = r->r12;
	s->regs.gpr[GPR_R13] = r->r13;
	s->regs.gpr[GPR_R14] = r->r14;
	s->regs.gpr[GPR_R15] = r->r15;
	s->nslices = 1;
	s->slice[0] = (struct sample_slice){ .va = r->rsp, .len = (uint32_t)n };
	s->stack_len = (uint32_t)n;
}

struct counts {
	unsigned long steps, whole, shorter, wrong, frames, true_frames;
};

static void compare_stack(const struct stack *got, const uint64_t *chain, unsigned int depth,
			  struct counts *n)
{
	unsigned int common = 0;

	/* Above tree() is the test's own frame, which nobody checks. */
	while (common < got->n && common <= depth && got->ip[common] == chain[common])
		common++;
	n->steps++;
	n->frames += common;
	n->true_frames += depth + 1;
	if (common > depth) {
		n->whole++;
	} else if (common == got->n) {
		n->shorter++;
	} else if (n->wrong++ < 5) {
		print_error("wrong at %#llx: frame %u is %#llx, not %#llx\n",
			    (unsigned long long)chain[0], common,
			    (unsigned long long)got->ip[common], (unsigned long long)chain[common]);
	}
}

static void step_through(pid_t pid, const struct unwinder *u, struct counts *n)
{
	static uint8_t mem[sizeof(struct sample) + STACK_BYTES] __attribute__((aligned(16)));
	struct sample *s = (struct sample *)mem;
	uint64_t truth[MAX_DEPTH];
	static struct stack got;
	unsigned int depth = 0;
	bool inside = false;
	cs_insn *insn;
	int status;
	csh cs;

	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &cs), CS_ERR_OK);
	cs_option(cs, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(cs);
	for (;;) {
		struct user_regs_struct r;
		uint64_t chain[MAX_DEPTH + 1], addr;
		uint8_t bytes[16];
		const uint8_t *code = bytes;
		size_t left;
		bool known, call, ret;

		assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &r), 0);
		if (!inside && r.rip == (uint64_t)(uintptr_t)tree) {
			truth[depth++] = (uint64_t)ptrace(PTRACE_PEEKDATA, pid, r.rsp, NULL);
			inside = true;
		}
		if (inside && depth == 0)
			break;
		if (inside) {
			chain[0] = r.rip;
			for (unsigned int i = 0; i < depth; i++)
				chain[i + 1] = truth[depth - 1 - i];
			take_sample(pid, &r, s);
			unwind(u, s, &got);
			compare_stack(&got, chain, depth, n);
		}
		left = read_child(&pid, 0xc43000, r.rip, bytes, sizeof(bytes));
		addr = r.rip;
		/*
		 * An instruction that capstone does not know is new, and neither a call nor a
		 * return.
		 */
		known = cs_disasm_iter(cs, &code, &left, &addr, insn);
		call = known && cs_insn_group(cs, insn, CS_GRP_CALL);
		ret = known && cs_insn_group(cs, insn, CS_GRP_RET);
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
		if (inside && call) {
			assert_true(depth < MAX_DEPTH);
			truth[depth++] = r.rip + insn->size;
		}
		if (inside && ret)
			depth--;
	}
	cs_free(insn, 1);
	cs_close(&cs);
}

static struct counts step_child_by(struct unwind_cfi cfi, read_program read)
{
	struct counts n = { 0 };
	pid_t pid = fork();
	struct unwinder u = { .read_text = no_text, .programs = { read, &pid }, .cfi = cfi };
	int status;

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		tree(); /* binds its calls: the linker is not what is looked at */
		raise(SIGSTOP);
		tree();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	step_through(pid, &u, &n);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	print_message("%lu steps: %lu whole, %lu shorter, %lu wrong; %.1f %% of the frames\n",
		      n.steps, n.whole, n.shorter, n.wrong,
		      100.0 * (double)n.frames / (double)n.true_frames);
	assert_true(n.steps > 1500);
	assert_int_equal(n.wrong, 0);
	return n;
}

static struct counts step_child(struct unwind_cfi cfi)
{
	memset(noted, 0, sizeof(noted));
	return step_child_by(cfi, read_child);
}

static void by_code(void **state)
{
	struct counts n = step_child((struct unwind_cfi){ 0 });

	(void)state;
	assert_true(n.whole * 100 >= n.steps * 85);
}

static void by_tables(void **state)
{
	struct counts n;

	(void)state;
	read_maps();
	n = step_child((struct unwind_cfi){ .find = find_row });
	forget_maps();
	assert_int_equal(n.whole, n.steps);
}

/* That text could not be read says nothing of it, nor of the next stack. */
static void text_comes_later(void **state)
{
	struct counts n;

	(void)state;
	read_maps();
	memset(noted, 0, sizeof(noted));
	n = step_child_by((struct unwind_cfi){ .find = find_row }, read_sometimes);
	assert_in_range(n.whole, n.steps - n.steps / 20, n.steps - 1);
	/* The file has it. */
	memset(noted, 0, sizeof(noted));
	n = step_child_by((struct unwind_cfi){ .find = find_row, .text = file_text }, read_never);
	forget_maps();
	assert_int_equal(n.whole, n.steps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_code),
		cmocka_unit_test(by_tables),
		cmocka_unit_test(text_comes_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
