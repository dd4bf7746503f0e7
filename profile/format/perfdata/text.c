/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/text.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/format/perfdata/textstore.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* A function of a module; its addresses may belong to another module later. */
struct module_text {
	const struct symtab *symbols; /* identifies one load of a module */
	char name[PROFILE_MODULE_NAME];
	uint64_t addr;
	uint32_t len;
	uint8_t *bytes; /* owned */
};

static bool equal_text(const void *a, const void *b, const void *ctx)
{
	const struct module_text *x = a, *y = b;

	(void)ctx;
	return x->addr == y->addr && x->symbols == y->symbols;
}

void perfdata_text_init(struct perfdata_text *t)
{
	*t = (struct perfdata_text){ .image_fd = -1,
				     .texts = TABLE_OF(struct module_text, equal_text) };
}

void perfdata_text_deinit(struct perfdata_text *t)
{
	struct module_text *x = t->texts.item;

	for (size_t i = 0; i < t->texts.n; i++)
		free(x[i].bytes);
	table_deinit(&t->texts);
	if (t->image_fd >= 0)
		close(t->image_fd);
	perfdata_text_init(t);
}

/* -- the image -------------------------------------------------------------------- */

static void keep_range(struct perfdata_text *t, const struct kimage *k, uint64_t va, uint64_t len)
{
	struct kimage_segment *s = &t->seg[t->nseg];
	size_t avail = 0;
	const uint8_t *p = kimage_ptr(k, va, &avail);

	if (!p || t->image_fd < 0)
		return;
	if (avail > len)
		avail = (size_t)len;
	*s = (struct kimage_segment){ .va = va, .file_len = avail };
	if (t->nseg)
		s->file_off = s[-1].file_off + s[-1].file_len;
	/* Without the image no differences are marked. */
	if (file_write_all(t->image_fd, p, avail) < 0) {
		close(t->image_fd);
		t->image_fd = -1;
		return;
	}
	t->nseg++;
}

/*
 * Copies the code of the image. Linux's code is in .text, with read-only data in the same segment.
 * Its init code, in a writable segment, is freed by the guest and not compared.
 */
static void keep_image(struct perfdata_text *t, const struct kimage *k)
{
	uint64_t va, len;

	if (!k || !k->elf || !k->nseg)
		return;
	t->image_fd = memfd_create("image-text", MFD_CLOEXEC);
	if (kimage_section(k, ".text", &va, &len) && va == k->text) {
		keep_range(t, k, va, len);
		return;
	}
	for (unsigned int i = 0; i < k->nseg; i++)
		if ((k->seg[i].flags & (PF_X | PF_W)) == PF_X)
			keep_range(t, k, k->seg[i].va, k->seg[i].mem_len);
}

void perfdata_text_kernel(struct perfdata_text *t, const struct profile_kernel *k)
{
	t->kernel = k;
	if (!k->read_text || !k->symbols || !k->image || k->end <= k->text)
		return;
	t->slide = k->text - k->image->text;
	keep_image(t, k->image);
}

/* Reads len bytes of the image at a run-time address; returns false unless all are present. */
static bool read_image(const struct perfdata_text *t, uint64_t va, uint8_t *dst, size_t len)
{
	va -= t->slide;
	for (unsigned int i = 0; i < t->nseg && t->image_fd >= 0; i++) {
		const struct kimage_segment *s = &t->seg[i];

		if (va < s->va || va - s->va >= s->file_len || len > s->file_len - (va - s->va))
			continue;
		return pread(t->image_fd, dst, len, (off_t)(s->file_off + (va - s->va))) ==
		       (ssize_t)len;
	}
	return false;
}

/* -- modules ---------------------------------------------------------------------- */

/* Returns the length of a function's code to read; 0: none, or too long. */
static size_t room_for(const struct perfdata_text *t, const struct symbol *s)
{
	if (!s || !s->size || s->size > TEXTSTORE_MAX_LEN ||
	    s->size > PERFDATA_TEXT_MAX_BYTES - t->bytes)
		return 0;
	return (size_t)s->size;
}

