/* SPDX-License-Identifier: GPL-2.0-or-later */
/* peek_answer: reads the answer of the BPF program. Any thread may call these functions. */
#ifndef KVMPROF_VMM_PVM_PEEK_ANSWER_H
#define KVMPROF_VMM_PVM_PEEK_ANSWER_H

#include "vmm/pvm/peek_record.h"

#include <linux/kvm.h>
#include <stddef.h>
#include <stdint.h>

/* Converts registers to KVM's structures; what a record lacks (FS and GS bases, limits) is 0. */
void peek_regs_to_kvm(const struct peek_regs *r, struct kvm_regs *regs, struct kvm_sregs *s);
/* Returns the name of the first register that differs, a static string, or NULL if none does. */
const char *peek_regs_differ(const struct peek_regs *r, const struct kvm_run *run);
/*
 * Copies memory from the pieces of the record. Returns 0, or -ENODATA unless all of it is there.
 * The record is untrusted: reads stay within it.
 */
int peek_record_read(const struct peek_answer *a, uint64_t host, void *dst, size_t len);

#endif
