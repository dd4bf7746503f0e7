/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * data: the report as JSON and as CSV.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_DATA_H
#define KVMPROF_PROFILE_CMD_REPORT_DATA_H

#include "profile/cmd/report/row.h"

/* Returns 0 or -ENOMEM. */
int report_json(const struct report *r);
void report_csv(const struct report *r);

#endif
