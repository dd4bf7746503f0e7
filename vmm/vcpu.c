/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vcpu: the thread that runs one virtual CPU, and the handling of all exits from KVM_RUN.
 *
 * How a thread leaves KVM_RUN: the signal handler notes what is due and sets immediate_exit. A
 * signal during KVM_RUN makes it return EINTR. A signal just before KVM_RUN is not lost, because
 * immediate_exit makes the next KVM_RUN return at once. A sample is taken only on EINTR: after an
 * I/O or MMIO exit the registers are complete only once KVM_RUN was entered again, and that entry
 * then returns EINTR by itself.
 */
#include "vmm/vcpu.h"

#include "base/clock.h"
#include "base/count.h"
#include "vmm/machine.h"
#include "vmm/pvm.h"
#include "vmm/breakpoint.h"
#include "vmm/capture/capture.h"
#include "vmm/capture/source.h"
#include "vmm/capture/source_exit.h"
#include "vmm/control.h"
#include "vmm/device.h"
#include "vmm/vcpu_thread.h"
#include "vmm/config.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The number of consecutive checks with all vCPUs halted with interrupts off: ~0.25 s at 997 Hz. */
#define DEAD_LOOKS 256

/* kvm_run.emulation_failure: flags, and two words with the instruction's bytes. */
#define INTERNAL_BYTES_NDATA 3

static void on_kick(int signo, siginfo_t *info, void *context)
{
	struct vcpu *v = vcpu_current();
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
	struct sigaction sa = { .sa_sigaction = on_kick, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	sigemptyset(&sa.sa_mask);
	sigaction(VCPU_KICK_SIGNAL, &sa, NULL);
	sigaction(SIGIO, &sa, NULL); /* see source_signalled() */
}

static void vcpu_end(struct vcpu *v, enum vm_end_reason reason, struct err *e)
{
	struct sample_regs regs;

	capture_regs(&v->run->s.regs.regs, &v->run->s.regs.sregs, &regs);
	machine_end(v->vm, reason, v, &regs, e);
}

/*
 * Handles a triple fault. On SVM the processor may have left anything in the VMCB, so kvm_amd
 * resets the vCPU before it reports the fault (shutdown_interception(), arch/x86/kvm/svm/svm.c).
 * Then neither the registers nor the stack are those of the fault, and no sample can be made.
 */
static void exit_shutdown(struct vcpu *v)
{
	struct err e = { 0 };

	if (capture_is_reset(&v->run->s.regs.regs, &v->run->s.regs.sregs)) {
		err_set(&e, EFAULT, "vCPU %u: triple fault", v->index);
		machine_end(v->vm, VM_END_TRIPLE_FAULT, v, NULL, &e);
		return;
	}
	err_set(&e, EFAULT, "vCPU %u: triple fault at rip 0x%llx (rsp 0x%llx, cr2 0x%llx)",
		v->index, (unsigned long long)v->run->s.regs.regs.rip,
		(unsigned long long)v->run->s.regs.regs.rsp,
		(unsigned long long)v->run->s.regs.sregs.cr2);
	if (v->vm->cfg.nevents)
		capture_sample(v, &(struct capture_cause){ .now = clock_mono_ns(),
							   .reason = SAMPLE_CRASH });
	vcpu_end(v, VM_END_TRIPLE_FAULT, &e);
}

/*
 * Formats the bytes of the instruction that KVM could not emulate, ", bytes 48 0f ae 23", as far as
 * KVM reported them.
 */
static const char *internal_bytes(const struct kvm_run *run, char *out, size_t size)
{
	const char *sep = ", bytes";
	size_t len = 0;

	*out = '\0';
	if (run->internal.suberror != KVM_INTERNAL_ERROR_EMULATION ||
	    run->emulation_failure.ndata < INTERNAL_BYTES_NDATA ||
	    !(run->emulation_failure.flags & KVM_INTERNAL_ERROR_EMULATION_FLAG_INSTRUCTION_BYTES))
		return out;
	for (unsigned int i = 0;
	     i < run->emulation_failure.insn_size && i < sizeof(run->emulation_failure.insn_bytes);
	     i++) {
		len += (size_t)snprintf(out + len, size - len, "%s %02x", sep,
					run->emulation_failure.insn_bytes[i]);
		sep = "";
	}
	return out;
}

static void exit_internal(struct vcpu *v)
{
	struct kvm_run *run = v->run;
	struct err e = { 0 };
	char bytes[64];
	int ret = -ENOSYS;

	if (run->internal.suberror == KVM_INTERNAL_ERROR_EMULATION)
		ret = pvm_complete(v, &e);
	if (!ret)
		return;
	if (ret == -ENOSYS)
		err_set(&e, EIO, "vCPU %u: KVM internal error %u%s at rip 0x%llx%s", v->index,
			run->internal.suberror,
			run->internal.suberror == KVM_INTERNAL_ERROR_EMULATION
				? " (an instruction that KVM cannot emulate)"
				: "",
			(unsigned long long)run->s.regs.regs.rip,
			internal_bytes(run, bytes, sizeof(bytes)));
	vcpu_end(v, VM_END_ERROR, &e);
}

static void exit_msr(struct vcpu *v, bool write)
{
	struct kvm_run *run = v->run;

	/* Only MSRs that pvm/ filters, or that KVM does not know, cause such an exit. */
	if (write && pvm_wrmsr(v))
		return;
	run->msr.error = 1; /* inject #GP, as KVM itself would */
	if (!write)
		run->msr.data = 0;
}

static void vcpu_handle_exit(struct vcpu *v)
{
	struct kvm_run *run = v->run;
	struct err e = { 0 };

	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		if (!bus_io(&v->vm->bus, run->io.port,
			    run->io.direction == KVM_EXIT_IO_OUT ? BUS_WRITE : BUS_READ,
			    run->io.size, run->io.count, (uint8_t *)run + run->io.data_offset))
			count_add(&v->stats.unknown_io, 1);
		return;
	case KVM_EXIT_MMIO:
		if (!bus_mmio(&v->vm->bus, run->mmio.phys_addr,
			      run->mmio.is_write ? BUS_WRITE : BUS_READ, run->mmio.len,
			      run->mmio.data))
			count_add(&v->stats.unknown_mmio, 1);
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
		if (run->system_event.type == KVM_SYSTEM_EVENT_SHUTDOWN)
			machine_end(v->vm, VM_END_POWEROFF, v, NULL, NULL);
		else
			vm_reset_request(v->vm, v);
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
			v->index, run->exit_reason, vm_exit_name(run->exit_reason),
			(unsigned long long)run->s.regs.regs.rip);
	}
	vcpu_end(v, VM_END_ERROR, &e);
}

