/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * devices: creates the virtio devices of a machine and answers questions about them.
 *
 * The thread that creates the machine calls these functions, unless stated otherwise. Functions
 * with a `struct err *` return 0, or -errno with *e recorded.
 */
#ifndef KVMPROF_VMM_DEVICES_H
#define KVMPROF_VMM_DEVICES_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"
#include "vmm/dev/io.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct virtio;
struct vm;

/* Creates the virtio devices of vm->setup. devices_destroy() frees them, also after an error. */
int devices_create(struct vm *vm, struct err *e);
/* Starts the threads of the devices. Called by vm_start() before any vCPU runs. */
int devices_start(struct vm *vm, struct err *e);
/* Ends the devices' threads and frees the devices. Called when no vCPU runs any more. */
void devices_destroy(struct vm *vm);
/*
 * Sets the level of an interrupt line. ctx is the struct vm. Has the type of dev_irq's function.
 * Any thread may call it.
 */
void devices_irq(void *ctx, unsigned int irq, int level);

/* Calls virtio_hold() for all virtio devices. */
void devices_virtio_hold(struct vm *vm, bool on);
/*
 * Saves PCI and all virtio devices with their transports, in order. `what` is the struct vm. Called
 * while the vCPUs are paused.
 */
int devices_virtio_save(void *what, struct buf *out, struct err *e);
/* Restores what devices_virtio_save() has saved. Called while the vCPUs are paused. */
int devices_virtio_restore(void *what, struct cursor *in, struct err *e);

/* A disk and its counters. */
struct vm_disk_info {
	const char *name, *path; /* "vda"; path on the host; both borrowed from the machine */
	uint64_t size;		 /* bytes */
	uint64_t overlay_bytes;	 /* see disk.h */
	uint64_t no_room;	 /* number of writes that failed because the overlay may not grow */
	struct io_stats io;
};
/* Stores the state of disk i in *out. Returns false if there is none. Any thread may call it. */
bool vm_disk(const struct vm *vm, unsigned int i, struct vm_disk_info *out);

/*
 * Stores the counters of the network card in *out. Returns false if there is none. Any thread may
 * call it.
 */
bool vm_net(const struct vm *vm, struct net_stats *out);

/*
 * Sends bytes typed by the user to the virtio console if a driver uses it, else to the UART.
 * Returns how many of them the device accepted. Any thread may call it.
 */
size_t vm_console_input(struct vm *vm, const uint8_t *data, size_t len);

#endif
