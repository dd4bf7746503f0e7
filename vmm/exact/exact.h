/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exact: a machine that QEMU emulates while it counts instructions, presented as a struct vm.
 *
 * Time is virtual: EXACT_NS_PER_INSN for each instruction. A vCPU is stopped at each sample until
 * the consumer has processed it and calls vm_wait_samples() for the next one, so that all guest state is
 * read at a known count of instructions. Two runs with the same inputs are the same. Nothing is
 * written into the guest.
 *
 * Except for the machine's own thread-safe operations (vm_stop() and the like), all functions run
 * on the consumer's thread: the guest runs inside vm_wait_samples().
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

/* The shift of QEMU's -icount: each instruction advances the virtual clock by 2^3 ns. */
#define EXACT_SHIFT 3u
#define EXACT_NS_PER_INSN (1u << EXACT_SHIFT)
/*
 * Virtual time in ns at which instruction n (from 1) is executed. It is never 0, which often means
 * "not yet".
 */
#define EXACT_NS_AT(n) (((uint64_t)(n) + 1) * EXACT_NS_PER_INSN)
/* Under -icount, QEMU's TSC counts the virtual clock's nanoseconds. */
#define EXACT_TSC_KHZ 1000000u
/* Date of the guest's real-time clock at the start. */
#define EXACT_RTC "2026-01-01"
#define EXACT_CPU_MODEL "qemu64,-rdrand"
/*
 * QEMU's pc has all RAM below the PCI hole up to EXACT_RAM_FITS; with more RAM, EXACT_RAM_LOW
 * bytes are below and the rest begins at 4 GiB.
 */
#define EXACT_RAM_LOW (UINT64_C(3) << 30)
#define EXACT_RAM_FITS (UINT64_C(3584) << 20)
#define EXACT_MAX_AT 4u
/* Parts that begin at a function; the time before the first is another part. */
#define EXACT_MAX_PARTS 4u
#define EXACT_MAX_DISKS VM_MAX_DISKS

/* Borrowed bytes. */
struct exact_bytes {
	const void *data;
	size_t len;
};

/* A traced run: see trace.h. */
struct exact_trace {
	int fd; /* memory file of TRACE_SIZE bytes without data; -1: no trace */
	struct trace_plan plan;
	/*
	 * If nat is not 0: sample at these instructions, in ascending order, instead of once in
	 * each period. The run ends at the last one.
	 */
	uint64_t at[EXACT_MAX_AT];
	unsigned int nat;
};

/*
 * A part of the run begins when the instruction at addr is executed first, unless a later part has
 * begun already.
 */
struct exact_part {
	const char *name; /* borrowed for as long as the machine exists */
	uint64_t addr;	  /* as linked, without the kernel's slide */
};

/* The files that QEMU opens by name, except memory files and pipes. */
struct exact_needs {
	const struct engine *engine; /* paths of QEMU and of the plugin */
	const struct nvdimm *disk;
	int disk_fd[EXACT_MAX_DISKS]; /* descriptor numbers in the child */
	unsigned int ndisks;
};

/* How QEMU is confined. The functions are called on the thread that opens the machine. */
struct exact_jail {
	void *ctx;
	unsigned long namespaces; /* CLONE_NEW* of clone(2) */
	uid_t uid;		  /* owner of the console's pipe; geteuid(): unchanged */
	/* Called before the child exists. Returns 0, or -errno with *e set. */
	int (*needs)(void *ctx, const struct exact_needs *needs, struct err *e);
	/* Called in the parent while the child waits. Returns 0 or -errno. */
	int (*made)(void *ctx, pid_t pid);
	/*
	 * Called in the child before execve(2). Returns 0, or -errno with *what set to the name of
	 * the step that failed.
	 */
	int (*enter)(void *ctx, const char **what);
};

#define EXACT_BZIMAGE UINT64_C(0x100000) /* QEMU hw/i386/x86.c, x86_load_linux(): prot_addr */

