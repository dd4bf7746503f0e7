/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_ps_attach: the task list of a machine that another VMM runs, by attaching to it for a
 * moment. Main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_PS_ATTACH_H
#define KVMPROF_PROFILE_CMD_PS_ATTACH_H

#include "base/err.h"
#include "profile/record/libvirt/attach_domain.h"
#include "profile/record/run/ps_json.h"

#include <jansson.h>
#include <stdbool.h>

/* How long the kernel is looked for: idle guests are seen, but stopped ones are not. */
#define PS_ATTACH_WAIT_S 20

/*
 * One look, or two with interval_s > 0 between them: then *before has the first one. Both are
 * the caller's. -ETIMEDOUT: no kernel with tasks was found; -EINTR after a signal.
 */
int ps_attach(const struct attach_request *what, double interval_s, enum ps_stacks stacks,
	      json_t **before, json_t **now, struct err *e);

#endif
