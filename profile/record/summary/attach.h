/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attach: the part of the summary about the machine of another process, a gdbstub or a libvirt
 * domain, or of QEMU that counts instructions. Called by the thread that writes the summary.
 */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_ATTACH_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_ATTACH_H

#include "profile/record/summary/facts.h"
#include "profile/record/summary/summary.h"

/*
 * Write "attach", for a vm from attach_open(); "domain", if d is not NULL; "engine", if the vm
 * counts instructions.
 */
void summary_attach(const struct facts_out *o, const struct vm *vm);
void summary_domain(const struct facts_out *o, const struct attach_domain *d);
void summary_engine(const struct facts_out *o, const struct vm *vm);

#endif
