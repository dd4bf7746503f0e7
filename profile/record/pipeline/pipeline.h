/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pipeline: carries samples from the vCPUs' rings to the sink, on a thread of its own (the consumer
 * thread).
 *
 * This is the only file that knows all stages: sample -> stack -> sink, with a named counter for
 * each kind of loss. Functions are called by the main thread unless their comment says otherwise.
 */
#ifndef KVMPROF_PROFILE_RECORD_PIPELINE_PIPELINE_H
#define KVMPROF_PROFILE_RECORD_PIPELINE_PIPELINE_H

#include "profile/record/guest/guest.h"
#include "profile/record/host/host_threads.h"
#include "profile/record/pipeline/epochs.h"
#include "profile/record/pipeline/io_join.h"
#include "profile/record/pipeline/io_stages.h"
#include "profile/format/sink/markers.h"
#include "profile/record/pipeline/offcpu.h"
#include "profile/record/guest/panic_watch.h"
#include "profile/format/sink/sink.h"
#include "base/event.h"
#include "base/hist.h"

struct vm;

/* The most places in pipeline_stats.broken. */
#define PIPELINE_MAX_BROKEN 64

/* Kernel stacks that broke off at the same place for the same reason. */
struct pipeline_broken {
	uint64_t ip;	    /* address of the outermost frame that was found */
	uint64_t innermost; /* innermost frame of the first such stack */
	uint64_t count;
	uint8_t end; /* enum stack_end */
};

struct pipeline_stats {
	uint64_t samples; /* samples written to the sink */
	uint64_t event_samples[VM_MAX_EVENTS];
	uint64_t event_weight[VM_MAX_EVENTS]; /* weight by event, each in the unit of its event */
	uint64_t weight;		      /* weight of event 0, in its unit */
	uint64_t mode_weight[4];	      /* weight of event 0 by enum sample_mode */
	/* stacks by the reason why they ended, idle and user samples included */
	uint64_t end[STACK_END_COUNT];
	/* the same for samples taken in the kernel, idle included */
	uint64_t kernel_end[STACK_END_COUNT];
	/*
	 * The places where kernel stacks ended that reached neither a root nor user mode, in the
	 * order in which they were first seen.
	 */
	struct pipeline_broken broken[PIPELINE_MAX_BROKEN];
	unsigned int nbroken;
	/* such stacks whose place is not in the list, because it is full */
	uint64_t broken_beyond;
	uint64_t where[SAMPLE_WHERES]; /* weight of samples of the event host, ns */
	uint64_t frames;
	uint64_t dropped;      /* samples that found no room in a ring */
	uint64_t unsymbolized; /* samples whose innermost kernel frame has no name */
	uint64_t user_frames;
	uint64_t user_end[STACK_END_COUNT]; /* user parts of stacks by the reason why they ended */
	uint64_t held;			    /* samples that waited until the kernel was found */
	/* ns from the time of a sample until it was processed */
	struct hist named_after;
	/* samples whose kernel could not be proven: not in the profile */
	uint64_t in_doubt;
	struct epoch_facts kernel[EPOCHS_MAX];
	unsigned int kernels; /* number of kernels that the guest ran, 1 or more */
	uint64_t depth_cut;   /* stacks shortened by pipeline_set_max_stack() */
	struct pipeline_io_stats {
		bool wanted;	  /* an event of disks (net: of packets) exists */
		uint64_t records; /* records of requests (net: of packets in both directions) */
		/* records without a known submitter: its sample found no room or was not wanted */
		uint64_t unknown;
		uint64_t unknown_bytes;
		/* requests with an error, or packets that were lost; not in the profile */
		uint64_t failed;
		uint64_t lost; /* records that found no room */
	} io, net;	       /* net.unknown counts only packets that the guest sent */
	struct guest_stats guest;
	struct offcpu_stats offcpu;
	struct host_threads_stats threads;
};

/* The weight of the samples of an event of disks or packets. */
enum pipeline_io {
	PIPELINE_NO_IO = 0,
	PIPELINE_IO_BYTES,
	PIPELINE_IO_LATENCY,
	PIPELINE_NET_BYTES, /* a packet of the guest, with its bytes */
};

/*
 * All members may be zero or NULL: the function in question is then not used. Pointers are borrowed
 * until pipeline_destroy().
 */
struct pipeline_options {
	/* for each event of the machine; not 0 only for a VM_EVENT_IO */
	enum pipeline_io io[VM_MAX_EVENTS];
	/*
	 * Called on the consumer thread, once for each request. who is NULL if the submitter is
	 * unknown. The pointers are valid during the call only.
	 */
	void (*request)(void *ctx, const struct guest *g, const struct io_record *r,
			const struct io_who *who);
	/*
	 * The same, once no further stage can be learned (see io_stages.h), in the order of the
	 * requests' ends.
	 */
	void (*stages)(void *ctx, const struct io_stages *s);
	void *request_ctx;
	/* the requests of the run, to which the pipeline adds; NULL: not wanted */
	struct io_requests *requests;
	/* the same for packets; members that only requests have are 0 */
	struct io_requests *packets;
	/* samples are processed, but not written to the sink */
	bool no_samples;
	/*
	 * Called on the consumer thread for each sample of an event, with the pid of its process in
	 * the guest. NULL: not wanted.
	 */
	void (*seen)(void *ctx, const struct sample *s, uint32_t pid);
	void *seen_ctx;
	/* the markers of the run; the pipeline removes and adds some */
	struct markers *markers;
	/* names of the machine's breakpoints; borrowed */
	const char *breakpoint_name[VM_MAX_BREAKPOINTS];
	enum marker_kind breakpoint_kind[VM_MAX_BREAKPOINTS];
	/* end the machine after this many samples were written; 0: no limit */
	uint64_t max_samples;
	/* period of the samples of tasks that do not run (offcpu.h); 0: none */
	uint64_t offcpu_period_ns;
	/* the event of these samples: an index of profile_info.event */
	uint8_t offcpu_event;
	struct host_threads *threads; /* threads of the VMM that are sampled; NULL: none */
};

