/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options: the command line of `kvmprof run`, parsed and checked.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_OPTIONS_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_OPTIONS_H

#include "base/option.h"
#include "base/reporter.h"
#include "profile/record/counters/events.h"
#include "profile/record/options/disk.h"
#include "profile/record/options/snapshot.h"
#include "profile/record/options/exec.h"
#include "profile/record/sandbox/sandbox.h"
#include "vmm/attach/attach.h"
#include "vmm/dev/net_link.h"
#include "vmm/gmem_alloc.h"
#include "vmm/image/way.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Of --mark and of --mark-at on a command line. */
#define RUN_MARKS_MAX 16u
#define RUN_APPEND_MAX 16u /* times that --append may be given */

#define RUN_MODULES_MAX 16u /* BOOT_MAX_MODULES */

struct exact_trace;

/* What runs a guest of our own. */
enum run_engine {
	RUN_ENGINE_KVM,
	RUN_ENGINE_EXACT, /* QEMU, by counting instructions: vmm/exact */
};

/* Options about the guest's tasks and the status line. All zero: none of them is given. */
struct run_tasks {
	bool off_cpu;
	double off_cpu_ms; /* 0: the default */
	bool ps_at_end;
	bool no_status;
};

struct run_options {
	const char *command;		 /* "run", for messages */
	const struct reporter *reporter; /* the command's; outlives the run */
	FILE *help;			 /* where --help prints; NULL: nowhere */
	pid_t attach;			 /* of the VMM to attach to; 0: none, a guest of our own */
	enum attach_technique technique;
	unsigned int attach_machine; /* --vm: of those of the process; 0: the only one */
	enum run_engine engine;
	const char *gdb;	 /* HOST:PORT of a gdbstub to attach to; NULL: none */
	const char *attach_name; /* what its guest is called in messages */
	const char *domain;	 /* name, or file with a libvirt definition; NULL: none */
	const char *connect;	 /* libvirt's URI; NULL: as virsh */
	const char *image;	 /* a kernel or a disk image; NULL: the embedded demo */
	const char *kernel;	 /* in place of the disk's; alone it is the image */
	const char *root;	 /* for root=, with a disk image */
	const char *output;	 /* "perf.data"; NULL: no profile is kept */
	const char *initrd, *cmdline, *symbols, *buildid_dir;
	bool summary;			    /* what it counted is printed at the end */
	const char *append[RUN_APPEND_MAX]; /* in the order of the command line */
	unsigned int nappend;
	const char *guest_root, *debuginfo; /* directories with the guest's programs */
	double freq_hz;			    /* 997 */
	uint64_t period;		    /* -c, 0: not given */
	struct events events;		    /* -e, none given: wall */
	double duration_s;		    /* 0: until the guest ends */
	bool reboot;	     /* a reset of the guest starts it anew instead of ending the run */
	double max_overhead; /* percent; 0: no bound */
	/* When to collect samples, and what to note: see profile/record/run/markers.h. NULL or 0: not given. */
	const char *start_on, *stop_on; /* expressions for the console */
	const char *start_at, *stop_at; /* SYMBOL[+OFFSET] */
	const char *mark_on[RUN_MARKS_MAX], *mark_at[RUN_MARKS_MAX];
	unsigned int nmark_on, nmark_at;
	double delay_s;
	uint64_t max_samples;
	const char *control; /* path of the control socket, or "auto"; NULL: none */
	uint64_t ring_size;  /* bytes, of each vCPU's ring, or with overwrite of the samples kept */
	bool overwrite;	     /* keep the newest samples only */
	uint32_t max_stack;  /* frames; 0: all */
	struct exec_options exec;
	const char *vcpu_list; /* that give samples; NULL: all */
	uint64_t mem_size;     /* bytes */
	enum boot_way boot;    /* BOOT_WAY_AUTO: as the image wants */
	uint64_t entry;	       /* of a kernel that is entered directly; 0: as the ELF says */
	enum gmem_pages pages;
	int numa_node;			     /* -1: wherever */
	int pin[VM_MAX_VCPUS];		     /* host CPU of each vCPU */
	unsigned int npin;		     /* 0: --pin was not given */
	const char *module[RUN_MODULES_MAX]; /* FILE[=ARGS] */
	unsigned int nmodules;
	unsigned int vcpus;
	bool mem_given, vcpus_given;
	bool virtio_mmio, rng, virtio_console; /* devices.h */
	struct net_config net;
	char net_tap[16]; /* name of its interface */
	struct run_disk_options disk;
	struct run_snapshot_options snapshot;
	struct run_tasks tasks;
	enum sandbox_mode sandbox;
	uint32_t stack_size; /* bytes of one stack that are copied */
	bool python;	     /* show frames of Python's interpreter */
	bool mem;	     /* look up what memory the sampled instructions use */
	bool jitter, strict_event, tune, single_file, buildid_cache, quiet, json;
	const char *of_machine; /* the first option given that --snapshot refuses; NULL: none */
	const char *of_kvm;	/* ... that --engine exact refuses */
	bool call_counts;	/* --engine exact counts every instruction, by calling context */
	uint64_t repeat;	/* runs of --engine exact; 0: --repeat was not given */
	const struct exact_trace *trace; /* of profile/record/diverge, --engine exact; NULL: none */
};

