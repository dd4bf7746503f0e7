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

static const struct grub_entry *parse_bls(struct grubcfg *g, const char *text, const char *env,
					  const struct grub_bls *bls, unsigned int n)
{
	const struct grubcfg_source source = { .name = "grub.cfg",
					       .text = whole(text),
					       .env = env ? whole(env) : none,
					       .bls = bls,
					       .nbls = n };
	struct err e = { 0 };

	if (grubcfg_parse(g, &source, &e))
		fail_msg("%s", e.text);
	return grubcfg_default(g);
}

static int parse_bytes(struct grubcfg *g, struct bytes text, struct err *e)
{
	const struct grubcfg_source source = { .name = "f", .text = text };

	return grubcfg_parse(g, &source, e);
}

static const struct grub_entry *parse(struct grubcfg *g, const char *text, const char *env)
{
	return parse_bls(g, text, env, NULL, 0);
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

/* Each form that `default` may have boots the entry that GRUB would boot. */
static void defaults(void **state)
{
	static const char *const rows[][2] = {
		{ "0", "0" },
		{ "1", "1>0" },
		{ "1>1", "1>1" },
		{ "Debian GNU/Linux", "0" },
		{ "gnulinux-advanced>old", "1>0" },
		{ "old", "0" }, /* a submenu's id is no part of it: GRUB does not find it */
		{ "gnulinux-advanced>", "1>0" },
		{ "1>old", "1>0" },
		{ "1>7", "1>0" },
		{ "gnulinux-advanced", "1>0" },
		{ "Advanced options>Debian, recovery", "1>1" },
		{ "Firmware", "2" }, /* which boots no Linux */
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
	assert_string_equal(parse(&g, debian, "next_entry=1>old\nwish=0\n")->index, "1>0");
	assert_string_equal(g.chosen_by, "next_entry");
	grubcfg_deinit(&g);
}

/* ">" in a name is written twice in `default`. */
static void names_with_separators(void **state)
{
	static const char menu[] =
		"set default=\"${saved_entry}\"\nload_env\n"
		"set default=\"${saved_entry}\"\n"
		"menuentry 'zero' {\nlinux /0\n}\n"
		"submenu 'a>b' --id s {\n"
		"menuentry 'x' {\nlinux /x\n}\nmenuentry 'y>z>' {\nlinux /yz\n}\n"
		"submenu 'deep' {\nmenuentry '6.1' {\nlinux /d\n}\n}\n}\n"
		"submenu 'empty' {\n}\n"
		"menuentry '5-five' {\nlinux /five\n}\n";
	static const char *const rows[][2] = {
		{ "a>>b>y>>z>>", "/yz" },  { "s>y>>z>>", "/yz" }, { "a>b", "/0" },
		{ "a>>b>deep>6.1", "/d" }, { "s>2>0", "/d" },	  { "s>deep", "/d" },
		{ "5-five", "/five" },	   { "s>nothing", "/x" }, { "0>s>deep", "/0" },
	};
	struct grubcfg g;
	char env[100];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct grub_entry *t;

		snprintf(env, sizeof(env), "saved_entry=%s\n", rows[i][0]);
		t = parse(&g, menu, env);
		if (!t || strcmp(t->linux_path, rows[i][1]) != 0)
			fail_msg("%s: %s", rows[i][0], t ? t->linux_path : "no entry");
		assert_string_equal(g.chosen_by, "saved_entry");
		grubcfg_deinit(&g);
	}
	assert_null(parse(&g, menu, "saved_entry=empty\n"));
	grubcfg_deinit(&g);
}

/* Fedora's and Red Hat's: the entries are files of their own, the menu chooses among them. */
static void blscfg(void **state)
{
	static const char menu[] =
		"load_env\n"
		"if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n"
		"else\n   set default=\"${saved_entry}\"\nfi\n"
		"if [ -z \"${kernelopts}\" ]; then\n"
		"  set kernelopts=\"root=UUID=1 ro \"\nfi\n"
		"insmod blscfg\nblscfg\n"
		"menuentry 'UEFI Firmware Settings' --id uefi {\n\tfwsetup\n}\n";
	static const struct grub_bls bls[] = {
		{ "Fedora (6.11.5)", "0aa-6.11.5",
		  "linux /vmlinuz-6.11.5 $kernelopts $tuned_params\n"
		  "initrd /initramfs-6.11.5.img $tuned_initrd\n" },
		{ "Fedora (6.11.4)", "0aa-6.11.4",
		  "linux /vmlinuz-6.11.4 a=\"$kernelopts\"\ninitrd /one ${tuned_initrd}\ninitrd "
		  "/two\n" },
		{ "Broken", "0aa-0-rescue", "linux /vmlinuz-0 a='b\n" },
	};
	static const struct {
		const char *env, *path, *args, *by;
		unsigned int ninitrd;
	} rows[] = {
		{ "saved_entry=0aa-6.11.4\n", "/vmlinuz-6.11.4", "\"a=root=UUID=1 ro \"",
		  "saved_entry", 2 },
		{ "saved_entry=Fedora (6.11.4)\nkernelopts=quiet\n", "/vmlinuz-6.11.4", "a=quiet",
		  "saved_entry", 2 },
		{ "saved_entry=1\ntuned_initrd=/t1 /t2\n", "/vmlinuz-6.11.4", NULL, "saved_entry",
		  4 },
		{ "saved_entry=0aa-6.11.4\nnext_entry=0aa-6.11.5\ntuned_params=x=1 y\n",
		  "/vmlinuz-6.11.5", "root=UUID=1 ro x=1 y", "next_entry", 1 },
		{ "tuned_initrd=/t\n", "/vmlinuz-6.11.5", "root=UUID=1 ro", "default", 2 },
		{ "saved_entry=gone\n", "/vmlinuz-6.11.5", NULL, "saved_entry", 1 },
		{ "saved_entry=0aa-0-rescue\n", NULL, NULL, "saved_entry", 0 },
		{ "saved_entry=uefi\n", NULL, NULL, "saved_entry", 0 },
	};
	struct grubcfg g;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct grub_entry *t = parse_bls(&g, menu, rows[i].env, bls, 3);

		assert_true(g.blscfg && g.n == 4);
		assert_non_null(t);
		if (!rows[i].path) {
			assert_null(t->linux_path);
			assert_string_not_equal(t->loader, "");
		} else if (!t->linux_path || strcmp(t->linux_path, rows[i].path) != 0 ||
			   (rows[i].args && strcmp(t->args, rows[i].args) != 0) ||
			   t->ninitrd != rows[i].ninitrd) {
			fail_msg("%s: %s %s, %u initrds", rows[i].env, t->linux_path, t->args,
				 t->ninitrd);
		}
		assert_string_equal(g.chosen_by, rows[i].by);
		grubcfg_deinit(&g);
	}
	assert_false(parse(&g, debian, NULL) == NULL || g.blscfg);
	grubcfg_deinit(&g);
}

