/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest: what is found out about the running guest, sample by sample.
 *
 * Joins the image's view (target) with the guest's memory: where the kernel is,
 * which task a sample belongs to, which modules and programs its frames lie in.
 * What is new is told to the sink before the sample. Used by the consumer's thread
 * alone; nothing of it is done while a vCPU stands.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_GUEST_H
#define KVMPROF_PROFILE_RECORD_GUEST_GUEST_H

#include "profile/record/guest/cfi.h"
#include "profile/record/guest/code.h"
#include "profile/record/guest/epoch.h"
#include "profile/record/guest/guest_host.h"
#include "profile/record/host/host_names.h"
#include "profile/record/guest/jit.h"
#include "profile/record/guest/maps.h"
#include "profile/record/guest/memory.h"
#include "profile/record/guest/memprobe.h"
#include "profile/format/sink/sink.h"
#include "profile/record/guest/python.h"
#include "profile/record/guest/target.h"
#include "symbolizer/kernel/kslide.h"
#include "symbolizer/unwind/unwind.h"

/* The one process of a guest whose tasks cannot be told apart (docs/perf-data.md), its programs' mappings included. */
#define GUEST_PID 1u

struct guest_options {
	bool python; /* show frames of Python's interpreter */
	bool mem;    /* look up what memory samples use */
	bool runs;   /* it has run before us: its tables are all there */
	bool moves;  /* the kernel chooses its own place (KASLR): it has to be found */
	/* ... but somebody has found it before: as in target_move(). */
	bool placed;
	uint64_t slide, pa_slide;
	struct userfile_options files;
	bool host_frames;		     /* there are samples of the event host ... */
	const struct host_names *host_names; /* ... with these names; borrowed, NULL: none */
	struct host_switches *host_switches; /* ... and who had the processor; the same */
};

/* Facts for the summary. */
struct guest_stats {
	struct guest_tasks_stats tasks;
	struct guest_dso_stats dsos;
	struct guest_cfi_stats cfi;
	struct guest_maps_stats maps;
	struct guest_jit_stats jit;
	bool want_python; /* it was asked for */
	struct guest_python_stats python;
	struct guest_code_stats modules, dyncode; /* dyncode: made at run time */
	struct memprobe_stats mem;
	struct kslide slide; /* when it was looked for */
	bool is_linux, moves;
	bool have_tasks; /* tasks could be told apart in the end */
	bool found_late; /* they were found in memory while it ran: the kernel has no types */
	uint64_t unknown_before; /* samples of unknown tasks until then */
	bool have_maps, have_modules;
	char no_tasks[200], no_maps[200], no_modules[200]; /* why not */
};

struct guest;

/*
 * target, sink and what host leads to must outlive it; *host is copied. The sink's kernel() is
 * called here or later.
 */
int guest_create(struct guest **out, struct target *target, const struct guest_host *host,
		 struct sink *sink, const struct guest_options *opt, struct err *e);
void guest_destroy(struct guest *g);

/*
 * Learn from a sample where the kernel is. True: it is known (or never will be), and
 * samples can be processed. An error is the sink's.
 */
bool guest_is_ready(struct guest *g, const struct sample *s, int *ret, struct err *e);
/*
 * Returns whether the kernel was found only after it could not be read at first. The samples of kernel code that waited for it may
 * be of the kernel before.
 */
bool guest_was_retried(const struct guest *g);
/*
 * Returns whether a sample is of the kernel that was found. After EPOCH_OTHER nothing more may be asked of g than
 * guest_finish(), and guest_create_later() makes the guest that the sample and those after it are of.
 */
enum epoch_state guest_epoch(struct guest *g, const struct sample *s);
/*
 * Creates the guest of the next kernel in the machine of `before`, which may be destroyed afterwards. *target is filled, and must outlive
 * it; the kernel's names come from its memory. The sink's kernel() is called later.
 */
int guest_create_later(struct guest **out, const struct guest *before, struct target *target,
		       struct err *e);
/* Returns what is known of the kernel: valid as long as g. */
const struct target *guest_target(const struct guest *g);
/* Returns the release of the kernel, or "" if it is not known. */
const char *guest_release(const struct guest *g);

/* No more samples will come, or no more can be held: go on with what is known. */
int guest_give_up(struct guest *g, struct err *e);

/*
 * Unwind one sample, tell the sink what it needs, and fill in whose it is. out->stack
 * is *stack. Errors are the sink's.
 */
int guest_process(struct guest *g, const struct sample *s, struct stack *stack,
		  struct profile_sample *out, struct err *e);

/* The same of a SAMPLE_THREAD, whose name the sink has. */
int guest_process_thread(struct guest *g, const struct sample *s, struct stack *stack,
			 struct profile_sample *out, struct err *e);

/* After the last sample: what is told to the sink at the end. Errors are the sink's. */
int guest_finish(struct guest *g, struct err *e);

/* Returns whether the guest is a Linux kernel whose place in memory was found. */
bool guest_is_known_linux(const struct guest *g);
/* Returns the kernel's symbol of this name, with its run-time address; NULL: none. */
const struct symbol *guest_function(const struct guest *g, const char *name);
/* Returns false while the guest-physical address of the kernel's variable is not known. */
bool guest_variable(const struct guest *g, const char *name, uint64_t *gpa);

/* Translates any address in the kernel's space. Returns false if it is not mapped. */
bool guest_address(const struct guest *g, uint64_t va, uint64_t *gpa);

/* Names of run-time kernel addresses; NULL: none. */
const struct symbol *guest_kernel_symbol(const struct guest *g, uint64_t va, uint64_t *off);
/* Is there one? What was asked for before costs little. */
bool guest_kernel_is_named(struct guest *g, uint64_t va);

void guest_stats(const struct guest *g, struct guest_stats *out);

/* What a look at all tasks needs (look.h); valid as long as g, on the same thread. */
struct guest_view {
	const struct target *target;
	const struct memory *memory;
	struct guest_memory *pages;
	unsigned int vcpus;
	bool have_mm; /* target->linux_facts.mm.mm_pgd may be used */
};
/* false: not a Linux, or its tasks are not known (yet); e has the reason. */
bool guest_view(struct guest *g, struct guest_view *out, struct err *e);
/* Only the stack, of a sample whose task is known. */
void guest_unwind(struct guest *g, const struct sample *s, struct stack *stack);

#endif
