/* SPDX-License-Identifier: GPL-2.0-or-later */
/* printk_ring: reads the log since 5.10, for linux_printk_read(). */
#ifndef KVMPROF_SYMBOLIZER_LINUX_PRINTK_RING_H
#define KVMPROF_SYMBOLIZER_LINUX_PRINTK_RING_H

#include "symbolizer/linux/printk.h"

/* Fills in *out from the kernel's types. Returns whether they have all that is needed. */
bool printk_ring_by_types(struct linux_printk_ring *out, const struct types *t);
/* Reads the log of l->prb. The contract is that of linux_printk_read(). */
int printk_ring_read(const struct linux_printk_layout *l, const struct memory *m,
		     struct linux_printk_reading *to, struct err *e);

#endif
