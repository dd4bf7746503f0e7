/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pci: one PCI bus, its configuration space, and the placement of memory BARs.
 *
 * PCI Local Bus 3.0, chapter 6: type 0 headers, accessed by configuration mechanism 1 (ports 0xcf8,
 * 0xcfc; 3.2.2.3.2) and through memory (PCI Express 5.0, 7.2.2 "ECAM"), bus 0 only. A machine
 * without functions has only the ports, without even a host bridge, so a guest's scan costs almost
 * nothing. A function has one memory BAR, which we place as firmware would, and which moves when
 * the guest writes it. vCPU threads access the bus; the thread that creates the machine calls the
 * other functions.
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

/* Offsets in the configuration header. */
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

/* A function with number 0 in its slot. Its members are set before pci_add(). */
struct pci_function {
	const char *name;
	uint8_t config[PCI_CONFIG_SIZE];
	uint8_t writable[PCI_CONFIG_SIZE]; /* bits that the guest may change */
	/* Size of BAR 0 (32-bit memory), a power of 2; 0: none. */
	uint32_t bar_size;
	mmio_handler io; /* handles accesses to the BAR */
	void *dev;	 /* argument of the three functions */
	/* Called before a read of, and after a write to, config[off, off + len); may be NULL. */
	void (*config_read)(void *dev, unsigned int off, unsigned int len);
	void (*config_written)(void *dev, unsigned int off, unsigned int len);
	unsigned int mmio; /* index of the BAR on the bus; set by pci.c */
};

struct pci {
	/*
	 * Protects configuration spaces and the address; held while the functions above are called.
	 */
	pthread_mutex_t lock;
	struct bus *bus;
	struct dev_power power;
	uint32_t address; /* value of port 0xcf8 */
	struct pci_function *slot[PCI_SLOTS];
	unsigned int n; /* slots in use, including the host bridge; 0: no bus */
	struct pci_function bridge;
	uint64_t next_bar;
};

/*
 * Adds the configuration ports, including the reset control register 0xcf9 between them. Returns as
 * bus_add(). pci_deinit() releases *p.
 */
int pci_init(struct pci *p, struct bus *bus, struct dev_power power);
void pci_deinit(struct pci *p);

/*
 * Adds a function in the next slot; *f is borrowed. The first call also adds the host bridge and
 * the ECAM window. Returns 0, or -errno with *e recorded.
 */
int pci_add(struct pci *p, struct pci_function *f, struct err *e);

/*
 * Returns len bytes at off of a slot's configuration space, or all ones if the slot is empty or the
 * bytes are not within the space. Used by both access mechanisms. Any vCPU thread may call it.
 */
uint32_t pci_config_read(struct pci *p, unsigned int slot, unsigned int off, unsigned int len);
/*
 * Writes len bytes at off of a slot's configuration space; read-only bits do not change. Any vCPU
 * thread may call it.
 */
void pci_config_write(struct pci *p, unsigned int slot, unsigned int off, unsigned int len,
		      uint32_t val);

/*
 * Saves the address register and all configuration spaces of the struct pci at `what`. Returns 0,
 * or -errno with *e recorded.
 */
int pci_save(void *what, struct buf *out, struct err *e);
/* Restores what pci_save() has saved, and moves the BARs. Returns 0, or -errno with *e recorded. */
int pci_restore(void *what, struct cursor *in, struct err *e);

#endif
