// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ring 0: finds a virtio disk, as a function of PCI bus 0 (VIRTIO 1.2, 4.1; by ECAM) or as a page
 * of registers (4.2), agrees on features, and sets up its queue.
 *
 * The addresses are those of kvmprof and of QEMU's microvm, which are the same here.
 */
#include "blk.h"

#define ECAM 0xe0000000ul
#define PCI_SLOTS 32u
#define PCI_COMMAND 0x04u
#define PCI_BAR0 0x10u
#define PCI_CAPABILITIES 0x34u
#define COMMAND_MEMORY_MASTER 0x0006u
#define BAR_64BIT 0x4u
#define ID_BLOCK_MODERN 0x10421af4u
#define ID_BLOCK_TRANSITIONAL 0x10011af4u
#define CAP_VENDOR 0x09u
#define CAP_MSIX 0x11u
#define CAP_COMMON 1u
#define CAP_NOTIFY 2u
#define CAP_DEVICE 4u
#define MSIX_ENABLE 0x8000u
/* Space for BARs that have no address yet. */
#define BAR_SPACE 0xc1000000u
#define BAR_STEP 0x100000u

/* Common configuration, 4.1.4.3. */
#define COMMON_FEATURE_SELECT 0x00u
#define COMMON_FEATURE 0x04u
#define COMMON_DRIVER_SELECT 0x08u
#define COMMON_DRIVER 0x0cu
#define COMMON_STATUS 0x14u
#define COMMON_QUEUE_SELECT 0x16u
#define COMMON_QUEUE_SIZE 0x18u
#define COMMON_QUEUE_VECTOR 0x1au
#define COMMON_QUEUE_ENABLE 0x1cu
#define COMMON_QUEUE_NOTIFY_OFF 0x1eu
#define COMMON_QUEUE_DESC 0x20u

#define MMIO_FIRST 0xfeb00000ul
#define MMIO_END 0xfeb08000ul
#define MMIO_STEP 0x200u
#define MMIO_MAGIC 0x74726976u

#define LAPIC_SPURIOUS 0xfee000f0ul
#define LAPIC_ENABLE 0x1ffu
#define MSI_ADDRESS 0xfee00000u

#define STATUS_ACKNOWLEDGE 1u
#define STATUS_DRIVER 2u
#define STATUS_DRIVER_OK 4u
#define STATUS_FEATURES_OK 8u
#define F_EVENT_IDX (1ul << 29)
#define F_VERSION_1 (1ul << 32)

extern u8 irq_entry[];

static u8 read8(u64 at)
{
	return *(volatile u8 *)at;
}

static u16 read16(u64 at)
{
	return *(volatile u16 *)at;
}

static u32 read32(u64 at)
{
	return *(volatile u32 *)at;
}

static void write8(u64 at, u32 v)
{
	*(volatile u8 *)at = (u8)v;
}

static void write16(u64 at, u32 v)
{
	*(volatile u16 *)at = (u16)v;
}

static void write32(u64 at, u32 v)
{
	*(volatile u32 *)at = v;
}

static void write64(u64 at, u64 v)
{
	write32(at, (u32)v);
	write32(at + 4, (u32)(v >> 32));
}

/* -- PCI ------------------------------------------------------------------------------- */

static u64 bar_address(u64 function, u32 index)
{
	u64 at = function + PCI_BAR0 + 4 * index;
	u32 low = read32(at);

	if (low & 1 || index > 5)
		return 0;
	if (!(low & ~15u)) {
		write32(at, BAR_SPACE + index * BAR_STEP);
		if (low & BAR_64BIT)
			write32(at + 4, 0);
	}
	return read32(at) & ~15u;
}

/*
 * Returns the address of the structure of this type, and stores the offset of its capability in
 * *cap.
 */
static u64 structure(u64 function, u32 type, u64 *cap)
{
	u32 at = read8(function + PCI_CAPABILITIES);

	for (u32 n = 0; at >= 0x40 && n < 48; n++, at = read8(function + at + 1)) {
		if (read8(function + at) != CAP_VENDOR || read8(function + at + 3) != type)
			continue;
		*cap = function + at;
		return bar_address(function, read8(function + at + 4)) + read32(function + at + 8);
	}
	return 0;
}

/* Directs vector 0 of its MSI-X to this CPU. */
static int msix_setup(u64 function)
{
	u32 at = read8(function + PCI_CAPABILITIES), table;
	u64 entry;

	while (at >= 0x40 && read8(function + at) != CAP_MSIX)
		at = read8(function + at + 1);
	if (at < 0x40)
		return 0;
	gate_set(BLK_VECTOR, irq_entry, 0);
	write32(LAPIC_SPURIOUS, LAPIC_ENABLE);
	table = read32(function + at + 4);
	entry = bar_address(function, table & 7) + (table & ~7u);
	write32(entry, MSI_ADDRESS);
	write32(entry + 4, 0);
	write32(entry + 8, BLK_VECTOR);
	write32(entry + 12, 0);
	write16(function + at + 2, MSIX_ENABLE);
	return 1;
}

