/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python_join: the frames of Python's interpreter and those of its C code as one stack.
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
#ifndef KVMPROF_PROFILE_RECORD_GUEST_PYTHON_JOIN_H
#define KVMPROF_PROFILE_RECORD_GUEST_PYTHON_JOIN_H

#include "base/sample.h"
#include "symbolizer/core/stack.h"

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
enum python_joined python_join(struct stack *st, const struct python_frames *p);

#endif
