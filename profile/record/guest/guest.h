/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest: what is learned about the running guest, sample by sample.
 *
 * Joins the image (target.h) with the guest's memory: where the kernel is, which task a sample
 * belongs to, which modules and programs its frames lie in. New tasks, modules and mappings are
 * reported to the sink before the sample.
 *
 * All functions are called by the consumer thread only, or after it has ended by the main thread;
 * no vCPU is stopped for them. Functions that return int return 0, -ENOMEM or the error of the
 * sink, with the reason in *e; the two that create a guest may also return the error of a file or a
 * library.
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

/*
 * The pid of the only process of a guest whose tasks cannot be told apart (docs/perf-data.md); its
 * programs' mappings have it, too.
 */
#define GUEST_PID 1u

struct guest_options {
	bool python;   /* show frames of Python's interpreter */
	bool mem;      /* look up the memory that samples access */
	bool runs;     /* the guest ran before: its page tables and data exist already */
	bool moves;    /* the kernel chooses its own address (KASLR): it has to be found */
	bool explains; /* the facts that `why` and `dmesg` need are found, too */
	/* slide and pa_slide are known already, and are used as in target_move() */
	bool placed;
	uint64_t slide, pa_slide;
	/*
	 * Kernels that were read before are known by the build-id cache kernel_dir (NULL: perf's), and new ones are added to it. Borrowed.
	 */
	bool known_kernels, adds_kernels;
	const char *kernel_dir;
	struct userfile_options files;
	bool host_frames; /* there are samples of the event host */
	/* names of host functions for them; borrowed; NULL: none */
	const struct host_names *host_names;
	/* switches of the host's processors for them; borrowed; NULL: none */
	struct host_switches *host_switches;
};

/* Counters and facts for the summary. */
struct guest_stats {
	struct guest_tasks_stats tasks;
	struct guest_dso_stats dsos;
	struct guest_cfi_stats cfi;
	struct guest_maps_stats maps;
	struct guest_jit_stats jit;
	bool want_python; /* guest_options.python was set */
	struct guest_python_stats python;
	/* dyncode: code that the kernel generates at run time */
	struct guest_code_stats modules, dyncode;
	struct memprobe_stats mem;
	struct kslide slide; /* the result of the search for the kernel, if one was made */
	bool is_linux, moves;
	bool have_tasks; /* tasks could be told apart in the end */
	/* tasks were found in memory at run time, because the kernel has no types */
	bool found_late;
	uint64_t unknown_before; /* samples of unknown tasks until then */
	uint64_t named_late;	 /* samples whose task was found in a later list of all tasks */
	bool have_maps, have_modules;
	/* the reason why not; "" if they are available */
	char no_tasks[200], no_maps[200], no_modules[200];
};

struct guest;

/*
 * Creates the reader of a guest. target, sink and the objects in *host must outlive it; *host and
 * *opt are copied. The sink's kernel() is called here or later. The caller frees *out with
 * guest_destroy(), which accepts NULL.
 */
int guest_create(struct guest **out, struct target *target, const struct guest_host *host,
		 struct sink *sink, const struct guest_options *opt, struct err *e);
void guest_destroy(struct guest *g);

/*
 * Learns from a sample where the kernel is. Returns true if that is known, or is known to stay
 * unknown, so that samples can be processed; *ret is then 0 or an error as above. Returns false,
 * with *ret 0, if more samples are needed.
 */
bool guest_is_ready(struct guest *g, const struct sample *s, int *ret, struct err *e);
/*
 * Returns whether the sample is to wait, because the tasks and mappings of a kernel without types
 * are searched for: earlier samples can be named when they are found. Returns false when that takes too long. To be
 * called for each sample after guest_is_ready() has returned true. *ret is 0 or an error as above.
 */
bool guest_awaits_tasks(struct guest *g, const struct sample *s, int *ret, struct err *e);
/*
 * Returns whether the kernel was found only after it could not be read at first. The samples of
 * kernel code that waited for it may then be of the kernel before.
 */
