/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/cfi.h"

#include "base/array.h"
#include "base/clock.h"
#include "symbolizer/linux/mm.h"
#include "symbolizer/program/userelf_cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum file_state {
	FILE_NEW = 0, /* not read yet, or some bytes were missing */
	FILE_OPEN,
	FILE_WITHOUT, /* there are no tables, or none that can be read */
	FILE_FOREIGN, /* not an ELF file: its bytes may change */
};

/* The tables of one dso. Its address does not change, as it is the ctx of its readers. */
struct cfi_file {
	enum file_state state;
	/* owned; the program's, if cfi is that of its debug file; else NULL */
	struct userelf *elf;
	struct userelf_cfi *cfi; /* owned; the program's or that of its debug file */
	struct linux_file pages; /* valid during a lookup */
	bool have_pages, asked_host, asked_debug;
	uint8_t *vdso; /* owned */
	size_t vdso_len;
	struct userfile host, debug;
	struct file_bytes debug_bytes;
	uint64_t tried_ns; /* time of the sample for which bytes were missing */
};

/* A mapping in which an address of this sample lies, and its file. */
struct cfi_near {
	const struct linux_vma *vma;
	const struct guest_dso *dso;
	struct cfi_file *file;
};
/* Stacks alternate between few files: a program and its libraries. */
#define NEAR 4u

struct guest_cfi {
	const struct linux_mm_layout *layout;
	const struct memory *memory;
	struct guest_dsos *dsos;
	struct cfi_cache *cache;
	struct cfi_file **file; /* by dso number; NULL: not looked up yet */
	size_t nfiles, nhost;
	struct guest_owner owner;
	uint64_t space, time_ns; /* CR3 and time of the sample */
	struct cfi_near near[NEAR];
	unsigned int nnear; /* additions since guest_cfi_begin() */
	struct guest_cfi_stats stats;
};

int guest_cfi_create(struct guest_cfi **out, const struct guest_cfi_parts *parts, struct err *e)
{
	struct guest_cfi *g = calloc(1, sizeof(*g));

	if (g)
		g->cache = cfi_cache_create();
	if (!g || !g->cache) {
		free(g);
		return err_nomem(e);
	}
	g->layout = parts->layout;
	g->memory = parts->memory;
	g->dsos = parts->dsos;
	*out = g;
	return 0;
}

void guest_cfi_destroy(struct guest_cfi *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->nfiles; i++) {
		struct cfi_file *f = g->file[i];

		if (!f)
			continue;
		userelf_cfi_destroy(f->cfi);
		free(f->elf);
		userfile_close(&f->host);
		userfile_close(&f->debug);
		free(f->vdso);
		free(f);
	}
	free(g->file);
	cfi_cache_destroy(g->cache);
	free(g);
}

void guest_cfi_begin(struct guest_cfi *g, const struct guest_owner *owner, const struct sample *s)
{
	g->owner = owner ? *owner : (struct guest_owner){ .task = NULL };
	g->space = s->regs.cr3;
	g->time_ns = s->time_ns;
	g->nnear = 0;
}

void guest_cfi_stats(const struct guest_cfi *g, struct guest_cfi_stats *out)
{
	*out = g->stats;
	out->cache = *cfi_cache_stats(g->cache);
}

/* -- a file's bytes ------------------------------------------------------------------ */

static size_t copy_part(const void *from, size_t have, uint64_t off, void *dst, size_t len)
{
	if (off >= have)
		return 0;
	if (len > have - off)
		len = (size_t)(have - off);
	memcpy(dst, (const uint8_t *)from + off, len);
	return len;
}

static size_t read_file(void *ctx, uint64_t off, void *dst, size_t len)
{
	const struct cfi_file *f = ctx;
	size_t n = 0;

	if (f->vdso)
		return copy_part(f->vdso, f->vdso_len, off, dst, len);
	if (f->have_pages)
		n = linux_file_read(&f->pages, off, dst, len);
	if (n < len && f->host.map.data)
		n += copy_part(f->host.map.data, f->host.map.len, off + n, (uint8_t *)dst + n,
			       len - n);
	return n;
}

static uint64_t file_len(const struct cfi_file *f)
{
	return f->vdso ? f->vdso_len : f->have_pages ? linux_file_size(&f->pages) : f->host.map.len;
}

static bool file_ask_host(struct guest_cfi *g, struct cfi_file *f, const struct guest_dso *dso)
{
	if (f->asked_host || f->vdso || g->nhost >= GUEST_CFI_MAX_HOST)
		return false;
	f->asked_host = true;
	if (!guest_dso_open_on_host(g->dsos, dso, GUEST_DSO_PROGRAM, &f->host))
		return false;
	g->nhost++;
	g->stats.from_host++;
	return true;
}

