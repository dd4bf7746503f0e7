/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * images: the tables of a report by image (--images).
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_IMAGES_H
#define KVMPROF_PROFILE_CMD_REPORT_IMAGES_H

#include "profile/cmd/report/row.h"

/* Returns 0 or -ENOMEM. */
int report_images(const struct report *r);

#endif
