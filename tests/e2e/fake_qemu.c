/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QEMU that the guest has taken over, or that is broken: what a plugin writes to the shared page, and what QEMU
 * writes to its pipes, by words of the guest's command line: fake=MODE bad=VALUE pid=PID file=PATH.
 * tests/e2e/exact_hostile.py says what each mode is.
 *
 * Built with -static, so that it runs wherever kvmprof lets QEMU run.
 */
#define _GNU_SOURCE
#include "vmm/exact/shared.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile struct exact_shared *page;
static int memory_fd, request_fd, answer_fd, console_fd, monitor_fd, counts_fd, ram_fd;
static const char *mode, *bad, *victim, *file;

static int number_behind(int argc, char **argv, const char *what)
{
	for (int i = 1; i < argc; i++) {
		const char *at = strstr(argv[i], what);

		if (at)
			return atoi(at + strlen(what));
	}
	return -1;
}

/* Returns the value of the word NAME=VALUE in the kernel's command line; "" if the word is not there. */
static const char *word(int argc, char **argv, const char *name)
{
	static char text[4096];
	const char *at;
	char *copy;

	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], "-append"))
			snprintf(text, sizeof(text), "%s", argv[i + 1]);
	at = strstr(text, name);
	if (!at)
		return "";
	copy = strdup(at + strlen(name));
	copy[strcspn(copy, " ")] = '\0';
	return copy;
}

static int is_mode(const char *what)
{
	return !strcmp(mode, what);
}

/* Makes a stop, and waits for the answer. */
static void stand(void)
{
	uint64_t token = 1;

	if (write(request_fd, &token, sizeof(token)) != sizeof(token) ||
	    read(answer_fd, &token, sizeof(token)) != sizeof(token))
		exit(1);
}

static void flood(int fd)
{
	static char bytes[65536];

	memset(bytes, 'A', sizeof(bytes));
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	pause();
}

static void *flip(void *ctx)
{
	uint32_t value = (uint32_t)strtoul(bad, NULL, 10);

	(void)ctx;
	for (;;) {
		page->reached = value;
		page->reached = 1;
	}
	return NULL;
}

/* All that the program reads of the page changes while it reads. */
static void *churn(void *ctx)
{
	volatile uint8_t *bytes = (volatile uint8_t *)page;

	(void)ctx;
	for (uint32_t i = 1;; i = i * 1103515245 + 12345)
		bytes[offsetof(struct exact_shared, count) + (i >> 8) % 400] = (uint8_t)(i >> 16);
	return NULL;
}

