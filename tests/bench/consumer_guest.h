/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Builds a Linux in an array of memory, for bench_consumer: page tables, a kernel (kernel_text.h)
 * with modules, and tasks that all run the including program, whose files are in the page cache.
 * The structures have the layout of linux_mm_fixture.h.
 */
#ifndef KVMPROF_TESTS_BENCH_CONSUMER_GUEST_H
#define KVMPROF_TESTS_BENCH_CONSUMER_GUEST_H

#define LM_ARENA (96u << 20)

#include "profile/record/guest/target.h"
#include "tests/bench/kernel_text.h"
#include "tests/unit/guest_fixture.h"
#include "base/gmem.h"

#include <sys/mman.h>

#define CG_TASKS 8u
#define CG_MODULES 100u
#define CG_MODULE_FUNCTIONS 128u
#define CG_KERNEL_FUNCTIONS (KT_FUNCTIONS - CG_MODULES * CG_MODULE_FUNCTIONS)
#define CG_KERNEL_END (KT_TEXT + CG_KERNEL_FUNCTIONS * KT_FUNC_BYTES)
#define CG_ORC_VA (KT_TEXT + (64u << 20)) /* tables of the modules */
#define CG_MAX_MAPS 256u
#define CG_MAX_FILES 32u

#define CG_PTE 3u     /* present, writable */
#define CG_LARGE 128u /* 2 MiB */

struct cg_file {
	char path[256];
	uint64_t file; /* struct file in the guest */
	size_t len;
	uint64_t *gpa; /* address of each page */
};

struct cg_map {
	uint64_t start, end, off, flags;
	int file; /* -1: none */
};

struct cg {
	struct lm lm; /* gpa 0 is its first byte */
	uint64_t pgd; /* gpa of the kernel's page table */
	uint64_t text, orc_ips, orc;
	uint64_t task[CG_TASKS], cr3[CG_TASKS];
	struct linux_module_layout modules;
	struct cg_map map[CG_MAX_MAPS];
	size_t nmaps;
	struct cg_file file[CG_MAX_FILES];
	size_t nfiles;
	uint64_t mnt, root;
};

static inline uint64_t cg_pages(struct cg *g, size_t n)
{
	return lm_alloc(&g->lm, n * 4096, 4096) - LM_DIRECT;
}

static inline uint64_t *cg_entry(struct cg *g, uint64_t table, uint64_t va, unsigned int level)
{
	return (uint64_t *)(g->lm.arena + table) + (va >> (3 + 9 * level) & 511);
}

/* Maps one page of an address space; size 1: 4 KiB, 2: 2 MiB. */
static inline void cg_page(struct cg *g, uint64_t pgd, uint64_t va, uint64_t gpa, unsigned int size)
{
	uint64_t table = pgd;

	for (unsigned int level = 4; level > size; level--) {
		uint64_t *e = cg_entry(g, table, va, level);

		if (!*e)
			*e = cg_pages(g, 1) | CG_PTE | 4;
		table = *e & ~UINT64_C(4095);
	}
	*cg_entry(g, table, va, size) = gpa | CG_PTE | 4 | (size == 2 ? CG_LARGE : 0);
}

/* -- the kernel ------------------------------------------------------------------ */

static inline void cg_symbols(struct cg *g, uint64_t m, uint64_t text)
{
	uint64_t ks = lm_alloc(&g->lm, 32, 8);
	uint64_t syms = lm_alloc(&g->lm, (CG_MODULE_FUNCTIONS + 1) * sizeof(Elf64_Sym), 8);
	uint64_t strs = lm_alloc(&g->lm, CG_MODULE_FUNCTIONS * 8 + 8, 8);
	uint64_t types = lm_alloc(&g->lm, CG_MODULE_FUNCTIONS + 1, 1);

	for (unsigned int i = 0; i < CG_MODULE_FUNCTIONS; i++) {
		Elf64_Sym s = { .st_name = 1 + i * 8,
				.st_shndx = 1,
				.st_value = text + i * KT_FUNC_BYTES,
				.st_size = KT_FUNC_BYTES };

		memcpy(lm_ptr(&g->lm, syms + (i + 1) * sizeof(s), sizeof(s)), &s, sizeof(s));
		snprintf((char *)lm_ptr(&g->lm, strs + s.st_name, 8), 8, "fn%u", i);
		*lm_ptr(&g->lm, types + i + 1, 1) = 't';
	}
	lm_put64(&g->lm, ks, syms);
	lm_put32(&g->lm, ks + 8, CG_MODULE_FUNCTIONS + 1);
	lm_put64(&g->lm, ks + 16, strs);
	lm_put64(&g->lm, ks + 24, types);
	lm_put64(&g->lm, m + GF_M_KALLSYMS, ks);
}

