/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * simd_judge: runs bytes on this machine's CPU and compares what they read and write with what they
 * may.
 *
 * The bytes run twice. Registers and memory that they may read are equal in both runs, and all
 * others differ, so that different results show a forbidden read. The stack pointer is treated like
 * any other register. Registers hold no valid addresses except the base of the operand, which ends
 * at the end of its page.
 */
#ifndef KVMPROF_TESTS_UNIT_SIMD_JUDGE_H
#define KVMPROF_TESTS_UNIT_SIMD_JUDGE_H

#include "vmm/pvm/simd_form.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define JUDGE_PAGE 4096u
#define JUDGE_RBX 3u
#define JUDGE_RSP 4u
#define JUDGE_ARITH 0x8d5u

/* Bits of the result of simd_judge(). */
#define JUDGE_WROTE_REGISTER 1u
#define JUDGE_WROTE_MEMORY 2u
#define JUDGE_WROTE_FLAGS 4u
#define JUDGE_READ_MORE 8u
#define JUDGE_FAULTED 16u /* SIGSEGV or SIGBUS: an access outside of the operand */
#define JUDGE_LEFT 32u	  /* the signal came from another place */
/* No difference: the CPU lacks the instruction. */
#define JUDGE_UNKNOWN 64u

struct simd_permit {
	uint32_t reads, writes; /* bit n: general register n */
	unsigned int memory_size;
	bool stores, flags;
};

/* The assembly of the stub uses these offsets. */
struct judge_state {
	uint64_t gpr[16];
	uint64_t rflags;   /* 128 */
	uint64_t host_rsp; /* 136 */
	uint64_t code;	   /* 144 */
	uint64_t raised;   /* 152 */
};
struct judge_state judge_state;
uint8_t judge_area[4096] __attribute__((aligned(64)));
static uint8_t judge_own[4096] __attribute__((aligned(64)));
static uint8_t *judge_code, *judge_data;
static volatile sig_atomic_t judge_signal, judge_outside;
void judge_enter(void);
extern const uint8_t judge_back[], judge_raised[];

__asm__(".text\n"
	".globl judge_enter, judge_back, judge_raised\n"
	"judge_enter:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	mov %rsp, judge_state+136(%rip)\n"
	"	mov $6, %eax; xor %edx, %edx\n"
	"	xrstor64 judge_area(%rip)\n"
	"	pushq judge_state+128(%rip); popfq\n"
	"	mov judge_state(%rip), %rax; mov judge_state+8(%rip), %rcx\n"
	"	mov judge_state+16(%rip), %rdx; mov judge_state+24(%rip), %rbx\n"
	"	mov judge_state+32(%rip), %rsp; mov judge_state+40(%rip), %rbp\n"
	"	mov judge_state+48(%rip), %rsi; mov judge_state+56(%rip), %rdi\n"
	"	mov judge_state+64(%rip), %r8; mov judge_state+72(%rip), %r9\n"
	"	mov judge_state+80(%rip), %r10; mov judge_state+88(%rip), %r11\n"
	"	mov judge_state+96(%rip), %r12; mov judge_state+104(%rip), %r13\n"
	"	mov judge_state+112(%rip), %r14; mov judge_state+120(%rip), %r15\n"
	"	jmp *judge_state+144(%rip)\n"
	"judge_back:\n"
	"	mov %rax, judge_state(%rip); mov %rcx, judge_state+8(%rip)\n"
	"	mov %rdx, judge_state+16(%rip); mov %rbx, judge_state+24(%rip)\n"
	"	mov %rsp, judge_state+32(%rip); mov %rbp, judge_state+40(%rip)\n"
	"	mov %rsi, judge_state+48(%rip); mov %rdi, judge_state+56(%rip)\n"
	"	mov %r8, judge_state+64(%rip); mov %r9, judge_state+72(%rip)\n"
	"	mov %r10, judge_state+80(%rip); mov %r11, judge_state+88(%rip)\n"
	"	mov %r12, judge_state+96(%rip); mov %r13, judge_state+104(%rip)\n"
	"	mov %r14, judge_state+112(%rip); mov %r15, judge_state+120(%rip)\n"
	"	mov judge_state+136(%rip), %rsp\n"
	"	pushfq; popq judge_state+128(%rip)\n"
	"	mov $6, %eax; xor %edx, %edx\n"
	"	xsave64 judge_area(%rip)\n"
	"1:	cld\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n"
	"judge_raised:\n"
	"	mov judge_state+136(%rip), %rsp\n"
	"	movq $1, judge_state+152(%rip)\n"
	"	jmp 1b\n");

