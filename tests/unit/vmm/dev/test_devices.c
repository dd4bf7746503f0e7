/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bus.h"
#include "vmm/dev/pci.h"
#include "vmm/dev/platform.h"
#include "vmm/dev/serial.h"
#include "vmm/layout.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/dev_fixture.h"

static void power_end(void *ctx, enum dev_end how)
{
	assert_ptr_equal(ctx, &seen);
	seen.ends++;
	seen.how = how;
}

static void byte_out(void *ctx, uint8_t byte)
{
	assert_ptr_equal(ctx, &seen);
	seen.out[seen.out_n++ % sizeof(seen.out)] = byte;
}

static const struct dev_power power = { power_end, &seen };

/* -- bus ------------------------------------------------------------------------ */

struct access {
	unsigned int n, len;
	uint16_t off;
	bool write;
	uint32_t val;
};

static void remember(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	struct access *a = dev;

	a->n++;
	a->off = off;
	a->write = write;
	a->len = len;
	if (write)
		a->val = *val;
	else
		*val = 0x11223344u + a->n;
}

static void bus_counts(void **state)
{
	struct access a = { 0 };
	uint8_t data[8] = { 0 };

	(void)state;
	assert_int_equal(bus_add(&bus, 0x100, 8, "a", remember, &a), 0);
	assert_int_equal(bus_add(&bus, 0x200, 1, "b", remember, &a), 0);
	assert_true(bus_io(&bus, 0x107, BUS_WRITE, 1, 1, data));
	assert_true(bus_io(&bus, 0x100, BUS_READ, 2, 4, data)); /* a string instruction */
	assert_false(bus_io(&bus, 0x108, BUS_WRITE, 1, 1, data));
	assert_int_equal(bus.device[0].exits, 2);
	assert_int_equal(bus.device[0].accesses, 5);
	assert_int_equal(bus.device[1].exits, 0);
	assert_int_equal(a.n, 5);
}

static void bus_refuses_overlap(void **state)
{
	struct access a = { 0 };

	(void)state;
	assert_int_equal(bus_add(&bus, 0x100, 8, "a", remember, &a), 0);
	assert_int_equal(bus_add(&bus, 0x100, 8, "same", remember, &a), -EBUSY);
	assert_int_equal(bus_add(&bus, 0x107, 1, "last", remember, &a), -EBUSY);
	assert_int_equal(bus_add(&bus, 0xff, 2, "first", remember, &a), -EBUSY);
	assert_int_equal(bus_add(&bus, 0x80, 0x100, "around", remember, &a), -EBUSY);
	assert_int_equal(bus_add(&bus, 0x103, 2, "inside", remember, &a), -EBUSY);
	assert_int_equal(bus.n, 1);
	assert_int_equal(bus_add(&bus, 0x108, 1, "behind", remember, &a), 0);
	assert_int_equal(bus_add(&bus, 0xf8, 8, "before", remember, &a), 0);
	assert_int_equal(bus_add(&bus, 0xffff, 1, "top", remember, &a), 0);
	assert_int_equal(bus_add(&bus, 0, 1, "zero", remember, &a), 0);
	for (unsigned int i = bus.n; i < BUS_MAX_DEVICES; i++)
		assert_int_equal(bus_add(&bus, (uint16_t)(0x1000 + i), 1, "more", remember, &a), 0);
	assert_int_equal(bus_add(&bus, 0x2000, 1, "too many", remember, &a), -ENOSPC);
}

static void bus_without_owner(void **state)
{
	uint8_t data[6] = { 1, 2, 3, 4, 5, 6 };
	struct access a = { 0 };

	(void)state;
	assert_int_equal(bus_add(&bus, 0x100, 8, "a", remember, &a), 0);
	assert_false(bus_io(&bus, 0x108, BUS_WRITE, 4, 1, data));
	assert_int_equal(data[0], 1);
	assert_false(bus_io(&bus, 0xff, BUS_READ, 1, 1, data));
	assert_memory_equal(data, "\xff\2\3\4\5\6", 6);
	assert_false(bus_io(&bus, 0x108, BUS_READ, 2, 2, data));
	assert_memory_equal(data, "\xff\xff\xff\xff\5\6", 6);
	assert_false(bus_io(&bus, 0xffff, BUS_READ, 4, 1, data + 2));
	assert_memory_equal(data, "\xff\xff\xff\xff\xff\xff", 6);
	assert_int_equal(a.n, 0);
}

