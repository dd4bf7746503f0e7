/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * summary_attach: what a run's summary says of the process that it was attached to.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_ATTACH_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_ATTACH_H

#include "base/buf.h"
#include "vmm/vm.h"

#include <stdio.h>

/* vm came from vm_attach() and has been joined. */
void summary_attach_print(const struct vm *vm, FILE *out);
/* ,"attach":{...} */
void summary_attach_json(const struct vm *vm, struct buf *b);

#endif
