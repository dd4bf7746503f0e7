/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_rng: random bytes of the host's getrandom() for the guest (VIRTIO 1.2, 5.4). The thread
 * that creates the machine calls these functions, unless stated otherwise.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_RNG_H
#define KVMPROF_VMM_DEV_VIRTIO_RNG_H

#include "vmm/dev/virtio.h"

/* Creates the device. Returns 0 or -ENOMEM with *e recorded. ops->destroy() frees *out. */
int virtio_rng_new(struct virtio **out, const struct gmem *mem, struct err *e);

#endif
