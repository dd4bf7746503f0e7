/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mode=selfcheck: the guest searches for changes of its own state.
 *
 * A turn sets all general registers and flags to known values, spins with them, and compares them.
 * Ring 3 does the same with FPU and SSE registers, MXCSR and the FS base, ring 0 with CR2 and the
 * MSRs of segment bases. A program that observes the guest from outside must not change any of
 * them.
 *
 * 	selfcheck ring3 turns <n> differences <n>
 * 	selfcheck ring0 turns <n> differences <n>
 * 	selfcheck memory bytes <n> differences <n>
 */
#ifndef SELFCHECK_H
#define SELFCHECK_H

#include "demo.h"

/* In the order of the instruction encoding; rcx is the counter, and rsp has its current value. */
#define SELFCHECK_GPRS 16u
#define SELFCHECK_RCX 1u
#define SELFCHECK_RSP 4u
/* CF, PF, AF, ZF, SF, DF, OF */
#define SELFCHECK_FLAGS 0xcd5ul
/*
 * FXSAVE (SDM vol. 1, 10.5.1): up to the end of XMM15, without the addresses of the last
 * instruction and operand.
 */
#define SELFCHECK_FX_LEN 416u
#define SELFCHECK_FX_MXCSR 24u
#define SELFCHECK_FX_ST 32u
#define SELFCHECK_FX_XMM 160u

struct selfcheck {
	u64 put[SELFCHECK_GPRS], got[SELFCHECK_GPRS]; /* at offsets 0 and 128 for the code below */
	u64 put_flags, got_flags;		      /* 256, 264 */
	u64 fx_put[64] __attribute__((aligned(64)));
	u64 fx_got[64] __attribute__((aligned(64)));
	u64 end;   /* TSC cycles that one visit to ring 3 may take */
	u64 spins; /* number of spins in each turn */
	u64 spoil; /* nonzero: a turn with a wrong expected value, to test the detection */
	u64 turns, differences, with_fx;
	u64 where, put_value, got_value; /* the first difference; where: SELFCHECK_AT_* */
};
enum {
	SELFCHECK_AT_FLAGS = 16,
	SELFCHECK_AT_FS,
	SELFCHECK_AT_CR2,
	SELFCHECK_AT_MSR,
	SELFCHECK_AT_FX = 32
};

/* Counts a difference between an expected and an actual value, and records the first one. */
static inline __attribute__((always_inline)) void selfcheck_differ(struct selfcheck *s, u64 where,
								   u64 put, u64 got)
{
	if (put == got)
		return;
	if (!s->differences++) {
		s->where = where;
		s->put_value = put;
		s->got_value = got;
	}
}

/*
 * Spins with the values of *s in all registers, and stores the values afterwards. The return state
 * is on the stack because all registers are used.
 */
static inline __attribute__((always_inline)) void selfcheck_spin(struct selfcheck *s)
{
	__asm__ volatile(
		"push %%rbp\n\tpush %%rbx\n\tpush %%r12\n\tpush %%r13\n\tpush %%r14\n\t"
		"push %%r15\n\tpush %%rdi\n\t"
		"movq %%rsp, 32(%%rdi)\n\t"
		"pushq 256(%%rdi)\n\t"
		"movq 0(%%rdi), %%rax\n\tmovq 8(%%rdi), %%rcx\n\tmovq 16(%%rdi), %%rdx\n\t"
		"movq 24(%%rdi), %%rbx\n\tmovq 40(%%rdi), %%rbp\n\tmovq 48(%%rdi), %%rsi\n\t"
		"movq 64(%%rdi), %%r8\n\tmovq 72(%%rdi), %%r9\n\tmovq 80(%%rdi), %%r10\n\t"
		"movq 88(%%rdi), %%r11\n\tmovq 96(%%rdi), %%r12\n\tmovq 104(%%rdi), %%r13\n\t"
		"movq 112(%%rdi), %%r14\n\tmovq 120(%%rdi), %%r15\n\tmovq 56(%%rdi), %%rdi\n\t"
		"popfq\n"
		/* Nothing here changes flags. */
		"1:\tleaq -1(%%rcx), %%rcx\n\tjrcxz 2f\n\tjmp 1b\n"
		"2:\tpushfq\n\tpush %%rdi\n\t"
		"movq 16(%%rsp), %%rdi\n\t"
		"movq %%rax, 128(%%rdi)\n\tmovq %%rcx, 136(%%rdi)\n\tmovq %%rdx, 144(%%rdi)\n\t"
		"movq %%rbx, 152(%%rdi)\n\tmovq %%rbp, 168(%%rdi)\n\tmovq %%rsi, 176(%%rdi)\n\t"
		"movq %%r8, 192(%%rdi)\n\tmovq %%r9, 200(%%rdi)\n\tmovq %%r10, 208(%%rdi)\n\t"
		"movq %%r11, 216(%%rdi)\n\tmovq %%r12, 224(%%rdi)\n\tmovq %%r13, 232(%%rdi)\n\t"
		"movq %%r14, 240(%%rdi)\n\tmovq %%r15, 248(%%rdi)\n\t"
		"popq 184(%%rdi)\n\tpopq 264(%%rdi)\n\tmovq %%rsp, 160(%%rdi)\n\t"
		"cld\n\t"
		"pop %%rdi\n\tpop %%r15\n\tpop %%r14\n\tpop %%r13\n\tpop %%r12\n\tpop %%rbx\n\t"
		"pop %%rbp"
		: "+D"(s)
		:
		: "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "cc", "memory");
}

/* Returns a different value in each turn; the values of all registers differ in all 64 bits. */
static inline __attribute__((always_inline)) u64 selfcheck_pattern(u64 turn, u64 i)
{
	return (turn * 0x9e3779b97f4a7c15ul + i + 1) * 0xbf58476d1ce4e5b9ul ^ i << 56;
}

/* Runs one turn: sets all registers, spins, and compares them. */
static inline __attribute__((always_inline)) void selfcheck_turn(struct selfcheck *s)
{
	for (u64 i = 0; i < SELFCHECK_GPRS; i++)
		s->put[i] = selfcheck_pattern(s->turns, i);
	s->put[SELFCHECK_RCX] = s->spins;
	s->put_flags = s->put[0] & SELFCHECK_FLAGS;
	/*
	 * Bit 1 is always set; interrupts stay enabled, because popf in ring 3 does not change
	 * that.
	 */
	s->put_flags |= 0x202;
	if (s->with_fx)
		__asm__ volatile("fxrstor64 %0" : : "m"(s->fx_put));
	selfcheck_spin(s);
	if (s->with_fx)
		__asm__ volatile("fxsave64 %0" : "=m"(s->fx_got));
	s->put[SELFCHECK_RCX] = 0;
	if (s->spoil && s->turns == s->spoil)
		s->put[0] ^= 1;
	for (u64 i = 0; i < SELFCHECK_GPRS; i++)
		selfcheck_differ(s, i, s->put[i], s->got[i]);
	selfcheck_differ(s, SELFCHECK_AT_FLAGS, s->put_flags & SELFCHECK_FLAGS,
			 s->got_flags & SELFCHECK_FLAGS);
	s->turns++;
}

/* Runs turns in ring 3 until s->end cycles have passed. Returns the number of turns. */
u64 selfcheck_user(struct selfcheck *s);
/* Runs mode=selfcheck for `seconds` and prints the results. */
void selfcheck_run(const char *line, u64 khz, u64 seconds);

#endif
