/* SPDX-License-Identifier: GPL-2.0-or-later */
/* p9_state: saves and restores the fids of a shared directory for a snapshot. */
#ifndef KVMPROF_VMM_DEV_P9_STATE_H
#define KVMPROF_VMM_DEV_P9_STATE_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"

struct p9;

/*
 * Saves all fids. Returns 0, or -errno with *e recorded; -ENOTSUP if a file is open or was removed.
 */
int p9_save(const struct p9 *p, struct buf *out, struct err *e);
/*
 * Restores the fids that p9_save() has saved, and finds their files by name. Returns 0; -ENOENT and
 * the like; -ESTALE if a name is another file now; or -EINVAL for damaged bytes. No fids are left
 * after an error.
 */
int p9_restore(struct p9 *p, struct cursor *in, struct err *e);

#endif
