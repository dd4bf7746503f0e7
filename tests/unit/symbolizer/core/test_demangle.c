/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Demangled names: known ones, hostile ones, and the same as stock perf's. */
#include "symbolizer/core/demangle.h"

#include "base/cleanup.h"
#include "tests/unit/user_profile.h"
#include "tests/unit/skip.h"

#include <stdlib.h>
#include <unistd.h>

static void known(void **state)
{
	static const char *const name[][2] = {
		{ "_ZN2ns1KC1Ei", "ns::K::K" },
		{ "_ZNK2ns1KclEi", "ns::K::operator()" },
		{ "_ZN2ns1KcvbEv", "ns::K::operator bool" },
		{ "_ZN2ns4bothIdiEET_S1_T0_", "ns::both<double, int>" },
		{ "_ZN12_GLOBAL__N_16hiddenEPKc", "(anonymous namespace)::hidden" },
		{ "_ZN2ns3fooEv.cold", "ns::foo" },
		{ "_ZN2ns3fooEv@plt", "ns::foo@plt" },
		{ "_ZN1r4main17h086b0cfd890a8ea9E", "r::main" },
		{ "_ZN1r4main28_$u7b$$u7b$closure$u7d$$u7d$17h12c43d45e42526cdE",
		  "r::main::{{closure}}" },
		{ "_ZN38_$LT$r..S$LT$A$GT$$u20$as$u20$r..T$GT$2go17h87fc012b894d88a2E",
		  "<r::S<A> as r::T>::go" },
		{ "_RINvCs6GmmlP4bgsG_1r4workNCNvB2_4main0EB2_",
		  "r::work::<r::main::{closure#0}>" },
		/* Not mangled. */
		{ "main", NULL },
		{ "_Z", NULL },
		{ "_ZN", NULL },
		{ "R", NULL },
		{ "__x64_sys_read", NULL },
		{ "puts@plt", NULL },
		{ "_ZN2ns1KC1Ei garbage", "ns::K::K" }, /* as perf: the rest is a suffix */
		{ "", NULL },
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(name); i++) {
		cleanup_free char *d = demangle(name[i][0]);

		if (!d != !name[i][1] || (d && strcmp(d, name[i][1])))
			fail_msg("%s: %s", name[i][0], d ? d : "not mangled");
	}
}

/* Rust v0: each type is a pair of the one before; 2^60 words. It must come back, with nothing. */
static void hostile(void **state)
{
	static const char digit[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static char name[DEMANGLE_MAX_NAME + 2];
	size_t n = (size_t)sprintf(name, "_RIC1aThhE"), last = 4;
	char *d;

	(void)state;
	for (unsigned int i = 0; i < 60; i++) {
		size_t here = n - 2, v = last - 1;
		char ref[8];

		if (v < 62)
			snprintf(ref, sizeof(ref), "B%c_", digit[v]);
		else
			snprintf(ref, sizeof(ref), "B%c%c_", digit[v / 62], digit[v % 62]);
		n += (size_t)sprintf(name + n, "T%s%sE", ref, ref);
		last = here;
		if (i == 2) {
			/* It is what it is meant to be. */
			strcpy(name + n, "E");
			d = demangle(name);
			assert_non_null(d);
			assert_string_equal(d, "a::<(u8, u8), ((u8, u8), (u8, u8)), "
					       "(((u8, u8), (u8, u8)), ((u8, u8), (u8, u8))), "
					       "((((u8, u8), (u8, u8)), ((u8, u8), (u8, u8))), "
					       "(((u8, u8), (u8, u8)), ((u8, u8), (u8, u8))))>");
			free(d);
		}
	}
	strcpy(name + n, "E");
	assert_null(demangle(name));
	/* Deep, and long. */
	memset(name, 'P', DEMANGLE_MAX_NAME);
	memcpy(name, "_Z1f", 4);
	strcpy(name + DEMANGLE_MAX_NAME - 1, "i");
	free(demangle(name));
	name[DEMANGLE_MAX_NAME] = 'i';
	assert_null(demangle(name));
}

static void cache(void **state)
{
	static struct symbol s[5000];
	static char name[5000][32];
	struct display_names d;
	const char *first;

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(s); i++) {
		if (i % 2)
			snprintf(name[i], sizeof(name[i]), "_ZN2ns5f%04uEv", i);
		else
			snprintf(name[i], sizeof(name[i]), "plain%u", i);
		s[i].name = name[i];
	}
	demangle_names_init(&d, DEMANGLE_PROGRAMS);
	first = demangle_shown(&d, &s[1], NAMES_PROGRAM);
	assert_string_equal(first, "ns::f0001");
	for (unsigned int round = 0; round < 2; round++)
		for (unsigned int i = 0; i < ARRAY_SIZE(s); i++) {
			char want[32];

			snprintf(want, sizeof(want), i % 2 ? "ns::f%04u" : "plain%u", i);
			assert_string_equal(demangle_shown(&d, &s[i], NAMES_PROGRAM), want);
		}
	assert_ptr_equal(demangle_shown(&d, &s[1], NAMES_PROGRAM), first);
	assert_ptr_equal(demangle_shown(&d, &s[1], NAMES_KERNEL), s[1].name);
	demangle_names_deinit(&d);
	demangle_names_init(&d, DEMANGLE_NONE);
	assert_ptr_equal(demangle_shown(&d, &s[1], NAMES_PROGRAM), s[1].name);
	demangle_names_deinit(&d);
	assert_ptr_equal(demangle_shown(NULL, &s[1], NAMES_PROGRAM), s[1].name);
}

