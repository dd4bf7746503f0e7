/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vcpu: the thread that runs one virtual CPU, and every reason to leave KVM_RUN.
 *
 * The kick: the signal handler notes what is due and sets immediate_exit. A
 * signal during KVM_RUN makes it return EINTR; one that lands just before it is
 * not lost, because immediate_exit makes the next KVM_RUN return at once. A
 * sample is taken only on EINTR: after an I/O or MMIO exit the registers are
 * complete only once KVM_RUN was entered again, and that entry then returns
 * EINTR by itself.
 */
#include "base/clock.h"
#include "vmm/pvm/complete.h"
#include "vmm/machine.h"
#include "vmm/pvm/syscall_assist.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ~0.25 s at 997 Hz: no other vCPU can be starved by the host for that long and still wake us. */
#define DEAD_LOOKS 256

static _Thread_local struct vcpu *current_vcpu;

struct vcpu *vcpu_current(void)
{
	return current_vcpu;
}

static void on_kick(int signo, siginfo_t *info, void *context)
{
	struct vcpu *v = current_vcpu;
	int saved = errno;

	(void)signo;
	(void)context;
	if (!v)
		return;
	source_signalled(v, info);
	v->run->immediate_exit = 1;
	errno = saved;
}

void vcpu_install_handler(void)
{
	struct sigaction sa = { .sa_sigaction = on_kick, .sa_flags = SA_SIGINFO };

	sigemptyset(&sa.sa_mask);
	sigaction(VCPU_KICK_SIGNAL, &sa, NULL);
	sigaction(SIGIO, &sa, NULL); /* see source_signalled() */
}

void vcpu_kick(struct vcpu *v)
{
	int tid = atomic_load(&v->tid);

	/* The thread clears tid before it ends, and is joined after; it can't be another's. */
	if (tid)
		syscall(SYS_tgkill, getpid(), tid, VCPU_KICK_SIGNAL);
}

const char *vcpu_exit_name(unsigned int kind)
{
	static const char *const name[] = {
		[KVM_EXIT_UNKNOWN] = "UNKNOWN",
		[KVM_EXIT_IO] = "IO",
		[KVM_EXIT_HYPERCALL] = "HYPERCALL",
		[KVM_EXIT_DEBUG] = "DEBUG",
		[KVM_EXIT_HLT] = "HLT",
		[KVM_EXIT_MMIO] = "MMIO",
		[KVM_EXIT_IRQ_WINDOW_OPEN] = "IRQ_WINDOW_OPEN",
		[KVM_EXIT_SHUTDOWN] = "SHUTDOWN",
		[KVM_EXIT_FAIL_ENTRY] = "FAIL_ENTRY",
		[KVM_EXIT_INTR] = "INTR",
		[KVM_EXIT_INTERNAL_ERROR] = "INTERNAL_ERROR",
		[KVM_EXIT_SYSTEM_EVENT] = "SYSTEM_EVENT",
		[KVM_EXIT_X86_RDMSR] = "X86_RDMSR",
		[KVM_EXIT_X86_WRMSR] = "X86_WRMSR",
	};

	return kind < sizeof(name) / sizeof(name[0]) && name[kind] ? name[kind] : "other";
}

static void end_with(struct vcpu *v, enum vm_end_reason reason, struct err *e)
{
	struct sample_regs regs;

	capture_regs(v->run, &regs);
	machine_end(v->vm, reason, v, &regs, e);
}

static void exit_shutdown(struct vcpu *v)
{
	struct err e = { 0 };

	err_set(&e, EFAULT, "vCPU %u: triple fault at rip 0x%llx (rsp 0x%llx, cr2 0x%llx)",
		v->index, (unsigned long long)v->run->s.regs.regs.rip,
		(unsigned long long)v->run->s.regs.regs.rsp,
		(unsigned long long)v->run->s.regs.sregs.cr2);
	if (v->vm->cfg.nevents)
		capture_sample(v, &(struct capture_cause){ .now = clock_mono_ns(),
							   .reason = SAMPLE_CRASH });
	end_with(v, VM_END_TRIPLE_FAULT, &e);
}

static void exit_internal(struct vcpu *v)
{
	struct kvm_run *run = v->run;
	struct err e = { 0 };
	int ret;

	if (run->internal.suberror == KVM_INTERNAL_ERROR_EMULATION &&
	    v->vm->cfg.quirks->refuses_insns) {
		ret = complete_instruction(v, &e);
		if (ret == 0) {
			v->stats.insns_completed++;
			return;
		}
	} else {
		err_set(&e, EIO, "vCPU %u: KVM internal error %u at rip 0x%llx", v->index,
			run->internal.suberror, (unsigned long long)run->s.regs.regs.rip);
	}
	end_with(v, VM_END_ERROR, &e);
}

static void exit_msr(struct vcpu *v, bool write)
{
	struct kvm_run *run = v->run;

	/* Only what we filtered, or MSRs that KVM does not know, come here. */
	if (write && v->vm->cfg.quirks->syscall_keeps_cpl && syscall_assist_wrmsr(v))
		return;
	run->msr.error = 1; /* #GP, as KVM itself would do */
	if (!write)
		run->msr.data = 0;
}

