/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * export: a profile in the formats of other tools.
 *
 * Each format is a function over a const stackset that writes to an export_out, a buffer
 * in front of a file descriptor: what was written is not kept, so a format needs memory
 * for its tables but not for its output. Errors of writing stick to the export_out and
 * are seen at its end. In every format the weights of what was written add up to the
 * profile's.
 *
 * Names come from files and may hold anything. What means something in a format is
 * replaced there; JSON is always valid UTF-8. One thread.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_EXPORT_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_EXPORT_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/analyse/stacks/stackset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -- where it goes --------------------------------------------------------------------------- */

struct export_out {
	int fd; /* borrowed */
	struct buf buf;
	void *gzip;	  /* z_stream, or NULL: as it is */
	int ret;	  /* the first failure, -errno */
	uint64_t written; /* bytes, before compression */
};

enum export_packing { EXPORT_UNPACKED, EXPORT_GZIPPED };
void export_out_init(struct export_out *o, int fd, enum export_packing packing);
/* Writes what is left; 0 or the first failure. */
int export_out_finish(struct export_out *o, const char *path, struct err *e);
void export_out_deinit(struct export_out *o);

void out_mem(struct export_out *o, const void *data, size_t len);
void out_text(struct export_out *o, const char *text);
void out_char(struct export_out *o, char c);
void out_u64(struct export_out *o, uint64_t v);
void out_hex(struct export_out *o, uint64_t v);
/* v / 10^digits, with all the digits. */
void out_fixed(struct export_out *o, uint64_t v, unsigned int digits);
void out_printf(struct export_out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string in its quotes; what is no UTF-8 becomes U+FFFD. */
void out_json(struct export_out *o, const char *text);

/* -- names and stacks ------------------------------------------------------------------------ */

enum export_names {
	EXPORT_FUNCTION, /* function */
	EXPORT_OFFSET,	 /* function+0x1f */
	EXPORT_BOTH,	 /* below function, function+0x1f */
};

struct export_options {
	enum export_names names;
	bool per_thread, per_pid;
	bool count_samples;  /* weights are numbers of samples */
	const char *version; /* of kvmprof */
	uint64_t began_ns;   /* since 1970, of the first sample; 0: not said (pprof) */
	/* Not all samples of the profile: what is told of its whole would be wrong. */
	bool filtered;
	/* Those of the profile's other events, where the format takes EXPORT_EVENTS. */
	struct stackset *const *others;
	size_t nothers;
	/* Of a counted profile its stacks by calls: the innermost function was called so often. NULL: none. */
	const struct stackset *calls;
};

/* A frame as it is shown. Equal text, DSO and kind are one label. */
struct export_label {
	const char *text, *dso;
	uint32_t func; /* one of those that have it */
	uint8_t kind;  /* enum stackset_kind */
};

struct export_labels;

/*
 * A function without a name is "0x...", or the last part of its DSO in brackets, as flame
 * graph scripts do it, where functions are asked for.
 */
int export_labels_create(struct export_labels **out, const struct stackset *s,
			 enum export_names names, struct err *e);
void export_labels_destroy(struct export_labels *l);
size_t export_labels_count(const struct export_labels *l);
const struct export_label *export_label(const struct export_labels *l, uint32_t i);

/* Labels of a stack, outermost first. Returns how many; valid until the next call. */
size_t export_stack_labels(struct export_labels *l, const struct stackset_stack *st,
			   const uint32_t **out);

/* Stacks as a tree. A node's parent comes before it. */
#define EXPORT_ROOT UINT32_MAX

struct export_node {
	uint32_t parent; /* EXPORT_ROOT: none */
	uint32_t label;
	uint64_t weight, samples; /* the format's own: of itself */
};

struct export_tree;

struct export_tree *export_tree_create(void);
void export_tree_destroy(struct export_tree *t);
/* The child of parent with this label, made when there is none. -ENOMEM. */
int export_tree_add(struct export_tree *t, uint32_t parent, uint32_t label, uint32_t *node);
size_t export_tree_count(const struct export_tree *t);
/* Valid until the next export_tree_add(). */
struct export_node *export_node(struct export_tree *t, uint32_t i);

/*
 * Samples by the line of time that they belong to: of a vCPU, or of a thread, where the
 * halted time of each vCPU is a line of its own. A thread that calls exec, or a tid that
 * comes again, goes on in the same line, as in the tools that read this.
 */
struct export_track {
	uint32_t task; /* index: of the last sample, whose name a thread has */
	uint32_t first_task;
	uint32_t cpu;		/* of idle lines and of vCPUs' */
	bool idle;		/* pid 0 */
	const uint32_t *sample; /* indexes, in order of time */
	size_t n;
	uint64_t weight;
};

struct export_tracks {
	struct export_track *track; /* by their first sample */
	size_t n;
	uint32_t *samples;
};

enum export_track_of { EXPORT_TRACK_OF_THREAD, EXPORT_TRACK_OF_VCPU };

/* Needs stackset_options.keep_samples. */
int export_tracks_create(struct export_tracks *t, const struct stackset *s,
			 enum export_track_of key, struct err *e);
void export_tracks_destroy(struct export_tracks *t);
/* "vCPU 1", "swapper (vCPU 1)", "comm tid", "comm tid (was comm)"; always terminated. */
void export_track_name(const struct export_track *t, const struct stackset *s,
		       enum export_track_of key, char *text, size_t size);

/* What counts: of a stack, and of a sample. */
static inline uint64_t export_weight(const struct export_options *opt, uint64_t weight,
				     uint64_t samples)
{
	return opt->count_samples ? samples : weight;
}

/* -- formats ----------------------------------------------------------------------------------- */

enum export_wants {
	EXPORT_SAMPLES = 1,   /* stackset_options.keep_samples */
	EXPORT_DIRECTORY = 2, /* writes files of its own: path is a directory that exists */
	EXPORT_GZIP = 4,
	EXPORT_BINARY = 8,	/* not for a terminal */
	EXPORT_TEXT_NAMES = 16, /* obeys export_options.names */
	EXPORT_CALLS = 32,	/* obeys export_options.calls */
	EXPORT_EVENTS = 128,	/* obeys export_options.others */
	EXPORT_COVERAGE = 64,	/* of lines: no write(), but export_lcov() */
};

struct export_format {
	const char *name, *help;
	unsigned int wants; /* enum export_wants */
	/* o: the file; of directories NULL, and path is it. */
	int (*write)(struct export_out *o, const char *path, const struct stackset *s,
		     const struct export_options *opt, struct err *e);
};

/* NULL: none of this name. */
const struct export_format *export_find(const char *name);
/* i-th, or NULL behind the last. */
const struct export_format *export_at(size_t i);

struct coverage;
void export_lcov(struct export_out *o, const struct coverage *c);

#define EXPORT_WRITER(name)                                                                 \
	int export_##name(struct export_out *o, const char *path, const struct stackset *s, \
			  const struct export_options *opt, struct err *e)
EXPORT_WRITER(folded);
EXPORT_WRITER(perf_script);
EXPORT_WRITER(speedscope);
EXPORT_WRITER(pprof);
EXPORT_WRITER(firefox);
EXPORT_WRITER(callgrind);
EXPORT_WRITER(chrome_trace);
EXPORT_WRITER(perfetto);
EXPORT_WRITER(kp);
EXPORT_WRITER(iprof);

#endif
