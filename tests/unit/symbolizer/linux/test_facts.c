/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The facts about a Linux kernel of which only some types and symbols are known. */
#include "symbolizer/linux/facts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

static bool asked_mutex; /* whether a member of a lock was looked up */

static int member(void *ctx, const char *structure, const char *path, struct type_member *out)
{
	const uint32_t *stack_size = ctx;

	asked_mutex |= !strcmp(structure, "mutex");
	if (strcmp(structure, "pcpu_hot") != 0)
		return -ENOENT;
	if (!strcmp(path, "current_task"))
		*out = (struct type_member){ .off = 8, .size = 8 };
	else if (!strcmp(path, "hardirq_stack_ptr"))
		*out = (struct type_member){ .off = 32, .size = *stack_size };
	else
		return -ENOENT;
	return 0;
}

static int size_of(void *ctx, const char *structure, uint64_t *out)
{
	(void)ctx, (void)structure, (void)out;
	return -ENOENT;
}

static int value_of(void *ctx, const char *name, int64_t *out)
{
	(void)ctx, (void)name, (void)out;
	return -ENOENT;
}

static void look(struct target_linux *l, const struct types *types, const char *hot)
{
	struct symtab *s = symtab_create();

	assert_int_equal(symtab_add(s, 0x30000, 64, 'D', hot), 0);
	assert_int_equal(symtab_add(s, 0xffffffff82000000, 64, 'D', "__per_cpu_offset"), 0);
	assert_int_equal(symtab_freeze(s, NULL), 0);
	linux_target_init(l, types, s);
	symtab_destroy(s);
}

/* 6.2 to 6.14: beside the current task. */
static void interrupt_stack(void **state)
{
	struct target_linux l = { .have_current = false };
	uint32_t bytes = 8;
	struct types t = { member, size_of, value_of, &bytes };

	(void)state;
	look(&l, &t, "pcpu_hot");
	assert_true(l.have_current && l.task.per_cpu);
	assert_int_equal(l.task.current, 0x30008);
	assert_int_equal(l.irq_stack_ptr, 0x30020);
	bytes = 4;
	look(&l, &t, "pcpu_hot");
	assert_int_equal(l.irq_stack_ptr, 0);
	look(&l, NULL, "pcpu_hot");
	assert_int_equal(l.irq_stack_ptr, 0);
	bytes = 8;
	look(&l, &t, "current_task"); /* has a variable of its own */
	assert_int_equal(l.irq_stack_ptr, 0);
}

/* Types that can't be read are not the same as none. */
static void reasons(void **state)
{
	struct target_linux l = { .have_current = false };

	(void)state;
	look(&l, NULL, "current_task");
	assert_non_null(strstr(l.task_note.text, "no type information"));
	err_clear(&l.types_note);
	err_set(&l.types_note, EINVAL, "BTF of a newer kind");
	look(&l, NULL, "current_task");
	assert_string_equal(l.task_note.text, "BTF of a newer kind");
	assert_string_equal(l.mm_note.text, "BTF of a newer kind");
	assert_string_equal(l.file_note.text, "BTF of a newer kind");
}

/* A run does not look up what only `why` and `dmesg` need. */
static void explanations(void **state)
{
	struct target_linux l = { .have_current = false };
	uint32_t bytes = 8;
	struct types t = { member, size_of, value_of, &bytes };
	struct symtab *s;

	(void)state;
	asked_mutex = false;
	look(&l, &t, "pcpu_hot");
	assert_false(asked_mutex || l.have_printk || l.printk_note.code);
	assert_false(linux_hang_has(&l.hang, LINUX_HANG_PCPU_HOT_PREEMPT));
	s = symtab_create();
	assert_int_equal(symtab_freeze(s, NULL), 0);
	linux_target_explain(&l, &t, s);
	assert_true(asked_mutex && l.printk_note.code);
	symtab_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interrupt_stack),
		cmocka_unit_test(reasons),
		cmocka_unit_test(explanations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
