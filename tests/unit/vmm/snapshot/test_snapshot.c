/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of a snapshot, the state of devices in it, and what a run says of its kernel. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "profile/record/run/snapshot_facts.h"
#include "profile/record/run/snapshot_resources.h"
#include "vmm/dev/pit.h"
#include "vmm/dev/platform.h"
#include "vmm/dev/serial.h"
#include "base/gmem.h"
#include "vmm/gmem_alloc.h"
#include "vmm/kvm.h"
#include "vmm/quirks.h"
#include "vmm/snapshot/snapshot_host.h"
#include "vmm/snapshot/snapshot_vm.h"
#include "tests/unit/skip.h"
#include "vmm/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB (1ull << 20)

static char dir[] = "/tmp/test_snapshot.XXXXXX";
static char path[64];

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/s", dir);
	return 0;
}

static int remove_dir(void **state)
{
	struct err e = { 0 };

	(void)state;
	return file_remove_tree(dir, &e);
}

static unsigned int files(void)
{
	DIR *d = opendir(dir);
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

/* 16 MiB of RAM with a word at its start, in the middle and at its end. */
static void make_ram(struct gmem *mem)
{
	struct err e = { 0 };

	memset(mem, 0, sizeof(*mem));
	assert_int_equal(gmem_alloc(mem, &(struct gmem_config){ .size = 16 * MIB }, &e), 0);
	assert_int_equal(gmem_write(mem, 0, "first", 6), 0);
	assert_int_equal(gmem_write(mem, 5 * MIB + 4090, "across", 7), 0);
	assert_int_equal(gmem_write(mem, 16 * MIB - 5, "last", 5), 0);
}

static int write_file(struct snapshot_writer *w, const struct gmem *mem, struct err *e)
{
	struct snapshot_file f = SNAPSHOT_FILE_NONE;
	int ret = snapshot_file_open(&f, path, e);

	ret = ret ? ret : snapshot_write(w, mem, &f, e);
	ret = ret ? ret : snapshot_file_publish(&f, e);
	snapshot_file_close(&f);
	return ret;
}

static int write_one(const struct gmem *mem, struct err *e)
{
	struct snapshot_writer *w = calloc(1, sizeof(*w));
	static const uint8_t bytes[] = "the state of something";
	int ret;

	assert_non_null(w);
	ret = snapshot_add(w, &(struct snapshot_blob){ "part", 3, bytes, sizeof(bytes) }, e);
	ret = ret ? ret : snapshot_add(w, &(struct snapshot_blob){ "empty", 1, NULL, 0 }, e);
	if (!ret)
		ret = snapshot_add(w, &(struct snapshot_blob){ "file:x", 1, bytes, 5 }, e);
	ret = ret ? ret : write_file(w, mem, e);
	free(w);
	return ret;
}

/* Instead of the C library's. */
static bool sync_fails;

int fsync(int fd)
{
	if (sync_fails) {
		errno = EIO;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

static void write_good(void)
{
	struct err e = { 0 };
	struct gmem mem;

	make_ram(&mem);
	assert_int_equal(write_one(&mem, &e), 0);
	gmem_alloc_free(&mem);
}

static void patch(off_t off, const void *data, size_t len)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, len, off), len);
	close(fd);
}

static void check_refused(int code, const char *word)
{
	struct snapshot *s = NULL;
	struct err e = { 0 };

	assert_int_equal(snapshot_open(&s, path, &e), -code);
	assert_non_null(strstr(e.text, word));
	assert_non_null(strstr(e.text, path));
	assert_null(strchr(e.text, '\n'));
}