/*
 * Returns whether every vCPU is in HLT with interrupts off (or was never started): then nothing can
 * continue.
 */
static bool all_dead(const struct vm *vm)
{
	for (unsigned int i = 0; i < vm->nvcpus; i++)
		if (atomic_load_explicit(&vm->vcpu[i].dead_looks, memory_order_relaxed) <
		    DEAD_LOOKS)
			return false;
	return true;
}

/*
 * Takes due samples and applies changed settings after an interrupted KVM_RUN, when the registers
 * are complete.
 */
static void vcpu_interrupted(struct vcpu *v)
{
	v->run->immediate_exit = 0;
	if (atomic_load_explicit(&v->vm->control.changes, memory_order_acquire) !=
	    v->control_seen) {
		source_update_all(v);
		breakpoint_update(v);
	}
	source_take_all(v);
	pvm_interrupted(v);
	if (atomic_load_explicit(&v->dead_looks, memory_order_relaxed) >= DEAD_LOOKS &&
	    all_dead(v->vm))
		vcpu_end(v, VM_END_HALTED, NULL);
}

/*
 * Returns the registers that KVM copies out at each exit. The copy is a good part of an exit's cost
 * (1.5 of 9 us in an emulated SVM; on VMX some 30 VMREADs, and exits of their own in a nested
 * guest). The registers are not needed after an access to a device, and most exits are such
 * accesses. Breakpoints write them back, and pvm/ needs them at most exits; where ring 0 is
 * interpreted, the copy is cheap and reading the registers with ioctls is not.
 */
