/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * disk: the disks that `kvmprof run` gives to its guest.
 *
 *   disk := PATH {"," setting}
 *   setting := "readonly" | "writable" | "overlay=" FILE | "serial=" TEXT | "rate=" SIZE |
 *              "iops=" NUMBER | "format=" FORMAT | "backing"
 *
 * A comma within PATH, FILE or TEXT is written twice, as for QEMU. All functions are called by the
 * main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_DISK_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_DISK_H

#include "base/option.h"
#include "vmm/dev/disk.h"
#include "base/limits.h"

#include <limits.h>
#include <stdbool.h>

/* Rows of --disk, --overlay-max and --writable, whose struct is run_options. */
extern const struct option_row run_disk_rows[];

/* A part of struct run_options. */
struct run_disk_options {
	const char *text[VM_MAX_DISKS]; /* as given, borrowed; one place is left for IMAGE */
	unsigned int n;
	bool writable;	      /* --writable */
	bool backing;	      /* --backing */
	uint64_t overlay_max; /* bytes; 0: half of the available memory */
};

/* A parsed --disk. */
struct run_disk {
	char path[PATH_MAX], overlay[PATH_MAX];
	char serial[DISK_SERIAL_LEN + 1];
	enum disk_write write;
	const char *format; /* as disk_config.format; static */
	bool backing;	    /* files that the image refers to are read */
	struct rate_limit limit;
};

/* Parses the value of a --disk. Returns 0, or -EINVAL with the reason in *e. */
int run_options_disk_parse(struct run_disk *out, const char *text, struct err *e);

#endif
