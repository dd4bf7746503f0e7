/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ACPI tables (ACPI specification 6.4): enough to find the processors and the existing devices, and
 * to power the machine off. Without devices, nothing makes a guest search for them.
 *
 * 	RSDP -> XSDT -> FADT -> DSDT (dsdt.c)
 * 	             |       +> FACS
 * 	             +> MADT
 * 	             +> MCFG, with PCI
 */
#include "vmm/boot/acpi.h"

#include "vmm/boot/dsdt.h"
#include "vmm/layout.h"

#include <assert.h>
#include <string.h>

#define ACPI_HEADER 36u
#define ACPI_CHECKSUM 9u /* in the header of every table */
#define RSDP_V1_SIZE 20u
#define FADT_SIZE 276u
#define FACS_SIZE 64u

/* 5.2.9, IAPC_BOOT_ARCH: a serial port, no VGA. The 8042 can only reset, so it is not announced. */
#define BOOT_ARCH_LEGACY_DEVICES 0x1u
#define BOOT_ARCH_NO_VGA 0x4u

/* 5.2.9, fixed feature flags */
#define FADT_WBINVD (1u << 0)
#define FADT_PROC_C1 (1u << 2)
#define FADT_PWR_BUTTON (1u << 4) /* "not a fixed feature": there is none */
#define FADT_SLP_BUTTON (1u << 5)
#define FADT_FIX_RTC (1u << 6) /* no RTC wake status */
#define FADT_RESET_REG_SUP (1u << 10)
#define FADT_HEADLESS (1u << 12)

#define GAS_SYSTEM_IO 1u
#define GAS_BYTE 1u
#define GAS_WORD 2u
#define GAS_DWORD 3u

/* 5.2.12 */
#define MADT_PCAT_COMPAT 0x1u /* there are two 8259 as well */
enum { MADT_LAPIC = 0, MADT_IOAPIC = 1, MADT_OVERRIDE = 2, MADT_LAPIC_NMI = 4 };
#define MADT_ENABLED 0x1u
#define MADT_EDGE_HIGH 0x5u
#define MADT_LEVEL_HIGH 0xdu
#define MADT_ALL_CPUS 0xffu

/* Begins a table and returns its offset; table_end() fills in length and checksum. */
static size_t table_begin(struct buf *b, const char *signature, uint8_t revision)
{
	size_t at;

	buf_align(b, 16);
	at = b->len;
	buf_add(b, signature, 4);
	buf_u32(b, 0); /* length */
	buf_u8(b, revision);
	buf_u8(b, 0); /* checksum */
	buf_add(b, "KVMPRF", 6);
	buf_add(b, "KVMPROF ", 8);
	buf_u32(b, 1);
	buf_add(b, "KVMP", 4);
	buf_u32(b, 1);
	return at;
}

static void table_end(struct buf *b, size_t at)
{
	if (b->failed)
		return;
	buf_put32(b, at + 4, (uint32_t)(b->len - at));
	b->data[at + ACPI_CHECKSUM] = tables_checksum(b->data + at, b->len - at);
}

/* Appends a generic address structure (5.2.3.2); port 0 means absent. */
static void add_port(struct buf *b, unsigned int port, unsigned int len, unsigned int access)
{
	buf_u8(b, port ? GAS_SYSTEM_IO : 0);
	buf_u8(b, (uint8_t)(len * 8));
	buf_u8(b, 0);
	buf_u8(b, (uint8_t)access);
	buf_u64(b, port);
}

static void add_fadt(struct buf *b, uint64_t facs, uint64_t dsdt)
{
	size_t at = table_begin(b, "FACP", 6);

	buf_u32(b, (uint32_t)facs);
	buf_u32(b, (uint32_t)dsdt);
	buf_u8(b, 0);
	buf_u8(b, 0); /* power management profile: unspecified */
	buf_u16(b, IRQ_SCI);
	buf_u32(b, 0); /* no SMI command port: always in ACPI mode */
	buf_u32(b, 0); /* ACPI enable, disable, S4BIOS, P-state values */
	buf_u32(b, PORT_PM1A_EVENT);
	buf_u32(b, 0);
	buf_u32(b, PORT_PM1A_CONTROL);
	buf_u32(b, 0);
	buf_u32(b, 0); /* PM2 control */
	buf_u32(b, 0); /* PM timer: optional since 5.0A, every guest has better clocks */
	buf_u64(b, 0); /* GPE0, GPE1 */
	buf_u8(b, PORT_PM1A_EVENT_LEN);
	buf_u8(b, PORT_PM1A_CONTROL_LEN);
	buf_u32(b, 0);	    /* lengths of PM2, PM timer, GPE0, GPE1 */
	buf_u16(b, 0);	    /* GPE1 base, C-state control */
	buf_u16(b, 0xffff); /* latencies: no C2, no C3 */
	buf_u16(b, 0xffff);
	buf_u32(b, 0);	 /* flush size and stride: WBINVD works */
	buf_u16(b, 0);	 /* duty cycle */
	buf_u16(b, 0);	 /* RTC alarms */
	buf_u8(b, 0x32); /* RTC index of the century */
	buf_u16(b, BOOT_ARCH_LEGACY_DEVICES | BOOT_ARCH_NO_VGA);
	buf_u8(b, 0);
	buf_u32(b, FADT_WBINVD | FADT_PROC_C1 | FADT_PWR_BUTTON | FADT_SLP_BUTTON | FADT_FIX_RTC |
			   FADT_RESET_REG_SUP | FADT_HEADLESS);
	add_port(b, PORT_I8042_COMMAND, 1, GAS_BYTE);
	buf_u8(b, I8042_RESET);
	buf_u16(b, 0); /* ARM */
	buf_u8(b, 4);  /* minor version: 6.4 */
	buf_u64(b, 0); /* the FACS is named above; guests load it twice if named twice */
	buf_u64(b, dsdt);
	add_port(b, PORT_PM1A_EVENT, PORT_PM1A_EVENT_LEN, GAS_WORD);
	add_port(b, 0, 0, 0);
	add_port(b, PORT_PM1A_CONTROL, PORT_PM1A_CONTROL_LEN, GAS_WORD);
	for (int i = 0; i < 7; i++) /* PM1b, PM2, timer, GPE0, GPE1, sleep control and status */
		add_port(b, 0, 0, 0);
	buf_u64(b, 0); /* hypervisor vendor */
	assert(b->failed || b->len - at == FADT_SIZE);
	table_end(b, at);
}

