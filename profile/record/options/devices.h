/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * devices: those of `kvmprof run`'s options that give the guest virtio devices.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_DEVICES_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_DEVICES_H

#include "profile/record/options/options.h"
#include "base/limits.h"

struct vm_config;

/* virtio, rng, virtio-console, net. */
extern const struct option_row run_device_rows[];

/* What was asked for, into the machine's configuration. */
void run_options_devices(const struct run_options *o, struct vm_config *cfg);

/*
 * Parses a limit of a device, which is a setting behind its name: "rate=" SIZE ["/s"] or NAME "=" NUMBER ["/s"].
 * The setting has `len` bytes, and operations have the given name ("iops"). Returns 1 if it was one, 0 if it is
 * another one, -EINVAL with what is wrong.
 */
int run_options_rate_parse(struct rate_limit *out, const char *setting, size_t len,
			   const char *name, struct err *e);

#endif
