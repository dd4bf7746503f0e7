/* SPDX-License-Identifier: GPL-2.0-or-later */
/* struct module by content: modules as kernels from 5.2 to 7.x lay them out, and such as refuse. */
#include "symbolizer/linux/module_find.h"
#include "symbolizer/linux/module_load.h"

#include "base/cleanup.h"
#include "tests/module_guest.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void found(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mg_shapes); i++) {
		const struct mg_shape *s = &mg_shapes[i];
		struct linux_module_layout l = mg_layout();
		struct linux_module_list list;
		struct err e = { 0 };

		mg_make(s);
		if (linux_module_find(&l, &mg_memory, &e))
			fail_msg("%s: %s", s->name, e.text);
		assert_int_equal(l.kallsyms, s->kallsyms);
		assert_int_equal(l.text_base, s->text);
		assert_int_equal(l.text_size, s->text + s->size);
		assert_int_equal(l.init_base, s->text + s->init);
		assert_int_equal(l.typetab, s->typetab ? 24 : LINUX_MODULE_NONE);
		assert_int_equal(l.num_orcs, s->orc ? s->orc : LINUX_MODULE_NONE);
		assert_int_equal(linux_module_list(&l, &mg_memory, &list, &e), 0);
		assert_int_equal(list.n, MG_MODULES);
		assert_string_equal(list.module[1].name, "module_1");
		assert_int_equal(list.module[1].text.start, mg_at(1, MG_TEXT));
		assert_int_equal(list.module[1].text.end, mg_at(1, MG_TEXT) + MG_TEXT_BYTES);
		assert_int_equal(linux_module_load(&l, &mg_memory, &list.module[2], &e), 0);
		assert_string_equal(
			symtab_lookup(list.module[2].symbols, mg_at(2, 0x310), NULL)->name,
			"three");
		assert_int_equal(symtab_count(list.module[2].symbols), 3);
		assert_int_equal(!list.module[2].orc, !s->orc);
		linux_module_list_deinit(&list);
	}
}

/* One that is being loaded has another look, and is not asked. */
static void loading(void **state)
{
	struct linux_module_layout l = mg_layout();

	(void)state;
	mg_make(&mg_shapes[3]);
	mg_put4(mg_at(1, MG_STRUCT), LINUX_MODULE_COMING);
	mg_put8(mg_at(1, MG_STRUCT) + mg_shapes[3].kallsyms, 0);
	assert_int_equal(linux_module_find(&l, &mg_memory, NULL), 0);
	mg_make(&mg_shapes[3]);
	for (unsigned int i = 0; i < MG_MODULES; i++)
		mg_put4(mg_at(i, MG_STRUCT), LINUX_MODULE_UNFORMED);
	l = mg_layout();
	assert_int_equal(linux_module_find(&l, &mg_memory, NULL), -ENOENT);
	assert_int_equal(l.text_base, 0);
}

/* If there are no places or two, neither is accepted. */
static void refused(void **state)
{
	const struct mg_shape *s = &mg_shapes[3];
	struct linux_module_layout l = mg_layout();
	struct err e = { 0 };

	(void)state;
	mg_make(s);
	for (unsigned int i = 0; i < MG_MODULES; i++)
		mg_put8(mg_at(i, MG_STRUCT) + s->kallsyms + 8, mg_at(i, MG_TABLE));
	assert_int_equal(linux_module_find(&l, &mg_memory, &e), -ENOENT);
	assert_non_null(strstr(e.text, "2 places in a struct module may be its kallsyms"));
	err_clear(&e);
	mg_make(s);
	mg_put8(mg_at(2, MG_STRUCT) + s->text, mg_at(2, MG_TEXT) + 8);
	assert_int_equal(linux_module_find(&l, &mg_memory, &e), -ENOENT);
	assert_non_null(strstr(e.text, "0 places in a struct module may be its text"));
	err_clear(&e);
	/* its init text is still there */
	mg_make(s);
	mg_put_area(s, mg_at(0, MG_STRUCT) + s->text + s->init, mg_at(0, MG_TEXT), 0x1000,
		    mg_at(0, MG_STRUCT));
	assert_int_equal(linux_module_find(&l, &mg_memory, &e), -ENOENT);
	err_clear(&e);
	mg_make(s);
	mg_put(mg_at(0, MG_STRUCT) + 24, "a\nb", 4);
	assert_int_equal(linux_module_find(&l, &mg_memory, &e), -ENOENT);
	assert_non_null(strstr(e.text, "list of modules has is none"));
	err_clear(&e);
	mg_make(s);
	mg_put8(mg_at(1, MG_STRUCT) + 16, MG_HEAD);
	assert_int_equal(linux_module_find(&l, &mg_memory, &e), -ENOENT);
	assert_non_null(strstr(e.text, "not in order"));
	/* a table whose addresses fall is none */
	mg_make(s);
	mg_put4(mg_at(1, MG_IPS) + 40, 0);
	assert_int_equal(linux_module_find(&l, &mg_memory, NULL), 0);
	assert_int_equal(l.orc, LINUX_MODULE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found),
		cmocka_unit_test(loading),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
