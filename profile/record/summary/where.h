/* SPDX-License-Identifier: GPL-2.0-or-later */
/* where: the summary's line on where the time of the vCPUs went. */
#ifndef KVMPROF_PROFILE_RECORD_SUMMARY_WHERE_H
#define KVMPROF_PROFILE_RECORD_SUMMARY_WHERE_H

#include "profile/record/summary/summary.h"

#include <stdio.h>

/* Where nothing is known of it nothing is printed. With the event host also what this host tells of itself. */
void summary_where_print(const struct summary *s, FILE *out);
/* ,"where":{...}: weights of samples of the event host, ns. Nothing without it. */
void summary_where_json(const struct summary *s, struct buf *out);

#endif
