/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * live_names: names of tasks and functions while the guest still runs.
 *
 * Fed with what the sink of the run is told; modules, mappings and files go straight to
 * `names`. What is beyond a limit has no name. One thread: the pipeline's consumer.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_VIEW_NAMES_H
#define KVMPROF_PROFILE_RECORD_CONTROL_VIEW_NAMES_H

#include "base/table.h"
#include "profile/format/names/names.h"
#include "profile/format/names/tasks.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/core/display_name.h"

#define LIVE_MAX_FUNCS 65536u
#define LIVE_MAX_THREADS (1u << 18)

/* A function, or an address without one. */
struct live_func {
	const char *name; /* "": none */
	const char *dso;
	uint64_t addr, size;
};

struct live_names {
	struct profile_kernel kernel;
	bool have_kernel;
	struct names *names;
	struct tasks *tasks;
	struct table func; /* struct live_func; a deinit forgets them: indexes are new then */
	struct display_names display;
};

/* False: no memory. */
bool live_names_init(struct live_names *n);
void live_names_deinit(struct live_names *n);

void live_names_kernel(struct live_names *n, const struct profile_kernel *k);
void live_names_fork(struct live_names *n, uint32_t pid, uint32_t tid, uint32_t ppid,
		     uint32_t ptid);
void live_names_comm(struct live_names *n, const struct profile_comm *c);

/* Index in func, UINT32_MAX beyond LIVE_MAX_FUNCS. kernel: addr is of the kernel's mode. */
uint32_t live_names_func(struct live_names *n, uint32_t pid, enum names_of whose, uint64_t addr);
/* The symbol at a kernel address, a module's too; NULL: none. *dso is set in any case. */
const struct symbol *live_names_kernel_symbol(const struct live_names *n, uint64_t addr,
					      const char **dso);

#endif
