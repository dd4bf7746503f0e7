/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/attach.h"

#include "vmm/attach/attach.h"
#include "vmm/exact/exact.h"
#include "vmm/attach/attach_facts.h"
#include "vmm/attach/foreign.h"
#include "vmm/end.h"

static void write_gdb(const struct facts_out *o, const struct attach_facts *f)
{
	FACTS(o, STR("gdb", f->where),
	      STR("note", "through a gdbstub: each sample stops the whole machine"),
	      LINE(true, "through a gdbstub ({gdb}, {vcpus} vCPUs): each sample stops the whole "
			 "machine; {stops} stops, {stops_for_names} of them for names, "
			 "{stood_ns:1/1e6} ms in all, {longest_stop_ns:1/1e6} ms the longest"),
	      NUM("vcpus", f->vcpus), NUM("memory", f->memory), NUM("regions", f->regions),
	      FLAG("virtual_only", f->virtual_only,
		   "note: this gdbstub reads only the address space in use, so other programs "
		   "have no names"),
	      NUM("stops", f->stops), NUM("stops_for_names", f->memory_stops),
	      NUM("stood_ns", f->stood_ns), NUM("longest_stop_ns", f->longest_ns),
	      NUM("memory_reads", f->reads));
}

static void write_process(const struct facts_out *o, const struct attach_facts *f)
{
	const bool untold = f->partial && !f->memory_from_kvm, why = f->memory_why_not[0];

	FACTS(o, VAR("mib", f->memory >> 20),
	      VARS("as_kvm", f->memory_from_kvm ? ", as KVM lists it" : ""),
	      NUM("pid", (uint64_t)f->pid,
		  "attached to process {pid} ({process}): {vcpus} vCPUs, {mib} MiB of guest "
		  "memory{as_kvm}, confirmed by {proofs} proofs"),
	      STR("process", f->name), NUM("vcpus", f->vcpus),
	      NUM("vcpus_not_running", f->not_running,
		  "note: {vcpus_not_running} more vCPUs were not running and are not sampled"),
	      NUM("vcpus_added", f->added), STR_IF(f->added != 0, "vcpus_added_ids", f->added_ids),
	      LINE(f->added != 0,
		   "{vcpus_added} vCPUs were added, or began to run, while the machine was "
		   "sampled: vCPU {vcpus_added_ids}; they are in the profile"),
	      NUM("memory", f->memory), NUM("regions", f->regions), NUM("proofs", f->proofs),
	      FLAG("memory_partial", f->partial),
	      STR("memory_from", f->memory_from_kvm ? "kvm" : "page-tables"),
	      STR_IF(why, "memory_why_not_kvm", f->memory_why_not),
	      LINE(f->partial && f->memory_from_kvm,
		   "note: some of the guest's memory is private to the guest, or in more pieces "
		   "than are kept; it counts as unreadable"),
	      LINE(untold && !why, "note: the place of the guest's memory beyond 2 GiB could not "
				   "be proven; that memory counts as unreadable"),
	      LINE(untold && why,
		   "note: the place of the guest's memory beyond 2 GiB could not be proven; that "
		   "memory counts as unreadable; KVM's own list could not be read: "
		   "{memory_why_not_kvm}"),
	      NUM("samples_in_vmm", f->in_vmm,
		  "{samples_in_vmm} samples were taken while the VMM worked for the guest; they "
		  "show where the guest waited"),
	      NUM("samples_not_in_memory", f->absent), NUM("names_not_in_memory", f->absent_names),
	      LINE(f->absent || f->absent_names,
		   "{samples_not_in_memory} samples are incomplete and {names_not_in_memory} "
		   "reads for names failed, because pages of the guest are not in memory; attach "
		   "does not wait for them"),
	      NUM("brought_into_memory_bytes", f->brought),
	      NUM("read_from_memory_file_bytes", f->from_file),
	      LINE(!f->from_file,
		   "attach made {brought_into_memory_bytes:1/1048576} MiB of the guest's memory "
		   "resident by reading it"),
	      LINE(f->from_file != 0,
		   "attach made {brought_into_memory_bytes:1/1048576} MiB of the guest's memory "
		   "resident by reading it, and read {read_from_memory_file_bytes:1/1048576} MiB "
		   "from the file that the memory is mapped from"),
	      NUM("further_machines", f->machines,
		  "the VMM made {further_machines} further machines in the same process, as for a "
		  "reboot; they are in the profile"),
	      NUM("periods_paused", f->paused), NUM("paused_ns", f->paused_ns),
	      NUM("periods_asleep_in_vmm", f->away), NUM("asleep_in_vmm_ns", f->away_ns),
	      NUM("never_started_ns", f->unstarted_ns),
	      LINE(f->paused || f->away,
		   "outside of the shares: {paused_ns:3/1e9} s of vCPU time while the machine "
		   "was paused (its VMM waited and did not run the guest), "
		   "{asleep_in_vmm_ns:3/1e9} s while a vCPU's thread slept in the VMM for less "
		   "than 20 ms"),
	      LINE(f->unstarted_ns != 0,
		   "outside of the shares: {never_started_ns:3/1e9} s of vCPUs "
		   "that were never started"),
	      NUM("stops_too_soon", f->too_soon,
		  "{stops_too_soon} stops came before the guest had run again after the last "
		  "stop; they gave no samples, and their time counts for the next sample (if "
		  "there are many, sample less often: -F)"),
	      VARD("stops_each_second",
		   f->sampling_ns ? 1e9 * (double)f->thread_stops / (double)f->sampling_ns : 0),
	      NUM("thread_stops", f->thread_stops), NUM("sampling_ns", f->sampling_ns),
	      LINE(f->sampling_ns != 0,
		   "{thread_stops} stops of vCPU threads, {stops_each_second:1} "
		   "a second"),
	      NUM("signals_passed_on", f->signals), NUM("memory_reads", f->reads),
	      STR("technique", f->bpf ? "bpf" : "ptrace"), NUM("samples_by_bpf", f->by_bpf),
	      NUM("samples_by_ptrace", f->by_ptrace), NUM("samples_of_sleeping", f->without_stop),
	      LINE(f->by_bpf || f->bpf,
		   "{samples_by_bpf} samples by BPF, without stopping a thread, "
		   "{samples_by_ptrace} by ptrace, {samples_of_sleeping} of threads that slept"));
}

