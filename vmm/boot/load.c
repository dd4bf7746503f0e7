/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/boot/load.h"

#include "base/buf.h"
#include "vmm/image/parse.h"
#include "vmm/boot/acpi.h"
#include "vmm/boot/bootparams.h"
#include "vmm/boot/mptable.h"
#include "vmm/layout.h"
#include "vmm/image/image.h"
#include "vmm/image/protocol.h"
#include "base/sample.h"
#include "vmm/image/elf64.h"
#include "base/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Page-table bits and names: SDM vol. 3, 4.5 and 3.4.5. */
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

/*
 * The information for multiboot and PVH kernels is one block at GPA_BOOT_INFO; pointers are
 * guest-physical:
 *
 * 	multiboot := info[88] mmap* module* text*
 * 	multiboot2 := total_size:4 0:4 tag* end
 * 	tag       := type:4 size:4 ... padding to 8
 * 	pvh       := start_info[56] memmap* module* text*
 *
 * Multiboot Specification 0.6.96, 3.3; Multiboot2 Specification 2.0, 3.6; Xen's
 * public/arch-x86/hvm/start_info.h, version 1.
 */
#define MB_BOOT_MAGIC 0x2badb002u /* in eax */
#define MB_INFO_SIZE 88u	  /* up to the end of vbe_interface_len */
#define MB_FLAGS 0u
#define MB_MEM_LOWER 4u
#define MB_MEM_UPPER 8u
#define MB_CMDLINE 16u
#define MB_MODS_COUNT 20u
#define MB_MODS_ADDR 24u
#define MB_MMAP_LENGTH 44u
#define MB_MMAP_ADDR 48u
#define MB_LOADER_NAME 64u
#define MB_HAVE (1u << 0 | 1u << 2 | 1u << 3 | 1u << 6 | 1u << 9) /* the fields above */
#define MB_MMAP_ENTRY 20u /* without the size field itself */

#define MB2_BOOT_MAGIC 0x36d76289u /* in eax */
#define MB2_CMDLINE 1u
#define MB2_LOADER_NAME 2u
#define MB2_MODULE 3u
#define MB2_MEMORY 4u
#define MB2_MMAP 6u
#define MB2_MMAP_ENTRY 24u
#define MB2_RSDP_NEW 15u
#define MB2_LOAD_BASE 21u

#define PVH_MAGIC 0x336ec578u
#define PVH_VERSION 1u
#define PVH_INFO_SIZE 56u
#define PVH_NR_MODULES 12u
#define PVH_MODLIST 16u
#define PVH_CMDLINE 24u
#define PVH_RSDP 32u
#define PVH_MEMMAP 40u
#define PVH_MEMMAP_ENTRIES 48u

#define LOADER_NAME "kvmprof"

/*
 * Writes to guest memory. Returns 0, or -ENOMEM with a message that states what did not fit where.
 */
static int boot_put(const struct gmem *m, uint64_t gpa, const void *src, size_t len,
		    const char *what, struct err *e)
{
	if (gmem_write(m, gpa, src, len))
		return err_set(e, ENOMEM,
			       "the %s at guest address 0x%" PRIx64
			       " (%zu bytes) does not fit into "
			       "%" PRIu64 " MiB of guest memory",
			       what, gpa, len, gmem_size(m) / GPA_MIB);
	return 0;
}

struct load_placed {
	uint64_t gpa;
	size_t len;
	const char *name, *args;
};

struct info {
	struct buf b;
	struct load_placed module[BOOT_MAX_MODULES + 1];
	unsigned int nmodules;
	struct boot_range map[BOOT_MAX_RANGES];
	unsigned int nmap;
	enum boot_protocol way;
};

static int place_module(struct info *in, const struct gmem *m, const struct boot_module *mod,
			uint64_t *at, struct err *e)
{
	uint64_t gpa = (*at + GPA_PAGE - 1) / GPA_PAGE * GPA_PAGE;

	if (mod->len && !gmem_ptr(m, gpa, mod->len))
		return err_set(e, ENOMEM,
			       "module %s of %zu KiB does not fit into guest memory behind the "
			       "kernel, from 0x%" PRIx64 " on, with %" PRIu64
			       " MiB; give more memory",
			       mod->name, mod->len >> 10, gpa, gmem_size(m) / GPA_MIB);
	*at = gpa + mod->len;
	in->module[in->nmodules++] = (struct load_placed){ gpa, mod->len, mod->name, mod->args };
	return boot_put(m, gpa, mod->data, mod->len, "module", e);
}