/* Local symbols that clang's ThinLTO made global. */
static void promoted(void **state)
{
	const struct symbol c = { .name = "fetch.llvm.123", .promoted = 5 };
	const struct symbol cc = { .name = "_ZN2ns1fEv.llvm.123", .promoted = 10 };
	struct display_names d;

	(void)state;
	demangle_names_init(&d, DEMANGLE_PROGRAMS);
	for (unsigned int round = 0; round < 2; round++) {
		assert_string_equal(demangle_shown(&d, &c, NAMES_KERNEL), "fetch");
		assert_string_equal(demangle_shown(&d, &cc, NAMES_PROGRAM), "ns::f");
	}
	demangle_names_deinit(&d);
	demangle_names_init(&d, DEMANGLE_PROGRAMS);
	assert_string_equal(demangle_shown(&d, &c, NAMES_PROGRAM), "fetch");
	assert_string_equal(demangle_shown(&d, &cc, NAMES_KERNEL), "_ZN2ns1fEv");
	demangle_names_deinit(&d);
	demangle_names_init(&d, DEMANGLE_NONE);
	assert_ptr_equal(demangle_shown(&d, &c, NAMES_KERNEL), c.name);
	demangle_names_deinit(&d);
	assert_ptr_equal(demangle_shown(NULL, &c, NAMES_KERNEL), c.name);
}

static const char cxx[] =
	"#include <map>\n#include <string>\n#include <vector>\n"
	"namespace ns { struct K { int operator()(int x) const { return x; }"
	" operator bool() { return true; } ~K() {} K(int) {}"
	" template <class T> T get(T t) { return t; } };\n"
	"namespace { __attribute__((noinline)) int hidden(const char *p) { return *p; } }\n"
	"template <class A, class B> A both(A a, B b) { return a + (A)b; }\n"
	"int pub(const std::string &s, std::map<int, std::string> &m) { std::vector<int> v(3); K "
	"k(1);"
	" auto l = [&](int q) { return q + k(1); }; if (k) m[1] = s; v.push_back(2);"
	" return (int)v.size() + hidden(s.c_str()) + l(3) + k.get(4) + (int)both(1.5, 2); } }\n"
	"int main() { std::map<int, std::string> m; return ns::pub(\"a\", m); }\n";

/* The function of libstdc++, which returns parameters and return types. */
char *__cxa_demangle(const char *mangled, char *out, size_t *len, int *status);

static bool is_full_name(const char *text, const char *mangled)
{
	int status;
	cleanup_free char *full = __cxa_demangle(mangled, NULL, NULL, &status);

	return full && !strcmp(text, full);
}

