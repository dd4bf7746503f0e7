/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The DSDT's bytes (ACPI 6.4, chapter 20 "AML", 6.4 "resource data types"), as iasl shows them:
 *
 * 	Name (_S5, Package () { 5, 5, 0, 0 })
 * 	Scope (\_SB) {
 * 		Device (PCI0) {				// with PCI
 * 			Name (_HID, EisaId ("PNP0A08"))	  Name (_CID, EisaId ("PNP0A03"))
 * 			Name (_UID, 0)  Name (_SEG, 0)  Name (_BBN, 0)
 * 			Name (_CRS, ResourceTemplate () {
 * 				WordBusNumber, IO (0xcf8..0xcff), WordIO, DWordMemory })
 * 		}
 * 		Device (RES0) {				// reserves the ECAM window
 * 			Name (_HID, EisaId ("PNP0C02"))  Name (_UID, 0)
 * 			Name (_CRS, ResourceTemplate () { Memory32Fixed })
 * 		}
 * 		Device (VIR0) {				// for each virtio-mmio device
 * 			Name (_HID, "LNRO0005")  Name (_UID, 0)  Name (_CCA, 1)
 * 			Name (_CRS, ResourceTemplate () { Memory32Fixed, Interrupt })
 * 		}
 * 	}
 *
 * QEMU introduced LNRO0005, and Linux' virtio_mmio.c accepts it.
 */
#include "vmm/boot/dsdt.h"

#include "vmm/layout.h"

#include <assert.h>

enum {
	AML_ZERO = 0x00,
	AML_ONE = 0x01,
	AML_NAME = 0x08,
	AML_BYTE = 0x0a,
	AML_WORD = 0x0b,
	AML_DWORD = 0x0c,
	AML_STRING = 0x0d,
	AML_SCOPE = 0x10,
	AML_BUFFER = 0x11,
	AML_PACKAGE = 0x12,
	AML_EXT = 0x5b,
	AML_DEVICE = 0x82
};

/* PkgLength in two bytes (20.2.4): 4 bits in the first, 8 above them in the second. */
#define PKG_TWO_BYTES 0x40u
#define PKG_MAX 0xfffu

/* Resource descriptors, 6.4.2 and 6.4.3. */
enum {
	RES_IO = 0x47,
	RES_END = 0x79,
	RES_MEMORY32_FIXED = 0x86,
	RES_DWORD = 0x87,
	RES_WORD = 0x88,
	RES_INTERRUPT = 0x89
};
enum { SPACE_MEMORY = 0, SPACE_IO = 1, SPACE_BUS = 2 };
#define SPACE_FIXED 0x0cu /* _MIF, _MAF: neither end moves; positive decode, producer */
#define IO_ENTIRE_RANGE 3u
#define MEMORY_READ_WRITE 1u
#define INTERRUPT_EDGE_HIGH 0x03u /* consumer, edge, high, exclusive */

/* EisaId("PNPxxxx"), 19.6.36. */
#define EISA_PNP(n) (0x0000d041u | ((n)&0xff00u) << 8 | ((uint32_t)(n)&0xffu) << 24)

/* Begins the bytes that a PkgLength counts, and returns their offset. */
static size_t pkg_begin(struct buf *b)
{
	size_t at = b->len;

	buf_u16(b, 0);
	return at;
}

static void pkg_end(struct buf *b, size_t at)
{
	size_t len = b->len - at;

	if (b->failed)
		return;
	assert(len <= PKG_MAX);
	b->data[at] = (uint8_t)(PKG_TWO_BYTES | (len & 0xf));
	b->data[at + 1] = (uint8_t)(len >> 4);
}

static void add_name(struct buf *b, const char name[4])
{
	buf_u8(b, AML_NAME);
	buf_add(b, name, 4);
}

static void add_byte(struct buf *b, const char name[4], unsigned int v)
{
	add_name(b, name);
	if (v <= 1) {
		buf_u8(b, v ? AML_ONE : AML_ZERO);
		return;
	}
	buf_u8(b, AML_BYTE);
	buf_u8(b, (uint8_t)v);
}

static void add_dword(struct buf *b, const char name[4], uint32_t v)
{
	add_name(b, name);
	buf_u8(b, AML_DWORD);
	buf_u32(b, v);
}

static size_t device_begin(struct buf *b, const char name[4])
{
	size_t at;

	buf_u8(b, AML_EXT);
	buf_u8(b, AML_DEVICE);
	at = pkg_begin(b);
	buf_add(b, name, 4);
	return at;
}

/* Appends Name (_CRS, Buffer (n) { r, end tag }), and frees r. */
static void add_resources(struct buf *b, struct buf *r)
{
	size_t at;

	buf_u8(r, RES_END);
	buf_u8(r, 0); /* no checksum */
	add_name(b, "_CRS");
	buf_u8(b, AML_BUFFER);
	at = pkg_begin(b);
	buf_u8(b, AML_WORD);
	buf_u16(b, (uint16_t)r->len);
	buf_add(b, r->data, r->len);
	pkg_end(b, at);
	b->failed |= r->failed;
	buf_deinit(r);
}

