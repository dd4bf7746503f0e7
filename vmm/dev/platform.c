/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/platform.h"

#include "base/cleanup.h"
#include "vmm/layout.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* i8042, ports 0x60 (data) and 0x64 (command/status). IBM PC/AT Technical Reference. */
#define KBD_SELF_TEST 0xaa
#define KBD_SELF_TEST_OK 0x55
#define KBD_READ_CTR 0x20
#define KBD_WRITE_CTR 0x60
#define KBD_TEST_AUX 0xa9
#define KBD_TEST_KBD 0xab
#define KBD_AUX_LOOP 0xd3
#define KBD_AUX_ABSENT 0x01 /* "clock line stuck low" */
#define KBD_STATUS_OBF 0x01
#define KBD_STATUS_SYS 0x04
#define KBD_STATUS_UNLOCKED 0x10

static void kbd_reply(struct platform_state *s, uint8_t byte)
{
	s->kbd_out = byte;
	s->kbd_full = true;
}

/*
 * Answers every probe for which a driver waits with "absent", because no answer would cost the
 * driver half a second of polling each.
 */
static void i8042_data(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	struct platform *p = dev;
	struct platform_state *s = &p->s;

	(void)off;
	(void)len;
	pthread_mutex_lock(&p->lock);
	if (!write) {
		*val = s->kbd_full ? s->kbd_out : 0;
		s->kbd_full = false;
	} else {
		if (s->kbd_command == KBD_WRITE_CTR)
			s->kbd_ctr = (uint8_t)*val;
		else if (s->kbd_command == KBD_AUX_LOOP)
			kbd_reply(s, KBD_AUX_ABSENT); /* a real port would return the byte */
		s->kbd_command = 0;
	}
	pthread_mutex_unlock(&p->lock);
}

/* Executes a command. Called with the lock. */
static void i8042_execute(struct platform_state *s, uint8_t command)
{
	s->kbd_command = 0;
	switch (command) {
	case KBD_SELF_TEST:
		kbd_reply(s, KBD_SELF_TEST_OK);
		break;
	case KBD_READ_CTR:
		kbd_reply(s, s->kbd_ctr);
		break;
	case KBD_TEST_KBD:
		kbd_reply(s, 0);
		break;
	case KBD_TEST_AUX:
		kbd_reply(s, KBD_AUX_ABSENT);
		break;
	case KBD_WRITE_CTR:
	case KBD_AUX_LOOP:
		s->kbd_command = command; /* a data byte follows */
		break;
	default:
		break;
	}
}

static void i8042_command(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	struct platform *p = dev;

	(void)off;
	(void)len;
	pthread_mutex_lock(&p->lock);
	if (write)
		i8042_execute(&p->s, (uint8_t)*val);
	else
		*val = KBD_STATUS_SYS | KBD_STATUS_UNLOCKED | (p->s.kbd_full ? KBD_STATUS_OBF : 0);
	pthread_mutex_unlock(&p->lock);
	if (write && (uint8_t)*val == I8042_RESET)
		p->power.end(p->power.ctx, DEV_END_RESET);
}

static uint8_t bcd(int v)
{
	return (uint8_t)(v / 10 << 4 | v % 10);
}

/* Returns a register of the MC146818: the time in UTC, BCD, 24 h, never updating during a read. */
static uint8_t cmos_read(uint8_t reg)
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	switch (reg) {
	case 0x00:
		return bcd(tm.tm_sec);
	case 0x02:
		return bcd(tm.tm_min);
	case 0x04:
		return bcd(tm.tm_hour);
	case 0x06:
		return (uint8_t)(tm.tm_wday + 1);
	case 0x07:
		return bcd(tm.tm_mday);
	case 0x08:
		return bcd(tm.tm_mon + 1);
	case 0x09:
		return bcd(tm.tm_year % 100);
	case 0x32:
		return bcd(19 + tm.tm_year / 100);
	case 0x0a:
		return 0x26; /* 32.768 kHz, 1024 Hz, no update in progress */
	case 0x0b:
		return 0x02; /* 24-hour mode */
	case 0x0d:
		return 0x80; /* battery good */
	default:
		return 0;
	}
}

static void cmos_io(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	struct platform *p = dev;

	(void)len;
	pthread_mutex_lock(&p->lock);
	if (off == 0 && write)
		p->s.cmos_index = *val & 0x7f;
	else if (off == 1 && !write)
		*val = cmos_read(p->s.cmos_index);
	pthread_mutex_unlock(&p->lock);
}