static void add_override(struct buf *b, unsigned int irq, unsigned int gsi, unsigned int flags)
{
	buf_u8(b, MADT_OVERRIDE);
	buf_u8(b, 10);
	buf_u8(b, 0); /* ISA */
	buf_u8(b, (uint8_t)irq);
	buf_u32(b, gsi);
	buf_u16(b, (uint16_t)flags);
}

static void add_madt(struct buf *b, unsigned int vcpus)
{
	size_t at = table_begin(b, "APIC", 5);

	buf_u32(b, (uint32_t)GPA_LAPIC);
	buf_u32(b, MADT_PCAT_COMPAT);
	for (unsigned int i = 0; i < vcpus; i++) {
		buf_u8(b, MADT_LAPIC);
		buf_u8(b, 8);
		buf_u8(b, (uint8_t)i); /* processor UID */
		buf_u8(b, (uint8_t)i); /* APIC id */
		buf_u32(b, MADT_ENABLED);
	}
	buf_u8(b, MADT_IOAPIC);
	buf_u8(b, 12);
	buf_u8(b, (uint8_t)vcpus);
	buf_u8(b, 0);
	buf_u32(b, (uint32_t)GPA_IOAPIC);
	buf_u32(b, 0); /* its first input is GSI 0 */
	if (GSI_TIMER != IRQ_TIMER)
		add_override(b, IRQ_TIMER, GSI_TIMER, MADT_EDGE_HIGH);
	/* SCI: level-triggered as ACPI requires, but not active low as by default */
	add_override(b, IRQ_SCI, IRQ_SCI, MADT_LEVEL_HIGH);
	buf_u8(b, MADT_LAPIC_NMI);
	buf_u8(b, 6);
	buf_u8(b, MADT_ALL_CPUS);
	buf_u16(b, 0);
	buf_u8(b, 1); /* LINT1 */
	table_end(b, at);
}

/*
 * Adds the MCFG: the place of configuration spaces in memory (PCI Firmware Specification 3.2,
 * 4.1.2).
 */
static void add_mcfg(struct buf *b)
{
	size_t at = table_begin(b, "MCFG", 1);

	buf_u64(b, 0);
	buf_u64(b, GPA_PCI_ECAM);
	buf_u16(b, 0); /* segment */
	buf_u8(b, 0);  /* first bus */
	buf_u8(b, (uint8_t)(GPA_PCI_ECAM_SIZE / PCI_ECAM_BUS_SIZE - 1));
	buf_u32(b, 0);
	table_end(b, at);
}

void boot_acpi_build(struct buf *b, const struct boot_platform *p)
{
	size_t start = b->len, facs, dsdt, fadt, madt, mcfg, xsdt;
	uint64_t base = GPA_ACPI - start;

	buf_add(b, NULL, FACS_SIZE); /* place of the RSDP, which needs the XSDT's address */

	facs = b->len; /* must be at a 64-byte boundary, and has no checksum */
	buf_add(b, "FACS", 4);
	buf_u32(b, FACS_SIZE);
	buf_add(b, NULL, 24);
	buf_u8(b, 2); /* version */
	buf_add(b, NULL, FACS_SIZE - 33);

	dsdt = table_begin(b, "DSDT", 2); /* revision 2: 64-bit integers */
	boot_dsdt_build(b, p);
	table_end(b, dsdt);

	buf_align(b, 16);
	fadt = b->len;
	add_fadt(b, base + facs, base + dsdt);

	buf_align(b, 16);
	madt = b->len;
	add_madt(b, p->vcpus);

	buf_align(b, 16);
	mcfg = b->len;
	if (p->pci)
		add_mcfg(b);

	xsdt = table_begin(b, "XSDT", 1);
	buf_u64(b, base + fadt);
	buf_u64(b, base + madt);
	if (p->pci)
		buf_u64(b, base + mcfg);
	table_end(b, xsdt);

	if (b->failed)
		return;
	assert(b->len - start <= GPA_ACPI_SIZE);
	memcpy(b->data + start, "RSD PTR ", 8);
	memcpy(b->data + start + 9, "KVMPRF", 6);
	b->data[start + 15] = 2; /* revision */
	buf_put32(b, start + 20, BOOT_RSDP_SIZE);
	buf_put64(b, start + 24, base + xsdt); /* no RSDT at 16: 64-bit guests only */
	b->data[start + 8] = tables_checksum(b->data + start, RSDP_V1_SIZE);
	b->data[start + 32] = tables_checksum(b->data + start, BOOT_RSDP_SIZE);
}
