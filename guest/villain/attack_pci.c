// SPDX-License-Identifier: GPL-2.0-or-later
/* The PCI bus, its windows and its interrupts (4.1; PCI Local Bus 3.0, 6.2.5 and 6.8.2). */
#include "villain.h"

#define PCI_COMMAND 0x04u
#define PCI_BAR0 0x10u
#define PCI_CAPABILITIES 0x34u
#define CAP_MSIX 0x11u
#define CAP_VENDOR 0x09u
#define TYPE_WINDOW 5u
#define MSIX_ENABLE 0x8000u
#define MSIX_MASK 0x4000u
#define COMMAND_ON 6u
#define PORT_ADDRESS 0xcf8u
#define PORT_DATA 0xcfcu

static u64 capability(const struct vdev *d, u32 id, u32 type)
{
	u32 cap = read8(d->function + PCI_CAPABILITIES);

	for (u32 n = 0; cap >= 0x40 && n < 48; n++, cap = read8(d->function + cap + 1))
		if (read8(d->function + cap) == id &&
		    (!type || read8(d->function + cap + 3) == type))
			return d->function + cap;
	return 0;
}

/* -- 4.1.4.9: the BAR through configuration space ------------------------------------------------- */

static void use_window(u64 cap, u32 bar, u32 off, u32 len)
{
	write8(cap + 4, bar);
	write32(cap + 8, off);
	write32(cap + 12, len);
	read32(cap + 16);
	write32(cap + 16, 0);
}

static int window_lengths(struct vdev *d)
{
	static const u32 lengths[] = { 0, 3, 5, 8, 16, 0x7fffffff, 0x80000000, 0xffffffff };
	u64 cap = capability(d, CAP_VENDOR, TYPE_WINDOW);

	for (u32 i = 0; cap && i < ARRAY_SIZE(lengths); i++)
		use_window(cap, 0, 0x1000, lengths[i]);
	return !cap;
}

static int window_offsets(struct vdev *d)
{
	static const u32 offsets[] = { 0x7ffd,	   0x7fff,     0x8000,	  0x10000,
				       0x7fffffff, 0xfffffffc, 0xffffffff };
	u64 cap = capability(d, CAP_VENDOR, TYPE_WINDOW);

	for (u32 i = 0; cap && i < ARRAY_SIZE(offsets); i++)
		for (u32 len = 1; len <= 4; len *= 2)
			use_window(cap, 0, offsets[i], len);
	return !cap;
}

static int window_bars(struct vdev *d)
{
	u64 cap = capability(d, CAP_VENDOR, TYPE_WINDOW);

	for (u32 bar = 1; cap && bar < 256; bar += 1 + bar / 4)
		use_window(cap, bar, 0, 4);
	return !cap;
}

/* Accesses the whole BAR by bytes, except for the registers that set the device up. */
static int window_sweep(struct vdev *d)
{
	u64 cap = capability(d, CAP_VENDOR, TYPE_WINDOW);

	for (u32 off = 0x1000; cap && off < 0x8000; off += 61) {
		write8(cap + 4, 0);
		write32(cap + 8, off);
		write32(cap + 12, 1);
		read8(cap + 16);
		read32(cap + 17);
	}
	return !cap;
}

/* -- MSI-X ---------------------------------------------------------------------------------------------- */

static u64 msix_table(const struct vdev *d, u64 *cap)
{
	*cap = capability(d, CAP_MSIX, 0);
	return *cap ? d->bar + (read32(*cap + 4) & ~7u) : 0;
}

static void set_entry(u64 entry, u64 address, u32 data, u32 control)
{
	write32(entry, (u32)address);
	write32(entry + 4, (u32)(address >> 32));
	write32(entry + 8, data);
	write32(entry + 12, control);
}

static void use_vectors(struct vdev *d)
{
	write16(d->common + 0x10, 0);
	for (u32 q = 0; q < d->nqueues; q++) {
		queue_select(d, q);
		write16(d->common + 0x1a, 0);
	}
}

static int msix_addresses(struct vdev *d)
{
	static const u64 addresses[] = {
		0,	    1,		 ~0ul,	     VQ_AREA,	 RAM_END,
		0xfee00000, 0xfeefffff,	 0xfee0f00c, PCI_ECAM,	 1ul << 63,
		0xfec00000, 0xfee000000, 0xdeadbeef, 0xfee00ff8, 0xfed00000
	};
	u64 cap, table = msix_table(d, &cap);
	int works = table != 0;

	use_vectors(d);
	for (u32 i = 0; works && i < ARRAY_SIZE(addresses); i++) {
		/*
		 * Vectors below 16 are invalid; delivery modes other than "fixed" would reset us.
		 */
		set_entry(table, addresses[i], i & 7, 0);
		write16(cap + 2, MSIX_ENABLE);
		works = dev_works(d);
	}
	if (table)
		write16(cap + 2, 0);
	return !works;
}