static void bus_widths_and_counts(void **state)
{
	static const unsigned int len[] = { 1, 2, 4 };
	struct access a = { 0 };
	uint8_t data[16];

	(void)state;
	assert_int_equal(bus_add(&bus, 0x100, 8, "a", remember, &a), 0);
	for (unsigned int i = 0; i < 3; i++) {
		memset(&a, 0, sizeof(a));
		memset(data, 0xa5, sizeof(data));
		assert_true(bus_io(&bus, 0x103, BUS_WRITE, len[i], 1, data));
		assert_int_equal(a.off, 3);
		assert_true(a.write);
		assert_int_equal(a.len, len[i]);
		assert_int_equal(a.val, 0xa5a5a5a5u >> (32 - 8 * len[i]));

		/* three reads, as REP INS does: each a byte, word or dword behind the other */
		memset(&a, 0, sizeof(a));
		assert_true(bus_io(&bus, 0x107, BUS_READ, len[i], 3, data));
		assert_int_equal(a.n, 3);
		assert_int_equal(a.off, 7);
		for (unsigned int k = 0; k < 3; k++) {
			uint32_t want = 0x11223345u + k;

			assert_memory_equal(data + k * len[i], &want, len[i]);
		}
		assert_int_equal(data[3 * len[i]], 0xa5);
	}
	a.n = 0;
	assert_true(bus_io(&bus, 0x100, BUS_READ, 1, 0, data));
	assert_int_equal(a.n, 0);
}

/* -- serial --------------------------------------------------------------------- */

enum { DATA = PORT_SERIAL, IER, FCR, LCR, MCR, LSR, MSR, SCR, IIR = FCR };

static struct serial serial;

static int with_serial(void **state)
{
	clean(state);
	return serial_init(&serial, &bus, irq_line, byte_out, &seen);
}

static int without_serial(void **state)
{
	(void)state;
	serial_deinit(&serial);
	return 0;
}

static void serial_divisor_latch(void **state)
{
	(void)state;
	outb(LCR, 0x80);
	assert_int_equal(inb(DATA), 1); /* 115200 baud */
	assert_int_equal(inb(IER), 0);
	outb(DATA, 0x34);
	outb(IER, 0x12);
	assert_int_equal(inb(DATA), 0x34);
	assert_int_equal(inb(IER), 0x12);
	assert_int_equal(seen.out_n, 0);
	outb(LCR, 0x03);
	assert_int_equal(inb(LCR), 0x03);
	assert_int_equal(inb(IER), 0); /* the latch is another register */
	outb(DATA, 'x');
	assert_int_equal(seen.out_n, 1);
	assert_int_equal(seen.out[0], 'x');
	assert_int_equal(serial.bytes_out, 1);
	outb(LCR, 0x83);
	assert_int_equal(inb(DATA), 0x34);
	assert_int_equal(inb(IER), 0x12);
}

static void serial_registers(void **state)
{
	(void)state;
	outb(SCR, 0x5a);
	assert_int_equal(inb(SCR), 0x5a);
	outb(IER, 0xff);
	assert_int_equal(inb(IER), 0x0f); /* how Linux tells a UART from a bare port */
	outb(IER, 0);
	outb(MCR, 0xff);
	assert_int_equal(inb(MCR), 0x1f);
	outb(MCR, 0);
	assert_int_equal(inb(MSR), 0xb0);
	assert_int_equal(inb(LSR), 0x60);
	outb(LSR, 0); /* read-only */
	assert_int_equal(inb(LSR), 0x60);
	assert_int_equal(inb(IIR), 0x01);
	outb(FCR, 0x01);
	assert_int_equal(inb(IIR), 0xc1); /* 16550A: the FIFO works */
	outb(FCR, 0x00);
	assert_int_equal(inb(IIR), 0x01);
	assert_int_equal(seen.rises, 0);
}

