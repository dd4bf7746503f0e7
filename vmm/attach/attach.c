/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach.h"

#include "base/clock.h"
#include "base/thread.h"
#include "vmm/attach/attach_host.h"
#include "vmm/attach/attach_hold.h"
#include "vmm/attach/attach_more.h"
#include "vmm/attach/attach_suspend.h"
#include "vmm/attach/attach_sample.h"
#include "vmm/attach/foreign.h"
#include "vmm/attach/slots_kvm.h"
#include "vmm/kvm.h"
#include "vmm/vm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/* -- the tracer's thread --------------------------------------------------------------- */

/*
 * Loads the BPF programs. Called before a thread is seized, because loading takes time, in which
 * each signal of a seized thread would wait for the tracer.
 */
static int load_programs(struct attach *a, struct err *e)
{
	const struct vm_sampling sampling = { .plan = a->cfg.plan };
	struct err why = { 0 };

	if (a->cfg.technique == ATTACH_PTRACE)
		return 0;
	if (slots_open(&a->slots, &why))
		snprintf(a->facts.memory_why_not, sizeof(a->facts.memory_why_not), "%s", why.text);
	err_clear(&why);
	if (a->cfg.event.kind == VM_EVENT_HOST)
		return 0; /* sampled at signals of a counter */
	if (!pvm_peek_ops())
		err_set(&why, ENOTSUP, "this kvmprof was built without samples by BPF (PVM=0)");
	else
		pvm_peek_ops()->open(&a->peek, &sampling, &why);
	return why.code ? attach_disable_peek(a, &why, e) : 0;
}

static void close_peek(struct attach *a)
{
	memcpy(a->facts.tally, a->choice.all, sizeof(a->facts.tally));
	if (!a->peek)
		return;
	pvm_peek_ops()->facts(a->peek, &a->facts);
	pvm_peek_ops()->close(a->peek);
	a->peek = NULL;
}

static int tracer_prepare(struct attach *a, struct err *e)
{
	/* If the VMM is followed, follow_to_run() has loaded the programs. */
	int ret = a->cfg.follows ? 0 : load_programs(a, e);

	/* The guard watches from the first seized thread to the end of this thread. */
	attach_guard_watch(&a->guard);
	if (ret)
		return ret;
	ret = attach_hold(a, e);
	if (ret)
		return ret;
	ret = attach_host_open(a, e);
	return ret ? ret : attach_configure_peek(a, e);
}

/* Stores how long samples were taken. */
static void note_time(struct attach *a)
{
	const uint64_t first = atomic_load(&a->vm->first_entry_ns);

	a->facts.sampling_ns = first ? clock_mono_ns() - first : 0;
}

/* Waits for events of the followed threads, for at most FOLLOW_NAP_NS. */
static void follow_nap(struct attach *a)
{
	struct signalfd_siginfo info;

	attach_guard_beat(&a->guard);
	if (sampler_wait(&a->sampler, a->child_fd, clock_mono_ns() + FOLLOW_NAP_NS))
		while (read(a->child_fd, &info, sizeof(info)) == sizeof(info))
			;
}

/* Follows the process to a KVM_RUN, and waits until attach_open() has made the machine of it. */
static int follow_to_run(struct attach *a, struct err *e)
{
	int ret = load_programs(a, e);

	if (ret)
		return ret;
	attach_guard_watch(&a->guard);
	ret = follow_begin(&a->follow, a->cfg.pid, e);
	while (!ret && !(ret = follow_step(&a->follow, e))) {
		if (a->cfg.is_over && a->cfg.is_over(a->cfg.between_ctx))
			return err_set(e, EINTR, "interrupted before the VMM ran a guest");
		follow_nap(a);
	}
	if (ret < 0)
		return ret;
	sem_post(&a->ready);
	while (sem_trywait(&a->known) < 0) {
		(void)follow_step(&a->follow, e);
		follow_nap(a);
	}
	return 0;
}

static int tracer_begin(struct attach *a, struct err *e)
{
	const int ret = a->cfg.follows ? follow_to_run(a, e) : 0;

	/* follow_to_run() has waited until the caller stored the machine, or gave up. */
	if (ret || !a->vm)
		return ret ? ret : err_set(e, ECANCELED, "the machine could not be made");
	return tracer_prepare(a, e);
}

