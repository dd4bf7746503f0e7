// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mode=pvclock: the times that KVM reports to its guests (Documentation/virt/kvm/x86/cpuid.rst,
 * msr.rst). For seconds=N ring 3 spins in eight slices; around them it prints
 *
 *   pvclock: features <CPUID 0x40000001 EAX>
 *   pvclock: now <ns since 1970 by kvm-clock> tsc <ns by the TSC> steal <ns stolen, or ->
 *
 * The first line's "tsc" is 0; kvm-clock runs with the host's clock, the TSC with its own
 * frequency.
 */
#include "demo.h"

#define MSR_WALL_CLOCK 0x4b564d00u
#define MSR_SYSTEM_TIME 0x4b564d01u
#define MSR_STEAL_TIME 0x4b564d03u
#define MSR_ENABLE 1u
#define FEATURES_LEAF 0x40000001u
#define F_CLOCKSOURCE2 (1u << 3)
#define F_STEAL_TIME (1u << 5)
#define SLICES 8u

struct wall_clock {
	volatile u32 version, seconds, ns;
};

/* Written by the host; version is odd meanwhile. */
static struct {
	volatile u32 version, pad;
	volatile u64 tsc, system_ns;
	volatile u32 mul;
	volatile signed char shift;
	volatile u8 flags, pad1[2];
} system_time __attribute__((aligned(64)));

static struct {
	volatile u64 ns;
	volatile u32 version, flags;
	volatile u32 pad[12];
} steal_time __attribute__((aligned(64)));

static struct wall_clock wall __attribute__((aligned(64)));

static u64 system_ns(void)
{
	u64 ns, delta;
	u32 version;

	do {
		version = system_time.version;
		delta = rdtsc() - system_time.tsc;
		delta = system_time.shift < 0 ? delta >> -system_time.shift
					      : delta << system_time.shift;
		ns = system_time.system_ns +
		     (u64)((unsigned __int128)delta * system_time.mul >> 32);
	} while ((version & 1) || version != system_time.version);
	return ns;
}

static void now_print(u64 start, u64 khz, int has_steal)
{
	u64 ns = wall.seconds * 1000000000ul + wall.ns + system_ns(), tsc = rdtsc() - start;
	u64 steal = steal_time.ns;

	put_string("pvclock: now ");
	put_number(ns);
	put_string(" tsc ");
	put_number(tsc * 1000000 / khz); /* enough for two hours */
	put_string(" steal ");
	if (has_steal)
		put_number(steal);
	else
		put_string("-");
	put_string("\n");
}

void pvclock_run(u64 khz, u64 seconds)
{
	u32 features = cpuid(FEATURES_LEAF).a;
	u64 start;

	put_string("pvclock: features ");
	put_hex(features);
	put_string("\n");
	if (!(features & F_CLOCKSOURCE2))
		return;
	wrmsr(MSR_WALL_CLOCK, (u64)&wall - KERNEL_MAP);
	wrmsr(MSR_SYSTEM_TIME, ((u64)&system_time - KERNEL_MAP) | MSR_ENABLE);
	if (features & F_STEAL_TIME)
		wrmsr(MSR_STEAL_TIME, ((u64)&steal_time - KERNEL_MAP) | MSR_ENABLE);
	start = rdtsc();
	now_print(start, khz, features & F_STEAL_TIME);
	for (u32 i = 0; i < SLICES; i++) {
		enter_user(USER_LONG, khz * 1000 * seconds / SLICES);
		now_print(start, khz, features & F_STEAL_TIME);
	}
}
