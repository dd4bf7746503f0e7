/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_jit: code that guest programs make while they run, and its names.
 *
 * Executable memory without a program's file behind it is mapped as `[jit:PID]`, at a
 * file offset that is its address, with a build id made up for the process. A JIT
 * compiler tells names in its /tmp/perf-PID.map, which is looked for in the guest's
 * memory and in its root directory on the host, never in the host's own /tmp, when the process's place
 * is taken by another program and at the end. What it says then becomes an ELF file
 * of that build id. Regions may grow, move and come again: all that a process ever
 * had are in its one file. Code that no line names keeps its addresses. Code in
 * the place of an earlier function's is called `NAME [or older code]`: samples may be older than it.
 *
 * Used by the consumer's thread alone. Sources: tools/perf/Documentation/
 * jit-interface.txt; docs/perf-data.md tells what perf makes of it.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_JIT_H
#define KVMPROF_PROFILE_RECORD_GUEST_JIT_H

#include "profile/format/sink/sink.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/format/files/userfile.h"
#include "symbolizer/linux/facts.h"

/*
 * A JIT compiler's /tmp/perf-PID.map out of the guest's own memory.
 *
 * The file is found by the names that the guest's kernel keeps (symbolizer/linux/tree.h), from
 * the root directory of the process on, or of the first process where that one has ended;
 * its bytes are in the page cache. What a program has not written yet is not there. The
 * consumer's thread.
 */
struct jit_source {
	const struct target_linux *facts;
	const struct memory *memory;
};

#define GUEST_JIT_MAX_PROCESSES 16384u
#define GUEST_JIT_MAX_REGIONS 65536u /* of all processes */
#define GUEST_JIT_MAX_OF_ONE 4096u   /* of one process: they are searched one by one */

struct guest_jit_stats {
	uint64_t processes; /* that have such code */
	uint64_t regions;
	uint64_t named;	      /* regions in which something has a name */
	uint64_t without_map; /* regions of processes that have no map */
	uint64_t beyond;      /* regions over the caps: they stay without names */
	uint64_t from_memory; /* maps that were in the guest's own memory */
	uint64_t names;
	uint64_t doubtful; /* of these: an earlier function had some of its bytes */
	char why[200];	   /* the first map that could not be used, and why; "": none */
};

struct guest_jit;

/* Both must outlive it. finder NULL: nothing of the host is looked at. */
int guest_jit_create(struct guest_jit **out, struct userfile_finder *finder, struct sink *sink,
		     struct err *e);
void guest_jit_destroy(struct guest_jit *j);

/* Look for maps in the guest's own memory first; borrowed. */
void guest_jit_use_guest(struct guest_jit *j, const struct jit_source *source);

/*
 * Tell the sink of a region of process map->pid, whose mm_struct is mm; path, pgoff and
 * build_id are filled in here. Again when it has grown. Errors are the sink's.
 */
int guest_jit_map(struct guest_jit *j, uint64_t mm, const struct profile_map *map, struct err *e);

/* No more samples will come: names for all that have none yet. Errors are the sink's. */
int guest_jit_finish(struct guest_jit *j, struct err *e);

const struct guest_jit_stats *guest_jit_stats(const struct guest_jit *j);

#endif
