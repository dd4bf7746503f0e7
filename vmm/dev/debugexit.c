/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/debugexit.h"

#include "vmm/layout.h"

static void debugexit_io(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	struct debugexit *d = dev;

	(void)len;
	if (!write)
		*val = 0;
	else if (off == 0)
		d->end(d->ctx, *val);
}

int debugexit_init(struct debugexit *d, struct bus *bus, void (*end)(void *ctx, uint32_t status),
		   void *ctx)
{
	d->end = end;
	d->ctx = ctx;
	return bus_add(bus, PORT_DEBUG_EXIT, PORT_DEBUG_EXIT_LEN, "debug-exit", debugexit_io, d);
}
