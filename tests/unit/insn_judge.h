/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * insn_judge: compares the result of complete.c for an instruction with that of this machine's CPU:
 * same bytes at the same address, same registers, same memory at the same addresses.
 */
#ifndef KVMPROF_TESTS_UNIT_INSN_JUDGE_H
#define KVMPROF_TESTS_UNIT_INSN_JUDGE_H

#include <asm/prctl.h>
#include <sys/mman.h>

#include "tests/unit/insn_fixture.h"
#include "tests/unit/skip.h"

#define ARITH UINT64_C(0x8d5) /* OF SF ZF AF PF CF */
#define CF UINT64_C(0x001)
#define ZF UINT64_C(0x040)
#define SF UINT64_C(0x080)
#define OF UINT64_C(0x800)
#define ROUNDS 3000

struct host_state {
	uint64_t gpr[GPR_COUNT]; /* rsp is not used: the code keeps the test's stack */
	uint64_t rflags;
};

void host_run(struct host_state *s);
extern char host_back[];
uint64_t host_code = CODE;

/*
 * Loads the registers, runs the code at host_code, which jumps to host_back after its one
 * instruction, and stores the registers. Nothing in between changes the flags; the stack has the
 * pointer to the state.
 */
__asm__(".text\n"
	".globl host_run, host_back\n"
	"host_run:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	push %rdi\n"
	"	pushq 128(%rdi); popfq\n"
	"	mov 0(%rdi), %rax; mov 8(%rdi), %rcx; mov 16(%rdi), %rdx; mov 24(%rdi), %rbx\n"
	"	mov 40(%rdi), %rbp; mov 48(%rdi), %rsi\n"
	"	mov 64(%rdi), %r8; mov 72(%rdi), %r9; mov 80(%rdi), %r10; mov 88(%rdi), %r11\n"
	"	mov 96(%rdi), %r12; mov 104(%rdi), %r13; mov 112(%rdi), %r14\n"
	"	mov 120(%rdi), %r15\n"
	"	mov 56(%rdi), %rdi\n"
	"	jmp *host_code(%rip)\n"
	"host_back:\n"
	"	pushfq\n"
	"	push %rax\n"
	"	mov 16(%rsp), %rax\n"
	"	mov %rcx, 8(%rax); mov %rdx, 16(%rax); mov %rbx, 24(%rax); mov %rbp, 40(%rax)\n"
	"	mov %rsi, 48(%rax); mov %rdi, 56(%rax); mov %r8, 64(%rax); mov %r9, 72(%rax)\n"
	"	mov %r10, 80(%rax); mov %r11, 88(%rax); mov %r12, 96(%rax); mov %r13, 104(%rax)\n"
	"	mov %r14, 112(%rax); mov %r15, 120(%rax)\n"
	"	pop %rcx; mov %rcx, 0(%rax)\n"
	"	pop %rcx; mov %rcx, 128(%rax)\n"
	"	pop %rcx\n"
	"	cld\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n");

static uint8_t *host_text, *host_data;

/* Returns a value at which bit counts and carries change, or a plain random one. */
static inline uint64_t operand_value(void)
{
	uint64_t v = rnd();

	switch (rnd() % 6) {
	case 0:
		return 0;
	case 1:
		return UINT64_C(1) << (v & 63);
	case 2:
		return v >> (rnd() & 63);
	case 3:
		return v << (rnd() & 63);
	case 4:
		return UINT64_MAX;
	default:
		return v;
	}
}