/* Menus in the shape of what distributions have, and what GRUB would boot by them. */
static void distributions(void **state)
{
	static const struct {
		const char *what, *text, *env, *index, *path, *args, *initrd, *loader;
	} rows[] = {
		{ "Ubuntu",
		  "if [ -s $prefix/grubenv ]; then\nset have_grubenv=true\nload_env\nfi\n"
		  "if [ \"${initrdfail}\" = 2 ]; then\nset initrdfail=\nelif [ \"${initrdfail}\" = "
		  "1 ]; "
		  "then\nset next_entry=\"${prev_entry}\"\nset prev_entry=\nfi\n"
		  "if [ \"${next_entry}\" ] ; then\nset default=\"${next_entry}\"\nelse\nset "
		  "default=\"gnulinux-advanced-1>gnulinux-6.8.0-31-generic-advanced-1\"\nfi\n"
		  "function gfxmode {\nset gfxpayload=\"${1}\"\n}\nset linux_gfx_mode=auto\n"
		  "menuentry 'Ubuntu' --class ubuntu $menuentry_id_option 'gnulinux-simple-1' {\n"
		  "gfxmode $linux_gfx_mode\nlinux /boot/vmlinuz-6.8.0-40-generic root=UUID=1 ro "
		  "quiet "
		  "splash $vt_handoff\ninitrd /boot/initrd.img-6.8.0-40-generic\n}\n"
		  "submenu 'Advanced options for Ubuntu' --id 'gnulinux-advanced-1' {\n"
		  "menuentry 'Ubuntu, with Linux 6.8.0-40-generic' --id "
		  "'gnulinux-6.8.0-40-generic-advanced-1' {\nlinux "
		  "/boot/vmlinuz-6.8.0-40-generic\n}\n"
		  "menuentry 'Ubuntu, with Linux 6.8.0-31-generic' --id "
		  "'gnulinux-6.8.0-31-generic-advanced-1' {\nif [ \"${initrdless}\" = 1 ]; "
		  "then\nlinux "
		  "/boot/no\nelse\nlinux /boot/vmlinuz-6.8.0-31-generic root=UUID=1 ro\ninitrd "
		  "/boot/initrd.img-6.8.0-31-generic\nfi\n}\n}\n",
		  NULL, "1>1", "/boot/vmlinuz-6.8.0-31-generic", "root=UUID=1 ro",
		  "/boot/initrd.img-6.8.0-31-generic", "" },
		{ "openSUSE",
		  "set btrfs_relative_path=\"y\"\nif [ -f $prefix/grubenv ]; then\nload_env\nfi\n"
		  "set default=\"${saved_entry}\"\n"
		  "menuentry 'openSUSE Leap 15.6' --class opensuse --hotkey=s --id=simple {\n"
		  "linux /boot/vmlinuz-6.4.0-default root=UUID=2 ${extra_cmdline} splash=silent\n"
		  "initrd /boot/initrd-6.4.0-default\n}\n"
		  "submenu 'Advanced options for openSUSE Leap 15.6' --hotkey=1 --id=adv {\n"
		  "menuentry 'openSUSE Leap 15.6, with Linux 6.4.0-150' --hotkey=2 --id=old {\n"
		  "linux /boot/vmlinuz-6.4.0-150-default root=UUID=2 ${extra_cmdline} "
		  "splash=silent\n"
		  "initrd /boot/initrd-6.4.0-150-default\n}\n}\n",
		  "saved_entry=Advanced options for openSUSE Leap 15.6>openSUSE Leap 15.6, with "
		  "Linux "
		  "6.4.0-150\nextra_cmdline=mitigations=off\n",
		  "1>0", "/boot/vmlinuz-6.4.0-150-default",
		  "root=UUID=2 mitigations=off splash=silent", "/boot/initrd-6.4.0-150-default",
		  "" },
		{ "Arch",
		  "load_env\nset default=\"0\"\nmenuentry 'Arch Linux' --id 'gnulinux-simple-3' {\n"
		  "linux /boot/vmlinuz-linux root=UUID=3 rw loglevel=3 quiet\n"
		  "initrd /boot/amd-ucode.img /boot/initramfs-linux.img\n}\n",
		  NULL, "0", "/boot/vmlinuz-linux", "root=UUID=3 rw loglevel=3 quiet",
		  "/boot/amd-ucode.img", "" },
		{ "Alpine",
		  "set default=\"0\"\nset timeout=2\nmenuentry 'Alpine, with Linux lts' --class "
		  "alpine {\n"
		  "search --no-floppy --fs-uuid --set=root 4\necho 'Loading Linux lts ...'\n"
		  "linux /boot/vmlinuz-lts root=UUID=4 ro modules=sd-mod,usb-storage,ext4 "
		  "rootfstype=ext4\n"
		  "initrd /boot/initramfs-lts\n}\n",
		  NULL, "0", "/boot/vmlinuz-lts",
		  "root=UUID=4 ro modules=sd-mod,usb-storage,ext4 rootfstype=ext4",
		  "/boot/initramfs-lts", "" },
		{ "NixOS",
		  "search --set=drive1 --fs-uuid 5\nif [ -s $prefix/grubenv ]; then\nload_env\nfi\n"
		  "if [ \"${next_entry}\" ]; then\nset default=\"${next_entry}\"\nset next_entry=\n"
		  "set timeout=1\nelse\nset default=0\nset timeout=5\nfi\n"
		  "menuentry \"NixOS - Default\" --class nixos --unrestricted {\n"
		  "search --set=drive1 --fs-uuid 5\nsearch --set=drive2 --fs-uuid 6\n"
		  "  linux ($drive1)/kernels/abc-linux-6.6-bzImage init=/nix/store/abc/init "
		  "loglevel=4\n"
		  "  initrd ($drive1)/kernels/abc-initrd-linux-6.6-initrd\n}\n"
		  "submenu \"NixOS - All configurations\" --class submenu {\n"
		  "menuentry \"NixOS - Configuration 7\" --class nixos --unrestricted {\n"
		  "  linux ($drive1)/kernels/old-bzImage init=/nix/store/old/init\n"
		  "  initrd ($drive1)/kernels/old-initrd\n}\n}\n",
		  "next_entry=1>NixOS - Configuration 7\n", "1>0", "/kernels/old-bzImage",
		  "init=/nix/store/old/init", "/kernels/old-initrd", "" },
		{ "Debian with Xen",
		  "load_env\nset default=\"Debian GNU/Linux, with Xen hypervisor\"\n"
		  "menuentry 'Debian GNU/Linux' {\nlinux /boot/vmlinuz-6.1\n}\n"
		  "menuentry 'Debian GNU/Linux, with Xen hypervisor' {\n"
		  "if [ \"$grub_platform\" = \"pc\" -o \"$grub_platform\" = \"\" ]; then\n"
		  "xen_rm_opts=\nelse\nxen_rm_opts=\"no-real-mode edd=off\"\nfi\n"
		  "multiboot2 /boot/xen-4.17-amd64.gz placeholder ${xen_rm_opts}\n"
		  "module2 /boot/vmlinuz-6.1 placeholder root=UUID=1 ro quiet\n"
		  "module2 --nounzip /boot/initrd.img-6.1\n}\n",
		  NULL, "1", NULL, NULL, NULL, "multiboot2" },
	};
	struct grubcfg g;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct grub_entry *t = parse(&g, rows[i].text, rows[i].env);

		if (!t || strcmp(t->index, rows[i].index) != 0)
			fail_msg("%s: %s", rows[i].what, t ? t->index : "none");
		assert_string_equal(t->loader, rows[i].loader);
		if (!rows[i].path) {
			assert_null(t->linux_path);
		} else {
			assert_string_equal(t->linux_path, rows[i].path);
			assert_string_equal(t->args, rows[i].args);
			assert_string_equal(t->initrd[0], rows[i].initrd);
		}
		grubcfg_deinit(&g);
	}
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

		assert_int_equal(parse_bytes(&g, whole(rows[i][0]), &e), -EINVAL);
		if (!strstr(e.text, rows[i][1]))
			fail_msg("%s: %s", rows[i][0], e.text);
	}
	/* Each limit, from below and from above. */
	for (unsigned int n = GRUBCFG_MAX_ENTRIES; n <= GRUBCFG_MAX_ENTRIES + 1; n++) {
		struct err e = { 0 };

		buf_init(&b);
		for (unsigned int i = 0; i < n; i++)
			buf_printf(&b, "menuentry x {\nlinux /k\n}\n");
		assert_int_equal(parse_bytes(&g, (struct bytes){ b.data, b.len }, &e),
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
	assert_int_equal(parse_bytes(&g, (struct bytes){ b.data, b.len }, NULL), -EINVAL);
	buf_deinit(&b);
	buf_init(&b);
	for (unsigned int i = 0; i < 100; i++)
		buf_printf(&b, "submenu x {\n");
	assert_int_equal(parse_bytes(&g, (struct bytes){ b.data, b.len }, NULL), -EINVAL);
	buf_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries),
		cmocka_unit_test(defaults),
		cmocka_unit_test(names_with_separators),
		cmocka_unit_test(blscfg),
		cmocka_unit_test(distributions),
		cmocka_unit_test(language),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
