/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bootdisk/grubcfg.h"

#include "base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* In the form of what Debian's grub-mkconfig writes. */
static const char debian[] =
	"if [ -s $prefix/grubenv ]; then\n"
	"  set have_grubenv=true\n"
	"  load_env\n"
	"fi\n"
	"if [ \"${next_entry}\" ] ; then\n"
	"   set default=\"${next_entry}\"\n"
	"   set next_entry=\n"
	"   save_env next_entry\n"
	"   set boot_once=true\n"
	"else\n"
	"   set default=\"${wish}\"\n"
	"fi\n"
	"\n"
	"if [ x\"${feature_menuentry_id}\" = xy ]; then\n"
	"  menuentry_id_option=\"--id\"\n"
	"else\n"
	"  menuentry_id_option=\"\"\n"
	"fi\n"
	"export menuentry_id_option\n"
	"function savedefault {\n"
	"  if [ -z \"${boot_once}\" ]; then\n"
	"    saved_entry=\"${chosen}\"\n"
	"  fi\n"
	"}\n"
	"if loadfont $font ; then\n"
	"  set gfxmode=auto\n"
	"fi\n"
	"menuentry 'Debian GNU/Linux' --class debian --class os $menuentry_id_option "
	"'gnulinux-simple-1111' {\n"
	"	load_video\n"
	"	if [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi\n"
	"	set root='hd0,gpt1'\n"
	"	if [ x$feature_platform_search_hint = xy ]; then\n"
	"	  search --no-floppy --fs-uuid --set=root --hint-bios=hd0,gpt1  1111-22\n"
	"	else\n"
	"	  search --no-floppy --fs-uuid --set=root wrong\n"
	"	fi\n"
	"	echo	'Loading Linux 6.1 ...'\n"
	"	linux	/boot/vmlinuz-6.1 root=UUID=1111-22 ro  quiet \"a b\"\n"
	"	initrd	/boot/ucode.img /boot/initrd.img-6.1\n"
	"}\n"
	"submenu 'Advanced options' $menuentry_id_option 'gnulinux-advanced' {\n"
	"	menuentry 'Debian, with Linux 6.0' --id 'old' {\n"
	"		linux ($root)/boot/vmlinuz-6.0 root=/dev/sda1\n"
	"	}\n"
	"	menuentry \"Debian, recovery\" {\n"
	"		linux /boot/vmlinuz-6.0 single\n"
	"	}\n"
	"}\n"
	"menuentry 'Firmware' { fwsetup }\n";

static const struct bytes none = { NULL, 0 };

static struct bytes whole(const char *text)
{
	return (struct bytes){ text, strlen(text) };
}

static const struct grub_entry *parse(struct grubcfg *g, const char *text, const char *env)
{
	struct err e = { 0 };

	if (grubcfg_parse(g, "grub.cfg", whole(text), env ? whole(env) : none, &e))
		fail_msg("%s", e.text);
	return grubcfg_default(g);
}

static void entries(void **state)
{
	struct grubcfg g;
	const struct grub_entry *t = parse(&g, debian, NULL);

	(void)state;
	assert_int_equal(g.n, 4);
	assert_string_equal(t->title, "Debian GNU/Linux");
	assert_string_equal(t->id, "gnulinux-simple-1111");
	assert_string_equal(t->linux_path, "/boot/vmlinuz-6.1");
	assert_string_equal(t->args, "root=UUID=1111-22 ro quiet \"a b\"");
	assert_int_equal(t->ninitrd, 2);
	assert_string_equal(t->initrd[1], "/boot/initrd.img-6.1");
	assert_int_equal(t->search, GRUB_SEARCH_UUID);
	assert_string_equal(t->search_for, "1111-22");

	t = &g.entry[1];
	assert_string_equal(t->title, "Advanced options>Debian, with Linux 6.0");
	assert_string_equal(t->id, "gnulinux-advanced>old");
	assert_string_equal(t->index, "1>0");
	assert_string_equal(t->linux_path, "/boot/vmlinuz-6.0");
	assert_int_equal(t->search, GRUB_SEARCH_NONE);
	assert_null(g.entry[3].linux_path);
	grubcfg_deinit(&g);
}

