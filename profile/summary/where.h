/* SPDX-License-Identifier: GPL-2.0-or-later */
/* where: the summary's line on where the time of the vCPUs went. */
#ifndef KVMPROF_PROFILE_SUMMARY_WHERE_H
#define KVMPROF_PROFILE_SUMMARY_WHERE_H

#include "profile/counters/stat.h"

#include <stdio.h>

/* stat NULL: nothing is known of it, and nothing is printed. */
void summary_where_print(struct stat *stat, FILE *out);

#endif