/* An edge-triggered controller forgets a level that never fell: each byte needs a rise. */
static void serial_thre_edge_each_time(void **state)
{
	(void)state;
	outb(MCR, 0x08);
	outb(IER, 0x02); /* with the holding register empty this interrupts at once */
	assert_int_equal(seen.rises, 1);
	assert_int_equal(seen.irq, IRQ_SERIAL);
	for (unsigned int i = 0; i < 5; i++) {
		outb(DATA, (uint8_t)('a' + i));
		assert_int_equal(seen.rises, 2 + i);
		assert_int_equal(seen.level, 1);
	}
	assert_int_equal(inb(IIR), 0x02);
	assert_int_equal(seen.level, 0); /* reading IIR is the acknowledgement */
	assert_int_equal(inb(IIR), 0x01);
	outb(DATA, 'f');
	assert_int_equal(seen.rises, 7);
	assert_int_equal(inb(IIR), 0x02);
	/* no new event, no new interrupt */
	outb(IER, 0x02);
	assert_int_equal(inb(LSR), 0x60);
	assert_int_equal(seen.rises, 7);
	outb(IER, 0x00);
	outb(IER, 0x02);
	assert_int_equal(seen.rises, 8);
	outb(IER, 0x00);
	assert_int_equal(seen.level, 0);
	assert_memory_equal(seen.out, "abcdef", 6);
	assert_int_equal(seen.rises, seen.falls);
}

static void serial_out2_gates_the_line(void **state)
{
	(void)state;
	outb(IER, 0x02);
	assert_int_equal(seen.rises, 0);
	outb(MCR, 0x08);
	assert_int_equal(seen.rises, 1);
	outb(MCR, 0x00);
	assert_int_equal(seen.level, 0);
	outb(DATA, 'x');
	assert_int_equal(seen.rises, 1);
}

static void serial_receive(void **state)
{
	uint8_t in[SERIAL_FIFO + 10];

	(void)state;
	for (unsigned int i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)(i + 1);
	outb(MCR, 0x08);
	assert_int_equal(serial_input(&serial, in, 3), 3);
	assert_int_equal(seen.rises, 0); /* nobody asked */
	assert_int_equal(inb(LSR), 0x61);
	outb(IER, 0x03);
	assert_int_equal(seen.rises, 1);
	assert_int_equal(inb(IIR), 0x04); /* received data is the more urgent cause */
	assert_int_equal(inb(DATA), 1);
	assert_int_equal(inb(DATA), 2);
	assert_int_equal(inb(LSR), 0x61);
	assert_int_equal(inb(DATA), 3);
	assert_int_equal(inb(LSR), 0x60);
	assert_int_equal(inb(IIR), 0x02); /* the other cause waited behind it */
	assert_int_equal(seen.level, 0);
	assert_int_equal(inb(DATA), 0);

	/* full: the rest stays with the caller; the order survives the wrap */
	assert_int_equal(serial_input(&serial, in, sizeof(in)), SERIAL_FIFO);
	assert_int_equal(serial_input(&serial, in, 1), 0);
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(inb(DATA), i + 1);
	assert_int_equal(serial_input(&serial, in + SERIAL_FIFO, 10), 10);
	for (unsigned int i = 10; i < sizeof(in); i++)
		assert_int_equal(inb(DATA), i + 1);
	assert_int_equal(inb(LSR), 0x60);
	assert_int_equal(seen.level, 0);

	assert_int_equal(serial_input(&serial, in, 9), 9);
	assert_int_equal(seen.level, 1);
	outb(FCR, 0x03);
	assert_int_equal(inb(LSR), 0x60);
	assert_int_equal(seen.level, 0);
}

