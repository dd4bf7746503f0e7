/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tune: the guest's command line.
 *
 * A Linux guest gets a serial console and a reboot that ends the run. On hosts
 * that interpret ring 0 (quirks) it also gets settings that keep the boot from
 * taking minutes; each is listed with its reason, and --no-tune leaves them out.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_TUNE_H
#define KVMPROF_PROFILE_RECORD_RUN_TUNE_H

#include "base/buf.h"
#include "symbolizer/core/symtab.h"
#include "vmm/quirks.h"

struct tune_request {
	bool is_linux;
	bool tune; /* false: --no-tune */
	unsigned int vcpus;
	bool virtio;	     /* it has virtio devices (vm_has_virtio()) ... */
	bool pci;	     /* ... on a PCI bus */
	bool virtio_console; /* a console on hvc0 */
	uint32_t tsc_khz;    /* of the guest; 0 unknown */
	/* The kernel's names, by which it is told what it has; NULL: none are known. */
	const struct symtab *symbols;
	const char *cmdline;	  /* --cmdline: replaces the defaults, NULL: keep them */
	const char *disk_cmdline; /* of a disk's boot entry or a UKI; NULL: none */
	bool disk_initrd;	  /* which has a RAM disk that looks for the root */
	bool saved;		  /* it will go on from a snapshot */
	const char *extra;	  /* words that the run itself needs; may be NULL */
	const char *append;	  /* --append: added last, so that it wins; may be NULL */
};

/*
 * Build the command line (terminated) in *out. *tuned receives the part that
 * was added because of the host, "" when nothing was; it is a static string or
 * lies in *tuned_buf.
 */
void tune_cmdline(const struct tune_request *r, const struct quirks *q, struct buf *out,
		  struct buf *tuned);

#endif