static inline void cg_modules(struct cg *g)
{
	uint64_t m[CG_MODULES];

	g->modules = gf_module_layout(lm_alloc(&g->lm, 16, 16));
	g->modules.kernel_start = KT_TEXT;
	g->modules.kernel_end = CG_KERNEL_END;
	g->modules.kallsyms = GF_M_KALLSYMS;
	g->modules.num_orcs = GF_M_NORCS;
	g->modules.orc_ip = GF_M_ORC_IP;
	g->modules.orc = GF_M_ORC;
	g->modules.num_symtab = 8;
	g->modules.strtab = 16;
	g->modules.typetab = 24;
	for (unsigned int i = 0; i < CG_MODULES; i++) {
		unsigned int first = CG_KERNEL_FUNCTIONS + i * CG_MODULE_FUNCTIONS;
		char name[16];

		snprintf(name, sizeof(name), "module%u", i);
		m[i] = gf_new_module(&g->lm, name, KT_TEXT + first * KT_FUNC_BYTES);
		lm_put32(&g->lm, m[i] + GF_M_STATE, LINUX_MODULE_LIVE);
		lm_put32(&g->lm, m[i] + GF_M_TEXT_SIZE, CG_MODULE_FUNCTIONS * KT_FUNC_BYTES);
		lm_put32(&g->lm, m[i] + GF_M_NORCS, CG_MODULE_FUNCTIONS * 4);
		lm_put64(&g->lm, m[i] + GF_M_ORC_IP, CG_ORC_VA + first * 16);
		lm_put64(&g->lm, m[i] + GF_M_ORC, CG_ORC_VA + KT_ORCS * 4 + first * 24);
		cg_symbols(g, m[i], KT_TEXT + first * KT_FUNC_BYTES);
	}
	gf_set_list(&g->lm, g->modules.modules, GF_M_LIST, m, CG_MODULES);
}

static inline void cg_kernel(struct cg *g, unsigned int *seed)
{
	uint64_t orcs = cg_pages(g, KT_ORCS * 10 / 4096 + 1);

	g->pgd = cg_pages(g, 1);
	g->text = cg_pages(g, KT_BYTES / 4096 + 1);
	kt_make_text(g->lm.arena + g->text, seed);
	kt_orc_bytes(g->lm.arena + orcs, g->lm.arena + orcs + KT_ORCS * 4, CG_ORC_VA);
	for (uint64_t at = 0; at < LM_ARENA; at += 2u << 20)
		cg_page(g, g->pgd, LM_DIRECT + at, at, 2);
	for (uint64_t at = 0; at < sizeof(g->lm.pages); at += 4096)
		cg_page(g, g->pgd, LM_VMEMMAP + at, LM_ARENA + at, 1);
	for (uint64_t at = 0; at < KT_BYTES; at += 4096)
		cg_page(g, g->pgd, KT_TEXT + at, g->text + at, 1);
	for (uint64_t at = 0; at < KT_ORCS * 10; at += 4096)
		cg_page(g, g->pgd, CG_ORC_VA + at, orcs + at, 1);
	cg_modules(g);
}

/* -- programs -------------------------------------------------------------------- */

/* Stores the whole file in the page cache. */
static inline void cg_fill(struct cg *g, struct cg_file *f, uint64_t ino)
{
	size_t n = (f->len + 4095) / 4096;
	uint64_t as, top = lm_xa_node(&g->lm, 6), low = 0;
	FILE *in = fopen(f->path, "re");

	f->file = lm_file(&g->lm, g->mnt, lm_dentry(&g->lm, g->root, strrchr(f->path, '/') + 1),
			  lm_inode(&g->lm, ino, f->len));
	f->gpa = calloc(n, sizeof(*f->gpa));
	if (!in || !f->gpa || n > 4096)
		abort();
	as = lm_mapping(&g->lm, f->file);
	lm_put64(&g->lm, as + 16, top + 2);
	for (size_t i = 0; i < n; i++) {
		uint64_t page = lm_page(&g->lm, as, i, 0);
		uint64_t gpa = (page - LM_VMEMMAP) / LM_PAGE_SIZE << 12;

		if (i % 64 == 0) {
			low = lm_xa_node(&g->lm, 0);
			lm_xa_slot(&g->lm, top, (unsigned int)(i / 64), low + 2);
		}
		lm_xa_slot(&g->lm, low, i % 64, page);
		if (fread(g->lm.arena + gpa, 1, 4096, in) == 0)
			abort();
		f->gpa[i] = gpa;
	}
	fclose(in);
}

static inline int cg_file_of(struct cg *g, const char *path)
{
	struct cg_file *f = &g->file[g->nfiles];
	FILE *in;

	for (size_t i = 0; i < g->nfiles; i++)
		if (!strcmp(g->file[i].path, path))
			return (int)i;
	in = g->nfiles < CG_MAX_FILES ? fopen(path, "re") : NULL;
	if (!in)
		return -1;
	snprintf(f->path, sizeof(f->path), "%s", path);
	fseek(in, 0, SEEK_END);
	f->len = (size_t)ftell(in);
	fclose(in);
	cg_fill(g, f, 100 + g->nfiles);
	return (int)g->nfiles++;
}