/* "-": the profile goes to standard output, and the console to standard error. */
static inline bool run_options_to_stdout(const struct run_options *o)
{
	return o->output && o->output[0] == '-' && !o->output[1];
}

/* A machine that somebody else runs. */
static inline bool run_options_is_attached(const struct run_options *o)
{
	return o->attach || o->gdb;
}

static inline struct events_rate run_options_rate(const struct run_options *o)
{
	return (struct events_rate){
		.freq_hz = o->freq_hz,
		.period = o->period,
		.jitter = o->jitter,
		.strict = o->strict_event,
	};
}

/* A sample at each so many instructions, where --engine exact has no -c. */
#define RUN_EXACT_PERIOD 100000u
#define RUN_REPEAT_MAX 100u
#define RUN_STACK_MAX 16384u
#define RUN_MEM_MIN (16ull << 20)
#define RUN_MEM_DISK (1ull << 30) /* of a distribution (a disk, a UKI), when none is given */
#define RUN_FREQ_MAX 50000.0
/* The deepest sample, with all its stacks, needs 83 KiB. */
#define RUN_RING_MIN (256ull << 10)
#define RUN_RING_MAX (4ull << 30)
#define RUN_OVERWRITE_SIZE (64ull << 20) /* when --ring-size is not given */

/*
 * o is zero but for `reporter`, `help` and `command`, which may say that it is not "run": then `output` is
 * NULL unless it is given. Returns -1 when the options are good; else the exit status to end with: 0
 * after --help, 2 after a message about wrong usage.
 */
int run_options_parse(struct run_options *o, int argc, char **argv);

/* Sets the defaults, for commands that have only some of the options. It keeps `reporter` and `help`. */
void run_options_default(struct run_options *o);
/* All of them, about a struct run_options: for OPTION_AS(). */
extern const struct option_row run_option_rows[];
#define RUN_OPTIONS_COLUMN 26u /* of the texts in --help */
/*
 * option_parse() for the set's rows, which are about `at`. o is for messages. -1, or the exit
 * status.
 */
int run_options_take(const struct option_set *set, void *at, int argc, char **argv,
		     const struct run_options *o);
int run_options_check(struct run_options *o);
/* Returns the period of --off-cpu in ns; 0 without it. */
uint64_t run_options_off_cpu_ns(const struct run_options *o);
/* Reports in one line what is wrong. Returns the exit status 2. */
int run_options_wrong(const struct run_options *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * As run_options_check(), for what depends on the machine. With --domain it is known late: then
 * run_options_parse() leaves this to the caller.
 */
int run_options_check_machine(const struct run_options *o);

/*
 * A bit for each vCPU that gives samples, of `vcpus` that there are; 0: the user's list names
 * one that there is not.
 */
uint64_t run_options_vcpus(const struct run_options *o, unsigned int vcpus);

#endif
