/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/pvm/complete_simd.h"

#include "vmm/machine.h"
#include "vmm/pvm/simd_form.h"

#include <cpuid.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* SSE, AVX and AVX-512. Not x87, whose pending exceptions would be ours, nor PKRU and AMX. */
#define STATES 0xe6u
#define RFLAGS_ARITH (RFLAGS_CF | RFLAGS_PF | RFLAGS_AF | RFLAGS_ZF | RFLAGS_SF | RFLAGS_OF)
#define MXCSR_OFF 24u
#define MXCSR_MASKS 0x1f80u

#define OPERAND_MAX 64u /* no operand is longer */
#define CODE_SIZE 4096u
#define RET 0xc3

/* What the stub loads and stores; the offsets are in its text. */
struct simd_state {
	uint64_t gpr[GPR_COUNT]; /* rsp stays this thread's */
	uint64_t rflags;	 /* 128 */
	void *code;		 /* 136 */
	void *xsave;		 /* 144 */
	uint64_t states;	 /* 152 */
};

_Static_assert(offsetof(struct simd_state, rflags) == 128, "the stub's offsets");
_Static_assert(offsetof(struct simd_state, states) == 152, "the stub's offsets");

/* One for each vCPU's thread, freed with it. */
struct simd_thread {
	struct kvm_xsave xsave __attribute__((aligned(64)));
	uint8_t memory[OPERAND_MAX] __attribute__((aligned(64)));
	struct simd_state s;
	uint8_t *code;
	sigjmp_buf out;
	volatile sig_atomic_t inside;
};

void simd_run(struct simd_state *s);

/*
 * All vector registers belong to the callee, so that only MXCSR has to be kept. The
 * instruction stands at s->code and is followed by a RET.
 */
__asm__(".pushsection .text\n"
	".globl simd_run\n"
	".type simd_run, @function\n"
	"simd_run:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	sub $8, %rsp\n"
	"	stmxcsr (%rsp)\n"
	"	push %rdi\n"
	"	mov 144(%rdi), %rcx\n"
	"	mov 152(%rdi), %eax\n"
	"	xor %edx, %edx\n"
	"	xrstor64 (%rcx)\n"
	"	pushq 136(%rdi)\n"
	"	pushq 128(%rdi); popfq\n"
	"	mov 0(%rdi), %rax; mov 8(%rdi), %rcx; mov 16(%rdi), %rdx; mov 24(%rdi), %rbx\n"
	"	mov 40(%rdi), %rbp; mov 48(%rdi), %rsi\n"
	"	mov 64(%rdi), %r8; mov 72(%rdi), %r9; mov 80(%rdi), %r10; mov 88(%rdi), %r11\n"
	"	mov 96(%rdi), %r12; mov 104(%rdi), %r13; mov 112(%rdi), %r14\n"
	"	mov 120(%rdi), %r15; mov 56(%rdi), %rdi\n"
	"	call *(%rsp)\n"
	"	pushfq\n"
	"	push %rax\n"
	"	mov 24(%rsp), %rax\n" /* flags and rax are pushed, and the code's address */
	"	mov %rcx, 8(%rax); mov %rdx, 16(%rax); mov %rbx, 24(%rax); mov %rbp, 40(%rax)\n"
	"	mov %rsi, 48(%rax); mov %rdi, 56(%rax); mov %r8, 64(%rax); mov %r9, 72(%rax)\n"
	"	mov %r10, 80(%rax); mov %r11, 88(%rax); mov %r12, 96(%rax); mov %r13, 104(%rax)\n"
	"	mov %r14, 112(%rax); mov %r15, 120(%rax)\n"
	"	pop %rcx; mov %rcx, 0(%rax)\n"
	"	pop %rcx; mov %rcx, 128(%rax)\n"
	"	pop %rcx\n"
	"	mov %rax, %rdi\n"
	"	mov 144(%rdi), %rcx\n"
	"	mov 152(%rdi), %eax\n"
	"	xor %edx, %edx\n"
	"	xsave64 (%rcx)\n"
	"	pop %rdi\n"
	"	ldmxcsr (%rsp)\n"
	"	add $8, %rsp\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n"
	".size simd_run, .-simd_run\n"
	".popsection\n");

