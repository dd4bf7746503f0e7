// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * SIMD instructions in ring 0 whose memory operand matters: at the end of mapped memory, in
 * read-only memory or a device, and in memory that a second vCPU changes meanwhile.
 *
 * The operand is in two pages of a window that are mapped as an attack needs it.
 */
#include "villain.h"

#define WINDOW 0x20000000ul /* a virtual address that nothing else uses */
#define LARGE_PAGE 0x200000ul
#define PT_PAGE SCRATCH_TABLES
#define PTE_READ 1ul
#define PTE_WRITE 3ul
#define CR0_WP 0x10000ul
#define FIRST BIG_BUFFER /* physical: the first page of the window */
#define SECOND (BIG_BUFFER + 0x10000)
#define HOLE 0xd0000000ul /* no device is there */
#define OVER 8u		  /* bytes of an operand in the first page */
#define ROUNDS 200u
#define FEATURE_MOVDIR64B (1u << 28) /* CPUID 7.0, ECX */

extern u64 boot_pml4[];

/* Address of the operand of the functions below. */
static u64 operand;
static u64 seen[2];

static void window(u64 first, u64 second)
{
	u64 *pdpt = at(boot_pml4[0] & ~0xffful), *pd = at(pdpt[0] & ~0xffful), *pt = at(PT_PAGE);

	pt[0] = first;
	pt[1] = second;
	pd[WINDOW / LARGE_PAGE] = PT_PAGE | PTE_WRITE;
	__asm__ volatile("invlpg (%0); invlpg (%1)"
			 :
			 : "r"(WINDOW), "r"(WINDOW + 0x1000)
			 : "memory");
}

static void window_close(void)
{
	u64 *pdpt = at(boot_pml4[0] & ~0xffful), *pd = at(pdpt[0] & ~0xffful);

	pd[WINDOW / LARGE_PAGE] = 0;
	__asm__ volatile("invlpg (%0); invlpg (%1)"
			 :
			 : "r"(WINDOW), "r"(WINDOW + 0x1000)
			 : "memory");
}

#define LOADS(name, text)                                                              \
	static void name(void)                                                         \
	{                                                                              \
		__asm__ volatile(text "; movq %%xmm5, %1; punpckhqdq %%xmm5, %%xmm5; " \
				      "movq %%xmm5, %2"                                \
				 : "+r"(operand), "=&r"(seen[0]), "=&r"(seen[1])       \
				 :                                                     \
				 : "memory");                                          \
	}
#define STORES(name, text)                                                                     \
	static void name(void)                                                                 \
	{                                                                                      \
		__asm__ volatile("pcmpeqb %%xmm6, %%xmm6; " text : : "r"(operand) : "memory"); \
	}

LOADS(load_movdqu, "movdqu (%0), %%xmm5")
LOADS(load_movups, "movups (%0), %%xmm5")
LOADS(load_lddqu, "lddqu (%0), %%xmm5")
LOADS(load_movhps, "pxor %%xmm5, %%xmm5; movhps 4(%0), %%xmm5") /* 8 bytes, over the end, too */
LOADS(load_movapd, "movapd (%0), %%xmm5")			/* raises #GP: it is not aligned */
STORES(store_movdqu, "movdqu %%xmm6, (%0)")
STORES(store_movups, "movups %%xmm6, (%0)")
STORES(store_movhps, "movhps %%xmm6, 4(%0)")
STORES(store_movapd, "movapd %%xmm6, (%0)") /* raises #GP, too */

static void (*const loads[])(void) = { load_movdqu, load_movups, load_lddqu, load_movhps };
static void (*const stores[])(void) = { store_movdqu, store_movups, store_movhps };

static void fill(void)
{
	simd_on();
	memset(at(FIRST), 0x11, 0x1000);
	memset(at(SECOND), 0x22, 0x1000);
	operand = WINDOW + 0x1000 - OVER;
}

static int is_filled(u64 page, u8 byte)
{
	for (u32 i = 0; i < 64; i++)
		if (read8((u64)at(page + (page == FIRST ? 0x1000 - 64 : 0) + i)) != byte)
			return 0;
	return 1;
}

/*
 * Each store raises an exception and changes nothing. KVM's own emulator may have written the part
 * in the first page by then; movhps is not executed by it.
 */
static int stores_fault(void)
{
	int wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(stores); i++) {
		fill();
		wrong |= try_call(stores[i]) || !is_filled(SECOND, 0x22);
		wrong |= stores[i] == store_movhps && !is_filled(FIRST, 0x11);
	}
	return wrong;
}

