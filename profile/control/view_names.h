/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * live_names: names of tasks and functions while the guest still runs.
 *
 * Fed with what the sink of the run is told. Names come from memory alone: the kernel's
 * and the modules' symbols where they are, of programs a copy of their ELF file, which is
 * read when its first address is asked for. All of it has caps; beyond them names are
 * missing. One thread: the pipeline's consumer.
 */
#ifndef KVMPROF_PROFILE_CONTROL_VIEW_NAMES_H
#define KVMPROF_PROFILE_CONTROL_VIEW_NAMES_H

#include "symbolizer/core/display_name.h"
#include "base/idmap.h"
#include "profile/sink/sink.h"
#include "profile/names/spaces.h"
#include "base/table.h"

#define LIVE_MAX_FUNCS 65536u
#define LIVE_MAX_MODULES 16384u /* ranges over the whole run */
#define LIVE_MAX_DSOS 8192u
#define LIVE_MAX_ELF (64u << 20) /* bytes of all files that wait to be read */
#define LIVE_MAX_THREADS (1u << 18)
#define LIVE_MAX_COMMS 65536u
#define LIVE_COMM 16u

/* A function, or an address without one. */
struct live_func {
	const char *name; /* "": none */
	const char *dso;
	uint64_t addr, size;
};

struct live_names {
	struct profile_kernel kernel;
	bool have_kernel;
	struct profile_module *module; /* names are owned, with brackets */
	size_t nmodules, module_cap;
	struct table dso; /* struct live_dso */
	size_t elf_bytes; /* waiting */
	struct spaces spaces;
	struct table comm;    /* char[LIVE_COMM] */
	struct idmap comm_of; /* tid -> index of comm */
	struct table func;    /* struct live_func */
	struct display_names display;
	struct live_cached *cache;
	uint32_t stamp; /* of what is in the cache; changes with each mapping */
};

/* False: no memory. */
bool live_names_init(struct live_names *n);
void live_names_deinit(struct live_names *n);

void live_names_kernel(struct live_names *n, const struct profile_kernel *k);
void live_names_module(struct live_names *n, const struct profile_module *m);
void live_names_map(struct live_names *n, const struct profile_map *m);
void live_names_dso(struct live_names *n, const struct profile_dso *d);
void live_names_fork(struct live_names *n, uint32_t pid, uint32_t tid, uint32_t ppid,
		     uint32_t ptid);
void live_names_comm(struct live_names *n, uint32_t pid, uint32_t tid, const char *comm, bool exec);

/* Forget all functions, so that others find room: indexes are new from now on. */
void live_names_restart(struct live_names *n);

/* Index in func, UINT32_MAX beyond LIVE_MAX_FUNCS. kernel: addr is of the kernel's mode. */
uint32_t live_names_func(struct live_names *n, uint32_t pid, bool kernel, uint64_t addr);
/* The symbol at a kernel address, a module's too; NULL: none. *dso is set in any case. */
const struct symbol *live_names_kernel_symbol(const struct live_names *n, uint64_t addr,
					      const char **dso);

/* Index in comm; that of a thread nobody named is of "". */
uint32_t live_names_comm_of(struct live_names *n, uint32_t tid);
static inline const char *live_names_comm_text(const struct live_names *n, uint32_t comm)
{
	return (const char *)n->comm.item + (size_t)comm * LIVE_COMM;
}

#endif
