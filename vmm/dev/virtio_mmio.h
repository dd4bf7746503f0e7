/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_mmio: virtio devices as a page of registers each (VIRTIO 1.2, 4.2, version 2).
 *
 * Nothing tells a guest of them but ACPI (LNRO0005, dsdt.c) or, for kernels without it,
 * words on the command line (Linux: Documentation/admin-guide/kernel-parameters.txt,
 * virtio_mmio.device=).
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_MMIO_H
#define KVMPROF_VMM_DEV_VIRTIO_MMIO_H

#include "base/buf.h"
#include "base/cursor.h"
#include "vmm/bus.h"
#include "vmm/dev/dev.h"
#include "vmm/dev/virtio.h"

struct virtio_mmio;

/*
 * Device number `index` (below VIRTIO_MMIO_MAX): at its page of GPA_VIRTIO_MMIO with its
 * interrupt of IRQ_VIRTIO_MMIO. d is borrowed. Registers answer by d's name.
 */
int virtio_mmio_new(struct virtio_mmio **out, struct virtio *d, unsigned int index, struct bus *bus,
		    struct dev_irq irq, struct err *e);
/* After d's threads have ended. NULL is fine. */
void virtio_mmio_destroy(struct virtio_mmio *m);

/* The words for n of them, each with a blank behind it. */
void virtio_mmio_cmdline(unsigned int n, struct buf *out);

/* Of struct virtio_mmio, the device's own state included; see snapshot.h. */
int virtio_mmio_save(void *what, struct buf *out, struct err *e);
int virtio_mmio_restore(void *what, struct cursor *in, struct err *e);

#endif