/* The time from the VMM's start to the end of the samples, in parts that add up to it. */
static void write_start(const struct facts_out *o, const struct attach_facts *f, uint64_t end_ns)
{
	const uint64_t began = f->exec_ns ? f->exec_ns : f->vm_ns;
	const uint64_t end = end_ns > f->go_ns ? end_ns : f->go_ns;

	FACTS_OBJECT(o, "start", NUM("vmm_ns", f->vm_ns - began),
		     NUM("kvm_ns", f->run_ns - f->vm_ns), NUM("held_ns", f->go_ns - f->run_ns),
		     NUM("guest_ns", end - f->go_ns), NUM("elapsed_ns", end - began),
		     NUM_IF(f->first_ns, "first_sample_ns", f->first_ns - f->go_ns),
		     NUM("first_sample_waited_ns", f->first_waited_ns),
		     NUM("first_sample_own_waited_ns", f->first_own_waited_ns),
		     LINE(true,
			  "from the start: VMM {vmm_ns:1/1e6} ms, KVM set-up {kvm_ns:1/1e6} ms, "
			  "held by kvmprof in front of its first KVM_RUN for {held_ns:1/1e6} ms, "
			  "guest {guest_ns:1/1e6} ms"));
}

static double percent(uint64_t part, uint64_t of)
{
	return of ? 100 * (double)part / (double)of : 0;
}

static const char *const peek_names[PEEK_STATUSES] = {
	[PEEK_NONE] = "failed",	    [PEEK_ELSEWHERE] = "elsewhere",   [PEEK_WAITING] = "waiting",
	[PEEK_NO_VCPU] = "no_vcpu", [PEEK_OUTSIDE] = "outside_guest", [PEEK_UNCACHED] = "uncached",
	[PEEK_KERNEL] = "kernel",   [PEEK_ABSENT] = "absent",	      [PEEK_TAKEN] = "taken",
};

static void write_bpf(const struct facts_out *o, const struct attach_facts *f)
{
	const struct choice_tally *bpf = &f->tally[CHOICE_BPF];
	const struct choice_tally *ptrace = &f->tally[CHOICE_PTRACE];
	const bool given_up = f->compared && !f->bpf;

	facts_object(o, "bpf");
	for (unsigned int i = 0; i < PEEK_STATUSES; i++)
		FACTS(o, NUM(peek_names[i], f->peeks[i]));
	FACTS_OBJECT(
		o, "tried_first", NUM("samples", bpf->samples), NUM("periods", bpf->periods),
		NUM("hits", bpf->hits), VARD("saw", percent(bpf->samples, bpf->periods)),
		VARD("took", percent(bpf->hits, bpf->samples)),
		VARD("others", percent(ptrace->samples, ptrace->periods)),
		LINE(ptrace->samples > bpf->samples,
		     "BPF was tried less often, because it saw {saw:0} % of the periods and took "
		     "{took:0} % of the samples itself; ptrace saw {others:0} % of the periods"));
	FACTS_OBJECT(o, "not_tried_first", NUM("samples", ptrace->samples),
		     NUM("periods", ptrace->periods));
	FACTS(o, NUM("compared", f->compared), STR_IF(f->why_not[0], "why_not", f->why_not),
	      LINE(given_up, "note: BPF is not used any more: {why_not}"),
	      LINE(!given_up && f->why_not[0] && !f->bpf,
		   "note: samples are taken by ptrace, which costs more for each: {why_not}"));
	facts_object_end(o);
}

