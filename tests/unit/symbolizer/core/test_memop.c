/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory accesses of instructions: a hand-written table, with which our decoder must agree and
 * with which the processor must agree: each instruction is run with registers that point to
 * nothing, and the fault shows the address and whether it was a write.
 */
#include "symbolizer/core/memop.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <asm/prctl.h>
#include <cmocka.h>

#define R MEMOP_READ
#define W MEMOP_WRITE
#define RW (MEMOP_READ | MEMOP_WRITE)

/*
 * Nothing is mapped here but a page of code; registers point into it, 4 GiB apart. Nor is
 * anything where they point without their upper halves: wherever mmap() likes to put the
 * area, AddressSanitizer may keep its notes there.
 */
#define AREA UINT64_C(0x500010000000)
#define AREA_LEN (UINT64_C(64) << 30)
#define LOW ((uint32_t)AREA)
#define LOW_LEN UINT64_C(0x100000)

#define AT(n) (AREA + ((uint64_t)(n) << 32) + 0x40000)
#define RIP (AREA + 0x1000)
#define RAX UINT64_C(0x123)
#define RCX UINT64_C(0x45)
#define RDX ((uint64_t)-1001)
#define RBX AT(1)
#define RSP AT(2)
#define RBP AT(3)
#define RSI AT(4)
#define RDI AT(5)
#define R12 AT(6)
#define R13 AT(7)
#define R15 AT(8)
#define GS AT(9)
#define FS UINT64_C(0x7000)

static struct sample_regs regs_of_test(void)
{
	struct sample_regs r = { .rip = RIP, .fs_base = FS, .gs_base = GS };

	r.gpr[GPR_RAX] = RAX;
	r.gpr[GPR_RCX] = RCX;
	r.gpr[GPR_RDX] = RDX;
	r.gpr[GPR_RBX] = RBX;
	r.gpr[GPR_RSP] = RSP;
	r.gpr[GPR_RBP] = RBP;
	r.gpr[GPR_RSI] = RSI;
	r.gpr[GPR_RDI] = RDI;
	r.gpr[GPR_R12] = R12;
	r.gpr[GPR_R13] = R13;
	r.gpr[GPR_R15] = R15;
	return r;
}

struct want {
	uint64_t va;
	unsigned int size;
	uint8_t access;
};

struct row {
	const char *text;
	const uint8_t *bytes;
	size_t len;
	bool run; /* on the processor, too */
	unsigned int n;
	struct want op[2];
};

#define ROW(t, b, r, count, ...)                                                              \
	{                                                                                     \
		.text = (t), .bytes = (const uint8_t *)(b), .len = sizeof(b) - 1, .run = (r), \
		.n = (count),                                                                 \
		.op = { __VA_ARGS__ }                                                         \
	}
#define MAX_ROWS 160

