/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capture of the frames of Python's interpreter, and of what only looks like some. */
#include "vmm/machine.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/capture_fixture.h"
#include "vmm/capture/capture_python.h"

#define PERCPU UINT64_C(0xffff888007800000)
#define TASK UINT64_C(0xffff888003000000)
#define SPACE UINT64_C(0xffff888004000000)
#define STACK UINT64_C(0x7ffc12340000)
/* the thread's state at 0, frames at 0x1000, code at 0x8000 */
#define HEAP UINT64_C(0x7f1234560000)
#define FS UINT64_C(0x7f1234500740)

/* In frames and states of two made-up forms: with shims, and with cframes. */
enum {
	THREAD_ID = 8,
	CURRENT = 16,
	TOP = 24,
	CODE = 0,
	PREVIOUS = 8,
	INSTR = 16,
	OWNER = 24,
	ENTRY = 25
};
enum { FRAME = 32, OF_C = 3 };

static struct fake f;
static int number;

static struct capture_python_layout layout(void)
{
	return (struct capture_python_layout){
		.thread_id = THREAD_ID,
		.current = CURRENT,
		.top = TOP,
		.code = CODE,
		.previous = PREVIOUS,
		.instr = INSTR,
		.owner = OWNER,
		.span = FRAME,
		.is_entry = CAPTURE_NONE,
		.shim = OF_C,
		.id = { 0, 8, CAPTURE_NONE, 16 },
	};
}

static uint64_t frame_at(unsigned int i)
{
	return HEAP + 0x1000 + FRAME * i;
}

static void put_frame(uint64_t at, uint64_t previous, uint8_t owner, unsigned int i)
{
	fake_put64(&f, at + CODE, HEAP + 0x8000 + 64 * (i % 64));
	fake_put64(&f, at + PREVIOUS, previous);
	fake_put64(&f, at + INSTR, 0x500 + i);
	fake_put(&f, at + OWNER, (uint8_t[2]){ owner, 0 }, 2);
}

/* n frames, number 0 innermost, then a shim on the C stack at `shim` (0: none), and no more. */
static void put_chain(unsigned int n, uint64_t shim)
{
	for (unsigned int i = 0; i < n; i++)
		put_frame(frame_at(i), i + 1 < n ? frame_at(i + 1) : shim, 0, i);
	if (shim)
		put_frame(shim, 0, OF_C, 0);
	fake_put64(&f, HEAP + CURRENT, n ? frame_at(0) : shim);
}

static int setup(void **state)
{
	const struct capture_python_layout l = layout();

	(void)state;
	fake_capture_init(&f);
	fake_kvm.msrs = true;
	fake_kvm.kernel_gs = PERCPU;
	fake_map_range(&f, STACK, 8192);
	fake_map_range(&f, HEAP, 0x10000);
	fake_map_range(&f, PERCPU, 4096);
	fake_map_range(&f, TASK, 4096);
	fake_put64(&f, PERCPU, TASK);
	fake_put64(&f, TASK + 16, SPACE);
	f.vm->cfg.plan.user_stack_max = 4096;
	f.vm->cfg.plan.task = (struct capture_task_plan){
		.known = true,
		.percpu = true,
		.members = true,
		.tid = 8,
		.pid = 8,
		.mm = 16,
		.start = CAPTURE_NONE,
		.stack = CAPTURE_NONE,
		.comm = 32,
		.comm_size = 16,
	};
	fake_set_cpl(&f, 3);
	f.v->run->s.regs.sregs.fs.base = FS;
	f.v->run->s.regs.regs.rsp = STACK + 1;
	number = capture_python_find_layout(f.vm, &l);
	assert_int_equal(number, 0);
	capture_python_find_thread(f.vm, &(struct capture_python_thread){ SPACE, FS, HEAP, 0 });
	fake_put64(&f, HEAP + THREAD_ID, FS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(atomic_load(&f.vm->python));
	fake_capture_deinit(&f);
	return 0;
}

static struct sample_python got[SAMPLE_MAX_PYTHON];

/* How many frames; *state: what became of it. */
static unsigned int take(enum sample_python_state *state)
{
	const struct sample *s = fake_take(&f, 4096);
	unsigned int n;

	assert_non_null(s);
	n = s->python.len / (unsigned int)sizeof(got[0]);
	memcpy(got, s->stack + s->python.off, s->python.len);
	*state = (enum sample_python_state)s->python_state;
	/* The stack's bytes are as without. */
	assert_int_equal(s->nslices, 1);
	assert_true(s->slice[0].va == STACK + 1);
	ring_release(&f.v->ring);
	return n;
}

static void expect(enum sample_python_state want, unsigned int n)
{
	enum sample_python_state state;

	assert_int_equal(take(&state), n);
	assert_int_equal(state, want);
}

static void a_chain(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		fake_put64(&f, HEAP + 0x8000 + 64 * i, 0x9000 + i);
	put_chain(3, STACK + 0x100);
	expect(SAMPLE_PYTHON_WHOLE, 3);
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(got[i].frame == frame_at(i));
		assert_true(got[i].code == HEAP + 0x8000 + 64 * i);
		assert_true(got[i].instr == 0x500 + i);
		assert_true(got[i].id[0] == 0x9000 + i && got[i].id[2] == 0);
		assert_true(got[i].entry == (i == 2 ? STACK + 0x100 : 0));
	}
	/* Nothing of Python's runs. */
	put_chain(0, 0);
	expect(SAMPLE_PYTHON_WHOLE, 0);
}

