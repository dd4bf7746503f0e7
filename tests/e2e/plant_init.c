/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plant_init: the /init of a guest that is to stand still, or that is healthy.
 *
 * Kernel command line: plant.do=WHAT. "ask" reads a line of such parameters from the console, so that a snapshot which is
 * taken while it waits serves for all plans; "module" loads /plant.ko with the plan in a process called insmod. A few programs
 * sleep and work meanwhile, as in any machine. Console lines:
 *
 *	plant: asks			the line is awaited
 *	plant: ready			all of it runs
 *	plant: truth KEY=VALUE...	what the judge compares with
 *	plant: planted
 *	plant: dmesg BYTES		the kernel's log follows, as dmesg(1) prints it; then "plant: dmesg end"
 */
#include "guest/linux_init.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

static char command_line[4096];
static volatile uint64_t sink, flag;

/* The value of NAME on the kernel's command line, or "". */
static const char *parameter(const char *name)
{
	static char value[256];
	const char *p = strstr(command_line, name);

	value[0] = '\0';
	if (p && p[strlen(name)] == '=')
		sscanf(p + strlen(name) + 1, "%255s", value);
	return value;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		printf("plant: failed: %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static pid_t child(const char *name)
{
	pid_t pid = fork();

	if (!pid)
		prctl(PR_SET_NAME, name);
	return pid;
}

/* What runs in any machine. */
static void daemon_sleep(void)
{
	for (;;) {
		sleep_ms(50 + rand() % 200);
		for (int i = 0; i < 20000; i++)
			sink += (uint64_t)i;
	}
}

static void daemon_fork(void)
{
	for (;;) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		sleep_ms(300);
	}
}

static long value(const char *name)
{
	return atol(parameter(name));
}

/* Loads the module with the plan in its place. */
static void load_module(void)
{
	static const char *const names[] = { "plant.cause",   "plant.kind",  "plant.cpu",
					     "plant.threads", "plant.delay", "plant.bits" };
	static const char mark[16] = "plant: the plan";
	static char image[1 << 20];
	int fd = open("/plant.ko", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, image, sizeof(image));
	char *at = n > 0 ? memmem(image, (size_t)n, mark, sizeof(mark)) : NULL;

	if (!at) {
		printf("plant: failed: no module\n");
		return;
	}
	close(fd);
	if (child("insmod"))
		return;
	at += sizeof(mark);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++, at += 4)
		memcpy(at, &(uint32_t){ (uint32_t)value(names[i]) }, 4);
	if (syscall(SYS_init_module, image, n, ""))
		printf("plant: failed: module: %s\n", strerror(errno));
	for (;;)
		pause();
}

/* A program of the highest priority that never ends, on one processor, beside one that wants it. */
static void user_loop(int cpu, int kind)
{
	cpu_set_t set;
	int shared[2];
	char byte;

	write_file("/proc/sys/kernel/sched_rt_runtime_us", "-1");
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pipe(shared))
		return;
	if (!child("starves")) {
		sched_setaffinity(0, sizeof(set), &set);
		if (write(shared[1], "", 1) != 1)
			_exit(1);
		for (;;)
			sink++;
	}
	if (read(shared[0], &byte, 1) != 1)
		return;
	if (child("endless"))
		return;
	printf("plant: truth tid=%d cpu=%d\n", (int)getpid(), cpu);
	printf("plant: planted\n");
	sleep_ms(100);
	sched_setaffinity(0, sizeof(set), &set);
	sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){ 50 });
	for (;;)
		switch (kind) {
		case 0:
			for (;;)
				__asm__ volatile("");
		case 1:
			while (!flag)
				__asm__ volatile("pause");
			break;
		default:
			sink = sink * 69069 + 1;
		}
}

/* Programs that want more than there is, one after the other. */
static void eat_memory(int kind)
{
	write_file("/proc/self/oom_score_adj", "-1000");
	printf("plant: planted\n");
	for (;;) {
		pid_t pid = child("eater");

		if (!pid) {
			write_file("/proc/self/oom_score_adj", "1000");
			for (size_t n = 0;; n += 1 << 20) {
				char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

				if (p == MAP_FAILED)
					pause();
				memset(p, kind + 1, 1 << 20);
			}
		}
		waitpid(pid, NULL, 0);
	}
}

/* Half of the memory, touched again and again, and as many pages of files as fit: pressure, but no end. */
static void press_memory(long percent)
{
	size_t pages = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)percent / 100;
	char *p = mmap(NULL, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	static char block[65536];
	int fd;

	mount("tmpfs", "/tmp", "tmpfs", 0, NULL);
	for (;;) {
		for (size_t i = 0; p != MAP_FAILED && i < pages; i++)
			p[i * 4096]++;
		fd = open("/tmp/file", O_RDWR | O_CREAT | O_TRUNC, 0600);
		for (int i = 0; fd >= 0 && i < 64; i++)
			if (write(fd, block, sizeof(block)) < 0)
				break;
		close(fd);
	}
}

/*
 * Reads a disk for ever, whose device then may not read memory any more (bit 2 of its PCI command register is cleared): it does
 * not see what it is asked for. A disk that QEMU slows down is no good: it catches up whenever a gdbstub stops the machine.
 */
static void read_disk(long delay)
{
	static char block[4096] __attribute__((aligned(4096)));
	int fd = open("/dev/nvme0n1", O_RDONLY | O_DIRECT);
	int config = open("/sys/block/nvme0n1/device/device/config", O_RDWR);
	uint16_t command = 0;

	if (!child("reader")) {
		printf("plant: truth tid=%d\n", (int)getpid());
		for (off_t at = 0;; at = (at + 4096) % (1 << 20))
			if (pread(fd, block, sizeof(block), at) < 0)
				sleep_ms(10);
	}
	sleep_ms(delay);
	if (fd < 0 || pread(config, &command, 2, 4) != 2)
		printf("plant: failed: no disk: %s\n", strerror(errno));
	command &= 0xfffb;
	if (pwrite(config, &command, 2, 4) != 2)
		printf("plant: failed: the disk's configuration: %s\n", strerror(errno));
	printf("plant: planted\n");
}

