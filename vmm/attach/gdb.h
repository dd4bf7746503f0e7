/* SPDX-License-Identifier: GPL-2.0-or-later */
/* gdb: a machine behind a gdbstub, as a struct vm. */
#ifndef KVMPROF_VMM_ATTACH_GDB_H
#define KVMPROF_VMM_ATTACH_GDB_H

#include "base/err.h"

struct attach_config;
struct vm;

/*
 * As attach_open(), for a machine behind a gdbstub (cfg->gdb). It stands for each sample, and for the
 * consumer's reads of its memory: slow. What stands is not on the samples' clock: their weights
 * add up to the time that it ran.
 */
int gdb_open(struct vm **out, const struct attach_config *cfg, struct err *e);

#endif
