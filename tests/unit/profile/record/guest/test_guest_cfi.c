/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A real library in a guest's page cache: rows of its addresses, whole and with missing pages. */
#include "profile/record/guest/cfi.h"

#include "symbolizer/program/userelf_cfi.h"
#include "tests/unit/guest_fixture.h"

#include <elf.h>
#include <limits.h>
#include <setjmp.h>
#include <unistd.h>

#include <cmocka.h>

#define LIB UINT64_C(0x7f0000100000)
#define ANON UINT64_C(0x7f0000900000)
#define RX (LINUX_VM_READ | LINUX_VM_EXEC)
#define NONE UINT_MAX

static struct lm g;
static struct memory mem;
static struct linux_task_layout task_layout;
static struct linux_mm_layout mm_layout;
static struct linux_file_layout file_layout;
static struct gf_sink sink;
static struct userfile_finder finder;
static struct guest_tasks *tasks;
static struct guest_dsos *dsos;
static struct guest_jit *jit;
static struct guest_maps *maps;
static struct guest_cfi *cfi;
static struct unwind_cfi ask;
static const struct guest_task *task;
static struct sample seen;
static uint64_t now, mm, vma[2], task_at;
static char top[64]; /* directory of the guest's files on the host */

/* The library as it is, and its own tables. */
static struct file_map map;
static struct file_bytes bytes;
static struct userelf elf;
static struct userelf_cfi *truth;
static const struct userelf_segment *text;
static char library[256];

static uint64_t look_now(void *ctx)
{
	(void)ctx;
	return now + 1000;
}

/* One that is mapped here, too, and small enough for the guest's memory. */
static bool find_library(void)
{
	char line[512], path[256];
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && !*library && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s r-xp %*s %*s %*s %255s", path) == 1 &&
		    strstr(path, "/libcmocka.so"))
			snprintf(library, sizeof(library), "%s", path);
	if (f)
		fclose(f);
	return *library;
}

static void open_library(void)
{
	struct err e = { 0 };
	struct file_source src;

	assert_int_equal(file_map_open(&map, library, 64u * 4096, &e), 0);
	bytes = (struct file_bytes){ map.data, map.len };
	src = filepiece_source_of_bytes(&bytes);
	assert_int_equal(userelf_open(&elf, library, &src, &e), 0);
	assert_int_equal(userelf_cfi_open(&truth, &elf), CFI_FOUND);
	for (unsigned int i = 0; i < elf.nseg; i++)
		if (elf.seg[i].flags & PF_X)
			text = &elf.seg[i];
	assert_non_null(text);
}

static void put_on_host(void)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/l.so", top);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(map.data, 1, map.len, f), map.len);
	assert_int_equal(fclose(f), 0);
}

static void create(unsigned int hole)
{
	const struct userfile_options opt = { .guest_root = top, .system_debug = "", .cache = "" };
	uint64_t root = lm_dentry(&g, 0, "/"), mnt = lm_mount(&g, root, 0, 0);
	struct err e = { 0 };
	uint32_t pid, tid;
	uint64_t file = gf_file(&g, mnt, lm_dentry(&g, root, "l.so"), 8, map.data, map.len, hole);
	uint64_t off = text->file_off & ~UINT64_C(4095);

	assert_int_equal(userfile_finder_init(&finder, &opt, &e), 0);
	mm = lm_alloc(&g, LM_MM_SIZE, 8);
	vma[0] = lm_vma(&g, mm, LIB, (LIB + text->file_len + 4095) & ~UINT64_C(4095), RX, off >> 12,
			file);
	vma[1] = lm_vma(&g, mm, ANON, ANON + 4096, RX, 0, 0);
	lm_list(&g, mm, vma, 2);
	assert_int_equal(guest_tasks_create(&tasks, &task_layout, &mem, &sink.sink, &e), 0);
	assert_int_equal(guest_dsos_create(&dsos, &mm_layout, &file_layout, &mem, &finder, &e), 0);
	assert_int_equal(guest_jit_create(&jit, NULL, &sink.sink, &e), 0);
	assert_int_equal(guest_maps_create(&maps,
					   &(struct guest_maps_parts){ &mm_layout, &mem, tasks,
								       dsos, jit, &sink.sink },
					   &e),
			 0);
	guest_tasks_members_known(tasks);
	guest_maps_set_clock(maps, look_now, NULL);
	assert_int_equal(
		guest_cfi_create(&cfi, &(struct guest_cfi_parts){ &mm_layout, &mem, dsos }, &e), 0);
	ask = guest_cfi_unwind(cfi);
	task_at = gf_task(&g, 70, 70, "a", mm, 6, 0);
	seen = gf_sample(&g, task_at, now);
	seen.regs.cr3 = LM_CR3;
	assert_int_equal(guest_tasks_identify(tasks, &seen, &pid, &tid, &task, &e), 0);
	assert_non_null(task);
}

