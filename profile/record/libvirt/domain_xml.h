/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * domain_xml: reads a machine that boots a kernel or a disk from a libvirt domain's definition, and
 * lists the rest of the definition.
 *
 * Format: https://libvirt.org/formatdomain.html. Parsed with libxml2, which is loaded only when it
 * is needed, as it would double the start time of kvmprof. No network, no DTD, no entities: a
 * document with a DOCTYPE is refused before the parser sees it. All functions are called by the
 * main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_LIBVIRT_DOMAIN_XML_H
#define KVMPROF_PROFILE_RECORD_LIBVIRT_DOMAIN_XML_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest definition; usual ones have 2 to 50 KiB. */
#define DOMAIN_XML_MAX (1u << 20)
/* The longest value: a path or a command line. */
#define DOMAIN_XML_TEXT_MAX 65535u
/* The most entries of `left`, and bytes of each. */
#define DOMAIN_XML_LEFT_MAX 512u
#define DOMAIN_XML_LEFT_TEXT 160u

/* The most disks of a machine of ours. */
#define DOMAIN_XML_DISKS_MAX 8u

/* An image or a block device; strings are owned. */
struct domain_disk {
	char *target; /* the guest's name for it: "vda", "sdb" */
	char *path;
	char *serial; /* NULL: none */
	char *format; /* the format that the definition has, such as "qcow2"; NULL: raw */
	bool readonly;
	/* for profile/record/run/definition.c: the value of a --disk for it; NULL: none yet */
	char *option;
};

struct domain_xml {
	char *name;				       /* all strings are owned; NULL: missing */
	char *kernel, *initrd, *cmdline;	       /* paths and text as in the definition */
	uint64_t memory;			       /* bytes; 0: not given */
	unsigned int vcpus;			       /* at the start; 0: not given */
	struct domain_disk disk[DOMAIN_XML_DISKS_MAX]; /* sorted by target, as in the guest */
	unsigned int ndisks;
	/*
	 * Parts without a counterpart in our machines, such as "disk vda (file /x.img)"; each is
	 * terminated by a NUL.
	 */
	struct buf left;
	/* number of entries in `left`; number of those that found no room */
	unsigned int nleft, left_beyond;
};

/*
 * Parses a definition of len bytes, which need not be terminated. Returns 0; -EINVAL if it is not
 * XML or not a domain, or has a bad value (*e names the line or the element); -ENOTSUP for a domain
 * for another processor, or a container; -ENOENT without libxml2; -ENOMEM. The caller frees *out
 * with domain_xml_deinit() in any case.
 */
int domain_xml_parse(const char *text, size_t len, struct domain_xml *out, struct err *e);
/* Frees the content of *d. */
void domain_xml_deinit(struct domain_xml *d);

/* Adds an entry to `left`. */
void domain_xml_note_unused(struct domain_xml *d, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
