/* SPDX-License-Identifier: GPL-2.0-or-later */
/* peek: loads the BPF program, and runs it on the vCPU's processor. */
#include "vmm/pvm/peek.h"

#include "base/clock.h"
#include "base/proc.h"
#include "vmm/pvm/peek_answer.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Number of comparisons of registers at the beginning; after these, one sample in COMPARE_EVERY is
 * compared.
 */
#define COMPARE_FIRST 16u
#define COMPARE_EVERY 64u

/*
 * When this thread finds itself on the processor that the vCPU is waiting for, it moves to another
 * one every 4th time (see step_aside()).
 */
#define ASIDE_EVERY 4u

/* Number of the field `processor` in a thread's line `stat` (proc(5)). */
#define STAT_PROCESSOR 39u

/* Exists for each module that is loaded or built in (sysfs.rst). */
#define KVM_PVM "/sys/module/kvm_pvm"

/* Made by the build from bpf/peek.bpf.c. */
extern const uint8_t peek_object[], peek_object_end[];

static int not_supported(struct err *e)
{
	return err_set(e, ENOTSUP,
		       "this host's KVM does not keep all registers of a vCPU in memory, as "
		       "kvm_pvm does");
}

int peek_open(struct peek *p, struct err *e)
{
	int ret;

	memset(p, 0, sizeof(*p));
	/*
	 * Without this module the kernel has none of the types that the program needs, and refuses
	 * it.
	 */
	if (access(KVM_PVM, F_OK) < 0)
		return not_supported(e);
	if (sched_getaffinity(0, sizeof(p->allowed), &p->allowed) < 0)
		CPU_ZERO(&p->allowed);
	ret = host_bpf_open(&p->bpf, peek_object, (size_t)(peek_object_end - peek_object), "peek",
			    sizeof(*p->block), e);
	if (!ret) {
		p->block = p->bpf.block;
		p->block->q.what = PEEK_LOOK;
		ret = host_bpf_run(&p->bpf, -1);
		if (ret)
			err_set(e, -ret, "the BPF program does not run: %s", strerror(-ret));
		else if (!p->block->a.supported)
			not_supported(e);
	}
	if (e->code)
		peek_close(p);
	return -e->code;
}

void peek_close(struct peek *p)
{
	host_bpf_close(&p->bpf);
	p->block = NULL;
}

bool peek_is_usable(const struct peek *p)
{
	return p->block && !p->differs.code;
}

void peek_set_memory(struct peek *p, const struct gmem *mem)
{
	struct peek_question *q = &p->block->q;

	q->nregions = mem->n;
	for (unsigned int i = 0; i < mem->n; i++)
		q->region[i] = (struct peek_region){ mem->region[i].gpa, mem->region[i].size,
						     (uint64_t)(uintptr_t)mem->region[i].host };
}

/*
 * Returns the thread's id in its innermost name space: the last one of NSpid. Returns 0 if the
 * thread is gone.
 */
static unsigned int number_of(const char *task)
{
	char value[256];
	const char *last;

	if (!proc_status(task, "NSpid", value, sizeof(value)))
		return 0;
	last = strrchr(value, '\t');
	return (unsigned int)strtoul(last ? last + 1 : value, NULL, 10);
}

int peek_aim(struct peek_vcpu *v, pid_t pid, pid_t tid, unsigned int fd, unsigned int id,
	     struct err *e)
{
	char task[48], path[64];
	struct stat st;
	int ret = 0;

	*v = (struct peek_vcpu){ .pid = pid, .tid = tid, .fd = fd, .id = id };
	snprintf(task, sizeof(task), "/proc/%d/task/%d", (int)pid, (int)tid);
	snprintf(path, sizeof(path), "%s/ns/pid", task);
	v->ns_tid = number_of(task);
	if (!v->ns_tid)
		ret = -ESRCH;
	else if (stat(path, &st) < 0)
		ret = -errno;
	if (ret)
		return err_set(e, -ret, "thread %d: cannot find its number: %s", (int)tid,
			       strerror(-ret));
	v->pidns_dev = st.st_dev;
	v->pidns_ino = st.st_ino;
	return 0;
}

/*
 * Returns the processor that the thread was on last; -1 if it is gone. This is slow, and used until
 * the kernel's own record is known.
 */
static int processor_of(const struct peek_vcpu *v)
{
	char task[48], text[PROC_STAT_MAX];
	const char *at;

	snprintf(task, sizeof(task), "/proc/%d/task/%d", (int)v->pid, (int)v->tid);
	at = proc_stat(task, text);
	at = at ? proc_stat_field(at, STAT_PROCESSOR) : NULL;
	return at ? atoi(at) : -1;
}

