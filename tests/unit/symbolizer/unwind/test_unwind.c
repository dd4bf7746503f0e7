/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The unwinder against the truth, at every instruction.
 *
 * A child process runs the call tree below one instruction at a time. Calls and
 * returns are watched from outside, which gives the true call chain before each
 * instruction; a sample is made of the child's registers and stack at the same
 * moment, and both chains must be equal.
 */
#include "symbolizer/unwind/unwind.h"

#include "base/file.h"
#include "symbolizer/core/insn.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the call tree: shapes that a compiler gives to code with frame pointers ---- */

#define SHAPE __attribute__((noinline, noclone, no_sanitize("address", "undefined")))

static volatile int sink, zero;
static volatile long input = 5;

SHAPE static int leaf(int a)
{
	return a * 3 + 1;
}

/* The compiler may set up the frame only on the slow way. */
SHAPE static int early_out(const int *p, int n)
{
	if (!p || n <= 0)
		return -1;
	for (int i = 0; i < n; i++)
		sink += leaf(p[i]);
	return sink;
}

SHAPE static int tail_target(int a)
{
	return leaf(a) + sink;
}

SHAPE static int tail_caller(int a)
{
	sink = leaf(a);
	return tail_target(a + 1);
}

typedef int (*op_fn)(int);
static op_fn volatile op = leaf;

SHAPE static int indirect_tail(int a)
{
	sink += leaf(a);
	return op(a);
}

SHAPE static int jump_table(int a)
{
	switch (a) {
	case 0:
		return leaf(1) + 2;
	case 1:
		sink = 3;
		return 7;
	case 2:
		return leaf(5) * 2;
	case 3:
		sink += leaf(2);
		break;
	case 4:
		return early_out(NULL, 0);
	case 5:
		sink ^= 9;
		break;
	case 6:
		return tail_target(a);
	case 7:
		return sink - 4;
	default:
		return -1;
	}
	return leaf(sink);
}

SHAPE static int leaf_table(int a)
{
	switch (a) {
	case 0:
		sink = 4;
		return 11;
	case 1:
		sink += 3;
		return 7;
	case 2:
		sink -= 8;
		return 29;
	case 3:
		sink *= 5;
		return 13;
	case 4:
		sink ^= 2;
		return 17;
	case 5:
		sink |= 1;
		return 19;
	default:
		return 0;
	}
}

SHAPE static int on_stack(int n)
{
	volatile char *p = __builtin_alloca((size_t)(n & 63) + 16);

	p[leaf(0)] = (char)n;
	return p[leaf(0)] + leaf(n);
}

SHAPE static int realigned(int n)
{
	_Alignas(64) volatile char line[128];

	line[0] = (char)n;
	line[64] = (char)leaf(n);
	return line[0] + line[64];
}

SHAPE static int many_args(int a, int b, int c, int d, int e, int f, int g, int h, int i)
{
	return a + b * c - d + e * f + leaf(g) * h + i;
}

struct big {
	long v[12];
};

SHAPE static struct big by_value(struct big b)
{
	b.v[3] += leaf((int)b.v[2]);
	return b;
}

SHAPE static long variadic(int n, ...)
{
	va_list ap;
	long sum = 0;

	va_start(ap, n);
	for (int i = 0; i < n; i++)
		sum += va_arg(ap, int);
	va_end(ap);
	return sum + leaf(n);
}

SHAPE static int fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

__attribute__((cold)) SHAPE static int rare(int a)
{
	sink ^= a;
	return leaf(a);
}

SHAPE static int with_cold(int a)
{
	int r = leaf(a);

	if (__builtin_expect(a > 3, 0)) {
		r += rare(a);
		r *= rare(r);
	}
	return r + leaf(r);
}

SHAPE static long long_leaf(long a, long b)
{
	long c = a ^ b, d = a + b;

	for (int i = 0; i < 3; i++) {
		a = a * 31 + b;
		b = b * 17 + c;
		c = (c << 3) ^ d;
		d = d - a * c + (d >> 2);
		if (d & 1)
			a ^= 77;
	}
	return a + b + c + d;
}

SHAPE static double floating(double a)
{
	double b = a * 1.5;

	return b / (double)leaf((int)a) + b;
}

/* Assembly: no frame; rbp as an ordinary register; frameless with a call. */
int asm_leaf(int a);
int asm_uses_rbp(int a);
int asm_calls(int a);
int asm_call_back(int a);
void asm_root(void);
int tree(void);

SHAPE int asm_call_back(int a)
{
	return leaf(a) - 1;
}

