/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debugexit: a port whose write ends the run with the written number.
 *
 * Where QEMU's isa-debug-exit is by default (hw/misc/debugexit.c: iobase 0x501, iosize 2),
 * so that kernels made for that find it. The number is taken as it is; QEMU exits with
 * 2 * number + 1. A byte, a word or a double word; reads give 0.
 */
#ifndef KVMPROF_VMM_DEV_DEBUGEXIT_H
#define KVMPROF_VMM_DEV_DEBUGEXIT_H

#include "vmm/bus.h"

struct debugexit {
	void (*end)(void *ctx, uint32_t status); /* on the vCPU's thread that wrote */
	void *ctx;
};

/* As bus_add(). */
int debugexit_init(struct debugexit *d, struct bus *bus, void (*end)(void *ctx, uint32_t status),
		   void *ctx);

#endif
