/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_check: `kvmprof check`: what this host offers, what it lacks, how to mend it.
 */
#include "profile/cmd/cmd.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "profile/cmd/common.h"
#include "profile/record/sandbox/namespace.h"
#include "profile/record/sandbox/sandbox.h"
#include "vmm/capture/counter.h"
#include "vmm/exact/exact.h"
#include "vmm/kvm.h"
#include "vmm/layout.h"
#include "vmm/quirks.h"
#include "vmm/quirks_cache.h"
#include "vmm/vm.h"

#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define COUNTER_PERIOD 1000003u /* period of the counters that are tried */

enum verdict { GOOD, NOTE, BAD };

/* State shared by the checks. */
struct check {
	bool json;
	struct json_writer checks; /* with json: an array of objects in a buffer of its own */
	bool failed;		   /* something that kvmprof run cannot do without is missing */
};

static void check_line(struct check *c, enum verdict v, const char *what, const char *found,
		       const char *mend)
{
	static const char *const mark[] = { "ok  ", "note", "FAIL" };
	static const char *const word[] = { "ok", "note", "fail" };

	c->failed |= v == BAD;
	if (c->json) {
		json_put_object(&c->checks, NULL, "name", what, "verdict", word[v], "found", found,
				"mend", mend);
		return;
	}
	printf("%s  %-28s %s\n", mark[v], what, found);
	if (mend)
		printf("      %-28s -> %s\n", "", mend);
}

static void check_cap(struct check *c, const char *what, bool have, enum verdict without,
		      const char *mend)
{
	check_line(c, have ? GOOD : without, what, have ? "yes" : "no", have ? NULL : mend);
}

static void check_kvm(struct check *c, const struct kvm_host *h)
{
	static const char old[] = "needs a newer host kernel (Linux 4.18 or later)";
	char text[80];

	snprintf(text, sizeof(text), "version %d", h->api);
	check_line(c, GOOD, "KVM API", text, NULL);
	check_cap(c, "in-kernel irqchip", h->irqchip, BAD, old);
	check_cap(c, "in-kernel PIT", h->pit2, NOTE, "guests that need the PIT will not tick");
	check_cap(c, "immediate_exit", h->immediate_exit, BAD, old);
	snprintf(text, sizeof(text), "mask 0x%x (registers, special registers%s)", h->sync_regs,
		 h->sync_regs & KVM_SYNC_X86_EVENTS ? ", events" : "");
	check_line(c, (h->sync_regs & 3) == 3 ? GOOD : BAD, "KVM_CAP_SYNC_REGS", text,
		   (h->sync_regs & 3) == 3 ? NULL : old);
	check_cap(c, "KVM_GET_MP_STATE (idle)", h->mp_state, BAD, old);
	snprintf(text, sizeof(text), "%u (kvmprof uses up to %d)", h->max_vcpus, VM_MAX_VCPUS);
	check_line(c, GOOD, "vCPUs", text, NULL);
	check_cap(c, "binary statistics", h->stats_fd, NOTE, "exit counts inside KVM stay unknown");
	check_cap(
		c, "nested guests are told apart", h->nested_flag, NOTE,
		"guests of ours see neither VMX nor SVM; of another VMM's guest that runs guests, "
		"samples are unknown (Linux 6.11 tells them apart)");
	check_cap(c, "guest debug registers", h->guest_debug, NOTE,
		  "needed only on hosts with the SYSCALL quirk below");
}

