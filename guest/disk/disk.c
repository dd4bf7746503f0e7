// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /init of the tests of disks: reads and writes /dev/vda and prints the results.
 *
 * mode=WORD on the kernel's command line:
 *   check	mounts the ext4 file system of /dev/vda; reads /data, writes and reads back /out,
 *		makes the directory /made, unmounts
 *   dirs	the same without writing: only prints the names and sums of /data
 *   cpus	one process on each processor at the same time: writes the MiB of /dev/vda that has its
 *		number, past the page cache, and reads it back
 *   bench	reads /dev/vda from the beginning to seq=N MiB in 1 MiB pieces past the page cache,
 *		then random=N pieces of 4 KiB of it; each time sums what it read
 *
 * Lines that it prints, each beginning with "disk: ":
 *   sum NAME BYTES SUM			FNV-1a of a file's 64-bit words
 *   queues N				of vda
 *   seq BYTES NS SUM, random BYTES NS SUM
 *   stat ...				/proc/diskstats of vda
 *   failed WHAT ERROR
 *   done
 */
#include "../init/init.h"
#include "../reboot.h"

enum {
	NR_LSEEK = 8,
	NR_FSYNC = 74,
	NR_PREAD = 17,
	NR_UMOUNT2 = 166,
	NR_PRCTL = 157,
	NR_PWRITE = 18,
	NR_SCHED_SETAFFINITY = 203,
};
enum { O_DIRECT = 040000, CLOCK_MONOTONIC = 1, PR_SET_NAME = 15 };

#define MIB (1ul << 20)
#define PAGE 4096ul
#define WRITTEN (256ul << 10)

struct timespec {
	long sec, nsec;
};

static unsigned char buffer[MIB] __attribute__((aligned(4096)));
static ulong_t seq_mib = 16, random_reads = 64;
static char mode[16] = "check";

void disk_main(const ulong_t *stack);

/* As in guest/init/init.c. */
__asm__(".globl _start\n"
	".type _start, @function\n"
	"_start:\n"
	"	xorl %ebp, %ebp\n"
	"	movq %rsp, %rdi\n"
	"	andq $-16, %rsp\n"
	"	pushq $0\n"
	"	jmp disk_main\n"
	".size _start, . - _start\n");

/* -- console ----------------------------------------------------------------------- */

static char line[256];
static ulong_t line_len;

static void add(const char *s)
{
	while (*s && line_len < sizeof(line) - 1)
		line[line_len++] = *s++;
}

static void add_number(ulong_t v)
{
	char digits[24], *p = digits + sizeof(digits) - 1;

	*p = 0;
	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	add(" ");
	add(p);
}

static void begin(const char *word)
{
	line_len = 0;
	add("disk: ");
	add(word);
}

static void end(void)
{
	line[line_len++] = '\n';
	syscall3(NR_WRITE, 1, line, line_len);
}

static long checked(const char *what, long ret)
{
	if (ret < 0) {
		begin("failed ");
		add(what);
		add_number((ulong_t)-ret);
		end();
	}
	return ret;
}

/* -- work -------------------------------------------------------------------------- */

static ulong_t now_ns(void)
{
	struct timespec t = { 0, 0 };

	syscall2(NR_CLOCK_GETTIME, CLOCK_MONOTONIC, &t);
	return (ulong_t)t.sec * 1000000000ul + (ulong_t)t.nsec;
}

GUEST_NOIPA static ulong_t sum_words(ulong_t sum, const unsigned char *bytes, ulong_t len)
{
	for (ulong_t i = 0; i + 8 <= len; i += 8) {
		sum ^= *(const ulong_t *)(bytes + i);
		sum *= 0x100000001b3ul;
	}
	return sum;
}

#define SUM_BEGIN 0xcbf29ce484222325ul

static void print_sum(const char *name, ulong_t bytes, ulong_t sum)
{
	begin("sum ");
	add(name);
	add_number(bytes);
	add_number(sum);
	end();
}

GUEST_NOIPA static void sum_file(const char *path)
{
	long fd = checked(path, syscall3(NR_OPEN, path, O_RDONLY, 0)), n;
	ulong_t sum = SUM_BEGIN, bytes = 0;

	if (fd < 0)
		return;
	while ((n = checked("read", syscall3(NR_READ, fd, buffer, sizeof(buffer)))) > 0) {
		sum = sum_words(sum, buffer, (ulong_t)n);
		bytes += (ulong_t)n;
	}
	syscall1(NR_CLOSE, fd);
	print_sum(path, bytes, sum);
}

