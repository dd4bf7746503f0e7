/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * data: prints the report as JSON and as CSV to stdout. Called by the main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_DATA_H
#define KVMPROF_PROFILE_CMD_REPORT_DATA_H

#include "profile/cmd/report/row.h"

/* Prints the report as a JSON object. Returns 0 or -ENOMEM. */
int report_json(const struct report *r);
/* Prints the report as CSV (RFC 4180) with a line of headings. */
void report_csv(const struct report *r);

#endif
