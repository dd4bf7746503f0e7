/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sink_null: a profile that nobody wants, for those who look at the guest alone.
 */
#ifndef KVMPROF_PROFILE_SINK_NULL_H
#define KVMPROF_PROFILE_SINK_NULL_H

#include "profile/sink.h"

/* Nothing is kept, each call succeeds but copy(); destroy() does nothing. */
struct sink *sink_null(void);

#endif
