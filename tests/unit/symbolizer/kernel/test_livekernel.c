/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernels laid out as in a guest's memory, with KASLR, and what is found of them from one address. */
#include "symbolizer/kernel/live_copy.h"
#include "symbolizer/kernel/livekernel.h"

#include "base/file.h"
#include "symbolizer/types/btf.h"
#include "symbolizer/kernel/symfile.h"
#include "tests/unit/btf_fixture.h"
#include "tests/unit/cached_kernel.h"
#include "tests/unit/kallsyms_fixture.h"
#include "tests/unit/skip.h"
#include "vmm/image/image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define PAGE 4096u
#define SLIDE 0x12600000ull

/* One piece of guest memory; pages may be missing. */
struct fake {
	uint64_t va;
	uint8_t *bytes;
	size_t len;
	bool *mapped; /* per page */
	bool endless; /* zeros wherever there is nothing else */
	uint64_t reads;
};

static size_t fake_page(struct fake *f, uint64_t va, uint8_t *dst, size_t len)
{
	uint64_t off = va - f->va;
	size_t n = PAGE - va % PAGE;

	if (n > len)
		n = len;
	if (va < f->va || off >= f->len || !f->mapped[off / PAGE]) {
		memset(dst, 0, n);
		return f->endless ? n : 0;
	}
	memcpy(dst, f->bytes + off, n);
	return n;
}

static size_t fake_read(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	struct fake *f = ctx;
	size_t done = 0, n;

	assert_int_equal(space, MEMORY_KERNEL);
	f->reads++;
	while (done < len && (n = fake_page(f, va + done, (uint8_t *)dst + done, len - done)))
		done += n;
	return done;
}

static void fake_init(struct fake *f, uint64_t va, size_t len)
{
	assert_int_equal(va % PAGE, 0);
	len = (len + PAGE - 1) / PAGE * PAGE;
	*f = (struct fake){ .va = va, .len = len, .bytes = calloc(1, len) };
	f->mapped = calloc(len / PAGE, 1);
	assert_non_null(f->bytes);
	assert_non_null(f->mapped);
}

static void fake_deinit(struct fake *f)
{
	free(f->bytes);
	free(f->mapped);
}

static void fake_map(struct fake *f, uint64_t va, size_t len, bool yes)
{
	for (uint64_t at = va & ~(PAGE - 1ull); at < va + len; at += PAGE)
		f->mapped[(at - f->va) / PAGE] = yes;
}

static int read_fake(struct fake *f, uint64_t inside, struct livekernel **l, struct err *e)
{
	const struct live_guest g = { .memory = { fake_read, f } };

	*l = NULL;
	return livekernel_read(l, &g, inside, e);
}

/* -- a kernel of a few kilobytes ------------------------------------------------- */

#define ORC_AT 0x3000u
#define ORC_N 40u
#define BTF_AT 0x3400u
#define NOTES_AT 0x3f00u

static struct kf_extra places[] = {
	{ "__start_orc_unwind_ip", ORC_AT },
	{ "__stop_orc_unwind_ip", ORC_AT + 4 * ORC_N },
	{ "__start_orc_unwind", ORC_AT + 4 * ORC_N },
	{ "__stop_orc_unwind", ORC_AT + 10 * ORC_N },
	{ "__start_BTF", BTF_AT },
	{ "__stop_BTF", BTF_AT },
	{ "__start_notes", NOTES_AT },
	{ "__stop_notes", NOTES_AT + 36 },
};
#define PLACES (sizeof(places) / sizeof(places[0]))

static void add_tables(struct buf *b)
{
	static const uint8_t note[] = { 4,   0,	  0,   0,  20, 0,  0,  0,  3,  0,  0,  0,
					'G', 'N', 'U', 0,  1,  2,  3,  4,  5,  6,  7,  8,
					9,   10,  11,  12, 13, 14, 15, 16, 17, 18, 19, 20 };
	struct buf btf;

	for (uint32_t i = 0; i < ORC_N; i++) {
		/* Each function of 16 bytes: sp + 8 is the CFA, a call; layout of 6.4. */
		static const uint8_t entry[] = { 8, 0, 0, 0, 5, 2 };

		buf_put32(b, ORC_AT + 4 * i, 64 * i - (ORC_AT + 4 * i));
		memcpy(b->data + ORC_AT + 4 * ORC_N + 6 * i, entry, 6);
	}
	buf_init(&btf);
	bf_kernel(&btf);
	assert_true(btf.len < NOTES_AT - BTF_AT);
	memcpy(b->data + BTF_AT, btf.data, btf.len);
	buf_deinit(&btf);
	memcpy(b->data + NOTES_AT, note, sizeof(note));
}