/* The bytes are GNU as's of the text. Addresses are of this process: made when it runs. */
static size_t make_rows(struct row rows[MAX_ROWS])
{
	const struct row list[] = {
		ROW("mov (%rdi),%rax", "\x48\x8b\x07", true, 1, { RDI, 8, R }),
		ROW("mov %rax,(%rdi)", "\x48\x89\x07", true, 1, { RDI, 8, W }),
		ROW("mov 0x10(%rdi,%rcx,8),%eax", "\x8b\x44\xcf\x10", true, 1,
		    { RDI + 0x10 + RCX * 8, 4, R }),
		ROW("mov %eax,-8(%rbp)", "\x89\x45\xf8", true, 1, { RBP - 8, 4, W }),
		ROW("movb $1,(%rsi)", "\xc6\x06\x01", true, 1, { RSI, 1, W }),
		ROW("movl $5,0x1234(%rip)", "\xc7\x05\x34\x12\x00\x00\x05\x00\x00\x00", true, 1,
		    { RIP + 10 + 0x1234, 4, W }),
		ROW("cmpb $5,0x1234(%rip)", "\x80\x3d\x34\x12\x00\x00\x05", true, 1,
		    { RIP + 7 + 0x1234, 1, R }),
		ROW("lea 8(%rdi),%rax", "\x48\x8d\x47\x08", true, 0, { 0, 0, 0 }),
		ROW("nopw 0(%rax,%rax,1)", "\x66\x0f\x1f\x04\x00", true, 0, { 0, 0, 0 }),
		ROW("add %rax,(%rdi)", "\x48\x01\x07", true, 1, { RDI, 8, RW }),
		ROW("add (%rdi),%rax", "\x48\x03\x07", true, 1, { RDI, 8, R }),
		ROW("cmp %rax,(%rdi)", "\x48\x39\x07", true, 1, { RDI, 8, R }),
		ROW("test %eax,(%rdi)", "\x85\x07", true, 1, { RDI, 4, R }),
		ROW("incl (%rdi)", "\xff\x07", true, 1, { RDI, 4, RW }),
		ROW("negl (%r12)", "\x41\xf7\x1c\x24", true, 1, { R12, 4, RW }),
		ROW("notq 8(%r13)", "\x49\xf7\x55\x08", true, 1, { R13 + 8, 8, RW }),
		ROW("shll $3,(%rdi)", "\xc1\x27\x03", true, 1, { RDI, 4, RW }),
		ROW("xchg %rax,(%rdi)", "\x48\x87\x07", true, 1, { RDI, 8, RW }),
		ROW("lock xadd %eax,(%rdi)", "\xf0\x0f\xc1\x07", true, 1, { RDI, 4, RW }),
		ROW("lock cmpxchg %rcx,(%rdi)", "\xf0\x48\x0f\xb1\x0f", true, 1, { RDI, 8, RW }),
		ROW("cmpxchg16b (%rdi)", "\x48\x0f\xc7\x0f", true, 1, { RDI, 16, RW }),
		ROW("lock orl $0,-4(%rsp)", "\xf0\x83\x4c\x24\xfc\x00", true, 1,
		    { RSP - 4, 4, RW }),
		ROW("movzbl (%rdi),%eax", "\x0f\xb6\x07", true, 1, { RDI, 1, R }),
		ROW("movslq (%r15,%rax,4),%rax", "\x49\x63\x04\x87", true, 1,
		    { R15 + RAX * 4, 4, R }),
		ROW("cmove (%rdi),%rax", "\x48\x0f\x44\x07", true, 1, { RDI, 8, R }),
		ROW("imul $100,(%rdi),%rax", "\x48\x6b\x07\x64", true, 1, { RDI, 8, R }),
		ROW("mulq (%rdi)", "\x48\xf7\x27", true, 1, { RDI, 8, R }),
		ROW("divl (%rdi)", "\xf7\x37", true, 1, { RDI, 4, R }),
		ROW("setne (%rdi)", "\x0f\x95\x07", true, 1, { RDI, 1, W }),
		ROW("bt %rax,(%rdi)", "\x48\x0f\xa3\x07", true, 1, { RDI + RAX / 64 * 8, 8, R }),
		ROW("bt %rdx,(%rdi)", "\x48\x0f\xa3\x17", true, 1, { RDI - 16 * 8, 8, R }),
		ROW("bts %edx,(%rdi)", "\x0f\xab\x17", true, 1, { RDI - 32 * 4, 4, RW }),
		ROW("lock btr %rax,(%rdi)", "\xf0\x48\x0f\xb3\x07", true, 1,
		    { RDI + RAX / 64 * 8, 8, RW }),
		ROW("btc %dx,(%rdi)", "\x66\x0f\xbb\x17", true, 1, { RDI - 63 * 2, 2, RW }),
		ROW("btw $3,(%rdi)", "\x66\x0f\xba\x27\x03", true, 1, { RDI, 2, R }),
		ROW("push %rax", "\x50", true, 1, { RSP - 8, 8, W }),
		ROW("push (%rdi)", "\xff\x37", true, 2, { RDI, 8, R }, { RSP - 8, 8, W }),
		ROW("pushw %ax", "\x66\x50", true, 1, { RSP - 2, 2, W }),
		ROW("push $5", "\x6a\x05", true, 1, { RSP - 8, 8, W }),
		ROW("pop %rax", "\x58", true, 1, { RSP, 8, R }),
		ROW("pop (%rdi)", "\x8f\x07", true, 2, { RDI, 8, W }, { RSP, 8, R }),
		ROW("pop 8(%rsp)", "\x8f\x44\x24\x08", true, 2, { RSP + 16, 8, W }, { RSP, 8, R }),
		ROW("pushf", "\x9c", true, 1, { RSP - 8, 8, W }),
		ROW("popf", "\x9d", true, 1, { RSP, 8, R }),
		ROW("call .+100", "\xe8\x5f\x00\x00\x00", true, 1, { RSP - 8, 8, W }),
		ROW("call *(%rdi)", "\xff\x17", true, 2, { RDI, 8, R }, { RSP - 8, 8, W }),
		ROW("jmp *(%rdi,%rax,8)", "\xff\x24\xc7", true, 1, { RDI + RAX * 8, 8, R }),
		ROW("ret", "\xc3", true, 1, { RSP, 8, R }),
		ROW("ret $8", "\xc2\x08\x00", true, 1, { RSP, 8, R }),
		ROW("leave", "\xc9", true, 1, { RBP, 8, R }),
		ROW("enter $16,$0", "\xc8\x10\x00\x00", true, 1, { RSP - 8, 8, W }),
		ROW("iretq", "\x48\xcf", true, 1, { RSP, 40, R }),
		ROW("movsb", "\xa4", true, 2, { RSI, 1, R }, { RDI, 1, W }),
		ROW("rep movsq", "\xf3\x48\xa5", true, 2, { RSI, 8, R }, { RDI, 8, W }),
		ROW("rep stosb", "\xf3\xaa", true, 1, { RDI, 1, W }),
		ROW("stosw", "\x66\xab", true, 1, { RDI, 2, W }),
		ROW("repne scasb", "\xf2\xae", true, 1, { RDI, 1, R }),
		ROW("repe cmpsq", "\xf3\x48\xa7", true, 2, { RSI, 8, R }, { RDI, 8, R }),
		ROW("lodsl", "\xad", true, 1, { RSI, 4, R }),
		ROW("addr32 stosl", "\x67\xab", true, 1, { (uint32_t)RDI, 4, W }),
		ROW("insl", "\x6d", false, 1, { RDI, 4, W }),
		ROW("outsb", "\x6e", false, 1, { RSI, 1, R }),
		ROW("xlat", "\xd7", true, 1, { RBX + (RAX & 255), 1, R }),
		ROW("mov %gs:0x28,%rax", "\x65\x48\x8b\x04\x25\x28\x00\x00\x00", true, 1,
		    { GS + 0x28, 8, R }),
		ROW("mov %gs:(%rcx),%rax", "\x65\x48\x8b\x01", true, 1, { GS + RCX, 8, R }),
		ROW("mov %fs:8,%rax", "\x64\x48\x8b\x04\x25\x08\x00\x00\x00", false, 1,
		    { FS + 8, 8, R }),
		ROW("gs lodsb", "\x65\xac", false, 1, { GS + RSI, 1, R }),
		ROW("mov (%edi),%eax", "\x67\x8b\x07", true, 1, { (uint32_t)RDI, 4, R }),
		ROW("mov 4(%r12d,%ecx,2),%edx", "\x67\x41\x8b\x54\x4c\x04", true, 1,
		    { (uint32_t)(R12 + 4 + RCX * 2), 4, R }),
		ROW("movabs 0x1122334455667788,%al", "\xa0\x88\x77\x66\x55\x44\x33\x22\x11", false,
		    1, { 0x1122334455667788, 1, R }),
		ROW("mov 0xffffffffff600000,%eax", "\x8b\x04\x25\x00\x00\x60\xff", false, 1,
		    { 0xffffffffff600000, 4, R }),
		ROW("mov 0x1000(,%rcx,4),%rax", "\x48\x8b\x04\x8d\x00\x10\x00\x00", true, 1,
		    { 0x1000 + RCX * 4, 8, R }),
		ROW("movups (%rdi),%xmm0", "\x0f\x10\x07", true, 1, { RDI, 16, R }),
		ROW("movaps %xmm0,(%rdi)", "\x0f\x29\x07", true, 1, { RDI, 16, W }),
		ROW("movdqu %xmm1,0x20(%rsi)", "\xf3\x0f\x7f\x4e\x20", true, 1,
		    { RSI + 0x20, 16, W }),
		ROW("movsd (%rdi),%xmm0", "\xf2\x0f\x10\x07", true, 1, { RDI, 8, R }),
		ROW("movsd %xmm0,(%rdi)", "\xf2\x0f\x11\x07", true, 1, { RDI, 8, W }),
		ROW("movss %xmm0,(%rdi)", "\xf3\x0f\x11\x07", true, 1, { RDI, 4, W }),
		ROW("movhps %xmm0,(%rdi)", "\x0f\x17\x07", true, 1, { RDI, 8, W }),
		ROW("movnti %rax,(%rdi)", "\x48\x0f\xc3\x07", true, 1, { RDI, 8, W }),
		ROW("addsd (%rdi),%xmm0", "\xf2\x0f\x58\x07", true, 1, { RDI, 8, R }),
		ROW("pextrq $1,%xmm0,(%rdi)", "\x66\x48\x0f\x3a\x16\x07\x01", true, 1,
		    { RDI, 8, W }),
		ROW("maskmovdqu %xmm0,%xmm1", "\x66\x0f\xf7\xc8", false, 1, { RDI, 16, W }),
		ROW("ldmxcsr (%rdi)", "\x0f\xae\x17", true, 1, { RDI, 4, R }),
		ROW("stmxcsr (%rdi)", "\x0f\xae\x1f", true, 1, { RDI, 4, W }),
		ROW("vmovdqu (%rdi),%ymm0", "\xc5\xfe\x6f\x07", true, 1, { RDI, 32, R }),
		ROW("vmovdqa %ymm0,(%rdi)", "\xc5\xfd\x7f\x07", true, 1, { RDI, 32, W }),
		ROW("vaddps (%rdi),%ymm0,%ymm1", "\xc5\xfc\x58\x0f", true, 1, { RDI, 32, R }),
		ROW("vextracti128 $1,%ymm0,(%rdi)", "\xc4\xe3\x7d\x39\x07\x01", true, 1,
		    { RDI, 16, W }),
		ROW("vmaskmovps %ymm0,%ymm1,(%rdi)", "\xc4\xe2\x75\x2e\x07", false, 1,
		    { RDI, 32, W }),
		ROW("vmovdqu64 %zmm0,64(%rdi)", "\x62\xf1\xfe\x48\x7f\x47\x01", true, 1,
		    { RDI + 64, 64, W }),
		ROW("fldl (%rdi)", "\xdd\x07", true, 1, { RDI, 8, R }),
		ROW("fstpl (%rdi)", "\xdd\x1f", true, 1, { RDI, 8, W }),
		ROW("fistpll (%rdi)", "\xdf\x3f", true, 1, { RDI, 8, W }),
		ROW("fnstcw (%rdi)", "\xd9\x3f", true, 1, { RDI, 2, W }),
		ROW("fxsave (%rdi)", "\x0f\xae\x07", true, 1, { RDI, 512, W }),
		ROW("fxrstor (%rdi)", "\x0f\xae\x0f", true, 1, { RDI, 512, R }),
		ROW("xsave (%rdi)", "\x0f\xae\x27", false, 1, { RDI, 0, W }),
		ROW("prefetcht0 (%rdi)", "\x0f\x18\x0f", false, 1, { RDI, 1, R }),
		ROW("clflush (%rdi)", "\x0f\xae\x3f", false, 1, { RDI, 1, R }),
		ROW("invlpg (%rdi)", "\x0f\x01\x3f", false, 0, { 0, 0, 0 }),
		ROW("crc32q (%rdi),%rax", "\xf2\x48\x0f\x38\xf1\x07", true, 1, { RDI, 8, R }),
		ROW("xorl $7,(%rdi)", "\x83\x37\x07", true, 1, { RDI, 4, RW }),
		ROW("mov %ds,(%rdi)", "\x8c\x1f", true, 1, { RDI, 2, W }),
		ROW("rdtsc", "\x0f\x31", true, 0, { 0, 0, 0 }),
		ROW("xor %eax,%eax", "\x31\xc0", true, 0, { 0, 0, 0 }),
	};

	_Static_assert(sizeof(list) / sizeof(list[0]) <= MAX_ROWS, "room");
	memcpy(rows, list, sizeof(list));
	return sizeof(list) / sizeof(list[0]);
}

