/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach: a virtual machine that another process runs, as a struct vm.
 *
 * After vm_attach() all of vm.h holds, but for what needs to be the VMM: there is no
 * console, and vm_end() lets the machine go on without us. One thread of ours, the
 * tracer's, holds each vCPU thread for its samples; capture is what it is for a guest of
 * our own, on the shared kvm_run pages. Nothing is written into the guest, nor into the
 * process beyond that page's request for registers, which the end takes back.
 */
#ifndef KVMPROF_VMM_ATTACH_ATTACH_H
#define KVMPROF_VMM_ATTACH_ATTACH_H

#include "vmm/attach/choice.h"
#include "vmm/attach/peek_status.h"
#include "vmm/vm.h"

#include <sys/types.h>

/* How samples are taken. */
enum attach_technique {
	ATTACH_AUTO = 0, /* as BPF or as PTRACE, whichever sees more: choice.h */
	ATTACH_BPF,	 /* by BPF what it can see, else by ptrace; an error where BPF can't be */
	ATTACH_PTRACE,	 /* each sample stops its thread, and BPF is not used for memory either */
};

struct attach_config {
	pid_t pid;
	const char *gdb; /* HOST:PORT of a gdbstub in place of the pid, see gdb.c; NULL: none */
	const struct kvm_host *host; /* of its capabilities; not used with gdb */
	const struct quirks *quirks;
	struct vm_event event; /* WALL or HOST; gdb: WALL */
	struct capture_plan plan;
	size_t ring_size; /* bytes for each vCPU */
	bool idle_start;
	enum attach_technique technique;
};

/* What was found, for the summary. */
struct attach_facts {
	pid_t pid;
	char name[16];
	unsigned int vcpus, not_running; /* those that are sampled, and others */
	uint64_t memory;		 /* bytes that are known */
	unsigned int regions;
	unsigned int proofs;	  /* that they rest on */
	bool partial;		  /* there is more RAM than is known */
	bool memory_told;	  /* the regions are KVM's own list, read by BPF */
	char memory_why_not[480]; /* why they are not; "": they are, or it was not tried */
	uint64_t in_vmm;   /* samples while the thread worked for the guest outside of KVM_RUN */
	uint64_t too_soon; /* stops at which no guest had run since the last: no samples */
	uint64_t signals;  /* of others, passed on */
	uint64_t reads;	   /* system calls that read guest memory while vCPUs were held */
	bool bpf;	   /* BPF is used, to the end */
	char why_not[480]; /* why BPF is not used; "": it is, or was not asked for */
	uint64_t by_bpf, by_ptrace;		      /* samples */
	uint64_t peeks[PEEK_STATUSES];		      /* attempts by BPF, and what came of them */
	struct choice_tally tally[CHOICE_TECHNIQUES]; /* AUTO where BPF can be, else 0 */
	uint64_t compared; /* registers held against KVM's, none of which differed */
	/* Through a gdbstub (pid 0): the machine stood as a whole. */
	char where[256];
	bool virtual_only;	      /* memory of the address space in use only */
	uint64_t stops, memory_stops; /* all of them, and those for names alone */
	uint64_t stood_ns, longest_ns;
};

/*
 * Find, prove and hold; vm_start() begins to sample. Errors say what is missing. The
 * process goes on unharmed whatever comes out. -EAGAIN: the guest is not in 64-bit mode, and
 * has not been for seconds: firmware perhaps; try again.
 */
int vm_attach(struct vm **out, const struct attach_config *cfg, struct err *e);
/*
 * The same for a machine behind a gdbstub (cfg->gdb). It stands for each sample, and for the
 * consumer's reads of its memory: slow. What stands is not on the samples' clock: their weights
 * add up to the time that it ran.
 */
int vm_attach_gdb(struct vm **out, const struct attach_config *cfg, struct err *e);
/*
 * Around a stop of this whole process (SIGTSTP): on return from rest the other machine runs, and
 * nothing in it waits for us, until resume. Samples are taken from vm_start() on, and not between
 * the two; that time is not on their clock. Both by one thread. Only after vm_attach() or
 * vm_attach_gdb(), at any time until vm_destroy().
 */
void vm_attach_rest(struct vm *vm);
void vm_attach_resume(struct vm *vm);
/* Of a vm that came from one of these; after vm_join() they are final. */
void vm_attach_facts(const struct vm *vm, struct attach_facts *out);

#endif
