/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much of a running kernel's memory is read: of one that is not known, and of one that was stored before. */
#include "symbolizer/kernel/live_copy.h"

#include "base/file.h"
#include "symbolizer/core/kimage.h"
#include "symbolizer/kernel/kallsyms.h"
#include "symbolizer/kernel/livekernel.h"
#include "tests/unit/cached_kernel.h"
#include "tests/unit/skip.h"
#include "vmm/image/image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE LIVE_PAGE
/* What may be read beside names, types and unwind tables; and of a kernel that is known. */
#define MORE (UINT64_C(1) << 20)
#define KNOWN (UINT64_C(64) << 10)

static struct kallsyms_info names; /* facts of the kernel that is read */

struct fake {
	uint64_t va, len;
	uint64_t text_end, rodata,
		rodata_end; /* rights; 0: all of it may be written and executed */
	uint8_t *bytes, *touched;
	uint8_t *absent; /* a byte for each page, 1: reads of it fail; NULL: all can be read */
	uint8_t *stored; /* owned */
	size_t stored_len;
	uint8_t stored_id[KIMAGE_BUILD_ID_MAX];
};

static size_t fake_read(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	struct fake *f = ctx;
	const uint64_t off = va - f->va;

	(void)space;
	if (va < f->va || off >= f->len)
		return 0;
	len = len < f->len - off ? len : (size_t)(f->len - off);
	for (uint64_t at = off; f->absent && at < off + len; at = (at / PAGE + 1) * PAGE)
		if (f->absent[at / PAGE])
			len = at - off;
	if (!len)
		return 0;
	memcpy(dst, f->bytes + off, len);
	for (uint64_t at = off / PAGE; at <= (off + len - 1) / PAGE; at++)
		f->touched[at] = 1;
	return len;
}

static bool fake_page(void *ctx, uint64_t va, struct live_page *out)
{
	const struct fake *f = ctx;

	if (va < f->va || va - f->va >= f->len)
		return false;
	*out = (struct live_page){ .end = (va | (PAGE - 1)) + 1, .write = true, .exec = true };
	if (f->text_end) {
		out->exec = va < f->text_end;
		out->write = va >= f->text_end && (va < f->rodata || va >= f->rodata_end);
	}
	return true;
}

static uint8_t *fake_load(void *ctx, uint64_t inside, unsigned int n, size_t *len)
{
	const struct fake *f = ctx;
	struct live_copy_mark mark;
	uint8_t *copy;

	if (n || !f->stored)
		return NULL;
	assert_true(live_copy_mark(f->stored, LIVE_COPY_HEAD, &mark));
	assert_int_equal((mark.inside - inside) % LIVE_COPY_SLIDE, 0);
	copy = malloc(f->stored_len);
	assert_non_null(copy);
	*len = f->stored_len;
	return memcpy(copy, f->stored, f->stored_len);
}

static void fake_store(void *ctx, const uint8_t *build_id, size_t id_len, const uint8_t *bytes,
		       size_t len)
{
	struct fake *f = ctx;

	free(f->stored);
	f->stored = malloc(len);
	assert_non_null(f->stored);
	memcpy(f->stored, bytes, len);
	f->stored_len = len;
	memcpy(f->stored_id, build_id, id_len <= sizeof(f->stored_id) ? id_len : 0);
}

static uint64_t address(const struct symtab *t, const char *name)
{
	const struct symbol *s = symtab_find(t, name);

	return s ? s->addr : 0;
}

/* The image as a guest has it that runs `slide` bytes from where it is linked. */
static void fake_init(struct fake *f, const struct kimage *k, const struct symtab *truth,
		      uint64_t slide)
{
	const uint64_t base = (names.addresses_va + 4ull * names.count + 7) & ~7ull;
	uint64_t v;

	f->va = k->text + slide;
	f->len = (k->end - k->text + PAGE - 1) / PAGE * PAGE;
	f->bytes = calloc(1, f->len);
	f->touched = calloc(1, f->len / PAGE);
	assert_true(f->bytes && f->touched);
	for (unsigned int i = 0; i < k->nseg; i++)
		if (k->seg[i].va >= k->text)
			memcpy(f->bytes + (k->seg[i].va - k->text), k->elf + k->seg[i].file_off,
			       k->seg[i].file_len);
	if (names.encoding != KALLSYMS_PLACE) {
		memcpy(&v, f->bytes + (base - k->text), sizeof(v));
		assert_int_equal(v, k->text);
		v += slide;
		memcpy(f->bytes + (base - k->text), &v, sizeof(v));
	}
	f->text_end = (address(truth, "_etext") + slide + PAGE - 1) & ~(PAGE - 1);
	f->rodata = address(truth, "__start_rodata") + slide;
	f->rodata_end = address(truth, "__end_rodata") + slide;
}

