// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Virtio devices as functions of PCI bus 0 (4.1) and as pages of registers (4.2), at the addresses
 * of kvmprof's layout, and their initialisation (3.1.1).
 */
#include "villain.h"

#define SLOTS 32u
#define PCI_COMMAND 0x04u
#define PCI_BAR0 0x10u
#define PCI_CAPABILITIES 0x34u
#define VENDOR_VIRTIO 0x1af4u
#define DEVICE_MODERN 0x1040u
#define CAP_VENDOR 0x09u
enum { CAP_COMMON = 1, CAP_NOTIFY, CAP_ISR, CAP_DEVICE };

#define MMIO_FIRST 0xfeb00000ul
#define MMIO_STEP 0x1000ul
#define MMIO_COUNT 8u
#define MMIO_MAGIC 0x74726976u

static const char *name_of(u32 id)
{
	switch (id) {
	case ID_NET:
		return "net";
	case ID_BLOCK:
		return "blk";
	case ID_CONSOLE:
		return "console";
	case ID_RNG:
		return "rng";
	case ID_9P:
		return "9p";
	default:
		return "unknown";
	}
}

static void begin_device(struct vdev *d, u32 id, int pci)
{
	memset(d, 0, sizeof(*d));
	d->id = id;
	d->name = name_of(id);
	d->pci = pci;
	d->nqueues = id == ID_NET || id == ID_CONSOLE ? 2 : 1;
	d->attacked = d->nqueues - 1; /* the queue that sends */
	for (u32 i = 0; i < VQ_MAX; i++) {
		d->q[i].desc = VQ_AREA + i * VQ_STEP;
		d->q[i].avail = d->q[i].desc + VQ_AVAIL;
		d->q[i].used = d->q[i].desc + VQ_USED;
	}
}

static int find_structures(struct vdev *d)
{
	u32 cap = read8(d->function + PCI_CAPABILITIES);

	d->bar = read32(d->function + PCI_BAR0) & ~15u;
	for (u32 n = 0; cap >= 0x40 && n < 48; n++, cap = read8(d->function + cap + 1)) {
		u64 place = d->bar + read32(d->function + cap + 8);

		if (read8(d->function + cap) != CAP_VENDOR)
			continue;
		switch (read8(d->function + cap + 3)) {
		case CAP_COMMON:
			d->common = place;
			break;
		case CAP_NOTIFY:
			d->notify = place;
			d->notify_step = read32(d->function + cap + 16);
			break;
		case CAP_ISR:
			d->isr = place;
			break;
		case CAP_DEVICE:
			d->config = place;
			break;
		}
	}
	write16(d->function + PCI_COMMAND, 6); /* memory, bus master */
	return d->bar && d->common && d->notify && d->config;
}

u32 devices_find(struct vdev *d, u32 max)
{
	u32 n = 0;

	for (u32 slot = 0; slot < SLOTS && n < max; slot++) {
		u64 function = PCI_ECAM + ((u64)slot << 15);
		u32 id = read32(function);

		if ((id & 0xffff) != VENDOR_VIRTIO || id >> 16 < DEVICE_MODERN)
			continue;
		begin_device(&d[n], (id >> 16) - DEVICE_MODERN, 1);
		d[n].function = function;
		n += (u32)find_structures(&d[n]);
	}
	for (u32 i = 0; i < MMIO_COUNT && n < max; i++) {
		u64 address = MMIO_FIRST + i * MMIO_STEP;

		if (read32(address) != MMIO_MAGIC || read32(address + 4) != 2)
			continue;
		begin_device(&d[n], read32(address + 8), 0);
		d[n++].mmio = address;
	}
	return n;
}

u32 dev_status(const struct vdev *d)
{
	return d->pci ? read8(d->common + 0x14) : read32(d->mmio + 0x70);
}

void dev_set_status(const struct vdev *d, u32 status)
{
	if (d->pci)
		write8(d->common + 0x14, status);
	else
		write32(d->mmio + 0x70, status);
}

