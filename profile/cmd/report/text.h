/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * text: prints the report as a table. Called by the main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_TEXT_H
#define KVMPROF_PROFILE_CMD_REPORT_TEXT_H

#include "profile/cmd/report/row.h"

/*
 * Prints the header and the rows to stdout, with call trees if asked for (-g). Returns 0 or
 * -ENOMEM.
 */
int report_text(const struct report *r);

#endif