static int place_modules(struct info *in, const struct gmem *m, const struct boot_config *cfg,
			 uint64_t at, struct err *e)
{
	struct boot_module initrd = { cfg->initrd, cfg->initrd_len, "initrd", "" };
	int r = 0;

	if (cfg->initrd && cfg->initrd_len)
		r = place_module(in, m, &initrd, &at, e);
	for (unsigned int i = 0; !r && i < cfg->nmodules; i++)
		r = place_module(in, m, &cfg->module[i], &at, e);
	return r;
}

static uint32_t here(const struct info *in)
{
	return (uint32_t)(GPA_BOOT_INFO + in->b.len);
}

/*
 * Appends the text of a module, which begins with its name for multiboot, and returns its address.
 */
static uint32_t add_text(struct info *in, const char *name, const char *args)
{
	uint32_t at = here(in);

	if (in->way == BOOT_PROTOCOL_PVH)
		name = NULL;
	buf_printf(&in->b, "%s%s%s", name ? name : "", name && *args ? " " : "", args);
	buf_u8(&in->b, 0);
	return at;
}

static void build_multiboot(struct info *in)
{
	uint32_t map, mods, name;

	buf_add(&in->b, NULL, MB_INFO_SIZE);
	map = here(in);
	for (unsigned int i = 0; i < in->nmap; i++) {
		buf_u32(&in->b, MB_MMAP_ENTRY);
		buf_u64(&in->b, in->map[i].gpa);
		buf_u64(&in->b, in->map[i].len);
		buf_u32(&in->b, in->map[i].type);
	}
	mods = here(in);
	buf_add(&in->b, NULL, in->nmodules * 16);
	for (unsigned int i = 0; i < in->nmodules; i++) {
		const struct load_placed *p = &in->module[i];
		uint32_t text = add_text(in, p->name, p->args);
		size_t at = mods - GPA_BOOT_INFO + i * 16;

		if (in->b.failed)
			return;
		buf_put32(&in->b, at, (uint32_t)p->gpa);
		buf_put32(&in->b, at + 4, (uint32_t)(p->gpa + p->len));
		buf_put32(&in->b, at + 8, text);
	}
	name = here(in);
	buf_add(&in->b, LOADER_NAME, sizeof(LOADER_NAME));
	if (in->b.failed)
		return;
	buf_put32(&in->b, MB_FLAGS, MB_HAVE);
	buf_put32(&in->b, MB_MEM_LOWER, (uint32_t)(GPA_LOW_RAM_END >> 10));
	for (unsigned int i = 0; i < in->nmap; i++)
		if (in->map[i].gpa == GPA_KERNEL_MIN)
			buf_put32(&in->b, MB_MEM_UPPER, (uint32_t)(in->map[i].len >> 10));
	buf_put32(&in->b, MB_CMDLINE, (uint32_t)GPA_CMDLINE);
	buf_put32(&in->b, MB_MODS_COUNT, in->nmodules);
	buf_put32(&in->b, MB_MODS_ADDR, mods);
	buf_put32(&in->b, MB_MMAP_LENGTH, in->nmap * (MB_MMAP_ENTRY + 4));
	buf_put32(&in->b, MB_MMAP_ADDR, map);
	buf_put32(&in->b, MB_LOADER_NAME, name);
}

/* Stores the size of the tag that began at `at`; the next one begins at a multiple of 8. */
static void end_tag(struct buf *b, size_t at)
{
	if (!b->failed)
		buf_put32(b, at + 4, (uint32_t)(b->len - at));
	buf_align(b, 8);
}

static size_t begin_tag(struct buf *b, uint32_t type)
{
	size_t at = b->len;

	buf_u32(b, type);
	buf_u32(b, 0);
	return at;
}

