/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The MP table (Intel MultiProcessor Specification 1.4, chapter 4):
 *
 * 	floating pointer (16 bytes)
 * 	configuration header (44)
 * 	processor (20)*  bus (8)  I/O APIC (8)  I/O interrupt (8)*  local interrupt (8)*
 *
 * It saves kernels without ACPI the search through the whole BIOS area, and shows them their
 * processors.
 */
#include "vmm/boot/mptable.h"

#include "vmm/layout.h"

#define MP_SPEC_REV 4u	      /* 1.4 */
#define MP_APIC_VERSION 0x14u /* as reported by KVM's local APIC */
#define MP_IOAPIC_VERSION 0x11u

enum { MP_PROCESSOR, MP_BUS, MP_IOAPIC, MP_IOINT, MP_LINT };
enum { INT_VECTORED = 0, INT_NMI = 1, INT_EXTINT = 3 };
#define MP_CPU_ENABLED 0x1u
#define MP_CPU_BSP 0x2u
#define MP_ALL_APICS 0xffu
#define MP_ISA_BUS 0u

/* Family 6 with an on-chip APIC; kernels ignore these, but 0 looks broken. */
#define MP_CPU_SIGNATURE 0x600u
#define MP_CPU_FEATURES 0x201u /* FPU, APIC */

static void add_interrupt(struct buf *b, unsigned int entry, unsigned int type, unsigned int irq,
			  unsigned int apic, unsigned int pin)
{
	buf_u8(b, (uint8_t)entry);
	buf_u8(b, (uint8_t)type);
	buf_u16(b, 0); /* polarity and trigger of the bus: ISA, high and edge */
	buf_u8(b, MP_ISA_BUS);
	buf_u8(b, (uint8_t)irq);
	buf_u8(b, (uint8_t)apic);
	buf_u8(b, (uint8_t)pin);
}

void boot_mptable_build(struct buf *b, const struct boot_platform *p)
{
	/* I/O APIC inputs beyond the ISA interrupts are listed only if they are used. */
	unsigned int vcpus = p->vcpus,
		     irqs = p->virtio_mmio ? IRQ_VIRTIO_MMIO + p->virtio_mmio : ISA_IRQS;
	unsigned int entries = 0;
	size_t start = b->len, header;

	/* floating pointer: its length is in units of 16 bytes */
	buf_add(b, "_MP_", 4);
	buf_u32(b, (uint32_t)GPA_MPTABLE + 16);
	buf_u8(b, 1);
	buf_u8(b, MP_SPEC_REV);
	buf_u8(b, 0);	     /* checksum */
	buf_add(b, NULL, 5); /* feature bytes: a table exists; virtual wire mode */

	header = b->len;
	buf_add(b, "PCMP", 4);
	buf_u16(b, 0); /* length */
	buf_u8(b, MP_SPEC_REV);
	buf_u8(b, 0); /* checksum */
	buf_add(b, "KVMPROF ", 8);
	buf_add(b, "GUEST       ", 12);
	buf_u32(b, 0); /* OEM table */
	buf_u16(b, 0);
	buf_u16(b, 0); /* entries */
	buf_u32(b, (uint32_t)GPA_LAPIC);
	buf_u32(b, 0); /* no extended table */

	for (unsigned int i = 0; i < vcpus; i++, entries++) {
		buf_u8(b, MP_PROCESSOR);
		buf_u8(b, (uint8_t)i);
		buf_u8(b, MP_APIC_VERSION);
		buf_u8(b, (uint8_t)(MP_CPU_ENABLED | (i ? 0 : MP_CPU_BSP)));
		buf_u32(b, MP_CPU_SIGNATURE);
		buf_u32(b, MP_CPU_FEATURES);
		buf_u64(b, 0);
	}

	buf_u8(b, MP_BUS);
	buf_u8(b, MP_ISA_BUS);
	buf_add(b, "ISA   ", 6);
	entries++;

	buf_u8(b, MP_IOAPIC);
	buf_u8(b, (uint8_t)vcpus);
	buf_u8(b, MP_IOAPIC_VERSION);
	buf_u8(b, MP_CPU_ENABLED);
	buf_u32(b, (uint32_t)GPA_IOAPIC);
	entries++;

	for (unsigned int irq = 0; irq < irqs; irq++, entries++)
		add_interrupt(b, MP_IOINT, INT_VECTORED, irq, vcpus,
			      irq == IRQ_TIMER ? GSI_TIMER : irq);

	/* the 8259 is wired to the boot processor's LINT0; LINT1 is NMI everywhere */
	add_interrupt(b, MP_LINT, INT_EXTINT, 0, 0, 0);
	add_interrupt(b, MP_LINT, INT_NMI, 0, MP_ALL_APICS, 1);
	entries += 2;

	if (b->failed)
		return;
	buf_put16(b, header + 4, (uint16_t)(b->len - header));
	buf_put16(b, header + 34, (uint16_t)entries);
	b->data[header + 7] = tables_checksum(b->data + header, b->len - header);
	b->data[start + 10] = tables_checksum(b->data + start, header - start);
}
