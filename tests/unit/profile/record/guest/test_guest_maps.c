/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reports to the sink about a process's mappings, and when they are read again. */
#include "profile/record/guest/maps.h"

#include "tests/unit/guest_fixture.h"

#include <limits.h>
#include <setjmp.h>

#include <cmocka.h>

#define RETRY (GUEST_MAPS_RETRY_NS + 1)
#define REFRESH (GUEST_MAPS_REFRESH_NS + 1)
#define RX (LINUX_VM_READ | LINUX_VM_EXEC)
#define CODE UINT64_C(0x400000)
#define LIB UINT64_C(0x7f0000100000)
#define ANON UINT64_C(0x7f0000300000)

static struct lm g;
static struct memory mem;
static struct linux_task_layout task_layout;
static struct linux_mm_layout mm_layout;
static struct linux_file_layout file_layout;
static struct gf_sink sink;
static struct guest_tasks *tasks;
static struct guest_dsos *dsos;
static struct guest_jit *jit;
static struct guest_maps *maps;
static uint64_t now, root, mnt, program, library; /* struct files */

/* Samples are looked at a little later. */
#define LATER 1000u

static uint64_t look_now(void *ctx)
{
	(void)ctx;
	return now + LATER;
}

static int setup_kernel(bool maple)
{
	struct buf elf;

	memset(&g, 0, sizeof(g));
	mem = lm_memory(&g);
	task_layout = gf_task_layout();
	lm_layout(&mm_layout, maple);
	gf_file_layout(&file_layout);
	gf_sink_init(&sink);
	now = UINT64_C(1) << 40;
	root = lm_dentry(&g, 0, "/");
	mnt = lm_mount(&g, root, 0, 0);
	gf_elf(&elf, 0xaa, "fn", 20);
	program = gf_file(&g, mnt, lm_dentry(&g, root, "prog"), 7, elf.data, elf.len, UINT_MAX);
	library = gf_file(&g, mnt, lm_dentry(&g, root, "l.so"), 8, elf.data, elf.len, UINT_MAX);
	buf_deinit(&elf);
	if (guest_tasks_create(&tasks, &task_layout, &mem, &sink.sink, NULL) ||
	    guest_dsos_create(&dsos, &mm_layout, &file_layout, &mem, NULL, NULL) ||
	    guest_jit_create(&jit, NULL, &sink.sink, NULL) ||
	    guest_maps_create(&maps,
			      &(struct guest_maps_parts){ &mm_layout, &mem, tasks, dsos, jit,
							  &sink.sink },
			      NULL))
		return -1;
	guest_tasks_members_known(tasks);
	guest_maps_set_clock(maps, look_now, NULL);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return setup_kernel(false);
}

/* Linux 6.1: a tree, and no number of changes. */
static int setup_maple(void **state)
{
	int ret = setup_kernel(true);

	(void)state;
	mm_layout.mm_changes = LINUX_NO_MEMBER;
	return ret;
}

static int teardown(void **state)
{
	(void)state;
	guest_maps_destroy(maps);
	guest_jit_destroy(jit);
	guest_dsos_destroy(dsos);
	guest_tasks_destroy(tasks);
	gf_sink_deinit(&sink);
	return 0;
}

/* -- processes --------------------------------------------------------------------- */

struct range {
	uint64_t start, len, file;
};

static void set_ranges(uint64_t mm, const struct range *r, size_t n)
{
	uint64_t vma[8];
	uint32_t changes;

	for (size_t i = 0; i < n; i++)
		vma[i] = lm_vma(&g, mm, r[i].start, r[i].start + r[i].len, RX, i, r[i].file);
	if (mm_layout.maple)
		lm_maple(&g, mm, vma, n, 7, 3, LM_MAPLE_ARANGE);
	else
		lm_list(&g, mm, vma, n);
	if (mm_layout.mm_changes == LINUX_NO_MEMBER)
		return;
	memcpy(&changes, lm_ptr(&g, mm + mm_layout.mm_changes, 4), 4);
	lm_put32(&g, mm + mm_layout.mm_changes, changes + 1);
}

/* The program and the library. */
static uint64_t new_mm(void)
{
	const struct range r[] = { { CODE, 0x2000, program }, { LIB, 0x3000, library } };
	uint64_t mm = lm_alloc(&g, LM_MM_SIZE, 8);

	set_ranges(mm, r, 2);
	return mm;
}