static void fake_deinit(struct fake *f)
{
	free(f->bytes);
	free(f->touched);
	f->bytes = f->touched = NULL;
}

static uint64_t touched(struct fake *f)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < f->len / PAGE; i++)
		n += f->touched[i];
	memset(f->touched, 0, f->len / PAGE);
	return n * PAGE;
}

static uint64_t span(const struct symtab *t, const char *first, const char *last)
{
	const uint64_t from = address(t, first), to = address(t, last);

	return from && to > from ? (to - from + 2 * PAGE) / PAGE * PAGE : 0;
}

/* Bytes of the pages with names (kallsyms.h), types and unwind tables. */
static uint64_t tables(const struct livekernel *l)
{
	const struct kallsyms_info *k = &l->kallsyms;
	const struct symtab *t = l->symbols;
	const uint64_t from = k->names_va < k->addresses_va ? k->names_va : k->addresses_va;
	uint64_t to = k->token_va;

	if (k->addresses_va + 4ull * k->count > to)
		to = k->addresses_va + 4ull * k->count;
	return to - from + 3 * PAGE + span(t, "__start_orc_unwind_ip", "__stop_orc_unwind_ip") +
	       span(t, "__start_orc_unwind", "__stop_orc_unwind") +
	       span(t, "__start_BTF", "__stop_BTF");
}

static struct livekernel *read_fake(struct fake *f, uint64_t inside, bool stores)
{
	const struct live_guest g = {
		.memory = { fake_read, f },
		.page = fake_page,
		.load = stores ? fake_load : NULL,
		.store = stores ? fake_store : NULL,
		.ctx = f,
	};
	struct livekernel *l = NULL;
	struct err e = { 0 };

	if (livekernel_read(&l, &g, inside, &e) < 0)
		fail_msg("%s", e.text);
	return l;
}

static void same(const struct livekernel *l, const struct symtab *truth, uint64_t slide)
{
	assert_true(symtab_count(l->symbols) > 10000);
	assert_int_equal(address(l->symbols, "_text"), address(truth, "_text") + slide);
	assert_int_equal(address(l->symbols, "schedule"), address(truth, "schedule") + slide);
	assert_int_equal(l->text, address(truth, "_text") + slide);
	assert_int_equal(l->image_end, address(truth, "_end") + slide);
	assert_non_null(l->orc);
	assert_non_null(orc_lookup(l->orc, address(truth, "schedule") + slide + 1));
	assert_int_equal(l->build_id_len, KIMAGE_BUILD_ID_MAX);
}

/* Writes an address in the code of the kernel, as KASLR has moved it. */
static void write_moved(struct fake *f, const struct symtab *truth, uint64_t slide)
{
	const uint32_t moved = (uint32_t)(address(truth, "_etext") + slide);

	memcpy(f->bytes + (address(truth, "schedule") / PAGE * PAGE + 40 + slide - f->va), &moved,
	       sizeof(moved));
}

static void show_page(struct fake *f, const struct symtab *truth, const char *name, uint64_t slide)
{
	const uint64_t va = address(truth, name);

	assert_true(va);
	f->absent[(va + slide - f->va) / PAGE] = 0;
}

/* A guest whose memory comes from a page server has only the pages that it uses: code, not the notes. */
static void read_served(struct fake *f, const struct symtab *truth, uint64_t slide)
{
	static const char *const used[] = { "asm_exc_page_fault", "do_syscall_64",
					    "__switch_to",	  "update_process_times",
					    "ktime_get",	  "vfs_write",
					    "schedule",		  "try_to_wake_up" };
	const uint64_t handler = address(truth, "asm_exc_page_fault") + slide;
	struct live_guest g = {
		.memory = { fake_read, f }, .page = fake_page, .load = fake_load, .ctx = f
	};
	struct livekernel *l = NULL;
	struct err e = { 0 };
	uint8_t *code;

	f->absent = malloc(f->len / PAGE);
	assert_non_null(f->absent);
	memset(f->absent, 1, f->len / PAGE);
	for (size_t i = 0; i < 4; i++)
		show_page(f, truth, used[i], slide);
	/* Too little code, and no tables. */
	assert_true(livekernel_read(&l, &g, handler, &e) < 0);
	for (size_t i = 0; i < sizeof(used) / sizeof(used[0]); i++)
		show_page(f, truth, used[i], slide);
	(void)touched(f);
	l = read_fake(f, handler, true);
	assert_true(l->stored);
	same(l, truth, slide);
	print_message("%s, known by its code: %llu bytes read\n", l->osrelease,
		      (unsigned long long)touched(f));
	livekernel_destroy(l);

	/* A function that is a bit longer: another kernel, though its page-fault handler is at the same place. */
	code = f->bytes + (address(truth, "update_process_times") / PAGE * PAGE + slide - f->va);
	memmove(code + 2048, code + 2032, 2032);
	assert_true(livekernel_read(&l, &g, handler, &e) < 0);
	memmove(code + 2032, code + 2048, 2032);
	free(f->absent);
	f->absent = NULL;
}

