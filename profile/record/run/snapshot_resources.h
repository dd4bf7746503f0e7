/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot_resources: the resources of this host that a snapshot names, and the user's permission
 * to use them.
 *
 * A snapshot is a file that may come from somebody else, and the guest in it gets what the file
 * names: images, directories with this user's rights, the network. None of it is opened only
 * because the file names it: the same options as when it was saved must be given again, or
 * --snapshot-trust. The functions work on their arguments only; any thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_SNAPSHOT_RESOURCES_H
#define KVMPROF_PROFILE_RECORD_RUN_SNAPSHOT_RESOURCES_H

#include "base/buf.h"
#include "base/err.h"
#include "vmm/snapshot/snapshot_devices.h"

#include <stdbool.h>

struct snapshot_given {
	unsigned int ndisks, nshares; /* number of --disk and of --share options */
	bool net;		      /* --net was given */
	bool trust;		      /* --snapshot-trust was given */
};

/*
 * Returns 0 if all resources are permitted, -EACCES with the missing options in *e, -EINVAL if too
 * many or too few of a kind are given, or -ENOMEM.
 */
int snapshot_resources_check(const struct snapshot_devices *d, const struct snapshot_given *given,
			     const char *from, struct err *e);
/*
 * Appends the options that are not in *given, for a shell, each with a leading blank; no
 * terminator.
 */
void snapshot_resources_options(const struct snapshot_devices *d,
				const struct snapshot_given *given, struct buf *out);
/* Appends a word for a shell: quoted if necessary, without control characters. */
void snapshot_resources_word(struct buf *out, const char *text);

#endif
