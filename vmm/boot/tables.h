/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tables: shared by the functions that build the tables of firmware. */
#ifndef KVMPROF_VMM_BOOT_TABLES_H
#define KVMPROF_VMM_BOOT_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The machine that the tables describe. */
struct boot_platform {
	unsigned int vcpus;
	bool pci; /* has a PCI bus as in dev/pci.h */
	/* Number of devices at GPA_VIRTIO_MMIO, as in dev/virtio_mmio.h. */
	unsigned int virtio_mmio;
};

/* Returns the value that makes the sum of the bytes 0, for a checksum field that is 0 so far. */
static inline uint8_t tables_checksum(const uint8_t *p, size_t len)
{
	uint8_t sum = 0;

	while (len--)
		sum += *p++;
	return (uint8_t)-sum;
}

#endif
