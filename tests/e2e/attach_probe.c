/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Attaches to a VMM and says what it saw, without names: the bare machinery, for tests
 * that repeat it thousands of times.
 *
 *   attach_probe PID HZ MILLISECONDS [CYCLES [bpf|ptrace]]
 *
 * Prints one line of JSON for the last cycle, and with CYCLES 1 the raw rips before it.
 */
#include "base/clock.h"
#include "vmm/attach/attach.h"
#include "tests/sample_check.h"
#include "base/ring.h"
#include "base/vcpu_stats.h"
#include "vmm/attach/attach_facts.h"
#include "vmm/attach/foreign.h"
#include "vmm/end.h"
#include "vmm/quirks.h"
#include "vmm/vm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seen {
	uint64_t samples, kernel, user, idle, bytes;
};

static void drain(struct vm *vm, struct seen *s, int print)
{
	for (unsigned int i = 0; i < vm_vcpus(vm); i++) {
		const struct sample *x;
		size_t len;

		while ((x = ring_peek(vm_ring(vm, i), &len))) {
			if (sample_check(x, len))
				abort();
			s->samples++;
			s->kernel += x->mode == SAMPLE_KERNEL;
			s->user += x->mode == SAMPLE_USER;
			s->idle += x->mode == SAMPLE_IDLE;
			s->bytes += x->stack_len;
			if (print)
				printf("%u %u 0x%" PRIx64 "\n", x->vcpu, x->mode, x->regs.rip);
			ring_release(vm_ring(vm, i));
		}
	}
}

static int cycle(const struct attach_config *cfg, unsigned int ms, int print, int last)
{
	struct attach_facts f;
	struct seen s = { 0 };
	struct err e = { 0 };
	struct hist stop = { 0 };
	uint64_t until, lost = 0;
	struct vm *vm;

	if (attach_open(&vm, cfg, &e)) {
		fprintf(stderr, "attach_probe: %s\n", e.text);
		return 1;
	}
	if (vm_start(vm, &e)) {
		fprintf(stderr, "attach_probe: %s\n", e.text);
		return 1;
	}
	until = clock_mono_ns() + ms * 1000000ull;
	while (clock_mono_ns() < until && vm_result(vm)->reason == VM_RUNNING) {
		usleep(2000);
		drain(vm, &s, print);
	}
	vm_end(vm, VM_END_DURATION);
	vm_join(vm);
	drain(vm, &s, print);
	foreign_facts(vm, &f);
	for (unsigned int i = 0; i < vm_vcpus(vm); i++) {
		const struct vcpu_stats v = vm_stats(vm, i);

		hist_merge(&stop, &v.stop_ns);
		lost += ring_dropped(vm_ring(vm, i));
	}
	if (last)
		printf("{\"vcpus\":%u,\"samples\":%" PRIu64 ",\"kernel\":%" PRIu64
		       ",\"user\":%" PRIu64 ",\"idle\":%" PRIu64 ",\"bytes\":%" PRIu64
		       ",\"lost\":%" PRIu64 ",\"memory\":%" PRIu64
		       ",\"regions\":%u,\"proofs\":%u,\"partial\":%d"
		       ",\"by_bpf\":%" PRIu64 ",\"in_vmm\":%" PRIu64 ",\"signals\":%" PRIu64
		       ",\"reads\":%" PRIu64 ",\"stopped_ns\":{\"p50\":%" PRIu64 ",\"p99\":%" PRIu64
		       ",\"max\":%" PRIu64 "}}\n",
		       f.vcpus, s.samples, s.kernel, s.user, s.idle, s.bytes, lost, f.memory,
		       f.regions, f.proofs, f.partial, f.by_bpf, f.in_vmm, f.signals, f.reads,
		       hist_quantile(&stop, 500), hist_quantile(&stop, 990), stop.max);
	vm_destroy(vm);
	return 0;
}

int main(int argc, char **argv)
{
	struct quirks none = { 0 };
	struct kvm_host host = { .fd = -1 };
	struct attach_config cfg = {
		.host = &host,
		.quirks = &none,
		.event = { .kind = VM_EVENT_WALL, .jitter = true },
		.plan = { .stack_max = 16384, .stack_align = 16384, .user_stack_max = 8192 },
		.ring_size = 4u << 20,
	};
	unsigned int ms, cycles;
	double hz;

	if (argc < 4) {
		fprintf(stderr, "usage: attach_probe PID HZ MILLISECONDS [CYCLES [bpf|ptrace]]\n");
		return 2;
	}
	cfg.pid = atoi(argv[1]);
	hz = atof(argv[2]);
	ms = (unsigned int)atoi(argv[3]);
	if (argc > 5)
		cfg.technique = strcmp(argv[5], "bpf") ? ATTACH_PTRACE : ATTACH_BPF;
	cycles = argc > 4 ? (unsigned int)atoi(argv[4]) : 1;
	cfg.event.period = (uint64_t)(1e9 / hz);
	for (unsigned int i = 0; i < cycles; i++)
		if (cycle(&cfg, ms, cycles == 1 && argc > 4, i + 1 == cycles))
			return 1;
	return 0;
}
