/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/standing.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/count.h"
#include "base/proc.h"
#include "vmm/attach/regs_page.h"

#include <inttypes.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#define LOOKS 8u
/*
 * A vCPU thread that is ready to run and gets less than 1 / STARVED_PART of the time is not
 * scheduled.
 */
#define STARVED_PART 10u

/* The state of a thread at one moment. */
struct moment {
	char state;	      /* as proc(5) has it; 0: the thread is gone, or cannot be read */
	uint64_t ran, waited; /* ns on a processor, and ns of waits for one that have ended */
	bool has_times;
	bool in_run;	/* it is in ioctl(KVM_RUN) */
	int nr;		/* number of its system call; -1: it is in none, or runs */
	char wchan[64]; /* where it sleeps in the kernel; "" if that is not known */
};

struct thread {
	pid_t tid;
	bool is_vcpu;
	bool same; /* its state, its system call and its place stayed the same in all looks, and it did not run */
	bool away;  /* it slept in a system call of the VMM's in all looks */
	bool ready; /* it was ready to run, or ran, in all looks */
	uint64_t throttled_us;
	struct moment first, last;
};

static void read_line(pid_t pid, pid_t tid, const char *name, char *text, size_t size)
{
	char path[96];
	cleanup_fclose FILE *f = NULL;

	text[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	f = proc_open(path);
	if (!f || !fgets(text, (int)size, f))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static struct moment moment_of(pid_t pid, pid_t tid)
{
	struct moment m = { .nr = -1 };
	struct proc_syscall call;
	char path[64], text[PROC_STAT_MAX], line[256];
	const char *stat;

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)tid);
	stat = proc_stat(path, text);
	if (!stat)
		return m;
	m.state = stat[0];
	read_line(pid, tid, "schedstat", line, sizeof(line));
	m.has_times = sscanf(line, "%" SCNu64 " %" SCNu64, &m.ran, &m.waited) == 2;
	if (proc_syscall(path, &call) && !call.runs) {
		m.nr = (int)call.number;
		m.in_run = m.nr == SYS_ioctl && (unsigned int)call.argument[1] == KVM_RUN;
	}
	read_line(pid, tid, "wchan", m.wchan, sizeof(m.wchan));
	if (!strcmp(m.wchan, "0"))
		m.wchan[0] = '\0';
	return m;
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Returns whether a thread runs a vCPU: by its time in guests, or by the name that VMMs give it. */
static bool is_vcpu_thread(const struct process *p, pid_t tid)
{
	char path[64], comm[16];

	if (process_vcpu_fd(p, tid) >= 0 || process_thread_guest_time(p, tid))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)p->pid, (int)tid);
	return proc_comm(path, comm, sizeof(comm)) &&
	       (starts(comm, "vcpu") || starts(comm, "fc_vcpu") ||
		(starts(comm, "CPU ") && strstr(comm, "/KVM")));
}

static void nap(double seconds)
{
	const uint64_t ns = (uint64_t)(seconds * 1e9);
	struct timespec t = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	while (nanosleep(&t, &t))
		;
}

static bool is_ready(const struct moment *m)
{
	return m->state == 'R';
}

static bool is_away(const struct moment *m)
{
	return (m->state == 'S' || m->state == 'D') && m->nr >= 0 && !m->in_run &&
	       !starts(m->wchan, "handle_userfault");
}

static void look_again(const struct process *p, struct thread *t)
{
	const struct moment m = moment_of(p->pid, t->tid);

	t->is_vcpu |= m.in_run;
	t->ready &= is_ready(&m);
	t->away &= is_away(&m);
	t->same &= m.state == t->last.state && m.nr == t->last.nr && m.in_run == t->last.in_run &&
		   m.ran == t->last.ran && !strcmp(m.wchan, t->last.wchan);
	t->last = m;
}

static void say(struct standing_check *c, enum standing_result result, const struct thread *t,
		const char *text)
{
	c->result = result;
	c->tid = t ? t->tid : 0;
	c->run_ns = t && t->last.ran >= t->first.ran ? t->last.ran - t->first.ran : 0;
	snprintf(c->text, sizeof(c->text), "%s", text);
}

#define CGROUPS "/sys/fs/cgroup"

