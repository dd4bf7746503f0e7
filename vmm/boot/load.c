/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/boot/load.h"

#include "vmm/boot/parse.h"
#include "vmm/boot/tables.h"
#include "vmm/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* The processor sees each of these once; names and bits: SDM vol. 3, 4.5 and 3.4.5. */
#define PTE_PRESENT_WRITE 0x3u
#define PDE_LARGE 0x80u
#define PTES_PER_PAGE 512u

/* Type, S=1, DPL 0, P=1, G=1; accessed, so that the processor never writes the GDT. */
#define GDT_CODE64_DESC UINT64_C(0x00af9b000000ffff) /* L=1, D=0 */
#define GDT_DATA_DESC UINT64_C(0x00cf93000000ffff)   /* D/B=1 */
#define GDT_TSS_DESC UINT64_C(0x00008b0000000067)    /* busy 64-bit TSS at 0, never used */

#define EBDA_NONE_SEGMENT ((uint16_t)(GPA_LOW_RAM_END >> 4))
#define LOW_KIB ((uint16_t)(GPA_LOW_RAM_END >> 10))

static uint64_t align_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

/* Everything but the tables and the kernel fits by construction of layout.h. */
static int put(const struct gmem *m, uint64_t gpa, const void *src, size_t len, const char *what,
	       struct err *e)
{
	if (gmem_write(m, gpa, src, len))
		return err_set(e, ENOMEM,
			       "the %s at guest address 0x%" PRIx64
			       " (%zu bytes) does not fit into "
			       "%" PRIu64 " MiB of guest memory",
			       what, gpa, len, gmem_size(m) / GPA_MIB);
	return 0;
}

/*
 * First byte behind what the kernel needs before it knows its memory map: its
 * segments with bss, and init_size from the setup header, which also covers the
 * early page tables (.brk) of kernels where they lie behind the image.
 */
static uint64_t kernel_end(const struct boot_image *img)
{
	uint64_t init = img->low + boot_setup_field(img, SETUP_INIT_SIZE, 4);

	return init > img->high ? init : img->high;
}

/*
 * Copy, but leave pages alone that are to become zero: guest RAM is fresh, and
 * vmlinux has megabytes of bss in its file where per-CPU data follow it. Each
 * page not touched is a page fault less and stays out of our resident set.
 */
static int put_sparse(const struct gmem *m, uint64_t gpa, const uint8_t *src, size_t len,
		      struct err *e)
{
	static const uint8_t zero[GPA_PAGE];
	uint8_t *to = gmem_ptr(m, gpa, len);
	size_t n;

	if (!to)
		return put(m, gpa, src, len, "kernel", e);
	for (size_t done = 0; done < len; done += n) {
		n = GPA_PAGE - ((gpa + done) & (GPA_PAGE - 1));
		if (n > len - done)
			n = len - done;
		if (memcmp(src + done, zero, n))
			memcpy(to + done, src + done, n);
	}
	return 0;
}

static int load_segments(const struct gmem *m, const struct boot_image *img, struct boot_place *out,
			 struct err *e)
{
	uint64_t end = kernel_end(img);

	*out = (struct boot_place){ .gpa = img->low, .end = end, .entry = img->entry };
	if (img->low < GPA_KERNEL_MIN)
		return err_set(e, EINVAL,
			       "the kernel has a segment at guest address 0x%" PRIx64
			       " (expected 0x%" PRIx64 " or more: boot tables are below); link it "
			       "higher",
			       img->low, GPA_KERNEL_MIN);
	if (!gmem_ptr(m, img->low, end - img->low))
		return err_set(e, ENOMEM,
			       "the kernel needs guest memory from 0x%" PRIx64 " to 0x%" PRIx64
			       ", but there are %" PRIu64 " MiB; give at least %" PRIu64 " MiB",
			       img->low, end, gmem_size(m) / GPA_MIB,
			       align_up(end, GPA_MIB) / GPA_MIB);
	for (unsigned int i = 0; i < img->nseg; i++) {
		const struct boot_segment *s = &img->seg[i];
		int r = s->file_len ? put_sparse(m, s->gpa, img->elf + s->file_off, s->file_len, e)
				    : 0;

		if (r)
			return r;
	}
	return 0;
}