#define TOLD "map 70 400000+2000 @0 /prog%s\nmap 70 7f0000100000+3000 @1000 /l.so%s\n"

static const char *told(const char *elf)
{
	static char text[256];

	snprintf(text, sizeof(text), TOLD, elf, elf);
	return text;
}

/* The number of changes that a sample's capture found in its mm; 0: none was found. */
static uint32_t sample_changes;

static uint32_t changes_of(uint64_t mm)
{
	uint32_t changes;

	memcpy(&changes, lm_ptr(&g, mm + mm_layout.mm_changes, 4), 4);
	return changes;
}

static int try_see(uint64_t task, uint64_t ip, struct err *e)
{
	const uint64_t ips[2] = { CODE + 8, ip };
	struct sample s = gf_sample(&g, task, now);
	const struct guest_task *seen;
	struct guest_owner owner;
	uint32_t pid, tid;
	int ret = guest_tasks_identify(tasks, &s, &pid, &tid, &seen, e);

	/* Tests of tasks are elsewhere. */
	sink.log.len = 0;
	assert_int_equal(ret, 0);
	assert_non_null(seen);
	s.regs.cr3 = LM_CR3;
	s.task.has_changes = sample_changes != 0;
	s.mm_changes = sample_changes;
	owner = guest_maps_owner(maps, seen);
	return guest_maps_update(maps, &owner, &s, ips, 2, e);
}

/* A sample in the program, called from ip, so long after the last. */
static void see(uint64_t task, uint64_t ip, uint64_t after_ns)
{
	struct err e = { 0 };

	now += after_ns;
	if (try_see(task, ip, &e) < 0)
		fail_msg("%s", e.text);
}

static uint64_t reads(void)
{
	return guest_maps_stats(maps)->reads;
}

/* -- tests ------------------------------------------------------------------------- */

static void told_once(void **state)
{
	uint64_t t = gf_task(&g, 70, 70, "a", new_mm(), 6, 0), before;

	(void)state;
	see(t, LIB + 5, 0);
	gf_expect(&sink, told(" elf"));
	assert_int_equal(sink.last_ns, now);
	assert_int_equal(sink.map.id[0], 0xaa);
	before = g.reads;
	see(t, LIB + 5, LATER);
	gf_expect(&sink, "");
	assert_int_equal(g.reads, before);
	/* The kernel says with one number that nothing has changed. */
	see(t, LIB + 5, RETRY);
	gf_expect(&sink, "");
	assert_int_equal(g.reads, before + 1);
	/* From time to time, as a mapping may have changed unseen. */
	see(t, LIB + 5, REFRESH);
	gf_expect(&sink, "");
	assert_true(g.reads > before);
	assert_int_equal(reads(), 2);
	assert_int_equal(guest_maps_stats(maps)->processes, 1);
	assert_int_equal(guest_maps_stats(maps)->frames, 8);
	assert_int_equal(guest_maps_stats(maps)->unmapped, 0);
}

/* An ELF file goes along once, whoever has it mapped; both files have one build id. */
static void file_of_two_processes(void **state)
{
	(void)state;
	see(gf_task(&g, 70, 70, "a", new_mm(), 6, 0), LIB, 0);
	gf_expect(&sink, told(" elf"));
	see(gf_task(&g, 71, 71, "b", new_mm(), 7, 0), LIB, 0);
	gf_expect(&sink, "map 71 400000+2000 @0 /prog\nmap 71 7f0000100000+3000 @1000 /l.so\n");
	assert_int_equal(guest_dsos_stats(dsos)->files, 2);
	assert_null(guest_dsos_at(dsos, 0)->elf);
}

