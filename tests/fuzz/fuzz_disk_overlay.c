/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An overlay from a file that anybody may have changed. The first byte chooses whether the rest is
 * an overlay's file (0) or its part of a snapshot. Whatever it is, the disk is refused, or reads
 * and writes consistently.
 */
#include "tests/fuzz/fuzz.h"

#include "vmm/dev/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE 65536u

static int make_file(const void *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	return fd;
}

/* The corpus was made for an image of this time. */
static int image(void)
{
	static uint8_t bytes[SIZE];
	static int fd = -1;
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };

	if (fd < 0) {
		memset(bytes, 'i', sizeof(bytes));
		fd = make_file(bytes, sizeof(bytes));
		if (futimens(fd, old) < 0)
			abort();
	}
	return fd;
}

static void use(struct disk *d)
{
	static uint8_t bytes[SIZE], sector[DISK_SECTOR];
	struct iovec all = { bytes, SIZE }, one = { sector, sizeof(sector) };

	memset(sector, 'w', sizeof(sector));
	if (disk_size(d) != SIZE || disk_readv(d, 0, &all, 1) != 0 ||
	    disk_writev(d, 3 * DISK_SECTOR, &one, 1) != 0 || disk_flush(d) != 0 ||
	    disk_readv(d, 0, &all, 1) != 0 ||
	    memcmp(bytes + 3 * DISK_SECTOR, sector, sizeof(sector)) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64], overlay[64];
	struct disk_config cfg = { .path = path, .overlay = overlay };
	struct disk *d = NULL;
	struct err e = { 0 };
	struct cursor in;
	int fd, ret;

	if (!size)
		return 0;
	fd = make_file(data + 1, size - 1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", image());
	snprintf(overlay, sizeof(overlay), "/proc/self/fd/%d", fd);
	cfg.write = data[0] ? DISK_OVERLAY : DISK_OVERLAY_FILE;
	ret = disk_open(&d, &cfg, &e);
	if (!ret && data[0]) {
		cursor_init(&in, data + 1, size - 1);
		ret = disk_overlay_restore(d, &in, &e);
	}
	if ((ret != 0) != (e.code != 0) || strchr(e.text, '\n'))
		abort();
	if (d)
		use(d); /* also after half of a snapshot */
	disk_close(d, NULL);
	close(fd);
	return 0;
}
