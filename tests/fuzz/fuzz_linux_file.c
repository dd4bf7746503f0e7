/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * u16 offset (in units of 16 bytes), u16 length, u8 kind. Kind 0: the rest are changes
 * (linux_change.h) to the scene of tests/unit/linux_mm_fixture.h, whose file is read.
 * Kind 2: changes to that of linux_find_fixture.h, whose page cache is searched for.
 * Else: the rest are the first pages of a process, in which an ELF image is sought.
 */
#include "tests/fuzz/fuzz.h"

#include "tests/fuzz/linux_change.h"
#include "tests/unit/linux_find_fixture.h"

static struct lm scene, guest;
static struct lm_scene at;
static struct linux_mm_layout mm_layout;
static struct linux_file_layout layout;
static struct lm untyped;
static struct lf found_at;
static struct linux_mm_layout found_mm;
static struct symtab *symbols;

static void init(void)
{
	struct lm_types all = { 0 };
	struct types t = lm_types(&all);
	struct symtab *s = symtab_create();

	if (!s || symtab_freeze(s, NULL) < 0 || linux_file_layout_init(&layout, &t, s, NULL) < 0)
		abort();
	symbols = s;
	lm_layout(&mm_layout, true);
	at = lm_scene(&scene, true);
	lm_put64(&scene, at.mm + 16, LM_USER);
	found_at = lf_scene(&untyped);
	lf_elf_file(&untyped, &found_at, 0, true);
	lf_elf_file(&untyped, &found_at, 1, false);
	guest = untyped;
	if (linux_mm_layout_find(&found_mm, &(struct memory){ lm_read, &guest }, found_at.known, 2,
				 NULL) < 0)
		abort();
}

static void find(struct cursor *c, const struct memory *m, uint64_t off, size_t len)
{
	uint8_t *dst = malloc(len ? len : 1);
	struct linux_file_layout l;
	struct linux_file f;
	struct err e = { 0 };

	if (!dst)
		return;
	guest = untyped;
	linux_change(&guest, c);
	if (linux_file_layout_find(&l, &found_mm, m, symbols,
				   (struct linux_files_known){ found_at.mapped, 2 }, &e) < 0) {
		if (!e.text[0])
			abort();
	} else if (linux_file_open(&f, &l, m, found_at.file[0]) == LINUX_OK &&
		   linux_file_read(&f, off, dst, len) > len) {
		abort();
	}
	free(dst);
}

static void read_file(const struct memory *m, uint64_t off, size_t len)
{
	uint8_t *dst = malloc(len ? len : 1); /* exactly this size */
	struct linux_file f;
	size_t n;

	if (!dst)
		return;
	if (linux_file_open(&f, &layout, m, at.file) == LINUX_OK) {
		n = linux_file_read(&f, off, dst, len);
		if (n > len || (n && off + n > linux_file_size(&f)))
			abort();
	}
	free(dst);
}

static void read_image(const struct memory *m)
{
	uint8_t *image = malloc(LINUX_VDSO_MAX);

	if (!image)
		return;
	if (linux_vdso_read(&mm_layout, m, at.mm, LM_CR3, image) > sizeof(guest.user))
		abort();
	free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory m = lm_memory(&guest);
	struct cursor c;
	uint64_t off;
	uint16_t len;
	uint8_t kind;

	if (!scene.used)
		init();
	guest = scene;
	cursor_init(&c, data, size);
	off = (uint64_t)cursor_u16(&c) * 16;
	len = cursor_u16(&c);
	kind = cursor_u8(&c);
	if (kind == 2) {
		find(&c, &m, off, len);
	} else if (kind) {
		size_t n =
			cursor_left(&c) < sizeof(guest.user) ? cursor_left(&c) : sizeof(guest.user);

		memcpy(guest.user, data + c.pos, n);
		read_image(&m);
	} else {
		linux_change(&guest, &c);
		read_file(&m, off, len);
	}
	return 0;
}