static void changes(void **state)
{
	const struct range more[] = { { CODE, 0x2000, program },
				      { LIB, 0x3000, library },
				      { ANON, 0x1000, 0 } };
	const struct range moved[] = { { CODE, 0x2000, program }, { LIB, 0x3000, program } };
	const struct range shrunk[] = { { CODE, 0x1000, program }, { LIB, 0x3000, program } };
	uint64_t mm = new_mm(), t = gf_task(&g, 70, 70, "a", mm, 6, 0);

	(void)state;
	see(t, LIB, 0);
	set_ranges(mm, more, 3);
	/* Not within the first 20 ms, then at once. */
	see(t, ANON + 5, 1);
	gf_expect(&sink, "");
	see(t, ANON + 5, RETRY);
	gf_expect(&sink, "map 70 7f0000300000+1000 @7f0000300000 [jit:70]\n");
	/* Another file: the sample may be of either. */
	set_ranges(mm, moved, 2);
	see(t, LIB, RETRY);
	gf_expect(&sink, "map 70 7f0000100000+3000 @0 [changed mapping]\n");
	see(t, LIB, RETRY);
	gf_expect(&sink, "map 70 7f0000100000+3000 @1000 /prog\n");
	/* Where another file was before, a change of any mapping is a reason to doubt. */
	set_ranges(mm, shrunk, 2);
	see(t, LIB, RETRY);
	gf_expect(&sink, "map 70 401000+1000 @0 [changed mapping]\n"
			 "map 70 400000+1000 @0 /prog\n"
			 "map 70 7f0000100000+3000 @0 [changed mapping]\n");
	see(t, LIB, RETRY);
	gf_expect(&sink, "map 70 7f0000100000+3000 @1000 /prog\n");
	set_ranges(mm, moved, 2);
	see(t, CODE, RETRY);
	gf_expect(&sink, "");
	see(t, CODE, RETRY);
	gf_expect(&sink, "map 70 400000+2000 @0 /prog\n");
	assert_int_equal(guest_maps_stats(maps)->changed, 1);
}

/* dlclose() and dlopen(): the slab hands out the same structures, of another file. */
static void load_another(uint64_t mm, bool back)
{
	static uint64_t dentry, inode, first_dentry, first_inode;
	const struct range r[] = { { CODE, 0x2000, program }, { LIB, 0x3000, library } };

	if (!back) {
		memcpy(&first_inode, lm_ptr(&g, library + 8, 8), 8);
		memcpy(&first_dentry, lm_ptr(&g, library + 16, 8), 8);
		dentry = lm_dentry(&g, root, "m.so");
		inode = lm_inode(&g, 9, 4096);
	}
	lm_put64(&g, library + 8, back ? first_inode : inode);
	lm_put64(&g, library + 16, back ? first_dentry : dentry);
	set_ranges(mm, r, 2);
}

static void another_library_of_the_same_addresses(void **state)
{
	uint64_t mm = new_mm(), t = gf_task(&g, 70, 70, "a", mm, 6, 0);

	(void)state;
	see(t, LIB + 5, 0);
	gf_expect(&sink, told(" elf"));
	load_another(mm, false);
	/* Taken before the look that all was well. */
	see(t, LIB + 5, LATER / 2);
	gf_expect(&sink, "");
	/* Taken between two looks, as are others of its batch. */
	now += LATER;
	see(t, LIB + 5, 0);
	gf_expect(&sink, "map 70 7f0000100000+3000 @0 [changed mapping]\n");
	assert_int_equal(guest_maps_stats(maps)->doubtful, 1);
	see(t, LIB + 5, LATER);
	gf_expect(&sink, "");
	assert_int_equal(guest_maps_stats(maps)->doubtful, 2);
	see(t, LIB + 5, 1);
	gf_expect(&sink, "map 70 7f0000100000+3000 @1000 /m.so elf\n");
	see(t, LIB + 5, REFRESH);
	gf_expect(&sink, "");
	load_another(mm, true);
	see(t, LIB + 5, RETRY);
	gf_expect(&sink, "map 70 7f0000100000+3000 @0 [changed mapping]\n");
	see(t, LIB + 5, RETRY);
	gf_expect(&sink, "map 70 7f0000100000+3000 @1000 /l.so\n");
	assert_int_equal(guest_maps_stats(maps)->changed, 2);
	assert_int_equal(guest_maps_stats(maps)->doubtful, 3);
}

/* A, B, A: what is there now is what was there before, and the sample may be B's. */
static void same_library_again(void **state)
{
	const struct range both[] = { { CODE, 0x2000, program }, { LIB, 0x3000, library } };
	uint64_t mm = new_mm(), t = gf_task(&g, 70, 70, "a", mm, 6, 0);

	(void)state;
	see(t, LIB + 5, 0);
	load_another(mm, false);
	see(t, LIB + 5, RETRY);
	see(t, LIB + 5, RETRY);
	sink.log.len = 0;
	/* Nothing has changed. */
	see(t, LIB + 5, RETRY);
	gf_expect(&sink, "");
	load_another(mm, true);
	load_another(mm, false);
	see(t, LIB + 5, RETRY);
	gf_expect(&sink, "map 70 7f0000100000+3000 @0 [changed mapping]\n");
	see(t, LIB + 5, RETRY);
	gf_expect(&sink, "map 70 7f0000100000+3000 @1000 /m.so elf\n");
	/* Once more, and the sample has the number that its mappings were read with. */
	set_ranges(mm, both, 2);
	sample_changes = changes_of(mm);
	see(t, LIB + 5, RETRY);
	gf_expect(&sink, "");
	sample_changes--;
	see(t, LIB + 5, 0);
	sample_changes = 0;
	gf_expect(&sink, "map 70 7f0000100000+3000 @0 [changed mapping]\n");
}

