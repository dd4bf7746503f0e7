/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_ctl: replies of the control socket as people read them. Main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_CTL_H
#define KVMPROF_PROFILE_CMD_CTL_H

#include <jansson.h>

/* The reply to the command of that name; what it lacks is left out or 0. */
void ctl_print(const char *command, const json_t *reply);

#endif
