/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of a guest's root directory, and links that try to leave it. */
#include "profile/format/files/userfile.h"

#include "base/cleanup.h"
#include "profile/format/files/buildid_cache.h"
#include "symbolizer/program/userelf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char top[64]; /* holds secret (outside) and root, the guest's "/" */

static const char *at(const char *name)
{
	static char path[8][512];
	static unsigned int turn;
	char *p = path[turn++ & 7];

	snprintf(p, sizeof(path[0]), "%s/%s", top, name);
	return p;
}

static void put(const char *name, const void *data, size_t len)
{
	int fd;

	fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, data, len), 0);
	close(fd);
}

static void link_to(const char *target, const char *name)
{
	assert_int_equal(symlink(target, at(name)), 0);
}

/* A program of nothing but headers and a note; id[0] tells them apart. */
static void put_elf(const char *name, uint8_t id, bool note)
{
	struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph[2];
		uint32_t note[4];
		uint8_t id[20];
	} f = { .eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_phoff = sizeof(Elf64_Ehdr),
			.e_phnum = note ? 2 : 1,
			.e_phentsize = sizeof(Elf64_Phdr) },
		.ph = { { .p_type = PT_LOAD, .p_flags = PF_X, .p_memsz = 4096 },
			{ .p_type = PT_NOTE, .p_filesz = 36 } },
		.note = { 4, 20, NT_GNU_BUILD_ID, 0x554e47 },
		.id = { id } };

	f.ph[1].p_offset = (uint64_t)((uint8_t *)f.note - (uint8_t *)&f);
	put(name, &f, sizeof(f));
}

