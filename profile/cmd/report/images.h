/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * images: the tables of a report by image (--images). Called by the main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_IMAGES_H
#define KVMPROF_PROFILE_CMD_REPORT_IMAGES_H

#include "profile/cmd/report/row.h"

/*
 * Prints the table of images to stdout, or with --functions one table for each. Returns 0 or
 * -ENOMEM.
 */
int report_images(const struct report *r);

#endif
