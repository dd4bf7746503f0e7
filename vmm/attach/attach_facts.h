/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach_facts: describes a machine that another process runs, and how it was sampled, as a value.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_FACTS_H
#define KVMPROF_VMM_ATTACH_ATTACH_FACTS_H

#include "vmm/attach/choice.h"
#include "vmm/attach/peek_status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The facts about the machine and its samples, for the summary. */
struct attach_facts {
	pid_t pid;
	char name[16];
	unsigned int vcpus, not_running; /* vCPUs that are sampled, and vCPUs that do not run */
	unsigned int added;		 /* vCPUs that were added while it was sampled */
	char added_ids[160];		 /* their numbers, as text */
	uint64_t memory;		 /* bytes of guest memory whose place is known */
	unsigned int regions;
	unsigned int proofs;	  /* checks by which the regions were proven */
	bool partial;		  /* there is more RAM than is known */
	bool memory_from_kvm;	  /* the regions are KVM's own list, read by BPF */
	char memory_why_not[480]; /* why they are not; "": they are, or this was not tried */
	uint64_t in_vmm;	  /* samples while the thread worked outside of KVM_RUN */
	/* Stops without a sample, because no guest had run since the last stop. */
	uint64_t too_soon;
	uint64_t signals;      /* signals of other processes that were passed on */
	uint64_t reads;	       /* system calls that read guest memory while vCPUs were held */
	uint64_t absent;       /* samples that lack data whose page is not in memory */
	uint64_t brought;      /* bytes of guest memory that came into memory for kvmprof's reads */
	uint64_t from_file;    /* bytes of absent pages that were read from their file */
	uint64_t absent_names; /* reads for names that ended at such a page */
	unsigned int machines; /* further machines that the process has made */
	bool bpf;	       /* BPF was used until the end */
	char why_not[480];     /* why BPF is not used; "": it is used, or was not requested */
	uint64_t by_bpf, by_ptrace,
		without_stop; /* samples; without_stop: taken from a thread that slept */
	/* Periods without samples: the machine was paused; the thread slept in the VMM. */
	uint64_t paused, away;
	/* These periods in ns, and the time of vCPUs that were never started. */
	uint64_t paused_ns, away_ns, unstarted_ns;
	uint64_t thread_stops, sampling_ns; /* stops of threads, and the duration of sampling */
	uint64_t peeks[PEEK_STATUSES];	    /* attempts by BPF, by result */
	struct choice_tally tally[CHOICE_TECHNIQUES]; /* AUTO if BPF can be used, else 0 */
	uint64_t compared; /* registers compared with KVM's, none of which differed */
	/* Times of a followed VMM (CLOCK_MONOTONIC); 0: it was not followed. */
	uint64_t exec_ns, vm_ns, run_ns, go_ns; /* execve(2), a machine, a KVM_RUN, samples begin */
	/*
	 * The first sample, and how long its vCPU's thread and the tracer had waited for a
	 * processor since go_ns.
	 */
	uint64_t first_ns, first_waited_ns, first_own_waited_ns;
	/* Machine behind a gdbstub (pid 0), which is stopped as a whole. */
	char where[256];
	bool virtual_only;	      /* only memory of the current address space can be read */
	uint64_t stops, memory_stops; /* all stops, and those only for reads of names */
	uint64_t stood_ns, longest_ns;
};

#endif
