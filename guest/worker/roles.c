/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The roles of the worker's processes. Each one first prints the stack in which it will be found.
 */
#include "worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 200000ul

/* -- time in a library ---------------------------------------------------------------- */

static worker_function void role_lib(void)
{
	tell_truth("w-lib", "main;role_lib;lib_outer;lib_middle;lib_inner");
	while (time_is_left()) {
		lib_outer(ROUNDS);
		keep_frame();
	}
}

/* -- two threads with names of their own ------------------------------------------------ */

static worker_function unsigned long spin(unsigned long rounds)
{
	unsigned long x = rounds;

	keep_frame();
	while (rounds--)
		x = x * 2862933555777941757ul + 3037000493ul;
	return x;
}

static worker_function void *thread_alpha(void *arg)
{
	prctl(PR_SET_NAME, "w-alpha");
	tell_truth("w-alpha", "thread_alpha;spin");
	while (time_is_left()) {
		spin(ROUNDS);
		keep_frame();
	}
	return arg;
}

static worker_function void *thread_beta(void *arg)
{
	prctl(PR_SET_NAME, "w-beta");
	tell_truth("w-beta", "thread_beta;spin");
	while (time_is_left()) {
		spin(ROUNDS);
		keep_frame();
	}
	return arg;
}

static worker_function void role_threads(void)
{
	pthread_t a, b;

	if (pthread_create(&a, NULL, thread_alpha, NULL) ||
	    pthread_create(&b, NULL, thread_beta, NULL)) {
		printf("worker: failed: threads\n");
		return;
	}
	pthread_join(a, NULL);
	pthread_join(b, NULL);
}

/* -- the clock of the vdso --------------------------------------------------------------- */

static worker_function void role_vdso(void)
{
	struct timespec t;

	tell_truth("w-vdso", "main;role_vdso;clock_gettime;__vdso_clock_gettime");
	while (time_is_left())
		for (int i = 0; i < 20000; i++)
			clock_gettime(CLOCK_MONOTONIC, &t);
}

/* -- code that no file knows ------------------------------------------------------------- */

/* push %rbp; mov %rsp,%rbp; mov %rdi,%rax; 1: dec %rax; jnz 1b; pop %rbp; ret */
static const unsigned char jit_code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8,
					  0x48, 0xff, 0xc8, 0x75, 0xfb, 0x5d, 0xc3 };

static worker_function void role_jit(void)
{
	char path[64];
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*run)(unsigned long);
	FILE *map;

	if (code == MAP_FAILED) {
		printf("worker: failed: no executable memory\n");
		return;
	}
	memcpy(code + 64, jit_code, sizeof(jit_code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	if (map) {
		fprintf(map, "%lx %zx jit_loop at line 7\n", (unsigned long)code + 64,
			sizeof(jit_code));
		fclose(map);
	}
	/* For a test that keeps the map outside of the guest. */
	printf("worker: jit %d %lx %zx jit_loop at line 7\n", (int)getpid(),
	       (unsigned long)code + 64, sizeof(jit_code));
	tell_truth("w-jit", "main;role_jit;jit_loop at line 7");
	run = (void (*)(unsigned long))(unsigned long)(code + 64);
	while (time_is_left()) {
		run(ROUNDS);
		keep_frame();
	}
}

/* -- system calls from a stack that is known ---------------------------------------------- */

static worker_function long call_kernel(void)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(SYS_getppid) : "rcx", "r11", "memory");
	keep_frame();
	return ret;
}

static worker_function long sys_middle(void)
{
	long ret = 0;

	for (int i = 0; i < 50; i++) {
		ret += call_kernel();
		keep_frame();
	}
	return ret;
}

static worker_function void role_sys(void)
{
	tell_truth("w-sys", "main;role_sys;sys_middle;call_kernel");
	while (time_is_left()) {
		sys_middle();
		keep_frame();
	}
}

/* -- a kernel module ------------------------------------------------------------------------ */

static worker_function void role_module(void)
{
	char name[64];

	for (int i = 0; time_is_left(); i++) {
		DIR *dir = opendir("/config");

		if (!dir) {
			printf("worker: no configfs: no module is used\n");
			return;
		}
		while (readdir(dir))
			;
		closedir(dir);
		snprintf(name, sizeof(name), "/config/none-%d", i & 1023);
		(void)!access(name, F_OK);
		(void)!mkdir(name, 0755);
	}
}

/* -- processes that come and go --------------------------------------------------------------- */

static worker_function void role_short(void)
{
	while (time_is_left()) {
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_NAME, "w-child");
			lib_outer(20 * ROUNDS);
			_exit(0);
		}
		if (pid < 0)
			return;
		waitpid(pid, NULL, 0);
	}
}

const struct role roles[] = {
	{ "w-lib", role_lib, 0 },     { "w-threads", role_threads, 0 },
	{ "w-vdso", role_vdso, 0 },   { "w-jit", role_jit, 0 },
	{ "w-sys", role_sys, 0 },     { "w-module", role_module, 0 },
	{ "w-short", role_short, 0 }, { "w-sleep", role_sleep, 1 },
	{ "w-pipe", role_pipe, 1 },   { "w-futex", role_futex, 1 },
	{ "w-wait", role_wait, 1 },   { "w-half", role_half, 1 },
	{ "w-proc", role_proc, 1 },   { "w-turns", role_turns, 1 },
};
const unsigned int nroles = sizeof(roles) / sizeof(roles[0]);
