/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code that ends with HLT, and code that ends with its byte. */
#include "vmm/hlt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct code {
	const char *what;
	uint8_t b[HLT_BYTES];
};

static const struct code halts[] = {
	{ "verw; sti; hlt", { 0x2d, 0xa4, 0xe8, 0x7e, 0xfb, 0xf4 } },
	{ "verw; hlt", { 0x00, 0x2d, 0x97, 0x8f, 0x00, 0xf4 } },
	{ "nopw; hlt", { 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xf4 } },
	{ "cli; hlt", { 0x44, 0x00, 0x00, 0x00, 0xfa, 0xf4 } },
	{ "hlt; jmp; hlt", { 0xf4, 0xeb, 0xfd, 0x90, 0x90, 0xf4 } },
};

static const struct code others[] = {
	{ "sti; hlt; nop", { 0x00, 0x7e, 0x00, 0xfb, 0xf4, 0x90 } },
	{ "je .-10", { 0x01, 0x00, 0x84, 0xc0, 0x74, 0xf4 } },
	{ "jmp .-10", { 0x01, 0x00, 0x84, 0xc0, 0xeb, 0xf4 } },
	{ "loop .-10", { 0x01, 0x00, 0x84, 0xc0, 0xe2, 0xf4 } },
	{ "mov -12(%rbp), %eax", { 0x48, 0x89, 0xe5, 0x8b, 0x45, 0xf4 } },
	{ "mov -12(%rsp), %eax", { 0x48, 0x89, 0x8b, 0x44, 0x24, 0xf4 } },
	{ "call", { 0x90, 0xe8, 0x10, 0x20, 0x00, 0xf4 } },
	{ "jne", { 0x0f, 0x85, 0x10, 0x20, 0x00, 0xf4 } },
};

static void told_apart(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(halts) / sizeof(*halts); i++)
		if (!hlt_is_last(halts[i].b))
			fail_msg("%s is not seen", halts[i].what);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (hlt_is_last(others[i].b))
			fail_msg("%s is taken for HLT", others[i].what);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(told_apart) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