static struct kf_shape live_shape(size_t i, uint64_t slide)
{
	struct kf_shape s = kf_shapes[i];
	struct buf btf;

	s.slide = slide;
	s.count = 700;
	s.text_only = false;
	buf_init(&btf);
	bf_kernel(&btf);
	places[5].off = BTF_AT + (uint32_t)btf.len;
	buf_deinit(&btf);
	s.extra = places;
	s.nextra = PLACES;
	return s;
}

static void fake_fixture(struct fake *f, const struct kf_shape *s)
{
	struct kf_places p;
	struct buf b;

	buf_init(&b);
	kf_build(s, &b, &p);
	if (s->nextra)
		add_tables(&b);
	fake_init(f, KF_TEXT + s->slide, b.len);
	memcpy(f->bytes, b.data, b.len);
	fake_map(f, f->va, f->len, true);
	buf_deinit(&b);
}

static void small_kernel(void **state)
{
	static const uint64_t inside[] = { 0, 0x1234, 0x2fff };

	(void)state;
	for (size_t i = 0; i < KF_SHAPES; i++) {
		struct kf_shape s = live_shape(i, SLIDE);
		struct livekernel *l;
		struct err e = { 0 };
		struct btf *btf = NULL;
		struct fake f;

		fake_fixture(&f, &s);
		if (read_fake(&f, f.va + inside[i % 3], &l, &e) < 0)
			fail_msg("%s: %s", s.name, e.text);
		assert_int_equal(l->start, f.va);
		assert_int_equal(l->end, f.va + f.len);
		assert_int_equal(l->text, f.va);
		assert_int_equal(symtab_count(l->symbols), s.count);
		assert_int_equal(l->kallsyms.encoding, s.encoding);
		assert_int_equal(symtab_find(l->symbols, "__start_notes")->addr, f.va + NOTES_AT);
		assert_string_equal(l->banner, "Linux version 6.1.0-kf (test@test) #1 SMP");
		assert_string_equal(l->osrelease, "6.1.0-kf");
		assert_int_equal(l->build_id_len, 20);
		assert_int_equal(l->build_id[19], 20);
		assert_int_equal(btf_open(&btf, l->btf, l->btf_len, "live", &e), 0);
		assert_int_equal(btf_count(btf), 29);
		btf_destroy(btf);
		if (!l->orc)
			fail_msg("%s: %s", s.name, l->orc_note.text);
		assert_int_equal(orc_count(l->orc), ORC_N);
		assert_int_equal(orc_lookup(l->orc, f.va + 70)->sp_offset, 8);
		assert_int_equal(l->orc_note.code | l->btf_note.code | l->banner_note.code |
					 l->build_id_note.code,
				 0);
		livekernel_destroy(l);
		fake_deinit(&f);
	}
}