/* What an instruction can raise: #UD, #GP and #PF, #XM, #AC. */
static const int simd_signals[] = { SIGILL, SIGSEGV, SIGFPE, SIGBUS };
#define NSIGNALS (sizeof(simd_signals) / sizeof(simd_signals[0]))
static struct sigaction simd_before[NSIGNALS];

static _Thread_local struct simd_thread *simd_current;
static pthread_key_t simd_key;
static pthread_once_t simd_once = PTHREAD_ONCE_INIT;
static uint32_t simd_states; /* of STATES those that the host has; 0: it can't be done */

static void simd_caught(int signo, siginfo_t *info, void *context)
{
	if (simd_current && simd_current->inside)
		siglongjmp(simd_current->out, 1);
	for (size_t i = 0; i < NSIGNALS; i++) {
		if (simd_signals[i] != signo)
			continue;
		/* Not ours: base/fault.h. Or the instruction runs again, into what was there before us. */
		if (simd_before[i].sa_flags & SA_SIGINFO)
			simd_before[i].sa_sigaction(signo, info, context);
		else
			sigaction(signo, &simd_before[i], NULL);
	}
}

static void simd_free(void *p)
{
	struct simd_thread *t = p;

	simd_current = NULL;
	if (t->code)
		munmap(t->code, CODE_SIZE);
	free(t);
}

static void simd_start(void)
{
	struct sigaction sa = { .sa_sigaction = simd_caught,
				.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	uint32_t eax, ebx, ecx, edx, high;

	/* OSXSAVE; where the instruction is and the operating system uses it. */
	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE) ||
	    pthread_key_create(&simd_key, simd_free))
		return;
	__asm__("xgetbv" : "=a"(eax), "=d"(high) : "c"(0));
	for (size_t i = 0; i < NSIGNALS; i++)
		if (sigaction(simd_signals[i], &sa, &simd_before[i]) < 0)
			return;
	simd_states = eax & STATES;
}

static struct simd_thread *simd_get(void)
{
	struct simd_thread *t;
	void *code;

	pthread_once(&simd_once, simd_start);
	if (!simd_states || simd_current)
		return simd_current;
	t = aligned_alloc(64, (sizeof(*t) + 63) & ~(size_t)63);
	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	/* Some hosts forbid such memory: then these instructions stay unfinished. */
	code = mmap(NULL, CODE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED || pthread_setspecific(simd_key, t)) {
		free(t);
		return NULL;
	}
	t->code = code;
	return simd_current = t;
}

static void registers(struct guest_insn *g, __u64 *reg[GPR_COUNT])
{
	struct kvm_regs *r = g->regs;
	__u64 *const all[GPR_COUNT] = { &r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rsp, &r->rbp,
					&r->rsi, &r->rdi, &r->r8,  &r->r9,  &r->r10, &r->r11,
					&r->r12, &r->r13, &r->r14, &r->r15 };

	memcpy(reg, all, sizeof(all));
}

/* rsp as a value: the stub's own is in its place. */
static bool uses_rsp(const struct guest_insn *g)
{
	const cs_x86 *x = &g->insn->detail->x86;

	for (unsigned int i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_REG &&
		    (x->operands[i].reg == X86_REG_RSP || x->operands[i].reg == X86_REG_ESP))
			return true;
	return false;
}

/* The operand and what follows it, as far as that is mapped. *have: bytes. */
static int simd_fetch(const struct guest_insn *g, uint64_t *gva, uint8_t *to, size_t *have)
{
	const cs_x86 *x = &g->insn->detail->x86;
	size_t need, in_page;

	for (unsigned int i = 0; i < x->op_count; i++) {
		if (x->operands[i].type != X86_OP_MEM)
			continue;
		if (guest_insn_address(g, i, gva) < 0)
			return -ENOTSUP;
		need = x->operands[i].size;
		if (need > OPERAND_MAX)
			return -ENOTSUP;
		*have = OPERAND_MAX;
		if (guest_insn_read(g, *gva, to, *have) == 0)
			return 0;
		in_page = 4096 - (*gva & 4095);
		*have = need > in_page ? need : in_page < OPERAND_MAX ? in_page : OPERAND_MAX;
		return guest_insn_read(g, *gva, to, *have);
	}
	return -ENOTSUP;
}

