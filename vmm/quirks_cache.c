/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/quirks_cache.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"

#include <cpuid.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MODULES "/sys/module"
#define MAX_BYTES 4096u /* length of the file at most */
/* The flags of a result, one digit each, then ring0_ps_per_insn and tsc_khz. */
#define RESULT "result %u%u%u%u%u%u%u %" PRIu64 " %u\n"
#define SCAN "result %1u%1u%1u%1u%1u%1u%1u %" SCNu64 " %u\n%n"

/* Returns whether the calling user owns the directory at path. */
static bool is_own_directory(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid();
}

char *quirks_cache_path(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *path;
	int ret;

	if (is_own_directory(cache))
		ret = asprintf(&path, "%s/kvmprof/host-quirks", cache);
	else if ((!cache || !*cache) && is_own_directory(home))
		ret = asprintf(&path, "%s/.cache/kvmprof/host-quirks", home);
	else
		return NULL;
	return ret < 0 ? NULL : path;
}

static void add_leaf(struct buf *b, uint32_t leaf)
{
	unsigned int r[4] = { 0 };

	__cpuid_count(leaf, 0, r[0], r[1], r[2], r[3]);
	/* Leaf 1 has the number of the processor that executes it in EBX. */
	if (leaf == 1)
		r[1] = 0;
	buf_printf(b, " %x.%x.%x.%x", r[0], r[1], r[2], r[3]);
}

/*
 * Appends what identifies the processor, and the hypervisor below this host: a host that is itself
 * a virtual machine may move to another processor while it runs.
 */
static void add_processor(struct buf *b)
{
	static const uint32_t leaf[] = { 0,	     1,		 7,	     0x80000001, 0x80000002,
					 0x80000003, 0x80000004, 0x40000000, 0x40000010 };
	unsigned int a, c, d, features;

	__cpuid(1, a, c, features, d);
	buf_printf(b, "processor");
	/* Without a hypervisor (bit 31) its leaves have the contents of another leaf. */
	for (size_t i = 0; i < ARRAY_SIZE(leaf); i++)
		if (leaf[i] >> 28 != 4 || features >> 31)
			add_leaf(b, leaf[i]);
	buf_printf(b, "\n");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/*
 * Appends the modules of KVM with the inode numbers of their directories: a module that is loaded
 * again gets another number. Returns false if they cannot be read.
 */
static bool add_modules(struct buf *b)
{
	cleanup_closedir DIR *dir = opendir(MODULES);
	char text[16][96], *sorted[ARRAY_SIZE(text)];
	const struct dirent *d;
	size_t n = 0;

	if (!dir)
		return false;
	while ((d = readdir(dir))) {
		struct stat st;

		if (strncmp(d->d_name, "kvm", 3) != 0)
			continue;
		if (n == ARRAY_SIZE(text) || fstatat(dirfd(dir), d->d_name, &st, 0) < 0)
			return false;
		snprintf(text[n], sizeof(text[n]), "%.60s:%ju", d->d_name, (uintmax_t)st.st_ino);
		sorted[n] = text[n];
		n++;
	}
	qsort(sorted, n, sizeof(sorted[0]), by_text);
	buf_printf(b, "modules");
	for (size_t i = 0; i < n; i++)
		buf_printf(b, " %s", sorted[i]);
	buf_printf(b, "\n");
	return true;
}

static bool add_boot(struct buf *b)
{
	cleanup_close int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	struct utsname u;
	char id[64] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, id, sizeof(id) - 1);

	if (n <= 0 || uname(&u) < 0)
		return false;
	id[strcspn(id, "\n")] = '\0';
	buf_printf(b, "boot %s %s\n", id, u.release);
	return true;
}