/* An access beyond the end of mapped memory raises an exception and changes nothing. */
static int past_the_end(struct vdev *d)
{
	int wrong = 0;

	(void)d;
	fill();
	window(FIRST | PTE_WRITE, SECOND | PTE_WRITE);
	for (u32 i = 0; i < ARRAY_SIZE(loads); i++)
		wrong |= !try_call(loads[i]);
	for (u32 i = 0; i < ARRAY_SIZE(stores); i++)
		wrong |= !try_call(stores[i]);
	wrong |= read64((u64)at(SECOND)) != ~0ul;
	fill();
	window(FIRST | PTE_WRITE, 0);
	for (u32 i = 0; i < ARRAY_SIZE(loads); i++)
		wrong |= try_call(loads[i]);
	wrong |= stores_fault();
	window(0, SECOND | PTE_WRITE);
	wrong |= stores_fault();
	window_close();
	return wrong;
}

static u64 cr0_write_protect(int on)
{
	u64 old, v;

	__asm__ volatile("mov %%cr0, %0" : "=r"(old));
	v = on ? old | CR0_WP : old & ~CR0_WP;
	__asm__ volatile("mov %0, %%cr0" : : "r"(v) : "memory");
	return old;
}

/* With CR0.WP ring 0 can read a read-only page, but not write it. */
static int read_only_page(struct vdev *d)
{
	u64 cr0 = cr0_write_protect(1);
	int wrong = 0;

	(void)d;
	fill();
	window(FIRST | PTE_WRITE, SECOND | PTE_READ);
	for (u32 i = 0; i < ARRAY_SIZE(loads); i++)
		wrong |= !try_call(loads[i]);
	wrong |= seen[1] != 0x2222222211111111; /* movhps was the last */
	wrong |= stores_fault();
	window_close();
	cr0_write_protect(cr0 & CR0_WP ? 1 : 0);
	return wrong;
}

/* movapd accepts no such address, wherever it is. */
static int unaligned(struct vdev *d)
{
	int wrong;

	(void)d;
	fill();
	window(FIRST | PTE_WRITE, SECOND | PTE_WRITE);
	wrong = try_call(load_movapd) || try_call(store_movapd);
	wrong |= !is_filled(FIRST, 0x11) || !is_filled(SECOND, 0x22);
	window_close();
	return wrong;
}

/* -- instructions that are in no table of vmm/pvm --------------------------------------------- */

static u64 destination; /* the operand is not in ModRM */

static void do_maskmovdqu(void)
{
	__asm__ volatile("pcmpeqb %%xmm6, %%xmm6; psllq $56, %%xmm6; pcmpeqb %%xmm7, %%xmm7; "
			 "maskmovdqu %%xmm6, %%xmm7"
			 :
			 : "D"(destination)
			 : "memory");
}

static void do_movdir64b(void)
{
	/* movdir64b (%rsi), %rax */
	__asm__ volatile(".byte 0x66, 0x0f, 0x38, 0xf8, 0x06"
			 :
			 : "a"(destination), "S"(at(SECOND))
			 : "memory");
}

/* It writes the 8th and the 16th byte, the second of which is beyond the end of the page. */
static int maskmovdqu(struct vdev *d)
{
	int wrong;

	(void)d;
	fill();
	window(FIRST | PTE_WRITE, SECOND | PTE_WRITE);
	destination = operand;
	wrong = !try_call(do_maskmovdqu) || read8(operand + 7) != 0xff ||
		read8(operand + 15) != 0xff;
	wrong |= read8(operand + 6) != 0x11 || read8(operand + 8) != 0x22 ||
		 read8(operand + 16) != 0x22;
	window(FIRST | PTE_WRITE, 0);
	wrong |= try_call(do_maskmovdqu);
	window_close();
	return wrong;
}

/* 64 bytes at once, to an aligned address; #UD if the processor lacks it. */
static int movdir64b(struct vdev *d)
{
	u32 a = 7, b, c = 0, dx;
	int wrong;

	(void)d;
	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(dx));
	fill();
	window(FIRST | PTE_WRITE, SECOND | PTE_WRITE);
	destination = WINDOW;
	if (c & FEATURE_MOVDIR64B)
		wrong = !try_call(do_movdir64b) || read64(WINDOW + 56) != 0x2222222222222222;
	else
		wrong = try_call(do_movdir64b) || read64(WINDOW + 56) != 0x1111111111111111;
	wrong |= read64(WINDOW + 64) != 0x1111111111111111;
	window_close();
	return wrong;
}

