/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dmesg_init: /init of a guest that writes into its kernel's log and prints that log as syslog(2)
 * returns it, again whenever it has changed. dmesg.records=N on the command line: so many records.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

/* linux/syslog.h */
#define SYSLOG_ACTION_READ_ALL 3
#define SYSLOG_ACTION_CONSOLE_LEVEL 8
#define LOG_MAX (16 << 20)

static void die(const char *what)
{
	printf("dmesg_init: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	for (;;)
		pause();
}

static void put(int fd, const char *text, size_t len)
{
	if (write(fd, text, len) != (ssize_t)len)
		die("/dev/kmsg");
}

static unsigned int records_wanted(void)
{
	char line[4096] = "";
	int fd = open("/proc/cmdline", O_RDONLY);
	const char *at;

	if (fd < 0 || read(fd, line, sizeof(line) - 1) < 0)
		die("/proc/cmdline");
	close(fd);
	at = strstr(line, "dmesg.records=");
	return at ? (unsigned int)strtoul(at + 14, NULL, 10) : 0;
}

/* Lines of all levels, several lines, no text, control characters, invalid UTF-8, long ones. */
static void fill_log(int fd, unsigned int n)
{
	static const char odd[] = "<4>esc \x1b[31mred\x1b[0m tab\t bytes \xc3\x28\xff\n";
	char text[1024];

	/* Without a newline at its end the kernel would wait for the record's continuation. */
	for (unsigned int i = 0; i < 8; i++)
		put(fd, text, (size_t)snprintf(text, sizeof(text), "<%u>level %u\n", i, i));
	put(fd, "<6>two\nlines\n", 13);
	put(fd, "<30>\n", 5);
	put(fd, "<6>ends with an empty line\n\n", 28);
	put(fd, odd, sizeof(odd) - 1);
	for (unsigned int i = 0; i < n; i++) {
		int len =
			snprintf(text, sizeof(text), "<%u>record %u ", (i % 7 + 1) | i % 3 << 3, i);

		unsigned int more = i * 7919 % (i % 50 ? 90 : 900);

		memset(text + len, 'a' + (int)(i % 26), more);
		text[(unsigned int)len + more] = '\n';
		put(fd, text, (size_t)len + more + 1);
	}
}

static void print_log(const char *log, int len)
{
	printf("dmesg-begin\n");
	fwrite(log, 1, (size_t)len, stdout);
	printf("dmesg-end\n");
	fflush(stdout);
}

int main(void)
{
	char *now = malloc(LOG_MAX), *before = malloc(LOG_MAX), *other;
	int len, len_before = -1, fd;
	struct termios t;

	if (!now || !before)
		die("malloc");
	if (tcgetattr(1, &t))
		die("tcgetattr");
	cfmakeraw(&t);
	if (tcsetattr(1, TCSADRAIN, &t))
		die("tcsetattr");
	mount("proc", "/proc", "proc", 0, NULL);
	if (mknod("/dev/kmsg", S_IFCHR | 0600, makedev(1, 11)) && errno != EEXIST)
		die("mknod");
	fd = open("/dev/kmsg", O_WRONLY);
	if (fd < 0)
		die("/dev/kmsg");
	/* The kernel prints only emergencies itself now, of which there is one here. */
	if (klogctl(SYSLOG_ACTION_CONSOLE_LEVEL, NULL, 1) < 0)
		die("console level");
	fill_log(fd, records_wanted());
	sleep(1); /* newer kernels print the emergency in a thread of their own */
	for (;; usleep(300000)) {
		len = klogctl(SYSLOG_ACTION_READ_ALL, now, LOG_MAX);
		if (len < 0)
			die("syslog");
		if (len == len_before && !memcmp(now, before, (size_t)len))
			continue;
		print_log(now, len);
		other = before;
		before = now;
		now = other;
		len_before = len;
	}
}