/* Unloaded at one look, and another one loaded at the next: a sample from before that is of neither. */
static void another_library_after_a_gap(void **state)
{
	const struct range less[] = { { CODE, 0x2000, program } };
	uint64_t mm = new_mm(), t = gf_task(&g, 70, 70, "a", mm, 6, 0);

	(void)state;
	see(t, LIB + 5, 0);
	set_ranges(mm, less, 1);
	see(t, LIB + 5, RETRY);
	sink.log.len = 0;
	load_another(mm, false);
	/* Taken before the look that found it. */
	see(t, LIB + 5, RETRY);
	gf_expect(&sink, "");
	see(t, LIB + 5, RETRY);
	gf_expect(&sink, "map 70 7f0000100000+3000 @1000 /m.so elf\n");
}

/* Files that only their paths tell apart: the inode's address is used again, too. */
static void another_library_without_types(void **state)
{
	uint64_t mm, t;

	(void)state;
	mm_layout.inode_ino = mm_layout.inode_size = mm_layout.inode_sb = LINUX_NO_MEMBER;
	mm_layout.inode_generation = mm_layout.inode_mtime = LINUX_NO_MEMBER;
	mm_layout.inode_mtime_ns = LINUX_NO_MEMBER;
	mm = new_mm();
	t = gf_task(&g, 70, 70, "a", mm, 6, 0);
	see(t, LIB + 5, 0);
	gf_expect(&sink, told(" elf"));
	lm_put64(&g, library + 16, lm_dentry(&g, root, "m.so"));
	see(t, LIB + 5, RETRY);
	gf_expect(&sink, "map 70 7f0000100000+3000 @0 [changed mapping]\n");
}

/* A walk that breaks off is no reason to believe that all behind is as it was. */
static void another_library_and_no_walk(void **state)
{
	uint64_t mm = new_mm(), t = gf_task(&g, 70, 70, "a", mm, 6, 0), vma[2];

	(void)state;
	see(t, LIB + 5, 0);
	gf_expect(&sink, told(" elf"));
	load_another(mm, false);
	/* The first one's structure contradicts itself: the rest is not reached. */
	vma[0] = lm_vma(&g, mm, CODE + 1, CODE + 0x2000, RX, 0, program);
	vma[1] = lm_vma(&g, mm, LIB, LIB + 0x3000, RX, 1, library);
	if (mm_layout.maple) {
		struct lm_range r[] = { { CODE - 1, 0 },
					{ CODE + 0x1fff, vma[0] },
					{ LIB - 1, 0 },
					{ LIB + 0x2fff, vma[1] },
					{ UINT64_MAX, 0 } };

		lm_put64(&g, mm + 40, lm_tree(&g, r, 5, 7, 3, LM_MAPLE_ARANGE));
	} else {
		lm_list(&g, mm, vma, 2);
	}
	see(t, LIB + 5, 2 * LATER);
	gf_expect(&sink, "map 70 400000+2000 @0 [changed mapping]\n"
			 "map 70 7f0000100000+3000 @0 [changed mapping]\n");
	assert_int_equal(guest_maps_stats(maps)->failed, 1);
	/* As long as it lasts. */
	for (unsigned int i = 0; i < 20; i++)
		see(t, LIB + 5, 2 * LATER);
	gf_expect(&sink, "");
	assert_int_equal(guest_maps_stats(maps)->doubtful, 42);
	load_another(mm, false);
	/* It is known from now on, and the sample is from before. */
	see(t, LIB + 5, 2 * LATER);
	gf_expect(&sink, "");
	see(t, LIB + 5, 2 * LATER);
	gf_expect(&sink, "map 70 400000+2000 @0 /prog\n"
			 "map 70 7f0000100000+3000 @1000 /m.so elf\n");
}