/*
 * Opens the tables of the debug file, whose addresses are the same, for a file that has none of its
 * own.
 */
static enum cfi_found file_ask_debug(struct guest_cfi *g, struct cfi_file *f,
				     const struct guest_dso *dso, const struct userelf *program)
{
	struct file_source src;
	struct userelf_cfi *cfi;
	struct userelf u;
	struct err e = { 0 };
	enum cfi_found found = CFI_NONE;

	if (f->asked_debug || f->vdso || g->nhost >= GUEST_CFI_MAX_HOST)
		return CFI_NONE;
	f->asked_debug = true;
	if (!guest_dso_open_on_host(g->dsos, dso, GUEST_DSO_DEBUG, &f->debug))
		return CFI_NONE;
	f->debug_bytes = (struct file_bytes){ f->debug.map.data, f->debug.map.len };
	src = filepiece_source_of_bytes(&f->debug_bytes);
	if (userelf_open(&u, "", &src, &e) == 0)
		found = userelf_cfi_open(&cfi, &u);
	if (found == CFI_FOUND)
		f->elf = malloc(sizeof(*f->elf));
	if (f->elf) {
		*f->elf = *program;
		f->cfi = cfi;
		g->nhost++;
	} else {
		if (found == CFI_FOUND)
			userelf_cfi_destroy(cfi);
		found = CFI_NONE;
		userfile_close(&f->debug);
	}
	return found;
}

static enum cfi_found file_open(struct guest_cfi *g, struct cfi_file *f,
				const struct guest_dso *dso)
{
	const struct file_source src = { read_file, f, file_len(f) };
	struct userelf u;
	struct err e = { 0 };
	int ret = src.len ? userelf_open(&u, "", &src, &e) : -ENODATA;
	enum cfi_found found;

	if (ret == -ENODATA)
		return CFI_HOLE;
	if (ret < 0) {
		f->state = FILE_FOREIGN;
		return CFI_BAD;
	}
	found = userelf_cfi_open(&f->cfi, &u);
	return found == CFI_NONE ? file_ask_debug(g, f, dso, &u) : found;
}

/* -- looking up ---------------------------------------------------------------------- */

/* The program headers of a debug file do not contain file offsets. */
static bool file_va(const struct cfi_file *f, uint64_t off, uint64_t *va)
{
	return f->elf ? userelf_va_of(f->elf, off, va) : userelf_cfi_va(f->cfi, off, va);
}

static enum cfi_found file_row(struct guest_cfi *g, struct cfi_file *f, const struct guest_dso *dso,
			       uint64_t off, struct cfi_row *row)
{
	enum cfi_found found = CFI_HOLE;
	uint64_t va;

	for (unsigned int pass = 0; pass < 2; pass++) {
		found = f->state == FILE_OPEN ? CFI_FOUND : file_open(g, f, dso);
		if (found == CFI_FOUND) {
			f->state = FILE_OPEN;
			found = file_va(f, off, &va) ? userelf_cfi_row(f->cfi, va, row) : CFI_NONE;
		} else if (found != CFI_HOLE && f->state == FILE_NEW) {
			f->state = FILE_WITHOUT;
			g->stats.without++;
		}
		if (found != CFI_HOLE || !file_ask_host(g, f, dso))
			break;
	}
	return found;
}

/* Returns the file of a mapping, or NULL if it was not looked at yet or there is none. */
static const struct guest_dso *mapped_dso(const struct guest_cfi *g, const struct linux_vma *v,
					  struct guest_mark *mark)
{
	struct guest_dso *dso;

	if (mark->dso)
		return guest_dsos_at(g->dsos, mark->dso - 1);
	/* A mapping without a file that cannot grow was made by the kernel: the vDSO. */
	dso = v->file ? guest_dso_find(g->dsos, &mark->file)
	      : v->flags & LINUX_VM_DONTEXPAND
		      ? guest_dso_of_vdso(g->dsos, g->owner.task->mm, g->space)
		      : NULL;
	if (dso)
		mark->dso = dso->number + 1;
	return dso;
}

static void read_vdso(const struct guest_cfi *g, struct cfi_file *f)
{
	f->vdso = malloc(LINUX_VDSO_MAX);
	if (f->vdso)
		f->vdso_len =
			linux_vdso_read(g->layout, g->memory, g->owner.task->mm, g->space, f->vdso);
}

static struct cfi_file *file_of(struct guest_cfi *g, const struct guest_dso *dso)
{
	struct cfi_file *f;

