/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * options: the command line of `kvmprof run`, parsed and checked. All functions are called by the
 * main thread.
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
#include "vmm/image/protocol.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* The most --mark and the most --mark-at on a command line. */
#define RUN_MARKS_MAX 16u
#define RUN_APPEND_MAX 16u /* the most --append */

#define RUN_MODULES_MAX 16u /* BOOT_MAX_MODULES */

struct exact_trace;

/* The engine that runs a guest of our own. */
enum run_engine {
	RUN_ENGINE_KVM,
	RUN_ENGINE_EXACT, /* QEMU, which counts instructions: vmm/exact */
};

/* Options for the guest's tasks and the status line. All zero: none of them is given. */
struct run_tasks {
	bool off_cpu;
	double off_cpu_ms; /* milliseconds; 0: the default */
	bool ps_at_end;
	bool no_status;
};

/* A VMM that `kvmprof attach` starts or waits for. All zero: none. */
struct run_launch_options {
	char *const *argv;    /* command line of the VMM; NULL: none is started */
	const char *wait_for; /* name of a VMM's program or machine to wait for; NULL: none */
	/* expression for the VMM's standard output that ends the run; NULL: none */
	const char *until;
	double timeout_s; /* time limit of the whole command, in seconds; 0: none */
};

enum run_action_kind {
	RUN_ACTION_NONE,
	RUN_ACTION_WHY,	 /* the reason is printed, and the run continues */
	RUN_ACTION_END,	 /* the reason is printed, and the run ends */
	RUN_ACTION_EXEC, /* a command is executed, and the run continues */
};

struct run_action {
	enum run_action_kind kind;
	const char *command; /* for the shell; borrowed */
};

/* What a run does when its guest hangs or panics. All zero: nothing. */
struct run_alarm_options {
	struct run_action on_hang, on_panic;
	double hang_s; /* what makes no progress for so many seconds hangs; 0: not given */
};

#define RUN_HANG_S 10.0 /* the default of hang_s */

/*
 * The options. Strings are borrowed from the command line; NULL or 0 means that an option is not
 * given, unless the comment says otherwise.
 */
struct run_options {
	const char *command;		 /* name for messages: "run" or another command */
	const struct reporter *reporter; /* the command's; must outlive the run */
	FILE *help;			 /* where --help is printed; NULL: nowhere */
	/* PID of the VMM to attach to; 0: none, the guest is our own */
	pid_t attach;
	struct run_launch_options launch;
	enum attach_technique technique;
	unsigned int attach_machine; /* --vm: which machine of the process; 0: the only one */
	enum run_engine engine;
	const char *gdb;	 /* HOST:PORT of a gdbstub to attach to */
	const char *still;	 /* a snapshot that is examined and does not run */
	const char *attach_name; /* name of its guest in messages */
	const char *domain;	 /* name of a libvirt domain, or file with its definition */
	const char *connect;	 /* URI of libvirt; NULL: as virsh */
	const char *image;	 /* a kernel or a disk image; NULL: the embedded demo */
	const char *kernel;	 /* replaces the disk's kernel; without a disk it is the image */
	const char *root;	 /* value of root=, with a disk image */
	/*
	 * path of the profile, such as "perf.data"; "-": standard output; NULL: no profile is kept
	 */
	const char *output;
	const char *view; /* path of a page that shows the profile; NULL: none */
	const char *initrd, *cmdline, *symbols, *buildid_dir;
	bool summary;			    /* print a summary at the end */
	const char *append[RUN_APPEND_MAX]; /* in the order of the command line */
	unsigned int nappend;
	/* directories with the guest's programs and with debug files */
	const char *guest_root, *debuginfo;
	double freq_hz;	      /* samples per second; the default is 997 */
	uint64_t period;      /* -c; 0: not given */
	struct events events; /* -e; none: wall */
	double duration_s;    /* seconds; 0: until the guest ends */
	/* a reset of the guest boots it again instead of ending the run */
	bool reboot;
	double max_overhead; /* percent; 0: no bound */
	/* When to collect samples, and what to mark: see profile/record/run/markers.h. */
	const char *start_on, *stop_on; /* expressions for the console */
	const char *start_at, *stop_at; /* SYMBOL[+OFFSET] */
	const char *mark_on[RUN_MARKS_MAX], *mark_at[RUN_MARKS_MAX];
	unsigned int nmark_on, nmark_at;
	double delay_s;
	uint64_t max_samples;
	const char *control; /* path of the control socket, or "auto"; NULL: none */
	/* bytes of each vCPU's ring; with `overwrite` of the samples that are kept */
	uint64_t ring_size;
	bool overwrite;	    /* keep the newest samples only */
	uint32_t max_stack; /* frames; 0: all */
	struct exec_options exec;
	const char *vcpu_list;	 /* the vCPUs that are sampled; NULL: all */
	uint64_t mem_size;	 /* bytes */
	enum boot_protocol boot; /* BOOT_PROTOCOL_AUTO: as the image requires */
	uint64_t entry;		 /* entry address of a kernel; 0: the one in the ELF header */
	enum gmem_pages pages;
	int numa_node;	       /* -1: any */
	int pin[VM_MAX_VCPUS]; /* host CPU of each vCPU */
	/* number of entries in pin[]; 0: --pin was not given */
	unsigned int npin;
	const char *module[RUN_MODULES_MAX]; /* FILE[=ARGS] */
	unsigned int nmodules;
	unsigned int vcpus;
	bool mem_given, vcpus_given;
	bool virtio_mmio, rng, virtio_console; /* devices.h */
	struct net_config net;
	char net_tap[16]; /* name of the TAP interface; "": none */
	struct run_disk_options disk;
	struct run_snapshot_options snapshot;
	struct run_tasks tasks;
	struct run_alarm_options alarm;
	enum sandbox_mode sandbox;
	uint32_t stack_size; /* bytes of one stack that are copied */
	bool python;	     /* show frames of Python's interpreter */
	bool mem;	     /* look up the memory that sampled instructions access */
	bool jitter, strict_event, tune, single_file, buildid_cache, quiet, json;
	const char *of_machine; /* the first given option that --snapshot refuses */
	const char *of_kvm;	/* the first given option that --engine exact refuses */
	/* --engine exact counts every instruction, by calling context */
	bool call_counts;
	/* number of runs with --engine exact; 0: --repeat was not given */
	uint64_t repeat;
	/* the trace of profile/record/diverge, with --engine exact; borrowed */
	const struct exact_trace *trace;
};