static int setup(void **state)
{
	char secret[128];

	(void)state;
	snprintf(top, sizeof(top), "/tmp/kvmprof-userfile-XXXXXX");
	assert_non_null(mkdtemp(top));
	assert_int_equal(file_mkdirs(at("root/usr/lib/deep/er"), NULL), 0);
	assert_int_equal(file_mkdirs(at("root/etc"), NULL), 0);
	assert_int_equal(file_mkdirs(at("root/tmp"), NULL), 0);
	put("secret", "outside", 7);
	put("root/usr/lib/real", "inside", 6);
	put("root/secret", "inside", 6);
	put("root/tmp/perf-42.map", "1000 10 jit\n", 12);
	link_to("real", "root/usr/lib/link");
	link_to("usr/lib", "root/lib");
	link_to("/usr/lib/real", "root/absolute");
	link_to("/usr/lib", "root/etc/dir");
	link_to("../../../../../../secret", "root/usr/lib/deep/climb");
	link_to("..", "root/usr/lib/deep/er/up");
	link_to("../secret", "root/escape");
	snprintf(secret, sizeof(secret), "%s/secret", top);
	link_to(secret, "root/host-path");
	link_to("loop-b", "root/loop-a");
	link_to("loop-a", "root/loop-b");
	link_to("/proc/self/root", "root/proc-root");
	link_to("nowhere", "root/dangling");
	assert_int_equal(mkfifo(at("root/fifo"), 0644), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return file_remove_tree(top, NULL);
}

/* Stores the text that a path leads to; "" and the error if it leads nowhere. */
static int read_in_root(const char *path, enum userfile_resolver way, char text[16])
{
	cleanup_close int root = open(at("root"), O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	ssize_t n;

	fd = userfile_open_in_root(root, path, way);
	memset(text, 0, 16);
	if (fd < 0)
		return fd;
	n = read(fd, text, 15);
	assert_true(n > 0);
	return 0;
}

static void links(void **state)
{
	static const struct {
		const char *path;
		int ret; /* 0: it is the one inside */
	} want[] = {
		{ "/usr/lib/real", 0 },
		{ "usr/lib/real", 0 },
		{ "//usr//./lib/real", 0 },
		{ "/usr/lib/link", 0 },
		{ "/lib/link", 0 },
		{ "/absolute", 0 },
		{ "/etc/dir/real", 0 },
		{ "/etc/dir/../../usr/lib/real", 0 },
		{ "/usr/lib/deep/climb", 0 },
		{ "/usr/lib/deep/er/up/climb", 0 },
		{ "/usr/lib/deep/er/up/er/../../real", 0 },
		{ "/escape", 0 },
		{ "/../../../secret", 0 },
		{ "/lib/../../secret", 0 },
		{ "/host-path", -ENOENT },
		{ "/proc-root/secret", -ENOENT },
		{ "/dangling", -ENOENT },
		{ "/loop-a", -ELOOP },
		{ "/usr/lib/real/", -ENOTDIR },
		{ "/usr/lib/real/..", -ENOTDIR },
		{ "/usr/lib/real/../real", -ENOTDIR },
		{ "/usr/lib", -EISDIR },
		{ "/", -EISDIR },
		{ "/fifo", -EACCES },
		{ "/none", -ENOENT },
	};
	char text[16];

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(want); i++)
		for (unsigned int step = 0; step < 2; step++) {
			int ret = read_in_root(want[i].path, step, text);

			if (ret != want[i].ret)
				fail_msg("%s%s: %d, expected %d", want[i].path,
					 step ? " by steps" : "", ret, want[i].ret);
			assert_string_equal(text, ret ? "" : "inside");
		}
}

static void by_build_id(void **state)
{
	uint8_t id[20] = { 0xaa }, other[20] = { 0xbb };
	struct userfile_options opt = { .guest_root = at("root"),
					.debuginfo = { at("dbg") },
					.system_debug = "",
					.cache = at("cache") };
	struct userfile_finder u;
	struct userfile f;
	struct err e = { 0 };
	char hex[BUILDID_HEX_MAX], link[128];

	(void)state;
	assert_int_equal(userfile_finder_init(&u, &opt, &e), 0);
	/* By path, checked. */
	put_elf("root/usr/lib/prog", 0xaa, true);
	assert_int_equal(userfile_open(&f, &u, "/lib/prog", id, 20, &e), 0);
	assert_int_equal(f.place, USERFILE_IN_GUEST_ROOT);
	assert_true(f.verified && f.map.len > 100);
	assert_non_null(strstr(f.path, "/root/lib/prog"));
	userfile_close(&f);
	/* The guest's build id is not known. */
	assert_int_equal(userfile_open(&f, &u, "/lib/prog", NULL, 0, &e), 0);
	assert_false(f.verified);
	userfile_close(&f);
	/* Another one; and none at all. */
	assert_int_equal(userfile_open(&f, &u, "/lib/prog", other, 20, &e), -ESTALE);
	assert_null(f.map.data);
	buildid_hex(hex, id, 20);
	assert_non_null(strstr(e.text, hex));
	buildid_hex(hex, other, 20);
	assert_non_null(strstr(e.text, hex));
	put_elf("root/usr/lib/no-id", 0xaa, false);
	err_clear(&e);
	assert_int_equal(userfile_open(&f, &u, "/lib/no-id", id, 20, &e), -ESTALE);
	/* The cache helps out, under the same id alone. */
	buildid_hex(hex, other, 20);
	assert_int_equal(file_mkdirs(at("cache/x"), NULL), 0);
	put_elf("cache/x/elf", 0xbb, true);
	assert_int_equal(file_mkdirs(at("cache/.build-id/bb"), NULL), 0);
	snprintf(link, sizeof(link), "cache/.build-id/bb/%s", hex + 2);
	link_to("../../x", link);
	assert_int_equal(userfile_open(&f, &u, "/lib/prog", other, 20, NULL), 0);
	assert_int_equal(f.place, USERFILE_IN_CACHE);
	userfile_close(&f);
	put_elf("cache/x/elf", 0xcc, true);
	assert_int_equal(userfile_open(&f, &u, "/lib/prog", other, 20, NULL), -ESTALE);
	/* Not there, not a program, no path. */
	assert_int_equal(userfile_open(&f, &u, "/lib/none", id, 20, NULL), -ENOENT);
	assert_int_equal(userfile_open(&f, &u, "[vdso]", id, 20, NULL), -ENOENT);
	err_clear(&e);
	assert_int_equal(userfile_open(&f, &u, "/lib/real", id, 20, &e), -EACCES);
	assert_non_null(strstr(e.text, "ELF"));
	assert_int_equal(u.count[USERFILE_FOUND], 2);
	assert_int_equal(u.count[USERFILE_UNVERIFIED], 1);
	assert_int_equal(u.count[USERFILE_MISMATCH], 3);
	assert_int_equal(u.count[USERFILE_MISSING], 2);
	assert_int_equal(u.count[USERFILE_UNREADABLE], 1);
	userfile_finder_deinit(&u);
}

static void debug_files(void **state)
{
	uint8_t id[20] = { 0xaa };
	char name[256], hex[BUILDID_HEX_MAX];
	struct userfile_options opt = { .guest_root = at("root"),
					.debuginfo = { "/none", top },
					.system_debug = at("system"),
					.cache = "" };
	static const struct {
		const char *dir;
		enum userfile_place place;
	} in[] = { { "system", USERFILE_IN_SYSTEM_DEBUG },
		   { "root/usr/lib/debug", USERFILE_IN_GUEST_ROOT },
		   { ".", USERFILE_IN_DEBUGINFO } };
	struct userfile_finder u;
	struct userfile f;
	struct err e = { 0 };

	(void)state;
	buildid_hex(hex, id, 20);
	assert_int_equal(userfile_finder_init(&u, &opt, NULL), 0);
	assert_int_equal(userfile_open_debug(&f, &u, id, 20, &e), -ENOENT);
	assert_non_null(strstr(e.text, hex));
	/* Each is searched before those that were there already. */
	for (unsigned int i = 0; i < ARRAY_SIZE(in); i++) {
		snprintf(name, sizeof(name), "%s/.build-id/aa", in[i].dir);
		assert_int_equal(file_mkdirs(at(name), NULL), 0);
		snprintf(name, sizeof(name), "%s/.build-id/aa/%s.debug", in[i].dir, hex + 2);
		put_elf(name, 0xaa, true);
		assert_int_equal(userfile_open_debug(&f, &u, id, 20, NULL), 0);
		assert_int_equal(f.place, in[i].place);
		userfile_close(&f);
	}
	/* A wrong one does not end the search. */
	put_elf(name, 0xdd, true);
	assert_int_equal(userfile_open_debug(&f, &u, id, 20, NULL), 0);
	assert_int_equal(f.place, USERFILE_IN_GUEST_ROOT);
	userfile_close(&f);
	userfile_finder_deinit(&u);
}

static void jit_map(void **state)
{
	struct userfile_options opt = { .guest_root = at("root") };
	struct userfile_finder u;
	struct userfile f;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(userfile_finder_init(&u, &opt, NULL), 0);
	assert_int_equal(userfile_open_perfmap(&f, &u, 42, NULL), 0);
	assert_memory_equal(f.map.data, "1000 10 jit\n", 12);
	userfile_close(&f);
	assert_int_equal(userfile_open_perfmap(&f, &u, 43, &e), -ENOENT);
	assert_non_null(strstr(e.text, "perf-43.map"));
	/* A link to the host's: looked up inside. */
	link_to("/etc/passwd", "root/tmp/perf-44.map");
	assert_int_equal(userfile_open_perfmap(&f, &u, 44, NULL), -ENOENT);
	userfile_finder_deinit(&u);
	opt.guest_root = at("secret");
	err_clear(&e);
	assert_int_equal(userfile_finder_init(&u, &opt, &e), -ENOTDIR);
	assert_non_null(strstr(e.text, "secret"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(links, setup, teardown),
		cmocka_unit_test_setup_teardown(by_build_id, setup, teardown),
		cmocka_unit_test_setup_teardown(debug_files, setup, teardown),
		cmocka_unit_test_setup_teardown(jit_map, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