static void comes_back(void **state)
{
	struct snapshot *s = NULL;
	struct file_map map;
	struct err e = { 0 };
	struct cursor c;
	struct stat st;

	(void)state;
	write_good();
	assert_int_equal(files(), 1);
	assert_int_equal(stat(path, &st), 0);
	/* Three pages and the head, of more than 16 MiB: the rest is holes. */
	assert_true(st.st_size > (off_t)(16 * MIB) && st.st_blocks * 512 < 256 << 10);
	assert_int_equal(snapshot_open(&s, path, &e), 0);
	assert_int_equal(snapshot_find(s, "part", 3, &c, &e), 0);
	assert_string_equal((const char *)c.base, "the state of something");
	assert_int_equal(snapshot_find(s, "empty", 1, &c, &e), 0);
	assert_int_equal(c.len, 0);
	assert_int_equal(snapshot_map(s, "file:x", &map, &e), 0);
	assert_int_equal(map.len, 5);
	assert_memory_equal(map.data, "the s", 5);
	file_map_close(&map);
	assert_int_equal(snapshot_find(s, "part", 4, &c, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "version 3"));
	err_clear(&e);
	assert_int_equal(snapshot_find(s, "other", 1, &c, &e), -ENOENT);
	snapshot_close(s);
}

/* The file is mapped between the guards of the memory in whose place it is. */
static void assert_guarded(const struct gmem_region *r)
{
	const uint8_t *outside[] = { r->host - 1, r->host - GMEM_GUARD, r->host + r->size,
				     r->host + r->size + GMEM_GUARD - 1 };
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		assert_int_equal(write(fds[1], outside[i], 1), -1);
		assert_int_equal(errno, EFAULT);
	}
	assert_int_equal(write(fds[1], r->host + r->size - 1, 1), 1);
	close(fds[0]);
	close(fds[1]);
}

static void many_from_one(void **state)
{
	struct gmem mem[2];
	struct snapshot *s = NULL;
	struct err e = { 0 };
	char text[8];

	(void)state;
	write_good();
	assert_int_equal(snapshot_open(&s, path, &e), 0);
	for (unsigned int i = 0; i < 2; i++) {
		memset(&mem[i], 0, sizeof(mem[i]));
		assert_int_equal(gmem_alloc(&mem[i], &(struct gmem_config){ .size = 16 * MIB }, &e),
				 0);
		assert_int_equal(snapshot_map_ram(s, &mem[i], &e), 0);
		assert_int_equal(gmem_read(&mem[i], 5 * MIB + 4090, text, 7), 0);
		assert_string_equal(text, "across");
		assert_int_equal(gmem_read(&mem[i], 16 * MIB - 5, text, 5), 0);
		assert_string_equal(text, "last");
		assert_guarded(&mem[i].region[0]);
	}
	assert_int_equal(gmem_write(&mem[0], 0, "mine!", 6), 0);
	assert_int_equal(gmem_read(&mem[1], 0, text, 6), 0);
	assert_string_equal(text, "first");
	/* Replaced while it is in use: the machines keep what they have. */
	write_good();
	assert_int_equal(gmem_read(&mem[1], 5 * MIB + 4090, text, 7), 0);
	assert_string_equal(text, "across");
	gmem_alloc_free(&mem[0]);
	assert_int_equal(gmem_alloc(&mem[0], &(struct gmem_config){ .size = 8 * MIB }, &e), 0);
	assert_int_equal(snapshot_map_ram(s, &mem[0], &e), -EINVAL);
	gmem_alloc_free(&mem[0]);
	gmem_alloc_free(&mem[1]);
	snapshot_close(s);
}

static void damage(void **state)
{
	static const uint8_t bad = 0x5a;

	(void)state;
	write_good();
	patch(3, &bad, 1);
	check_refused(EINVAL, "not a snapshot");
	write_good();
	patch(8, &bad, 1);
	check_refused(ENOTSUP, "version 90");
	write_good();
	patch(42, &bad, 1); /* a section's name */
	check_refused(EINVAL, "table is damaged");
	write_good();
	patch(4096 + 4, &bad, 1);
	check_refused(EINVAL, "section 'part' is damaged");
	write_good();
	assert_int_equal(truncate(path, 5 * MIB), 0);
	check_refused(EINVAL, "cut off");
	assert_int_equal(truncate(path, 50), 0);
	check_refused(EINVAL, "ends in its table");
	assert_int_equal(truncate(path, 0), 0);
	check_refused(EINVAL, "not a snapshot");
}

