/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackset: a profile as named stacks with weights, for everything that draws,
 * converts or compares profiles.
 *
 * Built once from a perf.data file (ours, or perf's), then const. Equal stacks of one
 * thread and mode are one entry; each distinct address is named once. All strings are
 * the set's own and as they are shown (demangled on request); equal ones are one
 * pointer. Frames of a stack are innermost first.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_STACKSET_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_STACKSET_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stackset_mode {
	STACKSET_KERNEL,
	STACKSET_USER,
	STACKSET_IDLE, /* the vCPU was halted */
	STACKSET_GUEST, /* files of perf only: code of a guest of the recorded machine, or in an unknown mode */
	STACKSET_MODES
};

/* What a frame's code belongs to; chooses colours. */
enum stackset_kind {
	STACKSET_KIND_KERNEL,
	STACKSET_KIND_MODULE,
	STACKSET_KIND_USER,
	STACKSET_KIND_JIT, /* code without a file */
	STACKSET_KIND_UNKNOWN,
	STACKSET_KIND_HOST, /* not the guest's: its VMM, the host's kernel, where a vCPU's thread was */
	STACKSET_KIND_WAITING, /* the state of a task that waits: "[S]", "[D]" */
	STACKSET_KINDS
};

/* Returns whether addresses of this kind are the kernel's, as perf sees them. Host frames have such ones. */
static inline bool stackset_kind_in_kernel(uint8_t kind)
{
	return kind == STACKSET_KIND_KERNEL || kind == STACKSET_KIND_MODULE ||
	       kind == STACKSET_KIND_HOST || kind == STACKSET_KIND_WAITING;
}

/* A function, or an address without a name. */
struct stackset_func {
	const char
		*name;	 /* as shown; of an address without a symbol: "0x" and hexadecimal digits */
	const char *dso; /* "[kernel.kallsyms]", "[ext4]", a path, "[unknown]" */
	bool named;
	uint8_t kind; /* enum stackset_kind */
	bool kernel;  /* recorded in kernel mode, whatever is known of the address */
	bool other;   /* code of another machine than the recorded one: see enum perfdata_owner */
	uint64_t addr, size; /* the symbol's run-time kernel address, or its address in the file */
	/* Its other names, each with a newline behind it; NULL or "": it has none. */
	const char *aliases;
};

/* A distinct address that was looked up. */
struct stackset_frame {
	uint32_t func;	/* index */
	uint64_t addr;	/* run time; of callers: inside of the call */
	uint64_t off;	/* from the start of the function; 0 when it has no name */
	uint64_t image; /* offset in the file; of the kernel and modules: from the map's start */
};

struct stackset_task {
	uint32_t pid, tid;
	const char *comm;
};

struct stackset_stack {
	const uint32_t *frame; /* indexes, innermost first */
	uint32_t n;
	uint32_t task;	 /* index */
	uint8_t mode;	 /* enum stackset_mode */
	uint64_t weight; /* ns, or what the event counts */
	uint64_t samples;
};

/* One sample; only with stackset_options.keep_samples, in order of time. */
struct stackset_sample {
	uint64_t time_ns, weight;
	uint32_t stack; /* index */
	uint32_t cpu;
	uint64_t exit_ns; /* of a VM exit: it was worked for so long until time_ns; 0: not known */
};

/* A moment; see markers.h. */
struct stackset_marker {
	uint64_t time_ns;
	const char *name;
	uint8_t kind; /* enum marker_kind */
};

#define STACKSET_MAX_MARKERS 20000u /* of a profile; the rest is left out */

struct stackset {
	const struct stackset_func *func;
	const struct stackset_frame *frame;
	const struct stackset_task *task;
	const struct stackset_stack *stack;
	const struct stackset_sample *sample; /* NULL: not kept */
	const struct stackset_marker *marker; /* by time, whatever was filtered */
	size_t nmarkers;
	size_t nfuncs, nframes, ntasks, nstacks, nsamples;
	uint64_t samples, weight, lost;
	uint64_t mode_weight[STACKSET_MODES];
	uint64_t first_ns, last_ns;
	unsigned int ncpus;    /* 0 unknown */
	const char *event;     /* "wall" */
	bool weight_is_ns;     /* else: counts of the event */
	bool counted;	       /* weights are of all that happened: nothing was sampled */
	const char *osrelease; /* of the guest, "" unknown */
	const char *guest;     /* perfdata.guest */
	const char *json;      /* kvmprof's totals, or NULL */
	bool ours, partial;
	const char *message; /* when partial: what is missing; else "" */
	const char *
		note; /* one line about what the profile has and is not shown; "" or NULL: nothing */
	const char *no_comm; /* a line: no sample has the name of stackset_options.comm; else "" */
};

struct stackset_options {
	const char *input;	 /* NULL: perf.data */
	const char *buildid_dir; /* NULL: $HOME/.debug */
	bool no_demangle;
	bool relaxed; /* functions reach to the next symbol, whatever their size */
	bool keep_samples;
	const char *event; /* of several events this one; NULL: the first */
	uint32_t epoch;	   /* the guest's kernel whose samples are read, from 1 on; 0: all */
	/* Which samples: */
	double from_s, to_s; /* [from, to) in seconds since the first sample; to_s 0: to the end */
	const char *comm;    /* NULL: all */
	int64_t pid, cpu;    /* -1: all */
	bool kernel_only;    /* only kernel frames, and samples that have some */
	bool where;	     /* the outermost frame of each says where its vCPU's thread was */
};

/* Defaults: everything. */
#define STACKSET_OPTIONS_DEFAULT ((struct stackset_options){ .pid = -1, .cpu = -1 })

int stackset_load(struct stackset **out, const struct stackset_options *opt, struct err *e);
void stackset_destroy(struct stackset *s);

#endif