struct exact_config {
	struct exact_jail *jail; /* NULL: QEMU keeps all our rights */
	/* whole files, borrowed until exact_open() returns; initrd may be empty */
	struct exact_bytes kernel, initrd;
	/*
	 * Guest-physical range into which QEMU loads a bzImage's protected-mode code; 0, 0: not a
	 * bzImage.
	 */
	uint64_t boot_low, boot_high;
	const char *cmdline; /* borrowed for as long as the machine exists */
	uint64_t mem_size;   /* bytes */
	unsigned int vcpus;
	/* Disks that become NVDIMMs, in order. They may be closed after exact_open(). */
	struct disk *disk[EXACT_MAX_DISKS];
	unsigned int ndisks;
	uint64_t period; /* instructions per sample */
	bool reboots; /* whether a reset of the guest restarts it instead of ending the machine */
	bool strict;  /* whether samples are exactly one period apart instead of drawn within it */
	bool counts;  /* count every instruction by calling context */
	const struct exact_trace *trace; /* NULL: no trace. Not together with counts */
	struct capture_plan plan;
	size_t ring_size;
	bool idle_start, look_for_kernel;
	struct vm_breakpoint breakpoint[VM_MAX_BREAKPOINTS];
	unsigned int nbreakpoints;
	struct exact_part part[EXACT_MAX_PARTS]; /* in the order in which they begin */
	unsigned int nparts;
	const struct kvm_host *host; /* a struct without an open KVM */
	const struct quirks *quirks;
	void (*console)(void *ctx, uint8_t byte);
	void *console_ctx;
	/*
	 * Called before each sample, after the console has received everything written so far. May
	 * be NULL.
	 */
	void (*moment)(void *ctx, uint64_t now_ns);
	void *moment_ctx;
	int (*ready)(void *ctx,
		     struct err *e); /* called when the machine starts, as in vm_config */
	void *ready_ctx;
};

/* Whether a driver of the guest uses its disks, according to the kernel's page tables. */
enum exact_disks { EXACT_DISKS_NOT_KNOWN, EXACT_DISKS_TAKEN, EXACT_DISKS_NOT_TAKEN };

/* Facts about the run, for the summary and the profile. */
struct exact_facts {
	struct engine engine;
	unsigned int plugin; /* version of the plugin (EXACT_VERSION) */
	const char *machine; /* QEMU's options that define the machine */
	const char *cmdline; /* command line of the kernel */
	uint64_t mem_size;
	unsigned int vcpus;
	char kernel_sha256[65], initrd_sha256[65]; /* hexadecimal; "": no such file */
	const struct nvdimm *disk;
	unsigned int ndisks;
	enum exact_disks disks; /* known when the run has ended */
	uint64_t period;
	bool strict;
	bool counts; /* every instruction is counted; samples only distinguish processes */
	uint64_t instructions; /* instructions executed by the guest, all vCPUs together */
	uint64_t begun;	       /* instructions executed before samples or counts were collected */
	unsigned int nparts, parts_begun;
	struct exact_part part[EXACT_MAX_PARTS];
	/* The instruction with which each part begins; 0: the part never began. */
	uint64_t part_at[EXACT_MAX_PARTS];
};

struct countfile;

/*
 * Starts QEMU, stopped before the guest's first instruction, and creates the vm. Copies *cfg; the
 * members' comments state what must outlive the call. Returns 0, or -errno with the reason in *e.
 * The caller destroys *out with vm_destroy().
 */
int exact_open(struct vm **out, const struct exact_config *cfg, struct err *e);
/*
 * Returns the facts of vm, or NULL if exact_open() did not create it. They belong to vm and are
 * final after vm_join().
 */
const struct exact_facts *exact_facts_of(const struct vm *vm);
/*
 * Parses the counts of a machine with cfg.counts; call it after vm_join(). Returns 0; -EINVAL or
 * -EFBIG if QEMU has written none, damaged ones or too many, -ENOMEM, or another -errno, with the
 * reason in *e. The caller frees *out with countfile_deinit().
 */
int exact_counts_of(const struct vm *vm, struct countfile *out, struct err *e);

#endif
