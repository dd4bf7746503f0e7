/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/summary_attach.h"

#include "profile/summary_guest.h"
#include "vmm/attach/attach.h"

#include <inttypes.h>

void summary_attach_print(const struct vm *vm, FILE *out)
{
	struct attach_facts f;

	vm_attach_facts(vm, &f);
	fprintf(out,
		"kvmprof: attached to process %d (%s): %u vCPUs, %" PRIu64
		" MiB of guest memory by %u proofs\n",
		(int)f.pid, f.name, f.vcpus, f.memory >> 20, f.proofs);
	if (f.not_running)
		fprintf(out, "kvmprof: note: %u more vCPUs were not running and are not sampled\n",
			f.not_running);
	if (f.partial)
		fputs("kvmprof: note: where its memory beyond 2 GiB lies could not be proven: what "
		      "is there counts as unreadable\n",
		      out);
	if (f.in_vmm)
		fprintf(out,
			"kvmprof: %" PRIu64
			" samples while the VMM worked for the guest: they show what the guest "
			"waited in\n",
			f.in_vmm);
}

void summary_attach_json(const struct vm *vm, struct buf *b)
{
	struct attach_facts f;

	vm_attach_facts(vm, &f);
	buf_printf(b, ",\"attach\":{\"pid\":%d,\"process\":", (int)f.pid);
	summary_json_string(b, f.name);
	buf_printf(b,
		   ",\"vcpus\":%u,\"vcpus_not_running\":%u,\"memory\":%" PRIu64
		   ",\"regions\":%u,\"proofs\":%u,\"memory_partial\":%s,\"samples_in_vmm\":%" PRIu64
		   ",\"signals_passed_on\":%" PRIu64 ",\"memory_reads\":%" PRIu64 "}",
		   f.vcpus, f.not_running, f.memory, f.regions, f.proofs,
		   f.partial ? "true" : "false", f.in_vmm, f.signals, f.reads);
}
