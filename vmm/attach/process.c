/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/process.h"

#include "base/cleanup.h"
#include "base/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* task_struct.flags: the kernel's own threads in a process (include/linux/sched.h, 6.1). */
#define PF_IO_WORKER 0x00000010u
#define PF_USER_WORKER 0x00004000u /* PF_VHOST, too */
#define PF_KTHREAD 0x00200000u

#define VCPU_LINK "anon_inode:kvm-vcpu:"

/* -- permission ----------------------------------------------------------------------- */

static int yama_scope(void)
{
	cleanup_fclose FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (f && fscanf(f, "%d", &scope) != 1)
		scope = 0;
	return scope;
}

static int refuse(const struct process *p, struct err *e)
{
	char path[64];
	struct stat st;
	int scope = yama_scope();

	snprintf(path, sizeof(path), "/proc/%d", (int)p->pid);
	if (stat(path, &st) < 0)
		return err_set(e, ESRCH, "process %d: there is none", (int)p->pid);
	if (geteuid() != 0 && st.st_uid != geteuid())
		return err_set(e, EACCES,
			       "process %d (%s) belongs to user %u: attach as that user or as root",
			       (int)p->pid, p->name, (unsigned int)st.st_uid);
	if (scope > 0)
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
	char path[64];
	cleanup_fclose FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)p->pid);
	f = fopen(path, "re");
	if (!f || !fgets(p->name, sizeof(p->name), f))
		snprintf(p->name, sizeof(p->name), "?");
	p->name[strcspn(p->name, "\n")] = '\0';
	for (char *c = p->name; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
}

static int by_id(const void *a, const void *b)
{
	const struct process_vcpu *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int find_vcpus(struct process *p, struct err *e)
{
	char path[64], link[64];
	cleanup_closedir DIR *d = NULL;
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)p->pid);
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? err_set(e, ESRCH, "process %d: there is none", (int)p->pid)
				       : refuse(p, e);
	while ((entry = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), entry->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		if (strncmp(link, VCPU_LINK, strlen(VCPU_LINK)) || p->nvcpus == ATTACH_MAX_VCPUS)
			continue;
		p->vcpu[p->nvcpus++] = (struct process_vcpu){
			.id = (unsigned int)strtoul(link + strlen(VCPU_LINK), NULL, 10),
			.fd = atoi(entry->d_name),
		};
	}
	qsort(p->vcpu, p->nvcpus, sizeof(p->vcpu[0]), by_id);
	if (!p->nvcpus)
		return err_set(e, ENODEV, "process %d (%s) runs no virtual machine under KVM",
			       (int)p->pid, p->name);
	return 0;
}

/* Threads that the kernel keeps in the process: they can't be stopped, and must not be. */
static bool is_worker(const struct process *p, pid_t tid)
{
	char task[48], text[PROC_STAT_MAX];
	unsigned int flags = 0;
	const char *stat;

	snprintf(task, sizeof(task), "/proc/%d/task/%d", (int)p->pid, (int)tid);
	stat = proc_stat(task, text);
	if (!stat || sscanf(stat, "%*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		return true;
	return flags & (PF_IO_WORKER | PF_USER_WORKER | PF_KTHREAD);
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

		if (tid > 0 && p->nthreads < ATTACH_MAX_THREADS && !is_worker(p, tid))
			p->thread[p->nthreads++] = tid;
	}
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const struct process_mapping *x = a, *y = b;

	return x->len > y->len ? -1 : x->len < y->len;
}

static int find_mappings(struct process *p, struct err *e)
{
	char path[64], line[1024];
	cleanup_fclose FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)p->pid);
	f = fopen(path, "re");
	if (!f)
		return refuse(p, e);
	while (fgets(line, sizeof(line), f)) {
		uint64_t start, end;
		char prot[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, prot) != 3 ||
		    prot[0] != 'r' || prot[1] != 'w' || end - start < ATTACH_LEAST_MAPPING)
			continue;
		if (p->nmappings < ATTACH_MAX_MAPPINGS)
			p->mapping[p->nmappings++] =
				(struct process_mapping){ start, end - start, prot[3] == 's' };
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
