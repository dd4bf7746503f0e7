/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/panic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SIZE (1u << 20)
#define LOG 0x8000u /* where the log's records begin, in the kernel's image */

static uint8_t *ram;
static size_t at;
static struct gmem mem;
static struct target t;
static struct run_panic_console console;
static struct summary_panic found;

static int setup(void **state)
{
	(void)state;
	ram = aligned_alloc(4096, SIZE);
	if (!ram)
		return -1;
	memset(ram, 0, SIZE);
	at = LOG;
	mem = (struct gmem){ .region[0] = { 0, SIZE, ram }, .n = 1 };
	t = (struct target){ .osrelease = "6.1.0" };
	t.kernel.seg[0] =
		(struct kimage_segment){ .va = 0xffffffff81000000, .pa = 0, .mem_len = SIZE / 2 };
	t.kernel.nseg = 1;
	console = (struct run_panic_console){ 0 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_deinit(&found.log);
	free(ram);
	return 0;
}

/* A record as struct prb_data_block has it. */
static void record(const char *text)
{
	static const uint8_t id[8] = { 'A', 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, '?' };

	memcpy(ram + at, id, 8);
	memcpy(ram + at + 8, text, strlen(text));
	at = (at + 8 + strlen(text) + 7) & ~(size_t)7;
}

static void find(void)
{
	run_panic_find(&(struct run_panic_places){ .target = &t, .mem = &mem, .console = &console },
		       &found);
}

static bool log_has(const char *text)
{
	return found.log.len && memmem(found.log.data, found.log.len, text, strlen(text));
}

static void reason_and_stack(void **state)
{
	(void)state;
	record("Run /init as init process");
	record("Kernel panic - not syncing: VFS: brokenen\n");
	record("Call Trace:");
	record(" vpanic+0x1/0x2");
	record(" panic+0x1/0x2");
	record("---[ end Kernel panic - not syncing: VFS: broken ]---");
	find();
	assert_true(found.seen && found.log_has_stack);
	assert_string_equal(found.text, "VFS: broken");
	assert_true(log_has("\n panic+0x1/0x2\n"));
	assert_false(log_has("Run /init"));
}

static void after_an_oops(void **state)
{
	(void)state;
	record("BUG: kernel NULL pointer dereference, address: 0");
	record("Call Trace:");
	record(" bad_function+0x1/0x2");
	record("Kernel panic - not syncing: Fatal exception");
	find();
	assert_true(found.seen && found.log_has_stack);
	assert_string_equal(found.text, "Fatal exception");
	assert_true(log_has("BUG: kernel NULL") && log_has(" bad_function"));
}

/* The format of the message is in each kernel. */
static void no_panic(void **state)
{
	static const char *const texts[] = {
		"Kernel panic - not syncing: %s\n",
		"---[ end Kernel panic - not syncing: %s ]---\n",
		"Kernel panic - not syncing: ",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		record(texts[i]);
	/* Beyond the image it may be a program's. */
	at = SIZE - 4096;
	record("Kernel panic - not syncing: of a file");
	find();
	assert_false(found.seen);
}

static void swallow(void *ctx, uint8_t byte)
{
	(void)byte;
	++*(unsigned int *)ctx;
}

static void on_the_console(void **state)
{
	static const char line[] =
		"KKernel panic - KKernel panic - not syncing: Attempted to kill init!\r\nx";
	unsigned int n = 0;

	(void)state;
	console.put = swallow;
	console.ctx = &n;
	for (const char *c = line; *c; c++)
		run_panic_put(&console, (uint8_t)*c);
	assert_int_equal(n, sizeof(line) - 1);
	find();
	assert_true(found.seen);
	assert_string_equal(found.text, "Attempted to kill init!");
	t.osrelease[0] = '\0'; /* no Linux */
	buf_deinit(&found.log);
	find();
	assert_false(found.seen);
}

static void put(const char *text)
{
	for (const char *c = text; *c; c++)
		run_panic_put(&console, (uint8_t)*c);
}

/* The last line counts after the first one only, and not the copy of it that the panic's reason may have. */
static void last_line(void **state)
{
	unsigned int n = 0;

	(void)state;
	console.put = swallow;
	console.ctx = &n;
	put("---[ end Kernel panic - not syncing: x ]---\n");
	assert_false(console.hangs);
	console.matched = console.len = console.done = 0;
	put("[    1.0] Kernel panic - not syncing: x\r\n");
	assert_true(console.done);
	assert_false(console.hangs);
	put("Kernel Offset: disabled\r\n---[ end Kernel panic - not sync");
	assert_false(console.hangs);
	put("ing: x ]---\r\n");
	assert_true(console.hangs);
	assert_int_equal(console.bytes, n);
}

/* Another kernel runs: what the one before wrote is its own panic, which the summary still has. */
static void panic_of_an_earlier_kernel(void **state)
{
	const struct run_panic_live live = { .before = 1, .before_text = "first" };
	const struct run_panic_places places = {
		.target = &t, .mem = &mem, .console = &console, .live = &live
	};
	unsigned int n = 0;

	(void)state;
	console.put = swallow;
	console.ctx = &n;
	put("Kernel panic - not syncing: first\n---[ end Kernel panic - not syncing: first ]---\n");
	assert_true(console.done && console.hangs);
	console.again = true;
	console.done = console.hangs = false;
	run_panic_find(&places, &found);
	assert_false(found.seen);
	assert_int_equal(found.before, 1);
	assert_string_equal(found.before_text, "first");
	put("booting\nKernel panic - not syncing: 2nd\n");
	assert_true(console.done && !console.hangs);
	assert_string_equal(console.text, "2nd");
	buf_deinit(&found.log);
	run_panic_find(&places, &found);
	assert_true(found.seen);
	assert_string_equal(found.text, "2nd");
}

/* A kernel without the variables: samples that were taken before it booted again are of an earlier panic. */
static void samples_of_an_earlier_kernel(void **state)
{
	struct panic_watch watch = { .sampled_ns = 1000 };
	struct run_panic_live live = { 0 };
	const struct run_panic_places places = {
		.target = &t, .mem = &mem, .console = &console, .watch = &watch, .live = &live
	};

	(void)state;
	run_panic_find(&places, &found);
	assert_true(found.seen);
	live.since_ns = 1000;
	buf_deinit(&found.log);
	run_panic_find(&places, &found);
	assert_false(found.seen);
	watch.sampled_ns = 1001;
	buf_deinit(&found.log);
	run_panic_find(&places, &found);
	assert_true(found.seen);
}

/* The variables that the consumer's thread found decide, whatever a program wrote to the console. */
static void variables(void **state)
{
	struct panic_watch watch = { .timeout = 0x104, .image = 0x108, .banner = 0x200 };
	const struct run_panic_places places = {
		.target = &t, .mem = &mem, .console = &console, .watch = &watch
	};
	struct panic_state s;
	unsigned int n = 0;
	int cpu = -1, timeout = 5;
	uint64_t image = 0;

	(void)state;
	console.put = swallow;
	console.ctx = &n;
	put("Kernel panic - not syncing: so says a program\n");
	assert_false(panic_watch_read(&watch, &mem).known);
	run_panic_find(&places, &found);
	assert_true(found.seen);
	watch.cpu = 0x100;
	memcpy(ram + 0x200, "Linux version", 13);
	memcpy(ram + 0x100, &cpu, sizeof(cpu));
	memcpy(ram + 0x104, &timeout, sizeof(timeout));
	memcpy(ram + 0x108, &image, sizeof(image));
	buf_deinit(&found.log);
	run_panic_find(&places, &found);
	assert_false(found.seen);
	cpu = 0;
	image = 0xffff888000000000;
	memcpy(ram + 0x100, &cpu, sizeof(cpu));
	memcpy(ram + 0x108, &image, sizeof(image));
	s = panic_watch_read(&watch, &mem);
	assert_true(s.known && s.panicked && s.have_timeout && s.timeout == 5 && s.crash_kernel);
	buf_deinit(&found.log);
	run_panic_find(&places, &found);
	assert_true(found.seen);
	/* No kernel has as many processors; and after a reboot or a kexec something else lies there. */
	cpu = 0x12345678;
	memcpy(ram + 0x100, &cpu, sizeof(cpu));
	assert_false(panic_watch_read(&watch, &mem).panicked);
	memset(ram, 0, 0x300);
	s = panic_watch_read(&watch, &mem);
	assert_false(s.known || s.panicked);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(reason_and_stack),
		TEST(after_an_oops),
		TEST(no_panic),
		TEST(on_the_console),
		TEST(last_line),
		TEST(variables),
		TEST(panic_of_an_earlier_kernel),
		TEST(samples_of_an_earlier_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