static uint64_t any(void)
{
	return (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^ (uint64_t)random();
}

static void set_kernel_regs(void)
{
	page->regs.rip = 0xffffffff81000000;
	page->regs.gpr[4] = 0xffffffff82000000;
	page->regs.cs = 0x10;
	page->regs.cr0 = 0x80050033;
	page->regs.cr3 = 0x1000;
	page->regs.cr4 = 0x20;
	page->regs.efer = 0xd01;
}

/* Makes one stop report a value that no QEMU can have. */
static void set_bad(const char *what)
{
	if (!strcmp(what, "reached"))
		page->reached = 200;
	else if (!strcmp(what, "reached-most"))
		page->reached = UINT32_MAX;
	else if (!strcmp(what, "at"))
		page->at = page->next + 1;
	else if (!strcmp(what, "at-most"))
		page->at = UINT64_MAX;
	else if (!strcmp(what, "ahead"))
		page->ahead = UINT64_MAX;
	else if (!strcmp(what, "off"))
		page->off = 0x40000002;
	else if (!strcmp(what, "count"))
		page->count = UINT64_MAX;
}

static void run_guest(void)
{
	for (int n = 0;; n++) {
		page->at = page->next;
		page->count = page->at ? page->at - 1 : 0;
		page->ahead = 0;
		set_kernel_regs();
		if (is_mode("regs"))
			for (size_t i = 0; i < EXACT_REGISTERS; i++)
				((volatile uint64_t *)&page->regs)[i] = any();
		if (is_mode("bad") && n == 50)
			set_bad(bad);
		if (is_mode("dies") && n == 50)
			__builtin_trap(); /* a first process cannot kill itself by a signal */
		if (is_mode("closes") && n == 50) {
			close(request_fd);
			pause();
		}
		/* Tokens that nobody has asked for. */
		if (is_mode("tokens"))
			for (int i = 0; i < 10; i++) {
				uint64_t token = 1;

				(void)!write(request_fd, &token, sizeof(token));
			}
		stand();
	}
}

/* -- what it can reach: one line for each -------------------------------------------------------- */

static void tell(const char *what, int failed)
{
	dprintf(console_fd, "%s: %s\n", what, failed ? strerror(errno) : "POSSIBLE");
}

static void tell_open(const char *path, int flags)
{
	char what[300];
	int fd = open(path, flags | O_CLOEXEC, 0600);

	snprintf(what, sizeof(what), "open %s", path);
	tell(what, fd < 0);
	if (fd >= 0)
		close(fd);
}

static void try_all(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(9) };
	char path[64];
	struct stat st;
	int fd;

	for (fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			dprintf(console_fd, "has %d\n", fd);
	tell("uid is 0", getuid() != 0);
	if (*file) {
		tell_open(file, O_RDONLY);
		tell_open(file, O_WRONLY);
		tell("chmod", chmod(file, 0666));
		tell("truncate", truncate(file, 0));
		tell("utimensat", utimensat(AT_FDCWD, file, NULL, 0));
		tell("stat", stat(file, &st));
	}
	tell_open("/etc/shadow", O_RDONLY);
	tell_open("/etc/passwd", O_RDONLY);
	tell_open("made", O_WRONLY | O_CREAT);
	tell_open("/tmp/made", O_WRONLY | O_CREAT);
	tell_open("/dev/kvm", O_RDWR);
	tell_open("/proc/sysrq-trigger", O_WRONLY);
	if (*victim) {
		tell("kill", kill(atoi(victim), 0));
		tell("kill all", kill(-1, 0));
		fd = open("/proc/self/fd/0", O_RDONLY);
		tell("F_SETOWN", fcntl(fd, F_SETOWN, atoi(victim)));
		snprintf(path, sizeof(path), "/proc/%s/environ", victim);
		tell_open(path, O_RDONLY);
	}
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0)
		/* Refused is reached. */
		tell("connect",
		     connect(fd, (struct sockaddr *)&in, sizeof(in)) && errno != ECONNREFUSED);
	dprintf(console_fd, "told all\n");
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 1 && !strcmp(argv[1], "--version")) {
		if (getenv("FAKE_NO_VERSION"))
			pause();
		puts("QEMU emulator version 10.0.3 (fake)");
		return 0;
	}
	/* kvmprof asks for the versions of the plugin interface before it takes this QEMU. */
	if (argc > 1 && strstr(argv[argc - 1], ",versions=on")) {
		puts(EXACT_ANSWER " 3 4 x86_64");
		return 0;
	}
	mode = word(argc, argv, "fake=");
	bad = word(argc, argv, "bad=");
	victim = word(argc, argv, "pid=");
	file = word(argc, argv, "file=");
	memory_fd = number_behind(argc, argv, ",memory=");
	request_fd = number_behind(argc, argv, ",request=");
	answer_fd = number_behind(argc, argv, ",answer=");
	counts_fd = number_behind(argc, argv, ",counts=");
	console_fd = number_behind(argc, argv, "id=console,path=/proc/self/fd/");
	monitor_fd = number_behind(argc, argv, "id=monitor,fd=");
	ram_fd = number_behind(argc, argv, "mem-path=/proc/self/fd/");
	page = mmap(NULL, EXACT_SHARED_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
	if (page == MAP_FAILED)
		return 1;
	if (is_mode("not-ready"))
		pause();
	if (is_mode("not-ready-flood"))
		flood(STDERR_FILENO);
	page->version = EXACT_VERSION;
	page->magic = EXACT_MAGIC;
	srandom(1);
	stand();
	if (is_mode("console") || is_mode("monitor") || is_mode("stderr"))
		flood(is_mode("console")   ? console_fd
		      : is_mode("monitor") ? monitor_fd
					   : STDERR_FILENO);
	if (is_mode("silent"))
		for (;;)
			pause();
	if (is_mode("truncate")) {
		/* Two of them it could be killed by. */
		int cut = !ftruncate(memory_fd, 0) | !ftruncate(ram_fd, 0) |
			  !ftruncate(memory_fd, 1 << 20) | !ftruncate(ram_fd, (off_t)1 << 40);

		dprintf(console_fd, cut ? "CUT\n" : "not cut\n");
	}
	if (is_mode("tries"))
		try_all();
	if (is_mode("counts")) /* asked to end, it writes and writes */
		for (;;) {
			static char bytes[4096];

			page->at = page->next;
			page->count = page->at ? page->at - 1 : 0;
			stand();
			if (page->frozen)
				for (;;)
					(void)!write(counts_fd, bytes, (size_t)atoi(bad));
		}
	if (is_mode("race"))
		pthread_create(&thread, NULL, flip, NULL);
	if (is_mode("churn"))
		pthread_create(&thread, NULL, churn, NULL);
	run_guest();
	return 0;
}
