// SPDX-License-Identifier: GPL-2.0-or-later
/* MSRs and interrupt controllers, some of which cause exits to the VMM. */
#include "villain.h"

#define MSR_APIC_BASE 0x1bu
#define MSR_PAT 0x277u
#define MSR_TSC_DEADLINE 0x6e0u
#define MSR_X2APIC 0x800u
#define MSR_EFER 0xc0000080u
#define MSR_STAR 0xc0000081u
#define MSR_LSTAR 0xc0000082u
#define MSR_SFMASK 0xc0000084u
#define MSR_GS_BASE 0xc0000101u
#define MSR_KVM 0x4b564d00u

#define APIC_VERSION 0x30u
#define APIC_TPR 0x80u
#define APIC_LDR 0xd0u
#define APIC_DFR 0xe0u
#define APIC_SVR 0xf0u
#define APIC_ESR 0x280u
#define APIC_ICR 0x300u
#define APIC_ICR_HIGH 0x310u
#define APIC_LVT_TIMER 0x320u
#define APIC_TIMER_COUNT 0x380u
#define APIC_TIMER_DIVIDE 0x3e0u
#define LVT_MASKED 0x10000u

static int cpu_works(void)
{
	u32 version = read32(LAPIC + APIC_VERSION) & 0xff;

	write32(LAPIC + APIC_TPR, 0x20);
	if (read32(LAPIC + APIC_TPR) != 0x20)
		return 0;
	write32(LAPIC + APIC_TPR, 0);
	return version >= 0x10 && version < 0x20;
}

static int msrs_read(struct vdev *d)
{
	static const struct {
		u32 first, n;
	} ranges[] = { { 0, 0x200 },	      { 0x200, 0x100 },	     { 0x400, 0x80 },
		       { MSR_X2APIC, 0x100 }, { 0x40000000, 0x120 }, { MSR_KVM, 16 },
		       { 0xc0000080, 0x20 },  { 0xc0000100, 8 },     { 0xc0010000, 0x40 },
		       { 0xc0011020, 16 },    { 0x7ffffff0, 32 },    { 0xfffffff0, 16 } };
	u64 v;

	(void)d;
	for (u32 i = 0; i < ARRAY_SIZE(ranges); i++)
		for (u32 k = 0; k < ranges[i].n; k++)
			try_rdmsr(ranges[i].first + k, &v);
	return 0;
}

/* MSRs that no processor has: an exit to the VMM if it requested these. */
static int msrs_unknown(struct vdev *d)
{
	u64 v;
	int wrong = 0;

	(void)d;
	for (u32 i = 0; i < 200; i++) {
		u32 msr = 0x12340000 + (u32)(random64() % 0x10000);

		wrong |= try_wrmsr(msr, random64());
		wrong |= try_rdmsr(msr, &v);
	}
	return wrong;
}

static int msr_entry_points(struct vdev *d)
{
	static const u64 values[] = {
		0, ~0ul, 1ul << 47, 0x7fffffffffff, 1ul << 63, RAM_END, LAPIC
	};
	static const u32 msrs[] = { MSR_STAR, MSR_LSTAR, MSR_SFMASK, 0xc0000083 };

	(void)d;
	for (u32 m = 0; m < ARRAY_SIZE(msrs); m++) {
		u64 before;

		if (!try_rdmsr(msrs[m], &before))
			continue;
		for (u32 i = 0; i < ARRAY_SIZE(values); i++)
			try_wrmsr(msrs[m], values[i]);
		try_wrmsr(msrs[m], before);
	}
	return 0;
}

/* KVM decides whether they are refused. */
static int msr_reserved_bits(struct vdev *d)
{
	u64 efer = rdmsr(MSR_EFER), pat = 0, v;

	(void)d;
	try_rdmsr(MSR_PAT, &pat);
	try_wrmsr(MSR_EFER, efer | 1ul << 40);
	try_wrmsr(MSR_PAT, 0x0202020202020202);
	try_wrmsr(MSR_PAT, pat);
	try_wrmsr(MSR_EFER, efer);
	return !try_rdmsr(MSR_EFER, &v) || v != efer;
}

static int msr_apic_base(struct vdev *d)
{
	u64 base = rdmsr(MSR_APIC_BASE), v;

	(void)d;
	try_wrmsr(MSR_APIC_BASE, base | 0xff);
	try_wrmsr(MSR_APIC_BASE, base | 1ul << 62);
	try_wrmsr(MSR_APIC_BASE, base & ~0x800ul ? (base & ~0x800ul) | 0x400 : 0);
	try_wrmsr(MSR_APIC_BASE, base);
	return !try_rdmsr(MSR_APIC_BASE, &v) || v != base;
}

/* These do not exist without x2APIC mode. */
static int msr_x2apic(struct vdev *d)
{
	u64 v;
	int wrong = 0;

	(void)d;
	for (u32 i = 0; i < 0x40; i++) {
		wrong |= try_rdmsr(MSR_X2APIC + i, &v);
		/* Skips the register that sends interrupts, in case it exists. */
		if (i != 0x30)
			wrong |= try_wrmsr(MSR_X2APIC + i, 0);
	}
	return wrong;
}

/*
 * Structures that KVM writes, placed outside of memory: clocks, stolen time, page faults, ends of
 * interrupts.
 */
