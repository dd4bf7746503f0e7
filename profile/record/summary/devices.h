/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * devices: how much the guest used its disks, its network card and other devices, and what is known of who did.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_DEVICES_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_DEVICES_H

#include "profile/record/summary/facts.h"
#include "profile/record/summary/summary.h"

/* "disks" and "io"; "network"; "devices"; "requests" and "packets" with those beyond them, as JSON only. */
void summary_disks(const struct facts_out *o, const struct vm *vm,
		   const struct pipeline_io_stats *io);
void summary_net(const struct facts_out *o, const struct vm *vm,
		 const struct pipeline_io_stats *net);
void summary_devices(const struct facts_out *o, const struct vm *vm);
void summary_requests(const struct facts_out *o, const struct vm *vm, struct io_requests *q);
void summary_packets(const struct facts_out *o, struct io_requests *q);

#endif
