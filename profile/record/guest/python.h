/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_python: frames of Python's interpreter in the stacks of guest programs.
 *
 * A program that has `_PyRuntime` among the dynamic symbols of a file that is mapped runs
 * Python. Where its structures have their members is found (symbolizer/python); then capture
 * is told of each thread that had a sample, and copies its frames with every later one
 * (guest_host.h). These are named and joined with the native stack here.
 *
 * The consumer's thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_PYTHON_H
#define KVMPROF_PROFILE_RECORD_GUEST_PYTHON_H

#include "profile/record/guest/guest_host.h"
#include "base/sample.h"
#include "profile/record/guest/maps.h"
#include "profile/record/guest/python_names.h"
#include "symbolizer/core/stack.h"

/* How long a thread, or a program, that was not found to run Python is left alone. */
#define GUEST_PYTHON_RETRY_NS 20000000u

struct guest_python_stats {
	struct python_names_stats names;
	uint64_t programs, threads; /* that run Python; threads that capture was told of */
	uint64_t samples;	    /* whose stacks have frames of Python */
	uint64_t frames;
	uint64_t
		before; /* samples of such programs whose thread was not known yet, or is not Python's */
	uint64_t changing; /* taken between two steps of the interpreter, or not readable */
	uint64_t cut;	   /* of `samples`: outer frames are missing */
	uint64_t untied;   /* no C frame was found that the interpreter's frames belong to */
	uint64_t foreign;  /* programs that have an interpreter, which was not found to run */
};

struct guest_python_parts {
	const struct memory *memory;
	struct guest_dsos *dsos;
	const struct guest_host *host;
	struct sink *sink;
};

struct guest_python;

/* All of parts must outlive it. */
int guest_python_create(struct guest_python **out, const struct guest_python_parts *parts,
			struct err *e);
void guest_python_destroy(struct guest_python *g);

/* A sample of a task with its user frames, whose mappings are known. Errors are the sink's. */
int guest_python_see(struct guest_python *g, const struct guest_owner *owner,
		     const struct sample *s, struct stack *st, struct err *e);

int guest_python_finish(struct guest_python *g, struct err *e);
void guest_python_stats(const struct guest_python *g, struct guest_python_stats *out);

/*
 * guest_python_join: the frames of Python's interpreter and those of its C code as one stack.
 *
 * The interpreter is a C function (_PyEval_EvalFrameDefault) that runs one function of
 * Python after the other, and calls itself anew only through C. Of each such call it keeps
 * something on the C stack, whose address the frame that it was entered with tells
 * (struct sample_python): the C frame that this address lies in is the interpreter's, by
 * whatever name it goes, and the frames of Python up to that one are what it runs. So they
 * stand in the stack as its callees:
 *
 *	a C function called by inner()		native
 *	inner(), outer()			Python's, entered with outer()
 *	_PyEval_EvalFrameDefault		native, its frame has outer()'s `entry`
 *
 * Where the copied stack ends before an address, the frames are the outermost ones. Where
 * there were too many frames, one more stands for the rest of them. Where an
 * address is in no frame, or two of them are not in order, nothing is joined.
 *
 * Pure; any thread.
 */
enum python_joined {
	PYTHON_JOINED,
	PYTHON_UNTIED, /* the stack is as it was */
};

/* f: n frames, innermost first, ip: the address that each is given. */
struct python_frames {
	const struct sample_python *f;
	const uint64_t *ip;
	unsigned int n;
	uint64_t unknown; /* the address of what SAMPLE_PYTHON_SKIPPED has left out */
};

/* The outermost frames go where there are too many; *st says so. */
enum python_joined guest_python_join(struct stack *st, const struct python_frames *p);

#endif
