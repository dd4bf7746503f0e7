/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python_layout: finds where a build of CPython stores its threads and their frames.
 *
 *	_PyRuntime	a variable: the list of interpreters
 *	interpreter	the list of its threads' states
 *	thread state	pthread_self() of its thread; the innermost frame. 3.11 and 3.12 have it
 *			in a structure (_PyCFrame) on the C stack of each call of the interpreter
 *	frame		code object, instruction, the frame before; whose it is
 *	code object	names, file, first line, table of lines; its instructions
 *
 * From 3.13 on _PyRuntime begins with the word "xdebugpy" and these offsets. For 3.11 and
 * 3.12 this module knows them. A layout is accepted only if it leads to a thread of the program
 * whose innermost frame points to an object of type "code" with names of type "str", and whose
 * instruction is in that object's code. If two layouts do, neither is accepted.
 *
 * Sources: Include/internal/pycore_runtime.h, pycore_frame.h, pycore_interp.h and
 * Include/cpython/pystate.h, code.h, unicodeobject.h of CPython 3.11.7, 3.12.1, 3.13.0.
 *
 * The program may change all of it meanwhile, and may be hostile: each walk is limited.
 * Addresses are of the program, in the address space `space`. No state: any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_PYTHON_PYTHON_LAYOUT_H
#define KVMPROF_SYMBOLIZER_PYTHON_PYTHON_LAYOUT_H

#include "symbolizer/core/memory.h"

#define PYTHON_MAX_INTERPRETERS 256u
#define PYTHON_MAX_THREADS 4096u     /* most threads in the list of one interpreter */
#define PYTHON_MAX_OFFSET (1u << 20) /* bytes, of a member */
#define PYTHON_MAX_FRAME 128u	     /* bytes of a frame before its variables */
#define PYTHON_NONE UINT32_MAX	     /* a member that this build does not have */

struct python_layout {
	const char *name; /* "3.11", for messages */
	uint32_t runtime_interpreters, interpreter_next, interpreter_threads;
	uint32_t thread_next, thread_interpreter, thread_id, thread_current;
	uint32_t thread_top; /* end of its current frames, or PYTHON_NONE */
	bool cframe;	     /* thread_current points to a _PyCFrame, which has: */
	uint32_t cframe_current, cframe_previous;
	uint32_t frame_code, frame_previous, frame_instr, frame_owner;
	/* 3.11: whether the interpreter was entered with it; or PYTHON_NONE. */
	uint32_t frame_is_entry;
	uint32_t frame_span;  /* bytes that contain the members above */
	uint8_t owner_thread; /* owner of frames in the thread's own memory, below thread_top */
	/* Owner of frames on the C stack, where the interpreter was entered; 0: none. */
	uint8_t owner_c;
	uint32_t code_file, code_qualname, code_lines, code_first, code_start;
	uint32_t object_type, type_name;
	uint32_t bytes_len, bytes_data;
	uint32_t string_len, string_state, string_ascii,
		string_compact; /* where characters begin */
};

enum python_found {
	PYTHON_FOUND,
	PYTHON_NOT_YET, /* it may be found later: no Python code runs, or a page is missing */
	PYTHON_UNKNOWN, /* an unknown build */
};

struct python_program {
	const struct memory *memory;
	uint64_t space;	  /* a CR3 */
	uint64_t runtime; /* address of _PyRuntime */
};

/*
 * Finds the layout. fs_base: of a thread of the program that runs Python. *out is written for
 * PYTHON_FOUND only.
 */
enum python_found python_layout_find(struct python_layout *out, const struct python_program *p,
				     uint64_t fs_base);

/* Returns the address of the state of the thread with this fs_base; 0 if it has none (now). */
uint64_t python_thread(const struct python_layout *l, const struct python_program *p,
		       uint64_t fs_base);

#endif
