/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * domain_xml: what a libvirt domain's definition says about a machine that boots a kernel
 * or a disk, and a list of all that it says beyond that.
 *
 * Format: https://libvirt.org/formatdomain.html. Parsed with libxml2, which is loaded when it
 * is needed, as it would double the time that kvmprof takes to start. No network, no DTD, no
 * entities: a document with a DOCTYPE is refused before the parser sees it.
 */
#ifndef KVMPROF_PROFILE_RECORD_LIBVIRT_DOMAIN_XML_H
#define KVMPROF_PROFILE_RECORD_LIBVIRT_DOMAIN_XML_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Definitions have 2 to 50 KiB. */
#define DOMAIN_XML_MAX (1u << 20)
/* Of one value: a path or a command line. */
#define DOMAIN_XML_TEXT_MAX 65535u
/* Entries of `left`, and bytes of each. */
#define DOMAIN_XML_LEFT_MAX 512u
#define DOMAIN_XML_LEFT_TEXT 160u

/* As many as a machine of ours has. */
#define DOMAIN_XML_DISKS_MAX 8u

/* A raw image or a block device; texts are owned. */
struct domain_disk {
	char *target; /* the guest's name for it: "vda", "sdb" */
	char *path;
	char *serial; /* NULL: none */
	bool readonly;
	char *option; /* for profile/record/run/definition.c: what --disk would be given; NULL: none yet */
};

struct domain_xml {
	char *name;				       /* owned, as all; NULL: not there */
	char *kernel, *initrd, *cmdline;	       /* paths and text as they stand there */
	uint64_t memory;			       /* bytes; 0: not said */
	unsigned int vcpus;			       /* at the start; 0: not said */
	struct domain_disk disk[DOMAIN_XML_DISKS_MAX]; /* by their targets, as the guest has them */
	unsigned int ndisks;
	/* What a machine of our own has no counterpart for: "disk vda (file /x.img)"; each ends with NUL. */
	struct buf left;
	unsigned int nleft, left_beyond; /* in it; and those that found no room */
};

/*
 * text need not end with NUL. -EINVAL: no XML, no domain, or a value that is none; the text
 * names the line or the element. -ENOTSUP: a domain for another processor, or a container.
 * -ENOENT: no libxml2 here. *out is to be freed in any case.
 */
int domain_xml_parse(const char *text, size_t len, struct domain_xml *out, struct err *e);
void domain_xml_deinit(struct domain_xml *d);

/* Note one more thing that can't be honoured. */
void domain_xml_leave(struct domain_xml *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
