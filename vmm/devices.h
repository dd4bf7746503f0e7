/* SPDX-License-Identifier: GPL-2.0-or-later */
/* devices: the virtio devices of a machine, and what others ask of them. */
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

/* Makes the virtio devices that vm->setup asks for. */
int devices_create(struct vm *vm, struct err *e);
/* Their threads; from vm_start(), before any vCPU runs. */
int devices_start(struct vm *vm, struct err *e);
/* No vCPU runs any more; their threads end. */
void devices_destroy(struct vm *vm);
/* dev_irq's and of that type; ctx is the struct vm. */
void devices_irq(void *ctx, unsigned int irq, int level);

/* virtio_hold() of all. */
void devices_virtio_hold(struct vm *vm, bool on);
/* PCI and all virtio devices with their transports, in order; `what` is the struct vm. */
int devices_virtio_save(void *what, struct buf *out, struct err *e);
int devices_virtio_restore(void *what, struct cursor *in, struct err *e);

/* A disk, and what the guest has asked of it so far. */
struct vm_disk_info {
	const char *name, *path; /* "vda"; on the host */
	uint64_t size;		 /* bytes */
	uint64_t overlay_bytes;	 /* see disk.h */
	uint64_t no_room;	 /* writes that failed, as the overlay may not grow */
	struct io_stats io;
};
/* false: there is no disk i. Any thread. */
bool vm_disk(const struct vm *vm, unsigned int i, struct vm_disk_info *out);

/* false: there is no network card. Any thread. */
bool vm_net(const struct vm *vm, struct net_stats *out);

/*
 * Bytes typed at the console; returns how many the guest's UART took, or the virtio
 * console where a driver listens there.
 */
size_t vm_console_input(struct vm *vm, const uint8_t *data, size_t len);

#endif