static int msr_kvm_addresses(struct vdev *d)
{
	static const u32 msrs[] = { 0x11, 0x12, MSR_KVM, MSR_KVM + 1, MSR_KVM + 3, MSR_KVM + 4 };
	static const u64 places[] = { RAM_END, ~0ul & ~63ul, 1ul << 52, DEVICES,
				      LAPIC,   RAM_END - 8,  0x3c };

	(void)d;
	for (u32 m = 0; m < ARRAY_SIZE(msrs); m++) {
		for (u32 i = 0; i < ARRAY_SIZE(places); i++) {
			try_wrmsr(msrs[m], places[i] | 1);
			wait_shortly();
		}
		try_wrmsr(msrs[m], 0);
	}
	return 0;
}

static int apic_registers(struct vdev *d)
{
	u32 svr = read32(LAPIC + APIC_SVR);

	(void)d;
	for (u32 off = 0; off < 0x1000; off += 16)
		read32(LAPIC + off);
	write32(LAPIC + APIC_SVR, 0x1ff);
	for (u32 i = 0; i < 50; i++) {
		write32(LAPIC + APIC_LDR, (u32)random64());
		write32(LAPIC + APIC_DFR, (u32)random64());
		write32(LAPIC + APIC_ESR, (u32)random64());
		write32(LAPIC + APIC_VERSION, (u32)random64());
		write32(LAPIC + 0x3f0, (u32)random64());
	}
	write32(LAPIC + APIC_SVR, svr);
	return 0;
}

static int apic_timer_fastest(struct vdev *d)
{
	(void)d;
	write32(LAPIC + APIC_SVR, 0x1ff);
	write32(LAPIC + APIC_LVT_TIMER, LVT_MASKED | 0x20000 | 0x40); /* periodic */
	write32(LAPIC + APIC_TIMER_DIVIDE, 0xb);
	write32(LAPIC + APIC_TIMER_COUNT, 1);
	for (u32 i = 0; i < 5; i++)
		wait_shortly();
	write32(LAPIC + APIC_TIMER_COUNT, 0);
	try_wrmsr(MSR_TSC_DEADLINE, 1);
	try_wrmsr(MSR_TSC_DEADLINE, ~0ul);
	return 0;
}

/* Sends invalid vectors to a processor that does not exist. */
static int apic_interrupts_sent(struct vdev *d)
{
	(void)d;
	write32(LAPIC + APIC_SVR, 0x1ff);
	for (u32 i = 0; i < 40; i++) {
		write32(LAPIC + APIC_ICR_HIGH, (5 + i) << 24);
		write32(LAPIC + APIC_ICR, i);
	}
	write32(LAPIC + APIC_ICR_HIGH, 0);
	return 0;
}

static int ioapic_registers(struct vdev *d)
{
	(void)d;
	for (u32 i = 0; i < 256; i++) {
		write32(IOAPIC, i);
		read32(IOAPIC + 0x10);
		/* Entries stay masked. */
		if (i < 0x10 || i >= 0x40)
			write32(IOAPIC + 0x10, (u32)random64());
		else if (!(i & 1))
			write32(IOAPIC + 0x10, LVT_MASKED | (u32)(random64() & 0xffff));
	}
	for (u32 off = 0; off < 0x100; off += 8)
		read32(IOAPIC + off);
	return 0;
}

/* No device answers here, and each width reads as all ones. */
static int holes(struct vdev *d)
{
	static const u64 places[] = { 0xd0000000, 0xe0100000, 0xfeaff000, 0xfed00000, 0xfeffff00 };
	int wrong = 0;

	(void)d;
	for (u32 i = 0; i < ARRAY_SIZE(places); i++) {
		wrong |= read8(places[i]) != 0xff || read16(places[i]) != 0xffff;
		wrong |= read32(places[i]) != 0xffffffff || read64(places[i]) != ~0ul;
		write8(places[i] + 1, 1);
		write64(places[i], random64());
		write64(places[i] + 3, random64());
	}
	return wrong;
}

static int cpuid_leaves(struct vdev *d)
{
	(void)d;
	for (u32 leaf = 0; leaf < 0x30; leaf++) {
		cpuid(leaf);
		cpuid(0x40000000 + leaf);
		cpuid(0x80000000 + leaf);
		cpuid((u32)random64());
	}
	return 0;
}

static const struct attack attacks[] = {
	{ "msr read-all", PASS, msrs_read },
	{ "msr unknown", PASS, msrs_unknown },
	{ "msr entry-points", PASS, msr_entry_points },
	{ "msr reserved-bits", PASS, msr_reserved_bits },
	{ "msr apic-base", PASS, msr_apic_base },
	{ "msr x2apic", PASS, msr_x2apic },
	{ "msr kvm-addresses", PASS, msr_kvm_addresses },
	{ "apic registers", PASS, apic_registers },
	{ "apic timer-fastest", PASS, apic_timer_fastest },
	{ "apic interrupts-sent", PASS, apic_interrupts_sent },
	{ "ioapic registers", PASS, ioapic_registers },
	{ "mmio holes", PASS, holes },
	{ "cpuid leaves", PASS, cpuid_leaves },
};

const struct attack_class cpu_class = { "cpu", ATTACKS(attacks), ON_NONE, cpu_works };
