// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks and page tables that attack the sampler: stack and frame pointers that lead to registers,
 * out of memory, in circles; tables that change during a walk; code that changes.
 */
#include "villain.h"

#define CYCLES 24000000ul /* about 10 ms */
#define MSR_GS_BASE 0xc0000101u
#define MSR_KERNEL_GS_BASE 0xc0000102u
#define PT_ALL 0x63ul
#define PT_LARGE 0xe3ul
/* Our slot of the top-level table, and the address range that it maps. */
#define SLOT 3u
#define ALIAS ((u64)SLOT << 39)
#define NOT_CANONICAL 0x8000000000000000ul

extern u64 boot_pml4[];
void stack_spin(u64 rsp, u64 rbp, u64 cycles);
void stack_spin_flip(u64 rsp, u64 cycles, u64 *entry, const u64 *values, u64 n);
void stack_spin_cr3(u64 rsp, u64 cycles, u64 a, u64 b);
void stack_spin_modified(u64 cycles);

static int stack_works(void)
{
	return 1;
}

static int sample_with(u64 rsp, u64 rbp)
{
	stack_spin(rsp, rbp, CYCLES);
	return 0;
}

static u64 frames(void)
{
	return KERNEL_MAP + BIG_BUFFER;
}

/* Sets frame i of BIG_BUFFER: the frame above it, and its return address. */
static void set_frame(u32 i, u64 up, u64 returns)
{
	u64 *f = at(BIG_BUFFER + 16ul * i);

	f[0] = up;
	f[1] = returns;
}

static u64 somewhere(void)
{
	return (u64)&stack_spin + 9;
}

static int frame_is_itself(struct vdev *d)
{
	(void)d;
	set_frame(0, frames(), somewhere());
	return sample_with(frames(), frames());
}

static int frames_in_circle(struct vdev *d)
{
	(void)d;
	for (u32 i = 0; i < 3; i++)
		set_frame(i, frames() + 16 * ((i + 1) % 3), somewhere());
	return sample_with(frames(), frames());
}

static int frames_downwards(struct vdev *d)
{
	(void)d;
	for (u32 i = 0; i < 1000; i++)
		set_frame(i, frames() + 16ul * (i ? i - 1 : 999), somewhere());
	return sample_with(frames(), frames() + 16 * 500);
}

static int frames_many(struct vdev *d)
{
	(void)d;
	for (u32 i = 0; i < 4000; i++)
		set_frame(i, frames() + 16ul * (i + 1), somewhere());
	return sample_with(frames(), frames());
}

static int returns_nowhere(struct vdev *d)
{
	static const u64 places[] = { 0, 1, ~0ul, NOT_CANONICAL, 1ul << 47, LAPIC, 0xfff };

	(void)d;
	for (u32 i = 0; i < 64; i++)
		set_frame(i, frames() + 16ul * (i + 1), i & 1 ? somewhere() : places[i / 2 % 7]);
	return sample_with(frames(), frames());
}

static int returns_to_data(struct vdev *d)
{
	(void)d;
	for (u32 i = 0; i < 64; i++)
		set_frame(i, frames() + 16ul * (i + 1), frames() + i);
	return sample_with(frames(), frames());
}

static int frame_unaligned(struct vdev *d)
{
	(void)d;
	set_frame(0, frames() + 33, somewhere());
	return sample_with(frames() + 1, frames() + 5);
}

static int frame_at_top(struct vdev *d)
{
	(void)d;
	return sample_with(~0ul - 7, ~0ul - 7);
}

static int frame_wraps(struct vdev *d)
{
	(void)d;
	return sample_with(~0ul, ~0ul);
}

static int stack_at_0(struct vdev *d)
{
	(void)d;
	return sample_with(0, 0);
}

static int stack_not_canonical(struct vdev *d)
{
	(void)d;
	return sample_with(NOT_CANONICAL, NOT_CANONICAL + 64);
}

static int stack_in_registers(struct vdev *d)
{
	(void)d;
	return sample_with(DEVICES + 0x1000, DEVICES + 0x1000);
}

static int stack_in_apic(struct vdev *d)
{
	(void)d;
	return sample_with(LAPIC + 0x80, LAPIC + 0x80);
}

