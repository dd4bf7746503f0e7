/* SPDX-License-Identifier: GPL-2.0-or-later */
/* why_view: prints a result of why_judge() as text. */
#include "profile/record/why/private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FRAMES 12u /* of a stack that are printed */

static const char *text(const json_t *o, const char *key, const char *otherwise)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : otherwise;
}

static void print_stack(const json_t *o, struct buf *out)
{
	const json_t *stack = json_object_get(o, "stack"), *frame;
	size_t i;

	json_array_foreach(stack, i, frame)
	{
		if (i == FRAMES) {
			buf_printf(out, "          ...\n");
			break;
		}
		buf_printf(out, "          %s\n", json_string_value(frame));
	}
}

static void print_duration(const json_t *o, const char *key, struct buf *out)
{
	const json_t *v = json_object_get(o, key);

	if (v)
		buf_printf(out, ", for %.1f s", (double)json_integer_value(v) / 1e9);
}

static void print_vcpus(const json_t *result, struct buf *out)
{
	const json_t *vcpus = json_object_get(result, "vcpus"), *v;
	size_t i;

	buf_printf(out, "\nvCPUs:\n");
	json_array_foreach(vcpus, i, v)
	{
		buf_printf(out, "  %zu %s", i, text(v, "state", "?"));
		if (!json_object_get(v, "rip")) {
			buf_printf(out, "\n");
			continue;
		}
		buf_printf(out, ", %s mode, interrupts %s", text(v, "mode", "?"),
			   json_is_true(json_object_get(v, "interrupts")) ? "on" : "off");
		if (json_object_get(v, "tid"))
			buf_printf(out, ", %s (tid %" PRIu64 ")", text(v, "comm", ""),
				   (uint64_t)json_integer_value(json_object_get(v, "tid")));
		print_duration(v, "same_ns", out);
		buf_printf(out, "\n");
		print_stack(v, out);
	}
}

static void print_tasks(const json_t *result, struct buf *out)
{
	const json_t *tasks = json_object_get(result, "tasks"), *t;
	size_t i;

	if (json_array_size(tasks))
		buf_printf(out, "\nBlocked tasks:\n");
	json_array_foreach(tasks, i, t)
	{
		const char *lock = text(t, "waits_for", NULL);

		buf_printf(out, "  %s (tid %" PRIu64 ") %s", text(t, "comm", ""),
			   (uint64_t)json_integer_value(json_object_get(t, "tid")),
			   text(t, "state", "?"));
		print_duration(t, "blocked_ns", out);
		if (lock)
			buf_printf(out, ", waits for the %s", lock);
		if (json_object_get(t, "held_by"))
			buf_printf(out, ", held by tid %" PRIu64,
				   (uint64_t)json_integer_value(json_object_get(t, "held_by")));
		buf_printf(out, "\n");
		print_stack(t, out);
	}
}

static double number(const json_t *o, const char *key)
{
	return (double)json_integer_value(json_object_get(o, key));
}

static void print_cost(const json_t *result, struct buf *out)
{
	if (json_object_get(result, "took_ns"))
		buf_printf(out,
			   "\nIt took %.1f s. The vCPU that was stopped most was stopped %.0f "
			   "times, for %.1f ms "
			   "in all and %.2f ms at most.\n",
			   number(result, "took_ns") / 1e9, number(result, "stops"),
			   number(result, "stopped_ns") / 1e6,
			   number(result, "longest_stop_ns") / 1e6);
}

/* Appends a line of the guest's log, with control characters as \x1b, because the guest must not control a terminal. */
static void print_log_line(const char *line, struct buf *out)
{
	buf_printf(out, "  ");
	for (; *line; line++) {
		const unsigned char c = (unsigned char)*line;
		/* C1 controls are two bytes in UTF-8: 0xc2, and 0x80 to 0x9f. */
		const bool c1 = c == 0xc2 && (unsigned char)line[1] >= 0x80 &&
				(unsigned char)line[1] < 0xa0;

		if (c1)
			buf_printf(out, "\\x%02x", (unsigned char)*++line);
		else if ((c < 0x20 && c != '\t') || c == 0x7f)
			buf_printf(out, "\\x%02x", c);
		else
			buf_u8(out, c);
	}
	buf_u8(out, '\n');
}

void why_print(const json_t *result, struct buf *out)
{
	const json_t *list, *o;
	size_t i;

	buf_printf(out, "%s\n", text(result, "verdict", ""));
	list = json_object_get(result, "evidence");
	json_array_foreach(list, i, o) buf_printf(out, "  %zu. %s\n", i + 1, json_string_value(o));
	print_vcpus(result, out);
	print_tasks(result, out);
	buf_printf(out, "\nThe kernel's log:\n");
	list = json_object_get(result, "dmesg");
	json_array_foreach(list, i, o) print_log_line(json_string_value(o), out);
	if (json_object_get(result, "dmesg_why_not"))
		buf_printf(out, "  not known: %s\n", text(result, "dmesg_why_not", ""));
	buf_printf(out, "\nChecks:\n");
	list = json_object_get(result, "checks");
	json_array_foreach(list, i, o)
	{
		const char *word = text(o, "result", "?");

		buf_printf(out, "  %-18s %-10s %s\n", text(o, "name", "?"),
			   !strcmp(word, "unknown") ? "not known" : word, text(o, "text", ""));
	}
	print_cost(result, out);
}
