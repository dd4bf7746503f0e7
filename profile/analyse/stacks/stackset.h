/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackset: a profile as named stacks with weights, the input of all code that draws, converts or
 * compares profiles.
 *
 * It is built once from a perf.data file (of kvmprof or perf), then const: any thread may read it.
 * Equal stacks of one thread and mode are one entry; each distinct address is named once. All
 * strings belong to the set, in the form for display (demangled on request); equal strings are one
 * pointer. Frames of a stack are innermost first.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_STACKSET_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_STACKSET_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct selection;

enum stackset_mode {
	STACKSET_KERNEL,
	STACKSET_USER,
	STACKSET_IDLE, /* the vCPU was halted */
	/* only files of perf: code of a guest of the recorded machine, or an unknown mode */
	STACKSET_GUEST,
	STACKSET_MODES
};

/* The owner of a frame's code; it chooses colours. */
enum stackset_kind {
	STACKSET_KIND_KERNEL,
	STACKSET_KIND_MODULE,
	STACKSET_KIND_USER,
	STACKSET_KIND_JIT, /* code without a file */
	STACKSET_KIND_UNKNOWN,
	/* not the guest's: its VMM, the host's kernel, or the state of a vCPU's thread */
	STACKSET_KIND_HOST,
	STACKSET_KIND_WAITING, /* the state of a waiting task: "[S]", "[D]" */
	STACKSET_KINDS
};

/*
 * Returns true if addresses of this kind are the kernel's, as perf sees them. Host frames have such
 * addresses.
 */
static inline bool stackset_kind_in_kernel(uint8_t kind)
{
	return kind == STACKSET_KIND_KERNEL || kind == STACKSET_KIND_MODULE ||
	       kind == STACKSET_KIND_HOST || kind == STACKSET_KIND_WAITING;
}

/* A function, or an address without a name. */
struct stackset_func {
	/* for display; for an address without a symbol: "0x" and hexadecimal digits */
	const char *name;
	const char *dso; /* "[kernel.kallsyms]", "[ext4]", a path, "[unknown]" */
	bool named;
	uint8_t kind; /* enum stackset_kind */
	bool kernel;  /* recorded in kernel mode, even if the address is unknown */
	bool other;   /* code of another machine than the recorded one: see enum perfdata_owner */
	/* address and size of the symbol: at run time for the kernel, else in the file; bytes */
	uint64_t addr, size;
	/* the options that choose functions (selection.h) do not choose it */
	bool hidden;
	/* Its other names, each followed by a newline; NULL or "": none. */
	const char *aliases;
};

/* A distinct address that was looked up. */
struct stackset_frame {
	uint32_t func;	/* index into stackset.func */
	uint64_t addr;	/* run-time address; for callers: inside the call instruction */
	uint64_t off;	/* from the start of the function; 0 without a name */
	uint64_t image; /* offset in the file; for the kernel and modules: from the map's start */
};

struct stackset_task {
	uint32_t pid, tid;
	const char *comm;
};

struct stackset_stack {
	const uint32_t *frame; /* indexes into stackset.frame, innermost first */
	uint32_t n;
	uint32_t task;	 /* index into stackset.task */
	uint8_t mode;	 /* enum stackset_mode */
	uint64_t weight; /* ns, or count of the event */
	uint64_t samples;
};

/* One sample; only with stackset_options.keep_samples, sorted by time. */
struct stackset_sample {
	uint64_t time_ns, weight;
	uint32_t stack; /* index into stackset.stack */
	uint32_t cpu;
	/* for a VM exit: duration of the host's work, which ended at time_ns; 0: unknown */
	uint64_t exit_ns;
};

/* A named moment; see markers.h. */
struct stackset_marker {
	uint64_t time_ns;
	const char *name;
	uint8_t kind; /* enum marker_kind */
};

#define STACKSET_MAX_MARKERS 20000u /* per profile; further ones are omitted */

struct stackset {
	const struct stackset_func *func;
	const struct stackset_frame *frame;
	const struct stackset_task *task;
	const struct stackset_stack *stack;
	const struct stackset_sample *sample; /* NULL: not kept */
	const struct stackset_marker *marker; /* sorted by time; not filtered */
	size_t nmarkers;
	size_t nfuncs, nframes, ntasks, nstacks, nsamples;
	uint64_t samples, weight, lost;
	uint64_t mode_weight[STACKSET_MODES];
	uint64_t first_ns, last_ns;
	unsigned int ncpus;    /* 0 unknown */
	const char *event;     /* name, e.g. "wall" */
	bool weight_is_ns;     /* otherwise weights are counts of the event */
	bool counted;	       /* weights are exact counts; nothing was sampled */
	const char *osrelease; /* the guest's; "" unknown */
	const char *guest;     /* perfdata.guest */
	const char *json;      /* kvmprof's totals; NULL: none */
	bool ours, partial;
	const char *message; /* if partial: what is missing; otherwise "" */
	/* one line about data in the profile that is not shown; "" or NULL: none */
	const char *note;
	/* one line if the selection has met nothing, see selection_missed(); otherwise "" */
	const char *missed;
};

struct stackset_options {
	const char *input;	 /* NULL: perf.data */
	const char *buildid_dir; /* NULL: $HOME/.debug */
	bool no_demangle;
	bool relaxed; /* functions reach to the next symbol, regardless of their size */
	bool keep_samples;
	const char *event; /* the event to read; NULL: the first one with samples */
	/* 1-based number of the guest's kernel whose samples are read; 0: all kernels */
	uint32_t epoch;
	const struct selection *selection; /* which samples are read; borrowed; NULL: all */
	/*
	 * Keeps samples whose innermost function is not chosen, for tables that show the rows of
	 * chosen functions: stackset_func.hidden.
	 */
	bool keep_unchosen;
	/* add an outermost frame with the state of the vCPU's thread to each stack */
	bool where;
};

/*
 * Loads a profile; the caller frees *out with stackset_destroy(). opt's strings are used during the
 * call only. Returns 0 or -errno: an error of reader_open(), of selection_set_window(), of reading, or
 * -ENOMEM. A profile without samples is not an error, nor a selection that no sample passes: see
 * stackset.missed.
 */
int stackset_load(struct stackset **out, const struct stackset_options *opt, struct err *e);
/* Frees s; does nothing for NULL. */
void stackset_destroy(struct stackset *s);

#endif
