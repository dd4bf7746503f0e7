/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/boot/load.h"

#include "vmm/image/load_info.h"
#include "vmm/image/parse.h"
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
#define GDT_CODE32_DESC UINT64_C(0x00cf9b000000ffff) /* L=0, D=1 */
#define GDT_TSS_DESC UINT64_C(0x00008b0000000067)    /* busy 64-bit TSS at 0, never used */

#define EBDA_NONE_SEGMENT ((uint16_t)(GPA_LOW_RAM_END >> 4))
#define LOW_KIB ((uint16_t)(GPA_LOW_RAM_END >> 10))

static uint64_t align_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

/* Everything but the tables and the kernel fits by construction of layout.h. */
int boot_put(const struct gmem *m, uint64_t gpa, const void *src, size_t len, const char *what,
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
		return boot_put(m, gpa, src, len, "kernel", e);
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

	if ((way != BOOT_WAY_BZIMAGE && way != BOOT_WAY_LINUX32) || img->kind == BOOT_ELF32)
		return load_segments(m, img, out, e);
	r = boot_bzimage_place(img, way, m->region[0].gpa + m->region[0].size, out, e);
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
	return boot_put(m, *gpa, cfg->initrd, cfg->initrd_len, "initrd", e);
}

/* By convention the first word of a multiboot kernel's command line is its own name. */
static int load_cmdline(const struct gmem *m, const struct boot_image *img,
			const struct boot_config *cfg, struct err *e)
{
	bool named = cfg->way == BOOT_WAY_MULTIBOOT && cfg->name;
	size_t name = named ? strlen(cfg->name) + 1 : 0, len = strlen(cfg->cmdline);
	size_t max = img->cmdline_max < GPA_CMDLINE_SIZE ? img->cmdline_max : GPA_CMDLINE_SIZE - 1;
	int r;

	if (name > GPA_CMDLINE_SIZE / 2)
		name = 0;
	if (name + len > max)
		return err_set(e, EFBIG,
			       "the kernel command line has %zu bytes, this kernel accepts %zu; "
			       "shorten it",
			       name + len, max);
	r = name ? boot_put(m, GPA_CMDLINE, cfg->name, name - 1, "command line", e) : 0;
	if (!r && name)
		r = boot_put(m, GPA_CMDLINE + name - 1, " ", 1, "command line", e);
	return r ? r : boot_put(m, GPA_CMDLINE + name, cfg->cmdline, len + 1, "command line", e);
}

/* PML4 -> PDPT -> 4 page directories of 2 MiB pages: the low 4 GiB, address = address. */
static int load_page_tables(const struct gmem *m, struct err *e)
{
	uint64_t page[PTES_PER_PAGE] = { GPA_PAGE_TABLES + GPA_PAGE + PTE_PRESENT_WRITE };
	uint64_t at = GPA_PAGE_TABLES;
	int r = boot_put(m, at, page, sizeof(page), "page tables", e);

	memset(page, 0, sizeof(page));
	for (unsigned int i = 0; i < BOOT_PAGE_TABLES - 2; i++)
		page[i] = at + (2 + i) * GPA_PAGE + PTE_PRESENT_WRITE;
	if (!r)
		r = boot_put(m, at + GPA_PAGE, page, sizeof(page), "page tables", e);
	for (unsigned int i = 0; !r && i < BOOT_PAGE_TABLES - 2; i++) {
		for (uint64_t k = 0; k < PTES_PER_PAGE; k++)
			page[k] = (i * PTES_PER_PAGE + k) * 2 * GPA_MIB + PDE_LARGE +
				  PTE_PRESENT_WRITE;
		r = boot_put(m, at + (2 + i) * GPA_PAGE, page, sizeof(page), "page tables", e);
	}
	return r;
}

