/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ps_json: the guest's tasks as JSON.
 *
 * The format is that of the reply to `ps`, see docs/control.md. Unknown members are omitted.
 * ps_view.h prints it as a table. Functions are called by the consumer thread, or by the main
 * thread after that has ended.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_PS_JSON_H
#define KVMPROF_PROFILE_RECORD_RUN_PS_JSON_H

#include "base/buf.h"
#include "profile/record/pipeline/task_walk.h"

#include <jansson.h>

/* For waiting tasks: only the function in which they wait, or all frames. */
enum ps_stacks { PS_WITHOUT_STACKS, PS_WITH_STACKS };

/*
 * Reads all tasks of g into a new object *out, which the caller frees with json_decref(). Returns
 * 0, -ENOMEM, or -EAGAIN with the reason in *e if the tasks are not known yet.
 */
int ps_json_read(struct guest *g, enum ps_stacks stacks, json_t **out, struct err *e);
/*
 * Appends the same to *out as text for a reply: members, each with a leading comma. Returns as
 * ps_json_read().
 */
int ps_json(struct guest *g, enum ps_stacks stacks, struct buf *out, struct err *e);

#endif