static int msix_masks(struct vdev *d)
{
	u64 cap, table = msix_table(d, &cap);
	int works = table != 0;

	use_vectors(d);
	for (u32 i = 0; works && i < 16; i++) {
		set_entry(table, LAPIC, 3, i & 1);
		write16(cap + 2, MSIX_ENABLE | (i & 2 ? MSIX_MASK : 0));
		works = dev_works(d);
		write32(table + 12, 0);
		write16(cap + 2, i & 4 ? MSIX_ENABLE : 0);
	}
	if (table)
		write16(cap + 2, 0);
	return !works;
}

/* 4.1.5.1.2.1: a vector that does not exist reads back as none. */
static int msix_vectors_beyond(struct vdev *d)
{
	static const u32 vectors[] = { 3, 64, 65, 255, 2047, 2048, 0x7fff, 0xfffe };
	int wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(vectors); i++) {
		if (vectors[i] == 3 && d->nqueues > 2)
			continue;
		write16(d->common + 0x10, vectors[i]);
		wrong |= vectors[i] >= 64 && read16(d->common + 0x10) != 0xffff;
		queue_select(d, 0);
		write16(d->common + 0x1a, vectors[i]);
		wrong |= vectors[i] >= 64 && read16(d->common + 0x1a) != 0xffff;
	}
	return wrong;
}

static int msix_table_beyond(struct vdev *d)
{
	u64 cap, table = msix_table(d, &cap), pending = d->bar + (read32(cap + 8) & ~7u);

	for (u32 off = 0; off < 0x1000; off += 52) {
		write32(table + off, (u32)random64());
		write64(table + (off & ~7u), random64());
		write8(table + off, 0xff);
		read64(table + (off & ~7u));
		read16(table + off);
		write32(pending + off, 0xffffffff);
		read64(pending + (off & ~7u));
	}
	write16(cap + 2, 0);
	return 0;
}

static int msix_flips(struct vdev *d)
{
	u64 cap, table = msix_table(d, &cap);

	use_vectors(d);
	set_entry(table, LAPIC, 2, 0);
	for (u32 i = 0; i < 20; i++) {
		write16(cap + 2, i & 1 ? MSIX_ENABLE : MSIX_ENABLE | MSIX_MASK);
		dev_notify(d, d->attacked);
		if (!dev_works(d))
			return 1;
		write16(cap + 2, 0);
	}
	return 0;
}

/* -- the BAR ------------------------------------------------------------------------------------------------ */

/* The BAR is at another address for a while, where it is read and written. */
static int moved_to(struct vdev *d, u64 place)
{
	write32(d->function + PCI_BAR0, (u32)place);
	if (place >= DEVICES) {
		read32(place + 0x20);
		write32(place + 0x3000, 0);
	}
	write32(d->function + PCI_BAR0, (u32)d->bar);
	return 0;
}

static int bar_on_ram(struct vdev *d)
{
	int works;

	write32(d->function + PCI_BAR0, VQ_AREA);
	*(volatile u32 *)at(VQ_AREA + 0x14) = 0x12345678;
	works = *(volatile u32 *)at(VQ_AREA + 0x14) == 0x12345678;
	write32(d->function + PCI_BAR0, (u32)d->bar);
	return !works;
}

static int bar_on_apic(struct vdev *d)
{
	return moved_to(d, LAPIC);
}

static int bar_on_ioapic(struct vdev *d)
{
	return moved_to(d, IOAPIC);
}

static int bar_on_ecam(struct vdev *d)
{
	write32(d->function + PCI_BAR0, PCI_ECAM);
	/* Only the ports work if it covers that. */
	out_width(PORT_ADDRESS, 4,
		  0x80000000u | (u32)((d->function - PCI_ECAM) >> 4 & 0xff00) | PCI_BAR0);
	out_width(PORT_DATA, 4, (u32)d->bar);
	return 0;
}

static int bar_at_0(struct vdev *d)
{
	return moved_to(d, 0);
}

static int bar_at_top(struct vdev *d)
{
	return moved_to(d, 0xffff8000);
}

static int bar_on_others(struct vdev *d)
{
	for (u64 place = 0xc0000000; place < 0xc0080000; place += 0x8000)
		moved_to(d, place);
	return 0;
}

static int bar_sized(struct vdev *d)
{
	u32 size;

	write32(d->function + PCI_BAR0, 0xffffffff);
	size = ~(read32(d->function + PCI_BAR0) & ~15u) + 1;
	write32(d->function + PCI_BAR0, (u32)d->bar);
	return !size || (size & (size - 1));
}

