/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether the host keeps a machine from running, by processes that stand on purpose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/skip.h"

#include "vmm/attach/standing.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS 0.2

/* A process of one thread with this name, which calls work(). */
static pid_t start(const char *name, void (*work)(void))
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		if (write(ready[1], "", 1) == 1)
			work();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	usleep(50000);
	return pid;
}

static struct standing look(pid_t pid)
{
	static struct process p;
	struct standing s;

	memset(&p, 0, sizeof(p));
	p.pid = p.thread[0] = pid;
	p.nthreads = 1;
	standing_look_at(&p, SECONDS, &s);
	assert_int_equal(s.threads, 1);
	assert_true(s.interval_ns >= (uint64_t)(SECONDS * 1e9));
	return s;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void sleeps(void)
{
	for (;;)
		pause();
}

static void spins(void)
{
	for (volatile unsigned int i = 0;; i++)
		;
}

static void naps(void)
{
	for (;;)
		usleep(1000);
}

/* Beside a process of an ordinary priority, on one processor. */
static void starves(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 });
	spins();
}

static void spins_on_the_same(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	spins();
}

static void faults(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, 0);
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	area.range.start = (uintptr_t)p;
	area.range.len = 4096;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &area))
		_exit(77);
	*(volatile char *)p = 1;
}

static void a_stopped_process_is_paused(void **state)
{
	pid_t pid = start("vcpu0", spins);
	struct standing s;

	(void)state;
	s = look(pid);
	assert_int_equal(s.check[STANDING_PAUSED].result, STANDING_OK);
	kill(pid, SIGSTOP);
	usleep(50000);
	s = look(pid);
	assert_int_equal(s.check[STANDING_PAUSED].result, STANDING_BAD);
	assert_int_equal(s.check[STANDING_PAUSED].tid, pid);
	assert_non_null(strstr(s.check[STANDING_PAUSED].text, "by a signal"));
	assert_int_not_equal(s.check[STANDING_NOT_SCHEDULED].result, STANDING_BAD);
	assert_int_not_equal(s.check[STANDING_THREAD].result, STANDING_BAD);
	kill(pid, SIGCONT);
	usleep(50000);
	assert_int_equal(look(pid).check[STANDING_PAUSED].result, STANDING_OK);
	end(pid);
}

static void a_vcpu_thread_that_waits_is_told(void **state)
{
	pid_t pid = start("fc_vcpu 0", sleeps);
	struct standing s = look(pid);

	(void)state;
	assert_int_equal(s.vcpu_threads, 1);
	/* It has no vCPU whose last exit could tell. */
	assert_int_equal(s.check[STANDING_THREAD].result, STANDING_UNKNOWN);
	assert_int_equal(s.check[STANDING_THREAD].tid, pid);
	assert_non_null(strstr(s.check[STANDING_THREAD].text, "waits in the VMM"));
	assert_int_equal(s.check[STANDING_NOT_SCHEDULED].result, STANDING_OK);
	end(pid);
	pid = start("CPU 1/KVM", naps);
	assert_int_equal(look(pid).check[STANDING_THREAD].result, STANDING_OK);
	end(pid);
	pid = start("io", sleeps);
	s = look(pid);
	assert_int_equal(s.vcpu_threads, 0);
	assert_int_equal(s.check[STANDING_THREAD].result, STANDING_UNKNOWN);
	end(pid);
}

static void a_starved_thread_is_not_scheduled(void **state)
{
	pid_t hog[2], pid;
	struct standing s;

	(void)state;
	for (int i = 0; i < 2; i++)
		hog[i] = start("hog", spins_on_the_same);
	pid = start("vcpu0", starves);
	s = look(pid);
	if (s.check[STANDING_NOT_SCHEDULED].result == STANDING_UNKNOWN)
		SKIP("this kernel has no schedstat");
	assert_int_equal(s.check[STANDING_NOT_SCHEDULED].result, STANDING_BAD);
	assert_int_equal(s.check[STANDING_NOT_SCHEDULED].tid, pid);
	assert_true(s.check[STANDING_NOT_SCHEDULED].run_ns < s.interval_ns / 10);
	end(pid);
	for (int i = 0; i < 2; i++)
		end(hog[i]);
}

/* Writes a text to a file of a group. Returns whether that is possible. */
static bool put(const char *group, const char *file, const char *text)
{
	char path[200];
	int fd;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", group, file);
	fd = open(path, O_WRONLY);
	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Its group may run for 2 ms in 100 ms. */
static void a_throttled_thread_is_not_scheduled(void **state)
{
	char group[100], text[32];
	struct standing s;
	bool v2, limited;
	pid_t pid;

	(void)state;
	snprintf(group, sizeof(group), "/sys/fs/cgroup/kvmprof-test-%d", (int)getpid());
	v2 = !access("/sys/fs/cgroup/cgroup.controllers", F_OK);
	if (!v2)
		snprintf(group, sizeof(group), "/sys/fs/cgroup/cpu/kvmprof-test-%d", (int)getpid());
	if (mkdir(group, 0755))
		SKIP("no control group can be made here");
	pid = start("vcpu0", spins);
	snprintf(text, sizeof(text), "%d", (int)pid);
	limited = (v2 ? put(group, "cpu.max", "2000 100000")
		      : put(group, "cpu.cfs_period_us", "100000") &&
				   put(group, "cpu.cfs_quota_us", "2000")) &&
		  put(group, "cgroup.procs", text);
	usleep(300000);
	s = look(pid);
	end(pid);
	rmdir(group);
	if (!limited)
		SKIP("no control group can be limited here");
	assert_int_equal(s.check[STANDING_NOT_SCHEDULED].result, STANDING_BAD);
	assert_non_null(strstr(s.check[STANDING_NOT_SCHEDULED].text,
			       ", and its control group was throttled for "));
	assert_int_equal(s.check[STANDING_PAUSED].result, STANDING_OK);
}

static void a_page_that_does_not_come_is_told(void **state)
{
	pid_t pid = start("vcpu0", faults);
	struct standing s;

	(void)state;
	if (waitpid(pid, NULL, WNOHANG) == pid)
		SKIP("userfaultfd is not allowed here");
	s = look(pid);
	if (s.check[STANDING_MEMORY].result == STANDING_UNKNOWN)
		SKIP("this host has no wchan");
	assert_int_equal(s.check[STANDING_MEMORY].result, STANDING_BAD);
	assert_non_null(strstr(s.check[STANDING_MEMORY].text, "userfaultfd"));
	assert_int_not_equal(s.check[STANDING_THREAD].result, STANDING_BAD);
	end(pid);
}

static void a_process_without_vcpus_is_refused(void **state)
{
	struct standing s;
	struct err e = { 0 };

	(void)state;
	assert_true(standing_look(getpid(), 0, &s, &e) < 0);
	assert_int_not_equal(e.code, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stopped_process_is_paused),
		cmocka_unit_test(a_vcpu_thread_that_waits_is_told),
		cmocka_unit_test(a_starved_thread_is_not_scheduled),
		cmocka_unit_test(a_throttled_thread_is_not_scheduled),
		cmocka_unit_test(a_page_that_does_not_come_is_told),
		cmocka_unit_test(a_process_without_vcpus_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
