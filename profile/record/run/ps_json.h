/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ps_json: one look at the guest's tasks, as a JSON object.
 *
 * The form is that of the reply to `ps`, docs/control.md. What is not known is left out.
 * ps_view.h makes a table of it.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_PS_JSON_H
#define KVMPROF_PROFILE_RECORD_RUN_PS_JSON_H

#include "base/buf.h"
#include "profile/record/pipeline/look.h"

#include <jansson.h>

/* Of those that wait: where, or all frames. */
enum ps_stacks { PS_WITHOUT_STACKS, PS_WITH_STACKS };

/*
 * *out is the caller's.
 * On the consumer's thread, or when it has ended. -EAGAIN: the tasks are not known yet,
 * with the reason in e.
 */
int ps_json_look(struct guest *g, enum ps_stacks stacks, json_t **out, struct err *e);
/* The same as text for a reply: members, each with a comma in front. */
int ps_json(struct guest *g, enum ps_stacks stacks, struct buf *out, struct err *e);

#endif
