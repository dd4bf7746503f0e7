// SPDX-License-Identifier: GPL-2.0-or-later
/* Strings and lines. */
#include "exec.h"

ulong_t text_length(const char *s)
{
	ulong_t n = 0;

	while (s[n])
		n++;
	return n;
}

int text_same(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	return *a == *b;
}

char *text_cut(char *s, char c)
{
	for (; *s; s++)
		if (*s == c) {
			*s = 0;
			return s + 1;
		}
	return NULL;
}

void line_add(struct line *l, const char *s)
{
	for (; *s && l->n < sizeof(l->text); s++)
		l->text[l->n++] = *s;
}

void line_number(struct line *l, ulong_t v)
{
	char digits[24], *p = digits + sizeof(digits) - 1;

	*p = 0;
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	line_add(l, p);
}

void line_write(struct line *l)
{
	for (ulong_t done = 0; done < l->n;) {
		long n = syscall3(NR_WRITE, 1, l->text + done, l->n - done);

		if (n <= 0)
			return;
		done += (ulong_t)n;
	}
}