static void fails_whole(void **state)
{
	struct rlimit old, small = { MIB, MIB };
	struct err e = { 0 };
	struct gmem mem;

	(void)state;
	write_good();
	make_ram(&mem);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(write_one(&mem, &e), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(strstr(e.text, path));
	gmem_alloc_free(&mem);
	/* The one before is there as it was, and nothing else. */
	assert_int_equal(files(), 1);
	{
		struct snapshot *s = NULL;

		err_clear(&e);
		assert_int_equal(snapshot_open(&s, path, &e), 0);
		snapshot_close(s);
	}
}

/* On the disk before it has its name: a crash of the host leaves the one or the other. */
static void is_written_through(void **state)
{
	struct err e = { 0 };
	struct gmem mem;
	struct stat st, now;
	mode_t mask = umask(022);
	unsigned int before;

	(void)state;
	write_good();
	umask(mask);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 077, 0); /* a guest's memory is not everybody's */
	before = files();
	make_ram(&mem);
	sync_fails = true;
	assert_int_equal(write_one(&mem, &e), -EIO);
	sync_fails = false;
	gmem_alloc_free(&mem);
	assert_int_equal(files(), before);
	assert_int_equal(stat(path, &now), 0);
	assert_int_equal(now.st_ino, st.st_ino);
}

static void host_differs(void **state)
{
	struct kvm_host host;
	struct quirks q = { .tsc_khz = 2000000 }, other;
	struct snapshot_writer *w;
	struct snapshot *s = NULL;
	struct err e = { 0 };
	struct gmem mem;
	struct buf b;

	(void)state;
	if (kvm_host_open(&host, &e) < 0)
		SKIP("%s", e.text);
	make_ram(&mem);
	buf_init(&b);
	w = calloc(1, sizeof(*w));
	assert_non_null(w);
	assert_int_equal(snapshot_host_save(&host, &q, &b, &e), 0);
	assert_int_equal(snapshot_add(w,
				      &(struct snapshot_blob){ "host", SNAPSHOT_HOST_VERSION,
							       b.data, b.len },
				      &e),
			 0);
	assert_int_equal(write_file(w, &mem, &e), 0);
	assert_int_equal(snapshot_open(&s, path, &e), 0);
	assert_int_equal(snapshot_host_check(s, &host, &q, &e), 0);
	other = q;
	other.tsc_khz = 2000400; /* 200 ppm */
	assert_int_equal(snapshot_host_check(s, &host, &other, &e), 0);
	other.tsc_khz = 2001000;
	assert_int_equal(snapshot_host_check(s, &host, &other, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "TSC kHz=2000000, this host TSC kHz=2001000"));
	err_clear(&e);
	other = q;
	other.interpreted = true;
	assert_int_equal(snapshot_host_check(s, &host, &other, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "interprets ring 0=no"));
	snapshot_close(s);
	gmem_alloc_free(&mem);
	buf_deinit(&b);
	free(w);
	kvm_host_close(&host);
}

/* -- devices -------------------------------------------------------------------------- */

static int line_level;

static void irq_set(void *ctx, unsigned int irq, int level)
{
	(void)ctx;
	(void)irq;
	line_level = level;
}

static void out_byte(void *ctx, uint8_t byte)
{
	(void)ctx;
	(void)byte;
}

static uint32_t io(struct bus *bus, uint16_t port, int write)
{
	uint8_t byte = (uint8_t)write;

	assert_true(bus_io(bus, port, write >= 0 ? BUS_WRITE : BUS_READ, 1, 1, &byte));
	return byte;
}