static void serial_loop_mode(void **state)
{
	(void)state;
	outb(MCR, 0x10);
	outb(DATA, 'l');
	assert_int_equal(seen.out_n, 0);
	assert_int_equal(inb(LSR), 0x61);
	assert_int_equal(inb(DATA), 'l');
	assert_int_equal(inb(MSR), 0x00);
	outb(MCR, 0x11);
	assert_int_equal(inb(MSR), 0x20); /* DTR -> DSR */
	outb(MCR, 0x12);
	assert_int_equal(inb(MSR), 0x10); /* RTS -> CTS */
	outb(MCR, 0x14);
	assert_int_equal(inb(MSR), 0x40); /* OUT1 -> RI */
	outb(MCR, 0x1a);
	assert_int_equal(inb(MSR), 0x90); /* what Linux writes and expects (autoconfig) */
	for (unsigned int i = 0; i < 3 * SERIAL_FIFO; i++)
		outb(DATA, (uint8_t)i); /* overrun: the newest are lost */
	for (unsigned int i = 0; i < SERIAL_FIFO; i++)
		assert_int_equal(inb(DATA), i);
	assert_int_equal(inb(LSR), 0x60);
}

/* -- platform ------------------------------------------------------------------- */

static struct platform platform;
static struct pci pci;

static int with_platform(void **state)
{
	clean(state);
	return platform_init(&platform, &bus, power) || pci_init(&pci, &bus, power);
}

static void i8042_probes(void **state)
{
	(void)state;
	assert_int_equal(inb(0x64), 0x14);
	outb(0x64, 0xaa);
	assert_int_equal(inb(0x64), 0x15);
	assert_int_equal(inb(0x60), 0x55);
	assert_int_equal(inb(0x64), 0x14);
	assert_int_equal(inb(0x60), 0);

	outb(0x64, 0x60);
	outb(0x60, 0x65);
	assert_int_equal(inb(0x64), 0x14); /* a write has no answer */
	outb(0x64, 0x20);
	assert_int_equal(inb(0x60), 0x65);
	outb(0x60, 0x77); /* for a keyboard, which is not there: not for the CTR */
	outb(0x64, 0x20);
	assert_int_equal(inb(0x60), 0x65);

	/* the echo of a mouse port must not come back as it was sent */
	outb(0x64, 0xd3);
	outb(0x60, 0x5a);
	assert_int_equal(inb(0x64), 0x15);
	assert_int_not_equal(inb(0x60), 0x5a);
	outb(0x64, 0xa9);
	assert_int_not_equal(inb(0x60), 0);
	outb(0x64, 0xab);
	assert_int_equal(inb(0x64), 0x15);
	assert_int_equal(inb(0x60), 0);

	/* another command forgets the one that waits for its byte */
	outb(0x64, 0x60);
	outb(0x64, 0xaa);
	outb(0x60, 0x11);
	outb(0x64, 0x20);
	assert_int_equal(inb(0x60), 0x65);
	assert_int_equal(seen.ends, 0);
}

/* Each reply is read once, whichever vCPU reads. */
#define REPLIES 10000u

static void *read_replies(void *arg)
{
	atomic_bool *ending = arg;
	uintptr_t n = 0;
	uint32_t v;

	for (bool last = false; !last;) {
		last = atomic_load(ending);
		v = 0;
		bus_io(&bus, 0x60, BUS_READ, 1, 1, (uint8_t *)&v);
		n += v == 0x55;
	}
	return (void *)n;
}

static void i8042_of_several_vcpus(void **state)
{
	atomic_bool ending = false;
	uintptr_t read = 0;
	pthread_t t[2];
	void *n;

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, read_replies, &ending), 0);
	for (unsigned int i = 0; i < REPLIES; i++) {
		outb(0x64, 0xaa);
		while (inb(0x64) & 1)
			sched_yield();
	}
	atomic_store(&ending, true);
	for (unsigned int i = 0; i < 2; i++) {
		pthread_join(t[i], &n);
		read += (uintptr_t)n;
	}
	assert_int_equal(read, REPLIES);
}

static void i8042_reset(void **state)
{
	(void)state;
	for (unsigned int v = 0; v < 256; v++) {
		if (v != I8042_RESET)
			outb(0x64, (uint8_t)v);
		outb(0x60, (uint8_t)v); /* 0xfe as data is no command */
	}
	assert_int_equal(seen.ends, 0);
	outb(0x64, 0xfe);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.how, DEV_END_RESET);
}

static uint8_t cmos(uint8_t reg)
{
	outb(0x70, reg);
	return inb(0x71);
}

