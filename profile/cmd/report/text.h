/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * text: the report as a table.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_TEXT_H
#define KVMPROF_PROFILE_CMD_REPORT_TEXT_H

#include "profile/cmd/report/row.h"

/* Returns 0 or -ENOMEM. */
int report_text(const struct report *r);

#endif
