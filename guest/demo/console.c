// SPDX-License-Identifier: GPL-2.0-or-later
/* Polled output on COM1, and the few number formats that the demo needs. */
#include "demo.h"

#define COM1 0x3f8
#define COM1_IER (COM1 + 1)
#define COM1_FCR (COM1 + 2)
#define COM1_LCR (COM1 + 3)
#define COM1_LSR (COM1 + 5)
#define LSR_THRE 0x20

void console_init(void)
{
	demo_frame();
	outb(COM1_IER, 0);
	outb(COM1_LCR, 0x80);
	outb(COM1, 1); /* divisor 1: 115200 baud */
	outb(COM1_IER, 0);
	outb(COM1_LCR, 0x03); /* 8n1 */
	outb(COM1_FCR, 0x07);
}

static void put_char(char c)
{
	/* Bounded, because a machine without a UART must not stop the demo. */
	for (int i = 0; i < 10000 && !(inb(COM1_LSR) & LSR_THRE); i++)
		;
	outb(COM1, (u8)c);
}

void put_string(const char *s)
{
	demo_frame();
	for (; *s; s++) {
		if (*s == '\n')
			put_char('\r');
		put_char(*s);
	}
}

void put_number(u64 value)
{
	char digits[24], *p = digits + sizeof(digits);

	demo_frame();
	*--p = 0;
	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	put_string(p);
}

void put_hex(u64 value)
{
	put_string("0x");
	for (int shift = 60; shift >= 0; shift -= 4)
		put_char("0123456789abcdef"[value >> shift & 15]);
}

/* part/whole in percent with two decimals, rounded to nearest */
void put_percent(u64 part, u64 whole)
{
	u64 hundredths = whole ? (part * 10000 + whole / 2) / whole : 0;

	put_number(hundredths / 100);
	put_char('.');
	put_char((char)('0' + hundredths / 10 % 10));
	put_char((char)('0' + hundredths % 10));
}