static u64 pci_features(u64 common)
{
	u64 v;

	write32(common + COMMON_FEATURE_SELECT, 0);
	v = read32(common + COMMON_FEATURE);
	write32(common + COMMON_FEATURE_SELECT, 1);
	return v | (u64)read32(common + COMMON_FEATURE) << 32;
}

static int pci_function_setup(struct blk_box *box, u64 function, u64 unwanted)
{
	u64 cap, config, common, features;
	u32 status = STATUS_ACKNOWLEDGE | STATUS_DRIVER;

	common = structure(function, CAP_COMMON, &cap);
	config = structure(function, CAP_DEVICE, &cap);
	box->notify = structure(function, CAP_NOTIFY, &cap);
	if (!common || !config || !box->notify)
		return 0;
	write16(function + PCI_COMMAND, COMMAND_MEMORY_MASTER);
	write8(common + COMMON_STATUS, 0);
	write8(common + COMMON_STATUS, status);
	features = pci_features(common) & (F_VERSION_1 | F_EVENT_IDX) & ~unwanted;
	box->event_idx = (features & F_EVENT_IDX) != 0;
	for (u32 word = 0; word < 2; word++) {
		write32(common + COMMON_DRIVER_SELECT, word);
		write32(common + COMMON_DRIVER, (u32)(features >> 32 * word));
	}
	status |= STATUS_FEATURES_OK;
	write8(common + COMMON_STATUS, status);
	if (!(read8(common + COMMON_STATUS) & STATUS_FEATURES_OK))
		return 0;
	if (box->irq && !msix_setup(function))
		return 0;
	write16(common + COMMON_QUEUE_SELECT, 0);
	write16(common + COMMON_QUEUE_SIZE, BLK_QUEUE);
	if (box->irq)
		write16(common + COMMON_QUEUE_VECTOR, 0);
	write64(common + COMMON_QUEUE_DESC, BLK_DESC);
	write64(common + COMMON_QUEUE_DESC + 8, BLK_AVAIL);
	write64(common + COMMON_QUEUE_DESC + 16, BLK_USED);
	box->notify += (u64)read16(common + COMMON_QUEUE_NOTIFY_OFF) * read32(cap + 16);
	write16(common + COMMON_QUEUE_ENABLE, 1);
	box->sectors = read32(config) | (u64)read32(config + 4) << 32;
	write8(common + COMMON_STATUS, status | STATUS_DRIVER_OK);
	return 1;
}

static int pci_setup(struct blk_box *box, u64 unwanted)
{
	for (u32 slot = 0; slot < PCI_SLOTS; slot++) {
		u64 function = ECAM + ((u64)slot << 15);
		u32 id = read32(function);

		if (id == ID_BLOCK_MODERN || id == ID_BLOCK_TRANSITIONAL)
			return pci_function_setup(box, function, unwanted);
	}
	return 0;
}

/* -- registers ----------------------------------------------------------------------------- */

static int mmio_device_setup(struct blk_box *box, u64 at, u64 unwanted)
{
	u64 features;
	u32 status = STATUS_ACKNOWLEDGE | STATUS_DRIVER;

	write32(at + 0x70, 0);
	write32(at + 0x70, status);
	write32(at + 0x14, 0);
	features = read32(at + 0x10);
	write32(at + 0x14, 1);
	features |= (u64)read32(at + 0x10) << 32;
	features &= (F_VERSION_1 | F_EVENT_IDX) & ~unwanted;
	box->event_idx = (features & F_EVENT_IDX) != 0;
	for (u32 word = 0; word < 2; word++) {
		write32(at + 0x24, word);
		write32(at + 0x20, (u32)(features >> 32 * word));
	}
	status |= STATUS_FEATURES_OK;
	write32(at + 0x70, status);
	if (!(read32(at + 0x70) & STATUS_FEATURES_OK))
		return 0;
	write32(at + 0x30, 0);
	write32(at + 0x38, BLK_QUEUE);
	write64(at + 0x80, BLK_DESC);
	write64(at + 0x90, BLK_AVAIL);
	write64(at + 0xa0, BLK_USED);
	write32(at + 0x44, 1);
	box->sectors = read32(at + 0x100) | (u64)read32(at + 0x104) << 32;
	box->notify = at + 0x50;
	write32(at + 0x70, status | STATUS_DRIVER_OK);
	return 1;
}

static int mmio_setup(struct blk_box *box, u64 unwanted)
{
	for (u64 at = MMIO_FIRST; at < MMIO_END; at += MMIO_STEP)
		if (read32(at) == MMIO_MAGIC && read32(at + 4) == 2 && read32(at + 8) == 2)
			return mmio_device_setup(box, at, unwanted);
	return 0;
}

const char *device_setup(struct blk_box *box, const char *line)
{
	u64 unwanted = option_number(line, "event_idx=", 1) ? 0 : F_EVENT_IDX;

	box->irq = option_number(line, "irq=", 0) != 0;
	if (!option_is(line, "transport=", "mmio") && pci_setup(box, unwanted))
		return "pci";
	/* Interrupts of the registers would need the I/O APIC. */
	if (!option_is(line, "transport=", "pci") && !box->irq && mmio_setup(box, unwanted))
		return "mmio";
	return 0;
}
