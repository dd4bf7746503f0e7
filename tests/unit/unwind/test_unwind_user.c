/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * User frames against the truth: a child runs code with and without frame pointers,
 * its own and the C library's, one instruction at a time. Calls and returns are
 * watched from outside; the frames found at each instruction must be those, from
 * the innermost on, as far as they go.
 */
#include "symbolizer/unwind/unwind.h"

#include "symbolizer/core/insn.h"

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

static size_t no_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	(void)va;
	(void)dst;
	(void)len;
	return 0;
}

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
	s->regs.gpr[GPR_RSP] = r->rsp;
	s->regs.gpr[GPR_RBP] = r->rbp;
	s->regs.gpr[GPR_R10] = r->r10;
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
		/* What capstone does not know is new, and neither a call nor a return. */
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

static void every_instruction(void **state)
{
	struct counts n = { 0 };
	pid_t pid = fork();
	struct unwinder u = { .read_text = no_text, .programs = { read_child, &pid } };
	int status;

	(void)state;
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
	assert_true(n.whole * 100 >= n.steps * 85);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
