/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bytes of FILE as read-only data between SYMBOL and SYMBOL_end; the Makefile's `embed' defines them and ALIGN. */
#define JOIN(a, b) a##b
#define END(symbol) JOIN(symbol, _end)

	.section .rodata
	.balign ALIGN
	.global SYMBOL, END(SYMBOL)
SYMBOL:
	.incbin FILE
END(SYMBOL):
	.section .note.GNU-stack, "", @progbits
