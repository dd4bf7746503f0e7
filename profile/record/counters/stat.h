/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stat: how a machine's time was spent and why it left the guest, as named counters.
 *
 * Three sources are combined: our own counts and clock (vcpu_stats), KVM's statistics (kvmstats.h)
 * and the host's accounting of the vCPU's thread (stat_thread.h). docs/man/kvmprof-stat.1 describes
 * how each counter is computed. A counter that this host does not provide is marked as not
 * supported, and is never 0.
 */
#ifndef KVMPROF_PROFILE_RECORD_COUNTERS_STAT_H
#define KVMPROF_PROFILE_RECORD_COUNTERS_STAT_H

#include "profile/record/counters/stat_table.h"

struct vm;

struct stat_reader;

/*
 * Opens the sources, between vm_create() and vm_start(); called by the main thread. A KVM without
 * statistics is not an error. vm must outlive the reader. Returns 0 or -ENOMEM. The caller frees
 * *out with stat_close().
 */
int stat_open(struct stat_reader **out, struct vm *vm, struct err *e);
/* NULL is allowed; called after the vCPUs' threads have ended */
void stat_close(struct stat_reader *s);
/* Implements vm_config.vcpu_begins: opens the files of the vCPU's thread, which calls it. */
void stat_vcpu_begins(struct stat_reader *s, unsigned int vcpu);
/* Implements vm_config.vcpu_ends: reads the final values; called by the vCPU's thread. */
void stat_vcpu_ends(struct stat_reader *s, unsigned int vcpu);
/* Reads all counters up to now into *out. Any thread, one at a time. */
void stat_read(struct stat_reader *s, struct stat_table *out);

#endif