static void read_twice(struct fake *f, const struct kimage *k, const struct symtab *truth)
{
	const uint64_t handler = address(truth, "asm_exc_page_fault"), slide = 0x1e000000;
	struct livekernel *l, *again;
	uint64_t before;

	assert_true(handler && address(truth, "_etext"));
	fake_init(f, k, truth, 0);
	write_moved(f, truth, 0);
	/* With the rights of a kernel that has booted, then with those of rodata=off. */
	l = read_fake(f, handler, false);
	same(l, truth, 0);
	before = touched(f);
	print_message("%s: %.2f MB read, %.2f MB of them tables\n", l->osrelease,
		      (double)before / 1e6, (double)tables(l) / 1e6);
	assert_true(before <= tables(l) + MORE);
	livekernel_destroy(l);
	f->text_end = 0;
	l = read_fake(f, handler, true);
	same(l, truth, 0);
	assert_false(l->stored);
	before = touched(f);
	print_message("%s, rodata=off: %.2f MB read\n", l->osrelease, (double)before / 1e6);
	assert_true(before <= tables(l) + MORE);
	assert_true(f->stored && !memcmp(f->stored_id, l->build_id, l->build_id_len));
	fake_deinit(f);

	/* Another guest with the same kernel elsewhere. */
	fake_init(f, k, truth, slide);
	again = read_fake(f, handler + slide, true);
	assert_true(again->stored);
	same(again, truth, slide);
	assert_int_equal(symtab_count(again->symbols), symtab_count(l->symbols));
	assert_int_equal(again->btf_len, l->btf_len);
	assert_int_equal(orc_count(again->orc), orc_count(l->orc));
	before = touched(f);
	print_message("%s, known: %llu bytes read\n", l->osrelease, (unsigned long long)before);
	assert_true(before <= KNOWN);
	write_moved(f, truth, slide);
	read_served(f, truth, slide);
	livekernel_destroy(again);
	livekernel_destroy(l);
	/* Another kernel of the same layout has another build id. */
	f->bytes[address(truth, "__stop_notes") - 1 - k->text] ^= 1;
	f->bytes[address(truth, "__start_notes") + 20 - k->text] ^= 1;
	again = read_fake(f, handler + slide, true);
	assert_false(again->stored);
	livekernel_destroy(again);
	fake_deinit(f);
}

static void cached(const char *pattern)
{
	char path[4096];
	struct file_map m = { 0 };
	struct boot_image image = { 0 };
	struct symtab *truth = NULL;
	struct fake f = { 0 };
	struct err e = { 0 };
	struct kimage k;

	if (!cached_kernel(pattern, path, sizeof(path)))
		SKIP("no %s in the cache of the scripts", pattern);
	if (file_map_open(&m, path, BOOT_MAX_FILE, &e) < 0 ||
	    image_parse(&image, path, m.data, m.len, &e) < 0 ||
	    kimage_parse(&k, path, image.elf, image.elf_len, &e) < 0 ||
	    kallsyms_from_image(&k, path, &truth, &names, &e) < 0)
		fail_msg("%s", e.text);
	read_twice(&f, &k, truth);
	free(f.stored);
	symtab_destroy(truth);
	image_deinit(&image);
	file_map_close(&m);
}

static void tiny_kernel(void **state)
{
	(void)state;
	cached("kernel-tiny-*/vmlinux");
}

static void debian_6_1(void **state)
{
	(void)state;
	cached("debian-6.1.*/vmlinuz-*");
}

static void debian_7_3(void **state)
{
	(void)state;
	cached("debian-7.3.*/vmlinuz-*");
}

/* A stored copy comes from a guest: what is damaged is refused. */
static void damaged_copies(void **state)
{
	uint8_t head[LIVE_COPY_HEAD] = "kvmprof live\n";
	const struct live_guest g = { .memory = { fake_read, NULL } };
	struct live_copy_mark mark;
	struct live_copy c;
	uint64_t slide;

	(void)state;
	assert_false(live_copy_mark(head, sizeof(head), &mark));
	assert_false(live_copy_mark(head, sizeof(head) - 1, &mark));
	assert_false(live_copy_load(&c, &g, 0xffffffff81000000, head, sizeof(head), &slide));
	memset(head, 0xff, sizeof(head));
	assert_false(live_copy_mark(head, sizeof(head), &mark));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tiny_kernel),
		cmocka_unit_test(debian_6_1),
		cmocka_unit_test(debian_7_3),
		cmocka_unit_test(damaged_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