/* Makes the mappings of a sample's frames known. */
static void see(uint64_t ip)
{
	struct guest_owner owner = guest_maps_owner(maps, task);
	struct err e = { 0 };

	assert_int_equal(guest_maps_update(maps, &owner, &seen, &ip, 1, &e), 0);
	guest_cfi_begin(cfi, &owner, &seen);
}

static void begin(void)
{
	const struct guest_owner owner = guest_maps_owner(maps, task);

	guest_cfi_begin(cfi, &owner, &seen);
}

static int setup(void **state)
{
	(void)state;
	memset(&g, 0, sizeof(g));
	mem = lm_memory(&g);
	task_layout = gf_task_layout();
	lm_layout(&mm_layout, false);
	gf_file_layout(&file_layout);
	gf_sink_init(&sink);
	now = UINT64_C(1) << 40;
	snprintf(top, sizeof(top), "/tmp/kvmprof-cfi-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	if (!find_library())
		return -1;
	open_library();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	guest_cfi_destroy(cfi);
	guest_maps_destroy(maps);
	guest_jit_destroy(jit);
	guest_dsos_destroy(dsos);
	guest_tasks_destroy(tasks);
	gf_sink_deinit(&sink);
	userfile_finder_deinit(&finder);
	userelf_cfi_destroy(truth);
	file_map_close(&map);
	return file_remove_tree(top, NULL);
}

/* Each address of the text has the row that the file's own tables have; returns how many have one. */
static unsigned int expect_rows(bool all)
{
	unsigned int found = 0;

	for (uint64_t off = 0; off + 1 < text->file_len; off += 7) {
		struct unwind_place place;
		struct cfi_row want;

		assert_true(ask.find(ask.ctx, LIB + off, &place));
		if (userelf_cfi_row(truth, text->va + off, &want) != CFI_FOUND) {
			assert_null(place.row);
		} else if (all || place.row) {
			assert_non_null(place.row);
			assert_memory_equal(place.row, &want, sizeof(want));
			found++;
		}
	}
	return found;
}

static void all_there(void **state)
{
	struct unwind_place place;
	struct guest_cfi_stats s;
	uint64_t looked_up;

	(void)state;
	create(NONE);
	begin();
	/* The mappings have not been read yet. */
	assert_false(ask.find(ask.ctx, LIB + 64, &place));
	see(LIB + 64);
	assert_true(expect_rows(true) > 1000);
	guest_cfi_stats(cfi, &s);
	looked_up = s.cache.looked_up;
	/* Again, without a look at the file, and with what was noted of an address. */
	assert_true(ask.find(ask.ctx, LIB, &place));
	*place.call = CFI_NO_CALL;
	expect_rows(true);
	assert_true(ask.find(ask.ctx, LIB, &place));
	assert_int_equal(*place.call, CFI_NO_CALL);
	guest_cfi_stats(cfi, &s);
	assert_int_equal(s.cache.looked_up, looked_up);
	assert_int_equal(s.files, 1);
	assert_int_equal(s.from_host, 0);
	/* Code without a file, whose bytes may change; no code, and nobody's sample. */
	assert_true(ask.find(ask.ctx, ANON + 8, &place));
	assert_null(place.row);
	assert_null(place.call);
	assert_false(ask.find(ask.ctx, ANON + 8192, &place));
	guest_cfi_begin(cfi, NULL, &seen);
	assert_false(ask.find(ask.ctx, LIB, &place));
}

/* Text that the process has no page of, out of its file; not what may be written. */
static void text_of_file(void **state)
{
	uint8_t got[64], want[64];

	(void)state;
	create(NONE);
	see(LIB + 64);
	assert_int_equal(ask.text(ask.ctx, LIB + 4090, got, 64), 64);
	memcpy(want, (const uint8_t *)map.data + (text->file_off & ~UINT64_C(4095)) + 4090, 64);
	assert_memory_equal(got, want, 64);
	assert_int_equal(ask.text(ask.ctx, ANON, got, 8), 0);
	assert_int_equal(ask.text(ask.ctx, ANON + 4096, got, 8), 0);
	guest_cfi_begin(cfi, NULL, &seen);
	assert_int_equal(ask.text(ask.ctx, LIB, got, 8), 0);
}

/* The page where the table of all functions begins is not in memory. */
static unsigned int page_of_header(void)
{
	uint64_t off;

	assert_true(userelf_off_of(&elf, elf.frames_va, &off));
	return (unsigned int)(off / 4096);
}

static void missing(void **state)
{
	struct unwind_place place;
	struct guest_cfi_stats s;
	uint64_t looked_up;

	(void)state;
	create(page_of_header());
	see(LIB + 64);
	assert_true(ask.find(ask.ctx, LIB + 64, &place));
	assert_null(place.row);
	guest_cfi_stats(cfi, &s);
	looked_up = s.cache.looked_up;
	assert_int_equal(s.cache.found[CFI_HOLE], 1);
	/* Not at once again, but after a while. */
	assert_true(ask.find(ask.ctx, LIB + 64, &place));
	guest_cfi_stats(cfi, &s);
	assert_int_equal(s.cache.looked_up, looked_up);
	seen.time_ns += GUEST_CFI_RETRY_NS + 1;
	begin();
	assert_true(ask.find(ask.ctx, LIB + 64, &place));
	guest_cfi_stats(cfi, &s);
	assert_int_equal(s.cache.looked_up, looked_up + 1);
}

static void completed_by_host(void **state)
{
	struct guest_cfi_stats s;

	(void)state;
	put_on_host();
	create(page_of_header());
	see(LIB + 64);
	assert_true(expect_rows(true) > 1000);
	guest_cfi_stats(cfi, &s);
	assert_int_equal(s.from_host, 1);
	assert_int_equal(s.cache.found[CFI_HOLE], 0);
}

/* Facts that were cached for a sample's mappings do not outlive them. */
static void mapped_anew(void **state)
{
	struct unwind_place place;
	struct err e = { 0 };
	uint32_t pid, tid;
	uint64_t file;

	(void)state;
	create(NONE);
	see(LIB + 64);
	assert_true(ask.find(ask.ctx, ANON + 8, &place));
	assert_true(ask.find(ask.ctx, LIB, &place));
	assert_non_null(place.call);
	/* dlclose, and code without a file in its place */
	memcpy(&file, lm_ptr(&g, vma[0] + 32, 8), 8);
	lm_put64(&g, vma[0] + 32, 0);
	now = seen.time_ns += 2ull * GUEST_MAPS_REFRESH_NS;
	see(LIB + 64);
	assert_true(ask.find(ask.ctx, LIB, &place));
	assert_null(place.row);
	assert_null(place.call);
	/* dlopen: back again */
	lm_put64(&g, vma[0] + 32, file);
	now = seen.time_ns += 2ull * GUEST_MAPS_REFRESH_NS;
	see(LIB + 64);
	assert_true(ask.find(ask.ctx, LIB, &place));
	assert_non_null(place.call);
	/* munmap of all but the last */
	lm_list(&g, mm, vma + 1, 1);
	now = seen.time_ns += 2ull * GUEST_MAPS_REFRESH_NS;
	see(ANON + 64);
	assert_false(ask.find(ask.ctx, LIB, &place));
	/* exec: nothing of the program before counts, although its mappings were not looked at yet */
	lm_list(&g, mm, vma, 2);
	now = seen.time_ns += 2ull * GUEST_MAPS_REFRESH_NS;
	see(LIB + 64);
	assert_true(ask.find(ask.ctx, LIB, &place));
	lm_put64(&g, task_at + GF_MM, lm_alloc(&g, LM_MM_SIZE, 8));
	seen = gf_sample(&g, task_at, seen.time_ns + 1);
	assert_int_equal(guest_tasks_identify(tasks, &seen, &pid, &tid, &task, &e), 0);
	begin();
	assert_false(ask.find(ask.ctx, LIB, &place));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_there, setup, teardown),
		cmocka_unit_test_setup_teardown(text_of_file, setup, teardown),
		cmocka_unit_test_setup_teardown(missing, setup, teardown),
		cmocka_unit_test_setup_teardown(mapped_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(completed_by_host, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
