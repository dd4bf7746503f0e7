// SPDX-License-Identifier: GPL-2.0-or-later
/* mode=selfcheck: ring 0's part, and the results. See selfcheck.h. */
#include "selfcheck.h"

#define MSR_FS_BASE 0xc0000100u
#define MSR_KERNEL_GS_BASE 0xc0000102u
#define CR0_EM (1ul << 2)
#define CR0_TS (1ul << 3)
#define CR0_MP (1ul << 1)
#define CR4_OSFXSR (1ul << 9)
#define CR4_OSXMMEXCPT (1ul << 10)
#define TURN_MS 2u /* about; samples nearly always hit a turn */
#define VISIT_MS 50u

extern u8 _text[], _etext[], boot_pml4[], page_tables_end[];

static struct selfcheck kernel_check;

static void fpu_on(void)
{
	u64 cr0, cr4;

	__asm__ volatile("movq %%cr0, %0" : "=r"(cr0));
	__asm__ volatile("movq %0, %%cr0" : : "r"((cr0 & ~(CR0_EM | CR0_TS)) | CR0_MP));
	__asm__ volatile("movq %%cr4, %0" : "=r"(cr4));
	__asm__ volatile("movq %0, %%cr4" : : "r"(cr4 | CR4_OSFXSR | CR4_OSXMMEXCPT));
}

demo_function void selfcheck_kernel_turn(struct selfcheck *s);
demo_function void selfcheck_kernel_turn(struct selfcheck *s)
{
	u64 cr2 = selfcheck_pattern(s->turns, 20) & 0x7fffffffffff, gs = cr2 ^ 0x123456789a8, got;

	demo_frame();
	__asm__ volatile("movq %0, %%cr2" : : "r"(cr2));
	wrmsr(MSR_KERNEL_GS_BASE, gs);
	selfcheck_turn(s);
	__asm__ volatile("movq %%cr2, %0" : "=r"(got));
	selfcheck_differ(s, SELFCHECK_AT_CR2, cr2, got);
	selfcheck_differ(s, SELFCHECK_AT_MSR, gs, rdmsr(MSR_KERNEL_GS_BASE));
	selfcheck_differ(s, SELFCHECK_AT_MSR, (u64)user_box(), rdmsr(MSR_FS_BASE));
}

/* Computes the number of spins that makes a turn last about TURN_MS. */
static void find_spins(struct selfcheck *s, u64 cycles)
{
	u64 start;

	s->spins = 8;
	do {
		s->spins *= 2;
		s->put[SELFCHECK_RCX] = s->spins;
		start = rdtsc();
		selfcheck_spin(s);
	} while (rdtsc() - start < cycles && s->spins < 1ul << 32);
}

/* Sums text and page tables, which nothing changes. */
static u64 checksum(const u8 *from, const u8 *to, u64 *bytes)
{
	u64 sum = 0;

	for (const u64 *p = (const u64 *)from; (const u8 *)(p + 1) <= to; p++)
		sum = (sum ^ *p) * 0x100000001b3ul;
	*bytes += (u64)(to - from);
	return sum;
}

static void result(const char *ring, const struct selfcheck *s)
{
	put_string("selfcheck ");
	put_string(ring);
	put_string(" turns ");
	put_number(s->turns);
	put_string(" differences ");
	put_number(s->differences);
	put_string("\n");
	if (!s->differences)
		return;
	put_string("selfcheck first at ");
	put_number(s->where);
	put_string(": expected ");
	put_hex(s->put_value);
	put_string(", found ");
	put_hex(s->got_value);
	put_string("\n");
}

/* Like find_spins(), for ring 3, where registers start from 0 again. */
static void user_begin(struct selfcheck *u, u64 khz)
{
	for (u64 *p = (u64 *)u; p < (u64 *)(u + 1); p++)
		*p = 0;
	u->with_fx = 1;
	u->spins = 1;
	do {
		u64 spent;

		u->spins *= 2;
		u->turns = u->differences = u->end = 0;
		spent = enter_user(USER_SELFCHECK, 0);
		if (spent >= khz * TURN_MS)
			break;
	} while (u->spins < 1ul << 32);
	u->turns = u->differences = 0;
	u->end = khz * VISIT_MS;
}

void selfcheck_run(const char *line, u64 khz, u64 seconds)
{
	struct selfcheck *u = (struct selfcheck *)user_box(), *k = &kernel_check;
	u64 start, bytes = 0, again = 0, text, tables, differences;

	fpu_on();
	wrmsr(MSR_FS_BASE, (u64)u);
	k->put_flags = 0x202;
	find_spins(k, khz * TURN_MS);
	user_begin(u, khz);
	u->spoil = k->spoil = option_number(line, "spoil=", 0);
	text = checksum(_text, _etext, &bytes);
	tables = checksum(boot_pml4, page_tables_end, &bytes);
	put_string("demo: start\n");
	start = rdtsc();
	while (rdtsc() - start < khz * 1000 * seconds) {
		u64 visit = rdtsc();

		enter_user(USER_SELFCHECK, 0);
		while (rdtsc() - visit < 2 * khz * VISIT_MS)
			selfcheck_kernel_turn(k);
	}
	differences = (text != checksum(_text, _etext, &again)) +
		      (tables != checksum(boot_pml4, page_tables_end, &again));
	result("ring3", u);
	result("ring0", k);
	put_string("selfcheck memory bytes ");
	put_number(bytes);
	put_string(" differences ");
	put_number(differences);
	put_string("\n");
}