GUEST_NOIPA static void write_file(const char *path)
{
	long fd = checked(path, syscall3(NR_OPEN, path, O_WRONLY | O_CREAT | O_TRUNC, 0644));
	ulong_t word = 1;

	if (fd < 0)
		return;
	for (ulong_t i = 0; i < WRITTEN; i += 8) {
		word = word * 6364136223846793005ul + 1442695040888963407ul;
		*(ulong_t *)(buffer + i) = word;
	}
	checked("write", syscall3(NR_WRITE, fd, buffer, WRITTEN));
	checked("fsync", syscall1(NR_FSYNC, fd));
	syscall1(NR_CLOSE, fd);
	print_sum("written", WRITTEN, sum_words(SUM_BEGIN, buffer, WRITTEN));
}

/* The line of vda in /proc/diskstats (Documentation/admin-guide/iostats.rst). */
static void print_stat(void)
{
	static char text[4096];
	long fd = checked("diskstats", syscall3(NR_OPEN, "/proc/diskstats", O_RDONLY, 0));
	long n = fd < 0 ? 0 : checked("diskstats", syscall3(NR_READ, fd, text, sizeof(text) - 1));

	for (long i = 0, from = 0; i < n; i++) {
		if (text[i] != '\n')
			continue;
		text[i] = 0;
		for (long k = from; k + 4 < i; k++) {
			if (text[k] != ' ' || text[k + 1] != 'v' || text[k + 2] != 'd' ||
			    text[k + 3] != 'a' || text[k + 4] != ' ')
				continue;
			begin("stat");
			add(text + k);
			end();
		}
		from = i + 1;
	}
	if (fd >= 0)
		syscall1(NR_CLOSE, fd);
}

static void mount_at(const char *what, const char *type, const char *where)
{
	syscall2(NR_MKDIR, where, 0755);
	checked(where, syscall6(NR_MOUNT, (long)what, (long)where, (long)type, 0, 0, 0));
}

static void check(int write)
{
	mount_at("/dev/vda", "ext4", "/mnt");
	sum_file("/mnt/data");
	if (write) {
		write_file("/mnt/out");
		checked("mkdir", syscall2(NR_MKDIR, "/mnt/made", 0755));
	}
	checked("umount", syscall2(NR_UMOUNT2, "/mnt", 0));
	if (write) {
		/* From the disk: the page cache went with the file system. */
		mount_at("/dev/vda", "ext4", "/mnt");
		sum_file("/mnt/out");
		checked("umount", syscall2(NR_UMOUNT2, "/mnt", 0));
	}
}

/* -- several processors -------------------------------------------------------------- */

#define PIECE (128ul << 10)
#define MAX_CPUS 16ul

static int go_to_cpu(ulong_t cpu)
{
	ulong_t mask = 1ul << cpu;

	return syscall3(NR_SCHED_SETAFFINITY, 0, sizeof(mask), &mask) == 0;
}

/* "cpu03"; cpu < 100 */
static const char *cpu_name(ulong_t cpu)
{
	static char name[] = "cpu00";

	name[3] = (char)('0' + cpu / 10);
	name[4] = (char)('0' + cpu % 10);
	return name;
}

GUEST_NOIPA static void use_region(ulong_t cpu)
{
	long fd = checked("/dev/vda", syscall3(NR_OPEN, "/dev/vda", O_RDWR | O_DIRECT, 0));
	ulong_t word = cpu;

	for (ulong_t i = 0; i < MIB; i += 8) {
		word = word * 6364136223846793005ul + 1442695040888963407ul;
		*(ulong_t *)(buffer + i) = word;
	}
	for (ulong_t off = 0; off < MIB; off += PIECE)
		checked("pwrite", syscall6(NR_PWRITE, fd, (long)(buffer + off), (long)PIECE,
					   (long)(cpu * MIB + off), 0, 0));
	for (ulong_t i = 0; i < MIB; i += 8)
		*(ulong_t *)(buffer + i) = 0;
	for (ulong_t off = 0; off < MIB; off += PIECE)
		checked("pread", syscall6(NR_PREAD, fd, (long)(buffer + off), (long)PIECE,
					  (long)(cpu * MIB + off), 0, 0));
	print_sum(cpu_name(cpu), MIB, sum_words(SUM_BEGIN, buffer, MIB));
}

