/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The beginning of an init that is linked with a C library: mounts file systems and opens the
 * console.
 */
#ifndef GUEST_LINUX_INIT_H
#define GUEST_LINUX_INIT_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static inline void init_begin(void)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	for (int i = 0; i < 3; i++) {
		int fd = open("/dev/console", O_RDWR);

		if (fd >= 0 && fd != i)
			dup2(fd, i);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
}

#endif
