/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: 4000 runs */
/*
 * The first byte: bit 0 says whether mappings are in a maple tree, bit 1 whether those
 * with code alone are wanted, bit 2 whether the layout is to be found in memory. The
 * rest are changes (linux_change.h) to the scene of tests/unit/linux_mm_fixture.h, or
 * linux_find_fixture.h.
 */
#include "tests/fuzz/fuzz.h"

#include "symbolizer/linux/mm_path.h"
#include "tests/fuzz/linux_change.h"
#include "tests/unit/linux_find_fixture.h"

#define MAX_READS_PER_STEP 16u
#define MAX_READS_TO_FIND (8u << 20)

static struct lm scene[2], guest;
static struct lm_scene at[2];
static struct linux_mm_layout layout[2];

static void check_path(enum linux_why why, const char *path)
{
	size_t len = strnlen(path, LINUX_PATH_MAX);

	if (len == LINUX_PATH_MAX || (why == LINUX_OK) != (len > 0))
		abort();
}

static void check(const struct linux_mm_layout *l, const struct memory *m, uint64_t mm,
		  uint32_t flags)
{
	struct linux_vmas s = { 0 };
	enum linux_why why = linux_mm_vmas(l, m, mm, flags, &s);
	char path[LINUX_PATH_MAX];
	uint64_t end = 0;

	if (s.n > LINUX_MM_MAX_VMAS ||
	    guest.reads > (uint64_t)4 * (LINUX_MM_MAX_NODES + LINUX_MM_MAX_VMAS) ||
	    why >= LINUX_WHY_COUNT)
		abort();
	for (size_t i = 0; i < s.n; i++) {
		const struct linux_vma *v = &s.v[i];
		struct linux_file_id id;
		struct linux_vma one;

		if (v->start < end || v->end <= v->start || (v->start | v->end) % 4096 ||
		    (v->flags & flags) != flags || linux_vmas_find(&s, v->start) != v)
			abort();
		end = v->end;
		guest.reads = 0;
		if (linux_mm_lookup(l, m, mm, v->start, &one) == LINUX_OK &&
		    (one.start > v->start || one.end <= v->start))
			abort();
		if (guest.reads > (uint64_t)4 * (LINUX_MM_MAX_HEIGHT + 2))
			abort();
		guest.reads = 0;
		check_path(linux_vma_name(l, m, mm, v, path), path);
		if (guest.reads > 4 * LINUX_PATH_MAX_DEPTH * MAX_READS_PER_STEP)
			abort();
		if (v->file)
			linux_file_identify(l, m, v->file, &id);
	}
	linux_vmas_deinit(&s);
}

static void find(struct cursor *c, const struct memory *m, uint32_t flags)
{
	static struct lm untyped;
	static struct lf at_found;
	struct linux_mm_layout l;
	struct err e = { 0 };

	if (!untyped.used)
		at_found = lf_scene(&untyped);
	guest = untyped;
	linux_change(&guest, c);
	/* Reads of objects have a separate limit there. */
	if (linux_mm_layout_find(&l, m, at_found.known, 2, &e) == 0) {
		guest.reads = 0;
		check(&l, m, at_found.known[0].mm, flags);
	} else if (!e.text[0] || guest.reads > MAX_READS_TO_FIND) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory m = lm_memory(&guest);
	struct cursor c;
	unsigned int kind;
	uint8_t first;

	cursor_init(&c, data, size);
	first = cursor_u8(&c);
	kind = first & 1;
	if (first & 4) {
		find(&c, &m, first & 2 ? LINUX_VM_EXEC : 0);
		return 0;
	}
	if (!scene[kind].used) {
		lm_layout(&layout[kind], kind);
		at[kind] = lm_scene(&scene[kind], kind);
	}
	guest = scene[kind];
	linux_change(&guest, &c);
	check(&layout[kind], &m, at[kind].mm, first & 2 ? LINUX_VM_EXEC : 0);
	return 0;
}