/*
 * Stores the directory of a thread's control group, or "". controller: that of version 1; NULL: version 2. libvirt
 * puts the threads of vCPUs into groups of their own.
 */
static void cgroup_of(pid_t pid, pid_t tid, const char *controller, char *dir, size_t size)
{
	char path[96], line[1024];
	cleanup_fclose FILE *f = NULL;

	dir[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/task/%d/cgroup", (int)pid, (int)tid);
	f = proc_open(path);
	while (f && fgets(line, sizeof(line), f)) {
		char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;

		line[strcspn(line, "\n")] = '\0';
		if (!group)
			continue;
		*group++ = '\0';
		/* "cpu,cpuacct" is mounted as that, and "cpu" is a link to it. */
		if (!controller && !names[1])
			snprintf(dir, size, CGROUPS "%s", group);
		else if (controller && starts(names + 1, controller) &&
			 (!names[1 + strlen(controller)] || names[1 + strlen(controller)] == ','))
			snprintf(dir, size, CGROUPS "/%s%s", controller, group);
	}
}

/* Returns the number behind `key` in a file of the group, or 0. */
static uint64_t cgroup_number(const char *dir, const char *file, const char *key)
{
	char path[1200], line[128];
	uint64_t value = 0;
	cleanup_fclose FILE *f = NULL;

	if (!dir[0])
		return 0;
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = proc_open(path);
	while (f && fgets(line, sizeof(line), f))
		if (starts(line, key) && line[strlen(key)] == ' ')
			value = strtoull(line + strlen(key), NULL, 10);
	return value;
}

/* Returns the sum of a counter of the group in `dir` and of the groups that it is in. */
static uint64_t cgroup_sum(char *dir, const char *key)
{
	const size_t root = strlen(CGROUPS);
	uint64_t sum = 0;

	for (char *slash; strlen(dir) > root; *slash = '\0') {
		sum += cgroup_number(dir, "cpu.stat", key);
		slash = strrchr(dir, '/');
	}
	return sum;
}

/* Returns for how many microseconds the groups of a thread have been throttled (cpu.max, cpu.cfs_quota_us). */
static uint64_t throttled_us(pid_t pid, pid_t tid)
{
	char dir[1100];
	uint64_t sum;

	cgroup_of(pid, tid, NULL, dir, sizeof(dir));
	sum = cgroup_sum(dir, "throttled_usec");
	cgroup_of(pid, tid, "cpu", dir, sizeof(dir));
	return sum + cgroup_sum(dir, "throttled_time") / 1000;
}

static bool group_is_frozen(pid_t pid)
{
	char dir[1100], path[1200], line[32] = "";
	cleanup_fclose FILE *f = NULL;

	cgroup_of(pid, pid, NULL, dir, sizeof(dir));
	if (cgroup_number(dir, "cgroup.events", "frozen"))
		return true;
	cgroup_of(pid, pid, "freezer", dir, sizeof(dir));
	if (!dir[0])
		return false;
	snprintf(path, sizeof(path), "%s/freezer.state", dir);
	f = proc_open(path);
	return f && fgets(line, sizeof(line), f) && starts(line, "FROZEN");
}

static void check_paused(const struct process *p, const struct thread *t, unsigned int n,
			 struct standing_check *c)
{
	char task[32], tracer[32], text[256];
	unsigned int stopped = 0, traced = 0;

	for (unsigned int i = 0; i < n; i++) {
		stopped += t[i].same && t[i].first.state == 'T';
		traced += t[i].same && t[i].first.state == 't';
	}
	snprintf(task, sizeof(task), "/proc/%d", (int)p->pid);
	if (!n)
		say(c, STANDING_UNKNOWN, NULL, "no thread of the process can be read");
	else if (group_is_frozen(p->pid))
		say(c, STANDING_BAD, &t[0], "the process's control group is frozen");
	else if (stopped == n) {
		snprintf(text, sizeof(text),
			 "all %u threads of process %d are stopped by a signal (state T)", n,
			 (int)p->pid);
		say(c, STANDING_BAD, &t[0], text);
	} else if (traced && stopped + traced == n) {
		if (!proc_status(task, "TracerPid", tracer, sizeof(tracer)))
			snprintf(tracer, sizeof(tracer), "?");
		snprintf(text, sizeof(text),
			 "all %u threads of process %d are stopped by their tracer, process %s "
			 "(state t)",
			 n, (int)p->pid, tracer);
		say(c, STANDING_BAD, &t[0], text);
	} else {
		snprintf(text, sizeof(text), "%u of %u threads are stopped", stopped + traced, n);
		say(c, STANDING_OK, NULL, text);
	}
}

static void check_scheduled(const struct thread *t, unsigned int n, uint64_t ns,
			    struct standing_check *c)
{
	const struct thread *worst = NULL;
	bool known = false;
	char text[256], why[80] = "";

	for (unsigned int i = 0; i < n; i++) {
		if (!t[i].is_vcpu || !t[i].last.has_times)
			continue;
		known = true;
		if (t[i].ready && t[i].last.ran - t[i].first.ran < ns / STARVED_PART)
			worst = &t[i];
	}
	if (!known) {
		say(c, STANDING_UNKNOWN, NULL,
		    "no thread of a vCPU was found, or /proc has no schedstat");
		return;
	}
	if (!worst) {
		say(c, STANDING_OK, NULL,
		    "each vCPU's thread that is ready to run gets a processor");
		return;
	}
	if (worst->throttled_us)
		snprintf(why, sizeof(why),
			 ", and its control group was throttled for %" PRIu64 " ms",
			 worst->throttled_us / 1000);
	snprintf(text, sizeof(text),
		 "thread %d of a vCPU was ready to run for %" PRIu64
		 " ms and had a processor for %" PRIu64 " ms of them%s",
		 (int)worst->tid, ns / 1000000, (worst->last.ran - worst->first.ran) / 1000000,
		 why);
	say(c, STANDING_BAD, worst, text);
}

/*
 * Returns whether the thread waits in one of the kernel's functions that read a page after a fault.
 */
static bool waits_for_page(const struct moment *m)
{
	static const char *const reads[] = { "folio_wait_bit", "wait_on_page_bit", "__lock_page",
					     "__folio_lock",   "do_swap_page",	   "swap_read" };

	for (unsigned int i = 0; i < ARRAY_SIZE(reads); i++)
		if (m->state == 'D' && starts(m->wchan, reads[i]))
			return true;
	return false;
}

static void check_memory(const struct thread *t, unsigned int n, struct standing_check *c)
{
	const struct thread *worst = NULL;
	bool known = false;
	char text[256];

	for (unsigned int i = 0; i < n; i++) {
		known |= t[i].last.wchan[0] != '\0';
		if (!t[i].same || (worst && worst->is_vcpu))
			continue;
		if (starts(t[i].last.wchan, "handle_userfault") ||
		    (t[i].last.in_run && waits_for_page(&t[i].last)))
			worst = &t[i];
	}
	if (worst) {
		snprintf(text, sizeof(text), "thread %d%s waits for a page of memory (%s)%s",
			 (int)worst->tid, worst->is_vcpu ? " of a vCPU" : "", worst->last.wchan,
			 starts(worst->last.wchan, "handle_userfault")
				 ? " that the handler of its userfaultfd has not given"
				 : " that is being read from disk or swap");
		say(c, STANDING_BAD, worst, text);
	} else if (known)
		say(c, STANDING_OK, NULL, "no thread waits for a page of memory");
	else
		say(c, STANDING_UNKNOWN, NULL,
		    "this host does not tell where threads sleep (wchan)");
}

/* Returns the reason why the thread's vCPU left the guest last, by the number in the thread's name, or -1. */
static int exit_of(const struct process *p, pid_t tid)
{
	unsigned int number = 0;
	struct kvm_run *run;
	char path[64], comm[16];
	const char *digits;
	struct err ignored = { 0 };
	int reason;

	snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)p->pid, (int)tid);
	if (!proc_comm(path, comm, sizeof(comm)))
		return -1;
	digits = comm + strcspn(comm, "0123456789");
	if (p->nvcpus != 1 && (!*digits || process_has_several(p)))
		return -1;
	if (*digits)
		number = (unsigned int)strtoul(digits, NULL, 10);
	for (unsigned int i = 0; i < p->nvcpus; i++) {
		if (p->nvcpus != 1 && p->vcpu[i].id != number)
			continue;
		if (regs_page_map(&run, p->pid, p->vcpu[i].fd, &ignored))
			return -1;
		reason = (int)run->exit_reason;
		munmap(run, REGS_PAGE_SIZE);
		return reason;
	}
	return -1;
}