SHAPE int tree(void)
{
	static const int data[3] = { 1, 2, 3 };
	struct big b = { { 1, 2, 3 } };
	long n = input;

	sink = 0;
	sink += early_out(NULL, 3);
	sink += early_out(data, 3);
	sink += tail_caller(3);
	sink += indirect_tail(4);
	for (int i = -1; i < 10; i++) {
		sink += jump_table(i);
		sink += leaf_table(i);
		sink += on_stack(i);
	}
	sink += realigned((int)n);
	sink += many_args(1, 2, 3, 4, 5, 6, 7, 8, 9);
	b = by_value(b);
	sink += (int)b.v[3];
	sink += (int)variadic(5, 1, 2, 3, 4, 5);
	sink += fib(7);
	sink += with_cold(2) + with_cold(9);
	sink += (int)long_leaf(n, 12);
	sink += (int)floating((double)n);
	sink += asm_leaf(3);
	sink += asm_uses_rbp(4);
	sink += asm_calls(5);
	return sink;
}

__asm__(".pushsection .text\n"
	".macro FUNC name\n.globl \\name\n.type \\name,@function\n.balign 16\n\\name:\n.endm\n"
	".macro END name\n.size \\name,.-\\name\n.endm\n"
	"FUNC asm_leaf\n"
	"	mov %edi,%eax\n	push %rbx\n	mov $3,%ebx\n"
	"1:	add %ebx,%eax\n	dec %ebx\n	jnz 1b\n	pop %rbx\n	ret\n"
	"END asm_leaf\n"
	"FUNC asm_uses_rbp\n"
	"	push %rbp\n	push %r12\n	mov %rdi,%rbp\n	lea 3(%rbp),%r12\n	mov "
	"%r12d,%eax\n"
	"	pop %r12\n	pop %rbp\n	ret\n"
	"END asm_uses_rbp\n"
	"FUNC asm_calls\n"
	"	sub $8,%rsp\n	inc %edi\n	call asm_call_back\n	add $1,%eax\n	add "
	"$8,%rsp\n	ret\n"
	"END asm_calls\n"
	"FUNC asm_root\n"
	"	push %rbp\n	xor %ebp,%ebp\n	call tree\n	pop %rbp\n	ret\n"
	"END asm_root\n"
	".popsection\n");

/* ---- watching it ---- */

#define STACK_BYTES 4096u

struct tracee {
	pid_t pid;
	uint64_t text, end; /* run-time addresses: parent and child share the layout */
};

static size_t read_own_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	const struct tracee *t = ctx;

	if (va < t->text || va >= t->end)
		return 0;
	if (len > t->end - va)
		len = (size_t)(t->end - va);
	memcpy(dst, (const void *)(uintptr_t)va, len);
	return len;
}

static struct symtab *slid_symbols(struct tracee *t, struct symtab **linked)
{
	struct symtab *slid = symtab_create();
	struct file_map m;
	struct kimage k;
	uint64_t slide;
	struct err e = { 0 };

	assert_int_equal(file_map_open(&m, "/proc/self/exe", 1u << 30, &e), 0);
	assert_int_equal(kimage_parse(&k, "self", m.data, m.len, &e), 0);
	assert_int_equal(kimage_symbols(&k, linked, &e), 0);
	slide = (uint64_t)(uintptr_t)tree - symtab_find(*linked, "tree")->addr;
	t->text = k.text + slide;
	t->end = k.etext + slide;
	for (size_t i = 0; i < symtab_count(*linked); i++) {
		const struct symbol *s = symtab_at(*linked, i);

		assert_int_equal(symtab_add(slid, s->addr + slide, s->size, s->type, s->name), 0);
	}
	assert_int_equal(symtab_freeze(slid, &e), 0);
	file_map_close(&m);
	return slid;
}

static void start_child(struct tracee *t)
{
	int status;

	t->pid = fork();
	assert_true(t->pid >= 0);
	if (t->pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		asm_root();
		_exit(0);
	}
	assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
	assert_true(WIFSTOPPED(status));
}

static struct sample *take_sample(const struct tracee *t, const struct user_regs_struct *r,
				  struct sample *s)
{
	struct iovec to = { s->stack, STACK_BYTES },
		     from = { (void *)(uintptr_t)r->rsp, STACK_BYTES };

	memset(s, 0, sizeof(*s));
	s->version = SAMPLE_VERSION;
	s->mode = SAMPLE_KERNEL;
	s->regs.rip = r->rip;
	s->regs.gpr[GPR_RSP] = r->rsp;
	s->regs.gpr[GPR_RBP] = r->rbp;
	s->regs.gpr[GPR_R10] = r->r10;
	assert_int_equal(process_vm_readv(t->pid, &to, 1, &from, 1, 0), STACK_BYTES);
	s->nslices = 1;
	s->slice[0] = (struct sample_slice){ .va = r->rsp, .len = STACK_BYTES };
	s->stack_len = STACK_BYTES;
	return s;
}