static const char *check_backend(void)
{
	static const struct {
		const char *path, *name;
	} modules[] = {
		{ "/sys/module/kvm_intel", "VMX (kvm_intel)" },
		{ "/sys/module/kvm_amd", "SVM (kvm_amd)" },
		{ "/sys/module/kvm_pvm", "page tables only (kvm_pvm)" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(modules); i++)
		if (access(modules[i].path, F_OK) == 0)
			return modules[i].name;
	return "unknown (built into the kernel)";
}

static void check_tsc(struct check *c, const struct quirks *q)
{
	char text[160];

	snprintf(text, sizeof(text), "%u kHz%s", q->tsc_khz,
		 q->tsc_fixed ? ", the host's: it can't be set" : "");
	check_line(c, q->tsc_khz && !q->tsc_fixed ? GOOD : NOTE, "guest TSC",
		   q->tsc_khz ? text : "rate unknown",
		   q->tsc_fixed ? "worked around for snapshots: their guests get kvm-clock" : NULL);
}

static void check_quirks(struct check *c, const struct kvm_host *h)
{
	struct quirks q;
	char text[160];

	check_line(c, GOOD, "KVM back end", check_backend(), NULL);
	quirks_probe(h, &q);
	quirks_cache_store(&q);
	quirks_release(&q);
	if (!q.probed) {
		check_line(c, NOTE, "quirk probe", q.why, "kvmprof assumes a host without quirks");
		check_tsc(c, &q);
		return;
	}
	snprintf(text, sizeof(text), "%s: %.1f ns an instruction (probe took %.1f ms)",
		 q.interpreted ? "interpreted" : "runs natively", (double)q.ring0_ps_per_insn / 1e3,
		 (double)q.probe_ns / 1e6);
	check_line(
		c, q.interpreted ? NOTE : GOOD, "guest ring 0", text,
		q.interpreted
			? "kernel time is inflated against user time; use a host with VMX or SVM "
			  "for absolute figures"
			: NULL);
	check_line(c, q.syscall_keeps_cpl ? NOTE : GOOD, "SYSCALL from ring 3",
		   q.syscall_keeps_cpl ? "keeps CPL 3" : "enters ring 0",
		   q.syscall_keeps_cpl
			   ? "worked around with a breakpoint (about 10 us a system call)"
			   : NULL);
	if (q.interpreted) {
		check_line(c, q.refuses_insns ? NOTE : GOOD, "instruction emulation",
			   q.refuses_insns ? "has gaps" : "complete",
			   q.refuses_insns ? "worked around: kvmprof finishes what KVM refuses"
					   : NULL);
		check_line(
			c, q.zero_counts_wrong ? NOTE : GOOD, "LZCNT and TZCNT in ring 0",
			q.zero_counts_wrong ? "run as BSR and BSF: wrong results" : "right",
			q.zero_counts_wrong
				? "worked around: hidden from the guest's CPUID, with BMI1 and BMI2"
				: NULL);
		check_line(c, q.cpuid_leaks ? NOTE : GOOD, "CPUID leaf 7",
			   q.cpuid_leaks ? "has the host's bits, not those set for the guest"
					 : "as it is set",
			   q.cpuid_leaks
				   ? "worked around: guests get none; programs that need AVX2 or "
				     "x86-64-v3 don't run"
				   : NULL);
		check_line(
			c, q.hypercalls_hang ? NOTE : GOOD, "hypercalls",
			q.hypercalls_hang ? "never return" : "work",
			q.hypercalls_hang
				? "worked around: what uses them is hidden from the guest's CPUID"
				: NULL);
	}
	check_tsc(c, &q);
}

/* Opened as a run would open it; the mend is for all causes, which found names. */
static void check_counter(struct check *c, const char *what, struct vm_counter counter,
			  const char *mend)
{
	struct err why = { 0 };
	bool alone = counter.exclude_host;
	int ret = counter_probe(&counter, COUNTER_PERIOD, &why);

	if (ret)
		check_line(c, NOTE, what, why.text, mend);
	else
		check_line(c, GOOD, what,
			   alone == counter.exclude_host ? "yes" : "yes, with the host's share",
			   NULL);
}

static void check_perf(struct check *c)
{
	cleanup_fclose FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int paranoid = 99;
	char text[80];

	check_counter(c, "hardware PMU",
		      (struct vm_counter){ .type = PERF_TYPE_HARDWARE,
					   .config = PERF_COUNT_HW_CPU_CYCLES,
					   .exclude_host = true },
		      "timer sampling works all the same");
	check_counter(c, "software perf events",
		      (struct vm_counter){ .type = PERF_TYPE_SOFTWARE,
					   .config = PERF_COUNT_SW_TASK_CLOCK },
		      "-e cpu samples at the host's ticks then");
	if (f && fscanf(f, "%d", &paranoid) == 1) {
		snprintf(text, sizeof(text), "%d", paranoid);
		check_line(c, paranoid <= 2 || geteuid() == 0 ? GOOD : NOTE, "perf_event_paranoid",
			   text,
			   paranoid <= 2 || geteuid() == 0 ? NULL
							   : "sysctl kernel.perf_event_paranoid=2");
	}
}

static void check_sandbox(struct check *c)
{
	struct sandbox_host host;
	char text[160];

	sandbox_probe(&host);
	host.mounts = namespace_probe();
	snprintf(text, sizeof(text), "no_new_privs, capabilities%s",
		 host.seccomp ? ", seccomp" : "");
	if (host.mounts)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 ", mount namespaces for shares");
	if (host.landlock)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ", Landlock ABI %d%s",
			 host.landlock, host.landlock < 4 ? " (files, not TCP)" : "");
	check_line(c, host.seccomp && host.landlock && host.mounts ? GOOD : NOTE,
		   "sandbox of a run", text,
		   !host.seccomp ? "system calls are not filtered: the host's kernel has no seccomp"
		   : host.without ? host.without
		   : host.mounts  ? NULL
				 : "the process of a share sees the names of other files: no mount "
				   "namespace is allowed");
}

