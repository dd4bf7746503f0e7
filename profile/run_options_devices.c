/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/run_options_devices.h"

#include <string.h>

int run_options_take_device(struct run_options *o, int opt, const char *arg)
{
	switch (opt) {
	case OPT_VIRTIO:
		if (!strcmp(arg, "mmio"))
			o->virtio_mmio = true;
		else if (!strcmp(arg, "pci"))
			o->virtio_mmio = false;
		else
			return run_options_wrong(o, "--virtio %s: expected pci or mmio", arg);
		return -1;
	case OPT_RNG:
		o->rng = true;
		return -1;
	default: /* OPT_VIRTIO_CONSOLE */
		o->virtio_console = true;
		return -1;
	}
}

void run_options_devices(const struct run_options *o, struct vm_config *cfg)
{
	cfg->transport = o->virtio_mmio ? VM_VIRTIO_MMIO : VM_VIRTIO_PCI;
	cfg->rng = o->rng;
	cfg->virtio_console = o->virtio_console;
}