/* Writes a PM1 register. Returns whether the write requests power off. Called with the lock. */
static bool pm1_write(struct platform_state *s, uint16_t *r, uint32_t val)
{
	if (r == &s->pm1_status)
		*r &= (uint16_t)~val; /* write one to clear */
	else
		*r = (uint16_t)val;
	return r == &s->pm1_control && (val & PM1_SLP_EN) && PM1_SLP_TYP(val) == PM1_SLP_TYP_S5;
}

/* Handles the PM1 event block (status, enable) and control block; ACPI 6.4, 4.8.3. */
static void acpi_pm_io(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	struct platform *p = dev;
	struct platform_state *s = &p->s;
	uint16_t *reg[] = { &s->pm1_status, &s->pm1_enable, &s->pm1_control };
	uint16_t *r = reg[off / 2 < 3 ? off / 2 : 2];
	bool end = false;

	pthread_mutex_lock(&p->lock);
	if (!write) {
		*val = r == &s->pm1_control ? *r | PM1_SCI_EN : *r;
		*val >>= 8 * (off & 1); /* upper half of the register */
	} else if (len >= 2) {		/* the fields that matter are in the upper byte */
		end = pm1_write(s, r, *val);
	}
	pthread_mutex_unlock(&p->lock);
	if (end)
		p->power.end(p->power.ctx, DEV_END_POWEROFF);
}

static void ignore_io(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	(void)dev;
	(void)off;
	(void)len;
	if (!write)
		*val = UINT32_MAX;
}

int platform_init(struct platform *p, struct bus *bus, struct dev_power power)
{
	static const struct {
		uint16_t base, count;
		const char *name;
		bus_handler io;
	} ports[] = {
		{ 0x60, 1, "i8042", i8042_data },
		{ PORT_I8042_COMMAND, 1, "i8042", i8042_command },
		{ PORT_RTC, 2, "cmos", cmos_io },
		{ 0x80, 1, "post", ignore_io },
		{ PORT_PM1A_EVENT, 6, "acpi-pm", acpi_pm_io },
	};

	memset(p, 0, sizeof(*p));
	p->power = power;
	pthread_mutex_init(&p->lock, NULL);
	/*
	 * The first gmtime_r(3) of a process opens /etc/localtime, which a vCPU's thread must not
	 * do: see cmos_read().
	 */
	tzset();
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		int ret =
			bus_add(bus, ports[i].base, ports[i].count, ports[i].name, ports[i].io, p);

		if (ret)
			return ret;
	}
	return 0;
}

void platform_deinit(struct platform *p)
{
	pthread_mutex_destroy(&p->lock);
}

static void exit_io(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	struct platform_exit *d = dev;

	(void)len;
	if (!write)
		*val = 0;
	else if (off == 0)
		d->end(d->ctx, *val);
}

int platform_exit_init(struct platform_exit *d, struct bus *bus,
		       void (*end)(void *ctx, uint32_t status), void *ctx)
{
	d->end = end;
	d->ctx = ctx;
	return bus_add(bus, PORT_DEBUG_EXIT, PORT_DEBUG_EXIT_LEN, "debug-exit", exit_io, d);
}

int platform_save(void *platform, struct buf *out, struct err *e)
{
	const struct platform_state *s = &((struct platform *)platform)->s;

	(void)e;
	buf_u8(out, s->cmos_index);
	buf_u8(out, s->kbd_command);
	buf_u8(out, s->kbd_ctr);
	buf_u8(out, s->kbd_out);
	buf_u8(out, s->kbd_full);
	buf_u16(out, s->pm1_status);
	buf_u16(out, s->pm1_enable);
	buf_u16(out, s->pm1_control);
	return 0;
}

int platform_restore(void *platform, struct cursor *in, struct err *e)
{
	struct platform *p = platform;
	struct platform_state s = { 0 };

	s.cmos_index = cursor_u8(in) & 0x7f;
	s.kbd_command = cursor_u8(in);
	s.kbd_ctr = cursor_u8(in);
	s.kbd_out = cursor_u8(in);
	s.kbd_full = cursor_u8(in) & 1;
	s.pm1_status = cursor_u16(in);
	s.pm1_enable = cursor_u16(in);
	s.pm1_control = cursor_u16(in);
	if (in->bad || cursor_left(in))
		return err_set(e, EINVAL, "the state of the platform devices is damaged");
	p->s = s;
	return 0;
}
