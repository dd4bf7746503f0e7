/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_exact: the machine and the profile of `kvmprof run --engine exact`. All functions are called
 * by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_EXACT_H
#define KVMPROF_PROFILE_RECORD_RUN_EXACT_H

#include "base/err.h"
#include "profile/record/options/options.h"
#include "profile/format/sink/sink.h"

/* The name of an NVDIMM in Linux, which its number follows. */
#define RUN_EXACT_DISK "/dev/pmem"

struct run;
struct run_source;
struct tune_request;

/*
 * Chooses how QEMU enters the kernel, in place of run_source_choose_protocol(): as a bzImage, by
 * multiboot or by PVH. Returns 0, or -ENOTSUP if the kernel has no such entry.
 */
int run_exact_choose_protocol(struct run_source *s, enum boot_protocol asked, struct err *e);
/*
 * Creates the machine r->vm from inputs that are open. cmdline() creates r->cmdline. Returns 0 or
 * -errno with the reason in *e; r owns all that was created.
 */
int run_exact_make(struct run *r, void (*cmdline)(struct run *r, struct tune_request *tr),
		   struct err *e);
/*
 * Changes *info, which is filled in for a run under KVM, to that of an exact run: nothing of this
 * host, of the current time or of the profile's path may be in it. argv is the caller's array for
 * argc + 1 words, to which info->argv then points.
 */
void run_exact_info(const struct run *r, struct profile_info *info, char **argv);

#endif
