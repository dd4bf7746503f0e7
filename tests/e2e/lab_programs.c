/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lab: programs that behave like those of a kernel profiling lab, for tests/e2e/coming_from.py.
 *
 *	lab io          reads the same block of /dev/vda again and again
 *	lab ports       has the kernel access an I/O port all the time: each is an exit to the VMM
 *	lab processes   does a little work in each of many processes
 *	lab threads     does the same in each of as many threads of one process
 *	lab copy SIZE   copies some memory by system calls, SIZE bytes at a time
 *	lab sync        writes to /dev/vda in several threads, and waits for each write
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 4096
#define READS 100
#define ACCESSES 5000
#define WORKERS 40
#define COPIED (4u << 20)
#define WRITERS 4
#define WRITES 25

static char buffer[1 << 16] __attribute__((aligned(BLOCK)));

static void *work(void *arg)
{
	volatile unsigned int n = 0;

	while (n < 1000)
		n++;
	return arg;
}

static int read_blocks(void)
{
	int fd = open("/dev/vda", O_RDONLY | O_DIRECT);

	for (int i = 0; i < READS; i++)
		if (fd < 0 || pread(fd, buffer, BLOCK, 16 * BLOCK) != BLOCK)
			return 1;
	return 0;
}

static int access_ports(void)
{
	int fd = open("/dev/port", O_WRONLY);

	for (int i = 0; i < ACCESSES; i++)
		if (fd < 0 || pwrite(fd, buffer, 1, 0x80) != 1)
			return 1;
	return 0;
}

static int run_processes(void)
{
	for (int i = 0; i < WORKERS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			work(NULL);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			return 1;
	}
	return 0;
}

static int run_threads(void)
{
	pthread_t thread;

	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL))
			return 1;
	return 0;
}

static int copy(size_t size)
{
	int from = open("/dev/zero", O_RDONLY), to = open("/dev/null", O_WRONLY);

	if (!size || size > sizeof(buffer))
		return 2;
	for (size_t done = 0; done < COPIED; done += size)
		if (read(from, buffer, size) != (ssize_t)size ||
		    write(to, buffer, size) != (ssize_t)size)
			return 1;
	return 0;
}

static void *write_blocks(void *arg)
{
	int fd = open("/dev/vda", O_WRONLY | O_DIRECT | O_SYNC);
	off_t at = (off_t)(size_t)arg * WRITES * BLOCK;

	for (int i = 0; i < WRITES; i++)
		if (fd < 0 || pwrite(fd, buffer, BLOCK, at + (off_t)i * BLOCK) != BLOCK)
			return (void *)1;
	return NULL;
}

static int write_all(void)
{
	pthread_t thread[WRITERS];
	void *failed;
	int ret = 0;

	for (size_t i = 0; i < WRITERS; i++)
		if (pthread_create(&thread[i], NULL, write_blocks, (void *)i))
			return 1;
	for (size_t i = 0; i < WRITERS; i++)
		ret |= pthread_join(thread[i], &failed) || failed;
	return ret;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int ret = !strcmp(what, "io")		      ? read_blocks()
		  : !strcmp(what, "ports")	      ? access_ports()
		  : !strcmp(what, "processes")	      ? run_processes()
		  : !strcmp(what, "threads")	      ? run_threads()
		  : !strcmp(what, "copy") && argc > 2 ? copy(strtoul(argv[2], NULL, 10))
		  : !strcmp(what, "sync")	      ? write_all()
						      : 2;

	printf("lab: %s %s\n", what, ret ? "failed" : "done");
	return ret;
}
