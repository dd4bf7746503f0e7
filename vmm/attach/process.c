/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/process.h"

#include "base/cleanup.h"
#include "base/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/kcmp.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* task_struct.flags: it runs a guest, and the kernel's own threads in a process
 * (include/linux/sched.h, 6.1). */
#define PF_VCPU 0x00000001u
#define PF_IO_WORKER 0x00000010u
#define PF_USER_WORKER 0x00004000u /* PF_VHOST, too */
#define PF_KTHREAD 0x00200000u

/* kernel.yama.ptrace_scope (Documentation/admin-guide/LSM/Yama.rst): no tracing at all. */
#define YAMA_NOBODY 3

#define VCPU_LINK "anon_inode:kvm-vcpu:"

/* -- permission ----------------------------------------------------------------------- */

static int yama_scope(void)
{
	cleanup_fclose FILE *f = proc_open("/proc/sys/kernel/yama/ptrace_scope");
	int scope = 0;

	if (f && fscanf(f, "%d", &scope) != 1)
		scope = 0;
	return scope;
}

bool process_may_trace(void)
{
	char value[32];

	if (!proc_status("/proc/thread-self", "CapEff", value, sizeof(value)))
		return true;
	return strtoull(value, NULL, 16) >> CAP_SYS_PTRACE & 1;
}

/*
 * Records why a thread with CAP_SYS_PTRACE may not trace: not the user and not Yama, unless Yama
 * refuses everybody.
 */
static int refuse_capable(const struct process *p, int scope, struct err *e)
{
	if (scope >= YAMA_NOBODY)
		return err_set(e, EACCES,
			       "process %d (%s): Yama allows no tracing, to nobody until this host "
			       "is booted anew (kernel.yama.ptrace_scope is %d)",
			       (int)p->pid, p->name, scope);
	return err_set(e, EACCES,
		       "process %d (%s): not allowed to look into it, though CAP_SYS_PTRACE is "
		       "there: it may be in another user namespace (run kvmprof outside of the "
		       "container), or a security module forbids it",
		       (int)p->pid, p->name);
}

static int process_refuse(const struct process *p, struct err *e)
{
	char path[64];
	struct stat st;
	int scope = yama_scope();

	snprintf(path, sizeof(path), "/proc/%d", (int)p->pid);
	if (stat(path, &st) < 0)
		return err_set(e, ESRCH, "process %d: there is none", (int)p->pid);
	if (process_may_trace())
		return refuse_capable(p, scope, e);
	if (geteuid() != 0 && st.st_uid != geteuid())
		return err_set(e, EACCES,
			       "process %d (%s) belongs to user %u: attach as that user or as root",
			       (int)p->pid, p->name, (unsigned int)st.st_uid);
	if (geteuid() != 0 && scope > 0)
		return err_set(e, EACCES,
			       "process %d (%s): Yama allows no tracing "
			       "(kernel.yama.ptrace_scope is %d): run as root, or set it to 0",
			       (int)p->pid, p->name, scope);
	return err_set(e, EACCES,
		       "process %d (%s): not allowed to look into it: CAP_SYS_PTRACE is needed "
		       "(in a container: --cap-add SYS_PTRACE)",
		       (int)p->pid, p->name);
}

/* -- what it has ---------------------------------------------------------------------- */