static void somebody_elses(void **state)
{
	(void)state;
	put_chain(3, STACK + 0x100);
	f.v->run->s.regs.sregs.fs.base = FS + 64; /* a thread that nobody has told of */
	expect(SAMPLE_PYTHON_NONE, 0);
	f.v->run->s.regs.sregs.fs.base = FS;
	fake_put64(&f, HEAP + THREAD_ID, FS + 64); /* the state is another thread's by now */
	expect(SAMPLE_PYTHON_NONE, 0);
	fake_put64(&f, HEAP + THREAD_ID, FS);
	fake_put64(&f, TASK + 16, SPACE + 4096); /* another program */
	expect(SAMPLE_PYTHON_NONE, 0);
}

static void deep(void **state)
{
	(void)state;
	put_chain(SAMPLE_MAX_PYTHON, STACK + 0x100);
	expect(SAMPLE_PYTHON_WHOLE, SAMPLE_MAX_PYTHON);
	put_chain(SAMPLE_MAX_PYTHON + 50, STACK + 0x200);
	expect(SAMPLE_PYTHON_CUT, SAMPLE_MAX_PYTHON);
	assert_true(got[SAMPLE_MAX_PYTHON - 1].entry == ((STACK + 0x200) | SAMPLE_PYTHON_SKIPPED));
	/* The rest is of another call. */
	put_chain(SAMPLE_MAX_PYTHON, STACK + 0x100);
	put_frame(STACK + 0x100, frame_at(200), OF_C, 0);
	put_frame(frame_at(200), 0, 0, 1);
	expect(SAMPLE_PYTHON_CUT, SAMPLE_MAX_PYTHON);
	assert_true(got[SAMPLE_MAX_PYTHON - 1].entry == STACK + 0x100);
}

static void lies(void **state)
{
	(void)state;
	put_chain(3, 0);
	fake_put64(&f, frame_at(2) + PREVIOUS, frame_at(0)); /* round and round */
	expect(SAMPLE_PYTHON_CHANGING, 0);
	fake_put64(&f, frame_at(2) + PREVIOUS, frame_at(2));
	expect(SAMPLE_PYTHON_CHANGING, 0);
	fake_put64(&f, frame_at(2) + PREVIOUS, frame_at(1) + 4);
	expect(SAMPLE_PYTHON_CHANGING, 0);
	fake_put64(&f, frame_at(2) + PREVIOUS, 0x1000); /* not mapped */
	expect(SAMPLE_PYTHON_UNREADABLE, 0);
	fake_put64(&f, frame_at(2) + PREVIOUS,
		   TASK); /* the kernel's memory is none of a program's */
	expect(SAMPLE_PYTHON_UNREADABLE, 0);
	put_chain(3, STACK + 0x100);
	fake_put64(&f, frame_at(1) + CODE, TASK);
	expect(SAMPLE_PYTHON_UNREADABLE, 0);
	/* Frames that were left already: above the end of those in use. */
	put_chain(3, STACK + 0x100);
	fake_put64(&f, HEAP + TOP, frame_at(1));
	fake_put64(&f, HEAP + TOP + 8, HEAP + 0x5000);
	expect(SAMPLE_PYTHON_CHANGING, 0);
	fake_put64(&f, HEAP + TOP, frame_at(3));
	expect(SAMPLE_PYTHON_WHOLE, 3);
}

/* As CPython 3.11 has it: a structure on the C stack for each call of the interpreter. */
static void with_cframes(void **state)
{
	struct capture_python_layout l = layout();
	uint64_t inner = STACK + 0x100, outer = STACK + 0x200;

	(void)state;
	l.shim = 0;
	l.is_entry = ENTRY;
	l.cframe = true;
	l.cframe_current = 8;
	l.cframe_previous = 16;
	assert_int_equal(capture_python_find_layout(f.vm, &l), 1);
	capture_python_find_thread(f.vm, &(struct capture_python_thread){ SPACE, FS, HEAP, 1 });
	put_chain(3, 0);
	fake_put(&f, frame_at(1) + ENTRY, (uint8_t[1]){ 1 }, 1);
	fake_put(&f, frame_at(2) + ENTRY, (uint8_t[1]){ 1 }, 1);
	fake_put64(&f, HEAP + CURRENT, inner);
	fake_put64(&f, inner + 8, frame_at(0));
	fake_put64(&f, inner + 16, outer);
	fake_put64(&f, outer + 8, frame_at(2));
	expect(SAMPLE_PYTHON_WHOLE, 3);
	assert_true(got[0].entry == 0 && got[1].entry == inner && got[2].entry == outer);
	/* The outer call's own word of where it is must agree. */
	fake_put64(&f, outer + 8, frame_at(1));
	expect(SAMPLE_PYTHON_CHANGING, 0);
}

static void tables_are_full(void **state)
{
	const struct capture_python_layout l = layout();

	(void)state;
	for (unsigned int i = 1; i < CAPTURE_PYTHON_LAYOUTS; i++)
		assert_int_equal(capture_python_find_layout(f.vm, &l), i);
	assert_int_equal(capture_python_find_layout(f.vm, &l), -ENOSPC);
	/* A layout that nobody has made. */
	put_chain(1, STACK + 0x100);
	capture_python_find_thread(f.vm, &(struct capture_python_thread){ SPACE, FS, HEAP, 77 });
	expect(SAMPLE_PYTHON_NONE, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(somebody_elses, setup, teardown),
		cmocka_unit_test_setup_teardown(deep, setup, teardown),
		cmocka_unit_test_setup_teardown(lies, setup, teardown),
		cmocka_unit_test_setup_teardown(with_cframes, setup, teardown),
		cmocka_unit_test_setup_teardown(tables_are_full, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
