/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stat: where a machine's time went and why it left the guest, as counters by name.
 *
 * Three sources are joined: our own counts and clock (vcpu_stats), KVM's statistics
 * (kvmstats.h) and the host's accounting of the vCPU's thread (stat_thread.h). What each
 * counter is computed from stands in docs/man/kvmprof-stat.1. A counter that this host cannot give
 * is there, but not supported: never 0.
 */
#ifndef KVMPROF_PROFILE_RECORD_COUNTERS_STAT_H
#define KVMPROF_PROFILE_RECORD_COUNTERS_STAT_H

#include "profile/record/counters/stat_table.h"

struct vm;

struct stat_reader;

/* Between vm_create() and vm_start(). A KVM without statistics is no error. -ENOMEM. */
int stat_open(struct stat_reader **out, struct vm *vm, struct err *e);
void stat_close(struct stat_reader *s); /* NULL is fine */
/* For vm_config.vcpu_begins: opens the files of the vCPU's thread, which calls it. */
void stat_vcpu_begins(struct stat_reader *s, unsigned int vcpu);
/* For vm_config.vcpu_ends: on the vCPU's thread, whose times are gone afterwards. */
void stat_vcpu_ends(struct stat_reader *s, unsigned int vcpu);
/* Everything up to now. Not from several threads at once. */
void stat_read(struct stat_reader *s, struct stat_table *out);

#endif
