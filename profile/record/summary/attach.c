/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/attach.h"

#include "base/json.h"
#include "vmm/attach/attach.h"

#include <inttypes.h>

static void print_gdb(const struct attach_facts *f, FILE *out)
{
	fprintf(out,
		"kvmprof: through a gdbstub (%s, %u vCPUs): each sample stops the whole machine; "
		"%" PRIu64 " stops, %" PRIu64 " of them for names, %.1f ms in all, %.1f ms the "
		"longest\n",
		f->where, f->vcpus, f->stops, f->memory_stops, (double)f->stood_ns / 1e6,
		(double)f->longest_ns / 1e6);
	if (f->virtual_only)
		fputs("kvmprof: note: this gdbstub reads the address space in use only: of other "
		      "programs there are no names\n",
		      out);
}

static uint64_t tried_first(const struct attach_facts *f, enum choice_technique t)
{
	return f->tally[t].samples;
}

static double percent(uint64_t part, uint64_t of)
{
	return of ? 100 * (double)part / (double)of : 0;
}

void summary_attach_print(const struct vm *vm, FILE *out)
{
	struct attach_facts f;

	vm_attach_facts(vm, &f);
	if (!f.pid) {
		print_gdb(&f, out);
		return;
	}
	fprintf(out,
		"kvmprof: attached to process %d (%s): %u vCPUs, %" PRIu64
		" MiB of guest memory%s by %u proofs\n",
		(int)f.pid, f.name, f.vcpus, f.memory >> 20,
		f.memory_told ? " as KVM has it, and" : "", f.proofs);
	if (f.not_running)
		fprintf(out, "kvmprof: note: %u more vCPUs were not running and are not sampled\n",
			f.not_running);
	if (f.partial && f.memory_told)
		fputs("kvmprof: note: some of its memory is private to the guest, or in more "
		      "pieces than are kept: that counts as unreadable\n",
		      out);
	else if (f.partial)
		fprintf(out,
			"kvmprof: note: where its memory beyond 2 GiB lies could not be proven: "
			"what is there counts as unreadable%s%s\n",
			f.memory_why_not[0] ? "; KVM could not be asked: " : "", f.memory_why_not);
	if (f.in_vmm)
		fprintf(out,
			"kvmprof: %" PRIu64
			" samples while the VMM worked for the guest: they show what the guest "
			"waited in\n",
			f.in_vmm);
	if (f.too_soon)
		fprintf(out,
			"kvmprof: %" PRIu64 " stops came before the guest had run again after the "
			"last: no samples; their "
			"time counts for the next sample (with many of these, sample less often: "
			"-F)\n",
			f.too_soon);
	if (f.by_bpf || f.bpf)
		fprintf(out,
			"kvmprof: %" PRIu64 " samples by BPF, without stopping a thread, %" PRIu64
			" by ptrace\n",
			f.by_bpf, f.by_ptrace);
	if (tried_first(&f, CHOICE_PTRACE) > tried_first(&f, CHOICE_BPF))
		fprintf(out,
			"kvmprof: BPF was tried less, as it saw %.0f %% of the periods and took "
			"%.0f %% "
			"of the samples itself; ptrace saw %.0f %% of the periods\n",
			percent(f.tally[CHOICE_BPF].samples, f.tally[CHOICE_BPF].periods),
			percent(f.tally[CHOICE_BPF].hits, f.tally[CHOICE_BPF].samples),
			percent(f.tally[CHOICE_PTRACE].samples, f.tally[CHOICE_PTRACE].periods));
	if (f.compared && !f.bpf)
		fprintf(out, "kvmprof: note: BPF was given up: %s\n", f.why_not);
	else if (f.why_not[0] && !f.bpf)
		fprintf(out, "kvmprof: note: by ptrace, which costs more for each sample: %s\n",
			f.why_not);
}

static void json_gdb(const struct attach_facts *f, struct buf *b)
{
	buf_printf(b, ",\"attach\":{\"gdb\":");
	json_quote(b, f->where);
	buf_printf(b,
		   ",\"note\":\"through a gdbstub: each sample stops the whole machine\""
		   ",\"vcpus\":%u,\"memory\":%" PRIu64
		   ",\"regions\":%u,\"virtual_only\":%s,\"stops\":%" PRIu64
		   ",\"stops_for_names\":%" PRIu64 ",\"stood_ns\":%" PRIu64
		   ",\"longest_stop_ns\":%" PRIu64 ",\"memory_reads\":%" PRIu64 "}",
		   f->vcpus, f->memory, f->regions, f->virtual_only ? "true" : "false", f->stops,
		   f->memory_stops, f->stood_ns, f->longest_ns, f->reads);
}

void summary_attach_json(const struct vm *vm, struct buf *b)
{
	struct attach_facts f;

	vm_attach_facts(vm, &f);
	if (!f.pid) {
		json_gdb(&f, b);
		return;
	}
	buf_printf(b, ",\"attach\":{\"pid\":%d,\"process\":", (int)f.pid);
	json_quote(b, f.name);
	buf_printf(b,
		   ",\"vcpus\":%u,\"vcpus_not_running\":%u,\"memory\":%" PRIu64
		   ",\"regions\":%u,\"proofs\":%u,\"memory_partial\":%s"
		   ",\"memory_from\":\"%s\",\"samples_in_vmm\":%" PRIu64
		   ",\"stops_too_soon\":%" PRIu64 ",\"signals_passed_on\":%" PRIu64
		   ",\"memory_reads\":%" PRIu64 ",\"technique\":\"%s\",\"samples_by_bpf\":%" PRIu64
		   ",\"samples_by_ptrace\":%" PRIu64 ",\"bpf\":{",
		   f.vcpus, f.not_running, f.memory, f.regions, f.proofs,
		   f.partial ? "true" : "false", f.memory_told ? "kvm" : "page-tables", f.in_vmm,
		   f.too_soon, f.signals, f.reads, f.bpf ? "bpf" : "ptrace", f.by_bpf, f.by_ptrace);
	for (unsigned int i = 0; i < PEEK_STATUSES; i++)
		buf_printf(b, "\"%s\":%" PRIu64 ",", peek_status_name((enum peek_status)i),
			   f.peeks[i]);
	buf_printf(b, "\"compared\":%" PRIu64, f.compared);
	buf_printf(b,
		   ",\"tried_first\":{\"samples\":%" PRIu64 ",\"periods\":%" PRIu64
		   ",\"hits\":%" PRIu64 "},\"not_tried_first\":{\"samples\":%" PRIu64
		   ",\"periods\":%" PRIu64 "}",
		   f.tally[CHOICE_BPF].samples, f.tally[CHOICE_BPF].periods,
		   f.tally[CHOICE_BPF].hits, f.tally[CHOICE_PTRACE].samples,
		   f.tally[CHOICE_PTRACE].periods);
	if (f.why_not[0]) {
		buf_printf(b, ",\"why_not\":");
		json_quote(b, f.why_not);
	}
	buf_printf(b, "}");
	if (f.memory_why_not[0]) {
		buf_printf(b, ",\"memory_why_not_kvm\":");
		json_quote(b, f.memory_why_not);
	}
	buf_printf(b, "}");
}
