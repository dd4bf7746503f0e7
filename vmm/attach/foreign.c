/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions for all machines that kvmprof does not run itself. */
#include "vmm/attach/foreign.h"

#include "base/clock.h"
#include "vmm/attach/attach.h"
#include "vmm/machine.h"
#include "vmm/control.h"
#include "vmm/attach/attach_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

struct vm *foreign_machine_new(const struct machine_ops *ops, void *attached,
			       const struct attach_config *cfg, struct foreign_vcpus vcpus,
			       struct err *e)
{
	const unsigned int n = vcpus.places;
	struct vm *vm;

	if (posix_memalign((void **)&vm, 64, sizeof(*vm) + n * sizeof(vm->vcpu[0]))) {
		err_nomem(e);
		return NULL;
	}
	memset(vm, 0, sizeof(*vm) + n * sizeof(vm->vcpu[0]));
	vm->cfg = (struct vm_sampling){
		.host = cfg->host,
		.quirks = cfg->quirks,
		.event = { cfg->event },
		.nevents = 1,
		.idle_start = cfg->idle_start,
		.plan = cfg->plan,
		.ring_size = cfg->ring_size,
	};
	vm->nvcpus = vcpus.n;
	vm->places = n;
	vm->fd = -1;
	vm->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (vm->end_fd < 0)
		err_set(e, errno, "eventfd: %s", strerror(errno));
	pthread_mutex_init(&vm->end_lock, NULL);
	pthread_mutex_init(&vm->start_lock, NULL);
	for (unsigned int i = 0; i < n; i++) {
		struct vcpu *v = &vm->vcpu[i];

		v->index = i;
		v->vm = vm;
		v->fd = -1;
		v->foreign = true;
		if (cfg->ring_size && ring_init(&v->ring, cfg->ring_size) < 0)
			err_set(e, ENOMEM, "vCPU %u: no memory for a ring of %zu bytes", i,
				cfg->ring_size);
	}
	vm_control_init(vm);
	if (e->code) {
		machine_free(vm);
		return NULL;
	}
	vm->ops = ops;
	vm->attached = attached;
	return vm;
}

void foreign_facts(const struct vm *vm, struct attach_facts *out)
{
	vm->ops->facts(vm, out);
	out->vcpus = vm->nvcpus;
}

void foreign_suspend(struct vm *vm)
{
	vm->ops->suspend(vm);
}

void foreign_resume(struct vm *vm)
{
	vm->ops->resume(vm);
}
