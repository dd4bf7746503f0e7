/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_source: a JIT compiler's /tmp/perf-PID.map out of the guest's own memory.
 *
 * The file is found by the names that the guest's kernel keeps (symbolizer/linux/tree.h), from
 * the root directory of the process on, or of the first process where that one has ended;
 * its bytes are in the page cache. What a program has not written yet is not there. The
 * consumer's thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_JIT_SOURCE_H
#define KVMPROF_PROFILE_RECORD_GUEST_JIT_SOURCE_H

#include "base/buf.h"
#include "base/err.h"
#include "symbolizer/linux/facts.h"

struct jit_source {
	const struct target_linux *facts;
	const struct memory *memory;
};

/*
 * Append the map of process pid, whose mm_struct is mm, as far as its lines are in memory.
 * -ENOENT: there is none, or it can't be found; -ENODATA: none of it is in memory. e has the reason.
 */
int jit_source_read(const struct jit_source *s, uint32_t pid, uint64_t mm, struct buf *out,
		    struct err *e);

#endif
