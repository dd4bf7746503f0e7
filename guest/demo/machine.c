// SPDX-License-Identifier: GPL-2.0-or-later
/* CPU tables, interrupt controller, timer, TSC frequency, faults, reset. */
#include "demo.h"

#define PIC1 0x20
#define PIC2 0xa0
#define PIT_CHANNEL0 0x40
#define PIT_CHANNEL2 0x42
#define PIT_MODE 0x43
#define PIT_HZ 1193182u
#define PORT_B 0x61 /* bit 0: gate of PIT channel 2, bit 5: its output */
#define I8042_COMMAND 0x64

#define VECTOR_IRQ0 0x20
#define VECTOR_SPURIOUS 0x27
#define VECTOR_INT80 0x80

#define KERNEL_CS 0x10
#define TSS_SELECTOR 0x40
#define STACK_SIZE 16384

extern u64 gdt[];
extern u8 trap_stack[], exception_stubs[], irq0_entry[], spurious_entry[], int80_entry[];

/* SDM vol. 3, 8.7 "Task management in 64-bit mode" */
static struct {
	u32 reserved0;
	u64 rsp[3];
	u64 reserved1;
	u64 ist[7];
	u64 reserved2;
	u16 reserved3;
	u16 io_map;
} __attribute__((packed)) tss;

struct table_pointer {
	u16 limit;
	u64 base;
} __attribute__((packed));

static struct {
	u64 low, high;
} idt[VECTOR_INT80 + 1];

void gate_set(unsigned int vector, const u8 *entry, u64 dpl)
{
	u64 addr = (u64)entry;

	/* 64-bit interrupt gate, present (SDM vol. 3, 6.14.1) */
	idt[vector].low = (addr & 0xffff) | KERNEL_CS << 16 | (0x8e00 | dpl << 13) << 32 |
			  (addr >> 16 & 0xffff) << 48;
	idt[vector].high = addr >> 32;
}

void tables_init(void)
{
	struct table_pointer pointer = { sizeof(idt) - 1, (u64)idt };
	u64 base = (u64)&tss;

	tss.rsp[0] = (u64)trap_stack + STACK_SIZE;
	tss.io_map = sizeof(tss);
	gdt[8] = (sizeof(tss) - 1) | (base & 0xffffff) << 16 | 0x89ull << 40 |
		 (base >> 24 & 0xff) << 56;
	gdt[9] = base >> 32;
	__asm__ volatile("ltr %w0" : : "r"(TSS_SELECTOR));

	for (unsigned int i = 0; i < 32; i++)
		gate_set(i, exception_stubs + 16 * i, 0);
	gate_set(VECTOR_IRQ0, irq0_entry, 0);
	gate_set(VECTOR_SPURIOUS, spurious_entry, 0);
	gate_set(VECTOR_INT80, int80_entry, 3);
	__asm__ volatile("lidt %0" : : "m"(pointer));
}

/*
 * Sets up IRQ 0 only, at vector 0x20 and with a low frequency: enough to have interrupts, too few
 * to change the shares.
 */
void timer_init(void)
{
	demo_frame();
	outb(PIC1, 0x11);
	outb(PIC2, 0x11);
	outb(PIC1 + 1, VECTOR_IRQ0);
	outb(PIC2 + 1, VECTOR_IRQ0 + 8);
	outb(PIC1 + 1, 4);
	outb(PIC2 + 1, 2);
	outb(PIC1 + 1, 1);
	outb(PIC2 + 1, 1);
	outb(PIC1 + 1, 0xfe);
	outb(PIC2 + 1, 0xff);

	outb(PIT_MODE, 0x34); /* channel 0, both bytes, rate generator */
	outb(PIT_CHANNEL0, (PIT_HZ / IRQ0_HZ) & 0xff);
	outb(PIT_CHANNEL0, (PIT_HZ / IRQ0_HZ) >> 8);
	__asm__ volatile("sti");
}

/* Measures the frequency with 25 ms of PIT channel 2. Returns 0 if there is none. */
static u32 tsc_khz_from_pit(void)
{
	const u32 count = PIT_HZ / 40;
	u8 port_b = inb(PORT_B) & ~2u; /* speaker off */
	u64 start, end;
	u32 polls = 0;

	outb(PORT_B, port_b & ~1u);
	outb(PIT_MODE, 0xb0); /* channel 2, both bytes, output rises at zero */
	outb(PIT_CHANNEL2, count & 0xff);
	outb(PIT_CHANNEL2, count >> 8);
	outb(PORT_B, port_b | 1u);
	start = rdtsc();
	while (!(inb(PORT_B) & 0x20)) {
		polls++;
		/* 25 ms at 40 GHz have passed: no channel 2 behind these ports */
		if (rdtsc() - start > 1000000000)
			return 0;
	}
	end = rdtsc();
	outb(PORT_B, port_b & ~1u);
	/* An absent port reads as 0xff, which looks like an immediate end. */
	return polls < 10 ? 0 : (u32)((end - start) / 25);
}

/* Returns the TSC frequency, and stores its source; 0 if it is unknown. */
u32 tsc_khz_find(const char **source)
{
	struct cpuid_regs r;
	u32 max, khz, again;

	if (cpuid(1).c >> 31) {
		/* The timing leaf that VMware defined and others took over */
		if (cpuid(0x40000000).a >= 0x40000010) {
			r = cpuid(0x40000010);
			*source = "cpuid 0x40000010";
			if (r.a)
				return r.a;
		}
	}
	max = cpuid(0).a;
	if (max >= 0x15) {
		r = cpuid(0x15);
		*source = "cpuid 0x15";
		if (r.a && r.b && r.c)
			return (u32)((u64)r.c * r.b / r.a / 1000);
		if (r.a && r.b && max >= 0x16) {
			r = cpuid(0x16);
			*source = "cpuid 0x16";
			if (r.a & 0xffff)
				return (r.a & 0xffff) * 1000;
		}
	}
	*source = "pit";
	khz = tsc_khz_from_pit();
	/* A busy host notices the end late, never early: the smallest result counts. */
	for (int i = 0; khz && i < 3; i++) {
		again = tsc_khz_from_pit();
		if (again && again < khz)
			khz = again;
	}
	return khz;
}

struct fault_frame {
	u64 vector, error, rip, cs, rflags, rsp, ss;
};

/* Called by exception_common. No exception is expected. */
void fault(const struct fault_frame *frame);
void fault(const struct fault_frame *frame)
{
	u64 cr2;

	__asm__ volatile("movq %%cr2, %0" : "=r"(cr2));
	put_string("demo: exception ");
	put_number(frame->vector);
	put_string(" error ");
	put_hex(frame->error);
	put_string(" rip ");
	put_hex(frame->rip);
	put_string(" cs ");
	put_hex(frame->cs);
	put_string(" rsp ");
	put_hex(frame->rsp);
	put_string(" cr2 ");
	put_hex(cr2);
	put_string("\n");
	machine_reset();
}

void machine_reset(void)
{
	demo_frame();
	outb(I8042_COMMAND, 0xfe);
	for (;;)
		__asm__ volatile("cli; hlt");
}
