/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The messages about an image, by what is known of it; tests/e2e/kernel_tables.py has real ones. */
#include "profile/record/guest/image_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

static struct target t;
static struct image_check c;

static void add_symbol(struct symtab *s, uint64_t va, char type, const char *name)
{
	assert_int_equal(symtab_add(s, va, 16, type, name), 0);
}

/* A Linux of which all is known, with frame pointers. */
static int setup(void **state)
{
	struct target_linux *l = &t.linux_facts;

	(void)state;
	memset(&t, 0, sizeof(t));
	t.is_linux = true;
	t.frame_pointers = true;
	t.irq_stack_ptr = 0x1000;
	t.symbols = symtab_create();
	t.symbol_source = "a test";
	add_symbol(t.symbols, 0xffffffff81000000, 'T', "mas_find");
	add_symbol(t.symbols, 0xffffffff82000000, 'D', "init_task");
	assert_int_equal(symtab_freeze(t.symbols, NULL), 0);
	l->have_current = l->have_task = l->have_mm = l->have_file = l->have_modules = true;
	l->task.init_task = 0xffffffff82000000;
	l->sched.source = LINUX_TASK_BY_TYPES;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	symtab_destroy(t.symbols);
	return 0;
}

static void replace_symbols(char type, const char *name)
{
	symtab_destroy(t.symbols);
	t.symbols = symtab_create();
	add_symbol(t.symbols, 0xffffffff81000000, type, name);
	assert_int_equal(symtab_freeze(t.symbols, NULL), 0);
}

/* The answers' first letters, in the rows' order. */
static void expect(const char *answers)
{
	char got[IMAGE_CHECK_COUNT + 1] = "";

	image_check(&t, &c);
	for (unsigned int i = 0; i < c.n; i++) {
		got[i] = image_check_answer_name(c.row[i].answer)[0];
		assert_string_not_equal(c.row[i].text, "");
	}
	assert_string_equal(got, answers);
}

static void expect_text(enum image_check_what what, const char *part)
{
	if (!strstr(c.row[what].text, part))
		fail_msg("%s: %s", image_check_title(what), c.row[what].text);
}

static void all_is_known(void **state)
{
	struct json_writer w;
	struct buf b;

	(void)state;
	expect("yyyyyyy");
	expect_text(IMAGE_CHECK_NAMES, "2 from a test");
	expect_text(IMAGE_CHECK_STACKS, "by frame pointers");
	buf_init(&b);
	c.n = 1;
	json_begin(&w, &b);
	image_check_json(&w, NULL, &c);
	buf_u8(&b, 0);
	assert_string_equal((char *)b.data,
			    "{\"names\":{\"answer\":\"yes\",\"text\":\"2 from a test\"}}");
	buf_deinit(&b);
}

static void no_linux(void **state)
{
	(void)state;
	t.is_linux = false;
	t.irq_stack_ptr = 0;
	expect("yy");
}

static void names_and_stacks(void **state)
{
	(void)state;
	replace_symbols('t', "mas_find");
	expect("pyyyyyy");
	expect_text(IMAGE_CHECK_NAMES, "CONFIG_KALLSYMS_ALL");
	t.irq_stack_ptr = 0;
	t.frame_pointers = false;
	err_set(&t.orc_note, EINVAL, "its entries make no sense");
	expect("ppyyyyy");
	expect_text(IMAGE_CHECK_STACKS, "none counts as whole");
	expect_text(IMAGE_CHECK_STACKS, "not used: its entries make no sense");
	expect_text(IMAGE_CHECK_STACKS, "interrupt stack");
	symtab_destroy(t.symbols);
	t.symbols = NULL;
	err_set(&t.symbol_note, EINVAL, "no kallsyms here");
	expect("nnyyyyy");
	expect_text(IMAGE_CHECK_NAMES, "no kallsyms here");
	expect_text(IMAGE_CHECK_STACKS, "innermost");
}

/* The results that a search in the guest may have, and the cases in which it cannot begin. */
static void without_types(void **state)
{
	struct target_linux *l = &t.linux_facts;

	(void)state;
	l->have_task = l->have_mm = l->have_file = l->have_modules = false;
	l->sched.source = 0;
	err_set(&l->task_note, ENOENT, "no types");
	l->mm_note = l->file_note = l->module_note = l->task_note;
	expect("yysnsss");
	expect_text(IMAGE_CHECK_OFF_CPU, "no types");
	replace_symbols('D', "init_task"); /* mappings are a list */
	expect("yysnnns");
	expect_text(IMAGE_CHECK_FILES, "maple tree");
	l->task.init_task = 0;
	expect("yynnnnn");
	expect_text(IMAGE_CHECK_TASKS, "init_task");
	l->have_current = false;
	expect("yynnnnn");
	expect_text(IMAGE_CHECK_TASKS, "no types");
	expect_text(IMAGE_CHECK_MAPPINGS, "tasks cannot be told apart");
}

static void what_types_lack(void **state)
{
	struct target_linux *l = &t.linux_facts;

	(void)state;
	l->have_file = false;
	err_set(&l->file_note, ENOENT, "no xa_head");
	l->sched.sp = LINUX_TASK_NONE;
	l->modules.kallsyms = LINUX_MODULE_NONE;
	expect("yyypynn");
	expect_text(IMAGE_CHECK_FILES, "no xa_head");
	expect_text(IMAGE_CHECK_OFF_CPU, "thread.sp");
	expect_text(IMAGE_CHECK_MODULES, "names");
	l->modules.kallsyms = 0;
	l->modules.num_symtab = LINUX_MODULE_NONE;
	l->task.tasks = LINUX_TASK_NONE;
	expect("yyppynn");
	l->have_task = false;
	l->have_modules = l->have_file = true;
	l->sched.sp = l->modules.num_symtab = 0;
	err_set(&l->task_note, ENOENT, "no comm");
	expect("yysysss");
	expect_text(IMAGE_CHECK_OFF_CPU, "once tasks are found");
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_is_known),  T(no_linux),	      T(names_and_stacks),
		T(without_types), T(what_types_lack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