#define OPTION_STRUCT struct check
static const struct option_row rows[] = {
	{ "json", 0, NULL, "one JSON object: works, and checks with name, verdict, found and mend",
	  OPTION_PUT(json, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof check [--json]\n"
		 "\n"
		 "Print what this host offers for profiling guests. Exit status 0: kvmprof run "
		 "works\n"
		 "here (perhaps with notes); 1: it does not.\n"
		 "\n",
	.rows = rows,
	.order = OPTION_ALONE,
};

/* Checks what a host without KVM can do. */
static void check_exact(struct check *c)
{
	struct err e = { 0 };
	struct engine n;
	char text[sizeof(n.version) + 64];

	if (engine_find(&n, &e)) {
		check_line(c, NOTE, "run --engine exact", "not here", e.text);
		return;
	}
	snprintf(text, sizeof(text), "QEMU %s loads the plugin (interface %d of %d)", n.version,
		 n.api, n.api_newest);
	check_line(c, GOOD, "run --engine exact", text, NULL);
}

/* Returns whether $PATH has an executable file of this name. */
static bool is_in_path(const char *name)
{
	const char *path = getenv("PATH");
	char file[4096];

	while (path && *path) {
		const size_t n = strcspn(path, ":");

		snprintf(file, sizeof(file), "%.*s/%s", (int)n, path, name);
		if (n && access(file, X_OK) == 0)
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

/* The VMMs with which `kvmprof attach` was tried (docs/microvm.md). */
static void check_vmms(struct check *c)
{
	static const struct {
		const char *program, *tried;
	} vmm[] = {
		{ "firecracker", "attach was tried with 1.17.0-dev, with filters and jailer" },
		{ "cloud-hypervisor", "attach was tried with v54, with its filters" },
		{ "lkvm", "attach was tried with kvmtool b48735e" },
		{ "qemu-system-x86_64", "attach was tried with 7.2" },
		{ "crosvm", "attach was not tried, and should work" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(vmm); i++)
		if (is_in_path(vmm[i].program))
			check_line(c, GOOD, vmm[i].program, vmm[i].tried, NULL);
}

int cmd_check(int argc, char **argv)
{
	struct check c = { .failed = false };
	struct buf *b = &c.checks.own;
	struct json_writer w;
	bool out_of_memory;
	struct kvm_host h = { .fd = -1 };
	struct err e = { 0 };
	struct utsname u;
	int status = cmd_options(&set, &c, argc, argv);

	if (status >= 0)
		return status;
	json_begin(&c.checks, b);
	json_array_begin(&c.checks, NULL);
	if (uname(&u) == 0)
		check_line(&c, GOOD, "host kernel", u.release, NULL);
	if (kvm_host_open(&h, &e) < 0) {
		check_line(&c, BAD, "KVM", "not usable", e.text);
	} else {
		check_kvm(&c, &h);
		check_quirks(&c, &h);
		kvm_host_close(&h);
	}
	check_perf(&c);
	check_sandbox(&c);
	check_exact(&c);
	check_vmms(&c);
	if (!c.json) {
		printf("\nkvmprof run %s on this host.\n", c.failed ? "does NOT work" : "works");
		buf_deinit(b);
		return c.failed;
	}
	json_array_end(&c.checks);
	buf_u8(b, 0);
	json_open(&w);
	json_put(&w, "works", json_of_bool(!c.failed));
	json_raw(&w, "checks", b->failed ? NULL : (const char *)b->data);
	out_of_memory = json_close(&w, stdout) != 0;
	buf_deinit(b);
	return out_of_memory ? cmd_no_memory() : c.failed;
}
