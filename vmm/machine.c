/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/machine.h"

#include <stdlib.h>
#include <unistd.h>

const char *vm_end_name(enum vm_end_reason reason)
{
	static const char *const name[] = {
		[VM_RUNNING] = "running",
		[VM_END_RESET] = "guest reset",
		[VM_END_POWEROFF] = "guest power-off",
		[VM_END_EXIT] = "guest exit",
		[VM_END_HALTED] = "guest halted for good",
		[VM_END_DURATION] = "duration reached",
		[VM_END_INTERRUPTED] = "interrupted",
		[VM_END_MARKER] = "stop marker reached",
		[VM_END_SAMPLES] = "number of samples reached",
		[VM_END_ASKED] = "ended through the control socket",
		[VM_END_SAVED] = "snapshot saved",
		[VM_END_PANIC] = "guest panicked and hangs",
		[VM_END_HUNG] = "guest hangs",
		[VM_END_TRIPLE_FAULT] = "triple fault",
		[VM_END_GONE] = "the machine has ended",
		[VM_END_STOPPED] = "the machine was stopped",
		[VM_END_ERROR] = "error",
	};

	return name[reason];
}

void machine_end(struct vm *vm, enum vm_end_reason reason, const struct vcpu *v,
		 const struct sample_regs *regs, const struct err *err)
{
	uint64_t one = 1;

	pthread_mutex_lock(&vm->end_lock);
	if (!vm->ending) {
		vm->ending = true;
		vm->result.reason = reason;
		vm->result.vcpu = v ? v->index : 0;
		vm->result.have_regs = regs != NULL;
		if (regs)
			vm->result.regs = *regs;
		if (err)
			vm->result.err = *err;
		vm->result.end_ns = machine_now_ns(vm);
	}
	pthread_mutex_unlock(&vm->end_lock);
	atomic_store(&vm->stop, true);
	/* Wakes paused vCPUs, and vm_pause(). */
	pthread_mutex_lock(&vm->pause.lock);
	pthread_cond_broadcast(&vm->pause.changed);
	pthread_mutex_unlock(&vm->pause.lock);
	vm->ops->wake(vm);
	/* Fails only if the counter is full, and then it is readable already. */
	(void)!write(vm->end_fd, &one, sizeof(one));
}

void vm_end(struct vm *vm, enum vm_end_reason reason)
{
	machine_end(vm, reason, NULL, NULL, NULL);
}

void vm_exit(struct vm *vm, uint32_t status)
{
	/* end_lock publishes it. A late call has no effect, because the first end counts. */
	pthread_mutex_lock(&vm->end_lock);
	if (!vm->ending)
		vm->result.exit_status = status;
	pthread_mutex_unlock(&vm->end_lock);
	machine_end(vm, VM_END_EXIT, NULL, NULL, NULL);
}

const struct vm_result *vm_result(const struct vm *vm)
{
	return &vm->result;
}

void machine_free(struct vm *vm)
{
	for (unsigned int i = 0; i < vm->places; i++)
		ring_deinit(&vm->vcpu[i].ring);
	if (vm->end_fd >= 0)
		close(vm->end_fd);
	pthread_cond_destroy(&vm->pause.changed);
	pthread_mutex_destroy(&vm->pause.lock);
	pthread_mutex_destroy(&vm->end_lock);
	pthread_mutex_destroy(&vm->start_lock);
	free(atomic_load(&vm->python));
	free(vm->setup);
	free(vm);
}
