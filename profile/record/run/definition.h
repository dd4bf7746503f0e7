/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_definition: `kvmprof run --domain`: a machine of our own from a libvirt definition.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_DEFINITION_H
#define KVMPROF_PROFILE_RECORD_RUN_DEFINITION_H

#include "profile/record/libvirt/domain_xml.h"
#include "profile/record/options/options.h"

/* A file, where o->domain has a '/' or ends with ".xml"; else a domain of libvirt. */
bool run_definition_is_file(const char *domain);

/*
 * Read o->domain into *d, and set in *o what the command line has left open. o points into
 * d, which is to be freed in any case. Its disks come before those of o, as virtio disks whose
 * images stay as they are (--writable: they don't); without a kernel the first one boots.
 * -ENOENT: it names neither, nor does o.
 */
int run_definition_apply(struct domain_xml *d, struct run_options *o, struct err *e);

/*
 * One text of d->left after another, as lines of at most width columns that begin with
 * prefix (but for what is longer by itself).
 */
void run_definition_left(const struct domain_xml *d, const char *prefix, unsigned int width,
			 struct buf *out);

#endif
