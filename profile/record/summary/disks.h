/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * summary_disks: what the guest asked of its disks, and what is known of who did; part of
 * the summary.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_DISKS_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_DISKS_H

#include "base/buf.h"
#include "profile/record/pipeline/pipeline.h"
#include "vmm/vm.h"

#include <stdio.h>

void summary_disks_print(const struct vm *vm, const struct pipeline_io_stats *io, FILE *out);
/* As members `"disks":[...]` and `"io":{...}` with a comma in front. */
void summary_disks_json(const struct vm *vm, const struct pipeline_io_stats *io, struct buf *out);
/* As `"requests":[...]` and `"requests_beyond":n`, with a comma in front. */
void summary_requests_json(const struct vm *vm, struct io_requests *q, struct buf *out);

#endif