static void serial_state(void **state)
{
	struct dev_irq irq = { irq_set, NULL };
	struct bus bus[2] = { { .n = 0 } };
	struct serial s[2];
	struct err e = { 0 };
	struct cursor in;
	struct buf b;

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(serial_init(&s[i], &bus[i], irq, out_byte, NULL), 0);
	io(&bus[0], 0x3fb, 0x83);
	io(&bus[0], 0x3f8, 12);
	io(&bus[0], 0x3fb, 3);
	io(&bus[0], 0x3fc, 0x0b);
	io(&bus[0], 0x3f9, 1);
	io(&bus[0], 0x3ff, 77);
	assert_int_equal(serial_input(&s[0], (const uint8_t *)"abc", 3), 3);
	assert_int_equal(io(&bus[0], 0x3f8, -1), 'a');
	buf_init(&b);
	assert_int_equal(serial_save(&s[0], &b, &e), 0);
	cursor_init(&in, b.data, b.len);
	assert_int_equal(serial_restore(&s[1], &in, &e), 0);
	assert_int_equal(io(&bus[1], 0x3ff, -1), 77);
	assert_int_equal(io(&bus[1], 0x3f9, -1), 1);
	assert_int_equal(io(&bus[1], 0x3fa, -1) & 0x0f, 4);
	assert_int_equal(io(&bus[1], 0x3f8, -1), 'b');
	line_level = 1;
	assert_int_equal(io(&bus[1], 0x3f8, -1), 'c');
	assert_int_equal(line_level, 0);
	assert_int_equal(io(&bus[1], 0x3fd, -1) & 1, 0);
	io(&bus[1], 0x3fb, 0x83);
	assert_int_equal(io(&bus[1], 0x3f8, -1), 12);
	for (size_t len = 0; len < b.len; len++) {
		cursor_init(&in, b.data, len);
		assert_int_equal(serial_restore(&s[1], &in, NULL), -EINVAL);
	}
	buf_deinit(&b);
	serial_deinit(&s[0]);
	serial_deinit(&s[1]);
}

static void platform_state(void **state)
{
	struct bus bus[2] = { { .n = 0 } };
	struct platform p[2];
	struct err e = { 0 };
	struct cursor in;
	struct buf b;

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(platform_init(&p[i], &bus[i], (struct dev_power){ 0 }), 0);
	io(&bus[0], 0x64, 0x60);
	io(&bus[0], 0x60, 0x47);
	io(&bus[0], 0x64, 0x20);
	buf_init(&b);
	assert_int_equal(platform_save(&p[0], &b, &e), 0);
	cursor_init(&in, b.data, b.len);
	assert_int_equal(platform_restore(&p[1], &in, &e), 0);
	assert_int_equal(io(&bus[1], 0x64, -1) & 1, 1);
	assert_int_equal(io(&bus[1], 0x60, -1), 0x47);
	cursor_init(&in, b.data, b.len - 1);
	assert_int_equal(platform_restore(&p[1], &in, NULL), -EINVAL);
	buf_deinit(&b);
}

