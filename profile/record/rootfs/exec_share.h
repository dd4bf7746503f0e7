/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exec_share: `--share DIR[:PLACE][,ro]`, taken apart.
 */
#ifndef KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_SHARE_H
#define KVMPROF_PROFILE_RECORD_ROOTFS_EXEC_SHARE_H

#include "base/err.h"

#include <limits.h>
#include <stdbool.h>

#define EXEC_TAG_MAX 31u /* of Linux' virtio-9p: a word in /proc/mounts */

struct exec_share {
	char dir[PATH_MAX]; /* of this host, absolute */
	char tag[EXEC_TAG_MAX + 1];
	char place[PATH_MAX]; /* in the guest, absolute */
	bool read_only;
};

/* The index makes a tag where PLACE is none. -ENOTDIR and the like with e set. */
int exec_share_parse(struct exec_share *s, const char *text, unsigned int index, struct err *e);

#endif