/* The operand is in no memory, and reads as ones. */
static int device_load(struct vdev *d)
{
	(void)d;
	simd_on();
	operand = HOLE - 4;
	return !try_call(load_movhps) || seen[1] != ~0ul;
}

/* -- a second vCPU changes the operand -------------------------------------------------------- */

static int race_bytes(struct vdev *d)
{
	static const u64 values[] = { 0x1111111111111111, 0x2222222222222222 };
	int wrong = 0;

	(void)d;
	fill();
	window(FIRST | PTE_WRITE, SECOND | PTE_WRITE);
	job_values(WINDOW + 0x1000, 8, values, 2);
	for (u32 i = 0; i < ROUNDS; i++) {
		wrong |= !try_call(loads[i % ARRAY_SIZE(loads)]);
		for (u32 k = 0; k < 8; k++)
			wrong |= (seen[1] >> 8 * k & 0xff) != 0x11 &&
				 (seen[1] >> 8 * k & 0xff) != 0x22;
		wrong |= !try_call(stores[i % ARRAY_SIZE(stores)]);
		memset((void *)(WINDOW + 0xff0), 0x11, 32);
	}
	job_end();
	window_close();
	return wrong;
}

/*
 * The page is mapped and unmapped, or read-only: there may be an exception, but nothing beside the
 * operand changes.
 */
static int race_mapping(struct vdev *d)
{
	static const u64 values[] = { SECOND | PTE_WRITE, 0, SECOND | PTE_READ, SECOND | PTE_WRITE,
				      0 };
	u64 *pt = at(PT_PAGE);
	int wrong;

	(void)d;
	fill();
	window(FIRST | PTE_WRITE, SECOND | PTE_WRITE);
	job_values((u64)&pt[1], 8, values, ARRAY_SIZE(values));
	for (u32 i = 0; i < ROUNDS; i++) {
		try_call(loads[i % ARRAY_SIZE(loads)]);
		try_call(stores[i % ARRAY_SIZE(stores)]);
		__asm__ volatile("invlpg (%0)" : : "r"(WINDOW + 0x1000) : "memory");
	}
	job_end();
	window_close();
	wrong = read8((u64)at(FIRST + 0x1000 - OVER - 1)) != 0x11;
	return wrong || read8((u64)at(SECOND + 16)) != 0x22;
}

/* The instruction changes before it is executed: loads and stores of the two halves in turn. */
static int race_code(struct vdev *d)
{
	static const u64 values[] = { 0x160f, 0x170f, 0x120f, 0x130f };
	static const u8 code[] = { 0x0f, 0x16, 0x28, 0xc3 }; /* movhps (%rax), %xmm5; ret */
	u8 *copy = at(SECOND + 0x1000);
	u64 place;

	(void)d;
	fill();
	window(FIRST | PTE_WRITE, SECOND | PTE_WRITE);
	memcpy(copy, code, sizeof(code));
	place = operand + 4;
	job_values((u64)copy, 2, values, ARRAY_SIZE(values));
	for (u32 i = 0; i < ROUNDS; i++)
		__asm__ volatile("call *%1" : : "a"(place), "r"(copy) : "memory");
	job_end();
	window_close();
	return read8((u64)at(FIRST + 0x1000 - 5)) != 0x11 || read8((u64)at(SECOND + 4)) != 0x22;
}

static const struct attack attacks[] = {
	{ "memory past-the-end", PASS, past_the_end },
	{ "memory read-only-page", PASS, read_only_page },
	{ "memory unaligned", PASS, unaligned },
};

const struct attack_class simd_memory_class = { "simd-memory", ATTACKS(attacks), ON_NONE,
						simd_works };

/* Each of these may end the run where ring 0 is interpreted: run only by name (attack=). */
static const struct attack refused[] = {
	{ "maskmovdqu", PASS, maskmovdqu },
	{ "movdir64b", PASS, movdir64b },
	{ "device-load", PASS, device_load },
};

const struct attack_class refused_class = { "refused", ATTACKS(refused), ON_NONE, simd_works };

static const struct attack races[] = {
	{ "memory race-bytes", PASS, race_bytes },
	{ "memory race-mapping", PASS, race_mapping },
	{ "memory race-code", PASS, race_code },
};

const struct attack_class race_simd_class = { "race", ATTACKS(races), ON_NONE, simd_works };