/* Half of a period has passed before it is saved: the other half is left. */
static void pit_state(void **state)
{
	struct dev_irq irq = { irq_set, NULL };
	struct bus bus[2] = { { .n = 0 } };
	struct pit p[2];
	struct err e = { 0 };
	struct cursor in;
	struct buf b;
	uint64_t left;

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(
			pit_init(&p[i], &bus[i], irq, (struct pit_load){ 0 }, 1000000000, &e), 0);
	io(&bus[0], 0x43, 0x34);
	io(&bus[0], 0x40, 0x9c);
	io(&bus[0], 0x40, 0x2e);
	usleep(20000);
	buf_init(&b);
	assert_int_equal(pit_save(&p[0], &b, &e), 0);
	usleep(20000);
	cursor_init(&in, b.data, b.len);
	pthread_mutex_lock(&p[0].lock);
	left = p[0].next_ns;
	pthread_mutex_unlock(&p[0].lock);
	assert_int_equal(pit_restore(&p[1], &in, &e), 0);
	pthread_mutex_lock(&p[1].lock);
	assert_int_equal(p[1].ch[0].mode, 2);
	assert_int_equal(p[1].ch[0].reload, 0x2e9c);
	/* It stood still for the second pause, the other did not. */
	assert_true(p[1].next_ns >= left + 20000000);
	pthread_mutex_unlock(&p[1].lock);
	for (size_t len = 0; len < b.len; len++) {
		cursor_init(&in, b.data, len);
		assert_int_equal(pit_restore(&p[1], &in, NULL), -EINVAL);
	}
	b.data[1] = 9;
	cursor_init(&in, b.data, b.len);
	assert_int_equal(pit_restore(&p[1], &in, NULL), -EINVAL);
	buf_deinit(&b);
	pit_deinit(&p[0]);
	pit_deinit(&p[1]);
}

static void facts(void **state)
{
	struct snapshot_facts f = { .bzimage = true,
				    .slide_known = true,
				    .slide = 0x1000000,
				    .pa_slide = 0x200000,
				    .image = (char *)"vmlinux",
				    .cmdline = (char *)"console=ttyS0",
				    .exec = true,
				    .guest_root = (char *)"/srv/root",
				    .nonce = (char *)"00112233445566778899aabbccddeeff",
				    .message = (char *)"\033_kvm" },
			      g = { 0 };
	struct err e = { 0 };
	struct cursor in;
	struct buf b;

	(void)state;
	buf_init(&b);
	snapshot_facts_put(&f, &b);
	cursor_init(&in, b.data, b.len);
	assert_int_equal(snapshot_facts_parse(&g, &in, &e), 0);
	assert_true(g.bzimage && g.slide_known);
	assert_int_equal(g.slide, 0x1000000);
	assert_int_equal(g.pa_slide, 0x200000);
	assert_string_equal(g.image, "vmlinux");
	assert_null(g.symbols);
	assert_string_equal(g.cmdline, "console=ttyS0");
	assert_true(g.exec);
	assert_string_equal(g.guest_root, "/srv/root");
	assert_string_equal(g.nonce, f.nonce);
	assert_string_equal(g.message, "\033_kvm");
	snapshot_facts_deinit(&g);
	for (size_t len = 0; len < b.len; len++) {
		cursor_init(&in, b.data, len);
		assert_int_equal(snapshot_facts_parse(&g, &in, NULL), -EINVAL);
	}
	buf_deinit(&b);
}

static struct disk *open_image(const char *name, enum disk_write how)
{
	struct disk_config cfg = { .path = name, .write = how };
	struct err e = { 0 };
	struct disk *d = NULL;

	if (disk_open(&d, &cfg, &e) < 0)
		fail_msg("%s", e.text);
	return d;
}

static void make_image(const char *name, size_t len, const char *text)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), strlen(text));
	close(fd);
}

static void check_disk(const struct snapshot_disk *was, const char *name, int code,
		       const char *word)
{
	struct disk *d = open_image(name, DISK_OVERLAY);
	struct err e = { 0 };

	if (snapshot_disk_check(was, 1, d, "s.snap", &e) != -code)
		fail_msg("%s", e.text);
	if (code) {
		assert_non_null(strstr(e.text, word));
		assert_non_null(strstr(e.text, "disk vdb"));
		assert_null(strchr(e.text, '\n'));
	}
	disk_close(d, NULL);
}