/* What has changed of it: a load changes nothing, so that it needs no write access. */
static int store(const struct guest_insn *g, uint64_t gva, const uint8_t *old, const uint8_t *new,
		 size_t have)
{
	size_t first = 0, end = OPERAND_MAX;

	while (first < end && old[first] == new[first])
		first++;
	while (end > first && old[end - 1] == new[end - 1])
		end--;
	if (first == end)
		return 0;
	return end > have ? -EFAULT : guest_insn_write(g, gva + first, new + first, end - first);
}

/* The instruction in t->code. -ENOTSUP: it raised an exception. */
static int simd_execute(struct simd_thread *t)
{
	uint32_t mxcsr, after;

	memcpy(&mxcsr, (uint8_t *)t->xsave.region + MXCSR_OFF, sizeof(mxcsr));
	after = mxcsr | MXCSR_MASKS;
	memcpy((uint8_t *)t->xsave.region + MXCSR_OFF, &after, sizeof(after));
	t->s.xsave = &t->xsave;
	t->s.states = simd_states;
	t->s.code = t->code;
	__asm__ volatile("stmxcsr %0" : "=m"(after));
	if (sigsetjmp(t->out, 0)) {
		t->inside = 0;
		__asm__ volatile("ldmxcsr %0" : : "m"(after));
		return -ENOTSUP;
	}
	t->inside = 1;
	simd_run(&t->s);
	t->inside = 0;
	memcpy(&after, (uint8_t *)t->xsave.region + MXCSR_OFF, sizeof(after));
	after = (after & ~MXCSR_MASKS) | (mxcsr & MXCSR_MASKS);
	memcpy((uint8_t *)t->xsave.region + MXCSR_OFF, &after, sizeof(after));
	return 0;
}

int complete_simd(struct guest_insn *g)
{
	uint8_t old[OPERAND_MAX] = { 0 };
	struct simd_thread *t;
	struct simd_form f;
	__u64 *reg[GPR_COUNT];
	uint64_t gva = 0, base = 0;
	size_t have = 0;
	int ret;

	if (!g->v->run->s.regs.sregs.cs.l || simd_form_parse(g->bytes, g->nbytes, &f) < 0 ||
	    f.source_len != g->insn->size || uses_rsp(g))
		return -ENOTSUP;
	t = simd_get();
	if (!t)
		return -ENOTSUP;
	ret = f.memory ? simd_fetch(g, &gva, old, &have) : 0;
	if (ret)
		return ret;
	if (ioctl(g->v->fd, KVM_GET_XSAVE, &t->xsave) < 0)
		return -errno;
	memcpy(t->memory, old, sizeof(old));
	memcpy(t->code, f.code, f.len);
	t->code[f.len] = RET;
	registers(g, reg);
	for (unsigned int i = 0; i < GPR_COUNT; i++)
		t->s.gpr[i] = *reg[i];
	t->s.rflags = (g->regs->rflags & RFLAGS_ARITH) | 2;
	if (f.memory) {
		base = t->s.gpr[f.base];
		t->s.gpr[f.base] = (uint64_t)(uintptr_t)t->memory;
	}
	ret = simd_execute(t);
	if (!ret && f.memory) {
		t->s.gpr[f.base] = base;
		ret = store(g, gva, old, t->memory, have);
	}
	if (!ret && ioctl(g->v->fd, KVM_SET_XSAVE, &t->xsave) < 0)
		ret = -errno;
	if (ret)
		return ret;
	for (unsigned int i = 0; i < GPR_COUNT; i++)
		if (i != GPR_RSP)
			*reg[i] = t->s.gpr[i];
	guest_insn_set_flags(g, RFLAGS_ARITH, (uint32_t)t->s.rflags & RFLAGS_ARITH);
	return 0;
}
