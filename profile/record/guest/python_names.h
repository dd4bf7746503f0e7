/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python_names: addresses for the functions of Python that samples had, and their names.
 *
 * A profile knows functions by addresses. Each function of Python is given some that no
 * program can have, one for each of its lines, in a file of its own, `[python]`, which
 * programs have mapped at PYTHON_NAMES_BASE. At the end its ELF file is told: symbols as
 * perf names them for CPython's own trampolines, `py::FUNCTION:FILE`.
 *
 * A code object is read once and known again by the words that were copied with the sample:
 * where memory has others by then, it is another one, and the frame is called `py::?`.
 *
 * The consumer's thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_PYTHON_NAMES_H
#define KVMPROF_PROFILE_RECORD_GUEST_PYTHON_NAMES_H

#include "base/sample.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/python/python_code.h"

/* Not canonical, with four and with five levels of page tables. */
#define PYTHON_NAMES_BASE UINT64_C(0x0100000000000000)
#define PYTHON_NAMES_LEN (UINT64_C(1) << 32)
#define PYTHON_NAMES_MAX_FUNCTIONS (1u << 18)
#define PYTHON_NAMES_MAX_CODE (1u << 17)    /* beyond it all are read again */
#define PYTHON_NAMES_MAX_TABLES (64u << 20) /* bytes of tables of lines that are kept */

struct python_names_stats {
	uint64_t functions;
	uint64_t read; /* code objects */
	uint64_t
		unknown; /* frames whose code object could not be read, or was another one by then */
	uint64_t beyond; /* functions over the cap, which are unknown, too */
};

struct python_names;

int python_names_create(struct python_names **out, struct err *e);
void python_names_destroy(struct python_names *t);

/* The address of a frame; p->space and mm (as in struct sample_task) are its program's. */
struct python_names_program {
	const struct python_layout *layout;
	struct python_program program;
	uint64_t mm;
};
uint64_t python_names_ip(struct python_names *t, const struct python_names_program *p,
			 const struct sample_python *f);

/* To be announced for each program, before the first sample with such a frame. */
int python_names_map(const struct python_names *t, struct sink *sink, uint32_t pid,
		     uint64_t time_ns, struct err *e);

/* The names of all. Nothing where there were no frames. Errors are the sink's. */
int python_names_finish(struct python_names *t, struct sink *sink, struct err *e);

const struct python_names_stats *python_names_stats(const struct python_names *t);

#endif
