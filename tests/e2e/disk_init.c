/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_init: /sbin/init on a disk of disk_boot.py: reads a file, writes one, says that it is
 * ready, writes another, reads all of them from the disk, powers off; and what its clock has
 * shown meanwhile. Without libc: gcc -static -nostdlib -ffreestanding -O2.
 */
#define NR_READ 0
#define NR_WRITE 1
#define NR_OPEN 2
#define NR_SYNC 162
#define NR_MOUNT 165
#define NR_REBOOT 169
#define NR_CLOCK_GETTIME 228

static long call5(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

static long call(long nr, long a, long b, long c, long d)
{
	return call5(nr, a, b, c, d, 0);
}

static void say(const char *s)
{
	long n = 0;

	while (s[n])
		n++;
	call(NR_WRITE, 1, (long)s, n, 0);
}

/* O_RDONLY 0; O_RDWR | O_CREAT | O_TRUNC 01102 */
static void show(const char *path)
{
	static char text[64];
	long fd = call(NR_OPEN, (long)path, 0, 0, 0);
	long n = fd < 0 ? fd : call(NR_READ, fd, (long)text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	say("disk-init: ");
	say(path);
	say(n > 0 ? " says " : " can't be read");
	say(text);
	say("\n");
}

/* CLOCK_MONOTONIC 1, in ms */
static void say_time(const char *what)
{
	static char text[24];
	long time[2] = { 0, 0 }, ms, at = sizeof(text) - 1;

	call(NR_CLOCK_GETTIME, 1, (long)time, 0, 0);
	ms = time[0] * 1000 + time[1] / 1000000;
	do {
		text[--at] = (char)('0' + ms % 10);
		ms /= 10;
	} while (ms);
	say(what);
	say(text + at);
	say(" ms\n");
}

static void put(const char *path, const char *text, long len)
{
	long fd = call(NR_OPEN, (long)path, 01102, 0644, 0);

	call(NR_WRITE, fd, (long)text, len, 0);
	call(NR_SYNC, 0, 0, 0, 0);
}

__attribute__((noreturn, used)) static void start(void)
{
	long fd;

	show("/etc/marker");
	put("/before", "what was there before", 21);
	say_time("disk-init: ready at ");
	say_time("disk-init: goes on at ");
	put("/written", "what was written", 16);
	/* Now the disk has to know all of it, what stands in an overlay too. */
	call5(NR_MOUNT, (long)"proc", (long)"/proc", (long)"proc", 0, 0);
	fd = call(NR_OPEN, (long)"/proc/sys/vm/drop_caches", 1, 0, 0);
	if (call(NR_WRITE, fd, (long)"3", 1, 0) != 1)
		say("disk-init: the cache stays\n");
	show("/before");
	show("/written");
	show("/etc/later");
	say("disk-init: done\n");
	call(NR_REBOOT, (long)0xfee1dead, 672274793, 0x4321fedc, 0);
	for (;;)
		;
}

__asm__(".globl _start\n_start:\n\tandq $-16, %rsp\n\tcall start\n");
