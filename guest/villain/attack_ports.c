// SPDX-License-Identifier: GPL-2.0-or-later
/* The small devices of a PC, by their ports: serial, PIT, i8042, CMOS, ACPI, and absent ones. */
#include "villain.h"

#define COM1 0x3f8
#define PIT 0x40
#define PIT_MODE 0x43
#define PORT_B 0x61
#define I8042_DATA 0x60
#define I8042_COMMAND 0x64
#define CMOS 0x70
#define POST 0x80
#define PM1 0x600
#define PM1_CONTROL 0x604
#define PM1_SCI_EN 1u
#define PM1_SLP_EN 0x2000u
#define DEBUG_EXIT 0x501
#define WIDTHS 3u /* 1, 2 and 4 bytes */

static int ports_work(void)
{
	outb(I8042_COMMAND, 0xaa);
	if (!(inb(I8042_COMMAND) & 1) || inb(I8042_DATA) != 0x55)
		return 0;
	outb(CMOS, 0x0b);
	if (inb(CMOS + 1) != 2)
		return 0;
	out_width(0xcf8, 4, 0x80000000);
	return in_width(PM1_CONTROL, 2) & PM1_SCI_EN;
}

/* -- serial: PC16550D ---------------------------------------------------------------------------- */

/* Uses loop mode, so that nothing gets between our lines. */
static int serial_registers(struct vdev *d)
{
	(void)d;
	outb(COM1 + 4, 0x10);
	for (u32 i = 0; i < 600; i++) {
		u16 reg = (u16)(random64() % 8);
		u32 v = (u32)random64();

		out_width((u16)(COM1 + reg), 1u << i % WIDTHS, reg == 4 ? v | 0x10101010 : v);
		in_width((u16)(COM1 + random64() % 8), 1u << i % WIDTHS);
		outb(COM1 + 4, 0x1f);
	}
	outb(COM1 + 1, 0);
	outb(COM1 + 3, 0);
	outb(COM1 + 4, 0);
	console_init();
	return !(inb(COM1 + 5) & 0x20);
}

static int serial_loop_overrun(struct vdev *d)
{
	int wrong = 0;

	(void)d;
	outb(COM1 + 4, 0x10);
	for (u32 i = 0; i < 300; i++)
		outb(COM1, 'x');
	for (u32 i = 0; i < 300 && (inb(COM1 + 5) & 1); i++)
		wrong |= inb(COM1) != 'x';
	outb(COM1 + 4, 0);
	console_init();
	return wrong;
}

static int serial_interrupts(struct vdev *d)
{
	(void)d;
	for (u32 i = 0; i < 300; i++) {
		outb(COM1 + 4, i & 1 ? 0x18 : 0x10);
		outb(COM1 + 1, i & 0x0f);
		outb(COM1 + 2, i & 0xcf);
		inb(COM1 + 2);
	}
	outb(COM1 + 4, 0);
	console_init();
	return 0;
}

static int serial_divisor_0(struct vdev *d)
{
	(void)d;
	outb(COM1 + 3, 0x80);
	outb(COM1, 0);
	outb(COM1 + 1, 0);
	outb(COM1 + 3, 3);
	console_init();
	return 0;
}

/* -- the timer: 8254 -------------------------------------------------------------------------------- */

static int pit_modes(struct vdev *d)
{
	static const u16 counts[] = { 0, 1, 2, 3, 0xff, 0x100, 0x9999, 0xaaaa, 0xffff };

	(void)d;
	for (u32 mode = 0; mode < 256; mode += 2) {
		u32 channel = mode >> 6;
		u16 count = counts[mode / 2 % 9];

		outb(PIT_MODE, (u8)mode);
		outb(PIT_MODE, (u8)(mode | 1)); /* BCD */
		if (channel < 3) {
			outb((u16)(PIT + channel), (u8)count);
			inb((u16)(PIT + channel));
			outb((u16)(PIT + channel), (u8)(count >> 8));
			inb((u16)(PIT + channel));
		}
	}
	return 0;
}

static int pit_half_counts(struct vdev *d)
{
	(void)d;
	for (u32 i = 0; i < 100; i++) {
		outb(PIT_MODE, 0x34);
		outb(PIT, (u8)i);
		outb(PIT_MODE, 0xe2); /* read back while the count is half written */
		inb(PIT);
		inb(PIT);
		inb(PIT);
	}
	return 0;
}

static int pit_fastest(struct vdev *d)
{
	(void)d;
	outb(PIT_MODE, 0x34);
	outb(PIT, 1);
	outb(PIT, 0);
	for (u32 i = 0; i < 20; i++)
		wait_shortly();
	outb(PIT_MODE, 0x30); /* once, and then nothing */
	outb(PIT, 1);
	outb(PIT, 0);
	return 0;
}

static int pit_widths(struct vdev *d)
{
	(void)d;
	for (u32 i = 0; i < 60; i++) {
		out_width((u16)(PIT + i % 4), 1u << i % WIDTHS, (u32)random64());
		in_width((u16)(PIT + i % 4), 1u << i % WIDTHS);
		outb(PORT_B, (u8)i);
		inb(PORT_B);
	}
	outb(PIT_MODE, 0x30);
	outb(PIT, 1);
	outb(PIT, 0);
	outb(PORT_B, 0);
	return 0;
}

/* -- keyboard controller, clock, power ------------------------------------------------------------------- */

