/* SPDX-License-Identifier: GPL-2.0-or-later */
/* p9_session: handlers of the requests about the session, and of walks from file to file. */
#ifndef KVMPROF_VMM_DEV_P9_SESSION_H
#define KVMPROF_VMM_DEV_P9_SESSION_H

#include "vmm/dev/p9_private.h"

/*
 * Walks from a node to the entry `name` in it, or back to its parent with "..". Stores a new
 * reference in *out. Returns 0 or -errno.
 */
int p9_step(struct p9_node *from, const char *name, struct p9_node **out);

p9_request p9_do_version, p9_do_attach, p9_do_flush, p9_do_walk, p9_do_clunk, p9_do_statfs;

#endif