/*
 * Returns whether the profile is written to standard output, and the console to standard error
 * ("-").
 */
static inline bool run_options_to_stdout(const struct run_options *o)
{
	return o->output && o->output[0] == '-' && !o->output[1];
}

/* Returns whether the machine is not run by this process. */
static inline bool run_options_is_attached(const struct run_options *o)
{
	return o->attach || o->gdb || o->still || o->launch.argv || o->launch.wait_for;
}

/* Returns whether a hang or a panic of the guest causes an action. */
static inline bool run_options_has_alarm(const struct run_options *o)
{
	return o->alarm.on_hang.kind || o->alarm.on_panic.kind;
}

/* Returns the rate of samples that the options request. */
static inline struct events_rate run_options_rate(const struct run_options *o)
{
	return (struct events_rate){
		.freq_hz = o->freq_hz,
		.period = o->period,
		.jitter = o->jitter,
		.strict = o->strict_event,
	};
}

/* The period of samples with --engine exact without -c, in instructions. */
#define RUN_EXACT_PERIOD 100000u
#define RUN_REPEAT_MAX 100u
#define RUN_STACK_MAX 16384u
#define RUN_MEM_MIN (16ull << 20)
#define RUN_MEM_DISK (1ull << 30) /* default for a distribution (a disk, a unified kernel image) */
#define RUN_FREQ_MAX 50000.0
/* The largest sample, with all its stacks, needs 83 KiB. */
#define RUN_RING_MIN (256ull << 10)
#define RUN_RING_MAX (4ull << 30)
#define RUN_OVERWRITE_SIZE (64ull << 20) /* default with --overwrite */

/*
 * Parses and checks the command line. Before, *o must be zero except for `reporter`, `help` and
 * `command`; if the command is not "run", `output` stays NULL unless it is given. Returns -1 if the
 * options are good; else the exit status: 0 after --help, 2 after a message about wrong usage.
 * Strings in *o are borrowed from argv.
 */
int run_options_parse(struct run_options *o, int argc, char **argv);

/*
 * Sets the defaults, for commands that have only some of the options. Keeps `reporter` and `help`.
 */
void run_options_default(struct run_options *o);
/* All rows of `kvmprof run`, whose struct is run_options: for OPTION_AS(). */
extern const struct option_row run_option_rows[];
#define RUN_OPTIONS_COLUMN 26u /* column at which the texts of --help begin */
/*
 * Calls option_parse() for the rows of *set, whose struct is at `at`, and prints errors in the name
 * of o->command. Returns -1 if all is good, else the exit status.
 */
int run_options_parse_rows(const struct option_set *set, void *at, int argc, char **argv,
			   const struct run_options *o);
/*
 * Checks whether the options fit each other, and completes some of them. Returns -1 if they do;
 * else prints the reason and returns the exit status 2.
 */
int run_options_check(struct run_options *o);
/* Returns the period of --off-cpu in ns, or 0 without that option. */
uint64_t run_options_off_cpu_ns(const struct run_options *o);
/* Prints in one line what is wrong. Returns the exit status 2. */
int run_options_wrong(const struct run_options *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Does the same as run_options_check() for options that depend on the machine. With --domain the
 * machine is known later, and the caller of run_options_parse() then calls this itself.
 */
int run_options_check_machine(const struct run_options *o);

/*
 * Returns a mask with a bit for each vCPU that is sampled, out of `vcpus`; 0 if the user's list
 * names one that does not exist.
 */
uint64_t run_options_vcpus(const struct run_options *o, unsigned int vcpus);

#endif
