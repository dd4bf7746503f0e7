/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/still.h"

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/gmem.h"
#include "vmm/attach/attach_facts.h"
#include "vmm/attach/foreign.h"
#include "vmm/capture/capture.h"
#include "vmm/config.h"
#include "vmm/gmem_alloc.h"
#include "vmm/machine.h"
#include "vmm/msr.h"
#include "vmm/snapshot/snapshot.h"
#include "vmm/snapshot/vcpu_state.h"
#include "vmm/vm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The period of the samples of each vCPU. */
#define STILL_PERIOD_NS (UINT64_C(20) * 1000000)

struct still_vcpu {
	struct kvm_regs regs;
	struct kvm_sregs sregs;
	uint64_t kernel_gs;
};

struct still {
	struct snapshot *snapshot;
	struct gmem mem;
	struct still_vcpu *vcpu;
	uint64_t last_ns; /* when samples were taken last */
};

static void take_samples(struct vm *vm)
{
	struct still *s = vm->attached;
	struct capture_cause cause = { .now = clock_mono_ns(), .weight = STILL_PERIOD_NS };

	if (atomic_load(&vm->stop) || cause.now - s->last_ns < STILL_PERIOD_NS)
		return;
	s->last_ns = cause.now;
	for (unsigned int i = 0; i < vm->nvcpus; i++) {
		struct still_vcpu *v = &s->vcpu[i];
		struct capture_view view = capture_view_of(&v->regs, &v->sregs, &s->mem);

		if (v->kernel_gs >> 63)
			vm->vcpu[i].kernel_gs = v->kernel_gs;
		capture_sample_of(&vm->vcpu[i], &view, &cause);
	}
}

static int op_start(struct vm *vm, struct err *e)
{
	(void)e;
	atomic_store(&vm->first_entry_ns, clock_mono_ns());
	return 0;
}

static void op_nothing(struct vm *vm)
{
	(void)vm;
}

/*
 * Takes the samples that are due. Called by the consumer thread, which is the only producer and the
 * only consumer of the rings.
 */
static void op_wait(struct vm *vm, uint64_t ns)
{
	const struct timespec nap = { .tv_nsec = (long)ns };

	take_samples(vm);
	nanosleep(&nap, NULL);
}

static void still_free(struct still *s)
{
	gmem_alloc_free(&s->mem);
	snapshot_close(s->snapshot);
	free(s->vcpu);
	free(s);
}

static void op_destroy(struct vm *vm)
{
	still_free(vm->attached);
}

static const struct gmem *op_memory(const struct vm *vm)
{
	const struct still *s = vm->attached;

	return &s->mem;
}

static void op_facts(const struct vm *vm, struct attach_facts *out)
{
	const struct still *s = vm->attached;

	memset(out, 0, sizeof(*out));
	out->memory = gmem_size(&s->mem);
	out->regions = s->mem.n;
}

static const struct machine_ops still_ops = {
	.start = op_start,
	.wake = op_nothing,
	.join = op_nothing,
	.destroy = op_destroy,
	.memory = op_memory,
	.wait = op_wait,
	.suspend = op_nothing,
	.resume = op_nothing,
	.facts = op_facts,
};

static int read_vcpu(struct still *s, unsigned int i, struct err *e)
{
	cleanup_free struct vcpu_state *state = calloc(1, sizeof(*state)); /* large */
	struct still_vcpu *v = &s->vcpu[i];
	struct cursor in;
	char name[SNAPSHOT_NAME];
	int ret;

	if (!state)
		return err_nomem(e);
	snprintf(name, sizeof(name), "vcpu.%u", i);
	ret = snapshot_find(s->snapshot, name, VCPU_STATE_VERSION, &in, e);
	ret = ret ? ret : vcpu_state_parse(state, &in, e);
	if (ret)
		return ret;
	v->regs = state->regs;
	v->sregs = state->sregs;
	for (uint32_t k = 0; k < state->nmsrs; k++)
		if (state->msr[k].index == MSR_KERNEL_GS_BASE)
			v->kernel_gs = state->msr[k].data;
	return 0;
}

static int read_snapshot(struct still *s, const char *path, unsigned int *vcpus, struct err *e)
{
	struct vm_config cfg = { 0 };
	int ret = snapshot_open(&s->snapshot, path, e);

	ret = ret ? ret : snapshot_configure(s->snapshot, &cfg, e);
	if (ret)
		return ret;
	s->vcpu = calloc(cfg.vcpus, sizeof(*s->vcpu));
	if (!s->vcpu)
		return err_nomem(e);
	ret = gmem_alloc(&s->mem, &(struct gmem_config){ .size = cfg.mem_size }, e);
	ret = ret ? ret : snapshot_map_ram(s->snapshot, &s->mem, e);
	for (unsigned int i = 0; !ret && i < cfg.vcpus; i++)
		ret = read_vcpu(s, i, e);
	*vcpus = cfg.vcpus;
	return ret;
}

int still_open(struct vm **out, const char *path, const struct attach_config *cfg, struct err *e)
{
	struct still *s = calloc(1, sizeof(*s));
	unsigned int vcpus;
	struct vm *vm = NULL;
	int ret;

	if (!s)
		return err_nomem(e);
	ret = read_snapshot(s, path, &vcpus, e);
	if (!ret)
		vm = foreign_machine_new(&still_ops, s, cfg, (struct foreign_vcpus){ vcpus, vcpus },
					 e);
	if (!vm) {
		still_free(s);
		return ret ? ret : -e->code;
	}
	*out = vm;
	return 0;
}