static int load_kernel(const struct gmem *m, const struct boot_image *img, enum boot_way way,
		       struct boot_place *out, struct err *e)
{
	int r;

	if (way == BOOT_WAY_VMLINUX)
		return load_segments(m, img, out, e);
	r = boot_bzimage_place(img, m->region[0].gpa + m->region[0].size, out, e);
	return r ? r : put_sparse(m, out->gpa, img->pm, img->pm_len, e);
}

/* At the top of what the kernel can reach early, so that it is out of everybody's way. */
static int load_initrd(const struct gmem *m, const struct boot_image *img,
		       const struct boot_config *cfg, uint64_t kernel_end_gpa, uint64_t *gpa,
		       struct err *e)
{
	uint64_t top = m->region[0].gpa + m->region[0].size;
	uint64_t last = boot_setup_field(img, SETUP_INITRD_ADDR_MAX, 4);
	uint64_t end = align_up(kernel_end_gpa, GPA_PAGE);

	if (!last)
		last = GPA_INITRD_LAST;
	if (top > last + 1)
		top = last + 1;
	if (cfg->initrd_len > top || (top - cfg->initrd_len) / GPA_PAGE * GPA_PAGE < end) {
		uint64_t need = align_up(end + align_up(cfg->initrd_len, GPA_PAGE), GPA_MIB);

		if (cfg->initrd_len > last || need > last + 1)
			return err_set(
				e, ENOMEM,
				"the initrd of %zu MiB does not fit between the kernel (ends "
				"at %" PRIu64 " MiB) and the highest address that this kernel "
				"takes it from (0x%" PRIx64 "); use a smaller initrd",
				cfg->initrd_len >> 20, end / GPA_MIB, last);
		return err_set(
			e, ENOMEM,
			"the initrd of %zu KiB does not fit behind the kernel (ends at %" PRIu64
			" KiB) in %" PRIu64 " MiB of guest memory; give at least %" PRIu64 " MiB",
			cfg->initrd_len >> 10, end >> 10, gmem_size(m) / GPA_MIB, need / GPA_MIB);
	}
	*gpa = (top - cfg->initrd_len) / GPA_PAGE * GPA_PAGE;
	return put(m, *gpa, cfg->initrd, cfg->initrd_len, "initrd", e);
}

static int load_cmdline(const struct gmem *m, const struct boot_image *img, const char *cmdline,
			struct err *e)
{
	size_t len = strlen(cmdline);
	size_t max = img->cmdline_max < GPA_CMDLINE_SIZE ? img->cmdline_max : GPA_CMDLINE_SIZE - 1;

	if (len > max)
		return err_set(e, EFBIG,
			       "the kernel command line has %zu bytes, this kernel accepts %zu; "
			       "shorten it",
			       len, max);
	return put(m, GPA_CMDLINE, cmdline, len + 1, "command line", e);
}

/* PML4 -> PDPT -> 4 page directories of 2 MiB pages: the low 4 GiB, address = address. */
static int load_page_tables(const struct gmem *m, struct err *e)
{
	uint64_t page[PTES_PER_PAGE] = { GPA_PAGE_TABLES + GPA_PAGE + PTE_PRESENT_WRITE };
	uint64_t at = GPA_PAGE_TABLES;
	int r = put(m, at, page, sizeof(page), "page tables", e);

	memset(page, 0, sizeof(page));
	for (unsigned int i = 0; i < BOOT_PAGE_TABLES - 2; i++)
		page[i] = at + (2 + i) * GPA_PAGE + PTE_PRESENT_WRITE;
	if (!r)
		r = put(m, at + GPA_PAGE, page, sizeof(page), "page tables", e);
	for (unsigned int i = 0; !r && i < BOOT_PAGE_TABLES - 2; i++) {
		for (uint64_t k = 0; k < PTES_PER_PAGE; k++)
			page[k] = (i * PTES_PER_PAGE + k) * 2 * GPA_MIB + PDE_LARGE +
				  PTE_PRESENT_WRITE;
		r = put(m, at + (2 + i) * GPA_PAGE, page, sizeof(page), "page tables", e);
	}
	return r;
}

