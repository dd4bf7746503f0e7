/* SPDX-License-Identifier: GPL-2.0-or-later */
/* split: a machine that another process runs, as a struct vm in a process that has no rights over it. */
#ifndef KVMPROF_VMM_ATTACH_SPLIT_H
#define KVMPROF_VMM_ATTACH_SPLIT_H

#include "base/err.h"

struct attach_config;
struct vm;

/*
 * As attach_open(), in two processes: a child traces, and this process has no rights over the other machine. It reads guest
 * memory through the child, bytes within the machine's RAM and nothing else. docs/attach.md describes the two.
 */
int split_open(struct vm **out, const struct attach_config *cfg, struct err *e);

#endif