static int load_low(const struct gmem *m, enum boot_mode mode, struct err *e)
{
	const uint64_t gdt[GDT_ENTRIES] = {
		[GDT_CODE / 8] = mode == BOOT_MODE_LONG ? GDT_CODE64_DESC : GDT_CODE32_DESC,
		[GDT_DATA / 8] = GDT_DATA_DESC,
		[GDT_TSS / 8] = GDT_TSS_DESC,
	};
	static const uint16_t ebda = EBDA_NONE_SEGMENT, kib = LOW_KIB;
	int r = boot_put(m, GPA_GDT, gdt, sizeof(gdt), "GDT", e);

	if (!r)
		r = boot_put(m, GPA_BDA_EBDA_SEGMENT, &ebda, sizeof(ebda), "BIOS data area", e);
	if (!r)
		r = boot_put(m, GPA_BDA_LOW_KIB, &kib, sizeof(kib), "BIOS data area", e);
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
		r = boot_put(m, GPA_MPTABLE, b.data, b.len, "MP table", e);
	if (!r) {
		b.len = 0;
		boot_acpi_build(&b, &platform);
		r = b.failed ? -ENOMEM : boot_put(m, GPA_ACPI, b.data, b.len, "ACPI tables", e);
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
	return boot_put(m, GPA_SETUP_DATA, record, sizeof(record), "setup_data", e);
}

/* What Linux and its likes are told: boot_params. */
static int load_params(const struct gmem *m, const struct boot_image *img,
		       const struct boot_config *cfg, const struct boot_place *place, struct err *e)
{
	struct boot_params_info info = { .ram_size = gmem_size(m) };
	uint8_t page[BOOT_PARAMS_SIZE];
	int r = 0;

	if (cfg->initrd && cfg->initrd_len) {
		info.initrd_len = cfg->initrd_len;
		r = load_initrd(m, img, cfg, place->end, &info.initrd_gpa, e);
	}
	if (!r && cfg->rng_seed && img->is_linux) {
		info.setup_data_gpa = GPA_SETUP_DATA;
		r = load_seed(m, cfg->rng_seed, e);
	}
	if (r)
		return r;
	if (cfg->way == BOOT_WAY_BZIMAGE || cfg->way == BOOT_WAY_LINUX32)
		info.code32_start = (uint32_t)place->gpa;
	boot_params_build(page, img, &info);
	return boot_put(m, GPA_BOOT_PARAMS, page, sizeof(page), "boot_params", e);
}

static bool takes_modules(enum boot_way way)
{
	return way == BOOT_WAY_MULTIBOOT || way == BOOT_WAY_PVH;
}

/* What depends on the user's choices alone: these are the errors worth reading. */
static int check_config(const struct boot_image *img, const struct boot_config *cfg, struct err *e)
{
	if (!cfg->vcpus || cfg->vcpus > VM_MAX_VCPUS)
		return err_set(e, EINVAL, "%u vCPUs asked for (expected 1 to %u)", cfg->vcpus,
			       VM_MAX_VCPUS);
	if (cfg->way == BOOT_WAY_LINUX16)
		return err_set(e, ENOTSUP,
			       "this program begins in real mode and asks a BIOS for all that it "
			       "does; there is none here");
	if (cfg->nmodules && !takes_modules(cfg->way))
		return err_set(e, EINVAL,
			       "modules are for multiboot and PVH kernels; a kernel entered by "
			       "--boot=%s takes an --initrd only",
			       boot_way_name(cfg->way));
	if (cfg->entry && (cfg->way != BOOT_WAY_VMLINUX || !boot_elf64_holds(img, cfg->entry)))
		return err_set(e, EINVAL,
			       "the entry 0x%" PRIx64
			       " is for a kernel that is entered directly (--boot=vmlinux), at a "
			       "physical address of one of its segments (0x%" PRIx64
			       " to 0x%" PRIx64 ")",
			       cfg->entry, img->low, img->high);
	return 0;
}

int boot_load(const struct gmem *m, const struct boot_image *img, const struct boot_config *cfg,
	      struct boot_entry *out, struct err *e)
{
	struct boot_entry entry = { .gdt_base = GPA_GDT, .gdt_limit = GDT_ENTRIES * 8 - 1 };
	struct boot_place place;
	int r = check_config(img, cfg, e);

	r = r ? r : load_kernel(m, img, cfg->way, &place, e);
	r = r ? r : load_cmdline(m, img, cfg, e);
	if (r)
		return r;
	entry.rip = cfg->entry ? cfg->entry : place.entry;
	entry.low = place.gpa;
	entry.high = place.end;
	if (takes_modules(cfg->way)) {
		r = boot_load_info(m, img, cfg, place.end, &entry, e);
	} else {
		r = load_params(m, img, cfg, &place, e);
		entry.rsi = GPA_BOOT_PARAMS;
		if (cfg->way == BOOT_WAY_LINUX32)
			entry.mode = BOOT_MODE_FLAT32;
	}
	if (entry.mode == BOOT_MODE_LONG)
		entry.cr3 = GPA_PAGE_TABLES;
	r = r ? r : load_low(m, entry.mode, e);
	r = r ? r : load_tables(m, cfg, e);
	if (!r)
		*out = entry;
	return r;
}