/* Reads the mappings of this process. */
static inline void cg_read_maps(struct cg *g, uint64_t *stack_top)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f) && g->nmaps < CG_MAX_MAPS) {
		struct cg_map *m = &g->map[g->nmaps];
		unsigned long start, end, off;
		char perms[5], path[256] = "";

		if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %255s", &start, &end, perms, &off, path) <
		    4)
			continue;
		if ((uintptr_t)line >= start && (uintptr_t)line < end)
			*stack_top = end;
		if (start >> 47 || path[0] != '/')
			continue;
		*m = (struct cg_map){ start, end, off, 0, cg_file_of(g, path) };
		m->flags = (perms[0] == 'r' ? LINUX_VM_READ : 0) |
			   (perms[1] == 'w' ? LINUX_VM_WRITE : 0) |
			   (perms[2] == 'x' ? LINUX_VM_EXEC : 0);
		g->nmaps++;
	}
	if (f)
		fclose(f);
}

static inline void cg_program(struct cg *g, unsigned int n)
{
	uint64_t mm = lm_alloc(&g->lm, LM_MM_SIZE, 8), vma[CG_MAX_MAPS];
	uint64_t pgd = cg_pages(g, 1);

	memcpy(g->lm.arena + pgd + 2048, g->lm.arena + g->pgd + 2048, 2048);
	for (size_t i = 0; i < g->nmaps; i++) {
		const struct cg_map *m = &g->map[i];
		const struct cg_file *f = m->file < 0 ? NULL : &g->file[m->file];

		vma[i] = lm_vma(&g->lm, mm, m->start, m->end, m->flags, m->off >> 12,
				f ? f->file : 0);
		for (uint64_t at = m->start; f && at < m->end; at += 4096)
			if (at - m->start + m->off < f->len)
				cg_page(g, pgd, at, f->gpa[(at - m->start + m->off) >> 12], 1);
	}
	lm_maple(&g->lm, mm, vma, g->nmaps, 16, 10, LM_MAPLE_ARANGE);
	lm_put64(&g->lm, mm + 8, LM_DIRECT + pgd);
	g->cr3[n] = pgd;
	g->task[n] = gf_task(&g->lm, 100 + n, 100 + n, "worker", mm, 1 + n, 0);
}

/* -- the whole guest -------------------------------------------------------------------------- */

static inline struct cg *cg_create(struct gmem *mem, uint64_t *stack_top, unsigned int *seed)
{
	struct cg *g = mmap(NULL, sizeof(*g), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (g == MAP_FAILED)
		abort();
	lm_alloc(&g->lm, 4096, 4096); /* address 0 is not used for a table */
	g->root = lm_dentry(&g->lm, 0, "/");
	g->mnt = lm_mount(&g->lm, g->root, 0, 0);
	cg_kernel(g, seed);
	cg_read_maps(g, stack_top);
	for (unsigned int i = 0; i < CG_TASKS; i++)
		cg_program(g, i);
	mem->region[0] = (struct gmem_region){ 0, LM_ARENA + sizeof(g->lm.pages), g->lm.arena };
	mem->n = 1;
	return g;
}

/* Returns the target of the kernel. The caller frees its symbols and its table. */
static inline struct target cg_target(struct cg *g)
{
	struct target t = { .name = "bench" };
	struct target_linux *l = &t.linux_facts;
	struct lm_types no_count = { .without = { "mm_struct.vmacache_seqnum" } };
	struct types types = lm_types(&no_count);
	char name[32];
	int bad;

	t.is_linux = true;
	t.kernel.seg[0] = (struct kimage_segment){ .va = KT_TEXT,
						   .pa = g->text,
						   .mem_len = CG_KERNEL_END - KT_TEXT,
						   .flags = PF_R | PF_X };
	t.kernel.nseg = 1;
	t.kernel.text = KT_TEXT;
	t.kernel.etext = t.kernel.end = CG_KERNEL_END;
	t.orc = kt_orc(CG_KERNEL_FUNCTIONS);
	t.symbols = symtab_create();
	for (unsigned int i = 0; i < CG_KERNEL_FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "function_%u", i);
		symtab_add(t.symbols, KT_TEXT + i * KT_FUNC_BYTES, KT_FUNC_BYTES, 'T', name);
	}
	symtab_add(t.symbols, LM_DIRECT + g->pgd, 4096, 'D', "init_top_pgt");
	bad = symtab_freeze(t.symbols, NULL);
	l->have_current = l->have_task = l->have_mm = l->have_file = l->have_modules = true;
	l->task = gf_task_layout();
	bad = bad || linux_mm_layout_init(&l->mm, &types, NULL);
	gf_file_layout(&l->file);
	l->modules = g->modules;
	l->modules.orc_format = *orc_format_of(t.orc);
	if (bad)
		abort();
	return t;
}

/* Makes the sample one of a task. */
static inline void cg_of_task(struct cg *g, struct sample *s, unsigned int n)
{
	s->task = gf_sample(&g->lm, g->task[n], 0).task;
	s->regs.cr0 = 0x80050033;
	s->regs.cr3 = g->cr3[n];
	s->regs.cr4 = 0x20;
	s->regs.efer = 0xd01;
}

#endif