static void add_word_space(struct buf *r, unsigned int type, unsigned int flags, unsigned int first,
			   unsigned int len)
{
	buf_u8(r, RES_WORD);
	buf_u16(r, 13);
	buf_u8(r, (uint8_t)type);
	buf_u8(r, SPACE_FIXED);
	buf_u8(r, (uint8_t)flags);
	buf_u16(r, 0); /* granularity */
	buf_u16(r, (uint16_t)first);
	buf_u16(r, (uint16_t)(first + len - 1));
	buf_u16(r, 0); /* translation */
	buf_u16(r, (uint16_t)len);
}

static void add_memory_window(struct buf *r, uint32_t first, uint32_t len)
{
	buf_u8(r, RES_DWORD);
	buf_u16(r, 23);
	buf_u8(r, SPACE_MEMORY);
	buf_u8(r, SPACE_FIXED);
	buf_u8(r, MEMORY_READ_WRITE);
	buf_u32(r, 0);
	buf_u32(r, first);
	buf_u32(r, first + len - 1);
	buf_u32(r, 0);
	buf_u32(r, len);
}

static void add_memory_fixed(struct buf *r, uint64_t base, uint64_t len)
{
	buf_u8(r, RES_MEMORY32_FIXED);
	buf_u16(r, 9);
	buf_u8(r, MEMORY_READ_WRITE);
	buf_u32(r, (uint32_t)base);
	buf_u32(r, (uint32_t)len);
}

static void add_ports(struct buf *r, unsigned int base, unsigned int len)
{
	buf_u8(r, RES_IO);
	buf_u8(r, 1); /* 16 address lines */
	buf_u16(r, (uint16_t)base);
	buf_u16(r, (uint16_t)base);
	buf_u8(r, 1); /* alignment */
	buf_u8(r, (uint8_t)len);
}

static void add_interrupt(struct buf *r, uint32_t gsi)
{
	buf_u8(r, RES_INTERRUPT);
	buf_u16(r, 6);
	buf_u8(r, INTERRUPT_EDGE_HIGH);
	buf_u8(r, 1);
	buf_u32(r, gsi);
}

static void add_pci(struct buf *b)
{
	size_t at = device_begin(b, "PCI0");
	struct buf r;

	add_dword(b, "_HID", EISA_PNP(0x0a08));
	add_dword(b, "_CID", EISA_PNP(0x0a03));
	add_byte(b, "_UID", 0);
	add_byte(b, "_SEG", 0);
	add_byte(b, "_BBN", 0);
	buf_init(&r);
	add_word_space(&r, SPACE_BUS, 0, 0, GPA_PCI_ECAM_SIZE / PCI_ECAM_BUS_SIZE);
	add_ports(&r, PORT_PCI_CONFIG, PORT_PCI_CONFIG_LEN);
	add_word_space(&r, SPACE_IO, IO_ENTIRE_RANGE, PORT_PCI_WINDOW, PORT_PCI_WINDOW_LEN);
	add_memory_window(&r, GPA_PCI_MMIO, GPA_PCI_MMIO_SIZE);
	add_resources(b, &r);
	pkg_end(b, at);

	at = device_begin(b, "RES0");
	add_dword(b, "_HID", EISA_PNP(0x0c02));
	add_byte(b, "_UID", 0);
	buf_init(&r);
	add_memory_fixed(&r, GPA_PCI_ECAM, GPA_PCI_ECAM_SIZE);
	add_resources(b, &r);
	pkg_end(b, at);
}

static void add_virtio(struct buf *b, unsigned int i)
{
	const char name[4] = { 'V', 'I', 'R', (char)('0' + i) };
	size_t at = device_begin(b, name);
	struct buf r;

	add_name(b, "_HID");
	buf_u8(b, AML_STRING);
	buf_add(b, "LNRO0005", 9);
	add_byte(b, "_UID", i);
	add_byte(b, "_CCA", 1); /* coherent */
	buf_init(&r);
	add_memory_fixed(&r, GPA_VIRTIO_MMIO + i * GPA_VIRTIO_MMIO_SIZE, GPA_VIRTIO_MMIO_SIZE);
	add_interrupt(&r, IRQ_VIRTIO_MMIO + i);
	add_resources(b, &r);
	pkg_end(b, at);
}

/* Adds _S5: SLP_TYP for PM1a and PM1b, and two reserved values. */
static void add_s5(struct buf *b)
{
	static const uint8_t package[] = {
		AML_PACKAGE, 0x08, /* bytes from here */
		0x04,		   /* elements */
		AML_BYTE,    PM1_SLP_TYP_S5, AML_BYTE, PM1_SLP_TYP_S5, AML_ZERO, AML_ZERO,
	};

	add_name(b, "_S5_");
	buf_add(b, package, sizeof(package));
}

void boot_dsdt_build(struct buf *b, const struct boot_platform *p)
{
	size_t at;

	add_s5(b);
	if (!p->pci && !p->virtio_mmio)
		return;
	buf_u8(b, AML_SCOPE);
	at = pkg_begin(b);
	buf_add(b, "\\_SB_", 5);
	if (p->pci)
		add_pci(b);
	for (unsigned int i = 0; i < p->virtio_mmio && i < VIRTIO_MMIO_MAX; i++)
		add_virtio(b, i);
	pkg_end(b, at);
}
