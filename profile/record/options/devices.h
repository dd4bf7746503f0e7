/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * devices: those of `kvmprof run`'s options that give the guest virtio devices.
 */
#ifndef KVMPROF_PROFILE_RECORD_OPTIONS_DEVICES_H
#define KVMPROF_PROFILE_RECORD_OPTIONS_DEVICES_H

#include "profile/record/options/options.h"
#include "vmm/vm.h"

/* virtio, rng, virtio-console, net. */
extern const struct option_row run_device_rows[];

/* What was asked for, into the machine's configuration. */
void run_options_devices(const struct run_options *o, struct vm_config *cfg);

#endif