/* What `default` may be, and what is booted then. */
static void defaults(void **state)
{
	static const char *const rows[][2] = {
		{ "0", "0" },
		{ "1", "1>0" },
		{ "1>1", "1>1" },
		{ "Debian GNU/Linux", "0" },
		{ "gnulinux-advanced>old", "1>0" },
		{ "old", "1>0" },
		{ "Advanced options>Debian, recovery", "1>1" },
		{ "Firmware", "0" }, /* boots no Linux: the first that does */
		{ "17", "0" },
		{ "", "0" },
	};
	char env[200];
	struct grubcfg g;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(env, sizeof(env), "# GRUB Environment Block\nwish=%s\n####", rows[i][0]);
		assert_string_equal(parse(&g, debian, env)->index, rows[i][1]);
		grubcfg_deinit(&g);
		snprintf(env, sizeof(env), "wish=saved\nsaved_entry=%s\n", rows[i][0]);
		assert_string_equal(parse(&g, debian, env)->index, rows[i][1]);
		grubcfg_deinit(&g);
	}
	assert_string_equal(parse(&g, debian, "next_entry=old\nwish=0\n")->index, "1>0");
	grubcfg_deinit(&g);
}

static void language(void **state)
{
	static const char *const rows[][2] = {
		{ "set a=x; set b=${a}y; linux_x=1\nmenuentry t {\nlinux /$b\n}", "/xy" },
		{ "a='x y'\nmenuentry t { linux /k \"$a\" $a; }", "/k" },
		{ "if false; then set k=1; elif [ 1 = 2 ]; then set k=2; else set k=3; fi\n"
		  "menuentry t {\nlinux /$k\n}",
		  "/3" },
		{ "if [ a != b -a -n x -o -z x ]; then k=1; fi\nmenuentry t {\nlinux /$k\n}",
		  "/1" },
		{ "if [ ! a = b ]; then\nif [ 3 -gt 2 ]; then\nk=in\nfi\nfi\nmenuentry t {\nlinux "
		  "/$k\n}",
		  "/in" },
		{ "for x in a b c; do set k=$x; done\nmenuentry t {\nlinux /k$k\n}", "/k" },
		{ "# menuentry no {\nmenuentry t { # }\nlinux /a\\ b\n}", "/a b" },
		{ "menuentry t {\nlinux \\\n  /k\n}", "/k" },
		{ "menuentry t --unrestricted {\nif true; then\nlinux16 /k\nfi\n}", "/k" },
	};
	struct grubcfg g;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct grub_entry *t = parse(&g, rows[i][0], NULL);

		if (!t || strcmp(t->linux_path, rows[i][1]) != 0)
			fail_msg("%s: %s", rows[i][0], t ? t->linux_path : "no entry");
		grubcfg_deinit(&g);
	}
	parse(&g, rows[1][0], NULL);
	assert_string_equal(g.entry[0].args, "\"x y\" x y");
	grubcfg_deinit(&g);
}

static void refused(void **state)
{
	static const char *const rows[][2] = {
		{ "menuentry 'x {", "a quote without its end" },
		{ "menuentry x {\nlinux /k\n", "expected `}'" },
		{ "if true; then", "expected `fi'" },
		{ "if true\n", "expected `then'" },
		{ "}", "expected the end" },
		{ "if { if { if {", "expected" },
	};
	struct grubcfg g;
	struct buf b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err e = { 0 };

		assert_int_equal(grubcfg_parse(&g, "f", whole(rows[i][0]), none, &e), -EINVAL);
		if (!strstr(e.text, rows[i][1]))
			fail_msg("%s: %s", rows[i][0], e.text);
	}
	/* Each limit, from below and from above. */
	for (unsigned int n = GRUBCFG_MAX_ENTRIES; n <= GRUBCFG_MAX_ENTRIES + 1; n++) {
		struct err e = { 0 };

		buf_init(&b);
		for (unsigned int i = 0; i < n; i++)
			buf_printf(&b, "menuentry x {\nlinux /k\n}\n");
		assert_int_equal(grubcfg_parse(&g, "f", (struct bytes){ b.data, b.len }, none, &e),
				 n > GRUBCFG_MAX_ENTRIES ? -EINVAL : 0);
		if (n <= GRUBCFG_MAX_ENTRIES)
			grubcfg_deinit(&g);
		buf_deinit(&b);
	}
	/* A value that doubles itself. */
	buf_init(&b);
	buf_printf(&b, "a=xx\n");
	for (unsigned int i = 0; i < 40; i++)
		buf_printf(&b, "a=$a$a\n");
	assert_int_equal(grubcfg_parse(&g, "f", (struct bytes){ b.data, b.len }, none, NULL),
			 -EINVAL);
	buf_deinit(&b);
	buf_init(&b);
	for (unsigned int i = 0; i < 100; i++)
		buf_printf(&b, "submenu x {\n");
	assert_int_equal(grubcfg_parse(&g, "f", (struct bytes){ b.data, b.len }, none, NULL),
			 -EINVAL);
	buf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries),
		cmocka_unit_test(defaults),
		cmocka_unit_test(language),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
