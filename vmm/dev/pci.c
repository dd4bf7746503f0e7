/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/pci.h"

#include "vmm/layout.h"

#include <errno.h>
#include <string.h>

/* Offsets from PORT_PCI_CONFIG. */
#define ADDRESS_ENABLE 0x80000000u
#define OFF_RESET 1u /* 0xcf9; Intel chipsets: bit 2 resets */
#define RESET_CPU 0x04u
#define OFF_DATA 4u

/* The generic host bridge of QEMU's virtual machines; no driver binds to it. */
#define BRIDGE_VENDOR 0x1b36u
#define BRIDGE_DEVICE 0x0008u
#define CLASS_HOST_BRIDGE 0x0600u

static void put16(uint8_t *config, unsigned int at, unsigned int v)
{
	config[at] = (uint8_t)v;
	config[at + 1] = (uint8_t)(v >> 8);
}

static uint32_t get32(const uint8_t *config, unsigned int at)
{
	uint32_t v;

	memcpy(&v, config + at, sizeof(v));
	return v;
}

/* Moves the BAR to its address if memory decoding is on, else removes it. */
static void place_bar(struct pci *p, const struct pci_function *f)
{
	bool on = f->config[PCI_COMMAND] & PCI_COMMAND_MEMORY;

	if (f->bar_size)
		bus_move_mmio(p->bus, f->mmio,
			      on ? get32(f->config, PCI_BAR0) & ~15u : BUS_NOWHERE);
}

static bool overlap(unsigned int off, unsigned int len, unsigned int at, unsigned int n)
{
	return off < at + n && at < off + len;
}

static struct pci_function *pci_find_function(struct pci *p, unsigned int slot, unsigned int off,
					      unsigned int len)
{
	return slot < p->n && off < PCI_CONFIG_SIZE && len <= PCI_CONFIG_SIZE - off ? p->slot[slot]
										    : NULL;
}

uint32_t pci_config_read(struct pci *p, unsigned int slot, unsigned int off, unsigned int len)
{
	uint32_t v = UINT32_MAX;
	struct pci_function *f;

	pthread_mutex_lock(&p->lock);
	f = pci_find_function(p, slot, off, len);
	if (f) {
		if (f->config_read)
			f->config_read(f->dev, off, len);
		v = 0;
		memcpy(&v, f->config + off, len);
	}
	pthread_mutex_unlock(&p->lock);
	return v;
}

void pci_config_write(struct pci *p, unsigned int slot, unsigned int off, unsigned int len,
		      uint32_t val)
{
	struct pci_function *f;

	pthread_mutex_lock(&p->lock);
	f = pci_find_function(p, slot, off, len);
	if (f) {
		for (unsigned int i = 0; i < len; i++) {
			uint8_t may = f->writable[off + i], *at = &f->config[off + i];

			*at = (uint8_t)((*at & ~may) | (val >> 8 * i & may));
		}
		if (overlap(off, len, PCI_COMMAND, 2) || overlap(off, len, PCI_BAR0, 4))
			place_bar(p, f);
		if (f->config_written)
			f->config_written(f->dev, off, len);
	}
	pthread_mutex_unlock(&p->lock);
}

/* Returns the slot of an address. Functions other than 0 and buses other than 0 are empty. */
static unsigned int slot_of(uint32_t devfn)
{
	return devfn & 7 || devfn >> 3 >= PCI_SLOTS ? PCI_SLOTS : devfn >> 3;
}

static void data_io(struct pci *p, unsigned int byte, bool write, unsigned int len, uint32_t *val)
{
	uint32_t address, slot, off;

	pthread_mutex_lock(&p->lock);
	address = p->address;
	pthread_mutex_unlock(&p->lock);
	/* 31 enable, 30:24 zero, 23:16 bus, 15:8 device and function, 7:2 register */
	slot = (address >> 16) == ADDRESS_ENABLE >> 16 ? slot_of(address >> 8 & 0xff) : PCI_SLOTS;
	off = (address & 0xfc) + byte;
	if (write)
		pci_config_write(p, slot, off, len, *val);
	else
		*val = pci_config_read(p, slot, off, len);
}

static void port_io(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	struct pci *p = dev;

	if (off >= OFF_DATA) {
		/* The data registers end at 0xcff. */
		if (off + len <= OFF_DATA + 4)
			data_io(p, off - OFF_DATA, write, len, val);
		return;
	}
	if (off == 0 && len == 4) {
		pthread_mutex_lock(&p->lock);
		if (write)
			p->address = *val;
		else
			*val = p->address;
		pthread_mutex_unlock(&p->lock);
	} else if (off == OFF_RESET && write && len == 1 && (*val & RESET_CPU)) {
		p->power.end(p->power.ctx, DEV_END_RESET);
	}
}