static int i8042_commands(struct vdev *d)
{
	(void)d;
	for (u32 c = 0; c < 256; c++) {
		/* Skips the commands that pulse the reset line. */
		if (c >= 0xf0)
			continue;
		outb(I8042_COMMAND, (u8)c);
		outb(I8042_DATA, (u8)~c);
		inb(I8042_DATA);
		inb(I8042_DATA);
		inb(I8042_COMMAND);
	}
	return 0;
}

static int i8042_widths(struct vdev *d)
{
	(void)d;
	for (u32 i = 0; i < 30; i++) {
		out_width(I8042_DATA, 1u << i % WIDTHS, 0x20202020);
		out_width(I8042_COMMAND, 1u << i % WIDTHS, 0x60606060);
		in_width(I8042_DATA, 1u << i % WIDTHS);
		in_width(I8042_COMMAND, 1u << i % WIDTHS);
	}
	return 0;
}

static int cmos_registers(struct vdev *d)
{
	(void)d;
	for (u32 i = 0; i < 256; i++) {
		outb(CMOS, (u8)i);
		inb(CMOS + 1);
		outb(CMOS + 1, 0xff);
		out_width(CMOS, 1u << i % WIDTHS, (u32)random64());
		in_width(CMOS, 1u << i % WIDTHS);
		in_width(CMOS + 1, 1u << i % WIDTHS);
	}
	outb(CMOS, 0x0d);
	return inb(CMOS + 1) != 0x80;
}

static int acpi_registers(struct vdev *d)
{
	(void)d;
	for (u32 i = 0; i < 200; i++) {
		u16 port = (u16)(PM1 + i % 8);

		in_width(port, 1u << i % WIDTHS);
		/* Any value except sleep. */
		out_width(port, 1u << i % WIDTHS,
			  (u32)random64() & ~(PM1_SLP_EN | PM1_SLP_EN << 16) & ~0x20u);
	}
	return 0;
}

/* Sleep states other than "off" (5) do not exist. */
static int acpi_sleep(struct vdev *d)
{
	(void)d;
	for (u32 type = 0; type < 8; type++)
		if (type != 5)
			out_width(PM1_CONTROL, 2, PM1_SLP_EN | type << 10);
	out_width(PM1_CONTROL, 2, 0);
	return 0;
}

/* -- all others ------------------------------------------------------------------------------------------------ */

static int in_all(struct vdev *d)
{
	(void)d;
	for (u32 port = 0; port < 0xfffc; port += 13)
		in_width((u16)port, 1u << port % WIDTHS);
	in_width(0xffff, 1);
	in_width(0xfffe, 2);
	in_width(0xfffc, 4);
	/* Across the end of the port space, and of a device. */
	in_width(0xffff, 4);
	in_width(COM1 + 7, 4);
	in_width(DEBUG_EXIT - 1, 4);
	return 0;
}

static int is_ours(u32 port)
{
	return port < 0x100 || (port >= 0x3e0 && port < 0x400) || (port >= 0x4c8 && port < 0x610) ||
	       (port >= 0xcf0 && port < 0xd00);
}

static int out_unused(struct vdev *d)
{
	(void)d;
	for (u32 port = 0x100; port < 0x10000; port += 29)
		if (!is_ours(port))
			out_width((u16)port, 1u << port % WIDTHS, (u32)random64());
	return 0;
}

static void strings(u16 port, u32 width, u64 count)
{
	void *to = at(BIG_BUFFER);
	const void *from = to;
	u64 n = count;

	if (width == 1)
		__asm__ volatile("rep insb" : "+D"(to), "+c"(n) : "d"(port) : "memory");
	else if (width == 2)
		__asm__ volatile("rep insw" : "+D"(to), "+c"(n) : "d"(port) : "memory");
	else
		__asm__ volatile("rep insl" : "+D"(to), "+c"(n) : "d"(port) : "memory");
	n = count;
	if (width == 1)
		__asm__ volatile("rep outsb" : "+S"(from), "+c"(n) : "d"(port) : "memory");
	else if (width == 2)
		__asm__ volatile("rep outsw" : "+S"(from), "+c"(n) : "d"(port) : "memory");
	else
		__asm__ volatile("rep outsl" : "+S"(from), "+c"(n) : "d"(port) : "memory");
}

static int string_io(struct vdev *d)
{
	static const u16 ports[] = { POST, CMOS + 1, PIT, 0x1234 };

	(void)d;
	memset(at(BIG_BUFFER), 0, 0x4000);
	for (u32 i = 0; i < ARRAY_SIZE(ports); i++)
		for (u32 width = 1; width <= 4; width *= 2) {
			strings(ports[i], width, 0);
			strings(ports[i], width, 1);
			strings(ports[i], width, 1025);
		}
	return pit_fastest(d);
}

static const struct attack attacks[] = {
	{ "serial registers", PASS, serial_registers },
	{ "serial loop-overrun", PASS, serial_loop_overrun },
	{ "serial interrupts", PASS, serial_interrupts },
	{ "serial divisor-0", PASS, serial_divisor_0 },
	{ "pit modes", PASS, pit_modes },
	{ "pit half-counts", PASS, pit_half_counts },
	{ "pit fastest", PASS, pit_fastest },
	{ "pit widths", PASS, pit_widths },
	{ "i8042 commands", PASS, i8042_commands },
	{ "i8042 widths", PASS, i8042_widths },
	{ "cmos registers", PASS, cmos_registers },
	{ "acpi registers", PASS, acpi_registers },
	{ "acpi sleep", PASS, acpi_sleep },
	{ "ports in-all", PASS, in_all },
	{ "ports out-unused", PASS, out_unused },
	{ "ports strings", PASS, string_io },
};

const struct attack_class ports_class = { "ports", ATTACKS(attacks), ON_NONE, ports_work };