static void read_name(struct process *p)
{
	char task[32];

	snprintf(task, sizeof(task), "/proc/%d", (int)p->pid);
	if (!proc_comm(task, p->name, sizeof(p->name)))
		snprintf(p->name, sizeof(p->name), "?");
	for (char *c = p->name; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
}

static int by_id(const void *a, const void *b)
{
	const struct process_vcpu *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/*
 * Returns whether both descriptors refer to one open file; false if the kernel lacks kcmp()
 * (CONFIG_KCMP).
 */
static bool is_same_file(const struct process *p, int a, int b)
{
	return syscall(SYS_kcmp, p->pid, p->pid, KCMP_FILE, (unsigned long)a, (unsigned long)b) ==
	       0;
}

/*
 * Returns the first descriptor of the same open file. VMMs keep copies of a vCPU's descriptor
 * (dup(2)), and its thread may use any of them.
 */
static int first_of_file(const struct process *p, unsigned int id, int fd)
{
	for (unsigned int i = 0; i < p->nfds; i++)
		if (p->fd[i].id == id && p->fd[i].fd == p->fd[i].first &&
		    is_same_file(p, p->fd[i].fd, fd))
			return p->fd[i].fd;
	return fd;
}

void process_add_vcpu(struct process *p, unsigned int id, int fd)
{
	const int first = first_of_file(p, id, fd);

	if (p->nfds < ATTACH_MAX_FDS)
		p->fd[p->nfds++] = (struct process_fd){ .id = id, .fd = fd, .first = first };
	if (first != fd)
		return;
	if (p->nvcpus < ATTACH_MAX_VCPUS)
		p->vcpu[p->nvcpus] = (struct process_vcpu){ .id = id, .fd = fd };
	p->nvcpus++;
}

int process_check_vcpus(struct process *p, struct err *e)
{
	const unsigned int n = p->nvcpus;

	p->all_vcpus = n;
	if (n > ATTACH_MAX_VCPUS) {
		p->nvcpus = 0;
		return err_set(e, E2BIG,
			       "process %d (%s) has %u vCPUs: kvmprof attaches to machines with at "
			       "most %u",
			       (int)p->pid, p->name, n, ATTACH_MAX_VCPUS);
	}
	if (!n)
		return err_set(
			e, ENODEV,
			"process %d (%s) runs no virtual machine under KVM; a QEMU without KVM: "
			"start it with -s, then `kvmprof attach --gdb localhost:1234`",
			(int)p->pid, p->name);
	qsort(p->vcpu, n, sizeof(p->vcpu[0]), by_id);
	return 0;
}

bool process_has_several(const struct process *p)
{
	for (unsigned int i = 1; i < p->nvcpus; i++)
		if (p->vcpu[i].id == p->vcpu[i - 1].id)
			return true;
	return false;
}

bool process_drop_own_helper(struct process *p)
{
	unsigned int n = 0;
	char task[32];

	snprintf(task, sizeof(task), "/proc/%d", (int)p->pid);
	if (!proc_runs_program(task, "kvmprof"))
		return false;
	qsort(p->vcpu, p->nvcpus, sizeof(p->vcpu[0]), by_id);
	for (unsigned int i = 0; i < p->nvcpus; i++) {
		if (!n || p->vcpu[n - 1].id != p->vcpu[i].id)
			p->vcpu[n++] = p->vcpu[i];
		else if (p->vcpu[i].fd > p->vcpu[n - 1].fd)
			p->vcpu[n - 1] = p->vcpu[i];
	}
	p->nvcpus = n;
	return n > 0;
}

void process_keep_machine(struct process *p, unsigned int machine)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < p->nvcpus; i++)
		if (p->vcpu[i].machine == machine)
			p->vcpu[n++] = p->vcpu[i];
	p->nvcpus = n;
	qsort(p->vcpu, n, sizeof(p->vcpu[0]), by_id);
}

struct process_vcpu *process_vcpu_of(struct process *p, int fd)
{
	for (unsigned int i = 0; i < p->nfds; i++)
		if (p->fd[i].fd == fd)
			fd = p->fd[i].first;
	for (unsigned int i = 0; i < p->nvcpus; i++)
		if (p->vcpu[i].fd == fd)
			return &p->vcpu[i];
	return NULL;
}

static int find_vcpus(struct process *p, struct err *e)
{
	char path[64], link[64];
	cleanup_closedir DIR *d = NULL;
	struct dirent *entry;
	bool refused = false;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)p->pid);
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? err_set(e, ESRCH, "process %d: there is none", (int)p->pid)
				       : process_refuse(p, e);
	while ((entry = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), entry->d_name, link, sizeof(link) - 1);

		/*
		 * Without CAP_SYS_PTRACE root may list the descriptors but not read what they are.
		 */
		refused |= n < 0 && (errno == EACCES || errno == EPERM);
		if (n <= 0)
			continue;
		link[n] = '\0';
		if (!strncmp(link, VCPU_LINK, strlen(VCPU_LINK)))
			process_add_vcpu(p,
					 (unsigned int)strtoul(link + strlen(VCPU_LINK), NULL, 10),
					 atoi(entry->d_name));
	}
	return refused && !p->nvcpus ? process_refuse(p, e) : process_check_vcpus(p, e);
}

/* Numbers of the fields of a thread's `stat` (proc(5)) that are used here. */
enum { STAT_FLAGS = 9, STAT_START = 22, STAT_GUEST_TIME = 43 };

struct thread_stat {
	char state;
	unsigned long flags;
	uint64_t start, guest_time;
};

static bool read_stat(const struct process *p, pid_t tid, struct thread_stat *out)
{
	char task[48], text[PROC_STAT_MAX];
	const char *stat;

	snprintf(task, sizeof(task), "/proc/%d/task/%d", (int)p->pid, (int)tid);
	stat = proc_stat(task, text);
	if (!stat)
		return false;
	*out = (struct thread_stat){
		.state = *stat,
		.flags = proc_stat_number(stat, STAT_FLAGS),
		.start = proc_stat_number(stat, STAT_START),
		.guest_time = proc_stat_number(stat, STAT_GUEST_TIME),
	};
	return true;
}

bool process_is_worker(pid_t pid, pid_t tid)
{
	const struct process p = { .pid = pid };
	struct thread_stat st;

	if (!read_stat(&p, tid, &st))
		return true;
	return st.flags & (PF_IO_WORKER | PF_USER_WORKER | PF_KTHREAD);
}

uint64_t process_thread_start(const struct process *p, pid_t tid)
{
	struct thread_stat st;

	return read_stat(p, tid, &st) ? st.start : 0;
}