static int stack_in_ecam(struct vdev *d)
{
	(void)d;
	return sample_with(PCI_ECAM, PCI_ECAM + 64);
}

static int stack_behind_ram(struct vdev *d)
{
	(void)d;
	return sample_with(KERNEL_MAP + RAM_END, KERNEL_MAP + RAM_END + 64);
}

static int stack_across_end(struct vdev *d)
{
	(void)d;
	return sample_with(KERNEL_MAP + RAM_END - 64, KERNEL_MAP + RAM_END - 8);
}

static int stack_in_tables(struct vdev *d)
{
	(void)d;
	return sample_with((u64)boot_pml4, (u64)boot_pml4 + 8);
}

static int stack_in_code(struct vdev *d)
{
	(void)d;
	return sample_with((u64)&stack_spin, (u64)&stack_spin);
}

/* -- tables ------------------------------------------------------------------------------------------------ */

/*
 * Maps ALIAS + 0 to a page of BIG_BUFFER through our own tables. Returns the entry of a level (4 to
 * 1).
 */
static u64 *alias_entry(u32 level)
{
	u64 *table[3];

	for (u32 i = 0; i < 3; i++) {
		table[i] = at(SCRATCH_TABLES + 0x1000ul * i);
		memset(table[i], 0, 0x1000);
	}
	boot_pml4[SLOT] = SCRATCH_TABLES | PT_ALL;
	table[0][0] = (SCRATCH_TABLES + 0x1000) | PT_ALL;
	table[1][0] = (SCRATCH_TABLES + 0x2000) | PT_ALL;
	table[2][0] = BIG_BUFFER | PT_ALL;
	return level == 4 ? &boot_pml4[SLOT] : &table[3 - level][0];
}

static int flip(u32 level)
{
	u64 *entry = alias_entry(level), before = *entry;
	const u64 values[] = { before,
			       0,
			       RAM_END | PT_ALL,
			       before | 0x80,
			       DEVICES | PT_ALL,
			       before,
			       ~0ul,
			       ((u64)boot_pml4 - KERNEL_MAP) | PT_ALL,
			       0xffffffffff000 | PT_ALL,
			       SCRATCH_TABLES | PT_ALL };

	for (u32 i = 0; i < 256; i++)
		set_frame(i, ALIAS + 16ul * (i + 1), somewhere());
	stack_spin_flip(ALIAS, CYCLES, entry, values, ARRAY_SIZE(values));
	boot_pml4[SLOT] = 0;
	__asm__ volatile("movq %%cr3, %%rax\n\tmovq %%rax, %%cr3" : : : "rax", "memory");
	return 0;
}

static int flips_level_4(struct vdev *d)
{
	(void)d;
	return flip(4);
}

static int flips_level_3(struct vdev *d)
{
	(void)d;
	return flip(3);
}

static int flips_level_2(struct vdev *d)
{
	(void)d;
	return flip(2);
}

static int flips_level_1(struct vdev *d)
{
	(void)d;
	return flip(1);
}

/* The top-level table is in its own slot: each address there is a table, too. */
static int table_in_itself(struct vdev *d)
{
	u64 place = ALIAS | (u64)SLOT << 30 | (u64)SLOT << 21 | (u64)SLOT << 12;

	(void)d;
	boot_pml4[SLOT] = ((u64)boot_pml4 - KERNEL_MAP) | PT_ALL;
	sample_with(place, place + 8);
	boot_pml4[SLOT] = 0;
	return 0;
}

static int tables_in_registers(struct vdev *d)
{
	(void)d;
	boot_pml4[SLOT] = LAPIC | PT_ALL;
	sample_with(ALIAS, ALIAS + 8);
	boot_pml4[SLOT] = DEVICES | PT_ALL;
	sample_with(ALIAS, ALIAS + 8);
	boot_pml4[SLOT] = 0;
	return 0;
}

static int cr3_changes(struct vdev *d)
{
	u64 other = SCRATCH_TABLES + 0x8000, cr3;

	(void)d;
	__asm__ volatile("movq %%cr3, %0" : "=r"(cr3));
	memcpy(at(other), boot_pml4, 0x1000);
	/* The low half is missing, or is other memory. */
	((u64 *)at(other))[0] = 0;
	stack_spin_cr3(DEVICES + 64, CYCLES, cr3, other);
	return 0;
}