void summary_attach(const struct facts_out *o, const struct vm *vm)
{
	struct attach_facts f;

	foreign_facts(vm, &f);
	facts_object(o, "attach");
	if (f.pid) {
		write_process(o, &f);
		if (f.run_ns)
			write_start(o, &f, vm_result(vm)->end_ns);
		write_bpf(o, &f);
	} else {
		write_gdb(o, &f);
	}
	facts_object_end(o);
}

void summary_domain(const struct facts_out *o, const struct attach_domain *d)
{
	struct libvirt_end end = { 0 };

	if (!d)
		return;
	(void)libvirt_watch_end(d->watch, &end);

	FACTS_OBJECT(o, "domain", STR("name", d->domain.name, "domain {name}, id {id:0}, of {uri}"),
		     STR("uuid", d->domain.uuid), REAL("id", 0, d->domain.id),
		     STR("uri", libvirt_host_uri(d->host)), STR("event", end.event),
		     FLAG("daemon_lost", libvirt_watch_is_disconnected(d->watch),
			  "note: the connection to libvirt's daemon was lost; the domain's fate "
			  "after that is not known"));
}

static void write_engine(const struct facts_out *o, const struct exact_facts *f)
{
	FACTS(o, VAR("ns", EXACT_NS_PER_INSN), VAR("from", f->begun + 1),
	      VAR("collected", f->instructions - f->begun),
	      VARS("each", f->counts ? "each counted, the process read" : "a sample"),
	      STR("name", "exact",
		  "engine exact, QEMU {qemu}: {instructions} instructions, {each} each {period}, "
		  "{ns} ns of virtual time each"),
	      STR("qemu", f->engine.version), NUM("plugin", f->plugin), STR("cpu", EXACT_CPU_MODEL),
	      NUM("memory_bytes", f->mem_size), NUM("vcpus", f->vcpus), STR("machine", f->machine),
	      STR("cmdline", f->cmdline), STR("kernel_sha256", f->kernel_sha256),
	      STR("initrd_sha256", f->initrd_sha256), FLAG("counts", f->counts),
	      NUM("period", f->period), FLAG("jitter", !f->strict),
	      NUM("instructions", f->instructions),
	      NUM("begun", f->begun,
		  "collected from instruction {from} on: {collected} instructions"));
}

void summary_engine(const struct facts_out *o, const struct vm *vm)
{
	const struct exact_facts *f = exact_facts_of(vm);

	if (!f)
		return;
	facts_object(o, "engine");
	write_engine(o, f);
	FACTS(o,
	      FLAG_IF(f->disks != EXACT_DISKS_NOT_KNOWN, "disks_taken",
		      f->disks == EXACT_DISKS_TAKEN),
	      VARS("s", f->ndisks == 1 ? "" : "s"),
	      LINE(f->disks == EXACT_DISKS_NOT_TAKEN,
		   "warning: the guest has no disk: none of its drivers has taken the NVDIMM{s} "
		   "that "
		   "--disk made; it needs CONFIG_ACPI_NFIT and CONFIG_BLK_DEV_PMEM built in, or "
		   "the "
		   "modules nfit and nd_pmem loaded (--modprobe nfit,nd_pmem, see docs/exact.md)"));
	if (f->ndisks)
		facts_array(o, "disks");
	for (unsigned int i = 0; i < f->ndisks; i++) {
		FACTS_OBJECT(o, NULL, NUM("bytes", f->disk[i].image_size),
			     FLAG("read_only", f->disk[i].read_only),
			     STR("sha256", f->disk[i].sha256));
	}
	if (f->ndisks)
		facts_array_end(o);
	facts_array(o, "phases");
	for (unsigned int i = 0; i < f->nparts; i++) {
		if (f->part_at[i])
			FACTS_OBJECT(o, NULL, STR("name", f->part[i].name),
				     NUM("instruction", f->part_at[i]),
				     NUM("mono_ns", EXACT_NS_AT(f->part_at[i])));
	}
	facts_array_end(o);
	facts_object_end(o);
}
