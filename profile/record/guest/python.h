/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_python: frames of Python's interpreter in the stacks of guest programs.
 *
 * A program runs Python if a mapped file has `_PyRuntime` among its dynamic symbols. The layout of
 * its structures is found (symbolizer/python); then the capture path is told about each thread that
 * had a sample, and copies the thread's frames with every later one (guest_host.h). These frames
 * are named and joined with the native stack here.
 *
 * All functions except guest_python_join() are called by the consumer thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_PYTHON_H
#define KVMPROF_PROFILE_RECORD_GUEST_PYTHON_H

#include "profile/record/guest/guest_host.h"
#include "base/sample.h"
#include "profile/record/guest/maps.h"
#include "profile/record/guest/python_names.h"
#include "symbolizer/core/stack.h"

/* How long a thread or a program that was not found to run Python is not examined again. */
#define GUEST_PYTHON_RETRY_NS 20000000u

struct guest_python_stats {
	struct python_names_stats names;
	/* programs that run Python; threads that the capture path was told about */
	uint64_t programs, threads;
	uint64_t samples; /* samples whose stacks have frames of Python */
	uint64_t frames;
	/* samples of such programs whose thread was not known yet, or is not Python's */
	uint64_t before;
	uint64_t changing; /* samples between two steps of the interpreter, or unreadable */
	uint64_t cut;	   /* the part of `samples` that lacks outer frames */
	uint64_t untied;   /* no C frame was found to which the interpreter's frames belong */
	uint64_t foreign;  /* programs with an interpreter that was not found to run */
};

/* The objects that are used; all must outlive the guest_python. */
struct guest_python_parts {
	const struct memory *memory;
	struct guest_dsos *dsos;
	const struct guest_host *host;
	struct sink *sink;
};

struct guest_python;

/*
 * Returns 0, -ENOMEM, or -EIO without random numbers. The caller frees *out with
 * guest_python_destroy(), which accepts NULL.
 */
int guest_python_create(struct guest_python **out, const struct guest_python_parts *parts,
			struct err *e);
void guest_python_destroy(struct guest_python *g);

/*
 * Adds the Python frames of a sample to *st, its stack with user frames, whose mappings are known.
 * Learns about the program if it is new. Returns 0, -ENOMEM or the error of the sink.
 */
int guest_python_add_frames(struct guest_python *g, const struct guest_owner *owner,
			    const struct sample *s, struct stack *st, struct err *e);

/*
 * Reports the names of all frames to the sink. To be called once, after the last sample. Returns 0,
 * -ENOMEM or the error of the sink.
 */
int guest_python_finish(struct guest_python *g, struct err *e);
/* Copies the counters. */
void guest_python_stats(const struct guest_python *g, struct guest_python_stats *out);

/*
 * guest_python_join: joins the frames of Python's interpreter and those of its C code to one stack.
 *
 * The interpreter is a C function (_PyEval_EvalFrameDefault) that runs one Python function after
 * the other, and calls itself only through C. Each such call has data on the C stack, whose address
 * is in the frame with which it was entered (struct sample_python). The C frame that contains this
 * address is the interpreter's, whatever its name, and the Python frames up to the entered one are
 * what it runs. They are inserted as its callees:
 *
 *    a C function called by inner()        native
 *    inner(), outer()                      Python's, entered with outer()
 *    _PyEval_EvalFrameDefault              native, its frame contains outer()'s `entry`
 *
 * If the copied stack ends before an address, the frames are the outermost ones. If there were too
 * many frames, one more stands for the rest. If an address is in no frame, or two are out of order,
 * nothing is joined.
 */
enum python_joined {
	PYTHON_JOINED,
	PYTHON_UNTIED, /* the stack is unchanged */
};

/* n frames, innermost first, with the address ip[i] that frame f[i] is given. */
struct python_frames {
	const struct sample_python *f;
	const uint64_t *ip;
	unsigned int n;
	/* address of the frame that stands for those that SAMPLE_PYTHON_SKIPPED left out */
	uint64_t unknown;
};

/*
 * Joins *p into *st. If the result has too many frames the outermost ones are dropped, and
 * st->user_end says so. Pure; any thread.
 */
enum python_joined guest_python_join(struct stack *st, const struct python_frames *p);

#endif