/* Nothing of it is known any more, and then something else is there. */
static void library_that_goes(void **state)
{
	const struct range less[] = { { CODE, 0x2000, program } };
	const struct range more[] = { { CODE, 0x2000, program }, { LIB + 0x1000, 0x1000, 0 } };
	uint64_t mm = new_mm(), t = gf_task(&g, 70, 70, "a", mm, 6, 0);

	(void)state;
	see(t, LIB + 5, 0);
	sink.log.len = 0;
	set_ranges(mm, less, 1);
	see(t, LIB + 5, RETRY);
	gf_expect(&sink, "map 70 7f0000100000+3000 @0 [changed mapping]\n");
	set_ranges(mm, more, 2);
	see(t, LIB + 0x1005, REFRESH);
	gf_expect(&sink, "map 70 7f0000101000+1000 @7f0000101000 [jit:70]\n");
	/* And a file where the program had made code. */
	set_ranges(mm, (struct range[]){ { CODE, 0x2000, program }, { LIB, 0x3000, library } }, 2);
	see(t, LIB + 0x1005, RETRY);
	gf_expect(&sink, "map 70 7f0000101000+1000 @0 [changed mapping]\n");
	see(t, LIB + 0x1005, RETRY);
	gf_expect(&sink, "map 70 7f0000100000+3000 @1000 /l.so\n");
}

/* Addresses that nothing covers: looked for less and less often. */
static void broken_stacks(void **state)
{
	uint64_t mm = new_mm(), t = gf_task(&g, 70, 70, "a", mm, 6, 0), n = 0;
	const struct range more[] = { { CODE, 0x2000, program }, { ANON, 0x1000, 0 } };

	(void)state;
	for (unsigned int i = 0; i < 1000; i++)
		see(t, 0x1234, 1000000);
	/* In one second: 0, 20, 60, 140, 300, 620, then each 500 ms or so. */
	assert_in_range(reads(), 5, 8);
	assert_int_equal(guest_maps_stats(maps)->unmapped, 1000);
	for (unsigned int i = 0; i < 10000; i++)
		see(t, 0x1234, 1000000);
	assert_in_range(reads(), 18, 28);
	/* News, and then it is as quick as before. */
	set_ranges(mm, more, 2);
	while (!*gf_log(&sink) && n++ < 1000)
		see(t, ANON, 1000000);
	assert_in_range(n, 1, 700);
	n = reads();
	for (unsigned int i = 0; i < 100; i++)
		see(t, 0x1234, 1000000);
	assert_in_range(reads() - n, 2, 5);
}

static void samples_out_of_order(void **state)
{
	uint64_t t = gf_task(&g, 70, 70, "a", new_mm(), 6, 0);

	(void)state;
	see(t, LIB, 0);
	now -= 1000;
	see(t, 0x1234, 0);
	assert_int_equal(reads(), 1);
}

/* The sink forgot the mappings at the exec: all are told, also where nothing is different. */
static void another_program(void **state)
{
	uint64_t first = new_mm(), second = new_mm(), t = gf_task(&g, 70, 70, "a", first, 6, 0);

	(void)state;
	see(t, LIB, 0);
	lm_put64(&g, t + GF_MM, second);
	see(t, LIB, 10);
	gf_expect(&sink, told(""));
	/* The first one's memory is used again. */
	lm_put64(&g, t + GF_MM, first);
	see(t, LIB, 10);
	gf_expect(&sink, told(""));
	see(t, LIB, 10);
	gf_expect(&sink, "");
	assert_int_equal(guest_maps_stats(maps)->processes, 3);
}

static void number_of_another(void **state)
{
	uint64_t t = gf_task(&g, 70, 70, "a", new_mm(), 6, 0);

	(void)state;
	see(t, LIB, 0);
	lm_put64(&g, t + GF_START, 9);
	see(t, LIB, 10);
	gf_expect(&sink, told(""));
}

/* It makes no difference whether a process is sampled before its threads. */
static void threads(void **state)
{
	uint64_t mm = new_mm(), p = gf_task(&g, 70, 70, "a", mm, 6, 0);

	(void)state;
	see(gf_task(&g, 71, 70, "t", mm, 7, p), LIB, 0);
	gf_expect(&sink, told(" elf"));
	see(p, LIB, 10);
	see(gf_task(&g, 72, 70, "u", mm, 8, p), LIB, 10);
	gf_expect(&sink, "");
	assert_int_equal(reads(), 1);
}