static int reserve(uint64_t at, uint64_t len)
{
	void *p = mmap((void *)(uintptr_t)at, len, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	return p == (void *)(uintptr_t)at ? 0 : -1;
}

static int setup(void **state)
{
	(void)state;
	if (reserve(AREA, AREA_LEN) < 0 || reserve(LOW, LOW_LEN) < 0)
		return -1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return munmap((void *)(uintptr_t)LOW, LOW_LEN) | munmap((void *)(uintptr_t)AREA, AREA_LEN);
}

static void table(void **state)
{
	struct row rows[MAX_ROWS];
	size_t n = make_rows(rows);
	struct sample_regs regs = regs_of_test();
	struct memop_decoder *d;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(memop_open(&d, &e), 0);
	for (size_t i = 0; i < 2 * n; i++) { /* the second time out of the cache */
		const struct row *r = &rows[i % n];
		const struct memop_insn *in = memop_decode(d, r->bytes, r->len);

		if (in->why != MEMOP_OK || in->len != r->len || in->n != r->n)
			fail_msg("%s: why %u, %u of %zu bytes, %u operands", r->text, in->why,
				 in->len, r->len, in->n);
		assert_int_equal(memop_touches(in, &regs), r->n > 0);
		for (unsigned int k = 0; k < in->n; k++) {
			uint64_t va = memop_address(in, &in->op[k], &regs);

			if (va != r->op[k].va || in->op[k].size != r->op[k].size ||
			    in->op[k].access != r->op[k].access)
				fail_msg("%s: operand %u: %#llx, %u bytes, access %u", r->text, k,
					 (unsigned long long)va, in->op[k].size, in->op[k].access);
		}
	}
	memop_close(d);
}

/* -- the processor --------------------------------------------------------------------- */

static mcontext_t before; /* where to go on */
static struct {
	int signo;
	uint64_t addr;
	bool write;
} fault;

static void enter(int signo, siginfo_t *info, void *uc)
{
	greg_t *g = ((ucontext_t *)uc)->uc_mcontext.gregs;

	(void)signo;
	(void)info;
	before = ((ucontext_t *)uc)->uc_mcontext;
	g[REG_RIP] = (greg_t)RIP;
	g[REG_RAX] = (greg_t)RAX;
	g[REG_RCX] = (greg_t)RCX;
	g[REG_RDX] = (greg_t)RDX;
	g[REG_RBX] = (greg_t)RBX;
	g[REG_RSP] = (greg_t)RSP;
	g[REG_RBP] = (greg_t)RBP;
	g[REG_RSI] = (greg_t)RSI;
	g[REG_RDI] = (greg_t)RDI;
	g[REG_R12] = (greg_t)R12;
	g[REG_R13] = (greg_t)R13;
	g[REG_R15] = (greg_t)R15;
}

static void leave(int signo, siginfo_t *info, void *uc)
{
	mcontext_t *m = &((ucontext_t *)uc)->uc_mcontext;

	fault.signo = signo;
	fault.addr = (uintptr_t)info->si_addr;
	fault.write = m->gregs[REG_ERR] & 2; /* SDM vol. 3, 4.7 "Page-fault exceptions" */
	memcpy(m->gregs, before.gregs, sizeof(before.gregs));
}

/* Did the instruction fault where the table has one of its operands? */
static bool agrees(const struct row *r)
{
	for (unsigned int k = 0; k < r->n; k++) {
		const struct want *w = &r->op[k];

		if (fault.addr - w->va < w->size &&
		    (w->access == RW || fault.write == (w->access == W)))
			return true;
	}
	return false;
}

static void run_row(const struct row *r, uint8_t *page)
{
	static const uint8_t ud2[] = { 0x0f, 0x0b };

	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
	memcpy(page, r->bytes, r->len);
	memcpy(page + r->len, ud2, sizeof(ud2));
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_EXEC), 0);
	memset(&fault, 0, sizeof(fault));
	raise(SIGUSR1);
}