/* Debian 13's perf, of 6.12, knows neither clang's .llvm.NUMBER nor braces in Rust's names. */
static bool is_left(const char *text, const char *mangled)
{
	return (!strcmp(text, mangled) && strstr(text, ".llvm.")) ||
	       (is_full_name(text, mangled) && strstr(text, "$u7b$"));
}

/* `perf script -F sym` prints one name per sample, in the order of the samples. By the library that
 * it was built with it leaves parameters out of C++ names, as we do, or has them in all. */
static void compare_with_perf(const char *root, const struct symbol **s, unsigned int n)
{
	char cmd[256], line[8192];
	unsigned int i = 0, mangled = 0, brief = 0, full = 0, left = 0;
	FILE *f;

	snprintf(cmd, sizeof(cmd), "HOME=%s perf script -F ip,sym -i %s/perf.data 2>%s/err", root,
		 root, root);
	f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		cleanup_free char *d = NULL;
		char *sym = strchr(line + strspn(line, " \t"), ' ');

		if (!sym)
			continue;
		sym[strcspn(sym, "\n")] = 0;
		assert_true(i < n);
		d = demangle(s[i]->name);
		mangled += d != NULL;
		if (is_left(sym + 1, s[i]->name))
			left += d && strcmp(sym + 1, d) != 0;
		else if (is_full_name(sym + 1, s[i]->name))
			full += d && strcmp(sym + 1, d) != 0;
		else if (!strcmp(sym + 1, d ? d : s[i]->name))
			brief += d != NULL;
		else
			fail_msg("%s: perf says \"%s\", we \"%s\"", s[i]->name, sym + 1,
				 d ? d : "not mangled");
		i++;
	}
	assert_int_equal(pclose(f), 0);
	print_message("%u names, %u of them mangled; perf has parameters in %u and leaves %u\n", i,
		      mangled, full, left);
	assert_true(!brief || !full);
	assert_int_equal(i, n);
	assert_true(mangled > n / 2);
	assert_true(left < n / 4);
}

static void compile_and_compare(const char *file, const char *text, const char *compiler)
{
	char root[] = "/tmp/kvmprof-demangle-XXXXXX", cmd[512], path[64];
	static const uint8_t id[20] = { 0xc0, 1 };
	const struct symbol *s[200];
	unsigned int n;
	struct original o;
	FILE *f;

	if (system("perf --version >/dev/null 2>&1") != 0)
		SKIP("perf is not installed");
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/%s", root, file);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	snprintf(cmd, sizeof(cmd), "cd %s && %s %s -o a >/dev/null 2>&1", root, compiler, file);
	if (system(cmd) != 0) {
		file_remove_tree(root, NULL);
		SKIP("%s is not installed or compiles nothing", compiler);
	}
	snprintf(path, sizeof(path), "%s/a", root);
	original_open(&o, path);
	n = pick(&o, s, ARRAY_SIZE(s));
	write_profile(&o, root, o.map.data, o.map.len, o.u.build_id_len == 20 ? o.u.build_id : id,
		      s, n);
	compare_with_perf(root, s, n);
	original_close(&o);
	file_remove_tree(root, NULL);
}

static void cxx_as_perf(void **state)
{
	(void)state;
	compile_and_compare("a.cc", cxx, "c++ -O0 -Wl,--build-id=sha1");
}

static const char rust[] =
	"use std::fmt::Display; trait T { fn go(&self) -> u32; } struct S<A>(A);\n"
	"impl<A: Display> T for S<A> { #[inline(never)] fn go(&self) -> u32 {"
	" self.0.to_string().len() as u32 } }\n"
	"#[inline(never)] fn work<F: Fn(u32) -> u32>(f: F) -> u32 { f(3) }\n"
	"fn main() { let x = work(|v| v + 1); std::process::exit((S(\"a\").go() + x) as i32); }\n";

static void rust_as_perf(void **state)
{
	(void)state;
	compile_and_compare("a.rs", rust, "rustc -C link-arg=-Wl,--build-id=sha1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known),	cmocka_unit_test(hostile),
		cmocka_unit_test(cache),	cmocka_unit_test(cxx_as_perf),
		cmocka_unit_test(rust_as_perf), cmocka_unit_test(promoted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