uint64_t process_thread_guest_time(const struct process *p, pid_t tid)
{
	struct thread_stat st;

	return read_stat(p, tid, &st) ? st.guest_time : 0;
}

bool process_is_kvm_run(const struct proc_syscall *c)
{
	return !c->runs && c->number == SYS_ioctl && (unsigned int)c->argument[1] == KVM_RUN;
}

/* Stores the thread's system call in *out. Returns false if it is in none, or that is not known. */
static bool call_of(const struct process *p, pid_t tid, struct proc_syscall *out)
{
	char task[48];

	snprintf(task, sizeof(task), "/proc/%d/task/%d", (int)p->pid, (int)tid);
	return proc_syscall(task, out) && !out->runs && out->number >= 0;
}

enum process_activity process_activity(const struct process *p, pid_t tid)
{
	struct proc_syscall call;
	struct thread_stat st;

	if (!read_stat(p, tid, &st) || st.state == 'Z' || st.state == 'X')
		return PROCESS_WAITS;
	if (call_of(p, tid, &call))
		return process_is_kvm_run(&call) ? PROCESS_GUEST : PROCESS_WAITS;
	return st.guest_time || st.flags & PF_VCPU ? PROCESS_GUEST : PROCESS_RUNS;
}

int process_vcpu_fd(const struct process *p, pid_t tid)
{
	struct proc_syscall call;

	return call_of(p, tid, &call) && process_is_kvm_run(&call) ? (int)call.argument[0] : -1;
}

static int find_threads(struct process *p, struct err *e)
{
	char path[64];
	cleanup_closedir DIR *d = NULL;
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)p->pid);
	d = opendir(path);
	if (!d)
		return err_set(e, ESRCH, "process %d: there is none", (int)p->pid);
	while ((entry = readdir(d))) {
		pid_t tid = atoi(entry->d_name);

		if (tid > 0 && p->nthreads < ATTACH_MAX_THREADS && !process_is_worker(p->pid, tid))
			p->thread[p->nthreads++] = tid;
	}
	return 0;
}

/* Returns whether a mapping's path names a device's file, except for those that are memory. */
static bool is_device(const char *path)
{
	static const char *const memory[] = { "/dev/shm/", "/dev/hugepages", "/dev/zero" };

	for (size_t i = 0; i < ARRAY_SIZE(memory); i++)
		if (!strncmp(path, memory[i], strlen(memory[i])))
			return false;
	return !strncmp(path, "/dev/", 5) || !strncmp(path, "/sys/", 5) ||
	       !strncmp(path, "/proc/", 6) || !strncmp(path, "anon_inode:", 11);
}

static void note_device(struct process *p, struct process_mapping x)
{
	if (p->ndevices < ATTACH_MAX_DEVICES)
		p->device[p->ndevices] = x;
	p->ndevices++;
}

static int by_size(const void *a, const void *b)
{
	const struct process_mapping *x = a, *y = b;

	return x->len > y->len ? -1 : x->len < y->len;
}

static int find_mappings(struct process *p, struct err *e)
{
	char path[64], line[PATH_MAX + 128];
	cleanup_fclose FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)p->pid);
	f = proc_open(path);
	if (!f)
		return process_refuse(p, e);
	while (fgets(line, sizeof(line), f)) {
		struct process_mapping x;
		uint64_t start, end;
		char prot[5];
		int file = 0;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %*s %n", &start, &end, prot,
			   &file) != 3)
			continue;
		x = (struct process_mapping){ start, end - start, prot[3] == 's' };
		if (file && is_device(line + file))
			note_device(p, x);
		if (prot[0] == 'r' && prot[1] == 'w' && x.len >= ATTACH_LEAST_MAPPING &&
		    p->nmappings < ATTACH_MAX_MAPPINGS)
			p->mapping[p->nmappings++] = x;
	}
	qsort(p->mapping, p->nmappings, sizeof(p->mapping[0]), by_size);
	return 0;
}

int process_look(struct process *p, pid_t pid, struct err *e)
{
	int ret;

	memset(p, 0, sizeof(*p));
	p->pid = pid;
	read_name(p);
	ret = find_vcpus(p, e);
	ret = ret ? ret : find_threads(p, e);
	return ret ? ret : find_mappings(p, e);
}

int process_borrow(pid_t pid, int fd, struct err *e)
{
	cleanup_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int copy;

	if (pidfd < 0)
		return err_set(e, errno, "process %d: pidfd_open: %s", (int)pid, strerror(errno));
	copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (copy < 0)
		return err_set(e, errno,
			       errno == EPERM
				       ? "process %d: not allowed to take its descriptor %d: "
					 "CAP_SYS_PTRACE is needed"
			       : errno == ENOSYS
				       ? "process %d, descriptor %d: this kernel lacks pidfd_getfd "
					 "(Linux 5.6)"
				       : "process %d: cannot take its descriptor %d",
			       (int)pid, fd);
	return copy;
}