/* The host's side of a machine's devices: it is restored, and another image is recognised. */
static void devices_of_the_host(void **state)
{
	struct vm_config cfg = {
		.disk = { { .serial = "number" } },
		.ndisks = 1,
		.share = { { "/srv/data", "data", true } },
		.nshares = 1,
		.net = { .kind = NET_USER,
			 .restricted = true,
			 .forward = { { true, 8080, 80 } },
			 .nforwards = 1 },
	};
	struct snapshot_devices *g = malloc(sizeof(*g));
	char image[96], other[96], *whole;
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	struct err e = { 0 };
	struct cursor in;
	struct stat st;
	struct buf b;

	(void)state;
	assert_non_null(g);
	snprintf(image, sizeof(image), "%s/../%s/image", dir, strrchr(dir, '/') + 1);
	snprintf(other, sizeof(other), "%s/other", dir);
	make_image(image, MIB, "an image");
	cfg.disk[0].disk = open_image(image, DISK_OVERLAY);
	buf_init(&b);
	assert_int_equal(snapshot_devices_save(&cfg, &b, &e), 0);
	disk_close(cfg.disk[0].disk, NULL);
	cursor_init(&in, b.data, b.len);
	assert_int_equal(snapshot_devices_parse(g, &in, &e), 0);
	assert_int_equal(g->ndisks, 1);
	whole = realpath(image, NULL);
	assert_string_equal(g->disk[0].path, whole);
	free(whole);
	assert_string_equal(g->disk[0].serial, "number");
	memset(&cfg, 0, sizeof(cfg));
	snapshot_devices_configure(g, &cfg);
	assert_int_equal(cfg.nshares, 1);
	assert_string_equal(cfg.share[0].dir, "/srv/data");
	assert_string_equal(cfg.share[0].tag, "data");
	assert_true(cfg.share[0].read_only);
	assert_int_equal(cfg.net.kind, NET_USER);
	assert_true(cfg.net.restricted && !cfg.net.host_loopback);
	assert_true(cfg.net.forward[0].udp && cfg.net.forward[0].host == 8080);

	check_disk(&g->disk[0], image, 0, NULL);
	/* A copy that keeps the time is the same image, one that does not is another. */
	assert_int_equal(stat(image, &st), 0);
	make_image(other, MIB, "an image");
	times[1].tv_sec = 1;
	assert_int_equal(utimensat(AT_FDCWD, other, times, 0), 0);
	check_disk(&g->disk[0], other, ESTALE, "was changed");
	times[1] = st.st_mtim;
	assert_int_equal(utimensat(AT_FDCWD, other, times, 0), 0);
	check_disk(&g->disk[0], other, 0, NULL);
	make_image(other, MIB, "an imagE");
	assert_int_equal(utimensat(AT_FDCWD, other, times, 0), 0);
	check_disk(&g->disk[0], other, ESTALE, "contents differ");
	make_image(other, 2 * MIB, "an image");
	check_disk(&g->disk[0], other, ESTALE, "2097152 bytes");

	for (size_t len = 0; len < b.len; len++) {
		cursor_init(&in, b.data, len);
		assert_int_equal(snapshot_devices_parse(g, &in, NULL), -EINVAL);
	}
	buf_deinit(&b);
	/* State that cannot be saved. */
	cfg.ndisks = 1;
	cfg.disk[0].disk = open_image(image, DISK_WRITABLE);
	buf_init(&b);
	assert_int_equal(snapshot_devices_save(&cfg, &b, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "writable"));
	disk_close(cfg.disk[0].disk, NULL);
	err_clear(&e);
	cfg.disk[0].disk = open_image(image, DISK_OVERLAY);
	assert_int_equal(unlink(image), 0);
	assert_int_equal(snapshot_devices_save(&cfg, &b, &e), -ENOTSUP);
	assert_non_null(strstr(e.text, "does not exist any more"));
	disk_close(cfg.disk[0].disk, NULL);
	buf_deinit(&b);
	free(g);
}

static void check_resources(const struct snapshot_devices *d, struct snapshot_given given, int want,
			    const char *text)
{
	struct err e = { 0 };

	assert_int_equal(snapshot_resources_check(d, &given, "f.snap", &e), want);
	if (want && !strstr(e.text, text))
		fail_msg("'%s' is not in '%s'", text, e.text);
}

