/* SPDX-License-Identifier: GPL-2.0-or-later */
/* printk_old: reads the log before 5.10, for linux_printk_read(). */
#ifndef KVMPROF_SYMBOLIZER_LINUX_PRINTK_OLD_H
#define KVMPROF_SYMBOLIZER_LINUX_PRINTK_OLD_H

#include "symbolizer/linux/printk.h"

/* Reads the log of l->log_buf. The contract is that of linux_printk_read(). */
int printk_old_read(const struct linux_printk_layout *l, const struct memory *m,
		    struct linux_printk_reading *to, struct err *e);

#endif
