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
	FILE_NEW = 0, /* or not all that is needed was there */
	FILE_OPEN,
	FILE_WITHOUT, /* there are no tables, or none that can be read */
	FILE_FOREIGN, /* no ELF file: its bytes may change */
};

/* One dso. It does not move: it is the ctx of what reads it. */
struct cfi_file {
	enum file_state state;
	struct userelf *elf; /* owned; the program's, where cfi is its debug file's; else NULL */
	struct userelf_cfi *cfi; /* its own, or its debug file's */
	struct linux_file pages; /* while it is looked at */
	bool have_pages, asked_host, asked_debug;
	uint8_t *vdso; /* owned */
	size_t vdso_len;
	struct userfile host, debug;
	struct file_bytes debug_bytes;
	uint64_t tried_ns; /* the sample for which something was missing */
};

/* A mapping that an address of this sample was in, and its file. */
struct cfi_near {
	const struct linux_vma *vma;
	const struct guest_dso *dso;
	struct cfi_file *file;
};
/* A program, its libraries: a stack goes to and fro between few. */
#define NEAR 4u

struct guest_cfi {
	const struct linux_mm_layout *layout;
	const struct memory *memory;
	struct guest_dsos *dsos;
	struct cfi_cache *cache;
	struct cfi_file **file; /* by the number of its dso; NULL: not asked for yet */
	size_t nfiles, nhost;
	struct guest_owner owner;
	uint64_t space, time_ns; /* of the sample */
	struct cfi_near near[NEAR];
	unsigned int nnear; /* ever added since guest_cfi_begin() */
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
	if (!guest_dso_on_host(g->dsos, dso, GUEST_DSO_PROGRAM, &f->host))
		return false;
	g->nhost++;
	g->stats.from_host++;
	return true;
}

/* It has no tables of its own: those of its debug file, whose addresses are the same. */
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
	if (!guest_dso_on_host(g->dsos, dso, GUEST_DSO_DEBUG, &f->debug))
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

/* A debug file's program headers do not tell file offsets. */
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

/* The file behind a mapping; NULL: not looked at yet, or none. */
static const struct guest_dso *mapped_dso(const struct guest_cfi *g, const struct linux_vma *v,
					  struct guest_mark *mark)
{
	struct guest_dso *dso;

	if (mark->dso)
		return guest_dsos_at(g->dsos, mark->dso - 1);
	/* Without a file and not to grow: what the kernel made. */
	dso = v->file ? guest_dso_known(g->dsos, &mark->file)
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

/* What is there of an address that is not kept, or not all of it was there. */
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

/* The file that an address is in. NULL: none whose tables can be asked; *found: the answer then. */
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
		/* Made at run time; or of a file that nobody has looked at yet. */
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

/* Pages that the program has of its own are in its page tables: these are the file's. */
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
