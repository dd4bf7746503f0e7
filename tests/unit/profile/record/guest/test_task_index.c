/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tasks of samples that lack theirs, found in a later list of all tasks. */
#include "tests/unit/guest_fixture.h"

#include "profile/record/guest/task_index.h"

#include <setjmp.h>

#include <cmocka.h>

/* Behind the members of gf_task(). */
enum { IX_TASKS = 64, IX_THREADS = 80, IX_STACK = 96, IX_SIZE = 128 };
#define IX_PGD 8u
#define IX_STACK_SIZE UINT64_C(1024)
#define IX_TIME UINT64_C(1000000000)

static struct lm g;
static struct memory mem;
static struct linux_task_layout layout;
static struct linux_mm_layout mm_layout;
static bool have_mm = true;
static struct guest_task_index *ix;
static struct sample_task found;
static uint64_t task[8], now;
static size_t ntasks;
static struct {
	struct sample s;
	uint8_t stack[256];
} one;

static bool walk(void *ctx, uint64_t va, uint64_t *gpa)
{
	(void)ctx;
	*gpa = va - LM_DIRECT;
	return va >= LM_DIRECT;
}

static void forget(void *ctx)
{
	(void)ctx;
}

/* A task of its own, or a thread of `leader`. */
static uint64_t put_task(uint32_t tid, uint32_t pid, const char *comm, uint64_t mm, uint64_t leader)
{
	const uint64_t at = lm_alloc(&g, IX_SIZE, 64), stack = lm_alloc(&g, IX_STACK_SIZE, 1024);

	gf_put_task(&g, at, tid, pid, comm, mm, tid, leader);
	lm_put64(&g, at + IX_STACK, stack);
	memset(lm_ptr(&g, stack, IX_STACK_SIZE), (int)tid, IX_STACK_SIZE);
	gf_set_list(&g, at + IX_THREADS, IX_THREADS, NULL, 0);
	if (leader) {
		gf_set_list(&g, leader + IX_THREADS, IX_THREADS, &at, 1);
	} else {
		task[ntasks++] = at;
		gf_set_list(&g, task[0] + IX_TASKS, IX_TASKS, task + 1, ntasks - 1);
	}
	return at;
}

static uint64_t put_mm(uint64_t table)
{
	const uint64_t at = lm_alloc(&g, 64, 64);

	lm_put64(&g, at + IX_PGD, LM_DIRECT + table);
	return at;
}

static int setup(void **state)
{
	(void)state;
	memset(&g, 0, sizeof(g));
	mem = lm_memory(&g);
	ntasks = 0;
	now = IX_TIME;
	layout = gf_task_layout();
	layout.tasks = IX_TASKS;
	layout.thread_group = IX_THREADS;
	layout.stack = IX_STACK;
	mm_layout = (struct linux_mm_layout){ .mm_pgd = IX_PGD };
	layout.init_task = put_task(0, 0, "swapper", 0, 0);
	ix = guest_task_index_create(&(struct guest_task_index_parts){
		.layout = &layout,
		.mm = &mm_layout,
		.have_mm = &have_mm,
		.memory = &mem,
		.stack_size = IX_STACK_SIZE,
		.walk = walk,
		.forget = forget,
	});
	for (size_t i = 0; i < sizeof(g.user); i++)
		g.user[i] = (uint8_t)(i * 7);
	return ix ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	guest_task_index_destroy(ix);
	return 0;
}

/* Copies 128 bytes of a stack as they are now. */
static void add_slice(uint64_t space, uint64_t va)
{
	struct sample *s = &one.s;

	s->slice[s->nslices] = (struct sample_slice){ .va = va, .off = s->stack_len, .len = 128 };
	assert_true(memory_read(&mem, space, va, s->stack + s->stack_len, 128));
	s->stack_len += 128;
	s->nslices++;
}

static void begin_sample(enum sample_mode mode, uint64_t cr3)
{
	memset(&one, 0, sizeof(one));
	one.s.mode = (uint8_t)mode;
	one.s.regs.cr3 = cr3;
	one.s.regs.rip = mode == SAMPLE_USER ? LM_USER : UINT64_C(0xffffffff81000000);
}

static void begin_user(uint64_t cr3)
{
	begin_sample(SAMPLE_USER, cr3);
	add_slice(LM_CR3, LM_USER + 0x100);
}

static void begin_kernel(uint64_t at, uint64_t cr3)
{
	uint64_t stack = 0;

	begin_sample(SAMPLE_KERNEL, cr3);
	assert_true(memory_u64(&mem, at + IX_STACK, &stack));
	add_slice(MEMORY_KERNEL, stack + IX_STACK_SIZE - 128);
}

static bool find(void)
{
	found = (struct sample_task){ 0 };
	return guest_task_index_find(ix, &one.s, now, &found);
}

static void expect(uint32_t tid, uint32_t pid, const char *comm, uint64_t at)
{
	assert_true(find());
	assert_int_equal(found.state, SAMPLE_TASK_FOUND);
	assert_int_equal(found.tid, tid);
	assert_int_equal(found.pid, pid);
	assert_int_equal(found.start, tid);
	assert_int_equal(found.addr, at);
	assert_string_equal(found.comm, comm);
}

static void program_by_its_table(void **state)
{
	uint64_t worker = put_task(70, 70, "worker", put_mm(LM_CR3), 0);

	(void)state;
	put_task(71, 71, "other", put_mm(0x5000), 0);
	/* PCID and the flag that keeps the TLB are no address. */
	begin_user(LM_CR3 | 3 | UINT64_C(1) << 63);
	expect(70, 70, "worker", worker);
	begin_user(0x6000);
	assert_false(find());
	/* Its outermost bytes are others now: the table may be another process's. */
	begin_user(LM_CR3);
	g.user[0x100 + 127] ^= 1;
	assert_false(find());
}

static void thread_by_its_stack(void **state)
{
	uint64_t mm = put_mm(LM_CR3), worker = put_task(70, 70, "worker", mm, 0);
	uint64_t thread = put_task(75, 70, "thread", mm, worker);

	(void)state;
	/* In ring 3 it may be either of the two. */
	begin_user(LM_CR3);
	assert_false(find());
	/* The top of the kernel stack changes with each system call, the program's stack proves it. */
	begin_kernel(thread, LM_CR3);
	add_slice(LM_CR3, LM_USER + 0x100);
	memset(one.s.stack + 64, 0, 64);
	expect(75, 70, "thread", thread);
	g.user[0x100 + 127] ^= 1;
	assert_false(find());
}

static void kernel_thread(void **state)
{
	uint64_t k = put_task(20, 20, "kworker/0:1", 0, 0);

	(void)state;
	begin_kernel(k, 0x9000);
	expect(20, 20, "kworker/0:1", k);
	one.s.stack[127] ^= 1;
	assert_false(find());
}

static void list_is_read_again(void **state)
{
	uint64_t late;

	(void)state;
	begin_user(LM_CR3);
	assert_false(find());
	late = put_task(80, 80, "late", put_mm(LM_CR3), 0);
	assert_false(find());
	now += GUEST_TASK_INDEX_NS + 1;
	expect(80, 80, "late", late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(program_by_its_table, setup, teardown),
		cmocka_unit_test_setup_teardown(thread_by_its_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(kernel_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(list_is_read_again, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