static void add_text_tag(struct buf *b, uint32_t type, const char *text)
{
	size_t at = begin_tag(b, type);

	buf_add(b, text, strlen(text) + 1);
	end_tag(b, at);
}

static void add_multiboot2_memory(struct info *in)
{
	size_t at = begin_tag(&in->b, MB2_MEMORY);

	buf_u32(&in->b, (uint32_t)(GPA_LOW_RAM_END >> 10));
	for (unsigned int i = 0; i < in->nmap; i++)
		if (in->map[i].gpa == GPA_KERNEL_MIN)
			buf_u32(&in->b, (uint32_t)(in->map[i].len >> 10));
	end_tag(&in->b, at);
	at = begin_tag(&in->b, MB2_MMAP);
	buf_u32(&in->b, MB2_MMAP_ENTRY);
	buf_u32(&in->b, 0); /* version of the entries */
	for (unsigned int i = 0; i < in->nmap; i++) {
		buf_u64(&in->b, in->map[i].gpa);
		buf_u64(&in->b, in->map[i].len);
		buf_u32(&in->b, in->map[i].type);
		buf_u32(&in->b, 0);
	}
	end_tag(&in->b, at);
}

/* Builds the tags. The ACPI tables are in guest memory already; the RSDP is passed as a copy. */
static void build_multiboot2(struct info *in, const struct gmem *m, const struct boot_config *cfg,
			     uint64_t base)
{
	uint8_t rsdp[BOOT_RSDP_SIZE] = { 0 };
	size_t at;

	buf_u64(&in->b, 0); /* total_size, reserved */
	add_text_tag(&in->b, MB2_CMDLINE, cfg->cmdline);
	add_text_tag(&in->b, MB2_LOADER_NAME, LOADER_NAME);
	for (unsigned int i = 0; i < in->nmodules; i++) {
		const struct load_placed *p = &in->module[i];

		at = begin_tag(&in->b, MB2_MODULE);
		buf_u32(&in->b, (uint32_t)p->gpa);
		buf_u32(&in->b, (uint32_t)(p->gpa + p->len));
		buf_add(&in->b, p->args, strlen(p->args) + 1);
		end_tag(&in->b, at);
	}
	add_multiboot2_memory(in);
	if (gmem_read(m, GPA_ACPI, rsdp, sizeof(rsdp)) == 0) {
		at = begin_tag(&in->b, MB2_RSDP_NEW);
		buf_add(&in->b, rsdp, sizeof(rsdp));
		end_tag(&in->b, at);
	}
	at = begin_tag(&in->b, MB2_LOAD_BASE);
	buf_u32(&in->b, (uint32_t)base);
	end_tag(&in->b, at);
	end_tag(&in->b, begin_tag(&in->b, 0));
	if (!in->b.failed)
		buf_put32(&in->b, 0, (uint32_t)in->b.len);
}

static void build_pvh(struct info *in)
{
	uint32_t map, mods;

	buf_add(&in->b, NULL, PVH_INFO_SIZE);
	map = here(in);
	for (unsigned int i = 0; i < in->nmap; i++) {
		buf_u64(&in->b, in->map[i].gpa);
		buf_u64(&in->b, in->map[i].len);
		buf_u32(&in->b, in->map[i].type);
		buf_u32(&in->b, 0);
	}
	mods = here(in);
	buf_add(&in->b, NULL, in->nmodules * 32);
	for (unsigned int i = 0; i < in->nmodules; i++) {
		const struct load_placed *p = &in->module[i];
		uint32_t text = add_text(in, p->name, p->args);
		size_t at = mods - GPA_BOOT_INFO + i * 32;

		if (in->b.failed)
			return;
		buf_put64(&in->b, at, p->gpa);
		buf_put64(&in->b, at + 8, p->len);
		buf_put64(&in->b, at + 16, text);
	}
	if (in->b.failed)
		return;
	buf_put32(&in->b, 0, PVH_MAGIC);
	buf_put32(&in->b, 4, PVH_VERSION);
	buf_put32(&in->b, PVH_NR_MODULES, in->nmodules);
	buf_put64(&in->b, PVH_MODLIST, in->nmodules ? mods : 0);
	buf_put64(&in->b, PVH_CMDLINE, GPA_CMDLINE);
	buf_put64(&in->b, PVH_RSDP, GPA_ACPI);
	buf_put64(&in->b, PVH_MEMMAP, map);
	buf_put32(&in->b, PVH_MEMMAP_ENTRIES, in->nmap);
}

