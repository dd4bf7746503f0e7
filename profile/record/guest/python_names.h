/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * python_names: addresses for the Python functions of samples, and their names.
 *
 * A profile identifies functions by addresses. Each Python function is given some that no program
 * can have, one for each of its lines, in a file of its own, `[python]`, which programs have mapped
 * at PYTHON_NAMES_BASE. Its ELF file is reported at the end, with symbols as perf names them for
 * CPython's own trampolines, `py::FUNCTION:FILE`.
 *
 * A code object is read once and recognized by the words that were copied with the sample: if
 * memory has other words by then, it is another object, and the frame is called `py::?`.
 *
 * All functions are called by the consumer thread only.
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
#define PYTHON_NAMES_MAX_CODE (1u << 17)    /* beyond it all are discarded and read again */
#define PYTHON_NAMES_MAX_TABLES (64u << 20) /* bytes of line tables that are kept */

struct python_names_stats {
	uint64_t functions;
	uint64_t read; /* code objects that were read */
	/* frames whose code object could not be read or was another one by then */
	uint64_t unknown;
	uint64_t beyond; /* functions over the maximum, which are unknown, too */
};

struct python_names;

/*
 * Returns 0, -ENOMEM, or -EIO without random numbers. The caller frees *out with
 * python_names_destroy(), which accepts NULL.
 */
int python_names_create(struct python_names **out, struct err *e);
void python_names_destroy(struct python_names *t);

/*
 * The program of a frame. p->mm and program.space are those of its process (as in struct
 * sample_task).
 */
struct python_names_program {
	const struct python_layout *layout;
	struct python_program program;
	uint64_t mm;
};
/*
 * Returns the address for a frame; it is PYTHON_NAMES_BASE if the function is unknown. It cannot
 * fail.
 */
uint64_t python_names_ip(struct python_names *t, const struct python_names_program *p,
			 const struct sample_python *f);

/*
 * Reports the mapping of `[python]` for process pid to the sink. To be called for each program
 * before its first sample with such a frame. Returns 0 or the error of the sink.
 */
int python_names_map(const struct python_names *t, struct sink *sink, uint32_t pid,
		     uint64_t time_ns, struct err *e);

/*
 * Reports the names of all functions to the sink; nothing if there were no frames. Returns 0,
 * -ENOMEM or the error of the sink.
 */
int python_names_finish(struct python_names *t, struct sink *sink, struct err *e);

/* Returns the counters, valid as long as t. */
const struct python_names_stats *python_names_stats(const struct python_names *t);

#endif