static void print_queues(void)
{
	static char path[] = "/sys/block/vda/mq/0/nr_tags";
	ulong_t n = 0;

	for (long fd; n < 10; n++) {
		path[18] = (char)('0' + n);
		fd = syscall3(NR_OPEN, path, O_RDONLY, 0);
		if (fd < 0)
			break;
		syscall1(NR_CLOSE, fd);
	}
	begin("queues");
	add_number(n);
	end();
}

static void each_cpu(void)
{
	ulong_t cpus = 0;

	print_queues();
	while (cpus < MAX_CPUS && go_to_cpu(cpus))
		cpus++;
	for (ulong_t cpu = 0; cpu < cpus; cpu++) {
		if (syscall0(NR_FORK) == 0) {
			go_to_cpu(cpu);
			use_region(cpu);
			syscall1(NR_EXIT, 0);
		}
	}
	while (cpus--)
		syscall6(NR_WAIT4, -1, 0, 0, 0, 0, 0);
}

static void print_speed(const char *word, ulong_t bytes, ulong_t ns, ulong_t sum)
{
	begin(word);
	add_number(bytes);
	add_number(ns);
	add_number(sum);
	end();
}

GUEST_NOIPA static void bench(void)
{
	long fd = checked("/dev/vda", syscall3(NR_OPEN, "/dev/vda", O_RDONLY | O_DIRECT, 0));
	ulong_t sum = SUM_BEGIN, bytes = 0, pages = seq_mib * (MIB / PAGE), at = 1, t0;
	long n;

	if (fd < 0)
		return;
	t0 = now_ns();
	for (ulong_t i = 0; i < seq_mib; i++) {
		n = checked("read", syscall3(NR_READ, fd, buffer, MIB));
		if (n <= 0)
			break;
		sum = sum_words(sum, buffer, (ulong_t)n);
		bytes += (ulong_t)n;
	}
	print_speed("seq", bytes, now_ns() - t0, sum);
	sum = SUM_BEGIN;
	bytes = 0;
	t0 = now_ns();
	for (ulong_t i = 0; i < random_reads; i++) {
		at = at * 6364136223846793005ul + 1442695040888963407ul;
		n = checked("pread", syscall6(NR_PREAD, fd, (long)buffer, (long)PAGE,
					      (long)((at >> 20) % pages * PAGE), 0, 0));
		if (n <= 0)
			break;
		sum = sum_words(sum, buffer, (ulong_t)n);
		bytes += (ulong_t)n;
	}
	print_speed("random", bytes, now_ns() - t0, sum);
	syscall1(NR_CLOSE, fd);
}

/* -- arguments --------------------------------------------------------------------- */

static int is_named(const char *text, const char *name, const char **value)
{
	for (; *name; name++, text++)
		if (*text != *name)
			return 0;
	*value = text;
	return 1;
}

static void take_argument(const char *text)
{
	const char *value;
	ulong_t n = 0;

	if (is_named(text, "mode=", &value)) {
		for (; value[n] && n < sizeof(mode) - 1; n++)
			mode[n] = value[n];
		mode[n] = 0;
	} else if (is_named(text, "seq=", &value) || is_named(text, "random=", &value)) {
		for (const char *p = value; *p >= '0' && *p <= '9' && n < 1000000; p++)
			n = n * 10 + (ulong_t)(*p - '0');
		if (text[0] == 's' && n)
			seq_mib = n;
		else if (text[0] == 'r')
			random_reads = n;
	}
}

__attribute__((noinline)) void disk_main(const ulong_t *stack)
{
	const char *const *argv = (const char *const *)(stack + 1);
	long fd;

	for (ulong_t argc = stack[0]; argc > 0; argc--, argv++)
		take_argument(*argv);
	for (argv++; *argv; argv++)
		take_argument(*argv);
	mount_at("devtmpfs", "devtmpfs", "/dev");
	mount_at("proc", "proc", "/proc");
	mount_at("sysfs", "sysfs", "/sys");
	fd = syscall3(NR_OPEN, "/dev/console", O_RDWR, 0);
	for (long i = 0; fd >= 0 && i < 3; i++)
		if (fd != i)
			syscall2(NR_DUP2, fd, i);
	syscall6(NR_PRCTL, PR_SET_NAME, (long)"disk-test", 0, 0, 0, 0);
	begin("start");
	end();
	if (mode[0] == 'b')
		bench();
	else if (mode[0] == 'c' && mode[1] == 'p')
		each_cpu();
	else
		check(mode[0] == 'c');
	print_stat();
	begin("done");
	end();
	syscall0(NR_SYNC);
	end_machine();
}
