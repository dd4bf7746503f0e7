/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_pci: a virtio device as a PCI function (VIRTIO 1.2, 4.1), modern only.
 *
 * One BAR holds common configuration, ISR, device configuration, notifications, MSI-X
 * table and pending bits, a page or more each. Interrupts are MSI-X: a vector for each
 * queue and one for configuration changes; there is no interrupt pin. Every queue has a
 * notification address of its own, and a write there is a VM exit on the vCPU that did it
 * (no ioeventfd), so that the guest's stack can tell what the request is for.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_PCI_H
#define KVMPROF_VMM_DEV_VIRTIO_PCI_H

#include "base/buf.h"
#include "base/cursor.h"
#include "vmm/dev/dev.h"
#include "vmm/dev/pci.h"
#include "vmm/dev/virtio.h"

struct virtio_pci;

/* On the bus, in the next slot. d is borrowed; its registers answer by its name. */
int virtio_pci_new(struct virtio_pci **out, struct virtio *d, struct pci *bus, struct dev_msi msi,
		   struct err *e);
/* After d's threads have ended. NULL is fine. */
void virtio_pci_destroy(struct virtio_pci *p);

/* Of struct virtio_pci, the device's own state included, after pci_restore(). See snapshot.h. */
int virtio_pci_save(void *what, struct buf *out, struct err *e);
int virtio_pci_restore(void *what, struct cursor *in, struct err *e);

#endif