u32 dev_features(const struct vdev *d, u32 word)
{
	write32(d->pci ? d->common : d->mmio + 0x14, word);
	return read32(d->pci ? d->common + 0x04 : d->mmio + 0x10);
}

void dev_set_features(const struct vdev *d, u32 word, u32 bits)
{
	write32(d->pci ? d->common + 0x08 : d->mmio + 0x24, word);
	write32(d->pci ? d->common + 0x0c : d->mmio + 0x20, bits);
}

/* Sets a 16-bit field at its offset in PCI's common structure or in MMIO, where it has 32 bits. */
static void set_field(const struct vdev *d, u32 pci, u32 mmio, u32 v)
{
	if (d->pci)
		write16(d->common + pci, v);
	else
		write32(d->mmio + mmio, v);
}

void queue_select(const struct vdev *d, u32 q)
{
	set_field(d, 0x16, 0x30, q);
}

void queue_set_size(const struct vdev *d, u32 size)
{
	set_field(d, 0x18, 0x38, size);
}

static void set_place(u64 address, u64 v)
{
	write32(address, (u32)v);
	write32(address + 4, (u32)(v >> 32));
}

void queue_set_places(const struct vdev *d, u64 desc, u64 avail, u64 used)
{
	set_place(d->pci ? d->common + 0x20 : d->mmio + 0x80, desc);
	set_place(d->pci ? d->common + 0x28 : d->mmio + 0x90, avail);
	set_place(d->pci ? d->common + 0x30 : d->mmio + 0xa0, used);
}

void queue_set_ready(const struct vdev *d, u32 on)
{
	set_field(d, 0x1c, 0x44, on);
}

u32 queue_ready(const struct vdev *d)
{
	return d->pci ? read16(d->common + 0x1c) : read32(d->mmio + 0x44);
}

void dev_notify(const struct vdev *d, u32 q)
{
	if (d->pci)
		write16(d->notify + (u64)q * d->notify_step, q);
	else
		write32(d->mmio + 0x50, q);
}

u64 config_address(const struct vdev *d)
{
	return d->pci ? d->config : d->mmio + 0x100;
}

static void setup_queues(struct vdev *d)
{
	for (u32 i = 0; i < d->nqueues; i++) {
		struct vq *q = &d->q[i];

		memset(at(q->avail), 0, 8 + 2 * VQ_SIZE);
		memset(at(q->used), 0, 8 + 8 * VQ_SIZE);
		q->next_avail = 0;
		queue_select(d, i);
		queue_set_size(d, VQ_SIZE);
		queue_set_places(d, q->desc, q->avail, q->used);
		queue_set_ready(d, 1);
	}
}

int dev_setup(struct vdev *d, u64 unwanted, int last_step)
{
	u64 wanted = (F_VERSION_1 | F_INDIRECT_DESC) & ~unwanted;

	dev_set_status(d, 0);
	for (u32 i = 0; dev_status(d); i++)
		if (i == 1000)
			return 0;
	if (last_step >= STEP_BEGUN)
		dev_set_status(d, STATUS_BEGUN);
	if (last_step >= STEP_FEATURES) {
		d->features = dev_features(d, 0) | (u64)dev_features(d, 1) << 32;
		d->features &= wanted;
		dev_set_features(d, 0, (u32)d->features);
		dev_set_features(d, 1, (u32)(d->features >> 32));
	}
	if (last_step >= STEP_FEATURES_OK) {
		dev_set_status(d, STATUS_BEGUN | STATUS_FEATURES_OK);
		if (!(dev_status(d) & STATUS_FEATURES_OK))
			return 0;
	}
	if (last_step >= STEP_QUEUES)
		setup_queues(d);
	if (last_step >= STEP_DRIVER_OK)
		dev_set_status(d, STATUS_BEGUN | STATUS_FEATURES_OK | STATUS_DRIVER_OK);
	return !(dev_status(d) & STATUS_NEEDS_RESET);
}