static inline int group_setup(void **state)
{
	(void)state;
	host_text = mmap((void *)CODE, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	host_data = mmap((void *)DATA, DATA_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	return host_text != (void *)CODE || host_data != (void *)DATA ||
	       syscall(SYS_arch_prctl, ARCH_SET_GS, GS_BASE);
}

static inline __u64 *reg_of(struct kvm_regs *r, unsigned int n)
{
	__u64 *const all[] = { &r->rax, &r->rcx, &r->rdx, &r->rbx, &r->rsp, &r->rbp,
			       &r->rsi, &r->rdi, &r->r8,  &r->r9,  &r->r10, &r->r11,
			       &r->r12, &r->r13, &r->r14, &r->r15 };

	return all[n];
}

struct code {
	uint8_t b[15];
	unsigned int n;
};

static inline void byte(struct code *c, unsigned int v)
{
	c->b[c->n++] = (uint8_t)v;
}

static inline void dword(struct code *c, uint32_t v)
{
	memcpy(c->b + c->n, &v, 4);
	c->n += 4;
}

/* Returns an address that is mostly near the page boundary. */
static inline uint64_t data_address(unsigned int align)
{
	uint64_t off = rnd() % 3 ? 4096 - 12 + rnd() % 20 : rnd() % (DATA_SIZE - 16);

	return DATA + (off & ~(uint64_t)(align - 1));
}

static inline void fill_data(void)
{
	for (unsigned int i = 0; i < DATA_SIZE; i += 8) {
		uint64_t v = rnd() % 3 ? 0 : operand_value();

		memcpy(host_data + i, &v, 8);
	}
}

static inline void place(const struct code *c)
{
	uint64_t back = (uint64_t)(uintptr_t)host_back;

	memcpy(host_text, c->b, c->n);
	memcpy(host_text + c->n, "\xff\x25\0\0\0\0", 6); /* jmp *(%rip) */
	memcpy(host_text + c->n + 6, &back, 8);
	memcpy(fake_host(&f, CODE), c->b, c->n);
	memset(fake_host(&f, CODE) + c->n, 0x90, 15);
}

/* Compares both results; on_cpu runs the code at host_code on this machine's CPU. */
static inline void judge_with(const struct code *c, struct host_state *s, uint64_t flags,
			      bool memory, void (*on_cpu)(struct host_state *))
{
	struct kvm_regs *r = &f.v->run->s.regs.regs;
	struct err e = { 0 };

	place(c);
	for (unsigned int i = 0; i < GPR_COUNT; i++)
		*reg_of(r, i) = s->gpr[i];
	r->rip = CODE;
	r->rflags = s->rflags;
	f.v->run->kvm_dirty_regs = 0;
	if (memory) {
		memcpy(fake_host(&f, DATA), host_data, 4096);
		memcpy(fake_host(&f, DATA + 4096), host_data + 4096, 4096);
	}
	on_cpu(s);
	if (complete_instruction(f.v, &e))
		fail_msg("%s", e.text);
	assert_int_equal(r->rip, CODE + c->n);
	assert_int_equal(f.v->run->kvm_dirty_regs, KVM_SYNC_X86_REGS);
	for (unsigned int i = 0; i < GPR_COUNT; i++)
		if (i != GPR_RSP && *reg_of(r, i) != s->gpr[i])
			fail_msg("register %u: 0x%llx, the CPU has 0x%llx; bytes %02x %02x %02x "
				 "%02x %02x %02x %02x",
				 i, (unsigned long long)*reg_of(r, i),
				 (unsigned long long)s->gpr[i], c->b[0], c->b[1], c->b[2], c->b[3],
				 c->b[4], c->b[5], c->b[6]);
	assert_int_equal(r->rflags & flags, s->rflags & flags);
	if (memory) {
		assert_memory_equal(fake_host(&f, DATA), host_data, 4096);
		assert_memory_equal(fake_host(&f, DATA + 4096), host_data + 4096, 4096);
	}
}

static inline void judge(const struct code *c, struct host_state *s, uint64_t flags, bool memory)
{
	judge_with(c, s, flags, memory, host_run);
}

static inline void random_state(struct host_state *s)
{
	for (unsigned int i = 0; i < GPR_COUNT; i++)
		s->gpr[i] = operand_value();
	s->rflags = 0x202 | (rnd() & ARITH);
}

#define NEEDS(feature)                                       \
	do {                                                 \
		if (!__builtin_cpu_supports(feature))        \
			SKIP("this CPU has no %s", feature); \
	} while (0)

#endif
