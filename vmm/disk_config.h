/* SPDX-License-Identifier: GPL-2.0-or-later */
/* disk_config: the settings of one disk of a machine. */
#ifndef KVMPROF_VMM_DISK_CONFIG_H
#define KVMPROF_VMM_DISK_CONFIG_H

#include "base/limits.h"

struct disk;

struct vm_disk {
	struct disk *disk;  /* borrowed */
	const char *serial; /* answer to VIRTIO_BLK_T_GET_ID, up to 20 bytes; NULL: none */
	struct rate_limit limit;
};

#endif
