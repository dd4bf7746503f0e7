/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_exact: `kvmprof run --engine exact` within a run: the machine, and what its profile says.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_EXACT_H
#define KVMPROF_PROFILE_RECORD_RUN_EXACT_H

#include "base/err.h"
#include "profile/record/options/options.h"
#include "profile/format/sink/sink.h"

/* An NVDIMM's name in Linux, with its number behind it. */
#define RUN_EXACT_DISK "/dev/pmem"

struct run;
struct run_source;
struct tune_request;

/*
 * How QEMU enters the kernel, in place of run_source_choose_way(): as a bzImage, by multiboot or by
 * PVH. -ENOTSUP: it has no such way.
 */
int run_exact_choose_way(struct run_source *s, enum boot_way asked, struct err *e);
/* The machine, whose inputs are open: r->vm. cmdline: makes r->cmdline. */
int run_exact_make(struct run *r, void (*cmdline)(struct run *r, struct tune_request *tr),
		   struct err *e);
/*
 * Nothing of this host, of this moment or of where the profile goes may stand in it: info, which is
 * filled in for a run under KVM, becomes that of an exact one. argv: room for argc + 1 words.
 */
void run_exact_info(const struct run *r, struct profile_info *info, char **argv);

#endif