/* Nothing of the host's is used because the file names it. */
static void resources_are_given_again(void **state)
{
	struct snapshot_devices *d = calloc(1, sizeof(*d));
	struct snapshot_given none = { 0 };

	(void)state;
	assert_non_null(d);
	check_resources(d, none, 0, NULL);
	check_resources(d, (struct snapshot_given){ .ndisks = 1 }, -EINVAL, "drop --disk");
	check_resources(d, (struct snapshot_given){ .nshares = 1 }, -EINVAL, "drop --share");
	check_resources(d, (struct snapshot_given){ .net = true }, -EINVAL, "drop --net");
	d->ndisks = 2;
	strcpy(d->disk[0].path, "/a,b");
	strcpy(d->disk[1].path, "/it's \033[2J");
	d->nshares = 2;
	strcpy(d->share[0].dir, "/home");
	strcpy(d->share[1].dir, "/x y");
	d->share[1].read_only = true;
	d->net.kind = NET_USER;
	d->net.host_loopback = true;
	d->net.nforwards = 1;
	d->net.forward[0] = (struct net_forward){ true, 53, 5353 };
	check_resources(d, none, -EACCES,
			": --disk /a,,b --disk '/it'\\''s ?[2J' --share /home --share '/x y',ro "
			"--net user,host-loopback,hostfwd=udp:53-:5353");
	check_resources(d, none, -EACCES, "--snapshot-trust");
	check_resources(d, (struct snapshot_given){ .trust = true }, 0, NULL);
	check_resources(d, (struct snapshot_given){ 2, 2, true, false }, 0, NULL);
	check_resources(d, (struct snapshot_given){ 2, 0, true, false }, -EACCES, "own): --share");
	check_resources(d, (struct snapshot_given){ 2, 2, false, false }, -EACCES, "own): --net");
	check_resources(d, (struct snapshot_given){ 1, 2, true, true }, -EINVAL, "has 2 disks");
	check_resources(d, (struct snapshot_given){ 2, 3, true, true }, -EINVAL, "has 2 shares");
	free(d);
}

/* Huge pages and a node want a copy: the same bytes, and nobody else's. */
static void memory_is_read(void **state)
{
	struct snapshot *s = NULL;
	struct err e = { 0 };
	struct gmem mem;
	char text[8];

	(void)state;
	write_good();
	assert_int_equal(snapshot_open(&s, path, &e), 0);
	assert_int_equal(gmem_alloc(&mem, &(struct gmem_config){ .size = 16 * MIB }, &e), 0);
	assert_int_equal(snapshot_read_ram(s, &mem, &e), 0);
	assert_int_equal(gmem_read(&mem, 0, text, 6), 0);
	assert_string_equal(text, "first");
	assert_int_equal(gmem_read(&mem, 5 * MIB + 4090, text, 7), 0);
	assert_string_equal(text, "across");
	assert_int_equal(gmem_read(&mem, 16 * MIB - 5, text, 5), 0);
	assert_string_equal(text, "last");
	assert_int_equal(gmem_read(&mem, 9 * MIB, text, 5), 0);
	assert_memory_equal(text, "\0\0\0\0\0", 5);
	gmem_alloc_free(&mem);
	snapshot_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_back),
		cmocka_unit_test(many_from_one),
		cmocka_unit_test(damage),
		cmocka_unit_test(fails_whole),
		cmocka_unit_test(host_differs),
		cmocka_unit_test(serial_state),
		cmocka_unit_test(platform_state),
		cmocka_unit_test(pit_state),
		cmocka_unit_test(facts),
		cmocka_unit_test(devices_of_the_host),
		cmocka_unit_test(is_written_through),
		cmocka_unit_test(memory_is_read),
		cmocka_unit_test(resources_are_given_again),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
