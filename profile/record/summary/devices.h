/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * devices: the part of the summary about the guest's use of its disks, network card and other
 * devices, and the tasks that submitted requests. Called by the thread that writes the summary.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_DEVICES_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_DEVICES_H

#include "profile/record/summary/facts.h"
#include "profile/record/summary/summary.h"

/*
 * Write "disks" and "io"; "network"; "devices"; and as JSON only "requests" and "packets" with the
 * numbers of later ones. The lists q are locked meanwhile.
 */
void summary_disks(const struct facts_out *o, const struct vm *vm,
		   const struct pipeline_io_stats *io);
void summary_net(const struct facts_out *o, const struct vm *vm,
		 const struct pipeline_io_stats *net);
void summary_devices(const struct facts_out *o, const struct vm *vm);
void summary_requests(const struct facts_out *o, const struct vm *vm, struct io_requests *q);
void summary_packets(const struct facts_out *o, struct io_requests *q);

#endif