void perfdata_text_module(struct perfdata_text *t, const struct profile_module *m, uint64_t ip)
{
	const struct profile_kernel *k = t->kernel;
	const struct symbol *s = m->symbols ? symtab_lookup(m->symbols, ip, NULL) : NULL;
	cleanup_free uint8_t *bytes = NULL;
	struct module_text x = { .symbols = m->symbols };
	size_t len = room_for(t, s);
	uint64_t hash;
	uint32_t index;
	bool fresh;

	if (!len || !k || !k->read_text || t->texts.n >= PERFDATA_TEXT_MAX_FUNCTIONS)
		return;
	x.addr = s->addr;
	hash = table_mix(x.addr, (uintptr_t)x.symbols);
	if (table_find(&t->texts, hash, &x, &index))
		return;
	bytes = malloc(len);
	len = bytes ? k->read_text(k->read_ctx, s->addr, bytes, len) : 0;
	if (!len || ip - s->addr >= len)
		return;
	strncpy(x.name, m->name, sizeof(x.name) - 1);
	x.len = (uint32_t)len;
	x.bytes = bytes;
	if (table_add(&t->texts, hash, &x, &index, &fresh))
		return;
	bytes = NULL;
	t->bytes += len;
}

/*
 * Reads a function again, because the kernel may have patched it. After an unload without a known
 * successor its addresses may contain anything: most bytes must be unchanged.
 */
static void read_again(const struct perfdata_text *t, struct module_text *x, uint8_t *fresh)
{
	size_t same = 0;

	if (t->kernel->read_text(t->kernel->read_ctx, x->addr, fresh, x->len) != x->len)
		return;
	for (size_t i = 0; i < x->len; i++)
		same += fresh[i] == x->bytes[i];
	if (same >= x->len / 2)
		memcpy(x->bytes, fresh, x->len);
}

/* -- the kernel's functions, and the whole ------------------------------------------ */

static int by_address(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void write_kernel(struct perfdata_text *t, struct buf *out, const uint64_t *ip, size_t nip,
			 uint8_t *live, uint8_t *image)
{
	const struct profile_kernel *k = t->kernel;
	cleanup_free uint64_t *start = calloc(nip + 1, sizeof(*start));
	size_t n = 0;

	for (size_t i = 0; start && i < nip; i++) {
		const struct symbol *s = NULL;

		if (ip[i] >= k->text && ip[i] < k->end)
			s = symtab_lookup(k->symbols, ip[i], NULL);
		if (s)
			start[n++] = s->addr;
	}
	if (n)
		qsort(start, n, sizeof(*start), by_address);
	for (size_t i = 0; i < n; i++) {
		const struct symbol *s = symtab_lookup(k->symbols, start[i], NULL);
		size_t len = room_for(t, s);

		if (!len || (i && start[i] == start[i - 1]))
			continue;
		len = k->read_text(k->read_ctx, s->addr, live, len);
		if (len > s->size)
			len = (size_t)s->size;
		if (len && textstore_write(out, "", s->addr, live,
					   read_image(t, s->addr, image, len) ? image : NULL, len))
			t->bytes += len;
	}
}

void perfdata_text_write(struct perfdata_text *t, struct buf *out, const uint64_t *ip, size_t nip,
			 perfdata_module_at_fn *module_at, void *ctx)
{
	const struct profile_kernel *k = t->kernel;
	cleanup_free uint8_t *live = NULL, *image = NULL;
	size_t empty;

	if (!k || !k->read_text)
		return;
	live = malloc(TEXTSTORE_MAX_LEN);
	image = malloc(TEXTSTORE_MAX_LEN);
	if (!live || !image) {
		out->failed = true;
		return;
	}
	textstore_write_begin(out);
	empty = out->len;
	if (k->symbols && k->end > k->text)
		write_kernel(t, out, ip, nip, live, image);
	for (size_t i = 0; i < t->texts.n; i++) {
		struct module_text *x = (struct module_text *)t->texts.item + i;
		const struct profile_module *m = module_at(ctx, x->addr);

		if (m && m->symbols == x->symbols)
			read_again(t, x, live);
		textstore_write(out, x->name, x->addr, x->bytes, NULL, x->len);
	}
	if (out->len == empty)
		out->len = 0;
}