static int code_changes(struct vdev *d)
{
	(void)d;
	stack_spin_modified(CYCLES);
	return 0;
}

static int gs_bases(struct vdev *d)
{
	static const u64 bases[] = { RAM_END, ~0ul,	  LAPIC,
				     DEVICES, KERNEL_MAP, KERNEL_MAP + RAM_END,
				     1 };

	(void)d;
	for (u32 i = 0; i < ARRAY_SIZE(bases); i++) {
		try_wrmsr(MSR_GS_BASE, bases[i]);
		try_wrmsr(MSR_KERNEL_GS_BASE, bases[6 - i]);
		stack_spin(frames(), frames(), CYCLES / 4);
	}
	wrmsr(MSR_GS_BASE, 0);
	wrmsr(MSR_KERNEL_GS_BASE, 0);
	return 0;
}

/* -- ring 3 ---------------------------------------------------------------------------------------------------- */

static int user_spin(u64 rsp, u64 rbp)
{
	u64 *box = (u64 *)user_stack;

	/* start.S has its page mapped for ring 3. */
	box[0] = rsp;
	box[1] = rbp;
	enter_user(0, CYCLES);
	return 0;
}

static int user_frame_is_itself(struct vdev *d)
{
	u64 *f = (u64 *)(user_stack + 64);

	(void)d;
	f[0] = (u64)f;
	f[1] = 0x400010;
	return user_spin((u64)f, (u64)f);
}

static int user_stack_in_kernel(struct vdev *d)
{
	(void)d;
	return user_spin((u64)boot_pml4, KERNEL_MAP);
}

static int user_stack_at_0(struct vdev *d)
{
	(void)d;
	return user_spin(0, 0);
}

static int user_stack_not_canonical(struct vdev *d)
{
	(void)d;
	return user_spin(NOT_CANONICAL, 1ul << 47);
}

static int user_stack_wraps(struct vdev *d)
{
	(void)d;
	return user_spin(~0ul - 3, ~0ul - 3);
}

static int user_stack_in_registers(struct vdev *d)
{
	(void)d;
	return user_spin(LAPIC, DEVICES);
}

static const struct attack attacks[] = {
	{ "frame is-itself", PASS, frame_is_itself },
	{ "frame circle", PASS, frames_in_circle },
	{ "frame downwards", PASS, frames_downwards },
	{ "frame many", PASS, frames_many },
	{ "frame returns-nowhere", PASS, returns_nowhere },
	{ "frame returns-to-data", PASS, returns_to_data },
	{ "frame unaligned", PASS, frame_unaligned },
	{ "frame at-top", PASS, frame_at_top },
	{ "frame wraps", PASS, frame_wraps },
	{ "stack at-0", PASS, stack_at_0 },
	{ "stack not-canonical", PASS, stack_not_canonical },
	{ "stack in-registers", PASS, stack_in_registers },
	{ "stack in-apic", PASS, stack_in_apic },
	{ "stack in-ecam", PASS, stack_in_ecam },
	{ "stack behind-ram", PASS, stack_behind_ram },
	{ "stack across-end", PASS, stack_across_end },
	{ "stack in-tables", PASS, stack_in_tables },
	{ "stack in-code", PASS, stack_in_code },
	{ "tables flip-level-4", PASS, flips_level_4 },
	{ "tables flip-level-3", PASS, flips_level_3 },
	{ "tables flip-level-2", PASS, flips_level_2 },
	{ "tables flip-level-1", PASS, flips_level_1 },
	{ "tables in-themselves", PASS, table_in_itself },
	{ "tables in-registers", PASS, tables_in_registers },
	{ "tables cr3-changes", PASS, cr3_changes },
	{ "code changes", PASS, code_changes },
	{ "gs bases", PASS, gs_bases },
	{ "user frame-is-itself", PASS, user_frame_is_itself },
	{ "user stack-in-kernel", PASS, user_stack_in_kernel },
	{ "user stack-at-0", PASS, user_stack_at_0 },
	{ "user stack-not-canonical", PASS, user_stack_not_canonical },
	{ "user stack-wraps", PASS, user_stack_wraps },
	{ "user stack-in-registers", PASS, user_stack_in_registers },
};

const struct attack_class stack_class = { "stack", ATTACKS(attacks), ON_NONE, stack_works };
