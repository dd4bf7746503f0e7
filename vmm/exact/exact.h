/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exact: a machine that QEMU emulates by counting instructions, as a struct vm.
 *
 * Time is virtual: EXACT_NS_PER_INSN for each instruction. A vCPU stands for each sample until
 * the consumer has taken it and asks for the next (vm_rest()), so that all that is read of the
 * guest is read at a count of instructions. Two runs of the same inputs are the same. Nothing is
 * written into the guest.
 *
 * All work is done on the consumer's thread, in vm_rest().
 */
#ifndef KVMPROF_VMM_EXACT_EXACT_H
#define KVMPROF_VMM_EXACT_EXACT_H

#include "vmm/exact/engine.h"
#include "vmm/exact/nvdimm.h"
#include "vmm/exact/trace.h"
#include "base/capture_plan.h"
#include "base/event.h"
#include "base/limits.h"

#include <sys/types.h>

struct disk;

struct vm;

/* icount's shift: QEMU's virtual clock goes on by 2^3 ns with each instruction. */
#define EXACT_SHIFT 3u
#define EXACT_NS_PER_INSN (1u << EXACT_SHIFT)
/* When instruction n, from 1 on, is executed: ns of virtual time. 0 is "not yet" in many places. */
#define EXACT_NS_AT(n) (((uint64_t)(n) + 1) * EXACT_NS_PER_INSN)
/* QEMU's TSC under icount counts its virtual clock's ns. */
#define EXACT_TSC_KHZ 1000000u
/* What the guest's clock says first. */
#define EXACT_RTC "2026-01-01"
#define EXACT_CPU_MODEL "qemu64,-rdrand"
/* RAM that lies below the PCI hole of QEMU's pc, where there is more than fits. */
#define EXACT_RAM_LOW (UINT64_C(3) << 30)
#define EXACT_RAM_FITS (UINT64_C(3584) << 20)
#define EXACT_MAX_AT 4u
#define EXACT_MAX_PARTS 4u /* that begin at a function; what is before them is one more */
#define EXACT_MAX_DISKS VM_MAX_DISKS

struct exact_bytes {
	const void *data;
	size_t len;
};

/* A run that is looked at more closely: see trace.h. */
struct exact_trace {
	int fd; /* a memory file of TRACE_SIZE bytes, all holes; -1: nothing is traced */
	struct trace_plan plan;
	/*
	 * In place of samples at each `period`: at these instructions, in ascending order. The run ends
	 * there, at the last one. nat 0: as ever.
	 */
	uint64_t at[EXACT_MAX_AT];
	unsigned int nat;
};

/* A part of the run begins where this is executed first, if no later one has begun. */
struct exact_part {
	const char *name; /* stays there */
	uint64_t addr;	  /* as linked */
};

/* Files that QEMU opens by name, but for memory and pipes. */
struct exact_needs {
	const struct engine *engine; /* the program and the plugin */
	const struct nvdimm *disk;
	int disk_fd[EXACT_MAX_DISKS]; /* as the child has them */
	unsigned int ndisks;
};

/* How QEMU is confined. */
struct exact_jail {
	void *ctx;
	unsigned long namespaces; /* CLONE_NEW* of clone(2) */
	uid_t uid;		  /* whom its console's pipe belongs to; ours: as it is */
	/* Before the child is there. */
	int (*needs)(void *ctx, const struct exact_needs *needs, struct err *e);
	/* In the parent, while the child waits. 0 or -errno. */
	int (*made)(void *ctx, pid_t pid);
	/* In the child, before execve(2). 0, or -errno, and *what of. */
	int (*enter)(void *ctx, const char **what);
};

#define EXACT_BZIMAGE UINT64_C(0x100000) /* QEMU hw/i386/x86.c, x86_load_linux(): prot_addr */

struct exact_config {
	struct exact_jail *jail;	   /* NULL: it has all rights that we have */
	struct exact_bytes kernel, initrd; /* whole files; initrd may be empty */
	/* Guest-physical range into which QEMU loads a bzImage's protected-mode code; 0: it is not a bzImage. */
	uint64_t boot_low, boot_high;
	const char *cmdline; /* stays there as long as the machine */
	uint64_t mem_size;   /* bytes */
	unsigned int vcpus;
	/* NVDIMMs, in order; they may be closed once the machine is there. */
	const struct disk *disk[EXACT_MAX_DISKS];
	unsigned int ndisks;
	uint64_t period;		 /* instructions */
	bool reboots;			 /* a reset of the guest does not end the machine */
	bool strict;			 /* samples are exactly a period apart */
	bool counts;			 /* of every instruction, by calling context */
	const struct exact_trace *trace; /* NULL: none. Not with counts */
	struct capture_plan plan;
	size_t ring_size;
	bool idle_start, look_for_kernel;
	struct vm_breakpoint breakpoint[VM_MAX_BREAKPOINTS];
	unsigned int nbreakpoints;
	struct exact_part part[EXACT_MAX_PARTS]; /* in their order */
	unsigned int nparts;
	const struct kvm_host *host; /* of a machine that has no KVM: not open */
	const struct quirks *quirks;
	void (*console)(void *ctx, uint8_t byte);
	void *console_ctx;
	/* Before each sample, when the console has what was written until then; may be NULL. */
	void (*moment)(void *ctx, uint64_t now_ns);
	void *moment_ctx;
	int (*ready)(void *ctx, struct err *e); /* as in vm_config */
	void *ready_ctx;
};

/* Whether a driver of the guest's has taken its disks, by the kernel's page tables. */
enum exact_disks { EXACT_DISKS_NOT_KNOWN, EXACT_DISKS_TAKEN, EXACT_DISKS_NOT_TAKEN };

/* What was run, for the summary and the profile. */
struct exact_facts {
	struct engine engine;
	unsigned int plugin; /* EXACT_VERSION */
	const char *machine; /* QEMU's options that make the machine what it is */
	const char *cmdline; /* the kernel's */
	uint64_t mem_size;
	unsigned int vcpus;
	char kernel_sha256[65], initrd_sha256[65]; /* hex; "": there is none */
	const struct nvdimm *disk;
	unsigned int ndisks;
	enum exact_disks disks; /* once the run is over */
	uint64_t period;
	bool strict;
	bool counts;	       /* every instruction is counted: samples only tell processes apart */
	uint64_t instructions; /* that the guest has executed, on all vCPUs */
	uint64_t begun;	       /* ... before samples or counts were collected */
	unsigned int nparts, parts_begun;
	struct exact_part part[EXACT_MAX_PARTS];
	uint64_t
		part_at[EXACT_MAX_PARTS]; /* the instruction that it begins with; 0: it never did */
};

struct countfile;

int exact_open(struct vm **out, const struct exact_config *cfg, struct err *e);
/* Of a vm that came from it; NULL: it did not. After vm_join() it is final. */
const struct exact_facts *exact_facts_of(const struct vm *vm);
/* After vm_join(), with cfg.counts: the counts. -EINVAL, -ENOMEM: there are none, and why. */
int exact_counts_of(const struct vm *vm, struct countfile *out, struct err *e);

#endif