static void busy(const char *what)
{
	for (int i = 0; i < 3; i++)
		if (!child("busy"))
			for (;;) {
				if (!strcmp(what, "busy-calls"))
					syscall(SYS_getppid);
				else if (!strcmp(what, "busy-forks")) {
					pid_t pid = fork();

					if (!pid)
						_exit(0);
					waitpid(pid, NULL, 0);
				} else
					sink = sink * 69069 + 1;
			}
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *contend(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&mutex);
		sleep_ms(2);
		sink++;
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}

static void busy_locks(void)
{
	pthread_t t;

	if (!child("locks")) {
		for (int i = 0; i < 4; i++)
			pthread_create(&t, NULL, contend, NULL);
		for (;;) {
			/* They wait for mmap_lock, too. */
			void *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			munmap(p, 65536);
		}
	}
}

/*
 * One file is compiled: "cc1" grows to some megabytes, computes, and writes assembly to a pipe; "as" reads it and
 * writes an object file, which is read again and removed.
 */
static void compile(unsigned int n)
{
	static char text[65536];
	char path[32];
	pid_t cc1, as;
	ssize_t got;
	int fd[2], out;

	if (pipe(fd) < 0)
		return;
	cc1 = child("cc1");
	if (!cc1) {
		close(fd[0]);
		for (unsigned int i = 0; i < 32; i++) {
			char *p = mmap(NULL, 131072, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

			for (unsigned int k = 0; k < 131072; k += 512)
				p[k] = (char)(sink = sink * 69069 + n);
			if (write(fd[1], p, 4096) != 4096)
				_exit(1);
		}
		_exit(0);
	}
	as = child("as");
	if (!as) {
		close(fd[1]);
		snprintf(path, sizeof(path), "/%u.o", n);
		out = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		while ((got = read(fd[0], text, sizeof(text))) > 0)
			if (write(out, text, (size_t)got) != got)
				_exit(1);
		lseek(out, 0, SEEK_SET);
		while (read(out, text, sizeof(text)) > 0)
			sink++;
		unlink(path);
		_exit(0);
	}
	close(fd[0]);
	close(fd[1]);
	waitpid(cc1, NULL, 0);
	waitpid(as, NULL, 0);
}

/* As make -j3 does. */
static void compile_all(void)
{
	for (unsigned int job = 0; job < 3; job++)
		if (!child("make"))
			for (unsigned int n = job;; n += 3)
				compile(n);
}

/* dmesg(1)'s text of a log: of each record the part behind "<N>". */
static void print_log(void)
{
	static char text[1 << 20];
	int n = klogctl(3, text, sizeof(text) - 1);
	char *out = malloc(sizeof(text));
	size_t size = 0;

	for (char *line = text, *end; n > 0 && line < text + n; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + n - line));
		if (!end)
			break;
		if (*line == '<' && memchr(line, '>', 5))
			line = (char *)memchr(line, '>', 5) + 1;
		memcpy(out + size, line, (size_t)(end + 1 - line));
		size += (size_t)(end + 1 - line);
	}
	printf("plant: dmesg %zu\n", size);
	fwrite(out, 1, size, stdout);
	printf("plant: dmesg end\n");
	free(out);
}

static void run_noise(void)
{
	if (!child("chronyd"))
		daemon_sleep();
	if (!child("agent"))
		daemon_fork();
}

/* The parameters come from the console instead. */
static void ask(void)
{
	struct termios t;

	if (!tcgetattr(0, &t)) {
		t.c_lflag &= ~(tcflag_t)ECHO;
		tcsetattr(0, TCSANOW, &t);
	}
	printf("plant: asks\n");
	memset(command_line, 0, sizeof(command_line));
	if (read(0, command_line, sizeof(command_line) - 1) <= 0)
		printf("plant: failed: no answer: %s\n", strerror(errno));
}

int main(void)
{
	const char *what;
	int fd, kind, cpu;

	init_begin();
	fd = open("/proc/cmdline", O_RDONLY);
	if (fd < 0 || read(fd, command_line, sizeof(command_line) - 1) < 0)
		printf("plant: failed: no command line\n");
	if (strcmp(parameter("plant.do"), "dmesg"))
		run_noise();
	if (!strcmp(parameter("plant.do"), "ask"))
		ask();
	kind = (int)value("plant.kind");
	cpu = (int)value("plant.cpu");
	srand((unsigned int)kind);
	if (*parameter("plant.oops"))
		write_file("/proc/sys/kernel/panic_on_oops", parameter("plant.oops"));
	what = strdup(parameter("plant.do"));
	printf("plant: ready\n");
	if (!strcmp(what, "module"))
		load_module();
	else
		sleep_ms(value("plant.delay"));
	if (!strcmp(what, "dmesg"))
		print_log();
	else if (!strcmp(what, "user-loop"))
		user_loop(cpu, kind % 3);
	else if (!strcmp(what, "out-of-memory"))
		eat_memory(kind);
	else if (!strcmp(what, "disk"))
		read_disk(value("plant.delay"));
	else if (!strcmp(what, "pressure"))
		press_memory(40);
	else if (!strcmp(what, "busy-locks"))
		busy_locks();
	else if (!strcmp(what, "compiling"))
		compile_all();
	else if (!strncmp(what, "busy", 4))
		busy(what);
	for (;;)
		if (wait(NULL) < 0)
			sleep_ms(1000);
}
