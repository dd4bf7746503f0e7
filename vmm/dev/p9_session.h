/* SPDX-License-Identifier: GPL-2.0-or-later */
/* p9_session: requests about the session, and walks from file to file. */
#ifndef KVMPROF_VMM_DEV_P9_SESSION_H
#define KVMPROF_VMM_DEV_P9_SESSION_H

#include "vmm/dev/p9_private.h"

/* From a node to the one of that name in it, or with ".." back: a reference, or -errno. */
int p9_step(struct p9_node *from, const char *name, struct p9_node **out);

p9_request p9_do_version, p9_do_attach, p9_do_flush, p9_do_walk, p9_do_clunk, p9_do_statfs;

#endif
