/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_mmio: virtio devices as one page of registers each (VIRTIO 1.2, 4.2, version 2).
 *
 * A guest learns of them only from ACPI (LNRO0005, dsdt.c) or, for kernels without it, from the
 * command line (Linux: Documentation/admin-guide/kernel-parameters.txt, virtio_mmio.device=). The
 * thread that creates the machine calls these functions.
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
 * Adds device d with number `index` (below VIRTIO_MMIO_MAX) at its page of GPA_VIRTIO_MMIO, with
 * its interrupt of IRQ_VIRTIO_MMIO. d is borrowed; its name also names the registers on the bus.
 * Returns 0, or -errno with *e recorded. The caller frees *out with virtio_mmio_destroy().
 */
int virtio_mmio_new(struct virtio_mmio **out, struct virtio *d, unsigned int index, struct bus *bus,
		    struct dev_irq irq, struct err *e);
/* Frees the transport, after d's threads have ended. Accepts NULL. */
void virtio_mmio_destroy(struct virtio_mmio *m);

/* Appends the command-line words for n devices, each followed by a blank. */
void virtio_mmio_cmdline(unsigned int n, struct buf *out);

/*
 * Saves the struct virtio_mmio at `what`, including its device's state; see snapshot.h. Returns 0,
 * or -errno with *e recorded.
 */
int virtio_mmio_save(void *what, struct buf *out, struct err *e);
/* Restores what virtio_mmio_save() has saved. Returns 0, or -errno with *e recorded. */
int virtio_mmio_restore(void *what, struct cursor *in, struct err *e);

#endif