/* An mm goes to another process as soon as it is free. */
static void processes_that_have_ended(void **state)
{
	uint64_t mm = new_mm(), t = gf_task(&g, 70, 70, "a", mm, 6, 0);
	struct sample late = gf_sample(&g, t, now);
	const struct guest_task *seen;
	struct guest_owner owner;
	uint32_t pid, tid;
	uint64_t ip = LIB;

	(void)state;
	late.regs.cr3 = LM_CR3;
	lm_put64(&g, t + GF_MM, 0);
	assert_int_equal(guest_tasks_identify(tasks, &late, &pid, &tid, &seen, NULL), 0);
	sink.log.len = 0;
	owner = guest_maps_owner(maps, seen);
	assert_int_equal(guest_maps_update(maps, &owner, &late, &ip, 1, NULL), 0);
	gf_expect(&sink, "");
	assert_int_equal(guest_maps_stats(maps)->failed, 1);
	assert_string_equal(guest_maps_stats(maps)->why, "the process has ended");
	assert_int_equal(guest_maps_stats(maps)->unmapped, 1);
}

static void unreadable_mappings(void **state)
{
	uint64_t t = gf_task(&g, 70, 70, "a", 0xffffc90000000000, 6, 0), mm;

	(void)state;
	see(t, LIB, 0);
	see(t, LIB, 1);
	gf_expect(&sink, "");
	assert_int_equal(reads(), 1);
	assert_int_equal(guest_maps_stats(maps)->failed, 1);
	assert_non_null(guest_maps_stats(maps)->why);
	assert_int_equal(guest_maps_stats(maps)->unmapped, 4);
	/* A walk that breaks off behind the first: that one is good. */
	mm = new_mm();
	lm_put32(&g, mm + 4, 3);
	t = gf_task(&g, 71, 71, "b", mm, 6, 0);
	see(t, LIB, 0);
	gf_expect(&sink, "map 71 400000+2000 @0 /prog elf\n"
			 "map 71 7f0000100000+3000 @1000 /l.so elf\n");
}

/* A later walk that breaks off takes nothing away. */
static void walk_that_breaks_off(void **state)
{
	uint64_t mm = new_mm(), t = gf_task(&g, 70, 70, "a", mm, 6, 0), first;

	(void)state;
	see(t, LIB, 0);
	memcpy(&first, lm_ptr(&g, mm + 48, 8), 8);
	lm_put64(&g, first, 0xffffc90000000000); /* the first one's next */
	see(t, LIB, REFRESH);
	gf_expect(&sink, "");
	assert_int_equal(guest_maps_stats(maps)->unmapped, 0);
	lm_put64(&g, mm + 48, 0xffffc90000000000);
	see(t, LIB, REFRESH);
	assert_int_equal(guest_maps_stats(maps)->unmapped, 0);
	assert_int_equal(guest_maps_stats(maps)->failed, 2);
	/* In order again, and all as it was. */
	set_ranges(mm, (struct range[]){ { CODE, 0x2000, program }, { LIB, 0x3000, library } }, 2);
	see(t, LIB, REFRESH);
	gf_expect(&sink, "");
}

static void vdso(void **state)
{
	const struct range r[] = { { CODE, 0x2000, program }, { ANON, 0x2000, 0 } };
	uint64_t mm = lm_alloc(&g, LM_MM_SIZE, 8), image = lm_alloc(&g, 16, 8), data;
	uint64_t t = gf_task(&g, 70, 70, "a", mm, 6, 0);
	struct buf elf;

	(void)state;
	gf_elf(&elf, 0xdd, "__vdso_", 5);
	data = lm_alloc(&g, elf.len, 4096);
	memcpy(lm_ptr(&g, data, elf.len), elf.data, elf.len);
	lm_put64(&g, image, elf.len);
	lm_put64(&g, image + 8, data);
	lm_put64(&g, mm + 16, ANON);
	lm_put64(&g, mm + 24, image);
	set_ranges(mm, r, 2);
	see(t, ANON, 0);
	gf_expect(&sink, "map 70 400000+2000 @0 /prog elf\n"
			 "map 70 7f0000300000+2000 @0 [vdso] elf\n");
	assert_int_equal(sink.map.id[0], 0xdd);
	assert_int_equal(sink.map.elf_len, elf.len);
	buf_deinit(&elf);
}