static void judge_caught(int signo, siginfo_t *info, void *context)
{
	greg_t *reg = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t ip = (uintptr_t)reg[REG_RIP], code = (uintptr_t)judge_code;

	(void)info;
	judge_signal = signo;
	judge_outside = ip < code || ip >= code + 16;
	reg[REG_RIP] = (greg_t)(uintptr_t)judge_raised;
}

/* Returns 0, or -1 if the system forbids memory that is writable and executable. */
static inline int simd_judge_start(void)
{
	static const int signals[] = { SIGILL, SIGSEGV, SIGFPE, SIGBUS, SIGTRAP };
	static uint8_t stack[65536];
	const stack_t own = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction sa = { .sa_sigaction = judge_caught,
				.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	const int rwx = PROT_READ | PROT_WRITE | PROT_EXEC;

	/* Done each time, because cmocka installs its own handlers for each test. */
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &sa, NULL);
	if (judge_code)
		return 0;
	judge_data = mmap(NULL, 3 * JUDGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	judge_code = mmap(NULL, JUDGE_PAGE, rwx, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (judge_data == MAP_FAILED || judge_code == MAP_FAILED || sigaltstack(&own, NULL) < 0)
		return -1;
	judge_data += JUDGE_PAGE;
	return mprotect(judge_data, JUDGE_PAGE, PROT_READ | PROT_WRITE);
}

static inline uint64_t judge_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * UINT64_C(0x2545f4914f6cdd1d);
}

static inline void judge_write_code(const uint8_t *code, unsigned int len)
{
	uint64_t back = (uint64_t)(uintptr_t)judge_back;

	memset(judge_code, 0xcc, 64);
	memcpy(judge_code, code, len);
	memcpy(judge_code + len, "\xff\x25\0\0\0\0", 6); /* jmp *(%rip) */
	memcpy(judge_code + len + 6, &back, 8);
}

/* The state after a run. */
struct judge_result {
	struct judge_state s;
	uint8_t area[832], data[JUDGE_PAGE];
};

/*
 * Runs the bytes once. common: seed of what may be read; own: seed of the rest. Returns JUDGE_
 * bits.
 */
static inline unsigned int judge_once(const struct simd_permit *p, uint64_t common, uint64_t own,
				      struct judge_result *r)
{
	uint8_t before[JUDGE_PAGE];
	uint64_t gpr[16], v;
	unsigned int bits = 0;

	for (unsigned int i = 0; i < JUDGE_PAGE; i += 8) {
		v = judge_random(&own);
		memcpy(judge_data + i, &v, 8);
	}
	for (unsigned int i = 0; i < p->memory_size; i++)
		judge_data[JUDGE_PAGE - p->memory_size + i] = (uint8_t)judge_random(&common);
	memset(judge_area, 0, sizeof(judge_area));
	memcpy(judge_area + 24, "\x80\x1f\0\0", 4);
	judge_area[512] = 6;
	for (unsigned int i = 0; i < 256; i++) {
		judge_area[160 + i] = (uint8_t)judge_random(&common);
		judge_area[576 + i] = (uint8_t)judge_random(&common);
	}
	/* These are not canonical addresses. */
	for (unsigned int i = 0; i < 16; i++)
		gpr[i] = (judge_random(p->reads >> i & 1 ? &common : &own) &
			  ~(UINT64_C(0xff) << 56)) |
			 UINT64_C(0x5a) << 56;
	/*
	 * The bytes may not use the stack. This address is canonical, because some hypervisors do
	 * not return to a program with another one, and nothing is mapped there.
	 */
	gpr[JUDGE_RSP] = (gpr[JUDGE_RSP] & ((UINT64_C(1) << 40) - 1)) | UINT64_C(1) << 45;
	if (p->memory_size)
		gpr[JUDGE_RBX] = (uint64_t)(uintptr_t)judge_data + JUDGE_PAGE - p->memory_size;
	memcpy(judge_state.gpr, gpr, sizeof(gpr));
	judge_state.rflags = 2 | (judge_random(&common) & JUDGE_ARITH);
	judge_state.code = (uint64_t)(uintptr_t)judge_code;
	judge_state.raised = 0;
	v = judge_state.rflags;
	memcpy(before, judge_data, sizeof(before));
	__asm__ volatile("xsave64 %0" : "+m"(judge_own) : "a"(6), "d"(0) : "memory");
	judge_enter();
	__asm__ volatile("xrstor64 %0" : : "m"(judge_own), "a"(6), "d"(0) : "memory");
	if (judge_state.raised) {
		if (judge_outside)
			return JUDGE_LEFT;
		return judge_signal == SIGILL ? JUDGE_UNKNOWN : JUDGE_FAULTED;
	}
	for (unsigned int i = 0; i < 16; i++)
		if (!(p->writes >> i & 1) && judge_state.gpr[i] != gpr[i])
			bits |= JUDGE_WROTE_REGISTER;
	if (!p->flags && (judge_state.rflags ^ v) & JUDGE_ARITH)
		bits |= JUDGE_WROTE_FLAGS;
	if (memcmp(before, judge_data, JUDGE_PAGE - (p->stores ? p->memory_size : 0)) != 0)
		bits |= JUDGE_WROTE_MEMORY;
	r->s = judge_state;
	memcpy(r->area, judge_area, sizeof(r->area));
	memcpy(r->data, judge_data, sizeof(r->data));
	return bits;
}

/* Returns the differences between what the bytes do and what they may do; 0: none. */
static inline unsigned int simd_judge(const uint8_t *code, unsigned int len,
				      const struct simd_permit *p, uint64_t seed)
{
	static struct judge_result a, b;
	unsigned int bits, more;

	judge_write_code(code, len);
	bits = judge_once(p, seed | 1, seed + 0x1111, &a);
	more = judge_once(p, seed | 1, seed + 0x2222, &b);
	if ((bits | more) & JUDGE_UNKNOWN)
		return bits == more ? JUDGE_UNKNOWN : JUDGE_READ_MORE;
	bits |= more;
	if (bits & (JUDGE_LEFT | JUDGE_FAULTED))
		return bits;
	for (unsigned int i = 0; i < 16; i++)
		if (p->writes >> i & 1 && a.s.gpr[i] != b.s.gpr[i])
			bits |= JUDGE_READ_MORE;
	if (memcmp(a.area, b.area, sizeof(a.area)) != 0 ||
	    memcmp(a.data + JUDGE_PAGE - p->memory_size, b.data + JUDGE_PAGE - p->memory_size,
		   p->memory_size) != 0 ||
	    (a.s.rflags ^ b.s.rflags) & JUDGE_ARITH)
		bits |= JUDGE_READ_MORE;
	return bits;
}

/* Returns the effects that the form states for its bytes. */
static inline struct simd_permit simd_form_permits(const struct simd_form *f)
{
	struct simd_permit p = { .memory_size = f->memory_size,
				 .stores = f->stores,
				 .flags = f->flags };

	p.reads = (f->memory_size ? 1u << JUDGE_RBX : 0) | (f->gpr_read != SIMD_NO_GPR ? 1 : 0) |
		  (f->lengths ? 1u | 1u << 2 : 0);
	p.writes = (f->gpr_written != SIMD_NO_GPR ? 1 : 0) | (f->index ? 1u << 1 : 0);
	return p;
}

#endif
