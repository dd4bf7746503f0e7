/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * summary_net: the packets of the guest's network card; part of the summary.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_NET_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_NET_H

#include "base/buf.h"
#include "profile/record/pipeline/pipeline.h"
#include "vmm/vm.h"

#include <stdio.h>

/* Nothing where there is no card. */
void summary_net_print(const struct vm *vm, const struct pipeline_io_stats *net, FILE *out);
/* As a member `"network":{...}`, or null, with a comma in front. */
void summary_net_json(const struct vm *vm, const struct pipeline_io_stats *net, struct buf *out);
/* As `"packets":[...]` and `"packets_beyond":n`, with a comma in front. */
void summary_packets_json(struct io_requests *q, struct buf *out);

#endif