/* A file of no name or a strange one. */
static void names(void **state)
{
	uint64_t top[4] = { lm_dentry(&g, 0, "dev/zero"), lm_dentry(&g, 0, "SYSV00000000"),
			    lm_dentry(&g, 0, "memfd:jit"), lm_dentry(&g, root, "a\n\033[1mb") };
	uint64_t mm = lm_alloc(&g, LM_MM_SIZE, 8), t = gf_task(&g, 70, 70, "a", mm, 6, 0);
	struct range r[6] = { { CODE, 0x1000, 0 } };

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		r[i + 1] = (struct range){ ANON + i * 0x10000, 0x1000,
					   lm_file(&g, mnt, top[i], lm_inode(&g, 20 + i, 4096)) };
	/* No dentry that could be read. */
	r[5] = (struct range){ ANON + 0x50000, 0x1000,
			       lm_file(&g, mnt, 0x1000, lm_inode(&g, 30, 4096)) };
	set_ranges(mm, r, 1);
	see(t, CODE, 0);
	gf_expect(&sink, "map 70 400000+1000 @400000 [jit:70]\n");
	set_ranges(mm, r, 2);
	see(t, CODE, REFRESH);
	gf_expect(&sink, "map 70 7f0000300000+1000 @7f0000300000 [jit:70]\n");
	set_ranges(mm, r, 6);
	see(t, CODE, REFRESH);
	gf_expect(&sink, "map 70 7f0000310000+1000 @2000 [anonymous code]\n"
			 "map 70 7f0000320000+1000 @7f0000320000 [jit:70]\n"
			 "map 70 7f0000330000+1000 @4000 /a\n\033[1mb\n"
			 "map 70 7f0000350000+1000 @5000 [unknown file]\n");
}

/* Code that the program makes: told again when it has grown, and only then. */
static void grows(void **state)
{
	const struct range small[] = { { CODE, 0x2000, program }, { ANON, 0x1000, 0 } };
	const struct range large[] = { { CODE, 0x2000, program }, { ANON, 0x3000, 0 } };
	uint64_t mm = lm_alloc(&g, LM_MM_SIZE, 8), t = gf_task(&g, 70, 70, "a", mm, 6, 0);

	(void)state;
	set_ranges(mm, small, 2);
	see(t, ANON + 0x40, 0);
	sink.log.len = 0;
	see(t, ANON + 0x80, REFRESH);
	gf_expect(&sink, "");
	set_ranges(mm, large, 2);
	see(t, ANON + 0x2040, REFRESH);
	gf_expect(&sink, "map 70 7f0000300000+3000 @7f0000300000 [jit:70]\n");
	assert_int_equal(guest_jit_stats(jit)->regions, 1);
}

/* In the middle of exec: the vDSO is mapped, but not noted in the mm_struct yet. */
static void vdso_of_exec(void **state)
{
	uint64_t mm = lm_alloc(&g, LM_MM_SIZE, 8), t = gf_task(&g, 70, 70, "a", mm, 6, 0);
	uint64_t vma[2] = {
		lm_vma(&g, mm, CODE, CODE + 0x2000, RX, 0, program),
		lm_vma(&g, mm, ANON, ANON + 0x1000, RX | LINUX_VM_DONTEXPAND, 0, 0),
	};

	(void)state;
	lm_list(&g, mm, vma, 2);
	see(t, ANON + 0x40, 0);
	gf_expect(&sink, "map 70 400000+2000 @0 /prog elf\n");
	lm_put64(&g, mm + 16, ANON);
	see(t, ANON + 0x40, REFRESH);
	gf_expect(&sink, "map 70 7f0000300000+1000 @0 [vdso]\n");
	see(t, ANON + 0x40, REFRESH);
	gf_expect(&sink, "");
	assert_int_equal(guest_jit_stats(jit)->regions, 0);
}

static void sink_that_fails(void **state)
{
	uint64_t t = gf_task(&g, 70, 70, "a", new_mm(), 6, 0);
	struct err e = { 0 };

	(void)state;
	sink.fail_at = 3; /* behind fork and comm */
	assert_int_equal(try_see(t, LIB, &e), -ENOSPC);
	assert_non_null(guest_dsos_at(dsos, 0)->elf); /* nobody has it yet */
	see(t, LIB, RETRY);
}

