/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * devices: the options of `kvmprof run` that give the guest virtio devices. All functions are
 * called by the main thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_DEVICES_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_DEVICES_H

#include "profile/record/options/options.h"
#include "base/limits.h"

struct vm_config;

/* Rows of --virtio, --rng, --virtio-console and --net. */
extern const struct option_row run_device_rows[];

/* Copies the requested devices into the machine's configuration, which borrows strings from *o. */
void run_options_devices(const struct run_options *o, struct vm_config *cfg);

/*
 * Parses a limit of a device, which is a setting after its name: "rate=" SIZE ["/s"] or NAME "="
 * NUMBER ["/s"]. `setting` has `len` bytes; `name` is the name of the limit of operations ("iops").
 * Returns 1 if it is a limit, 0 if it is another setting, or -EINVAL with the reason in *e.
 */
int run_options_rate_parse(struct rate_limit *out, const char *setting, size_t len,
			   const char *name, struct err *e);

#endif