	if (ARRAY_FIT_ZERO(g->file, dso->number + 1u, g->nfiles))
		return NULL;
	f = g->file[dso->number];
	if (f)
		return f;
	if (g->stats.files >= GUEST_CFI_MAX_FILES) {
		g->stats.beyond++;
		return NULL;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	if (!dso->file)
		read_vdso(g, f);
	g->stats.files++;
	return g->file[dso->number] = f;
}

/* Looks up an address that is not cached, or whose bytes were missing. */
static struct cfi_slot *look_up(struct guest_cfi *g, struct cfi_file *f,
				const struct guest_dso *dso, const struct linux_vma *v,
				uint64_t off)
{
	enum cfi_found found = CFI_NONE;
	struct cfi_row row;

	if (f->state != FILE_WITHOUT) {
		f->have_pages = !f->vdso && guest_dso_pages(g->dsos, dso, v->file, &f->pages);
		found = file_row(g, f, dso, off, &row);
		f->have_pages = false;
	}
	if (f->state == FILE_FOREIGN)
		return NULL;
	if (found == CFI_HOLE)
		f->tried_ns = g->time_ns;
	return cfi_cache_keep(g->cache, dso->number, off, found, &row);
}

static const struct cfi_near *cfi_near_at(const struct guest_cfi *g, uint64_t va)
{
	for (unsigned int i = 0; i < NEAR && i < g->nnear; i++)
		if (va - g->near[i].vma->start < g->near[i].vma->end - g->near[i].vma->start)
			return &g->near[i];
	return NULL;
}

/*
 * Returns the file in which an address lies, or NULL if there is none with tables; *found is then
 * the result of the lookup.
 */
static const struct cfi_near *cfi_file_at(struct guest_cfi *g, uint64_t va, bool *found)
{
	const struct cfi_near *known = cfi_near_at(g, va);
	struct cfi_near n = { .vma = NULL };
	struct guest_mark *mark;

	if (known)
		return known;
	*found = false;
	n.vma = guest_maps_at(&g->owner, va, &mark);
	if (!n.vma)
		return NULL;
	n.dso = mapped_dso(g, n.vma, mark);
	if (!n.dso) {
		/*
		 * Without a file the code was generated; otherwise the file was not looked at yet.
		 */
		*found = !n.vma->file;
		return NULL;
	}
	n.file = file_of(g, n.dso);
	if (!n.file)
		return NULL;
	g->near[g->nnear % NEAR] = n;
	return &g->near[g->nnear++ % NEAR];
}

static bool cfi_find_at(void *ctx, uint64_t va, struct unwind_place *out)
{
	struct guest_cfi *g = ctx;
	const struct cfi_near *at;
	const struct guest_dso *dso;
	const struct linux_vma *v;
	struct cfi_slot *slot;
	struct cfi_file *f;
	bool found;
	uint64_t off;

	*out = (struct unwind_place){ .row = NULL };
	at = cfi_file_at(g, va, &found);
	if (!at)
		return found;
	v = at->vma;
	dso = at->dso;
	f = at->file;
	if (f->state == FILE_FOREIGN)
		return true;
	off = va - v->start + v->file_off;
	slot = cfi_cache_find(g->cache, dso->number, off);
	if (slot && slot->found == CFI_HOLE &&
	    clock_is_due(g->time_ns, f->tried_ns, GUEST_CFI_RETRY_NS)) {
		slot->file = 0;
		slot = NULL;
	}
	if (!slot)
		slot = look_up(g, f, dso, v, off);
	if (!slot)
		return f->state == FILE_FOREIGN;
	out->row = cfi_cache_row(g->cache, slot);
	out->call = &slot->call;
	return true;
}

/*
 * Reads code from the file. Pages that the program has modified are in its page tables, so the
 * unwinder reads these first.
 */
static size_t cfi_text_at(void *ctx, uint64_t va, void *dst, size_t len)
{
	struct guest_cfi *g = ctx;
	const struct cfi_near *at;
	const struct linux_vma *v;
	struct cfi_file *f;
	bool found;
	size_t n;

	at = cfi_file_at(g, va, &found);
	if (!at || at->vma->flags & LINUX_VM_WRITE || len > at->vma->end - va)
		return 0;
	v = at->vma;
	f = at->file;
	f->have_pages = !f->vdso && guest_dso_pages(g->dsos, at->dso, v->file, &f->pages);
	n = read_file(f, va - v->start + v->file_off, dst, len);
	f->have_pages = false;
	return n;
}

struct unwind_cfi guest_cfi_unwind(struct guest_cfi *g)
{
	return (struct unwind_cfi){ cfi_find_at, cfi_text_at, g };
}
