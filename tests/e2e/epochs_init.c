// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The /init of a guest that runs several kernels: it is named after its kernel's release, works for work=SECONDS, and then does
 * what next= says: kexec into /next with /initrd, reboot, or, without it, power off.
 */
#include <fcntl.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static char cmdline[4096];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void work(double seconds)
{
	static char page[4096];
	const double until = now() + seconds;
	int zero = open("/dev/zero", O_RDONLY);

	while (now() < until)
		for (int i = 0; i < 100; i++)
			if (read(zero, page, sizeof(page)) < 0)
				exit(1);
}

static void start_next(void)
{
	static const char next[] = "console=ttyS0 panic=-1 work=3";
	int kernel = open("/next", O_RDONLY), initrd = open("/initrd", O_RDONLY);

	if (syscall(SYS_kexec_file_load, kernel, initrd, sizeof(next), next, 0L))
		perror("kexec_file_load");
	puts("epoch: kexec");
	reboot(LINUX_REBOOT_CMD_KEXEC);
}

int main(void)
{
	struct utsname u;
	const char *at;
	int fd;

	setvbuf(stdout, NULL, _IONBF, 0);
	mount("none", "/proc", "proc", 0, NULL);
	mount("none", "/dev", "devtmpfs", 0, NULL);
	fd = open("/proc/cmdline", O_RDONLY);
	if (fd < 0 || read(fd, cmdline, sizeof(cmdline) - 1) < 0)
		perror("/proc/cmdline");
	uname(&u);
	prctl(PR_SET_NAME, u.release);
	printf("epoch: Linux %s\n", u.release);
	at = strstr(cmdline, "work=");
	work(at ? atof(at + 5) : 3);
	if (strstr(cmdline, "next=kexec"))
		start_next();
	if (strstr(cmdline, "next=reboot")) {
		puts("epoch: reboot");
		reboot(LINUX_REBOOT_CMD_RESTART);
	}
	puts("epoch: end");
	reboot(LINUX_REBOOT_CMD_POWER_OFF);
	return 1;
}
