/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * split: presents a machine that another process runs as a struct vm, in a process that has no
 * rights over that machine.
 */
#ifndef KVMPROF_VMM_ATTACH_SPLIT_H
#define KVMPROF_VMM_ATTACH_SPLIT_H

#include "base/err.h"

struct attach_config;
struct vm;

/*
 * Does the same as attach_open() in two processes: a child traces, and this process has no rights
 * over the other machine. It reads guest memory through the child, which serves bytes of the
 * machine's RAM only. docs/attach.md describes the two. The caller frees *out with vm_destroy().
 * Called by the main thread. Returns 0 or -errno as attach_open().
 */
int split_open(struct vm **out, const struct attach_config *cfg, struct err *e);

#endif