static int decoding_off(struct vdev *d)
{
	u32 seen;

	write16(d->function + PCI_COMMAND, 0);
	seen = read32(d->bar + 0x14);
	write32(d->bar + 0x14, 0);
	dev_notify(d, d->attacked);
	write16(d->function + PCI_COMMAND, COMMAND_ON);
	return seen != 0xffffffff;
}

/* -- configuration space --------------------------------------------------------------------------------- */

static int config_space_written(struct vdev *d)
{
	u32 id = read32(d->function);

	for (u32 off = 0; off < 0x1000; off += 4) {
		/* Skips the window's data, which writes to any register. */
		if (off == 0x94)
			continue;
		write32(d->function + off, (u32)random64());
		write8(d->function + off + 3, 0xff);
		read16(d->function + off + 2);
	}
	write32(d->function + PCI_BAR0, (u32)d->bar);
	write16(d->function + PCI_COMMAND, COMMAND_ON);
	write16(capability(d, CAP_MSIX, 0) + 2, 0);
	return read32(d->function) != id;
}

static int config_space_oddly(struct vdev *d)
{
	for (u32 off = 0; off < 0x100; off++) {
		read64(d->function + (off & ~7u));
		if (off < 0xfc) {
			read32(d->function + off);
			read16(d->function + off);
		}
	}
	write64(d->function + 0x40, ~0ul);
	return read64(d->function + 0xffc) == 0;
}

static int slots_beyond(struct vdev *d)
{
	int wrong = 0;

	(void)d;
	for (u64 off = 0; off < 0x100000; off += 0x1000) {
		/* Functions other than the first one of a slot are empty. */
		if (off >> 12 & 7)
			wrong |= read32(PCI_ECAM + off) != 0xffffffff;
		read32(PCI_ECAM + off + 0xffc);
	}
	return wrong;
}

static int ports_oddly(struct vdev *d)
{
	(void)d;
	for (u32 i = 0; i < 200; i++) {
		u32 address = (u32)random64();

		/* Reads only after an address that may be valid. */
		out_width(PORT_ADDRESS, 4, address);
		in_width((u16)(PORT_DATA + (i & 3)), 1u << i % 3);
		if (!(address >> 31))
			out_width(PORT_DATA, 4, ~0u);
		in_width(PORT_ADDRESS, 1);
		in_width(PORT_ADDRESS + 2, 2);
		in_width(PORT_ADDRESS + 3, 4);
		out_width(PORT_ADDRESS, 2, 0xffff);
		out_width(PORT_ADDRESS + 1, 1, 0x00); /* the reset register, without a reset */
		out_width(PORT_ADDRESS + 1, 1, 0x02);
	}
	out_width(PORT_ADDRESS, 4, 0);
	return 0;
}

static const struct attack attacks[] = {
	{ "4.1.4.9 window-lengths", PASS, window_lengths },
	{ "4.1.4.9 window-offsets", PASS, window_offsets },
	{ "4.1.4.9 window-bars", PASS, window_bars },
	{ "4.1.4.9 window-sweep", PASS, window_sweep },
	{ "4.1.5.1.2 msix-addresses", PASS, msix_addresses },
	{ "4.1.5.1.2 msix-masks", PASS, msix_masks },
	{ "4.1.5.1.2.1 msix-vectors-beyond", PASS, msix_vectors_beyond },
	{ "4.1.5.1.2 msix-table-beyond", PASS, msix_table_beyond },
	{ "4.1.5.1.2 msix-flips", PASS, msix_flips },
	{ "pci-6.2.5 bar-on-ram", PASS, bar_on_ram },
	{ "pci-6.2.5 bar-on-apic", PASS, bar_on_apic },
	{ "pci-6.2.5 bar-on-ioapic", PASS, bar_on_ioapic },
	{ "pci-6.2.5 bar-on-ecam", PASS, bar_on_ecam },
	{ "pci-6.2.5 bar-at-0", PASS, bar_at_0 },
	{ "pci-6.2.5 bar-at-top", PASS, bar_at_top },
	{ "pci-6.2.5 bar-on-others", PASS, bar_on_others },
	{ "pci-6.2.5 bar-sized", PASS, bar_sized },
	{ "pci-6.2.2 decoding-off", PASS, decoding_off },
	{ "pci-6.1 config-written", PASS, config_space_written },
	{ "pci-6.1 config-oddly", PASS, config_space_oddly },
	{ "pci-6.1 slots-beyond", PASS, slots_beyond },
	{ "pci-3.2.2.3.2 ports-oddly", PASS, ports_oddly },
};

const struct attack_class pci_class = { "pci", ATTACKS(attacks), ON_EACH_PCI, 0 };