static const char *exit_name(int reason, char *room, size_t size)
{
	switch (reason) {
	case KVM_EXIT_IO:
		return "access to a port";
	case KVM_EXIT_MMIO:
		return "access to a device's memory";
	case KVM_EXIT_INTR:
		return "interruption by a signal, as at a pause of the VMM";
	default:
		snprintf(room, size, "exit from the guest, reason %d", reason);
		return room;
	}
}

static void check_thread(const struct process *p, const struct thread *t, unsigned int n,
			 struct standing_check *c)
{
	bool known = false;
	char text[256], room[48];

	say(c, STANDING_OK, NULL, "no vCPU's thread waits in the VMM");
	for (unsigned int i = 0; i < n; i++) {
		const struct moment *m = &t[i].last;
		int reason;

		if (!t[i].is_vcpu)
			continue;
		known = true;
		if (!t[i].away)
			continue;
		reason = exit_of(p, t[i].tid);
		/*
		 * After a signal a VMM enters the guest again unless it pauses. A pause may be a
		 * wait with a timeout.
		 */
		if (reason == KVM_EXIT_HLT || (!t[i].same && reason != KVM_EXIT_INTR))
			continue;
		snprintf(text, sizeof(text),
			 "thread %d of a vCPU waits in the VMM, in system call %d%s%s, and %s%s",
			 (int)t[i].tid, m->nr, m->wchan[0] ? " at " : "", m->wchan,
			 reason < 0 ? "whether its guest is halted is not known"
				    : "has not gone on since the guest's last ",
			 reason < 0 ? "" : exit_name(reason, room, sizeof(room)));
		say(c, reason < 0 ? STANDING_UNKNOWN : STANDING_BAD, &t[i], text);
		if (reason >= 0)
			return;
	}
	if (!known)
		say(c, STANDING_UNKNOWN, NULL, "no thread of a vCPU was found");
}

