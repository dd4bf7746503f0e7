/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_jit: code that guest programs generate while they run, and its symbols.
 *
 * Executable memory without a program's file behind it is mapped as `[jit:PID]`, at a file offset
 * that is its address, with a build id made for the process. A JIT compiler writes symbols to its
 * /tmp/perf-PID.map. That file is searched for in the guest's memory and in its root directory on
 * the host, never in the host's own /tmp, when the process runs another program and at the end. Its
 * content then becomes an ELF file of that build id. Regions may grow, move and return: the one
 * file contains all regions that a process ever had. Code without a line in the map has addresses
 * only. Code in the place of an earlier function's is called `NAME [or older code]`, because
 * samples may be older than it.
 *
 * All functions are called by the consumer thread only. Sources:
 * tools/perf/Documentation/jit-interface.txt; docs/perf-data.md describes how perf reads it.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_JIT_H
#define KVMPROF_PROFILE_RECORD_GUEST_JIT_H

#include "profile/format/sink/sink.h"
#include "base/buf.h"
#include "base/err.h"
#include "profile/format/files/userfile.h"
#include "symbolizer/linux/facts.h"

/*
 * The objects by which a JIT compiler's /tmp/perf-PID.map is read from the guest's own memory.
 *
 * The file is found by the guest kernel's directory entries (symbolizer/linux/tree.h), from the
 * root directory of the process, or of the first process if that one has ended; its bytes are in
 * the page cache. Parts that the program has not written yet are missing.
 */
struct jit_source {
	const struct target_linux *facts;
	const struct memory *memory;
};

#define GUEST_JIT_MAX_PROCESSES 16384u
#define GUEST_JIT_MAX_REGIONS 65536u /* in all processes */
#define GUEST_JIT_MAX_OF_ONE 4096u   /* in one process; they are searched linearly */

struct guest_jit_stats {
	uint64_t processes; /* processes with such code */
	uint64_t regions;
	uint64_t named;	      /* regions in which some code has a symbol */
	uint64_t without_map; /* regions of processes without a map */
	uint64_t beyond;      /* regions over the maximum, which get no symbols */
	uint64_t from_memory; /* maps that were read from the guest's own memory */
	uint64_t names;
	uint64_t doubtful; /* the part of `names` whose function has bytes of an earlier one */
	char why[200];	   /* the first map that could not be used, and why; "": none */
};

struct guest_jit;

/*
 * Creates an empty list. finder and sink must outlive it; finder is NULL if the host's files must
 * not be used. Returns 0, -ENOMEM, or -EIO without random numbers. The caller frees it with
 * guest_jit_destroy(), which accepts NULL.
 */
int guest_jit_create(struct guest_jit **out, struct userfile_finder *finder, struct sink *sink,
		     struct err *e);
void guest_jit_destroy(struct guest_jit *j);

/*
 * Searches for maps in the guest's own memory first. *source is borrowed until guest_jit_destroy().
 */
void guest_jit_use_guest(struct guest_jit *j, const struct jit_source *source);

/*
 * Reports a region of process map->pid, whose mm_struct is at mm, to the sink; path, pgoff and
 * build_id of the mapping are filled in here. To be called again when the region has grown. Returns
 * 0, -ENOMEM or the error of the sink.
 */
int guest_jit_map(struct guest_jit *j, uint64_t mm, const struct profile_map *map, struct err *e);

/*
 * Reads the symbols of all processes whose map was not read yet, and reports them to the sink. To
 * be called once, after the last sample. Returns as guest_jit_map().
 */
int guest_jit_finish(struct guest_jit *j, struct err *e);

/* Returns the counters, valid as long as j. */
const struct guest_jit_stats *guest_jit_stats(const struct guest_jit *j);

#endif