static uint64_t regs_at_exits(const struct vm *vm)
{
	return vm->pvm || vm->cfg.nbreakpoints ? KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS : 0;
}

static void vcpu_run_loop(struct vcpu *v)
{
	uint64_t now = clock_mono_ns();

	while (!atomic_load_explicit(&v->vm->stop, memory_order_relaxed)) {
		int ret;

		pvm_enter(v);
		vm_pause_enter(v);
		vcpu_account(v, ACCOUNT_RUN, now);
		ret = ioctl(v->fd, KVM_RUN, 0) < 0 ? errno : 0;
		now = clock_mono_ns();
		/* Only kvmprof interrupts it: a sample is due, or the machine ends. */
		vcpu_account(v, ret == EINTR ? ACCOUNT_STOPPED : ACCOUNT_VMM, now);
		if (ret == 0) {
			unsigned int kind = v->run->exit_reason;

			count_add(&v->stats.exits[kind < VCPU_EXIT_KINDS ? kind
									 : VCPU_EXIT_KINDS - 1],
				  1);
			if (!source_exit_is_finished_later(kind))
				vcpu_fetch_regs(v);
			source_exit_begin(v, now);
			now = device_enter(v);
			vcpu_handle_exit(v);
			now = device_leave(v, now);
			if (v->exit_noted)
				source_exit_handled(v, now);
		} else if (ret == EINTR) {
			count_add(&v->stats.exits[KVM_EXIT_INTR], 1);
			vcpu_fetch_regs(v);
			vcpu_interrupted(v);
			vm_pause_wait(v);
			now = clock_mono_ns();
		} else if (ret != EAGAIN) { /* EAGAIN: an AP that was not started yet */
			struct err e = { 0 };

			vcpu_fetch_regs(v);
			err_set(&e, ret, "vCPU %u: KVM_RUN: %s, rip 0x%llx", v->index,
				strerror(ret), (unsigned long long)v->run->s.regs.regs.rip);
			vcpu_end(v, VM_END_ERROR, &e);
		}
	}
}

static int vcpu_pin(struct vcpu *v, struct err *e)
{
	int cpu = v->vm->setup->pin[v->index];
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

void vcpu_early(void *arg)
{
	struct vcpu *v = arg;

	vcpu_account_open(v);
	source_open_all(v);
	if (v->vm->setup->vcpu_begins)
		v->vm->setup->vcpu_begins(v->vm->setup->vcpu_ends_ctx, v->index);
}

void *vcpu_main(void *arg)
{
	struct vcpu *v = arg;
	struct err e = { 0 };
	sigset_t mask;

	vcpu_set_current(v);
	v->run->kvm_valid_regs = regs_at_exits(v->vm);
	v->regs_kept = v->run->kvm_valid_regs != 0;
	sigfillset(&mask);
	sigdelset(&mask, VCPU_KICK_SIGNAL);
	sigdelset(&mask, SIGIO);
	/* Faults of this thread: a blocked one would kill the process without a message. */
	sigdelset(&mask, SIGILL);
	sigdelset(&mask, SIGSEGV);
	sigdelset(&mask, SIGFPE);
	sigdelset(&mask, SIGBUS);
	sigdelset(&mask, SIGSYS);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	atomic_store(&v->tid, gettid());
	pthread_mutex_lock(&v->vm->start_lock);
	pthread_mutex_unlock(&v->vm->start_lock);
	if (v->vm->setup->pin && vcpu_pin(v, &e) < 0)
		machine_end(v->vm, VM_END_ERROR, v, NULL, &e);
	vcpu_account_begin(v, clock_mono_ns());
	if (source_start_all(v, &e) < 0)
		machine_end(v->vm, VM_END_ERROR, v, NULL, &e);
	breakpoint_update(v);
	if (v->index == 0)
		atomic_store(&v->vm->first_entry_ns, clock_mono_ns());
	vcpu_run_loop(v);
	source_exit_last(v);
	source_stop_all(v);
	vcpu_account_end(v);
	if (v->vm->setup->vcpu_ends)
		v->vm->setup->vcpu_ends(v->vm->setup->vcpu_ends_ctx, v->index);
	atomic_store(&v->tid, 0);
	return NULL;
}
