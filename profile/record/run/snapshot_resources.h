/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot_resources: what a snapshot names of this host, and who allows it.
 *
 * A snapshot is a file, perhaps somebody else's, and the guest in it gets what the file names:
 * images, directories with this user's rights, the network. None of it is opened because
 * the file says so: the same options as at saving are given again, or --snapshot-trust.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_SNAPSHOT_RESOURCES_H
#define KVMPROF_PROFILE_RECORD_RUN_SNAPSHOT_RESOURCES_H

#include "base/buf.h"
#include "base/err.h"
#include "vmm/snapshot/snapshot_devices.h"

#include <stdbool.h>

struct snapshot_given {
	unsigned int ndisks, nshares; /* --disk, --share */
	bool net;		      /* --net */
	bool trust;		      /* --snapshot-trust */
};

/* -EACCES with the options that are missing, -EINVAL for too many or too few of a kind. */
int snapshot_resources_check(const struct snapshot_devices *d, const struct snapshot_given *given,
			     const char *from, struct err *e);
/* The options that `given` has not, for a shell, each with a blank before it; no terminator. */
void snapshot_resources_options(const struct snapshot_devices *d,
				const struct snapshot_given *given, struct buf *out);
/* A word for a shell: quoted if it has to be, without control characters. */
void snapshot_resources_word(struct buf *out, const char *text);

#endif