static int from_bcd(uint8_t v)
{
	assert_true((v & 0xf) < 10 && v >> 4 < 10);
	return (v >> 4) * 10 + (v & 0xf);
}

static void cmos_clock(void **state)
{
	struct tm tm = { 0 };
	time_t before, after, got;

	(void)state;
	do { /* the registers are read one by one: retry when a second ticks in between */
		before = time(NULL);
		tm.tm_sec = from_bcd(cmos(0x00));
		tm.tm_min = from_bcd(cmos(0x02));
		tm.tm_hour = from_bcd(cmos(0x04));
		tm.tm_mday = from_bcd(cmos(0x07));
		tm.tm_mon = from_bcd(cmos(0x08)) - 1;
		tm.tm_year = (from_bcd(cmos(0x32)) - 19) * 100 + from_bcd(cmos(0x09));
		tm.tm_wday = cmos(0x06) - 1;
		after = time(NULL);
	} while (before != after);
	{
		int wday = tm.tm_wday;

		got = timegm(&tm);
		assert_int_equal(got, before);
		assert_int_equal(wday, tm.tm_wday);
	}
	assert_int_equal(cmos(0x0a) & 0x80, 0);	   /* no update in progress */
	assert_int_equal(cmos(0x0b) & 0x06, 0x02); /* 24 h, BCD */
	assert_int_equal(cmos(0x0d), 0x80);
	assert_int_equal(cmos(0x80 | 0x0d), 0x80); /* bit 7 masks NMIs, it is no address */
	assert_int_equal(cmos(0x0c), 0);
	assert_int_equal(cmos(0x7f), 0);
	outb(0x70, 0x0d);
	outb(0x71, 0); /* writes are lost */
	assert_int_equal(inb(0x71), 0x80);
}

#define PM_STATUS PORT_PM1A_EVENT
#define PM_ENABLE (PORT_PM1A_EVENT + 2)
#define PM_CONTROL PORT_PM1A_CONTROL
#define SLP(type) ((type) << 10)

static void acpi_power_off(void **state)
{
	(void)state;
	assert_int_equal(in_n(PM_CONTROL, 2), PM1_SCI_EN);
	for (uint32_t v = 0; v < 0x10000; v++)
		if (!(v & PM1_SLP_EN) || (v & SLP(7)) != SLP(PM1_SLP_TYP_S5))
			out_n(PM_CONTROL, v, 2);
	assert_int_equal(seen.ends, 0);
	out_n(PM_CONTROL, SLP(5), 2);
	assert_int_equal(in_n(PM_CONTROL, 2), SLP(5) | PM1_SCI_EN);
	out_n(PM_STATUS, SLP(5) | PM1_SLP_EN, 2);
	out_n(PM_ENABLE, SLP(5) | PM1_SLP_EN, 2);
	assert_int_equal(seen.ends, 0);
	out_n(PM_CONTROL, SLP(5) | PM1_SLP_EN, 2);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.how, DEV_END_POWEROFF);
	out_n(PM_CONTROL, 0xffff0000u | SLP(5) | PM1_SLP_EN | 1, 4);
	assert_int_equal(seen.ends, 2);
}

static void acpi_byte_writes_are_harmless(void **state)
{
	(void)state;
	out_n(PM_ENABLE, 0x0120, 2);
	out_n(PM_CONTROL, 0x0002, 2);
	for (uint16_t port = PM_STATUS; port < PM_CONTROL + 2; port++)
		for (unsigned int v = 0; v < 256; v++)
			outb(port, (uint8_t)v);
	assert_int_equal(seen.ends, 0);
	assert_int_equal(in_n(PM_ENABLE, 2), 0x0120);
	assert_int_equal(in_n(PM_CONTROL, 2), 0x0003);
	assert_int_equal(in_n(PM_STATUS, 2), 0);
}

static void acpi_byte_reads(void **state)
{
	(void)state;
	out_n(PM_ENABLE, 0x0120, 2);
	out_n(PM_CONTROL, SLP(5) | 2, 2);
	assert_int_equal(inb(PM_ENABLE), 0x20);
	assert_int_equal(inb(PM_ENABLE + 1), 0x01);
	assert_int_equal(inb(PM_CONTROL), 0x03);
	assert_int_equal(inb(PM_CONTROL + 1), SLP(5) >> 8);
}

