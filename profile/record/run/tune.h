/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tune: the guest's command line.
 *
 * A Linux guest gets a serial console and a reboot that ends the run. On hosts that interpret ring
 * 0 (quirks) it also gets settings that keep the boot from taking minutes; each is listed with its
 * reason, and --no-tune omits them. The function works on its arguments only; any thread.
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
	bool virtio;	     /* it has virtio devices (vm_has_virtio()) */
	bool pci;	     /* these are on a PCI bus */
	bool virtio_console; /* a console on hvc0 */
	uint32_t tsc_khz;    /* frequency of the guest's TSC; 0: unknown */
	/* The kernel's symbols, which show what it contains; NULL: unknown. */
	const struct symtab *symbols;
	const char *cmdline; /* --cmdline: replaces the defaults; NULL: keep them */
	/* command line of a disk's boot entry or a unified kernel image; NULL: none */
	const char *disk_cmdline;
	bool disk_initrd;  /* that one has a RAM disk that searches for the root */
	bool saved;	   /* the machine will be continued from a snapshot */
	const char *extra; /* words that the run itself needs; may be NULL */
	/* --append: added last, so that it takes precedence; may be NULL */
	const char *append;
};

/*
 * Builds the command line, terminated, in *out. *tuned is the part that was added because of the
 * host, or ""; it is a static string or lies in *tuned_buf. The caller frees both buffers; a lack
 * of memory sets their `failed`.
 */
void tune_cmdline(const struct tune_request *r, const struct quirks *q, struct buf *out,
		  struct buf *tuned);

#endif
