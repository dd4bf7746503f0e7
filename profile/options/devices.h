/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_options_devices: those of `kvmprof run`'s options that give the guest virtio devices.
 */
#ifndef KVMPROF_PROFILE_OPTIONS_DEVICES_H
#define KVMPROF_PROFILE_OPTIONS_DEVICES_H

#include "profile/options/options.h"
#include "vmm/vm.h"

#include <getopt.h>

enum {
	OPT_DEVICES = 0x400, /* the first of them */
	OPT_VIRTIO = OPT_DEVICES,
	OPT_RNG,
	OPT_VIRTIO_CONSOLE,
	OPT_NET,
	OPT_DEVICES_END
};

/* Rows for getopt_long(). */
#define RUN_DEVICES_OPTIONS                                                                       \
	{ "virtio", required_argument, NULL, OPT_VIRTIO }, { "rng", no_argument, NULL, OPT_RNG }, \
		{ "virtio-console", no_argument, NULL, OPT_VIRTIO_CONSOLE },                      \
	{                                                                                         \
		"net", required_argument, NULL, OPT_NET                                           \
	}

#define RUN_DEVICES_USAGE                                                                         \
	"      --virtio WAY        how the guest finds virtio devices: pci (default), or mmio\n"  \
	"                          for kernels without PCI\n"                                     \
	"      --rng               a virtio device with the host's random numbers\n"              \
	"      --virtio-console    console on hvc0: an exit for each line, not for each byte\n"   \
	"      --net WAY           a network card: user (TCP/IP in kvmprof; with\n"               \
	"                          ,hostfwd=tcp:PORT-:PORT from the host's to the guest's), or\n" \
	"                          tap=NAME, an interface of the host\n"

/* One option, from OPT_DEVICES on; -1 to go on, else an exit status. */
int run_options_take_device(struct run_options *o, int opt, const char *arg);

/* What was asked for, into the machine's configuration. */
void run_options_devices(const struct run_options *o, struct vm_config *cfg);

#endif
