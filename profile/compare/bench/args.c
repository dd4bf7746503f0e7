/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench_args: what the user says, as words and CPUs.
 */
#include "profile/compare/bench/bench.h"

#include "base/cleanup.h"
#include "base/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* One word, unquoted in place; *from is behind it after. false: a quote has no end. */
static bool take_word(const char **from, char **to)
{
	const char *p = *from;
	char quote = 0;

	for (; *p && (quote || !is_blank(*p)); p++) {
		if (quote ? *p == quote : *p == '\'' || *p == '"') {
			quote = quote ? 0 : *p;
		} else {
			if (*p == '\\' && quote != '\'' && p[1])
				p++;
			*(*to)++ = *p;
		}
	}
	*(*to)++ = '\0';
	*from = p;
	return !quote;
}

int bench_args_parse(struct bench_args *a, const char *text, struct err *e)
{
	size_t len = strlen(text);
	cleanup_free char *copy = NULL;
	struct bench_args got = { .n = 0 };
	char *to;

	if (len > BENCH_TEXT_MAX)
		return err_set(e, E2BIG, "%zu bytes of run options, at most %u", len,
			       BENCH_TEXT_MAX);
	/* Words only get shorter; each ends where there was a blank or the end. */
	to = copy = malloc(len + 2);
	if (!copy)
		return err_set(e, ENOMEM, "out of memory");
	for (;;) {
		while (is_blank(*text))
			text++;
		if (!*text)
			break;
		if (got.n == BENCH_ARGS_MAX)
			return err_set(e, E2BIG, "more than %u run options", BENCH_ARGS_MAX);
		got.word[got.n++] = to;
		if (!take_word(&text, &to))
			return err_set(e, EINVAL, "a quote without an end");
	}
	got.text = take_ptr(copy);
	*a = got;
	return 0;
}

void bench_args_deinit(struct bench_args *a)
{
	free(a->text);
	*a = (struct bench_args){ .n = 0 };
}

int bench_cpus_parse(cpu_set_t *set, const char *text, struct err *e)
{
	const char *p = text;
	struct number_range r;
	int ret;

	CPU_ZERO(set);
	while ((ret = number_range(&p, CPU_SETSIZE - 1, &r)) > 0)
		for (; r.from <= r.to; r.from++)
			CPU_SET(r.from, set);
	return ret ? err_set(e, EINVAL, "'%.60s': expected CPUs below %d such as 0,2-3", text,
			     CPU_SETSIZE)
		   : 0;
}
