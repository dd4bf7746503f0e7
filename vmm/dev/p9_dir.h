/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * p9_dir: handlers of the requests that read or change a directory. See p9_request in p9_private.h.
 */
#ifndef KVMPROF_VMM_DEV_P9_DIR_H
#define KVMPROF_VMM_DEV_P9_DIR_H

#include "vmm/dev/p9_private.h"

p9_request p9_do_lcreate, p9_do_mkdir, p9_do_symlink, p9_do_unlinkat, p9_do_renameat, p9_do_readdir;

#endif