static int load_low(const struct gmem *m, struct err *e)
{
	static const uint64_t gdt[GDT_ENTRIES] = {
		[GDT_CODE64 / 8] = GDT_CODE64_DESC,
		[GDT_DATA / 8] = GDT_DATA_DESC,
		[GDT_TSS / 8] = GDT_TSS_DESC,
	};
	static const uint16_t ebda = EBDA_NONE_SEGMENT, kib = LOW_KIB;
	int r = put(m, GPA_GDT, gdt, sizeof(gdt), "GDT", e);

	if (!r)
		r = put(m, GPA_BDA_EBDA_SEGMENT, &ebda, sizeof(ebda), "BIOS data area", e);
	if (!r)
		r = put(m, GPA_BDA_LOW_KIB, &kib, sizeof(kib), "BIOS data area", e);
	return r ? r : load_page_tables(m, e);
}

static int load_tables(const struct gmem *m, const struct boot_config *cfg, struct err *e)
{
	struct boot_platform platform = { cfg->vcpus, cfg->pci, cfg->virtio_mmio };
	struct buf b;
	int r = -ENOMEM;

	buf_init(&b);
	boot_mptable_build(&b, &platform);
	if (!b.failed)
		r = put(m, GPA_MPTABLE, b.data, b.len, "MP table", e);
	if (!r) {
		b.len = 0;
		boot_acpi_build(&b, &platform);
		r = b.failed ? -ENOMEM : put(m, GPA_ACPI, b.data, b.len, "ACPI tables", e);
	}
	if (b.failed)
		err_set(e, ENOMEM, "no memory to build the guest's MP and ACPI tables");
	buf_deinit(&b);
	return r;
}

/*
 * One setup_data record (boot.rst, "setup_data"; SETUP_RNG_SEED since Linux 6.0,
 * arch/x86/include/uapi/asm/bootparam.h). The kernel wipes the seed once it is used.
 */
static int load_seed(const struct gmem *m, const uint8_t *seed, struct err *e)
{
	uint8_t record[16 + BOOT_RNG_SEED] = { 0 }; /* next (8), type (4), len (4), data */
	const uint32_t type = 9, len = BOOT_RNG_SEED;

	memcpy(record + 8, &type, sizeof(type));
	memcpy(record + 12, &len, sizeof(len));
	memcpy(record + 16, seed, BOOT_RNG_SEED);
	return put(m, GPA_SETUP_DATA, record, sizeof(record), "setup_data", e);
}

int boot_load(const struct gmem *m, const struct boot_image *img, const struct boot_config *cfg,
	      struct boot_entry *out, struct err *e)
{
	struct boot_params_info info = { .ram_size = gmem_size(m) };
	uint8_t page[BOOT_PARAMS_SIZE];
	struct boot_place place;
	int r;

	if (!cfg->vcpus || cfg->vcpus > VM_MAX_VCPUS)
		return err_set(e, EINVAL, "%u vCPUs asked for (expected 1 to %u)", cfg->vcpus,
			       VM_MAX_VCPUS);

	/* First what depends on the user's choices: these are the errors worth reading. */
	r = load_kernel(m, img, cfg->way, &place, e);
	if (!r)
		r = load_cmdline(m, img, cfg->cmdline, e);
	if (!r && cfg->initrd && cfg->initrd_len) {
		info.initrd_len = cfg->initrd_len;
		r = load_initrd(m, img, cfg, place.end, &info.initrd_gpa, e);
	}
	if (!r && cfg->rng_seed && img->is_linux) {
		info.setup_data_gpa = GPA_SETUP_DATA;
		r = load_seed(m, cfg->rng_seed, e);
	}
	if (!r)
		r = load_low(m, e);
	if (!r)
		r = load_tables(m, cfg, e);
	if (!r) {
		if (cfg->way == BOOT_WAY_BZIMAGE)
			info.code32_start = (uint32_t)place.gpa;
		boot_params_build(page, img, &info);
		r = put(m, GPA_BOOT_PARAMS, page, sizeof(page), "boot_params", e);
	}
	if (r)
		return r;

	*out = (struct boot_entry){
		.rip = place.entry,
		.rsi = GPA_BOOT_PARAMS,
		.cr3 = GPA_PAGE_TABLES,
		.low = place.gpa,
		.high = place.end,
		.gdt_base = GPA_GDT,
		.gdt_limit = GDT_ENTRIES * 8 - 1,
	};
	return 0;
}
