/* SPDX-License-Identifier: GPL-2.0-or-later */
/* peek_answer: the answer of the BPF program, read. */
#ifndef KVMPROF_VMM_PVM_PEEK_ANSWER_H
#define KVMPROF_VMM_PVM_PEEK_ANSWER_H

#include "vmm/pvm/peek_record.h"

#include <linux/kvm.h>
#include <stddef.h>
#include <stdint.h>

/* As KVM stores them; what a record has not (FS and GS bases, limits) is 0. */
void peek_regs_to_kvm(const struct peek_regs *r, struct kvm_regs *regs, struct kvm_sregs *s);
/* The name of the first register that differs; NULL: none. */
const char *peek_regs_differ(const struct peek_regs *r, const struct kvm_run *run);
/* Out of the pieces: all of it or -ENODATA. The record is untrusted: our memory alone is safe from it. */
int peek_record_read(const struct peek_answer *a, uint64_t host, void *dst, size_t len);

#endif