/*
 * Writes the modules (the initrd first) from the page after kernel_end on, their list, the memory
 * map and the structure of the boot protocol, and sets mode and registers of *entry. Returns 0;
 * -ENOMEM if the modules do not fit into RAM; -EFBIG if their texts are too long.
 */
static int boot_load_info(const struct gmem *m, const struct boot_image *img,
			  const struct boot_config *cfg, uint64_t kernel_end,
			  struct boot_entry *entry, struct err *e)
{
	struct info in = { .way = cfg->way };
	int r;

	if (cfg->nmodules > BOOT_MAX_MODULES)
		return err_set(e, EINVAL, "%u modules (expected at most %d)", cfg->nmodules,
			       BOOT_MAX_MODULES);
	in.nmap = boot_memory_map(gmem_size(m), in.map);
	r = place_modules(&in, m, cfg, kernel_end, e);
	if (r)
		return r;
	buf_init(&in.b);
	if (in.way == BOOT_PROTOCOL_PVH)
		build_pvh(&in);
	else if (in.way == BOOT_PROTOCOL_MULTIBOOT2)
		build_multiboot2(&in, m, cfg, img->low);
	else
		build_multiboot(&in);
	if (in.b.failed)
		r = err_set(e, ENOMEM, "no memory for the kernel's boot information");
	else if (in.b.len > GPA_BOOT_INFO_SIZE)
		r = err_set(e, EFBIG,
			    "the texts of the modules are too long (%zu bytes with the boot "
			    "information, expected at most %" PRIu64 ")",
			    in.b.len, GPA_BOOT_INFO_SIZE);
	else
		r = boot_put(m, GPA_BOOT_INFO, in.b.data, in.b.len, "boot information", e);
	buf_deinit(&in.b);
	entry->mode = BOOT_MODE_FLAT32;
	entry->rbx = GPA_BOOT_INFO;
	if (in.way == BOOT_PROTOCOL_PVH) {
		entry->rip = img->pvh_entry;
	} else if (in.way == BOOT_PROTOCOL_MULTIBOOT2) {
		entry->rax = MB2_BOOT_MAGIC;
		entry->rip = img->mb2_entry;
	} else {
		entry->rax = MB_BOOT_MAGIC;
		entry->rip = img->mb_entry;
	}
	return r;
}

/* -- the kernel, and the common part of all boot protocols ------------------------------------ */

static uint64_t align_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

/*
 * Returns the first byte after the memory that the kernel needs before it knows its memory map: its
 * segments with bss, and init_size of the setup header, which also covers the early page tables
 * (.brk) of kernels that have them after the image. Everything except tables and kernel fits by
 * construction of layout.h.
 */
static uint64_t kernel_end(const struct boot_image *img)
{
	uint64_t init = img->low + parse_setup_field(img, SETUP_INIT_SIZE, 4);

	return init > img->high ? init : img->high;
}

/*
 * Copies, but does not touch pages that are to be zero: guest RAM is fresh, and vmlinux has
 * megabytes of bss in its file where per-CPU data follow it. Each untouched page saves a page fault
 * and does not become resident.
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

static int load_kernel(const struct gmem *m, const struct boot_image *img, enum boot_protocol way,
		       struct boot_place *out, struct err *e)
{
	int r;

	if ((way != BOOT_PROTOCOL_BZIMAGE && way != BOOT_PROTOCOL_LINUX32) ||
	    img->kind == BOOT_ELF32)
		return load_segments(m, img, out, e);
	r = protocol_bzimage_place(img, way, m->region[0].gpa + m->region[0].size, out, e);
	return r ? r : put_sparse(m, out->gpa, img->pm, img->pm_len, e);
}

/*
 * Places the initrd at the top of the memory that the kernel can reach early, where nothing else
 * needs the memory.
 */
