/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_pci: a virtio device as a PCI function (VIRTIO 1.2, 4.1), modern only.
 *
 * One BAR has common configuration, ISR, device configuration, notifications, MSI-X table and
 * pending bits, a page or more each. Interrupts are MSI-X: one vector for each queue and one for
 * configuration changes; there is no interrupt pin. Every queue has its own notification address. A
 * write there is a VM exit of the vCPU that wrote (no ioeventfd), so that the guest's stack shows
 * the purpose of the request. The thread that creates the machine calls these functions.
 */
#ifndef KVMPROF_VMM_DEV_VIRTIO_PCI_H
#define KVMPROF_VMM_DEV_VIRTIO_PCI_H

#include "base/buf.h"
#include "base/cursor.h"
#include "vmm/dev/dev.h"
#include "vmm/dev/pci.h"
#include "vmm/dev/virtio.h"

struct virtio_pci;

/*
 * Adds device d in the next slot of the bus. d is borrowed; its name also names the registers on
 * the bus. Returns 0, or -errno with *e recorded. The caller frees *out with virtio_pci_destroy().
 */
int virtio_pci_new(struct virtio_pci **out, struct virtio *d, struct pci *bus, struct dev_msi msi,
		   struct err *e);
/* Frees the transport, after d's threads have ended. Accepts NULL. */
void virtio_pci_destroy(struct virtio_pci *p);

/*
 * Saves the struct virtio_pci at `what`, including its device's state; see snapshot.h. Returns 0,
 * or -errno with *e recorded.
 */
int virtio_pci_save(void *what, struct buf *out, struct err *e);
/*
 * Restores what virtio_pci_save() has saved. Called after pci_restore(). Returns 0, or -errno with
 * *e recorded.
 */
int virtio_pci_restore(void *what, struct cursor *in, struct err *e);

#endif