void standing_look_at(const struct process *p, double seconds, struct standing *out)
{
	const uint64_t begin = clock_mono_ns();
	struct thread *t = calloc(p->nthreads ? p->nthreads : 1, sizeof(*t));

	memset(out, 0, sizeof(*out));
	if (!t)
		return;
	for (unsigned int i = 0; i < p->nthreads; i++) {
		t[i].tid = p->thread[i];
		t[i].first = t[i].last = moment_of(p->pid, t[i].tid);
		t[i].is_vcpu = t[i].first.in_run || is_vcpu_thread(p, t[i].tid);
		t[i].same = true;
		t[i].away = is_away(&t[i].first);
		t[i].ready = is_ready(&t[i].first);
		t[i].throttled_us = t[i].is_vcpu ? throttled_us(p->pid, t[i].tid) : 0;
	}
	for (unsigned int look = 1; look < LOOKS; look++) {
		nap(seconds / (LOOKS - 1));
		for (unsigned int i = 0; i < p->nthreads; i++)
			look_again(p, &t[i]);
	}
	out->interval_ns = clock_mono_ns() - begin;
	out->threads = p->nthreads;
	for (unsigned int i = 0; i < p->nthreads; i++)
		out->vcpu_threads += t[i].is_vcpu;
	for (unsigned int i = 0; i < p->nthreads; i++)
		if (t[i].is_vcpu)
			t[i].throttled_us = throttled_us(p->pid, t[i].tid) - t[i].throttled_us;
	check_paused(p, t, p->nthreads, &out->check[STANDING_PAUSED]);
	check_scheduled(t, p->nthreads, out->interval_ns, &out->check[STANDING_NOT_SCHEDULED]);
	check_memory(t, p->nthreads, &out->check[STANDING_MEMORY]);
	check_thread(p, t, p->nthreads, &out->check[STANDING_THREAD]);
	free(t);
}

int standing_look(pid_t pid, double seconds, struct standing *out, struct err *e)
{
	struct process *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return err_nomem(e);
	ret = process_look(p, pid, e);
	if (!ret)
		standing_look_at(p, seconds, out);
	free(p);
	return ret;
}