/*
 * Finds out whether the guest runs, without disturbing it. Stores in *cpu where it runs, or ran
 * last.
 */
static enum peek_status peek_look(struct peek *p, const struct peek_vcpu *v, int *cpu)
{
	const struct peek_answer *a = &p->block->a;

	*cpu = -1;
	if (!v->kernel) {
		*cpu = processor_of(v);
		return *cpu < 0 ? PEEK_OUTSIDE : *cpu == sched_getcpu() ? PEEK_WAITING : PEEK_TAKEN;
	}
	p->block->q.what = PEEK_LOOK;
	p->block->q.vcpu = v->kernel;
	p->block->q.task = v->kernel_task;
	if (host_bpf_run(&p->bpf, -1))
		return PEEK_NONE;
	*cpu = (int)a->cpu;
	return a->running ? PEEK_TAKEN : a->waiting ? PEEK_WAITING : PEEK_OUTSIDE;
}

/*
 * Moves this thread to another processor now and then, if it is on the vCPU's processor: the vCPU
 * waits for it to leave, and would never be seen running. The thread will probably wake up on the
 * other processor from then on.
 */
static void step_aside(struct peek *p, int cpu)
{
	cpu_set_t mask = p->allowed;

	if (cpu < 0 || cpu >= CPU_SETSIZE || cpu != sched_getcpu() || ++p->in_the_way % ASIDE_EVERY)
		return;
	CPU_CLR(cpu, &mask);
	if (CPU_COUNT(&mask) && !sched_setaffinity(0, sizeof(mask), &mask))
		sched_setaffinity(0, sizeof(p->allowed), &p->allowed);
}

static void peek_ask(struct peek_question *q, const struct peek_vcpu *v,
		     const struct peek_want *want)
{
	q->what = PEEK_SAMPLE;
	q->tid = v->ns_tid;
	q->pidns_dev = v->pidns_dev;
	q->pidns_ino = v->pidns_ino;
	q->fd = v->fd;
	q->vcpu_id = v->id;
	q->stack_len = want->stack_len;
	q->current = want->current;
	q->nmembers = want->nmembers;
	memcpy(q->member, want->member, sizeof(q->member));
}

static enum peek_status peek_try(struct peek *p, struct peek_vcpu *v, const struct peek_want *want)
{
	struct peek_answer *a = &p->block->a;
	uint64_t since;
	int cpu;
	enum peek_status s = peek_look(p, v, &cpu);

	if (s == PEEK_WAITING)
		step_aside(p, cpu);
	if (s != PEEK_TAKEN)
		return s;
	peek_ask(&p->block->q, v, want);
	a->status = PEEK_NONE;
	a->vcpu = 0;
	since = clock_mono_ns();
	if (host_bpf_run(&p->bpf, cpu))
		return PEEK_NONE;
	p->taken_ns = clock_mono_ns() - since;
	if (a->vcpu && a->vcpu != v->kernel) {
		v->kernel = a->vcpu;
		v->kernel_task = a->task;
		v->compared = 0;
	}
	return a->status < PEEK_STATUSES ? (enum peek_status)a->status : PEEK_NONE;
}

enum peek_status peek_take(struct peek *p, struct peek_vcpu *v, const struct peek_want *want)
{
	enum peek_status s;

	s = peek_try(p, v, want);
	/* The thread has moved in between. */
	if (s == PEEK_ELSEWHERE && v->kernel)
		s = peek_try(p, v, want);
	p->count[s]++;
	return s == PEEK_TAKEN && !v->compared ? PEEK_NONE : s;
}

void peek_compare(struct peek *p, struct peek_vcpu *v, const struct kvm_run *run_page)
{
	const char *differs;

	if (!v->kernel)
		return;
	if (v->held++ % COMPARE_EVERY && v->compared >= COMPARE_FIRST)
		return;
	p->block->q.what = PEEK_STATE;
	p->block->q.vcpu = v->kernel;
	if (host_bpf_run(&p->bpf, -1))
		return;
	if (p->block->a.regs.known)
		differs = peek_regs_differ(&p->block->a.regs, run_page);
	else
		differs = "all";
	if (differs)
		err_set(&p->differs, EBADMSG,
			"vCPU %u: the registers in the kernel's memory differ from KVM's: %s",
			v->id, differs);
	v->compared++;
	p->compared++;
}
