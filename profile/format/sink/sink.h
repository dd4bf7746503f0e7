/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink: the interface that receives a profile. perf.data is one implementation.
 *
 * One thread at a time makes the calls (the pipeline's consumer) in this order: begin(), kernel()
 * (before the first sample; without it the kernel counts as unknown), any mix of the others, then
 * end(), then destroy(). Calling destroy() without end() gives up; the sink then leaves no
 * half-written output behind. Each operation returns 0 or -errno with the reason in e. Strings and
 * structs are copied unless the comment says "borrowed"; borrowed ones must stay valid until end().
 *
 * A second call of kernel() reports that the guest runs another kernel from now on: the tasks,
 * modules and mappings reported before are no longer valid. A sink that can store one kernel only
 * may refuse it (profile/format/perfdata/sink_epochs.h).
 *
 * Times are CLOCK_MONOTONIC in ns. Calls need not be in order of time, but the facts that a sample
 * depends on (its task's name, its mappings) must not have a later time than the sample. pids and
 * tids are the guest's; pid 0 is its idle task. pids from 1,000,000,000 on are those of host
 * threads of the VMM (profile/record/host/host_threads.h).
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

/*
 * An event of the profile. Members with a name of struct perf_event_attr (linux/perf_event.h) have
 * its meaning.
 */
struct profile_event {
	const char *name; /* as perf prints it, e.g. "wall", "cycles:G", "exit:io" */
	uint32_t type;	  /* PERF_TYPE_* */
	uint64_t config;
	double freq_hz;	 /* samples per second; 0: one sample every `period` */
	uint64_t period; /* in the event's unit: ns for clocks, otherwise a count */
	bool exits;	 /* its samples have the time that the host worked for the VM exit */
};

/* Initialiser for the event of wall-clock time. perf counts its cpu-clock in ns, too. */
#define PROFILE_EVENT_WALL(hz)                                                                 \
	{                                                                                      \
		.name = "wall", .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK, \
		.freq_hz = (hz)                                                                \
	}

#define PROFILE_MAX_EVENTS 8u

/* Facts known before the first sample. All pointers are borrowed. */
struct profile_info {
	struct profile_event event[PROFILE_MAX_EVENTS];
	unsigned int nevents; /* 1 or more */
	bool mem;	      /* samples may have memory references */
	bool markers;	      /* the profile may get markers and must be able to store them */
	unsigned int vcpus;
	const char *hostname;
	/* Processor as in perf's header; NULL: a virtual CPU under KVM on this host. */
	const char *cpu, *cpu_id;
	bool virtual_clock; /* times are those of a virtual clock, not of a clock of this host */
	int argc;	    /* command line of kvmprof itself */
	char **argv;
};

/*
 * The guest's kernel and where it runs. The struct is copied; the objects it points at are
 * borrowed.
 */
struct profile_kernel {
	const struct kimage *image;   /* NULL if no image of the guest's kernel could be read */
	const struct symtab *symbols; /* with run-time addresses; NULL if there are none */
	uint64_t text, end;	      /* run-time _text and _end; both 0 if unknown */
	/*
	 * Copies len run-time text bytes from va to dst, for annotate. Returns the number of bytes
	 * copied. May be NULL.
	 */
	size_t (*read_text)(void *ctx, uint64_t va, void *dst, size_t len);
	void *read_ctx;
	const char *osrelease; /* NULL or "" when unknown */
};

/*
 * One executable range of a kernel module. A module with several ranges (init text) is reported
 * once per range, each with its own name: perf looks a function up by its distance from the start
 * of any range of that name. The call removes modules that were reported at the same addresses
 * before.
 */
struct profile_module {
	const char *name; /* "ext4", at most PROFILE_MODULE_NAME - 1 bytes */
	uint64_t addr, len;
	uint64_t time_ns;	      /* time of loading */
	const struct symtab *symbols; /* with run-time addresses, borrowed; may be NULL */
	const uint8_t *build_id;      /* build_id_len bytes; NULL if unknown */
	unsigned int build_id_len;    /* at most 20 */
	/*
	 * set by a sink for its own use: another module had these addresses before or has them
	 * later
	 */
	bool shared;
};
#define PROFILE_MODULE_NAME 64u /* as the kernel's MODULE_NAME_LEN */

/*
 * A user mapping of the guest; it replaces earlier mappings at its addresses. Only executable ones
 * are needed. Many processes map one file: elf may be NULL from the second time on, or be delivered
 * later by dso(). The sink stores a file once for each build id.
 */
struct profile_map {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff, time_ns;
	uint32_t prot; /* PROT_* of mmap(2); 0 means PROT_READ | PROT_EXEC */
	const char *path;
	const uint8_t *build_id; /* 20 bytes; never NULL (perf would read the host's file) */
	const uint8_t *elf;	 /* the file's bytes, read during the call only; may be NULL */
	size_t elf_len;
};

/*
 * The ELF file of mappings that were reported without one, because its symbols were found later.
 * The path and the build id identify the mappings.
 */
struct profile_dso {
	const char *path;
	const uint8_t *build_id; /* 20 bytes */
	const uint8_t *elf;	 /* read during the call only */
	size_t elf_len;
};

struct profile_sample {
	uint32_t pid, tid;
	uint32_t cpu;	  /* vCPU index; SAMPLE_NO_CPU: no vCPU */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t period;  /* weight in the event's unit */
	uint8_t event;	  /* index into profile_info.event */
	uint8_t mode;	  /* enum sample_mode */
	const struct stack *stack;
	const struct mem_refs *mem; /* if profile_info.mem; NULL: unknown */
	/* if profile_event.exits: duration of the exit, which ended at time_ns; 0: unknown */
	uint64_t exit_ns;
};

/* A named moment; see markers.h. A sink that cannot store markers ignores it. */
struct profile_marker {
	enum marker_kind kind;
	const char *name; /* printable, shorter than MARKER_NAME */
	uint64_t time_ns;
	uint32_t cpu;
	uint32_t pid, tid;	   /* both 0 if the marker belongs to no task */
	const struct stack *stack; /* a breakpoint's, innermost frame first; NULL: no stack */
};

/* Facts known after the last sample, stored in the output beside the samples. */
struct profile_totals {
	const char *json;	    /* one JSON object: counters, loss by reason, host quirks */
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC of the run's start and end */
};

struct sink {
	const struct sink_ops *ops;
};

/* A new task tid of process pid, created by task ptid of process ppid. */
struct profile_fork {
	uint32_t pid, tid, ppid, ptid;
	uint64_t time_ns;
};

/* A task's name. exec: the task has begun another program and has no mappings yet. */
struct profile_comm {
	uint32_t pid, tid;
	const char *name;
	bool exec;
	uint64_t time_ns;
};

/* Whether abandon() publishes or removes the output that has been written. */
enum sink_leftover { SINK_KEEP, SINK_DROP };

struct sink_ops {
	/* Begins the profile, e.g. creates its file. */
	int (*begin)(struct sink *s, const struct profile_info *info, struct err *e);
	/* Reports the kernel that the guest runs from now on; see the top of this file. */
	int (*kernel)(struct sink *s, const struct profile_kernel *k, struct err *e);
	/*
	 * Reports a new task: a process (tid == pid) or a thread. It has its parent's name, and a
	 * process its parent's mappings, until comm and map change them. State of an earlier task
	 * with the same number is discarded.
	 */
	int (*fork)(struct sink *s, const struct profile_fork *f, struct err *e);
	/* Reports the end of task tid of process pid. */
	int (*exit)(struct sink *s, uint32_t pid, uint32_t tid, uint64_t time_ns, struct err *e);
	int (*comm)(struct sink *s, const struct profile_comm *c, struct err *e);
	int (*module)(struct sink *s, const struct profile_module *m, struct err *e);
	int (*map)(struct sink *s, const struct profile_map *map, struct err *e);
	/* Delivers a file. May be called at any time before end(), also after all samples. */
	int (*dso)(struct sink *s, const struct profile_dso *dso, struct err *e);
	int (*sample)(struct sink *s, const struct profile_sample *sample, struct err *e);
	int (*marker)(struct sink *s, const struct profile_marker *marker, struct err *e);
	/* Reports that count samples of this vCPU were dropped before time_ns. */
	int (*lost)(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns, struct err *e);
	/*
	 * Writes out the records with a time before before_ns, so that they survive a crash. Called
	 * about twice per second. NULL if the sink does not need it.
	 */
	int (*flush)(struct sink *s, uint64_t before_ns, struct err *e);
	/*
	 * Completes the output and publishes it under its final name. May be called after a failed
	 * call (e.g. disk full): a sink that can then publishes what it had written, but still
	 * returns the error. 0 means that nothing that was reported is missing.
	 */
	int (*end)(struct sink *s, const struct profile_totals *totals, struct err *e);
	/*
	 * Creates another sink of the same kind in *out, for a profile at path, that has received
	 * all calls that this one has. Allowed after begin(). The caller may make further calls on
	 * the copy, then calls its end() and its destroy(), before end() or destroy() of the
	 * original. The original is not changed.
	 */
	int (*copy)(struct sink *s, const char *path, struct sink **out, struct err *e);
	/*
	 * Called instead of end() and destroy(), after which no other call is allowed, if the
	 * thread that made the calls has crashed within one (base/fault.h). Publishes the output
	 * written so far as it is, or removes it (SINK_DROP). Does not read or free what waits in
	 * memory. Returns -ENODATA if there is no output to publish.
	 */
	int (*abandon)(struct sink *s, enum sink_leftover rest, struct err *e);
	void (*destroy)(struct sink *s); /* Frees s and all it owns; does nothing for NULL */
};

/*
 * Writes the complete profile so far to path, as a copy of s. Returns 0 or -errno. Must be called
 * by the thread that makes the calls on s.
 */
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
 * Base of a sink that forwards calls to another sink. Such a sink's struct begins with a struct
 * sink_forward. Its table of operations has sink_forward_* for each call that it only forwards.
 */
struct sink_forward {
	struct sink sink;
	struct sink *to; /* owned; NULL during construction */
};

/* Each passes its arguments to the same operation of the sink behind s and returns its result. */
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
/* Returns 0 if the sink behind s has no flush operation. */
int sink_forward_flush(struct sink *s, uint64_t before_ns, struct err *e);
int sink_forward_end(struct sink *s, const struct profile_totals *totals, struct err *e);
int sink_forward_copy(struct sink *s, const char *path, struct sink **out, struct err *e);
int sink_forward_abandon(struct sink *s, enum sink_leftover rest, struct err *e);
/* Destroys the sink behind f, if it has one. Does not free f. */
void sink_forward_destroy(struct sink_forward *f);

/*
 * Creates a sink in *out that discards all it receives, for commands that show events as they
 * happen. Its copy operation returns -ENOTSUP. The caller destroys it with its destroy operation.
 * Returns 0 or -ENOMEM.
 */
int sink_null_create(struct sink **out, struct err *e);

#endif
