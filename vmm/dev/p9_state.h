/* SPDX-License-Identifier: GPL-2.0-or-later */
/* p9_state: for a snapshot, where the fids of a shared directory stand. */
#ifndef KVMPROF_VMM_DEV_P9_STATE_H
#define KVMPROF_VMM_DEV_P9_STATE_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"

struct p9;

/*
 * save() -ENOTSUP: a file is open, or one was removed. restore() finds them by their names; -ENOENT and the
 * like, -ESTALE: one is another file now, -EINVAL.
 */
int p9_save(const struct p9 *p, struct buf *out, struct err *e);
int p9_restore(struct p9 *p, struct cursor *in, struct err *e);

#endif
