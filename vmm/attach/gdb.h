/* SPDX-License-Identifier: GPL-2.0-or-later */
/* gdb: presents a machine behind a gdbstub as a struct vm. */
#ifndef KVMPROF_VMM_ATTACH_GDB_H
#define KVMPROF_VMM_ATTACH_GDB_H

#include "base/err.h"

struct attach_config;
struct vm;

/*
 * Connects to the gdbstub cfg->gdb, and presents its machine like attach_open(). The machine is
 * stopped for each sample, and for the consumer's reads of its memory, which is slow. The time for
 * which it is stopped is not on the samples' clock: their weights add up to the time that it ran.
 * The caller frees *out with vm_destroy(). Called by the main thread. Returns 0 or -errno; after an
 * error the machine runs on.
 */
int gdb_open(struct vm **out, const struct attach_config *cfg, struct err *e);

#endif
