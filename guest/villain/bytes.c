// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory, registers and ports, and accesses that may trap. */
#include "villain.h"

#define PT_TABLE 0x63ul
#define PT_LARGE 0x83ul
#define PT_UNCACHED 0x10ul
#define LARGE_PAGE 0x200000ul
#define EXCEPTIONS 32u

extern u64 boot_pml4[];
extern const u8 trap_stubs[];
/* trap.S: where to continue after an exception, and with which stack; 0: none is expected. */
extern u64 trap_resume, trap_rsp;
u64 trap_try_rdmsr(u32 msr, u64 *v);
u64 trap_try_wrmsr(u32 msr, u64 v);
u64 trap_try_read32(u64 address, u32 *v);
u64 trap_try_call(void (*f)(void));

static u64 device_pd[512] __attribute__((aligned(4096)));

u8 read8(u64 address)
{
	return *(volatile u8 *)address;
}

u16 read16(u64 address)
{
	return *(volatile u16 *)address;
}

u32 read32(u64 address)
{
	return *(volatile u32 *)address;
}

u64 read64(u64 address)
{
	return *(volatile u64 *)address;
}

void write8(u64 address, u32 v)
{
	*(volatile u8 *)address = (u8)v;
}

void write16(u64 address, u32 v)
{
	*(volatile u16 *)address = (u16)v;
}

void write32(u64 address, u32 v)
{
	*(volatile u32 *)address = v;
}

void write64(u64 address, u64 v)
{
	*(volatile u64 *)address = v;
}

u32 in_width(u16 port, u32 width)
{
	u32 v = 0;

	if (width == 1)
		__asm__ volatile("inb %w1, %b0" : "+a"(v) : "d"(port));
	else if (width == 2)
		__asm__ volatile("inw %w1, %w0" : "+a"(v) : "d"(port));
	else
		__asm__ volatile("inl %w1, %0" : "+a"(v) : "d"(port));
	return v;
}

void out_width(u16 port, u32 width, u32 v)
{
	if (width == 1)
		__asm__ volatile("outb %b0, %w1" : : "a"(v), "d"(port));
	else if (width == 2)
		__asm__ volatile("outw %w0, %w1" : : "a"(v), "d"(port));
	else
		__asm__ volatile("outl %0, %w1" : : "a"(v), "d"(port));
}

void *memset(void *to, int byte, u64 len)
{
	u64 words = len / 8, rest = len % 8, v = 0x0101010101010101ul * (u8)byte;
	void *p = to;

	/* In words, which hosts that interpret ring 0 copy quickly. */
	__asm__ volatile("rep stosq" : "+D"(p), "+c"(words) : "a"(v) : "memory");
	for (u8 *b = p; rest; rest--)
		*(volatile u8 *)b++ = (u8)byte;
	return to;
}

void *memcpy(void *to, const void *from, u64 len)
{
	u64 words = len / 8, rest = len % 8;
	const void *f = from;
	void *t = to;

	__asm__ volatile("rep movsq" : "+D"(t), "+S"(f), "+c"(words) : : "memory");
	for (u64 i = 0; i < rest; i++)
		((volatile u8 *)t)[i] = ((const u8 *)f)[i];
	return to;
}

/* splitmix64: the same sequence in each run */
u64 random64(void)
{
	static u64 state;
	u64 z = state += 0x9e3779b97f4a7c15ul;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ul;
	z = (z ^ z >> 27) * 0x94d049bb133111ebul;
	return z ^ z >> 31;
}

int try_rdmsr(u32 msr, u64 *v)
{
	return (int)trap_try_rdmsr(msr, v);
}

int try_wrmsr(u32 msr, u64 v)
{
	return (int)trap_try_wrmsr(msr, v);
}

int try_read32(u64 address, u32 *v)
{
	return (int)trap_try_read32(address, v);
}

int try_call(void (*f)(void))
{
	return (int)trap_try_call(f);
}

void traps_init(void)
{
	/* Except NMI, double fault and machine check. */
	for (u32 i = 0; i < EXCEPTIONS; i++)
		if (i != 2 && i != 8 && i != 18)
			gate_set(i, trap_stubs + 32ul * i, 0);
}

void devices_map(void)
{
	u64 *pdpt = at(boot_pml4[0] & ~0xffful);

	for (u64 a = DEVICES; a < 0x100000000ul; a += LARGE_PAGE)
		device_pd[(a - DEVICES) / LARGE_PAGE] = a | PT_LARGE | PT_UNCACHED;
	pdpt[DEVICES >> 30] = ((u64)device_pd - KERNEL_MAP) | PT_TABLE;
}
