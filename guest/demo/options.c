// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line, and parameters in it. */
#include "demo.h"

#define BOOT_PARAMS_CMD_LINE_PTR 0x228 /* Documentation/x86/boot.rst */

char command_line[CMD_LINE_MAX];

void command_line_copy(u64 boot_params)
{
	u32 gpa = *(const u32 *)(KERNEL_MAP + boot_params + BOOT_PARAMS_CMD_LINE_PTR);
	const char *from = (const char *)(KERNEL_MAP + gpa);

	/* Only the first GiB is mapped. */
	if (!gpa || gpa >= 0x40000000 - CMD_LINE_MAX)
		return;
	for (u32 i = 0; i < CMD_LINE_MAX - 1 && from[i]; i++)
		command_line[i] = from[i];
}

/* The value of a parameter ("name="), or NULL */
const char *option_find(const char *line, const char *name)
{
	const char *p = line;

	demo_frame();
	while (*p) {
		const char *a = p, *b = name;

		while (*b && *a == *b) {
			a++;
			b++;
		}
		if (!*b)
			return a;
		while (*p && *p != ' ')
			p++;
		while (*p == ' ')
			p++;
	}
	return 0;
}

u64 option_number(const char *line, const char *name, u64 fallback)
{
	const char *p = option_find(line, name);
	u64 value = 0;

	if (!p || *p < '0' || *p > '9')
		return fallback;
	for (; *p >= '0' && *p <= '9' && value < 1000000000; p++)
		value = value * 10 + (u64)(*p - '0');
	return value;
}

int option_is(const char *line, const char *name, const char *value)
{
	const char *p = option_find(line, name);

	if (!p)
		return 0;
	while (*value && *p == *value) {
		p++;
		value++;
	}
	return !*value && (!*p || *p == ' ');
}