static void *tracer_main(void *arg)
{
	struct attach *a = arg;
	const int ret = tracer_begin(a, &a->err);

	sem_post(&a->ready);
	if (!ret) {
		attach_sample(a);
		note_time(a);
	}
	a->facts.reads = a->capture.calls;
	close_peek(a);
	attach_release(a);
	attach_more_close(a);
	follow_end(&a->follow);
	attach_host_close(a);
	host_bpf_close(&a->slots);
	attach_end_suspends(a);
	return NULL;
}

/* -- the machine ----------------------------------------------------------------------- */

static int open_descriptors(struct attach *a, struct err *e)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	/*
	 * A signal that is neither blocked nor handled is not queued, and the kernel does not send
	 * one that is ignored (which a process inherits) for stops (kernel/signal.c,
	 * do_notify_parent_cldstop).
	 */
	sigaction(SIGCHLD, &usual, &a->old_child);
	pthread_sigmask(SIG_BLOCK, &child, NULL);
	a->child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	return a->child_fd < 0 || sampler_open(&a->sampler)
		       ? err_set(e, errno, "cannot open a descriptor: %s", strerror(errno))
		       : 0;
}

static int start_tracer(struct attach *a, struct err *e)
{
	int ret;

	ret = thread_start(&a->thread, THREAD_TRACER, tracer_main, a);
	if (ret)
		return err_set(e, ret, "cannot start a thread: %s", strerror(ret));
	a->started = true;
	return 0;
}

static void op_wake(struct vm *vm)
{
	const struct attach *a = vm->attached;

	sampler_wake(&a->sampler);
}

static int op_start(struct vm *vm, struct err *e)
{
	struct attach *a = vm->attached;

	(void)e;
	sampler_start(&a->sampler);
	return 0;
}

static void op_suspend(struct vm *vm)
{
	attach_request_suspend(vm->attached);
}

static void op_resume(struct vm *vm)
{
	attach_request_resume(vm->attached);
}

static void op_join(struct vm *vm)
{
	struct attach *a = vm->attached;

	if (a->started)
		pthread_join(a->thread, NULL);
	a->started = false;
}

bool attach_join_for(struct vm *vm, unsigned int ms)
{
	struct attach *a = vm->attached;
	const uint64_t end = clock_mono_ns() + ms * UINT64_C(1000000);
	const struct timespec until = { (time_t)(end / NSEC_PER_SEC), (long)(end % NSEC_PER_SEC) };

	/* pthread_timedjoin_np() would use CLOCK_REALTIME, which may be set meanwhile. */
	if (a->started && pthread_clockjoin_np(a->thread, NULL, CLOCK_MONOTONIC, &until))
		return false;
	a->started = false;
	return true;
}

