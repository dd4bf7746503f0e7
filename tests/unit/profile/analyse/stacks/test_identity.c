/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names that functions are compared by: suffixes of compilers' clones are left out, nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profile/analyse/stacks/identity.h"
#include "tests/unit/stackset_fixture.h"

#include <stdlib.h>

static void test_suffixes_go(void **state)
{
	static const char *const names[][2] = {
		{ "foo.isra.0", "foo" },
		{ "foo.constprop.12", "foo" },
		{ "foo.part.3", "foo" },
		{ "foo.cold", "foo" },
		{ "foo.cold.7", "foo" },
		{ "foo.llvm.1234567890123456789", "foo" },
		{ "foo.llvm.a3f0", "foo" },
		{ "foo.lto_priv.0", "foo" },
		{ "foo.lto_priv.0.lto_priv.1", "foo" },
		{ "foo.localalias", "foo" },
		{ "foo.localalias.3", "foo" },
		{ "foo.isra.0.constprop.1", "foo" },
		{ "foo.constprop.0.isra.0.part.0.cold", "foo" },
		{ "foo.clone.4", "foo" },
		{ "foo.simdclone.0", "foo" },
		{ "foo.specialized.1", "foo" },
		{ "foo.memprof.2", "foo" },
		{ "foo.__uniq.23904823904823904.llvm.77", "foo" },
		{ "foo.__part.1", "foo" },
		{ "foo.cfi", "foo" },
		{ "foo.cfi_jt", "foo" },
		{ "foo.12", "foo" },
		{ "foo.12.isra.0", "foo" },
		{ "_ZN3foo3barEv.part.0.cold", "_ZN3foo3barEv" },
		{ "foo(int) [clone .isra.0]", "foo(int)" },
		{ "foo(int) [clone .isra.0] [clone .cold]", "foo(int)" },
		{ "main.work.cold", "main.work" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t len = identity_name_len(names[i][0]);

		if (len != strlen(names[i][1]) || strncmp(names[i][0], names[i][1], len) != 0)
			fail_msg("%s: %.*s", names[i][0], (int)len, names[i][0]);
	}
}

static void test_names_stay(void **state)
{
	static const char *const names[] = {
		"",
		"foo",
		".isra.0",
		".cold",
		".text",
		"foo.",
		"foo..",
		"foo.isra", /* GCC numbers its clones */
		"foo.isra.",
		"foo.isra.x",
		"foo.isra.0x",
		"foo.isra.0.bar",
		"foo.colder",
		"foo.cold_path",
		"main.main", /* Go's */
		"main.init.0",
		"main.(*T).clone",
		"main.clone",
		"main.part",
		"main.work.func1.2",
		"github.com/a/b.Work",
		"camlStdlib__List.map_123",
		"std::vector<int>::push_back",
		"f<1.5>",
		"a [clone",
		" [clone .isra.0]",
		"foo@plt",
		"__x64_sys_openat",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (identity_name_len(names[i]) != strlen(names[i]))
			fail_msg("%s: %zu", names[i], identity_name_len(names[i]));
}

/* Whatever it is given, it stays within the name, and what it leaves has no suffix any more. */
static void test_any_bytes(void **state)
{
	static const char *const parts[] = { ".",      "isra",	   ".0",
					     ".cold",  "foo",	   " [clone .isra.0]",
					     "]",      ".llvm.",   "12",
					     ".part.", "\xc3\xa9", ".isra.1" };
	unsigned int seed = 1;

	(void)state;
	for (unsigned int i = 0; i < 200000; i++) {
		char text[128] = "", again[128];
		size_t len;

		for (unsigned int k = 0; k < 1 + i % 6; k++) {
			seed = seed * 1103515245 + 12345;
			strcat(text, parts[(seed >> 16) % (sizeof(parts) / sizeof(*parts))]);
		}
		len = identity_name_len(text);
		assert_true(len <= strlen(text) && (len || !*text));
		if (strstr(text, " [clone"))
			continue;
		memcpy(again, text, len);
		again[len] = '\0';
		if (identity_name_len(again) != len)
			fail_msg("%s: %s", text, again);
	}
}

static void test_sets(void **state)
{
	static struct fixture f;
	struct identity_names n;

	(void)state;
	fixture_init(&f);
	fixture_func(&f, "foo.isra.0", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(&f, "foo", "[kernel.kallsyms]", STACKSET_KIND_KERNEL);
	fixture_func(&f, "0x12", "[jit:7#1]", STACKSET_KIND_JIT);
	f.func[2].named = false;
	fixture_stack(&f, fixture_task(&f, "t", 1), STACKSET_KERNEL, 1, "foo foo.isra.0");
	assert_int_equal(identity_names_init(&n, &f.set), 0);
	assert_ptr_equal(n.name[0], n.name[1]);
	assert_string_equal(n.name[0], "foo");
	assert_true(n.clone[0] && !n.clone[1] && !n.clone[2]);
	assert_string_equal(identity_of(&n, &f.set.stack[0], 2).name, IDENTITY_UNNAMED);
	assert_string_equal(identity_of(&n, &f.set.stack[0], 2).dso, "[jit]");
	assert_int_equal(identity_of(&n, &f.set.stack[0], 0).mode, STACKSET_KERNEL);
	assert_string_equal(identity_mode_name(STACKSET_USER), "user");
	identity_names_deinit(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suffixes_go),
		cmocka_unit_test(test_names_stay),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