bool guest_was_retried(const struct guest *g);
/*
 * Returns whether a sample is of the kernel that was found. After EPOCH_OTHER only guest_finish(),
 * guest_create_later() and guest_destroy() may be called for g; guest_create_later() creates the
 * guest of this sample and the following ones.
 */
enum epoch_state guest_epoch(struct guest *g, const struct sample *s);
/*
 * Creates the guest of the next kernel in the machine of `before`, which may be destroyed
 * afterwards. *target is initialized here; the caller closes it with target_close() after the guest
 * is destroyed. The kernel's symbols are read from guest memory, and the sink's kernel() is called
 * later. The caller frees *out with guest_destroy().
 */
int guest_create_later(struct guest **out, const struct guest *before, struct target *target,
		       struct err *e);
/* Returns what is known about the kernel, valid as long as g. */
const struct target *guest_target(const struct guest *g);
/* Returns the kernel's release, or "" if unknown; valid as long as g. */
const char *guest_release(const struct guest *g);

/*
 * Stops the search for the kernel and continues with what is known, because no more samples will
 * come or can be kept.
 */
int guest_end_search(struct guest *g, struct err *e);

/*
 * Unwinds a sample into *stack, reports to the sink what it depends on, and fills in *out with its
 * task. out->stack is `stack`.
 */
int guest_process(struct guest *g, const struct sample *s, struct stack *stack,
		  struct profile_sample *out, struct err *e);

/* Processes a SAMPLE_THREAD as guest_process() does. The sink must have its thread's name already. */
int guest_process_thread(struct guest *g, const struct sample *s, struct stack *stack,
			 struct profile_sample *out, struct err *e);

/*
 * Reports to the sink what is reported at the end, such as symbols of programs. To be called once,
 * after the last sample.
 */
int guest_finish(struct guest *g, struct err *e);

/* Returns whether the guest is a Linux kernel whose address was found. */
bool guest_is_known_linux(const struct guest *g);
/*
 * Returns the kernel's symbol of this name, with its run-time address, or NULL. Valid as long as g.
 */
const struct symbol *guest_function(const struct guest *g, const char *name);
/*
 * Stores the guest-physical address of the kernel's variable. Returns false if that is unknown
 * (yet).
 */
bool guest_variable(const struct guest *g, const char *name, uint64_t *gpa);

/* Translates an address in the kernel's address space. Returns false if it is not mapped. */
bool guest_address(const struct guest *g, uint64_t va, uint64_t *gpa);

/*
 * Returns the symbol at a run-time kernel address, and the distance from its start in *off, or
 * NULL. Valid until the next sample is processed.
 */
const struct symbol *guest_kernel_symbol(const struct guest *g, uint64_t va, uint64_t *off);
/* Returns whether guest_kernel_symbol() has a symbol for va. Recent results are cached. */
bool guest_kernel_is_named(struct guest *g, uint64_t va);

/* Copies the counters; strings in them are static or part of *out. */
void guest_stats(const struct guest *g, struct guest_stats *out);

/*
 * The objects that a walk of all tasks reads (profile/record/pipeline/task_walk.h), valid as long
 * as the guest.
 */
struct guest_view {
	const struct target *target;
	const struct memory *memory;
	struct guest_memory *pages;
	unsigned int vcpus;
	bool have_mm; /* target->linux_facts.mm.mm_pgd is valid */
};
/*
 * Fills in *out. Returns false, with the reason in *e, if the guest is not Linux or its tasks are
 * not known (yet).
 */
bool guest_view(struct guest *g, struct guest_view *out, struct err *e);
/*
 * Returns memory in the kernel's space as it is now; valid as that of guest_view(). NULL: the kernel is not known (yet), and e says
 * why.
 */
const struct memory *guest_reader(struct guest *g, struct err *e);
/* Unwinds a sample whose task is known into *stack; nothing is reported to the sink. */
void guest_unwind(struct guest *g, const struct sample *s, struct stack *stack);

#endif