struct pipeline;

/*
 * The objects that a pipeline uses; all must outlive it. The sink's begin() has been called; the
 * pipeline calls kernel() and all that follows except end().
 */
struct pipeline_parts {
	struct target *target;
	struct vm *vm;
	struct sink *sink;
};
/*
 * Creates a pipeline and starts its thread. *opt and *own are copied; own may be NULL for the
 * defaults. user_map, if not NULL, is a mapping of the guest's only process, which is written once
 * before the samples. Returns 0 or -errno: -ENOMEM, or the error of the sink or of the thread's
 * creation. The caller stops the thread with pipeline_finish() and then frees *out with
 * pipeline_destroy().
 */
int pipeline_start(struct pipeline **out, const struct pipeline_parts *parts,
		   const struct guest_options *opt, const struct pipeline_options *own,
		   const struct profile_map *user_map, struct err *e);

/*
 * Sets the number of innermost frames that are kept of each stack; 0 is treated as 1. Without a
 * call all are kept. Any thread.
 */
void pipeline_set_max_stack(struct pipeline *p, unsigned int frames);

/*
 * A function to run on the consumer thread between two samples, if possible when the rings are
 * empty. *stats is up to date, and valid during the call only.
 */
struct pipeline_job {
	void (*run)(struct pipeline_job *job, const struct pipeline_stats *stats);
	/*
	 * Called instead of run(), or while run() is under way, if the consumer thread has crashed.
	 * Runs in that thread's signal handler or in the thread that calls pipeline_post(), so it
	 * must be async-signal-safe.
	 */
	void (*gone)(struct pipeline_job *job);
};
/* Who submits a job. */
enum pipeline_poster {
	PIPELINE_JOB_COMMAND, /* the command, or its control socket */
	PIPELINE_JOB_ALARM,   /* the watch for a guest that hangs */
	PIPELINE_JOBS
};
/*
 * Submits a job. Any thread; each poster has one job at a time: it may submit the next one once run() or gone()
 * was called. The caller owns *job, which must stay valid until then; pipeline_finish() may be
 * called only after that.
 */
void pipeline_post(struct pipeline *p, struct pipeline_job *job, enum pipeline_poster who);

/*
 * Returns the guest of the kernel that runs now, owned by the pipeline. To be called in a job, or
 * by the main thread between pipeline_finish() and pipeline_destroy().
 */
struct guest *pipeline_guest(struct pipeline *p);

/*
 * Returns whether the consumer thread has crashed, or has made a system call that its filter does
 * not allow; *why then gets the cause, else it is unchanged. Such a crash ends that thread only
 * (base/fault.h). From then on the sink, the target and the guest must not be used, except for the
 * sink's abandon(); pipeline_finish() fails, its counters may be incomplete, and pipeline_destroy()
 * frees nothing.
 */
bool pipeline_crashed(struct pipeline *p, struct err *why);

/*
 * Returns when the kernel and its names were first known (CLOCK_MONOTONIC), or 0 if they are not.
 * Any thread.
 */
uint64_t pipeline_named_ns(const struct pipeline *p);

/*
 * Returns the watch that knows whether the guest's kernel is in a panic. Valid until
 * pipeline_destroy(). Any thread.
 */
const struct panic_watch *pipeline_panic(const struct pipeline *p);

/* The newest sample of a vCPU. */
struct pipeline_last {
	uint64_t time_ns; /* CLOCK_MONOTONIC as in the profile; 0: there was none */
	struct stack stack;
};
/*
 * Returns the newest sample of the vCPU with this index, valid until pipeline_destroy(). To be
 * called between a pipeline_finish() that did not return -EFAULT and pipeline_destroy().
 */
const struct pipeline_last *pipeline_last(const struct pipeline *p, unsigned int vcpu);

/*
 * Processes the samples that are left in the rings and joins the consumer thread. To be called
 * once, after vm_join(). *stats is always set. *crash is the stack of a crashed vCPU (n = 0 if
 * there is none). Returns 0, the first error of the sink or of memory, or -EFAULT if the consumer
 * thread has crashed; *crash is then unchanged. What the sink's end() reads stays valid until
 * pipeline_destroy().
 */
int pipeline_finish(struct pipeline *p, struct pipeline_stats *stats, struct stack *crash,
		    struct err *e);
/* Frees the pipeline and its guests, after pipeline_finish(). NULL is allowed. */
void pipeline_destroy(struct pipeline *p);

#endif
