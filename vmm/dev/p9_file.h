/* SPDX-License-Identifier: GPL-2.0-or-later */
/* p9_file: handlers of the requests about one file. See p9_request in p9_private.h. */
#ifndef KVMPROF_VMM_DEV_P9_FILE_H
#define KVMPROF_VMM_DEV_P9_FILE_H

#include "vmm/dev/p9_private.h"

p9_request p9_do_lopen, p9_do_read, p9_do_write, p9_do_getattr, p9_do_setattr, p9_do_fsync,
	p9_do_lock, p9_do_getlock, p9_do_readlink;

#endif
