/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of a console, whatever the guest sends, and the expressions that look for them. */
#include "profile/record/console/marks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The lines of a text as "a|b|", an unfinished one without its "|". */
static const char *lines(const char *text, size_t len)
{
	static char out[4096];
	struct console_lines l = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (!console_lines_put(&l, (uint8_t)text[i]))
			continue;
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s|", l.text);
	}
	snprintf(out + n, sizeof(out) - n, "%s", console_lines_pending(&l) ? l.text : "");
	return out;
}

#define LINES(text, want) assert_string_equal(lines(text, sizeof(text) - 1), want)

static void ends_of_lines(void **state)
{
	(void)state;
	LINES("one\ntwo\r\nthree", "one|two|three");
	LINES("\n\r\n\nx\n", "|||x|");
	LINES("a\r\r\nb\n", "a|b|");
	LINES("10%\r20%\rdone\n", "10%|20%|done|");
	LINES("", "");
}

static void what_a_terminal_does_not_show(void **state)
{
	(void)state;
	LINES("\033[1;31mred\033[0m text\n", "red text|");
	LINES("\033]0;title\007shell$ ", "shell$ ");
	LINES("\033]8;;http://x\033\\link\033]8;;\033\\\n", "link|");
	LINES("\033(Bascii\033=\033>\033c\n", "ascii|");
	LINES("a\007b\tc\001\177d\n", "ab\tcd|");
	LINES("passwx\bord\b\b\b\b\b\b\b\b\bnew\n", "new|");
	LINES("\0nul\0\n", "nul|");
	/* a sequence that never ends ends with its line */
	LINES("\033[\ntext\n\033]0;no end\nmore\n", "|text||more|");
	LINES("\033P\033\033\\x\n", "x|");
}

static void long_lines(void **state)
{
	char text[3 * CONSOLE_LINE_MAX + 1];
	struct console_lines l = { 0 };

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\n';
	for (size_t i = 0; i + 1 < sizeof(text); i++)
		assert_false(console_lines_put(&l, (uint8_t)text[i]));
	assert_true(console_lines_put(&l, '\n'));
	assert_int_equal(l.n, CONSOLE_LINE_MAX);
	assert_int_equal(strlen(l.text), CONSOLE_LINE_MAX);
	assert_int_equal(l.capped, 2 * CONSOLE_LINE_MAX);
	assert_false(console_lines_put(&l, 'y'));
	assert_string_equal(l.text, "y");
}

static char log_[1000];

static void found(void *ctx, const struct console_mark *mark, const char *name, size_t len,
		  uint64_t time_ns)
{
	size_t n = strlen(log_);

	(void)ctx;
	snprintf(log_ + n, sizeof(log_) - n, "%s:%.*s@%u ", markers_kind_name(mark->kind), (int)len,
		 name, (unsigned int)time_ns);
}

static void feed(struct console_marks *m, const char *text, uint64_t *now)
{
	for (; *text; text++)
		console_marks_put(m, (uint8_t)*text, ++*now, found, NULL);
}

static void matches(void **state)
{
	struct console_marks m = { 0 };
	struct err e = { 0 };
	uint64_t now = 0;

	(void)state;
	log_[0] = '\0';
	assert_int_equal(console_marks_add(&m, MARKER_START, "^boot=[0-9]+", &e), 0);
	assert_int_equal(console_marks_add(&m, MARKER_STOP, "login: $", &e), 0);
	assert_int_equal(console_marks_add(&m, MARKER_CONSOLE, "net=eth[0-9] up", &e), 0);
	assert_int_equal(console_marks_add(&m, MARKER_CONSOLE, "=a=b", &e), 0);
	feed(&m, "boot=12 ok\n", &now);
	feed(&m, "\033[32m[ok]\033[0m eth0 up, eth1 up\r\n", &now);
	feed(&m, "xa=by\n", &now);
	assert_string_equal(log_, "start:boot=12@11 console:net@42 console:a=b@49 ");
	/* a prompt: once, though it is looked at again and then becomes a whole line */
	log_[0] = '\0';
	feed(&m, "host log", &now);
	console_marks_flush(&m, now, found, NULL);
	feed(&m, "in: ", &now);
	console_marks_flush(&m, now, found, NULL);
	console_marks_flush(&m, now, found, NULL);
	assert_string_equal(log_, "stop:login: @61 ");
	feed(&m, "\n", &now);
	feed(&m, "login: ", &now);
	console_marks_flush(&m, now, found, NULL);
	assert_string_equal(log_, "stop:login: @61 stop:login: @69 ");
	assert_int_equal(m.bytes, now);
	console_marks_deinit(&m);
}

static void bad_expressions(void **state)
{
	static char longest[CONSOLE_REGEX_MAX + 2];
	struct console_marks m = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(console_marks_add(&m, MARKER_START, "a(", &e), -EINVAL);
	assert_string_equal(e.text, "bad expression 'a(': Unmatched ( or \\(");
	err_clear(&e);
	assert_int_equal(console_marks_add(&m, MARKER_START, "", &e), -EINVAL);
	assert_int_equal(console_marks_add(&m, MARKER_CONSOLE, "name=", &e), -EINVAL);
	memset(longest, 'x', sizeof(longest) - 1);
	assert_int_equal(console_marks_add(&m, MARKER_START, longest, &e), -EINVAL);
	assert_int_equal(m.n, 0);
	for (unsigned int i = 0; i < CONSOLE_MARKS_MAX; i++)
		assert_int_equal(console_marks_add(&m, MARKER_CONSOLE, "x", &e), 0);
	assert_int_equal(console_marks_add(&m, MARKER_CONSOLE, "x", &e), -EINVAL);
	console_marks_deinit(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends_of_lines),   cmocka_unit_test(what_a_terminal_does_not_show),
		cmocka_unit_test(long_lines),	   cmocka_unit_test(matches),
		cmocka_unit_test(bad_expressions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
