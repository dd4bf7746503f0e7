/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink: where a profile goes. perf.data is one of several.
 *
 * Calls come from one thread (the pipeline's consumer) in this order:
 * begin, then any mix of comm/map/sample/lost, then end, or destroy at any
 * point to give up (a sink then leaves no half-written output behind).
 */
#ifndef KVMPROF_PROFILE_SINK_H
#define KVMPROF_PROFILE_SINK_H

#include "base/err.h"
#include "symbolizer/kimage.h"
#include "symbolizer/stack.h"
#include "symbolizer/symtab.h"

#include <stdbool.h>
#include <stdint.h>

/* What is known before the first sample. Everything is borrowed until end(). */
struct profile_info {
	const char *event; /* "wall" */
	double freq_hz;
	unsigned int vcpus;
	const char *hostname, *osrelease; /* osrelease: of the guest, "" when unknown */
	int argc;			  /* kvmprof's own command line */
	char **argv;
	const struct kimage *kernel;  /* NULL when the guest has no image we could read */
	const struct symtab *symbols; /* run-time addresses; NULL when there are none */
	uint64_t text, end;	      /* run-time _text and _end of the kernel; 0,0 unknown */
	/* Run-time text bytes, for annotate; may be NULL. Returns bytes read. */
	size_t (*read_text)(void *ctx, uint64_t va, void *dst, size_t len);
	void *read_ctx;
};

/* A user mapping of the guest. */
struct profile_map {
	uint32_t pid, tid;
	uint64_t addr, len, pgoff, time_ns;
	const char *path;
	const uint8_t *build_id; /* 20 bytes; never NULL (perf would read the host's file) */
	const uint8_t *elf;	 /* bytes for the build-id cache, or NULL */
	size_t elf_len;
};

struct profile_sample {
	uint32_t pid, tid;
	uint32_t cpu;	  /* vCPU index */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t period;  /* weight, ns */
	uint8_t mode;	  /* enum sample_mode */
	const struct stack *stack;
};

/* What is known after the last sample: kept in the output beside the samples. */
struct profile_totals {
	const char *json;	    /* one JSON object: counters, loss by reason, host quirks */
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC of run start and end */
};

struct sink {
	const struct sink_ops *ops;
};

struct sink_ops {
	int (*begin)(struct sink *s, const struct profile_info *info, struct err *e);
	int (*comm)(struct sink *s, uint32_t pid, uint32_t tid, const char *comm, uint64_t time_ns,
		    struct err *e);
	int (*map)(struct sink *s, const struct profile_map *map, struct err *e);
	int (*sample)(struct sink *s, const struct profile_sample *sample, struct err *e);
	/* count samples of this vCPU were dropped before time_ns. */
	int (*lost)(struct sink *s, uint32_t cpu, uint64_t count, uint64_t time_ns, struct err *e);
	/*
	 * Finish and publish under the final name. Also after a failed call (disk
	 * full): a sink that can then publishes what it had written before.
	 */
	int (*end)(struct sink *s, const struct profile_totals *totals, struct err *e);
	void (*destroy)(struct sink *s); /* NULL is fine */
};

#endif
