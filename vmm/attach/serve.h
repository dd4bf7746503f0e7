/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve: checks and answers requests of the process that must not trace a machine, in the process
 * that may.
 *
 * The other process reads guest memory, and a guest may have taken it over. Each request is one
 * message of a socket. It is copied, then checked, then used. These functions keep no state and do
 * not interpret the bytes of a guest.
 */
#ifndef KVMPROF_VMM_ATTACH_SERVE_H
#define KVMPROF_VMM_ATTACH_SERVE_H

#include "base/gmem.h"
#include "base/capture_plan.h"
#include "base/event.h"
#include "base/sample.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes of guest memory in one answer. */
#define SERVE_MAX 65536u
/* ns: shorter periods are refused. profile/record/options takes up to 50000 samples a second. */
#define SERVE_LEAST_PERIOD 10000u

/* A request for bytes of guest memory. */
struct serve_request {
	uint32_t number; /* chosen by the sender; the answer repeats it */
	uint32_t len;	 /* 1 to SERVE_MAX */
	uint64_t host;	 /* address in the VMM; the range is in one region of guest memory */
	uint32_t tables; /* 1: the kernel's own tables are read (gmem_remote.h); else 0 */
	uint32_t reserved;
};

struct serve_answer {
	uint32_t number;
	int32_t ret; /* 0, or -errno: then no bytes follow */
	uint8_t bytes[SERVE_MAX];
};
#define SERVE_ANSWER_HEAD offsetof(struct serve_answer, bytes)

/* Guest memory, and how it is read. */
struct serve_memory {
	struct gmem_region region[GMEM_MAX_REGIONS];
	unsigned int n;
	/* Copies all of it or nothing. tables: as in struct serve_request. Returns 0 or -errno. */
	int (*read)(void *ctx, bool tables, uint64_t host, void *dst, size_t len);
	void *ctx;
};

/*
 * Answers the request in ask[0, len). Returns the number of bytes of *out to send, or 0 if the
 * message is malformed; then the sender no longer runs kvmprof's code. Never reads outside of the
 * regions.
 */
size_t serve_memory(const struct serve_memory *m, const void *ask, size_t len,
		    struct serve_answer *out);

/* Orders to the sampler. */
enum serve_op {
	SERVE_START = 1,
	SERVE_END,    /* no more samples */
	SERVE_JOIN,   /* the same, and wait until no thread is held */
	SERVE_REST,   /* foreign_suspend() */
	SERVE_RESUME, /* foreign_resume() */
	SERVE_CONTROL,
	SERVE_SLIDE,
	SERVE_TASK,
	SERVE_LAYOUT,
	SERVE_THREAD,
};

struct serve_control {
	uint64_t vcpus;	 /* a bit for each whose samples are wanted */
	uint64_t period; /* ns: the first event's */
	uint32_t stack_max;
	uint8_t collect, armed;
};

struct serve_order {
	uint32_t op;	 /* enum serve_op */
	uint32_t number; /* an answer repeats it: START, JOIN, REST and RESUME have one */
	union {
		struct serve_control control;
		uint64_t slide;
		struct capture_task_plan task;
		struct capture_python_layout layout;
		struct capture_python_thread thread;
	} u;
};

/*
 * Copies the order in message[0, len) to *out and checks that its values stay within a sample and
 * within the sampler's arrays. Returns 0 or -EINVAL.
 */
int serve_order(struct serve_order *out, const void *message, size_t len);

/* The answer to an order. */
struct serve_done {
	uint32_t number;
	uint32_t reserved;
	uint64_t first_entry_ns; /* vm_first_entry_ns() */
};

#endif
