// SPDX-License-Identifier: GPL-2.0-or-later
/* mode=pages: see pages.h. */
#include "pages.h"

/* The jobs of job_run() in pages_user.c. */
static const struct job {
	u8 code, data; /* PAGES_KIND_* */
	u8 write, stack;
} jobs[PAGES_JOBS] = {
	{ PAGES_KIND_4K, PAGES_KIND_4K, 0, 0 }, { PAGES_KIND_4K, PAGES_KIND_2M, 1, 0 },
	{ PAGES_KIND_2M, PAGES_KIND_2M, 0, 0 }, { PAGES_KIND_2M, PAGES_KIND_1G, 0, 0 },
	{ PAGES_KIND_1G, PAGES_KIND_1G, 1, 0 }, { PAGES_KIND_1G, PAGES_KIND_4K, 1, 0 },
	{ PAGES_KIND_4K, PAGES_KIND_4K, 0, 1 },
};

static void line(const char *what, const char *name, u64 part, u64 whole)
{
	put_string("pages ");
	put_string(what);
	put_string(" ");
	put_string(name);
	put_string(" ");
	put_percent(part, whole);
	put_string("\n");
}

/* Reads CPUID.80000001H:EDX[26], if that leaf exists. */
static int has_1g(void)
{
	return cpuid(0x80000000).a >= 0x80000001 && (cpuid(0x80000001).d >> 26 & 1);
}

void pages_run(u64 total)
{
	static const char *const kind[PAGES_KINDS] = { "4K", "2M", "1G" };
	volatile u64 *spent = (volatile u64 *)(KERNEL_MAP + PAGES_DATA_4K_PA + PAGES_SPENT_OFF);
	u64 data[PAGES_KINDS] = { 0 }, code[PAGES_KINDS] = { 0 };
	u64 whole = 0, write = 0, stack = 0;
	int with_1g = has_1g();

	for (u32 i = 0; i < PAGES_JOBS; i++)
		spent[i] = 0;
	put_string("demo: start\n");
	if (!with_1g)
		put_string("pages: CPUID offers no pages of 1 GiB: 2 MiB in their place\n");
	enter_user(with_1g ? USER_PAGES : USER_PAGES_NO_1G, total);
	for (u32 i = 0; i < PAGES_JOBS; i++) {
		u32 data_kind = jobs[i].data, code_kind = jobs[i].code;
		u64 part = spent[i];

		if (!with_1g && data_kind == PAGES_KIND_1G)
			data_kind = PAGES_KIND_2M;
		if (!with_1g && code_kind == PAGES_KIND_1G)
			code_kind = PAGES_KIND_2M;

		whole += part;
		data[data_kind] += part;
		code[code_kind] += part;
		write += jobs[i].write ? part : 0;
		stack += jobs[i].stack ? part : 0;
	}
	for (u32 i = 0; i < PAGES_KINDS; i++)
		line("data", kind[i], data[i], whole);
	for (u32 i = 0; i < PAGES_KINDS; i++)
		line("code", kind[i], code[i], whole);
	line("access", "read", whole - write, whole);
	line("access", "write", write, whole);
	line("region", "stack", stack, whole);
	line("region", "other", whole - stack, whole);
	put_string("demo: done\n");
}
