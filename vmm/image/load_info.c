/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * All of it is in one piece at GPA_BOOT_INFO, pointers are guest-physical:
 *
 *	multiboot := info[88] mmap* module* text*
 *	pvh       := start_info[56] memmap* module* text*
 *
 * Multiboot Specification 0.6.96, 3.3; Xen's public/arch-x86/hvm/start_info.h, version 1.
 */
#include "vmm/image/load_info.h"

#include "base/buf.h"
#include "vmm/boot/tables.h"
#include "vmm/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

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

struct placed {
	uint64_t gpa;
	size_t len;
	const char *name, *args;
};

struct info {
	struct buf b;
	struct placed module[BOOT_MAX_MODULES + 1];
	unsigned int nmodules;
	struct boot_range map[BOOT_MAX_RANGES];
	unsigned int nmap;
	bool pvh;
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
	in->module[in->nmodules++] = (struct placed){ gpa, mod->len, mod->name, mod->args };
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

/* Of a module: multiboot's begins with its name. Returns its address. */
static uint32_t add_text(struct info *in, const char *name, const char *args)
{
	uint32_t at = here(in);

	if (in->pvh)
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
		const struct placed *p = &in->module[i];
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
		const struct placed *p = &in->module[i];
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

int boot_load_info(const struct gmem *m, const struct boot_image *img,
		   const struct boot_config *cfg, uint64_t kernel_end, struct boot_entry *entry,
		   struct err *e)
{
	struct info in = { .pvh = cfg->way == BOOT_WAY_PVH };
	int r;

	if (cfg->nmodules > BOOT_MAX_MODULES)
		return err_set(e, EINVAL, "%u modules (expected at most %d)", cfg->nmodules,
			       BOOT_MAX_MODULES);
	in.nmap = boot_memory_map(gmem_size(m), in.map);
	r = place_modules(&in, m, cfg, kernel_end, e);
	if (r)
		return r;
	buf_init(&in.b);
	if (in.pvh)
		build_pvh(&in);
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
	entry->rax = in.pvh ? 0 : MB_BOOT_MAGIC;
	entry->rbx = GPA_BOOT_INFO;
	entry->rip = in.pvh ? img->pvh_entry : img->mb_entry;
	return r;
}
