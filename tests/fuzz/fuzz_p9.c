/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: 2000 runs */
/*
 * 9P requests: each answer is one, nothing outside of the share is told, and what lies
 * outside stays as it is.
 *
 * Input: a byte (bit 0: read-only), then messages, each as long as its first four bytes say.
 */
#include "tests/fuzz/fuzz.h"

#include "base/file.h"
#include "vmm/dev/p9.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "not-for-the-guest"
#define MESSAGES_MAX 256u

static char base[64];
static const char *const outside[] = { "secret", "also" };

static void clean(void)
{
	file_remove_tree(base, NULL);
}

static void write_text(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || file_write_all(fd, text, strlen(text)) < 0)
		abort();
	close(fd);
}

static void make_base(void)
{
	/* Guests may write far behind the end of a file, and that shall not fill a disk. */
	struct rlimit size = { 1 << 20, 1 << 20 };
	int dir;

	strcpy(base, "/tmp/kvmprof-fuzz-p9.XXXXXX");
	if (!mkdtemp(base))
		abort();
	atexit(clean);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &size);
	dir = open(base, O_RDONLY | O_DIRECTORY);
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++)
		write_text(dir, outside[i], SECRET);
	close(dir);
}

/* Creates the share, and removes what an earlier run left. */
static void make_share(char *path, size_t cap)
{
	int dir;

	snprintf(path, cap, "%s/share", base);
	if (file_remove_tree(path, NULL) < 0 || mkdir(path, 0755) < 0)
		abort();
	dir = open(path, O_RDONLY | O_DIRECTORY);
	write_text(dir, "f", "content");
	if (mkdirat(dir, "d", 0755) < 0 || symlinkat("../secret", dir, "l") < 0 ||
	    symlinkat("..", dir, "u") < 0)
		abort();
	close(dir);
}

static void check_outside(void)
{
	char path[128], text[64];
	struct stat st;

	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		int fd;
		ssize_t n;

		snprintf(path, sizeof(path), "%s/%s", base, outside[i]);
		fd = open(path, O_RDONLY);
		n = fd < 0 ? -1 : read(fd, text, sizeof(text));
		if (n != sizeof(SECRET) - 1 || memcmp(text, SECRET, (size_t)n))
			abort();
		close(fd);
	}
	if (stat(base, &st) < 0 || st.st_nlink != 3) /* share is its only directory */
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t reply[P9_MSIZE];
	char share[128];
	struct p9 *p;

	if (!base[0])
		make_base();
	/* Some replies repeat text of the input, which is no secret then. */
	if (!size || memmem(data, size, SECRET, strlen(SECRET)))
		return 0;
	make_share(share, sizeof(share));
	if (p9_create(&p,
		      &(struct p9_share){ .dir = share, .read_only = data[0] & 1, .max_files = 64 },
		      NULL) < 0)
		abort();
	data++;
	size--;
	for (unsigned int i = 0; i < MESSAGES_MAX && size >= 4; i++) {
		uint32_t len, told;
		size_t n;

		memcpy(&len, data, sizeof(len));
		if (len < 4)
			len = 4;
		if (len > size)
			len = (uint32_t)size;
		n = p9_handle(p, data, len, reply, i % 3 ? sizeof(reply) : 64);
		if (n > sizeof(reply) || (n && n < 7) || (n && i % 3 == 0 && n > 64))
			abort();
		if (n) {
			memcpy(&told, reply, sizeof(told));
			if (told != n || memmem(reply, n, SECRET, strlen(SECRET)))
				abort();
		}
		data += len;
		size -= len;
	}
	p9_destroy(p);
	check_outside();
	return 0;
}
