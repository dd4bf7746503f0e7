/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tables: what the functions share that build the tables of firmware. */
#ifndef KVMPROF_VMM_BOOT_TABLES_H
#define KVMPROF_VMM_BOOT_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The machine that the tables describe. */
struct boot_platform {
	unsigned int vcpus;
	bool pci;		  /* there is a PCI bus: as in dev/pci.h */
	unsigned int virtio_mmio; /* devices, at GPA_VIRTIO_MMIO: as in dev/virtio_mmio.h */
};

/* What makes the bytes sum up to 0, for a field that is 0 so far. */
static inline uint8_t tables_checksum(const uint8_t *p, size_t len)
{
	uint8_t sum = 0;

	while (len--)
		sum += *p++;
	return (uint8_t)-sum;
}

#endif
