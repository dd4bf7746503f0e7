/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_null: a profile that nobody keeps, for commands that show what happens as it does.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_NULL_H
#define KVMPROF_PROFILE_FORMAT_SINK_NULL_H

#include "profile/format/sink/sink.h"

int sink_null_create(struct sink **out, struct err *e);

#endif
