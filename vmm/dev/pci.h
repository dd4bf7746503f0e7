/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pci: one PCI bus, its configuration space and where memory BARs are.
 *
 * PCI Local Bus 3.0, chapter 6: type 0 headers, reached by configuration mechanism 1
 * (ports 0xcf8, 0xcfc; 3.2.2.3.2) and as memory (PCI Express 5.0, 7.2.2 "ECAM"), bus 0
 * only. A machine without functions has the ports and nothing that answers, not even a
 * host bridge: a scan of it costs a guest next to nothing. Functions have one memory BAR
 * each, which we place as firmware would, and which follows what the guest writes.
 */
#ifndef KVMPROF_VMM_DEV_PCI_H
#define KVMPROF_VMM_DEV_PCI_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"
#include "vmm/bus.h"
#include "vmm/dev/dev.h"

#include <pthread.h>

#define PCI_CONFIG_SIZE 256u
#define PCI_SLOTS 32u

/* Registers of the header. */
#define PCI_VENDOR 0x00u
#define PCI_DEVICE 0x02u
#define PCI_COMMAND 0x04u
#define PCI_COMMAND_MEMORY 0x0002u
#define PCI_STATUS 0x06u
#define PCI_STATUS_CAPABILITIES 0x0010u
#define PCI_REVISION 0x08u
#define PCI_CLASS 0x0au /* 16 bit: subclass, class */
#define PCI_BAR0 0x10u
#define PCI_SUBSYSTEM_VENDOR 0x2cu
#define PCI_SUBSYSTEM 0x2eu
#define PCI_CAPABILITIES 0x34u
#define PCI_INTERRUPT_LINE 0x3cu

/* One function, number 0 of its slot. Fields are set before pci_add(). */
struct pci_function {
	const char *name;
	uint8_t config[PCI_CONFIG_SIZE];
	uint8_t writable[PCI_CONFIG_SIZE]; /* bits that the guest may change */
	uint32_t bar_size;		   /* of BAR 0, 32-bit memory; a power of 2, 0: none */
	mmio_handler io;		   /* accesses to it */
	void *dev;			   /* for the three */
	/* Before a read of, and after a write to config[off, off+len); may be NULL. */
	void (*config_read)(void *dev, unsigned int off, unsigned int len);
	void (*config_written)(void *dev, unsigned int off, unsigned int len);
	unsigned int mmio; /* pci.c: index of the BAR on the bus */
};

struct pci {
	pthread_mutex_t lock; /* config spaces and the address; held while hooks are called */
	struct bus *bus;
	struct dev_power power;
	uint32_t address; /* port 0xcf8 */
	struct pci_function *slot[PCI_SLOTS];
	unsigned int n; /* slots in use, the host bridge's included; 0: no bus */
	struct pci_function bridge;
	uint64_t next_bar;
};

/* The ports, with the reset control register 0xcf9 that lies between them. */
int pci_init(struct pci *p, struct bus *bus, struct dev_power power);
void pci_deinit(struct pci *p);

/* In the next slot; f is borrowed. The first one brings the host bridge and the ECAM window. */
int pci_add(struct pci *p, struct pci_function *f, struct err *e);

/* One access to the configuration space of a slot, off and len in it; as both doors make it. */
uint32_t pci_config_read(struct pci *p, unsigned int slot, unsigned int off, unsigned int len);
void pci_config_write(struct pci *p, unsigned int slot, unsigned int off, unsigned int len,
		      uint32_t val);

/* Of struct pci: the address register and all configuration spaces; moves BARs accordingly. */
int pci_save(void *what, struct buf *out, struct err *e);
int pci_restore(void *what, struct cursor *in, struct err *e);

#endif
