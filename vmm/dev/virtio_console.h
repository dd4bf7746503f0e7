/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_console: a console with one port, hvc0 in Linux (VIRTIO 1.2, 5.3).
 *
 * Costs the guest one VM exit for each piece of text, where a serial line costs one for
 * each byte. Also the "emergency write" of 5.3.4, which works before there are queues.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_CONSOLE_H
#define KVMPROF_VMM_DEV_VIRTIO_CONSOLE_H

#include "vmm/dev/virtio.h"

#include <stddef.h>

/* *put is called on vCPU threads. *out is owned, by ops->destroy(). */
int virtio_console_new(struct virtio **out, const struct gmem *mem,
		       void (*put)(void *ctx, uint8_t byte), void *ctx, struct err *e);

/* Does a driver listen? Any thread. */
bool virtio_console_ready(struct virtio *d);
/* Queue bytes for the guest; returns how many found room. Any thread. */
size_t virtio_console_input(struct virtio *d, const uint8_t *data, size_t len);

#endif