static void show(const char *what, const struct symtab *t, const uint64_t *ip, unsigned int n)
{
	print_error("%s:", what);
	for (unsigned int i = 0; i < n; i++) {
		uint64_t off;
		const struct symbol *s = symtab_lookup(t, ip[i] - (i ? 1 : 0), &off);

		print_error(" %s+0x%llx", s ? s->name : "?",
			    s ? (unsigned long long)off + (i ? 1 : 0) : 0);
	}
	print_error("\n");
}

struct counts {
	unsigned long steps, with_symbols_bad, without_symbols_bad, without_symbols_short;
};

static void single_step(struct tracee *t, struct unwinder *u, const struct symtab *symbols,
			struct counts *n)
{
	static uint8_t mem[sizeof(struct sample) + STACK_BYTES] __attribute__((aligned(16)));
	struct sample *s = (struct sample *)mem;
	uint64_t truth[128]; /* return addresses, outermost first */
	unsigned int depth = 0;
	bool inside = false;
	static struct stack got;
	csh cs;
	cs_insn *insn;
	int status;

	assert_int_equal(cs_open(CS_ARCH_X86, CS_MODE_64, &cs), CS_ERR_OK);
	cs_option(cs, CS_OPT_DETAIL, CS_OPT_ON);
	insn = cs_malloc(cs);
	for (;;) {
		struct user_regs_struct r;
		uint64_t chain[129], addr;
		const uint8_t *code;
		size_t left = 15;
		bool call = false, ret = false;

		assert_int_equal(ptrace(PTRACE_GETREGS, t->pid, NULL, &r), 0);
		if (!inside && r.rip == (uint64_t)(uintptr_t)tree) {
			truth[depth++] = (uint64_t)ptrace(PTRACE_PEEKDATA, t->pid, r.rsp, NULL);
			inside = true;
		}
		if (inside) {
			if (depth == 0)
				break; /* back in asm_root */
			assert_in_range(r.rip, t->text, t->end - 1);
			chain[0] = r.rip;
			for (unsigned int i = 0; i < depth; i++)
				chain[i + 1] = truth[depth - 1 - i];
			take_sample(t, &r, s);
			u->symbols = symbols;
			unwind(u, s, &got);
			n->steps++;
			if (got.n != depth + 1 || got.end != STACK_END_ROOT ||
			    memcmp(got.ip, chain, got.n * 8)) {
				if (n->with_symbols_bad++ < 12) {
					print_error("end: %s\n", stack_end_name(got.end));
					show("truth", symbols, chain, depth + 1);
					show("found", symbols, got.ip, got.n);
				}
			}
			u->symbols = NULL;
			unwind(u, s, &got);
			if (got.n <= depth + 1 && !memcmp(got.ip, chain, got.n * 8)) {
				if (got.n < depth + 1)
					n->without_symbols_short++;
			} else {
				if (n->without_symbols_bad++ < 4) {
					show("no symbols: truth", symbols, chain, depth + 1);
					show("no symbols: found", symbols, got.ip, got.n);
				}
			}
			code = (const uint8_t *)(uintptr_t)r.rip;
			addr = r.rip;
			assert_true(cs_disasm_iter(cs, &code, &left, &addr, insn));
			call = cs_insn_group(cs, insn, CS_GRP_CALL);
			ret = cs_insn_group(cs, insn, CS_GRP_RET);
		}
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, t->pid, NULL, NULL), 0);
		assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
		assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
		if (call) {
			assert_true(depth < 128);
			truth[depth++] = r.rip + insn->size;
		}
		if (ret)
			depth--;
	}
	cs_free(insn, 1);
	cs_close(&cs);
	kill(t->pid, SIGKILL);
	waitpid(t->pid, &status, 0);
}

static void every_instruction(void **state)
{
	struct tracee t;
	struct symtab *linked, *symbols = slid_symbols(&t, &linked);
	struct unwinder u = { .read_text = read_own_text,
			      .ctx = &t,
			      .text_start = t.text,
			      .text_end = t.end,
			      .frame_pointers = true };
	struct counts n = { 0 };

	(void)state;
	start_child(&t);
	single_step(&t, &u, symbols, &n);
	print_message("%lu steps: with symbols %lu wrong; without %lu wrong, %lu short\n", n.steps,
		      n.with_symbols_bad, n.without_symbols_bad, n.without_symbols_short);
	assert_true(n.steps > 1500);
	assert_int_equal(n.with_symbols_bad, 0);
	/* Without symbols a stack may end early, but holds nothing that is not so. */
	assert_int_equal(n.without_symbols_bad, 0);
	symtab_destroy(symbols);
	symtab_destroy(linked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