/* Functions alone have names: no banner symbol, nothing that tells where tables are. */
static void only_functions(void **state)
{
	struct kf_shape s = kf_shapes[5];
	struct livekernel *l;
	struct err e = { 0 };
	struct fake f;

	(void)state;
	assert_true(s.text_only);
	s.slide = SLIDE;
	fake_fixture(&f, &s);
	if (read_fake(&f, f.va + 100, &l, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(l->osrelease, "6.1.0-kf");
	assert_null(l->orc);
	assert_null(l->btf);
	assert_int_equal(l->orc_note.code, ENOENT);
	assert_non_null(strstr(l->orc_note.text, "no symbol __start_orc_unwind_ip"));
	assert_int_equal(l->btf_note.code, ENOENT);
	assert_int_equal(l->build_id_note.code, ENOENT);
	livekernel_destroy(l);
	fake_deinit(&f);
}

/* Tables that lie: a note for each, and the names are there all the same. */
static void damaged_tables(void **state)
{
	struct kf_shape s = live_shape(3, SLIDE);
	struct kf_extra lies[PLACES];
	struct livekernel *l;
	struct err e = { 0 };
	struct fake f;

	(void)state;
	memcpy(lies, places, sizeof(lies));
	lies[1].off = lies[0].off + 4 * ORC_N + 2;
	lies[2].off = lies[1].off;
	lies[4].name = "__other_BTF";
	lies[7].off = lies[6].off + 12;
	s.extra = lies;
	fake_fixture(&f, &s);
	if (read_fake(&f, f.va + 100, &l, &e) < 0)
		fail_msg("%s", e.text);
	assert_null(l->orc);
	assert_int_equal(l->orc_note.code, EBADMSG);
	assert_non_null(strstr(l->orc_note.text, "do not belong together"));
	assert_null(l->btf);
	assert_non_null(strstr(l->btf_note.text, "no symbol __start_BTF"));
	assert_int_equal(l->build_id_len, 0);
	assert_non_null(strstr(l->build_id_note.text, "no build id"));
	livekernel_destroy(l);
	fake_deinit(&f);
}

static void refusals(void **state)
{
	static const uint64_t foreign[] = {
		0, 0x400000, 0xffffffffc0000000, 0xffffffff7fffffff, 0xfffffe0000006000, UINT64_MAX
	};
	struct kf_shape s = live_shape(3, SLIDE);
	struct livekernel *l;
	struct err e = { 0 };
	struct fake f;

	(void)state;
	fake_fixture(&f, &s);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		err_clear(&e);
		assert_int_equal(read_fake(&f, foreign[i], &l, &e), -EINVAL);
		assert_non_null(strstr(e.text, "no address of a Linux kernel"));
	}
	err_clear(&e);
	assert_int_equal(read_fake(&f, f.va - 1, &l, &e), -EFAULT);
	/* Zeros from one end to the other are no kernel, and are not all copied. */
	fake_map(&f, f.va, f.len, false);
	f.endless = true;
	err_clear(&e);
	assert_int_equal(read_fake(&f, f.va, &l, &e), -ENOENT);
	assert_null(l);
	assert_true(f.reads < (LIVEKERNEL_MAX_BELOW + LIVEKERNEL_MAX_ABOVE) / PAGE + 1000);
	/* The kernel with all the rest mapped, too. */
	fake_map(&f, f.va, f.len, true);
	err_clear(&e);
	if (read_fake(&f, f.va, &l, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(symtab_find(l->symbols, "_text")->addr, f.va);
	livekernel_destroy(l);
	fake_deinit(&f);
}

/* -- kernels that people boot ------------------------------------------------------ */

struct layout {
	uint64_t slide;
	bool drop_init; /* init memory is not mapped any more */
	bool poison;	/* or it is, and somebody else uses it */
	const char *inside;
};

static uint64_t address(const struct symtab *t, const char *name)
{
	const struct symbol *s = symtab_find(t, name);

	if (!s)
		fail_msg("no symbol %s", name);
	return s->addr;
}

/* Segments of the kernel's half where they are linked, moved, as Linux relocates itself. */
static void fake_kernel(struct fake *f, const struct kimage *k, const struct symtab *truth,
			const struct layout *o)
{
	uint64_t init = address(truth, "__init_begin"), init_end = address(truth, "__init_end");
	uint64_t base = address(truth, "kallsyms_relative_base") - k->text, v;

	fake_init(f, k->text + o->slide, (size_t)(k->end - k->text));
	for (unsigned int i = 0; i < k->nseg; i++) {
		const struct kimage_segment *s = &k->seg[i];

		if (s->va < k->text)
			continue;
		memcpy(f->bytes + (s->va - k->text), k->elf + s->file_off, s->file_len);
		fake_map(f, s->va + o->slide, s->mem_len, true);
	}
	memcpy(&v, f->bytes + base, 8);
	assert_int_equal(v, k->text);
	v += o->slide;
	memcpy(f->bytes + base, &v, 8);
	if (o->drop_init)
		fake_map(f, init + o->slide, (size_t)(init_end - init), false);
	if (o->poison)
		memset(f->bytes + (init - k->text), 0xcc, (size_t)(init_end - init));
}

/* Is there a symbol of this name at this address? */
static bool has_symbol(const struct symtab *t, uint64_t addr, const char *name)
{
	size_t lo = 0, hi = symtab_count(t);

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (symtab_at(t, mid)->addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < symtab_count(t) && symtab_at(t, lo)->addr == addr; lo++)
		if (!strcmp(symtab_at(t, lo)->name, name))
			return true;
	return false;
}

static void same_names(const struct livekernel *l, const struct symtab *truth,
		       const struct kimage *k, uint64_t slide)
{
	size_t compared = 0;

	for (size_t i = 0; i < symtab_count(truth); i++) {
		const struct symbol *s = symtab_at(truth, i);

		/* kallsyms leaves out some markers of data, but no function. */
		if (s->addr < k->text || !strchr("tTwW", s->type))
			continue;
		if (!has_symbol(l->symbols, s->addr + slide, s->name))
			fail_msg("%s is not at 0x%llx", s->name,
				 (unsigned long long)(s->addr + slide));
		compared++;
	}
	print_message("%zu functions as in System.map\n", compared);
	assert_true(compared >= 10000);
}

static void same_tables(const struct livekernel *l, const struct kimage *k,
			const struct symtab *truth, uint64_t slide)
{
	char banner[sizeof(l->banner)];
	struct err e = { 0 };
	struct orc *orc = NULL;
	struct btf *a = NULL, *b = NULL;
	uint64_t va, moved;

	/* An image may have a second text like it, of which the linker used another copy. */
	assert_int_equal(kimage_read(k, address(truth, "linux_banner"), banner, sizeof(banner)), 0);
	*strchr(banner, '\n') = 0;
	assert_string_equal(l->banner, banner);
	assert_int_equal(l->build_id_len, k->build_id_len);
	assert_memory_equal(l->build_id, k->build_id, k->build_id_len);
	assert_int_equal(l->frame_pointers, kimage_keeps_frame_pointers(k, NULL));
	assert_int_equal(orc_open(&orc, k, &e), 0);
	if (!l->orc)
		fail_msg("%s", l->orc_note.text);
	assert_int_equal(orc_count(orc), orc_count(l->orc));
	for (size_t i = 0; i < orc_count(orc); i++) {
		assert_memory_equal(orc_at(orc, i, &va), orc_at(l->orc, i, &moved),
				    sizeof(struct orc_entry));
		assert_int_equal(va + slide, moved);
	}
	orc_destroy(orc);
	if (btf_from_image(&a, k, "image", NULL) == 0) {
		assert_int_equal(btf_open(&b, l->btf, l->btf_len, "live", &e), 0);
		assert_int_equal(btf_count(a), btf_count(b));
	} else {
		assert_null(l->btf);
		assert_int_equal(l->btf_note.code, ENOENT);
	}
	btf_destroy(a);
	btf_destroy(b);
}

static void cached(const char *image_pattern, const char *map_pattern)
{
	static const struct layout layouts[] = {
		{ 0, false, false, "_text" },
		{ 0x1e000000, true, false, "memcpy" },
		{ 0x200000, false, true, "entry_SYSCALL_64" },
	};
	char path[4096], map_path[4096];
	struct file_map m = { 0 }, map = { 0 };
	struct boot_image image = { 0 };
	struct symfile truth = { 0 };
	struct err e = { 0 };
	struct kimage k;

	if (!cached_kernel(image_pattern, path, sizeof(path)) ||
	    !cached_kernel(map_pattern, map_path, sizeof(map_path))) {
		SKIP("no %s or %s in the cache of the scripts", image_pattern, map_pattern);
	}
	if (file_map_open(&m, path, BOOT_MAX_FILE, &e) < 0 ||
	    image_parse(&image, path, m.data, m.len, &e) < 0 ||
	    kimage_parse(&k, path, image.elf, image.elf_len, &e) < 0 ||
	    file_map_open(&map, map_path, BOOT_MAX_FILE, &e) < 0 ||
	    symfile_parse(&truth, map_path, map.data, map.len, &e) < 0)
		fail_msg("%s", e.text);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		const struct layout *o = &layouts[i];
		struct livekernel *l;
		struct fake f;

		fake_kernel(&f, &k, truth.symbols, o);
		if (read_fake(&f, address(truth.symbols, o->inside) + o->slide + 3, &l, &e) < 0)
			fail_msg("%s", e.text);
		assert_int_equal(l->text, k.text + o->slide);
		assert_int_equal(l->image_end, address(truth.symbols, "_end") + o->slide);
		same_names(l, truth.symbols, &k, o->slide);
		same_tables(l, &k, truth.symbols, o->slide);
		livekernel_destroy(l);
		fake_deinit(&f);
	}
	symfile_deinit(&truth);
	file_map_close(&map);
	image_deinit(&image);
	file_map_close(&m);
}

static void tiny_kernel(void **state)
{
	(void)state;
	cached("kernel-tiny-*/vmlinux", "kernel-tiny-*/System.map");
}

static void debian_6_1(void **state)
{
	(void)state;
	cached("debian-6.1.*/vmlinuz-*", "debian-6.1.*/dbg/System.map-*");
}

static void debian_6_12(void **state)
{
	(void)state;
	cached("debian-6.12.*/vmlinuz-*", "debian-6.12.*/dbg/System.map-*");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_kernel),	  cmocka_unit_test(only_functions),
		cmocka_unit_test(damaged_tables), cmocka_unit_test(refusals),
		cmocka_unit_test(tiny_kernel),	  cmocka_unit_test(debian_6_1),
		cmocka_unit_test(debian_6_12),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
