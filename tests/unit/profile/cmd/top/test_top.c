/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The live view: what is counted, what fades, who calls whom, and the lines that show it.
 */
#include "profile/cmd/top/model.h"
#include "profile/cmd/top/view.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct top_model *m;
static struct err e;

static int setup(void **state)
{
	(void)state;
	return top_model_create(&m, &e);
}

static int teardown(void **state)
{
	(void)state;
	top_model_destroy(m);
	return 0;
}

/* Names from the innermost one on, as "leaf caller root". */
static void add(unsigned int vcpu, enum top_mode mode, double weight, const char *names)
{
	struct top_frame frame[TOP_MAX_FRAMES];
	unsigned int n = 0;
	char text[4096], *save, *name;

	snprintf(text, sizeof(text), "%s", names);
	for (name = strtok_r(text, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
		frame[n] = (struct top_frame){ name, "[kernel.kallsyms]", 0x1000 + n, mode };
		n++;
	}
	assert_int_equal(top_model_add(m, &(struct top_stack){ vcpu, mode, weight, frame, n }, &e),
			 0);
}

static const struct top_row *find(const char *name, enum top_order order, double *total)
{
	const struct top_filter all = { 0 };
	struct top_rows rows;

	assert_int_equal(top_model_rows(m, order, &all, &rows, &e), 0);
	*total = rows.total;
	for (size_t i = 0; i < rows.n; i++)
		if (!strcmp(rows.row[i].name, name))
			return &rows.row[i];
	return NULL;
}

static void counts_self_and_children(void **state)
{
	const struct top_row *row;
	double total;

	(void)state;
	add(0, TOP_KERNEL, 3, "leaf middle root");
	add(0, TOP_KERNEL, 1, "other middle root");
	add(1, TOP_KERNEL, 6, "rec rec rec root");
	row = find("root", TOP_BY_CHILDREN, &total);
	assert_true(total == 10 && row->children == 10 && row->self == 0);
	row = find("middle", TOP_BY_CHILDREN, &total);
	assert_true(row->children == 4 && row->self == 0);
	row = find("rec", TOP_BY_SELF, &total);
	assert_true(row->children == 6 && row->self == 6); /* once, however often it is there */
	assert_int_equal(row->addr, 0x1000);
}

static void weights_fade_and_are_forgotten(void **state)
{
	double total;

	(void)state;
	add(0, TOP_USER, 8, "main");
	top_model_begin(m, TOP_OLDER_FADE);
	assert_true(find("main", TOP_BY_SELF, &total)->self == 7);
	add(0, TOP_USER, 1, "main");
	assert_true(find("main", TOP_BY_SELF, &total)->self == 8);
	top_model_begin(m, TOP_OLDER_FORGET);
	assert_null(find("main", TOP_BY_SELF, &total));
	assert_true(total == 0);
}

static void vcpus_show_the_last_batch(void **state)
{
	const struct top_vcpu *v;
	unsigned int n;

	(void)state;
	add(0, TOP_USER, 8, "main");
	top_model_begin(m, TOP_OLDER_FADE);
	add(2, TOP_KERNEL, 3, "f");
	add(2, TOP_IDLE, 1, "halt");
	v = top_model_vcpus(m, &n);
	assert_int_equal(n, 3);
	assert_true(v[0].weight[TOP_USER] == 0);
	assert_true(v[2].weight[TOP_KERNEL] == 3 && v[2].weight[TOP_IDLE] == 1);
}

static void callers_are_a_tree(void **state)
{
	struct top_caller c[8];
	double total;
	size_t n;

	(void)state;
	add(0, TOP_KERNEL, 60, "leaf a root");
	add(0, TOP_KERNEL, 30, "leaf b root");
	add(0, TOP_KERNEL, 9, "leaf leaf b root"); /* the outermost call counts */
	add(0, TOP_KERNEL, 1, "leaf rare root");
	add(0, TOP_KERNEL, 50, "elsewhere root");
	n = top_model_callers(m, find("leaf", TOP_BY_SELF, &total)->func, 0.05, 5, c, 8);
	assert_int_equal(n, 4);
	assert_string_equal(c[0].name, "a");
	assert_true(c[0].depth == 1 && c[0].weight == 60);
	assert_string_equal(c[1].name, "root");
	assert_true(c[1].depth == 2 && c[1].weight == 60);
	assert_string_equal(c[2].name, "b");
	assert_true(c[2].depth == 1 && c[2].weight == 39);
	assert_string_equal(c[3].name, "root");
	assert_int_equal(
		top_model_callers(m, find("leaf", TOP_BY_SELF, &total)->func, 0.05, 1, c, 8), 2);
	assert_int_equal(top_model_callers(m, find("leaf", TOP_BY_SELF, &total)->func, 0, 5, c, 3),
			 3);
	assert_int_equal(top_model_callers(m, find("root", TOP_BY_SELF, &total)->func, 0, 5, c, 8),
			 0);
}

static void room_is_made_by_forgetting_what_faded(void **state)
{
	char name[32];
	double total;

	(void)state;
	for (unsigned int i = 0; i < TOP_MAX_STACKS; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		add(0, TOP_KERNEL, i ? 1 : 1000, name);
	}
	add(0, TOP_KERNEL, 5, "new main"); /* 1 is less than a hundredth of 1000 */
	assert_true(find("new", TOP_BY_SELF, &total)->self == 5);
	assert_true(find("f0", TOP_BY_SELF, &total)->self == 1000);
	assert_true(total == 1005);
	for (unsigned int i = 0; i < TOP_MAX_STACKS; i++) {
		snprintf(name, sizeof(name), "g%u", i);
		add(0, TOP_KERNEL, 100, name);
	}
	assert_non_null(find("f0", TOP_BY_SELF, &total));
	assert_true(total < 1005 + 100.0 * TOP_MAX_STACKS); /* not all found a place */
	/* Stacks are whole after that. */
	assert_true(!find("main", TOP_BY_SELF, &total) ||
		    find("main", TOP_BY_SELF, &total)->children == 5);
}

/* -- lines ---------------------------------------------------------------------------- */

static struct top_status status = { .title = "demo",
				    .event = "wall",
				    .elapsed_s = 1.5,
				    .rate_hz = 997,
				    .seen_hz = 990,
				    .samples = 1234,
				    .collecting = true };

static const char *draw(struct top_screen *s, struct top_choice *c, unsigned int lines,
			unsigned int columns)
{
	static char text[65536];

	assert_int_equal(top_view_draw(s, m, &status, c, (struct top_size){ lines, columns }, &e),
			 0);
	assert_true(s->text.len < sizeof(text));
	memcpy(text, s->text.data, s->text.len);
	text[s->text.len] = '\0';
	return text;
}

static void lines_show_rows_bars_and_callers(void **state)
{
	struct top_choice c = { 0 };
	struct top_screen s;
	const char *text;

	(void)state;
	top_screen_init(&s);
	assert_non_null(strstr(draw(&s, &c, 0, 0), "no samples yet"));
	add(0, TOP_KERNEL, 75, "leaf root");
	add(0, TOP_USER, 25, "main");
	text = draw(&s, &c, 0, 0);
	assert_non_null(strstr(text, "demo, 1.5 s\n990 samples/s (wall of 997 Hz), 1234 in all"));
	assert_non_null(strstr(text, "vCPU 0  [kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkuuuuuuuuuuuu] "
				     "kernel  75.0 % user  25.0 %"));
	assert_non_null(strstr(text, "   75.00%    75.00%  kernel  [kernel.kallsyms]     leaf\n"));
	assert_int_equal(s.nrows, 3);
	/* The symbol is the last to go. */
	assert_non_null(strstr(draw(&s, &c, 0, 60), "   75.00%    75.00%  kernel  leaf\n"));
	assert_non_null(strstr(draw(&s, &c, 0, 40), "   75.00%   75.00%  leaf\n"));
	draw(&s, &c, 0, 0);
	assert_string_equal(s.selected.name, "leaf");
	c.expanded = true;
	assert_non_null(strstr(draw(&s, &c, 0, 0), " 75.00%  <- root\n"));
	snprintf(c.filter, sizeof(c.filter), "mai");
	c.expanded = false;
	text = draw(&s, &c, 0, 0);
	assert_null(strstr(text, "leaf"));
	assert_non_null(strstr(text, "filter: mai\n"));
	assert_int_equal(s.nrows, 1);
	c.selected = 99; /* is brought into range */
	draw(&s, &c, 0, 0);
	assert_int_equal(c.selected, 0);
	top_screen_deinit(&s);
}

static void lines_fit_the_terminal(void **state)
{
	struct top_screen s;
	char name[200];

	(void)state;
	top_screen_init(&s);
	for (unsigned int i = 0; i < 100; i++) {
		memset(name, 'n', sizeof(name));
		snprintf(name + 150, 50, "%u\033[2J",
			 i); /* a guest that wants to clear the screen */
		add(i % 4, TOP_KERNEL, 100 - i, name);
	}
	for (unsigned int lines = 1; lines < 60; lines++)
		for (unsigned int columns = 10; columns < 250; columns += 30) {
			struct top_choice c = { .selected = 80, .expanded = true };
			const char *text = draw(&s, &c, lines, columns);
			unsigned int n = 0;

			assert_true(s.nlines <= lines);
			assert_null(strchr(text, '\033'));
			for (const char *at = text; *at; n++) {
				size_t len = strcspn(at, "\n");

				assert_true(len <= columns);
				at += len + 1;
			}
			assert_int_equal(n, s.nlines);
			assert_int_equal(s.style.len, n);
			if (lines > 10)
				assert_in_range(s.selected_line, s.row_line, lines - 1);
		}
	top_screen_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(counts_self_and_children, setup, teardown),
		cmocka_unit_test_setup_teardown(weights_fade_and_are_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(vcpus_show_the_last_batch, setup, teardown),
		cmocka_unit_test_setup_teardown(callers_are_a_tree, setup, teardown),
		cmocka_unit_test_setup_teardown(room_is_made_by_forgetting_what_faded, setup,
						teardown),
		cmocka_unit_test_setup_teardown(lines_show_rows_bars_and_callers, setup, teardown),
		cmocka_unit_test_setup_teardown(lines_fit_the_terminal, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