static void processor(void **state)
{
	static uint8_t stack[65536];
	const stack_t alt = { .ss_sp = stack, .ss_size = sizeof(stack) };
	static const int ends[] = { SIGSEGV, SIGILL, SIGBUS, SIGFPE, SIGTRAP };
	struct sigaction sa = { .sa_sigaction = enter, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct sigaction old[6];
	struct row rows[MAX_ROWS];
	size_t n = make_rows(rows), ran = 0, left = 0;
	uint8_t *page = (uint8_t *)(uintptr_t)RIP;
	stack_t old_alt;

	(void)state;
	assert_int_equal(sigaltstack(&alt, &old_alt), 0);
	assert_int_equal(sigaction(SIGUSR1, &sa, &old[5]), 0);
	sa.sa_sigaction = leave;
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(sigaction(ends[i], &sa, &old[i]), 0);
	assert_int_equal(syscall(SYS_arch_prctl, ARCH_SET_GS, GS), 0);
	for (size_t i = 0; i < n; i++) {
		const struct row *r = &rows[i];

		if (!r->run)
			continue;
		run_row(r, page);
		ran++;
		if (fault.signo == SIGILL && fault.addr == RIP && r->n) {
			left++; /* this processor has no such instruction */
			continue;
		}
		if (r->n ? fault.signo != SIGSEGV || !agrees(r)
			 : fault.signo != SIGILL || fault.addr != RIP + r->len)
			fail_msg("%s: the processor says signal %d at %#llx, write %d", r->text,
				 fault.signo, (unsigned long long)fault.addr, fault.write);
	}
	for (unsigned int i = 0; i < 5; i++)
		sigaction(ends[i], &old[i], NULL);
	sigaction(SIGUSR1, &old[5], NULL);
	sigaltstack(&old_alt, NULL);
	mprotect(page, 4096, PROT_NONE);
	print_message("%zu instructions ran, %zu of them unknown to this processor\n", ran, left);
	assert_true(ran - left >= 80);
}

/* -- what is not known, and what does nothing ---------------------------------------------- */

#define DECODE(d, text) memop_decode(d, (const uint8_t *)(text), sizeof(text) - 1)

static void unknown(void **state)
{
	struct memop_decoder *d;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(memop_open(&d, &e), 0);
	/* vpgatherdd, vpgatherqq, vpscatterdd */
	assert_int_equal(DECODE(d, "\xc4\xe2\x6d\x90\x04\x8f")->why, MEMOP_VECTOR_INDEX);
	assert_int_equal(DECODE(d, "\xc4\xe2\xe9\x91\x04\xcf")->why, MEMOP_VECTOR_INDEX);
	assert_int_equal(DECODE(d, "\x62\xf2\x7d\x49\xa0\x04\x8f")->why, MEMOP_VECTOR_INDEX);
	assert_int_equal(DECODE(d, "\x62\xf2\x7d\x49\xa0\x04\x8f")->n, 0);
	/* an opcode that has no meaning yet; bytes that are not an instruction at all */
	assert_int_equal(DECODE(d, "\x0f\x04\x07\x90")->why, MEMOP_UNKNOWN_INSN);
	assert_int_equal(
		DECODE(d, "\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06")->why,
		MEMOP_UNKNOWN_INSN);
	/* nothing, and the first bytes of a longer one at a page's end */
	assert_int_equal(memop_decode(d, NULL, 0)->why, MEMOP_NO_BYTES);
	assert_int_equal(DECODE(d, "\xc7\x05\x34\x12")->why, MEMOP_NO_BYTES);
	/* the same bytes, whole: not what the cache had of the cut ones */
	assert_int_equal(DECODE(d, "\xc7\x05\x34\x12\x00\x00\x05\x00\x00\x00")->why, MEMOP_OK);
	assert_int_equal(DECODE(d, "\xc7\x05\x34\x12")->why, MEMOP_NO_BYTES);
	for (unsigned int i = 0; i < MEMOP_WHY_COUNT; i++)
		assert_non_null(memop_why_text(i));
	memop_close(d);
}

static void counters(void **state)
{
	struct sample_regs regs = regs_of_test();
	struct memop_decoder *d;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(memop_open(&d, &e), 0);
	regs.gpr[GPR_RCX] = 0;
	assert_false(memop_touches(DECODE(d, "\xf3\xaa"), &regs)); /* rep stosb */
	assert_true(memop_touches(DECODE(d, "\xaa"), &regs));
	regs.gpr[GPR_RCX] = UINT64_C(1) << 32;
	assert_true(memop_touches(DECODE(d, "\xf3\xaa"), &regs));
	assert_false(memop_touches(DECODE(d, "\x67\xf3\xaa"), &regs)); /* counts ecx */
	assert_true(DECODE(d, "\xf0\xff\x07")->locked);
	assert_true(DECODE(d, "\x48\x87\x07")->locked);
	assert_false(DECODE(d, "\xff\x07")->locked);
	memop_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(table, setup, teardown),
		cmocka_unit_test_setup_teardown(processor, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(counters, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
