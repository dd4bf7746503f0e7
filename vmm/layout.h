/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout: the places of everything in the guest's address spaces.
 *
 * It has the guest-physical addresses, I/O ports and interrupt numbers that the loader writes into
 * tables and to which the devices respond. A number in a table that the guest reads (MP, ACPI,
 * e820) is defined here and nowhere else.
 *
 * 	0x000500  GDT (below it: real-mode vectors and BIOS data area, mostly zero)
 * 	0x007000  boot_params, the "zero page"
 * 	0x009000  identity page tables: PML4, PDPT, 4 page directories
 * 	0x010000  setup_data: seed of the random number generator
 * 	0x020000  command line
 * 	0x030000  boot information of multiboot and PVH kernels, and names of modules
 * 	0x09fc00  e820: end of low RAM; "EBDA" and BIOS hole up to 1 MiB
 * 	0x0e0000  ACPI tables
 * 	0x0f0000  Intel MP floating pointer and configuration table
 * 	0x100000  first byte for kernels
 * 	  ...     kernel, then the initrd at the top of RAM below 2 GiB
 * 	3 GiB     PCI hole, IOAPIC, local APIC
 * 	4 GiB     the rest of RAM
 */
#ifndef KVMPROF_VMM_LAYOUT_H
#define KVMPROF_VMM_LAYOUT_H

#include "vmm/image/kernel_range.h"

#include <stdint.h>

#define GPA_PAGE UINT64_C(4096)

/* -- below 1 MiB ---------------------------------------------------------------- */

/* BIOS data area: Linux reads the end of low RAM here before it uses e820. */
#define GPA_BDA_EBDA_SEGMENT UINT64_C(0x40e) /* 16 bit: EBDA address >> 4 */
#define GPA_BDA_LOW_KIB UINT64_C(0x413)	     /* 16 bit: KiB of low RAM */

#define GPA_GDT UINT64_C(0x500)
#define GDT_CODE 0x10u /* selectors that Linux's boot protocols require (boot.rst) */
#define GDT_DATA 0x18u
#define GDT_TSS 0x20u /* 16 bytes; VMX cannot enter a guest without a busy TSS */
#define GDT_ENTRIES 6u

#define GPA_BOOT_PARAMS UINT64_C(0x7000)
#define GPA_PAGE_TABLES UINT64_C(0x9000) /* cr3 of vCPU 0 at its start */
#define BOOT_PAGE_TABLES 6u
#define GPA_SETUP_DATA UINT64_C(0x10000) /* one page: list of setup_data records */
#define GPA_CMDLINE UINT64_C(0x20000)
#define GPA_CMDLINE_SIZE UINT64_C(0x10000) /* including the terminator */

#define GPA_BOOT_INFO UINT64_C(0x30000)
#define GPA_BOOT_INFO_SIZE UINT64_C(0x10000)

#define GPA_LOW_RAM_END UINT64_C(0x9fc00)
#define GPA_ACPI UINT64_C(0xe0000) /* RSDP first */
#define GPA_ACPI_SIZE UINT64_C(0x10000)
#define GPA_MPTABLE UINT64_C(0xf0000) /* Linux and others search 0xf0000..0xfffff */
#define GPA_MPTABLE_SIZE UINT64_C(0x1000)

/* -- above 1 MiB ---------------------------------------------------------------- */

/* initrd_addr_max of the boot protocol if the kernel does not state one. */
#define GPA_INITRD_LAST UINT64_C(0x7fffffff)

/* RAM continues here after the hole that begins at GPA_PCI_HOLE. */
#define GPA_HIGH_RAM UINT64_C(0x100000000)
/*
 * In the hole: BARs, which are assigned here in place of firmware, the configuration space of PCI
 * bus 0 (MCFG), and the virtio-mmio registers, one page each.
 */
#define GPA_PCI_MMIO UINT64_C(0xc0000000)
#define GPA_PCI_MMIO_SIZE UINT64_C(0x10000000)
#define GPA_PCI_ECAM UINT64_C(0xe0000000)
#define GPA_PCI_ECAM_SIZE UINT64_C(0x100000)
#define PCI_ECAM_BUS_SIZE UINT64_C(0x100000)
#define GPA_VIRTIO_MMIO UINT64_C(0xfeb00000)
#define GPA_VIRTIO_MMIO_SIZE UINT64_C(0x1000)
#define GPA_IOAPIC UINT64_C(0xfec00000)
#define GPA_LAPIC UINT64_C(0xfee00000)

/*
 * Areas for KVM_SET_TSS_ADDR (three pages) and KVM_SET_IDENTITY_MAP_ADDR (one): the real-mode
 * emulation of older Intel processors needs them outside of RAM.
 */
#define GPA_KVM_IDENTITY UINT64_C(0xfffbc000)
#define GPA_KVM_TSS UINT64_C(0xfffbd000)

/* -- interrupts ----------------------------------------------------------------- */

/*
 * Global system interrupt = IOAPIC input of the ISA timer (IRQ 0). With 0, KVM's default routing
 * after KVM_CREATE_IRQCHIP applies (GSI n goes to PIC input n and IOAPIC input n), so the VMM needs
 * no KVM_SET_GSI_ROUTING. With 2, the PC convention, the tables would have to announce the override
 * and the VMM would have to route it.
 */
#define IRQ_TIMER 0u
#define GSI_TIMER 0u
#define IRQ_SERIAL 4u
#define IRQ_RTC 8u
#define IRQ_VIRTIO_MMIO 16u /* GSI of the first one; IOAPIC inputs 16 to 23, rising edge */
#define VIRTIO_MMIO_MAX 8u
#define IRQ_SCI 9u /* ACPI; announced, never raised */
#define ISA_IRQS 16u

/* -- I/O ports ------------------------------------------------------------------ */

#define PORT_SERIAL 0x3f8u /* COM1, 8 ports */
/* A write to it ends the run: platform_exit_init(). */
#define PORT_DEBUG_EXIT 0x501u
#define PORT_DEBUG_EXIT_LEN 2u
/* Configuration mechanism 1: address and data, with the reset register 0xcf9 in between. */
#define PORT_PCI_CONFIG 0xcf8u
#define PORT_PCI_CONFIG_LEN 8u
/*
 * Window for BARs in I/O space. Our devices have none, but some guests report an error about a bus
 * without a window.
 */
#define PORT_PCI_WINDOW 0xc000u
#define PORT_PCI_WINDOW_LEN 0x1000u
#define PORT_RTC 0x70u /* index, data */

/*
 * i8042 command port; writing the reset value resets the guest. It is also the ACPI reset register.
 */
#define PORT_I8042_COMMAND 0x64u
#define I8042_RESET 0xfeu

/*
 * ACPI PM1a blocks, adjacent: event (status, enable: 16 bit each) and control. The control register
 * is 16 bit wide and reads as SCI_EN: the machine is always in ACPI mode. A write with SLP_EN set
 * and SLP_TYP 5 is a power off, as the _S5 object in our DSDT declares.
 */
#define PORT_PM1A_EVENT 0x600u
#define PORT_PM1A_EVENT_LEN 4u
#define PORT_PM1A_CONTROL 0x604u
#define PORT_PM1A_CONTROL_LEN 2u
#define PM1_SCI_EN 0x0001u
#define PM1_SLP_TYP(v) (((v) >> 10) & 7u)
#define PM1_SLP_EN 0x2000u
#define PM1_SLP_TYP_S5 5u

#endif
