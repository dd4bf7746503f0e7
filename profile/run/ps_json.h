/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ps_json: one look at the guest's tasks, as members of a JSON object.
 *
 * The form is that of the reply to `ps`, docs/control.md. What is not known is left out.
 */
#ifndef KVMPROF_PROFILE_RUN_PS_JSON_H
#define KVMPROF_PROFILE_RUN_PS_JSON_H

#include "base/buf.h"
#include "profile/live/look.h"

/*
 * Each member has a comma in front. stacks: all frames of those that wait, not only where.
 * On the consumer's thread, or when it has ended. -EAGAIN: the tasks are not known yet,
 * with the reason in e.
 */
int ps_json(struct guest *g, bool stacks, struct buf *out, struct err *e);

#endif