static int load_initrd(const struct gmem *m, const struct boot_image *img,
		       const struct boot_config *cfg, uint64_t kernel_end_gpa, uint64_t *gpa,
		       struct err *e)
{
	uint64_t top = m->region[0].gpa + m->region[0].size;
	uint64_t last = parse_setup_field(img, SETUP_INITRD_ADDR_MAX, 4);
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

/*
 * Writes the command line. By convention the first word of a multiboot kernel's command line is its
 * own name.
 */
static int load_cmdline(const struct gmem *m, const struct boot_image *img,
			const struct boot_config *cfg, struct err *e)
{
	bool named = cfg->way == BOOT_PROTOCOL_MULTIBOOT && cfg->name;
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

/* Writes PML4 -> PDPT -> 4 page directories of 2 MiB pages, which map the low 4 GiB one to one. */
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
 * Writes one setup_data record (boot.rst, "setup_data"; SETUP_RNG_SEED since Linux 6.0,
 * arch/x86/include/uapi/asm/bootparam.h). The kernel wipes the seed after using it.
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

/* Writes boot_params for Linux and similar kernels. */
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
	if (cfg->way == BOOT_PROTOCOL_BZIMAGE || cfg->way == BOOT_PROTOCOL_LINUX32)
		info.code32_start = (uint32_t)place->gpa;
	boot_params_build(page, img, &info);
	return boot_put(m, GPA_BOOT_PARAMS, page, sizeof(page), "boot_params", e);
}

static bool takes_modules(enum boot_protocol way)
{
	return way == BOOT_PROTOCOL_MULTIBOOT || way == BOOT_PROTOCOL_PVH ||
	       way == BOOT_PROTOCOL_MULTIBOOT2;
}

/* Returns the physical address that cfg->entry means (it may be a link-time address), or 0. */
static uint64_t asked_entry(const struct boot_image *img, const struct boot_config *cfg)
{
	return image_elf64_contains(img, cfg->entry) ? cfg->entry
						     : image_elf64_physical(img, cfg->entry);
}

/* Checks the settings that the user chose, so that these errors come first. */
static int check_config(const struct boot_image *img, const struct boot_config *cfg, struct err *e)
{
	if (!cfg->vcpus || cfg->vcpus > VM_MAX_VCPUS)
		return err_set(e, EINVAL, "%u vCPUs requested (expected 1 to %u)", cfg->vcpus,
			       VM_MAX_VCPUS);
	if (cfg->way == BOOT_PROTOCOL_LINUX16)
		return err_set(e, ENOTSUP,
			       "this program begins in real mode and needs a BIOS, which kvmprof "
			       "does not have");
	if (cfg->nmodules && !takes_modules(cfg->way))
		return err_set(e, EINVAL,
			       "modules are for multiboot and PVH kernels; a kernel entered by "
			       "--boot=%s takes an --initrd only",
			       protocol_name(cfg->way));
	if (cfg->entry && (cfg->way != BOOT_PROTOCOL_VMLINUX || !asked_entry(img, cfg)))
		return err_set(e, EINVAL,
			       "the entry 0x%" PRIx64
			       " is for a kernel that is entered directly (--boot=vmlinux), at a "
			       "physical or linked address of one of its segments (0x%" PRIx64
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

	if (r)
		return r;
	r = load_kernel(m, img, cfg->way, &place, e);
	if (r)
		return r;
	r = load_cmdline(m, img, cfg, e);
	if (r)
		return r;
	entry.rip = cfg->entry ? asked_entry(img, cfg) : place.entry;
	entry.low = place.gpa;
	entry.high = place.end;
	r = load_tables(m, cfg, e);
	if (r)
		return r;
	if (takes_modules(cfg->way)) {
		r = boot_load_info(m, img, cfg, place.end, &entry, e);
		if (r)
			return r;
	} else {
		r = load_params(m, img, cfg, &place, e);
		if (r)
			return r;
		entry.rsi = GPA_BOOT_PARAMS;
		if (cfg->way == BOOT_PROTOCOL_LINUX32)
			entry.mode = BOOT_MODE_FLAT32;
	}
	if (entry.mode == BOOT_MODE_LONG)
		entry.cr3 = GPA_PAGE_TABLES;
	r = load_low(m, entry.mode, e);
	if (r)
		return r;
	*out = entry;
	return 0;
}