/* Frees *a. The tracer's thread must not run. */
static void attach_free(struct attach *a)
{
	attach_guard_stop(&a->guard);
	attach_reader_destroy(a->reader);
	resident_close(&a->resident);
	sampler_close(&a->sampler);
	if (a->child_fd >= 0) {
		close(a->child_fd);
		sigaction(SIGCHLD, &a->old_child, NULL);
	}
	sem_destroy(&a->ready);
	sem_destroy(&a->known);
	pthread_cond_destroy(&a->changed);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static void op_destroy(struct vm *vm)
{
	struct attach *a = vm->attached;

	/* Without vm_start() the loop waits; it now ends before its first sample. */
	if (a->started) {
		atomic_store(&vm->stop, true);
		sampler_start(&a->sampler);
		op_join(vm);
	}
	attach_free(a);
}

static const struct gmem *op_memory(const struct vm *vm)
{
	const struct attach *a = vm->attached;

	return &a->consumer_mem;
}

static void op_facts(const struct vm *vm, struct attach_facts *out)
{
	const struct attach *a = vm->attached;

	*out = a->facts;
	out->pid = a->cfg.pid;
	memcpy(out->name, a->process.name, sizeof(out->name));
	out->memory = gmem_size(&a->consumer_mem);
	out->regions = a->consumer_mem.n;
	out->proofs = 0u + a->proof.text + a->proof.stack + a->proof.idt + a->proof.handlers +
		      a->proof.gdt;
	out->partial = a->proof.partial;
	out->exec_ns = a->follow.exec_ns;
	out->vm_ns = a->follow.vm_ns;
	out->run_ns = a->follow.run_ns;
	out->brought = a->reader ? atomic_load(&a->reader->brought) : 0;
	out->from_file = a->reader ? atomic_load(&a->reader->from_file) : 0;
	out->absent_names = a->reader ? atomic_load(&a->reader->absent) : 0;
}

static pid_t op_vcpu_tid(const struct vm *vm, unsigned int vcpu)
{
	const struct attach *a = vm->attached;

	return vcpu < a->ntracees ? a->tracee[vcpu].tid : 0;
}

static const struct machine_ops attach_ops = {
	.start = op_start,
	.wake = op_wake,
	.suspend = op_suspend,
	.resume = op_resume,
	.join = op_join,
	.destroy = op_destroy,
	.memory = op_memory,
	.vcpu_tid = op_vcpu_tid,
	.facts = op_facts,
};

/*
 * Returns whether this host's KVM reports when a nested guest runs. Without the right to open
 * /dev/kvm it returns false, as for a KVM that does not report this.
 */
static bool host_tells_nested(void)
{
	struct kvm_host host;
	struct err ignored = { 0 };
	bool tells;

	if (kvm_host_open(&host, &ignored) < 0)
		return false;
	tells = host.nested_flag;
	kvm_host_close(&host);
	return tells;
}

/*
 * Returns how many bytes are present. Capture reads only these, because a vCPU is stopped
 * meanwhile.
 */
static size_t capture_present(void *resident, uint64_t host, size_t len)
{
	return resident_bytes(resident, host, len);
}

/* Waits until the tracer's thread has finished its preparations. Returns its error. */
static int wait_for_tracer(struct attach *a, struct err *e)
{
	while (sem_wait(&a->ready) < 0)
		;
	return a->err.code ? err_set(e, a->err.code, "%s", a->err.text) : 0;
}

static int begin_guarded(struct attach *a, struct err *e)
{
	int ret = open_descriptors(a, e);

	return ret ? ret : attach_guard_start(&a->guard, e);
}

/* Makes a struct vm of the process a->cfg.pid. */
static int make_machine(struct attach *a, struct err *e)
{
	int ret = process_look(&a->process, a->cfg.pid, e);
	struct vm *vm = ret ? NULL
			    : foreign_machine_new(&attach_ops, a, &a->cfg,
						  (struct foreign_vcpus){ a->process.nvcpus,
									  ATTACH_MAX_VCPUS },
						  e);

	if (!vm)
		return -e->code;
	vm->nested_flag = host_tells_nested();
	resident_open(&a->resident, a->cfg.pid);
	gmem_remote_init(&a->capture, a->cfg.pid);
	gmem_remote_only_present(&a->capture, capture_present, &a->resident);
	a->reader = attach_reader_create(&a->consumer, a->cfg.pid, e);
	a->vm = vm;
	return a->reader ? 0 : -e->code;
}

/* Attaches to a process that runs a machine. */
static int attach_begin(struct attach *a, struct err *e)
{
	int ret = make_machine(a, e);

	ret = ret ? ret : begin_guarded(a, e);
	ret = ret ? ret : start_tracer(a, e);
	return ret ? ret : wait_for_tracer(a, e);
}

/* Attaches to a process that will run a machine, at its first KVM_RUN. */
static int attach_follow(struct attach *a, struct err *e)
{
	struct err why = { 0 };
	int ret = begin_guarded(a, e);

	ret = ret ? ret : start_tracer(a, e);
	ret = ret ? ret : wait_for_tracer(a, e);
	if (ret)
		return ret;
	a->cfg.pid = a->follow.pid;
	ret = make_machine(a, &why);
	sem_post(&a->known);
	if (!ret)
		return wait_for_tracer(a, e);
	(void)wait_for_tracer(a, e);
	err_clear(e);
	return err_set(e, why.code, "%s", why.text);
}

int attach_open(struct vm **out, const struct attach_config *cfg, struct err *e)
{
	struct attach *a = calloc(1, sizeof(*a));
	int ret;

	if (!a)
		return err_nomem(e);
	a->cfg = *cfg;
	a->sampler.wake_fd = a->child_fd = a->guard.pipe_fd = -1;
	a->resident.pagemap = a->resident.smaps = a->resident.mountinfo = -1;
	sem_init(&a->ready, 0, 0);
	sem_init(&a->known, 0, 0);
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	ret = cfg->follows ? attach_follow(a, e) : attach_begin(a, e);
	if (!ret) {
		*out = a->vm;
		return 0;
	}
	if (a->started)
		pthread_join(a->thread, NULL);
	a->started = false;
	if (a->vm)
		vm_destroy(a->vm);
	else
		attach_free(a);
	return ret;
}