static void handle_exit(struct vcpu *v)
{
	struct kvm_run *run = v->run;
	struct err e = { 0 };

	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		if (!bus_io(&v->vm->bus, run->io.port, run->io.direction == KVM_EXIT_IO_OUT,
			    run->io.size, run->io.count, (uint8_t *)run + run->io.data_offset))
			v->stats.unknown_io++;
		return;
	case KVM_EXIT_MMIO:
		if (!bus_mmio(&v->vm->bus, run->mmio.phys_addr, run->mmio.is_write, run->mmio.len,
			      run->mmio.data))
			v->stats.unknown_mmio++;
		return;
	case KVM_EXIT_X86_RDMSR:
		exit_msr(v, false);
		return;
	case KVM_EXIT_X86_WRMSR:
		exit_msr(v, true);
		return;
	case KVM_EXIT_DEBUG:
		if (breakpoint_debug(v, &e) == 0)
			return;
		break;
	case KVM_EXIT_INTERNAL_ERROR:
		exit_internal(v);
		return;
	case KVM_EXIT_SHUTDOWN:
		exit_shutdown(v);
		return;
	case KVM_EXIT_SYSTEM_EVENT:
		machine_end(v->vm,
			    run->system_event.type == KVM_SYSTEM_EVENT_SHUTDOWN ? VM_END_POWEROFF
										: VM_END_RESET,
			    v, NULL, NULL);
		return;
	case KVM_EXIT_INTR:
	case KVM_EXIT_IRQ_WINDOW_OPEN:
	case KVM_EXIT_HLT:
	case KVM_EXIT_SET_TPR:
		return;
	case KVM_EXIT_FAIL_ENTRY:
		err_set(&e, EIO,
			"vCPU %u: the host refused to enter the guest (hardware reason 0x%llx, "
			"rip 0x%llx)",
			v->index, (unsigned long long)run->fail_entry.hardware_entry_failure_reason,
			(unsigned long long)run->s.regs.regs.rip);
		break;
	default:
		err_set(&e, EIO, "vCPU %u: exit reason %u (%s) is not handled, rip 0x%llx",
			v->index, run->exit_reason, vcpu_exit_name(run->exit_reason),
			(unsigned long long)run->s.regs.regs.rip);
	}
	end_with(v, VM_END_ERROR, &e);
}

/* Every vCPU sits in HLT with interrupts off (or was never started): nothing can go on. */
static bool all_dead(const struct vm *vm)
{
	for (unsigned int i = 0; i < vm->nvcpus; i++)
		if (atomic_load_explicit(&vm->vcpu[i].dead_looks, memory_order_relaxed) <
		    DEAD_LOOKS)
			return false;
	return true;
}

/* KVM_RUN was interrupted: the registers are complete. */
static void interrupted(struct vcpu *v)
{
	v->run->immediate_exit = 0;
	if (atomic_load_explicit(&v->vm->control.changes, memory_order_acquire) !=
	    v->control_seen) {
		sources_follow(v);
		breakpoints_follow(v);
	}
	sources_take(v);
	if (v->vm->cfg.quirks->syscall_keeps_cpl)
		syscall_assist_refresh(v);
	if (atomic_load_explicit(&v->dead_looks, memory_order_relaxed) >= DEAD_LOOKS &&
	    all_dead(v->vm))
		machine_end(v->vm, VM_END_HALTED, v, NULL, NULL);
}

static void run_loop(struct vcpu *v)
{
	bool assist = v->vm->cfg.quirks->syscall_keeps_cpl;

	while (!atomic_load_explicit(&v->vm->stop, memory_order_relaxed)) {
		if (assist)
			syscall_assist_enter(v);
		pause_enter(v);
		if (ioctl(v->fd, KVM_RUN, 0) == 0) {
			unsigned int kind = v->run->exit_reason;
			uint64_t since;

			v->stats.exits[kind < VCPU_EXIT_KINDS ? kind : VCPU_EXIT_KINDS - 1]++;
			sources_exit(v);
			since = device_enter(v);
			handle_exit(v);
			device_leave(v, since);
		} else if (errno == EINTR) {
			v->stats.exits[KVM_EXIT_INTR]++;
			interrupted(v);
			pause_stand(v);
		} else if (errno != EAGAIN) { /* EAGAIN: an AP that was not started yet */
			struct err e = { 0 };

			err_set(&e, errno, "vCPU %u: KVM_RUN: %s, rip 0x%llx", v->index,
				strerror(errno), (unsigned long long)v->run->s.regs.regs.rip);
			end_with(v, VM_END_ERROR, &e);
		}
	}
}

static int pin(struct vcpu *v, struct err *e)
{
	int cpu = v->vm->cfg.pin[v->index];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned int)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return err_set(e, errno,
			       "vCPU %u cannot run on host CPU %d: %s (offline, or not allowed to "
			       "this process)",
			       v->index, cpu, strerror(errno));
	return 0;
}

void *vcpu_main(void *arg)
{
	struct vcpu *v = arg;
	struct err e = { 0 };
	sigset_t mask;

	current_vcpu = v;
	v->run->kvm_valid_regs = KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
	sigfillset(&mask);
	sigdelset(&mask, VCPU_KICK_SIGNAL);
	sigdelset(&mask, SIGIO);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	atomic_store(&v->tid, gettid());
	if (v->vm->cfg.pin && pin(v, &e) < 0)
		machine_end(v->vm, VM_END_ERROR, v, NULL, &e);
	if (sources_start(v, &e) < 0)
		machine_end(v->vm, VM_END_ERROR, v, NULL, &e);
	breakpoints_follow(v);
	if (v->index == 0)
		atomic_store(&v->vm->first_entry_ns, clock_mono_ns());
	run_loop(v);
	sources_exit_last(v);
	sources_stop(v);
	if (v->vm->cfg.vcpu_ends)
		v->vm->cfg.vcpu_ends(v->vm->cfg.vcpu_ends_ctx, v->index);
	atomic_store(&v->tid, 0);
	return NULL;
}
