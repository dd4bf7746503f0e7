/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink: where a profile goes. perf.data is one of several.
 *
 * Calls come from one thread at a time (the pipeline's consumer) in this order:
 * begin, kernel (before the first sample; when it never comes the kernel
 * counts as unknown), any mix of the others, then end, or destroy at any point
 * to give up (a sink then leaves no half-written output behind). Strings and
 * structures are copied unless it says "borrowed"; those stay until end().
 *
 * A further call of kernel says that the guest runs another kernel from now on: nothing that was told of tasks, modules and mappings
 * counts any more. A sink that has room for one kernel may refuse it (profile/format/perfdata/sink_epochs.h).
 *
 * Times are CLOCK_MONOTONIC in ns. Calls need not be in order of time, but what
 * a sample depends on (its task's name, its mappings) must not have a later
 * time than the sample. pids and tids are the guest's; pid 0 is its idle task. Those from 1,000,000,000 on are
 * the host's, of threads of the VMM (profile/record/host/host_threads.h).
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_SINK_H
#define KVMPROF_PROFILE_FORMAT_SINK_SINK_H

#include "base/err.h"
#include "profile/format/sink/exittime.h"
#include "profile/format/sink/markers.h"
#include "profile/format/sink/memref.h"
#include "symbolizer/core/kimage.h"
#include "symbolizer/core/stack.h"
#include "symbolizer/core/symtab.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/* As in struct perf_event_attr (linux/perf_event.h) where a field has its name. */
struct profile_event {
	const char *name; /* as perf prints it: "wall", "cycles:G", "exit:io" */
	uint32_t type;	  /* PERF_TYPE_* */
	uint64_t config;
	double freq_hz;	 /* samples a second; 0: every `period` */
	uint64_t period; /* in the event's unit: ns of clocks, else a count */
	bool exits;	 /* its samples say how long the VM exit was worked for */
};

/* Wall-clock time. perf counts its cpu-clock in ns, too. */
#define PROFILE_EVENT_WALL(hz)                                                                 \
	{                                                                                      \
		.name = "wall", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, \
		.freq_hz = (hz)                                                                \
	}

#define PROFILE_MAX_EVENTS 8u

/* What is known before the first sample. Everything is borrowed until end(). */
struct profile_info {
	struct profile_event event[PROFILE_MAX_EVENTS];
	unsigned int nevents; /* 1 or more */
	bool mem;	      /* samples say what memory they use */
	bool markers;	      /* there may be some: the profile makes room for them */
	unsigned int vcpus;
	const char *hostname;
	/* NULL: a virtual CPU under KVM, of this host. As perf's header has them. */
	const char *cpu, *cpu_id;
	bool virtual_clock; /* times are of no clock of this host */
	int argc;	    /* kvmprof's own command line */
	char **argv;
};

/* The guest's kernel where it runs. The struct is copied, what it points at is borrowed. */
struct profile_kernel {
	const struct kimage *image;   /* NULL when the guest has no image we could read */
	const struct symtab *symbols; /* run-time addresses; NULL when there are none */
	uint64_t text, end;	      /* run-time _text and _end; 0,0 unknown */
	/* Run-time text bytes, for annotate; may be NULL. Returns bytes read. */
	size_t (*read_text)(void *ctx, uint64_t va, void *dst, size_t len);
	void *read_ctx;
	const char *osrelease; /* NULL or "" when unknown */
};

/*
 * One executable range of a kernel module. A module of several ranges (init
 * text) takes one call and one name for each: perf looks a module's functions
 * up by their distance from the start of any range of that name. What an
 * earlier call put at the same place is gone then.
 */
struct profile_module {
	const char *name; /* "ext4", at most PROFILE_MODULE_NAME - 1 bytes */
	uint64_t addr, len;
	uint64_t time_ns;	      /* when it came */
	const struct symtab *symbols; /* run-time addresses, borrowed; may be NULL */
	const uint8_t *build_id;      /* build_id_len bytes; NULL when unknown */
	unsigned int build_id_len;    /* at most 20 */
	bool shared; /* set by a sink for itself: another module was at its place before or after */
};
#define PROFILE_MODULE_NAME 64u /* as the kernel's MODULE_NAME_LEN */

/*
 * A user mapping of the guest; it hides what was mapped at its place. Only
 * executable ones are needed. Many processes map one file: elf may be NULL from
 * the second time on, or come later by dso(), and is stored once for each build id.
 */
struct profile_map {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff, time_ns;
	uint32_t prot; /* PROT_* of mmap(2); 0 stands for PROT_READ | PROT_EXEC */
	const char *path;
	const uint8_t *build_id; /* 20 bytes; never NULL (perf would read the host's file) */
	const uint8_t *elf;	 /* the file's bytes, read during the call only; or NULL */
	size_t elf_len;
};

/*
 * The ELF file of mappings that were told without one, because its names come later:
 * the mappings' path and build id say which.
 */
struct profile_dso {
	const char *path;
	const uint8_t *build_id; /* 20 bytes */
	const uint8_t *elf;	 /* read during the call only */
	size_t elf_len;
};

struct profile_sample {
	uint32_t pid, tid;
	uint32_t cpu;	  /* vCPU index; SAMPLE_NO_CPU: of none */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t period;  /* weight, in the event's unit */
	uint8_t event;	  /* index into profile_info.event */
	uint8_t mode;	  /* enum sample_mode */
	const struct stack *stack;
	const struct mem_refs *mem; /* with profile_info.mem; NULL: nothing is known of it */
	uint64_t exit_ns;	    /* with profile_event.exits: ended at time_ns; 0: not known */
};

/* A moment: see markers.h. Where there is no room for markers it is left out. */
struct profile_marker {
	enum marker_kind kind;
	const char *name; /* printable, shorter than MARKER_NAME */
	uint64_t time_ns;
	uint32_t cpu;
	uint32_t pid, tid;	   /* 0 where it is of no task */
	const struct stack *stack; /* of a breakpoint, innermost first; NULL: it has none */
};

/* What is known after the last sample: kept in the output beside the samples. */
struct profile_totals {
	const char *json;	    /* one JSON object: counters, loss by reason, host quirks */
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC of run start and end */
};

struct sink {
	const struct sink_ops *ops;
};

/* Task tid of process pid is new: a copy of task ptid of process ppid. */
struct profile_fork {
	uint32_t pid, tid, ppid, ptid;
	uint64_t time_ns;
};

/* A task's name. exec: it runs another program now and has no mappings yet. */
struct profile_comm {
	uint32_t pid, tid;
	const char *name;
	bool exec;
	uint64_t time_ns;
};

enum sink_rest { SINK_KEEP, SINK_DROP };

struct sink_ops {
	int (*begin)(struct sink *s, const struct profile_info *info, struct err *e);
	int (*kernel)(struct sink *s, const struct profile_kernel *k, struct err *e);
	/*
	 * A new task: a process (tid == pid) or a thread of one. It has its parent's
	 * name, and a process its parent's mappings, until comm and map say more.
	 * What an earlier task of that number had is forgotten.
	 */
	int (*fork)(struct sink *s, const struct profile_fork *f, struct err *e);
	int (*exit)(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns, struct err *e);
	int (*comm)(struct sink *s, const struct profile_comm *c, struct err *e);
	int (*module)(struct sink *s, const struct profile_module *m, struct err *e);
	int (*map)(struct sink *s, const struct profile_map *map, struct err *e);
	/* At any time before end(), also behind all samples. */
	int (*dso)(struct sink *s, const struct profile_dso *dso, struct err *e);
	int (*sample)(struct sink *s, const struct profile_sample *sample, struct err *e);
	int (*marker)(struct sink *s, const struct profile_marker *marker, struct err *e);
	/* count samples of this vCPU were dropped before time_ns. */
	int (*lost)(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns, struct err *e);
	/*
	 * Twice a second or so: what has a time before before_ns may go out, so that it is not
	 * lost should we be killed. NULL: the sink has no use for it.
	 */
	int (*flush)(struct sink *s, uint64_t before_ns, struct err *e);
	/*
	 * Finish and publish under the final name. Also after a failed call (disk
	 * full): a sink that can then publishes what it had written before. It fails
	 * then all the same: 0 says that nothing of what it was told is missing.
	 */
	int (*end)(struct sink *s, const struct profile_totals *totals, struct err *e);
	/*
	 * After begin(): another sink that has been told all that this one was, of the same
	 * form, for a profile at path. It may be told more; end() it, then destroy() it,
	 * before this one's end() or destroy(). This one goes on as if nothing had been.
	 */
	int (*copy)(struct sink *s, const char *path, struct sink **out, struct err *e);
	/*
	 * In place of end() and destroy(), of which neither may follow: the thread that made the calls
	 * was lost within one (base/fault.h). What is in the output by then is published as it is, or
	 * with SINK_DROP removed; what waits in memory is not touched, nor freed. -ENODATA: there is none.
	 */
	int (*abandon)(struct sink *s, enum sink_rest rest, struct err *e);
	void (*destroy)(struct sink *s); /* NULL is fine */
};

/* The profile so far, complete, at path. On the thread that makes the calls above. */
static inline int sink_snapshot(struct sink *s, const char *path,
				const struct profile_totals *totals, struct err *e)
{
	struct sink *copy = NULL;
	int ret = s->ops->copy(s, path, &copy, e);

	if (ret)
		return ret;
	ret = copy->ops->end(copy, totals, e);
	copy->ops->destroy(copy);
	return ret;
}

/*
 * The operations of a sink in front of another one, which pass each call on. Such a sink begins with a
 * struct sink_forward and takes into its table of operations sink_forward_* for all that it has nothing
 * to do about.
 */
struct sink_forward {
	struct sink sink;
	struct sink *to; /* owned; NULL while it is being made */
};

int sink_forward_begin(struct sink *s, const struct profile_info *info, struct err *e);
int sink_forward_kernel(struct sink *s, const struct profile_kernel *k, struct err *e);
int sink_forward_fork(struct sink *s, const struct profile_fork *f, struct err *e);
int sink_forward_exit(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns, struct err *e);
int sink_forward_comm(struct sink *s, const struct profile_comm *c, struct err *e);
int sink_forward_module(struct sink *s, const struct profile_module *m, struct err *e);
int sink_forward_map(struct sink *s, const struct profile_map *map, struct err *e);
int sink_forward_dso(struct sink *s, const struct profile_dso *dso, struct err *e);
int sink_forward_sample(struct sink *s, const struct profile_sample *sample, struct err *e);
int sink_forward_marker(struct sink *s, const struct profile_marker *m, struct err *e);
int sink_forward_lost(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns,
		      struct err *e);
int sink_forward_flush(struct sink *s, uint64_t before_ns, struct err *e);
int sink_forward_end(struct sink *s, const struct profile_totals *totals, struct err *e);
int sink_forward_copy(struct sink *s, const char *path, struct sink **out, struct err *e);
int sink_forward_abandon(struct sink *s, enum sink_rest rest, struct err *e);
/* Destroys the sink behind it. */
void sink_forward_destroy(struct sink_forward *f);

/* A profile that nobody keeps, for commands that show what happens as it does. */
int sink_null_create(struct sink **out, struct err *e);

#endif
