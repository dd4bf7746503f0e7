/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files that are packed for a command in the guest, and how its status is returned. */
#include "base/buf.h"
#include "profile/record/rootfs/archive.h"
#include "profile/record/rootfs/exec_console.h"
#include "profile/record/rootfs/exec_files.h"
#include "profile/record/rootfs/modules.h"
#include "profile/record/rootfs/program.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

static char base[64];

static int set_up(void **state)
{
	(void)state;
	strcpy(base, "/tmp/kvmprof-exec.XXXXXX");
	return mkdtemp(base) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return file_remove_tree(base, NULL);
}

static const char *below(const char *name)
{
	static char path[4][256];
	static unsigned int n;

	n = (n + 1) % 4;
	snprintf(path[n], sizeof(path[n]), "%s/%s", base, name);
	return path[n];
}

static void write_text(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* -- the archive, read back with somebody else's reader -------------------------------- */

struct seen {
	char name[256], link[256], data[64];
	unsigned int mode, ino, links, uid, major, minor;
	size_t size;
};

static unsigned int hex(const uint8_t *p)
{
	char text[9] = "";

	memcpy(text, p, 8);
	return (unsigned int)strtoul(text, NULL, 16);
}

/* Lists the headers themselves, because libarchive would merge links. */
static unsigned int list(const struct file_map *m, struct seen *out, unsigned int max)
{
	size_t at = 0;
	unsigned int n = 0;

	for (;;) {
		const uint8_t *h = m->data + at;
		struct seen *s = &out[n];
		size_t name_len;

		assert_true(at + 110 <= m->len && n < max);
		assert_memory_equal(h, "070701", 6);
		name_len = hex(h + 94);
		assert_true(name_len && name_len <= sizeof(s->name));
		memset(s, 0, sizeof(*s));
		memcpy(s->name, h + 110, name_len);
		assert_int_equal(strlen(s->name), name_len - 1);
		if (!strcmp(s->name, "TRAILER!!!"))
			return n;
		s->ino = hex(h + 6);
		s->mode = hex(h + 14);
		s->uid = hex(h + 22);
		s->links = hex(h + 38);
		s->size = hex(h + 54);
		s->major = hex(h + 78);
		s->minor = hex(h + 86);
		at = (at + 110 + name_len + 3) / 4 * 4;
		assert_true(at + s->size <= m->len);
		memcpy(s->data, m->data + at, s->size < 63 ? s->size : 63);
		at = (at + s->size + 3) / 4 * 4;
		n++;
	}
}

static const struct seen *get(const struct seen *s, unsigned int n, const char *name)
{
	for (unsigned int i = 0; i < n; i++)
		if (!strcmp(s[i].name, name))
			return &s[i];
	fail_msg("%s is not there", name);
	return NULL;
}

#define SEEN_MAX 512u

static unsigned int finish(struct rootfs *r, struct seen **out)
{
	struct file_map m = { 0 };
	struct err e = { 0 };
	unsigned int n;

	*out = calloc(SEEN_MAX, sizeof(**out));
	assert_non_null(*out);
	if (rootfs_finish(r, &m, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(m.len % 512, 0);
	n = list(&m, *out, SEEN_MAX);
	file_map_close(&m);
	rootfs_deinit(r);
	return n;
}

static void packs_a_directory(void **state)
{
	struct seen *s;
	struct rootfs r;
	struct err e = { 0 };
	unsigned int n;

	(void)state;
	assert_int_equal(mkdir(below("sub"), 0711), 0);
	write_text(below("sub/file"), "content", 04751);
	assert_int_equal(link(below("sub/file"), below("sub/other")), 0);
	assert_int_equal(symlink("file", below("sub/link")), 0);
	assert_int_equal(mkfifo(below("pipe"), 0600), 0);
	write_text(below("empty"), "", 0644);
	assert_int_equal(rootfs_init(&r, &e), 0);
	assert_int_equal(rootfs_add_directory(&r, base, &e), 0);
	/* Existing entries stay, and missing parents are created. */
	assert_int_equal(rootfs_add_node(&r, "/sub", S_IFDIR | 0755, 0, 0, &e), 0);
	assert_int_equal(rootfs_add_node(&r, "/dev/null", S_IFCHR | 0666, 1, 3, &e), 0);
	assert_true(rootfs_has(&r, "/sub/./file"));
	assert_false(rootfs_has(&r, "sub/../sub/file"));
	assert_int_equal(rootfs_add_bytes(&r, "../out", S_IFREG | 0644, "x", 1, &e), -EINVAL);
	assert_int_equal(r.left_out, 0);
	n = finish(&r, &s);
	assert_int_equal(get(s, n, "sub")->mode, S_IFDIR | 0711);
	assert_int_equal(get(s, n, "sub/file")->mode, S_IFREG | 04751);
	assert_int_equal(get(s, n, "sub/file")->uid, 0);
	assert_int_equal(get(s, n, "sub/file")->links, 2);
	assert_string_equal(get(s, n, "sub/file")->data, "content");
	/* The second name has the first one's inode, and no data. */
	assert_int_equal(get(s, n, "sub/other")->ino, get(s, n, "sub/file")->ino);
	assert_int_equal(get(s, n, "sub/other")->size, 0);
	assert_string_equal(get(s, n, "sub/link")->data, "file");
	assert_int_equal(get(s, n, "pipe")->mode, S_IFIFO | 0600);
	assert_int_equal(get(s, n, "empty")->size, 0);
	assert_int_equal(get(s, n, "dev")->mode, S_IFDIR | 0755);
	assert_int_equal(get(s, n, "dev/null")->minor, 3);
	free(s);
}

/* A tar file with an entry of each kind, by libarchive. */
static void add_entry(struct archive *a, const char *name, unsigned int type, const char *link,
		      const char *data)
{
	struct archive_entry *x = archive_entry_new();

	archive_entry_set_pathname(x, name);
	archive_entry_set_perm(x, 0750);
	archive_entry_set_uid(x, 7);
	if (type)
		archive_entry_set_filetype(x, type);
	if (link && type)
		archive_entry_set_symlink(x, link);
	if (link && !type)
		archive_entry_set_hardlink(x, link);
	if (type == AE_IFCHR)
		archive_entry_set_rdev(x, makedev(5, 1));
	archive_entry_set_size(x, data ? (int64_t)strlen(data) : 0);
	assert_int_equal(archive_write_header(a, x), ARCHIVE_OK);
	if (data)
		assert_int_equal(archive_write_data(a, data, strlen(data)), strlen(data));
	archive_entry_free(x);
}

static void make_tar(const char *path, bool bad)
{
	struct archive *a = archive_write_new();

	archive_write_set_format_gnutar(a);
	archive_write_add_filter_xz(a);
	assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
	add_entry(a, "./etc/deep/file", AE_IFREG, NULL, "text");
	add_entry(a, "again", 0, bad ? "nothing" : "etc/deep/file", NULL);
	add_entry(a, "more", 0, bad ? "nothing" : "./again", NULL);
	add_entry(a, "soft", AE_IFLNK, "etc/deep/file", NULL);
	add_entry(a, "dev/console", AE_IFCHR, NULL, NULL);
	if (bad)
		add_entry(a, "../../out", AE_IFREG, NULL, "x");
	archive_write_free(a);
}

static void packs_an_archive(void **state)
{
	struct seen *s;
	struct rootfs r;
	struct err e = { 0 };
	unsigned int n;

	(void)state;
	make_tar(below("a.tar.xz"), false);
	assert_int_equal(rootfs_init(&r, &e), 0);
	if (rootfs_add_archive(&r, below("a.tar.xz"), &e) < 0)
		fail_msg("%s", e.text);
	n = finish(&r, &s);
	assert_int_equal(get(s, n, "etc")->mode & S_IFMT, S_IFDIR);
	assert_string_equal(get(s, n, "etc/deep/file")->data, "text");
	assert_int_equal(get(s, n, "etc/deep/file")->uid, 7);
	assert_int_equal(get(s, n, "etc/deep/file")->links, 2);
	assert_int_equal(get(s, n, "again")->ino, get(s, n, "etc/deep/file")->ino);
	assert_int_equal(get(s, n, "more")->ino, get(s, n, "etc/deep/file")->ino);
	assert_int_equal(get(s, n, "again")->mode & S_IFMT, S_IFREG);
	assert_string_equal(get(s, n, "soft")->data, "etc/deep/file");
	assert_int_equal(get(s, n, "dev/console")->major, 5);
	free(s);
}

static void refuses_bad_archives(void **state)
{
	struct rootfs r;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(rootfs_init(&r, &e), 0);
	make_tar(below("b.tar.xz"), true);
	assert_int_equal(rootfs_add_archive(&r, below("b.tar.xz"), &e), -EINVAL);
	assert_non_null(strstr(e.text, "leads out of the root"));
	assert_int_equal(r.left_out, 2);
	err_clear(&e);
	write_text(below("text"), "this is no archive of any kind, and long enough for a look\n",
		   0644);
	assert_int_equal(rootfs_add_archive(&r, below("text"), &e), -EINVAL);
	assert_non_null(strstr(e.text, "nor a tar or cpio archive"));
	err_clear(&e);
	make_tar(below("c.tar.xz"), false);
	assert_int_equal(truncate(below("c.tar.xz"), 100), 0);
	assert_int_equal(rootfs_add_archive(&r, below("c.tar.xz"), &e), -EINVAL);
	rootfs_deinit(&r);
}

static void packs_a_program(void **state)
{
	struct rootfs r;
	struct err e = { 0 };
	struct buf path;
	char name[PATH_MAX];

	(void)state;
	buf_init(&path);
	assert_int_equal(rootfs_init(&r, &e), 0);
	write_text(below("script"), "#!/bin/sh\nexit 0\n", 0755);
	if (rootfs_add_program(&r, below("script"), name, &path, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(name, below("script"));
	assert_true(rootfs_has(&r, below("script")));
	assert_true(rootfs_has(&r, "/bin/sh"));
	assert_true(rootfs_has(&r, "/lib64/ld-linux-x86-64.so.2"));
	assert_true(rootfs_has(&r, "/lib/x86_64-linux-gnu/libc.so.6"));
	assert_int_equal(path.len, 0);
	assert_int_equal(rootfs_add_program(&r, "no-such-program-here", name, &path, &e), -ENOENT);
	err_clear(&e);
	write_text(below("plain"), "text", 0644);
	assert_int_equal(rootfs_add_program(&r, below("plain"), name, &path, &e), -EACCES);
	buf_deinit(&path);
	rootfs_deinit(&r);
}

static void orders_modules(void **state)
{
	struct rootfs r;
	struct err e = { 0 };
	struct buf load;
	struct seen *s;
	unsigned int n;

	(void)state;
	buf_init(&load);
	assert_int_equal(file_mkdirs(below("lib/modules/6.1.0/kernel"), &e), 0);
	write_text(below("lib/modules/6.1.0/kernel/top-one.ko"), "1", 0644);
	write_text(below("lib/modules/6.1.0/kernel/mid.ko"), "2", 0644);
	/* gzip -n of "3" */
	{
		static const uint8_t gz[] = { 0x1f, 0x8b, 8,	0,    0,    0,	  0, 0, 0, 3, 0x33,
					      6,    0,	  0x9b, 0x8e, 0xd2, 0x6d, 1, 0, 0, 0 };
		int fd =
			open(below("lib/modules/6.1.0/kernel/low.ko.gz"), O_WRONLY | O_CREAT, 0644);

		assert_int_equal(write(fd, gz, sizeof(gz)), sizeof(gz));
		close(fd);
	}
	write_text(below("lib/modules/6.1.0/modules.dep"),
		   "kernel/top-one.ko: kernel/mid.ko kernel/low.ko.gz\n"
		   "kernel/mid.ko: kernel/low.ko.gz\n"
		   "kernel/low.ko.gz:\n"
		   "kernel/gone.ko: kernel/none.ko\n",
		   0644);
	write_text(below("lib/modules/6.1.0/modules.builtin"), "kernel/fs/ext4.ko\n", 0644);
	assert_int_equal(rootfs_init(&r, &e), 0);
	if (rootfs_add_modules(&r, base, "ext4,top_one", "6.1.0", &load, &e) < 0)
		fail_msg("%s", e.text);
	assert_memory_equal(load.data,
			    "/lib/modules/6.1.0/kernel/low.ko\0/lib/modules/6.1.0/kernel/mid.ko\0"
			    "/lib/modules/6.1.0/kernel/top-one.ko",
			    load.len);
	n = finish(&r, &s);
	assert_string_equal(get(s, n, "lib/modules/6.1.0/kernel/low.ko")->data, "3");
	assert_memory_equal(get(s, n, "lib/modules/6.1.0/modules.dep")->data,
			    "kernel/top-one.ko: kernel/mid.ko kernel/low.ko\n", 47);
	free(s);
	assert_int_equal(rootfs_init(&r, &e), 0);
	assert_int_equal(rootfs_add_modules(&r, base, "nope", "6.1.0", &load, &e), -ENOENT);
	err_clear(&e);
	assert_int_equal(rootfs_add_modules(&r, base, "mid", "6.2.0", &load, &e), -EINVAL);
	assert_non_null(strstr(e.text, "would refuse"));
	err_clear(&e);
	assert_int_equal(rootfs_add_modules(&r, "/proc/self/fd", "mid", "6.2.0", &load, &e),
			 -ENOENT);
	err_clear(&e);
	/* A missing dependency, and a missing file. */
	assert_int_equal(rootfs_add_modules(&r, base, "gone", "", &load, &e), -ENOENT);
	rootfs_deinit(&r);
	buf_deinit(&load);
}

/* -- words ------------------------------------------------------------------------------ */

static void check_split(const char *text, const char *words, size_t len, unsigned int count,
			bool shell)
{
	struct err e = { 0 };
	struct buf b;
	unsigned int n;
	bool needs;

	buf_init(&b);
	assert_int_equal(exec_split(text, &b, &n, &needs, &e), 0);
	assert_int_equal(n, count);
	assert_int_equal(b.len, len);
	if (len)
		assert_memory_equal(b.data, words, len);
	assert_int_equal(needs, shell);
	buf_deinit(&b);
}

static void splits_words(void **state)
{
	struct err e = { 0 };
	struct buf b;
	unsigned int n;
	bool needs;

	(void)state;
#define SPLIT(text, words, count, shell) check_split(text, words, sizeof(words) - 1, count, shell)
	SPLIT("  a  b\tc ", "a\0b\0c\0", 3, false);
	SPLIT("'a b' \"c \\\" d\" e\\ f", "a b\0c \" d\0e f\0", 3, false);
	SPLIT("a''b \"\"", "ab\0\0", 2, false);
	SPLIT("a | b", "a\0|\0b\0", 3, true);
	SPLIT("'a | $b'", "a | $b\0", 1, false);
	SPLIT("\"$a\"", "$a\0", 1, true);
	SPLIT("a\\;", "a;\0", 1, false);
	check_split("", "", 0, 0, false);
	buf_init(&b);
	assert_int_equal(exec_split("'a", &b, &n, &needs, &e), -EINVAL);
	buf_deinit(&b);
}

static void takes_shares(void **state)
{
	struct exec_share s;
	struct err e = { 0 };
	char text[300];

	(void)state;
	assert_int_equal(exec_share_parse(&s, base, 2, &e), 0);
	assert_string_equal(s.dir, base);
	assert_string_equal(s.tag, "share2");
	assert_string_equal(s.place, "/mnt/share2");
	assert_false(s.read_only);
	snprintf(text, sizeof(text), "%s:data,ro", base);
	assert_int_equal(exec_share_parse(&s, text, 0, &e), 0);
	assert_string_equal(s.tag, "data");
	assert_string_equal(s.place, "/mnt/data");
	assert_true(s.read_only);
	snprintf(text, sizeof(text), "%s:/srv/x", base);
	assert_int_equal(exec_share_parse(&s, text, 1, &e), 0);
	assert_string_equal(s.tag, "share1");
	assert_string_equal(s.place, "/srv/x");
	snprintf(text, sizeof(text), "%s:a/b", base);
	assert_int_equal(exec_share_parse(&s, text, 1, &e), -EINVAL);
	err_clear(&e);
	assert_int_equal(exec_share_parse(&s, "/no/such/dir", 1, &e), -ENOENT);
	err_clear(&e);
	assert_int_equal(exec_share_parse(&s, "/etc/passwd", 1, &e), -ENOTDIR);
	err_clear(&e);
	assert_int_equal(exec_share_parse(&s, ":x", 1, &e), -EINVAL);
}

/* -- the console ------------------------------------------------------------------------ */

#define NONCE "00112233445566778899aabbccddeeff"

static struct {
	char text[1024];
	size_t n;
	unsigned int found;
} console;

static void put(void *ctx, uint8_t byte)
{
	(void)ctx;
	assert_true(console.n < sizeof(console.text) - 1);
	console.text[console.n++] = (char)byte;
	console.text[console.n] = 0;
}

static void found(void *ctx)
{
	(void)ctx;
	console.found++;
}

static void feed(struct exec_console *c, const char *nonce, const char *text)
{
	memset(&console, 0, sizeof(console));
	exec_console_init(c, nonce, put, NULL, found, NULL);
	for (; *text; text++)
		exec_console_put(c, (uint8_t)*text);
	exec_console_end(c);
}

static void finds_the_status(void **state)
{
	struct exec_console c;

	(void)state;
	feed(&c, NONCE, "out\n\033_kvmprof;" NONCE ";exit;7\033\\rest");
	assert_string_equal(console.text, "out\nrest");
	assert_true(c.have_status);
	assert_int_equal(c.status, 7);
	assert_int_equal(console.found, 1);
	/* Not ours: shown as it came. */
	feed(&c, NONCE, "\033_kvmprof;10112233445566778899aabbccddeeff;exit;0\033\\");
	assert_string_equal(console.text,
			    "\033_kvmprof;10112233445566778899aabbccddeeff;exit;0\033\\");
	assert_int_equal(console.found, 0);
	/* The beginning of one, twice, and the end of the output within. */
	feed(&c, NONCE, "\033_kvm\033_kvmprof;" NONCE ";exit;0\033\\\033[1m\033_kv");
	assert_string_equal(console.text, "\033_kvm\033[1m\033_kv");
	assert_true(c.have_status);
	feed(&c, NULL, "\033_kvmprof;" NONCE ";exit;7\033\\");
	assert_int_equal(console.found, 0);
	assert_string_equal(console.text, "\033_kvmprof;" NONCE ";exit;7\033\\");
}

static void finds_the_times(void **state)
{
	static const char *const bad[] = { "time;1;2", "time;1;2;", "time;1;2;3;4", "time;;2;3",
					   "time;1;2;18446744073709551615" };
	struct exec_console c;

	(void)state;
	feed(&c, NONCE,
	     "out\033_kvmprof;" NONCE ";time;1234567890;20;3\033\\\033_kvmprof;" NONCE
	     ";exit;7\033\\");
	assert_string_equal(console.text, "out");
	assert_true(c.have_time && c.have_status);
	assert_int_equal(c.real_ns, 1234567890);
	assert_int_equal(c.user_ns, 20);
	assert_int_equal(c.system_ns, 3);
	assert_int_equal(console.found, 1); /* by the status alone */
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[200];

		snprintf(text, sizeof(text), "\033_kvmprof;" NONCE ";%s\033\\", bad[i]);
		feed(&c, NONCE, text);
		assert_false(c.have_time);
		assert_int_equal(console.found, 0);
	}
}

/* A snapshot may be taken within the message: the next run has the rest of it. */
static void goes_on_with_a_message(void **state)
{
	static const char text[] = "out\033_kvmprof;" NONCE ";exit;7\033\\rest";
	struct exec_console a, b;
	struct buf held;

	(void)state;
	for (size_t cut = 0; cut < sizeof(text); cut++) {
		memset(&console, 0, sizeof(console));
		exec_console_init(&a, NONCE, put, NULL, found, NULL);
		exec_console_init(&b, NONCE, put, NULL, found, NULL);
		for (size_t i = 0; i < cut; i++)
			exec_console_put(&a, (uint8_t)text[i]);
		buf_init(&held);
		exec_console_pending(&a, &held);
		for (const char *s = (const char *)held.data; *s; s++)
			exec_console_put(&b, (uint8_t)*s);
		buf_deinit(&held);
		for (size_t i = cut; i < sizeof(text) - 1; i++)
			exec_console_put(&b, (uint8_t)text[i]);
		assert_string_equal(console.text, "outrest");
		assert_int_equal(console.found, 1);
		assert_int_equal(a.have_status ? a.status : b.status, 7);
	}
}

static void reads_bad_messages(void **state)
{
	static const char *const bad[] = { "exit;", "exit;256", "exit;7x", "", "else;1" };
	struct exec_console c;
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "\033_kvmprof;" NONCE ";%s\033\\", bad[i]);
		feed(&c, NONCE, text);
		assert_int_equal(console.found, 0);
	}
	feed(&c, NONCE, "\033_kvmprof;" NONCE ";fail;2;cannot \001do\033\\");
	assert_true(c.failed);
	assert_int_equal(c.error, 2);
	assert_string_equal(c.text, "cannot ?do");
	/* The first one counts. */
	feed(&c, NONCE, "\033_kvmprof;" NONCE ";exit;1\033\\\033_kvmprof;" NONCE ";exit;2\033\\");
	assert_int_equal(c.status, 1);
	assert_int_equal(console.found, 1);
}

int main(void)
{
#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FILE_TEST(packs_a_directory),
		FILE_TEST(packs_an_archive),
		FILE_TEST(refuses_bad_archives),
		FILE_TEST(packs_a_program),
		FILE_TEST(orders_modules),
		cmocka_unit_test(splits_words),
		FILE_TEST(takes_shares),
		cmocka_unit_test(finds_the_status),
		cmocka_unit_test(finds_the_times),
		cmocka_unit_test(goes_on_with_a_message),
		cmocka_unit_test(reads_bad_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