/*
 * Handles an access through ECAM, by address bits: 27:20 bus, 19:12 device and function, 11:0
 * register. The window covers bus 0.
 */
static void ecam_io(void *dev, uint64_t at, bool write, unsigned int len, uint64_t *val)
{
	struct pci *p = dev;
	unsigned int slot = slot_of(at >> 12 & 0xff), off = at & 0xfff;

	if (len > 4)
		return; /* reads as all ones */
	if (write)
		pci_config_write(p, slot, off, len, (uint32_t)*val);
	else
		*val = pci_config_read(p, slot, off, len);
}

int pci_init(struct pci *p, struct bus *bus, struct dev_power power)
{
	memset(p, 0, sizeof(*p));
	p->bus = bus;
	p->power = power;
	p->next_bar = GPA_PCI_MMIO;
	pthread_mutex_init(&p->lock, NULL);
	return bus_add(bus, PORT_PCI_CONFIG, PORT_PCI_CONFIG_LEN, "pci", port_io, p);
}

void pci_deinit(struct pci *p)
{
	pthread_mutex_destroy(&p->lock);
}

static int add_bridge(struct pci *p, struct err *e)
{
	struct pci_function *f = &p->bridge;
	int ret = bus_add_mmio(p->bus, GPA_PCI_ECAM, GPA_PCI_ECAM_SIZE, "pci", ecam_io, p);

	if (ret)
		return err_set(e, -ret, "cannot register the PCI bus: %s", strerror(-ret));
	f->name = "pci";
	put16(f->config, PCI_VENDOR, BRIDGE_VENDOR);
	put16(f->config, PCI_DEVICE, BRIDGE_DEVICE);
	put16(f->config, PCI_CLASS, CLASS_HOST_BRIDGE);
	p->slot[p->n++] = f;
	return 0;
}

int pci_add(struct pci *p, struct pci_function *f, struct err *e)
{
	int ret = p->n ? 0 : add_bridge(p, e);

	if (ret)
		return ret;
	if (p->n == PCI_SLOTS)
		return err_set(e, ENOSPC, "%s: no free slot on the PCI bus (%u devices)", f->name,
			       PCI_SLOTS - 1);
	if (f->bar_size) {
		uint64_t at = (p->next_bar + f->bar_size - 1) & ~((uint64_t)f->bar_size - 1);

		ret = at + f->bar_size > GPA_PCI_MMIO + GPA_PCI_MMIO_SIZE
			      ? -ENOSPC
			      : bus_add_mmio(p->bus, at, f->bar_size, f->name, f->io, f->dev);
		if (ret)
			return err_set(e, -ret, "cannot register %s: %s", f->name, strerror(-ret));
		f->mmio = p->bus->nmmio - 1;
		p->next_bar = at + f->bar_size;
		put16(f->config, PCI_BAR0, at & 0xffff);
		put16(f->config, PCI_BAR0 + 2, at >> 16 & 0xffff);
		for (unsigned int i = 0; i < 4; i++)
			f->writable[PCI_BAR0 + i] = (uint8_t)(~(f->bar_size - 1) >> 8 * i);
		put16(f->config, PCI_COMMAND, PCI_COMMAND_MEMORY);
	}
	/* Memory decoding, bus mastering and INTx disable: the bits that a driver sets. */
	put16(f->writable, PCI_COMMAND, 0x0406);
	f->writable[PCI_INTERRUPT_LINE] = 0xff;
	p->slot[p->n++] = f;
	return 0;
}

int pci_save(void *what, struct buf *out, struct err *e)
{
	struct pci *p = what;

	buf_u32(out, p->address);
	buf_u32(out, p->n);
	for (unsigned int i = 0; i < p->n; i++)
		buf_add(out, p->slot[i]->config, PCI_CONFIG_SIZE);
	return out->failed ? err_nomem(e) : 0;
}

int pci_restore(void *what, struct cursor *in, struct err *e)
{
	struct pci *p = what;
	uint32_t address = cursor_u32(in), n = cursor_u32(in);

	if (in->bad || n != p->n)
		return err_set(e, EINVAL, "the saved PCI bus has %u devices, this machine %u", n,
			       p->n);
	p->address = address;
	for (unsigned int i = 0; i < n; i++) {
		struct pci_function *f = p->slot[i];
		const uint8_t *saved = cursor_bytes(in, PCI_CONFIG_SIZE);

		for (unsigned int k = 0; saved && k < PCI_CONFIG_SIZE; k++) {
			if ((saved[k] ^ f->config[k]) & (uint8_t)~f->writable[k])
				return err_set(e, EINVAL,
					       "the saved PCI device %u is not the %s that this "
					       "machine has there",
					       i, f->name);
			f->config[k] = saved[k];
		}
		place_bar(p, f);
	}
	return in->bad ? err_set(e, EINVAL, "the saved PCI bus is cut short") : 0;
}
