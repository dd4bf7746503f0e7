/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * summary_exact: what a run's summary says of the engine that counted its instructions.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_EXACT_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_EXACT_H

#include "base/buf.h"
#include "vmm/vm.h"

#include <stdio.h>

/* Of a machine that counts instructions; nothing of others. vm has been joined. */
void summary_exact_print(const struct vm *vm, FILE *out);
/* ,"engine":{...}: what must be the same for two profiles to be comparable, and what was counted. */
void summary_exact_json(const struct vm *vm, struct buf *b);

#endif
