/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk_init: /sbin/init on a disk of disk_boot.py: reads a file, writes one, reads that again,
 * powers off. Without libc: gcc -static -nostdlib -ffreestanding -O2.
 */
#define NR_READ 0
#define NR_WRITE 1
#define NR_OPEN 2
#define NR_SYNC 162
#define NR_REBOOT 169

static long call(long nr, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return ret;
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

__attribute__((noreturn, used)) static void start(void)
{
	long fd;

	show("/etc/marker");
	fd = call(NR_OPEN, (long)"/written", 01102, 0644, 0);
	call(NR_WRITE, fd, (long)"what was written", 16, 0);
	call(NR_SYNC, 0, 0, 0, 0);
	show("/written");
	say("disk-init: done\n");
	call(NR_REBOOT, (long)0xfee1dead, 672274793, 0x4321fedc, 0);
	for (;;)
		;
}

__asm__(".globl _start\n_start:\n\tandq $-16, %rsp\n\tcall start\n");