static bool owns_in_kernel(const struct guest_task *task, uint64_t cr3)
{
	const struct sample s = { .mode = SAMPLE_KERNEL, .regs.cr3 = cr3 };
	struct guest_owner owner = guest_maps_owner(maps, task);

	return guest_maps_owns(maps, &owner, &s);
}

static bool owns_in_program(const struct guest_task *task, uint64_t cr3)
{
	const struct sample s = { .mode = SAMPLE_USER, .regs.cr3 = cr3 };
	struct guest_owner owner = guest_maps_owner(maps, task);

	return guest_maps_owns(maps, &owner, &s);
}

/* In the middle of a switch the task is still the one before. */
static void frames_of_another_task(void **state)
{
	const struct guest_task *seen;
	uint64_t t = gf_task(&g, 70, 70, "a", new_mm(), 6, 0);
	struct sample s = gf_sample(&g, t, now);
	uint32_t pid, tid;

	(void)state;
	assert_int_equal(guest_tasks_identify(tasks, &s, &pid, &tid, &seen, NULL), 0);
	assert_true(owns_in_kernel(seen, 0x5000));	     /* not known yet */
	assert_true(owns_in_program(seen, 0x5000 | 0x1003)); /* isolated, a PCID */
	assert_true(owns_in_kernel(seen, 0x4000 | UINT64_C(1) << 63));
	assert_false(owns_in_kernel(seen, 0x8000));
	/* Another program has other tables. */
	lm_put64(&g, t + GF_MM, new_mm());
	s = gf_sample(&g, t, now);
	assert_int_equal(guest_tasks_identify(tasks, &s, &pid, &tid, &seen, NULL), 0);
	assert_true(owns_in_program(seen, 0x8000));
	assert_false(owns_in_kernel(seen, 0x5000));
	assert_int_equal(guest_maps_stats(maps)->foreign, 2);
	/* A kernel thread has no program at all. */
	s = gf_sample(&g, gf_task(&g, 9, 9, "kworker", 0, 6, 0), now);
	assert_int_equal(guest_tasks_identify(tasks, &s, &pid, &tid, &seen, NULL), 0);
	assert_false(owns_in_kernel(seen, 0x8000));
	assert_int_equal(guest_maps_stats(maps)->foreign, 3);
}

static void very_many_processes(void **state)
{
	uint64_t mm = new_mm(), t = gf_task(&g, 70, 70, "a", mm, 6, 0);

	(void)state;
	for (uint32_t i = 0; i < GUEST_MAPS_MAX_PROCESSES; i++) {
		lm_put32(&g, t, 70 + i);
		lm_put32(&g, t + 4, 70 + i);
		see(t, LIB, 10);
	}
	assert_int_equal(guest_maps_stats(maps)->processes, GUEST_MAPS_MAX_PROCESSES);
	lm_put32(&g, t, 70);
	lm_put32(&g, t + 4, 70);
	see(t, LIB, 0);
	gf_expect(&sink, "");
	/* One more: all are forgotten, and told again. */
	lm_put32(&g, t, 70 + GUEST_MAPS_MAX_PROCESSES);
	lm_put32(&g, t + 4, 70 + GUEST_MAPS_MAX_PROCESSES);
	see(t, LIB, 0);
	lm_put32(&g, t, 70);
	lm_put32(&g, t + 4, 70);
	see(t, LIB, 0);
	gf_expect(&sink, told(""));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(told_once),
		T(file_of_two_processes),
		T(changes),
		T(another_library_of_the_same_addresses),
		T(same_library_again),
		T(another_library_after_a_gap),
		cmocka_unit_test_setup_teardown(another_library_of_the_same_addresses, setup_maple,
						teardown),
		T(another_library_and_no_walk),
		cmocka_unit_test_setup_teardown(another_library_and_no_walk, setup_maple, teardown),
		cmocka_unit_test_setup_teardown(another_library_without_types, setup_maple,
						teardown),
		T(library_that_goes),
		T(broken_stacks),
		T(samples_out_of_order),
		T(another_program),
		T(number_of_another),
		T(threads),
		T(processes_that_have_ended),
		T(unreadable_mappings),
		T(walk_that_breaks_off),
		T(vdso),
		T(names),
		T(grows),
		T(vdso_of_exec),
		T(sink_that_fails),
		T(frames_of_another_task),
		T(very_many_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