bool quirks_cache_key(char key[QUIRKS_CACHE_KEY])
{
	struct buf b = { 0 };
	struct stat self;
	bool done;

	/* Another build may have another probe. */
	done = stat("/proc/self/exe", &self) == 0;
	if (done)
		buf_printf(&b, "kvmprof %s, of %jd bytes, file %ju, %jd.%09ld\n", KVMPROF_VERSION,
			   (intmax_t)self.st_size, (uintmax_t)self.st_ino,
			   (intmax_t)self.st_mtim.tv_sec, self.st_mtim.tv_nsec);
	done = done && add_boot(&b) && add_modules(&b);
	add_processor(&b);
	done = done && !b.failed && b.len < QUIRKS_CACHE_KEY;
	if (done)
		snprintf(key, QUIRKS_CACHE_KEY, "%.*s", (int)b.len, (const char *)b.data);
	buf_deinit(&b);
	return done;
}

/* Reads the file into text, with a NUL behind it. Returns false if it must not be trusted. */
static bool read_text(const char *path, char text[MAX_BYTES])
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return false;
	n = read(fd, text, MAX_BYTES - 1);
	if (n <= 0 || n == MAX_BYTES - 1)
		return false;
	text[n] = '\0';
	return strlen(text) == (size_t)n;
}

bool quirks_cache_read(const char *path, const char *key, struct quirks *q)
{
	size_t len = strlen(key);
	unsigned int flag[7];
	char text[MAX_BYTES];
	uint64_t speed;
	uint32_t khz;
	int used = 0;

	if (!read_text(path, text) || strncmp(text, key, len) != 0)
		return false;
	if (sscanf(text + len, SCAN, &flag[0], &flag[1], &flag[2], &flag[3], &flag[4], &flag[5],
		   &flag[6], &speed, &khz, &used) != 9 ||
	    !used || text[len + (size_t)used])
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(flag); i++)
		if (flag[i] > 1)
			return false;
	*q = (struct quirks){ .interpreted = flag[0],
			      .syscall_keeps_cpl = flag[1],
			      .refuses_insns = flag[2],
			      .hypercalls_hang = flag[3],
			      .zero_counts_wrong = flag[4],
			      .cpuid_leaks = flag[5],
			      .tsc_fixed = flag[6],
			      .ring0_ps_per_insn = speed,
			      .tsc_khz = khz,
			      .probed = true,
			      .from_cache = true };
	return true;
}

bool quirks_cache_write(const char *path, const char *key, const struct quirks *q)
{
	cleanup_free char *dir = strndup(path, (size_t)(strrchr(path, '/') - path)), *tmp = NULL;
	struct err ignored = { 0 };
	struct buf b = { 0 };
	bool done;

	if (!dir || asprintf(&tmp, "%s.%d", path, (int)getpid()) < 0) {
		tmp = NULL;
		return false;
	}
	buf_printf(&b, "%s" RESULT, key, q->interpreted, q->syscall_keeps_cpl, q->refuses_insns,
		   q->hypercalls_hang, q->zero_counts_wrong, q->cpuid_leaks, q->tsc_fixed,
		   q->ring0_ps_per_insn, q->tsc_khz);
	done = !b.failed && !file_mkdirs(dir, &ignored) && is_own_directory(dir) &&
	       !file_replace(tmp, path, b.data, b.len, &ignored);
	buf_deinit(&b);
	return done;
}

void quirks_cache_store(const struct quirks *q)
{
	cleanup_free char *path = quirks_cache_path();
	char key[QUIRKS_CACHE_KEY];

	if (q->probed && path && quirks_cache_key(key))
		(void)quirks_cache_write(path, key, q);
}

void quirks_find(const struct kvm_host *h, struct quirks *q)
{
	const uint64_t began = clock_ns(CLOCK_MONOTONIC);
	cleanup_free char *path = quirks_cache_path();
	char key[QUIRKS_CACHE_KEY];
	bool known = path && quirks_cache_key(key);

	if (known && quirks_cache_read(path, key, q)) {
		q->probe_ns = clock_ns(CLOCK_MONOTONIC) - began;
		return;
	}
	quirks_probe(h, q);
	if (known && q->probed)
		(void)quirks_cache_write(path, key, q);
}