static void pci_ports(void **state)
{
	(void)state;
	out_n(0xcf8, 0x80000000u, 4);
	assert_int_equal(in_n(0xcf8, 4), 0x80000000u); /* mechanism 1 is there */
	assert_int_equal(in_n(0xcfc, 4), UINT32_MAX);  /* but nothing answers */
	assert_int_equal(in_n(0xcfc, 2), 0xffff);
	assert_int_equal(in_n(0xcfe, 2), 0xffff);
	assert_int_equal(inb(0xcfd), 0xff);
	outb(0xcf8, 0x12); /* narrower accesses do not reach the address */
	out_n(0xcf8, 0x1234, 2);
	out_n(0xcfc, 0x12345678, 4);
	assert_int_equal(in_n(0xcf8, 4), 0x80000000u);
	assert_int_equal(seen.ends, 0);
}

static void reset_port(void **state)
{
	(void)state;
	for (unsigned int v = 0; v < 256; v++)
		if (!(v & 4))
			outb(0xcf9, (uint8_t)v);
	out_n(0xcf8, 0x0606, 2); /* an address write that covers it */
	out_n(0xcf8, 0x80000600u, 4);
	assert_int_equal(seen.ends, 0);
	outb(0xcf9, 0x02);
	outb(0xcf9, 0x06);
	assert_int_equal(seen.ends, 1);
	assert_int_equal(seen.how, DEV_END_RESET);
}

static void post_port(void **state)
{
	(void)state;
	outb(0x80, 0x42);
	assert_int_equal(inb(0x80), 0xff);
}

/* -- debug exit ------------------------------------------------------------------ */

static unsigned int exits;
static uint32_t exit_status;

static void guest_exits(void *ctx, uint32_t status)
{
	assert_ptr_equal(ctx, &exits);
	exits++;
	exit_status = status;
}

static void debug_exit_port(void **state)
{
	struct platform_exit d;

	(void)state;
	exits = 0;
	assert_int_equal(platform_exit_init(&d, &bus, guest_exits, &exits), 0);
	assert_int_equal(inb(PORT_DEBUG_EXIT), 0);
	/* Its upper byte alone is no exit. */
	outb(PORT_DEBUG_EXIT + 1, 1);
	assert_int_equal(exits, 0);
	outb(PORT_DEBUG_EXIT, 7);
	assert_int_equal(exits, 1);
	assert_int_equal(exit_status, 7);
	out_n(PORT_DEBUG_EXIT, 0x1234, 2);
	assert_int_equal(exit_status, 0x1234);
	out_n(PORT_DEBUG_EXIT, 0x12345678, 4);
	assert_int_equal(exit_status, 0x12345678);
}

int main(void)
{
#define SERIAL_TEST(f) cmocka_unit_test_setup_teardown(f, with_serial, without_serial)
#define PLATFORM_TEST(f) cmocka_unit_test_setup(f, with_platform)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(bus_counts, clean),
		cmocka_unit_test_setup(bus_refuses_overlap, clean),
		cmocka_unit_test_setup(bus_without_owner, clean),
		cmocka_unit_test_setup(bus_widths_and_counts, clean),
		cmocka_unit_test_setup(debug_exit_port, clean),
		SERIAL_TEST(serial_divisor_latch),
		SERIAL_TEST(serial_registers),
		SERIAL_TEST(serial_thre_edge_each_time),
		SERIAL_TEST(serial_out2_gates_the_line),
		SERIAL_TEST(serial_receive),
		SERIAL_TEST(serial_loop_mode),
		PLATFORM_TEST(i8042_probes),
		PLATFORM_TEST(i8042_of_several_vcpus),
		PLATFORM_TEST(i8042_reset),
		PLATFORM_TEST(cmos_clock),
		PLATFORM_TEST(acpi_power_off),
		PLATFORM_TEST(acpi_byte_writes_are_harmless),
		PLATFORM_TEST(acpi_byte_reads),
		PLATFORM_TEST(pci_ports),
		PLATFORM_TEST(reset_port),
		PLATFORM_TEST(post_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
