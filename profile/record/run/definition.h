/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_definition: `kvmprof run --domain`, which makes a machine from a libvirt definition. All
 * functions are called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_DEFINITION_H
#define KVMPROF_PROFILE_RECORD_RUN_DEFINITION_H

#include "profile/record/libvirt/domain_xml.h"
#include "profile/record/options/options.h"

/*
 * Returns whether `domain` names a file: it contains a '/' or ends with ".xml". Otherwise it is the
 * name of a domain of libvirt.
 */
bool run_definition_is_file(const char *domain);

/*
 * Reads o->domain into *d, and sets the options in *o that the command line has not set. These
 * point into *d, which the caller frees with domain_xml_deinit() after o, even after a failure. The
 * definition's disks come before those of o, as virtio disks whose images are not modified (unless
 * --writable is given); without a kernel the first disk boots. Returns 0, -ENOENT if neither the
 * definition nor o has something to boot, or another -errno; *e has the reason.
 */
int run_definition_apply(struct domain_xml *d, struct run_options *o, struct err *e);

/*
 * Appends the texts of d->left as lines of at most `width` columns that begin with prefix; a longer
 * single word is not broken.
 */
void run_definition_unused(const struct domain_xml *d, const char *prefix, unsigned int width,
			   struct buf *out);

#endif
