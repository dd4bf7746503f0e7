/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pipeline: from the vCPUs' rings to the sink, on a thread of its own.
 *
 * The only file that knows all stages: sample -> stack -> sink, with what was
 * lost on the way counted by name.
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

#define PIPELINE_MAX_BROKEN 64

/* Kernel stacks that broke off at the same place for the same reason. */
struct pipeline_broken {
	uint64_t ip;	    /* of the outermost frame found */
	uint64_t innermost; /* of the first such stack */
	uint64_t count;
	uint8_t end; /* enum stack_end */
};

struct pipeline_stats {
	uint64_t samples; /* written */
	uint64_t event_samples[VM_MAX_EVENTS];
	uint64_t event_weight[VM_MAX_EVENTS]; /* each in its event's unit */
	uint64_t weight;		      /* of the first event's, in its unit */
	uint64_t mode_weight[4];	      /* the same by enum sample_mode */
	uint64_t end[STACK_END_COUNT]; /* by why the stack ended, idle and user samples included */
	uint64_t kernel_end
		[STACK_END_COUNT]; /* the same of those taken in the kernel, idle included */
	/* Where kernel stacks ended that reached neither a root nor the user; by first seen. */
	struct pipeline_broken broken[PIPELINE_MAX_BROKEN];
	unsigned int nbroken;
	uint64_t broken_beyond;	       /* such stacks that found no place in the list */
	uint64_t where[SAMPLE_WHERES]; /* weight of samples of the event host, ns */
	uint64_t frames;
	uint64_t dropped;      /* ring full */
	uint64_t unsymbolized; /* innermost kernel frame without a name */
	uint64_t user_frames;
	uint64_t user_end[STACK_END_COUNT]; /* why the program's part of a stack ended */
	uint64_t held;			    /* samples that waited */
	struct hist named_after; /* ns from the moment of each sample until it was named */
	uint64_t in_doubt; /* samples of which no kernel could be proven: not in the profile */
	struct epoch_facts kernel[EPOCHS_MAX];
	unsigned int kernels; /* how many the guest had */
	uint64_t depth_cut;   /* stacks cut by pipeline_set_max_stack() */
	struct pipeline_io_stats {
		bool wanted;	  /* there is an event of disks; of packets */
		uint64_t records; /* of requests; of packets, both ways */
		uint64_t unknown; /* without a stack: its sample found no room, or was not wanted */
		uint64_t unknown_bytes;
		uint64_t failed; /* with an error, or packets that were lost; not in the profile */
		uint64_t lost;	 /* records that found no room */
	} io, net;		 /* net: `unknown` is of packets that were sent */
	struct guest_stats guest;
	struct offcpu_stats offcpu;
	struct host_threads_stats threads;
};

/* What a sample of an event of disks stands for. */
enum pipeline_io {
	PIPELINE_NO_IO = 0,
	PIPELINE_IO_BYTES,
	PIPELINE_IO_LATENCY,
	PIPELINE_NET_BYTES, /* a packet of the guest's, by its bytes */
};

/* All zero, or NULL where it is asked for: nothing. */
struct pipeline_options {
	enum pipeline_io io[VM_MAX_EVENTS]; /* of the machine's VM_EVENT_IO */
	/* On the consumer's thread, each request once; who NULL: it is not known. */
	void (*request)(void *ctx, const struct guest *g, const struct io_record *r,
			const struct io_who *who);
	/* The same, once no more can be learned of its way: see io_stages.h. In order. */
	void (*stages)(void *ctx, const struct io_stages *s);
	void *request_ctx;
	struct io_requests *requests; /* of the run, added to; NULL: nobody asks */
	struct io_requests *packets;  /* the same; without what only requests have */
	/* Samples are processed, but not written; each is told, with its process (may be NULL). */
	bool no_samples;
	void (*seen)(void *ctx, const struct sample *s, uint32_t pid);
	void *seen_ctx;
	struct markers *markers;			 /* of the run; taken from and added to */
	const char *breakpoint_name[VM_MAX_BREAKPOINTS]; /* of the machine's; borrowed */
	enum marker_kind breakpoint_kind[VM_MAX_BREAKPOINTS];
	uint64_t max_samples;	   /* write so many, then end the machine; 0: all */
	uint64_t offcpu_period_ns; /* look at tasks that don't run; 0: never */
	uint8_t offcpu_event;	   /* the event of these samples: an index of profile_info.event */
	struct host_threads *threads; /* of the VMM, to be sampled; NULL: none */
};

struct pipeline;

/* All must outlive it. The sink has begun; its kernel() comes from the pipeline. */
struct pipeline_parts {
	struct target *target;
	struct vm *vm;
	struct sink *sink;
};
/* user_map (may be NULL) is written once, before the samples. */
int pipeline_start(struct pipeline **out, const struct pipeline_parts *parts,
		   const struct guest_options *opt, const struct pipeline_options *own,
		   const struct profile_map *user_map, struct err *e);

/* Keep the innermost so many frames of a stack. Any thread; at first all are kept. */
void pipeline_set_max_stack(struct pipeline *p, unsigned int frames);

/* Something to do on the consumer's thread, between two samples; if possible when the rings are empty. */
struct pipeline_job {
	void (*run)(struct pipeline_job *job, const struct pipeline_stats *stats);
	/*
	 * In place of run(), or in the middle of it: the consumer's thread has crashed. In its signal
	 * handler, or of the one that posts.
	 */
	void (*gone)(struct pipeline_job *job);
};
/*
 * Any thread, one job at a time: the next may be given once run() or gone() was called. Until then
 * job must stay; pipeline_finish() may be called only after that.
 */
void pipeline_post(struct pipeline *p, struct pipeline_job *job);

/*
 * The guest behind it, for jobs; and for the main thread between pipeline_finish() and
 * pipeline_destroy().
 */
struct guest *pipeline_guest(struct pipeline *p);

/*
 * Has the consumer's thread crashed, or made a system call that its list does not have? It has
 * ended then, and nothing else (fault.h). Nobody may use the sink, the target or the guest from
 * then on, but for the sink's abandon(); pipeline_finish() fails, and its figures may be half of what
 * they were to be. *why gets the cause. Main thread.
 */
bool pipeline_crashed(struct pipeline *p, struct err *why);

/* Whether the guest's kernel is in a panic; valid until pipeline_destroy(). Any thread. */
const struct panic_watch *pipeline_panic(const struct pipeline *p);

/* The newest sample of a vCPU, by its place in the profile. */
struct pipeline_last {
	uint64_t time_ns; /* 0: there was none */
	struct stack stack;
};
/* Between pipeline_finish(), which did not fail by a crash, and pipeline_destroy(). */
const struct pipeline_last *pipeline_last(const struct pipeline *p, unsigned int vcpu);

/*
 * After vm_join(): take what is left in the rings and stop the thread. Returns
 * the first error of the sink, if any. *crash is the stack of a crashed vCPU
 * (n = 0: none). What the sink's end() reads through stays until pipeline_destroy().
 */
int pipeline_finish(struct pipeline *p, struct pipeline_stats *stats, struct stack *crash,
		    struct err *e);
void pipeline_destroy(struct pipeline *p);

#endif
