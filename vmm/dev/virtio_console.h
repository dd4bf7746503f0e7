/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_console: a console with one port, hvc0 in Linux (VIRTIO 1.2, 5.3).
 *
 * It costs the guest one VM exit for each piece of text, while a serial line costs one for each
 * byte. It also has the "emergency write" of 5.3.4, which works before there are queues.
 *
 * The thread that creates the machine calls these functions, unless stated otherwise.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_CONSOLE_H
#define KVMPROF_VMM_DEV_VIRTIO_CONSOLE_H

#include "vmm/dev/virtio.h"

#include <stddef.h>

/*
 * Creates the device. put(ctx, byte) gets the output, on vCPU threads or the device's own thread.
 * Returns 0 or -ENOMEM. ops->destroy() frees *out.
 */
int virtio_console_new(struct virtio **out, const struct gmem *mem,
		       void (*put)(void *ctx, uint8_t byte), void *ctx, struct err *e);

/* Returns whether a driver uses the device. Any thread may call it. */
bool virtio_console_ready(struct virtio *d);
/* Queues bytes for the guest. Returns how many found room. Any thread may call it. */
size_t virtio_console_input(struct virtio *d, const uint8_t *data, size_t len);

#endif
