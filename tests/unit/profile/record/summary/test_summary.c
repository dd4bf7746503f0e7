/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The summary of made-up figures, as text and as JSON. The machine is its counters. */
#include "profile/record/summary/summary.h"

#include "profile/record/summary/facts.h"
#include "vmm/attach/attach.h"
#include "vmm/exact/exact.h"
#include "base/ring.h"
#include "vmm/attach/attach_facts.h"
#include "vmm/attach/foreign.h"
#include "vmm/control.h"
#include "vmm/device.h"
#include "vmm/devices.h"
#include "vmm/end.h"
#include "vmm/quirks.h"
#include "vmm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define T0 UINT64_C(5000)

static struct vcpu_stats stats[2];
static struct ring_head front;
static struct ring ring = { .front = &front };
static struct vm_result result;
static unsigned int vcpus;
static bool with_disk;

unsigned int vm_vcpus(const struct vm *vm)
{
	(void)vm;
	return vcpus;
}

struct vcpu_stats vm_stats(const struct vm *vm, unsigned int i)
{
	(void)vm;
	return stats[i];
}

struct ring *vm_ring(struct vm *vm, unsigned int i)
{
	(void)vm;
	(void)i;
	return &ring;
}

uint64_t vm_first_entry_ns(const struct vm *vm)
{
	(void)vm;
	return T0;
}

uint64_t vm_now_ns(const struct vm *vm)
{
	(void)vm;
	return T0 + 1000 * MS;
}

uint64_t vm_period(const struct vm *vm, unsigned int event)
{
	(void)vm;
	return 2 * MS + event;
}

void vm_set_period(struct vm *vm, unsigned int event, uint64_t p)
{
	(void)vm;
	(void)event;
	(void)p;
}

const struct vm_result *vm_result(const struct vm *vm)
{
	(void)vm;
	return &result;
}

bool vm_is_exact(const struct vm *vm)
{
	(void)vm;
	return false;
}

const struct exact_facts *exact_facts_of(const struct vm *vm)
{
	(void)vm;
	return NULL;
}

void foreign_facts(const struct vm *vm, struct attach_facts *out)
{
	(void)vm;
	*out = (struct attach_facts){
		.pid = 4711,
		.name = "qemu",
		.vcpus = 2,
		.memory = 64 << 20,
		.paused = 800,
		.paused_ns = 812 * UINT64_C(1000000),
		.away_ns = 3 * UINT64_C(1000000),
		.unstarted_ns = UINT64_C(1500000000),
		.thread_stops = 3,
		.sampling_ns = UINT64_C(2000000000),
		.brought = 5 << 20,
		.from_file = 2 << 20,
	};
}

bool vm_disk(const struct vm *vm, unsigned int i, struct vm_disk_info *out)
{
	(void)vm;
	*out = (struct vm_disk_info){ .name = "vda", .path = "/a \"b\"", .overlay_bytes = 3 << 20 };
	out->io.requests[IO_READ] = 5;
	out->io.bytes[IO_READ] = 2 << 20;
	return with_disk && i == 0;
}

bool vm_net(const struct vm *vm, struct net_stats *out)
{
	(void)vm;
	(void)out;
	return false;
}

bool vm_device(const struct vm *vm, unsigned int i, struct vm_device *out)
{
	(void)vm;
	*out = (struct vm_device){ "serial", 0x3f8, 8, 12, 13 };
	return i == 0;
}

const char *vm_device_name(const struct vm *vm, unsigned int device)
{
	(void)vm;
	(void)device;
	return "serial";
}

const char *vm_end_name(enum vm_end_reason reason)
{
	(void)reason;
	return "the guest has ended";
}

void stat_read(struct stat_reader *stat, struct stat_table *out)
{
	(void)stat;
	memset(out, 0, sizeof(*out));
}

const char *vm_exit_name(unsigned int kind)
{
	return kind == 2 ? "IO" : "other";
}

static void no_changes(struct run_control *control, struct json_writer *w)
{
	(void)control;
	json_array_begin(w, "changes");
	json_array_end(w);
	json_put(w, "changes_beyond", 0u, "snapshots", 0u);
}

static struct pipeline_stats p;
static struct run_options opt;
static struct events ev;
static struct target target;
static struct quirks quirks;
static struct markers moments;
static struct cost_bound bound;
static struct pipeline_options asked;
static struct summary s;

static int setup(void **state)
{
	(void)state;
	vcpus = 1;
	with_disk = false;
	memset(stats, 0, sizeof(stats));
	for (int i = 0; i < 100; i++) {
		hist_add(&stats[0].stop_ns, 8 * US);
		hist_add(&stats[0].latency_ns, 16 * US);
	}
	stats[0].samples = 100;
	stats[0].overruns = 300;
	stats[0].exits[2] = 9;
	result = (struct vm_result){ .reason = VM_END_EXIT,
				     .exit_status = 3,
				     .end_ns = T0 + 1500 * MS };
	p = (struct pipeline_stats){ .samples = 100, .weight = 1000, .frames = 450 };
	p.event_samples[0] = 100;
	p.mode_weight[SAMPLE_KERNEL] = 250;
	p.mode_weight[SAMPLE_USER] = 750;
	p.kernel_end[STACK_END_ROOT] = 90;
	p.kernel_end[STACK_END_NO_FP] = 10;
	opt = (struct run_options){ .freq_hz = 997, .jitter = true };
	ev = (struct events){ .n = 1 };
	ev.at[0].vm.kind = VM_EVENT_WALL;
	target = (struct target){ .name = "/boot/vmlinuz" };
	quirks = (struct quirks){ .probe_ns = 77 };
	bound = (struct cost_bound){ 0 };
	markers_init(&moments);
	s = (struct summary){ .opt = &opt,
			      .events = &ev,
			      .target = &target,
			      .present = &target,
			      .quirks = &quirks,
			      .stats = &p,
			      .bound = &bound,
			      .asked = &asked,
			      .moments = &moments,
			      .changes_json = no_changes,
			      .tuned = "" };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	markers_deinit(&moments);
	return 0;
}

static char *text_of(void)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	summary_print(&s, f);
	fclose(f);
	return text;
}

/* Each key once. */
static json_t *json_of(void)
{
	struct buf b;
	json_t *root;

	buf_init(&b);
	summary_json(&s, &b);
	root = json_loadb((const char *)b.data, b.len, JSON_REJECT_DUPLICATES, NULL);
	buf_deinit(&b);
	assert_non_null(root);
	return root;
}

static json_int_t number(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

static void check_line(const char *line)
{
	char *text = text_of();

	if (!strstr(text, line))
		fail_msg("no line %s in:\n%s", line, text);
	free(text);
}

static void a_plain_run(void **state)
{
	char *text = text_of();
	json_t *root = json_of();

	(void)state;
	assert_string_equal(
		text,
		"kvmprof: the guest has ended with status 3 after 1.50 s\n"
		"kvmprof: 100 samples at 997 Hz: 25.0 % kernel, 75.0 % user, 0.0 % idle\n"
		"kvmprof: lost 0 samples; 300 timer periods missed; their time is credited to the "
		"sample before\n"
		"kvmprof: warning: 75 % of the timer's periods were missed, because the host is "
		"busy or the rate is high; a sample represents 4 periods on average, so shares "
		"are less precise\n"
		"kvmprof: kernel stacks: 90 root, 10 no-frame-pointers; 4.5 frames on average\n"
		"kvmprof: note: code without frame pointers and ORC tables has only its "
		"innermost frame\n"
		"kvmprof: note: /boot/vmlinuz has no symbols, so kernel addresses have no "
		"names; give --symbols FILE (vmlinux or System.map of this very kernel)\n"
		"kvmprof: guest stopped per sample: p50 8.0 us, p99 8.0 us, max 8.0 us; kick "
		"latency: p50 16.0 us, p99 16.0 us\n");
	free(text);
	assert_int_equal(number(root, "guest_exit_status"), 3);
	assert_int_equal(number(root, "overruns"), 300);
	assert_int_equal(number(root, "kernel_ns"), 250);
	assert_int_equal(number(json_object_get(root, "exits"), "2_IO"), 9);
	assert_int_equal(number(json_object_get(root, "host"), "probe_ns"), 77);
	assert_true(json_is_null(json_object_get(root, "off_cpu")));
	assert_true(json_is_null(json_object_get(root, "network")));
	assert_true(json_is_null(json_object_get(root, "collecting_from_ns")));
	assert_null(json_object_get(root, "max_overhead"));
	assert_null(json_object_get(root, "attach"));
	json_decref(root);
}

static void costs(void **state)
{
	json_t *root, *cost, *most;

	(void)state;
	vcpus = 2;
	bound = (struct cost_bound){ .limit = 0.01, .changes = 1, .worst = 0.5, .last = 0.0123 };
	bound.nevents = 2;
	opt.max_overhead = 1;
	check_line("\nkvmprof: vCPU 1: 0 samples, 0 lost, 0 periods missed; stopped p50 0.0 us, ");
	check_line("\nkvmprof: the rate was lowered for --max-overhead 1: a sample every 2.000 ms "
		   "at the end, for 1.23 % of the guest's time\n");
	root = json_of();
	cost = json_array_get(json_object_get(root, "cost"), 0);
	assert_int_equal(number(cost, "stopped_total_ns"), 800 * US);
	assert_int_equal(number(json_object_get(cost, "stopped_ns"), "count"), 100);
	most = json_object_get(root, "max_overhead");
	assert_int_equal(number(most, "limit_percent"), 1);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(most, "periods"), 1)),
			 2 * MS + 1);
	json_decref(root);
}

static void parts(void **state)
{
	struct guest_stats *g = &p.guest;
	json_t *root, *guest, *disk;

	(void)state;
	with_disk = true;
	opt.attach = 4711;
	g->is_linux = g->have_maps = g->want_python = g->moves = true;
	strcpy(g->no_tasks, "no types {here}");
	g->slide.status = KSLIDE_SOLVED;
	g->slide.slide = 0x1000000;
	g->jit.names = 50;
	g->jit.doubtful = 7;
	g->python.samples = 20;
	p.offcpu.on = true;
	p.offcpu.period_ns = 1500 * US;
	p.offcpu.look.looks = 4;
	ev.n = 2;
	ev.at[1].dropped = true;
	strcpy(ev.at[1].asked, "cycles");
	strcpy(ev.at[1].why, "no PMU");
	check_line("\nkvmprof: attached to process 4711 (qemu): 2 vCPUs, 64 MiB of guest memory, "
		   "confirmed by 0 proofs\n");
	check_line("\nkvmprof: outside of the shares: 0.812 s of vCPU time while the machine was "
		   "paused (its VMM waited and did not run the guest), 0.003 s while a vCPU's "
		   "thread slept in the VMM for less than 20 ms\n"
		   "kvmprof: outside of the shares: 1.500 s of vCPUs that were never started\n"
		   "kvmprof: 3 stops of vCPU threads, 1.5 a second\n");
	check_line(
		"\nkvmprof: attach made 5.0 MiB of the guest's memory resident by reading it, and "
		"read 2.0 MiB from the file that the memory is mapped from\n");
	check_line("\nkvmprof: event : 100 samples for 0.000 s, one in 0 ns\n");
	check_line("\nkvmprof: note: event cycles: no PMU\nkvmprof: event off-cpu: 0 samples for "
		   "0.000 s of waiting, from 4 scans of all tasks every 1.5 ms; a scan took p50 "
		   "0.00 ms, p99 0.00 ms\n");
	check_line("\nkvmprof: disk vda: 5 reads (2.0 MiB), 0 writes (0.0 MiB), 0 flushes, 0 "
		   "discards, 0 errors; /a \"b\" with 3.0 MiB over it\n"
		   "kvmprof: the kernel's slide is 0x1000000; evidence: its snapshot\n"
		   "kvmprof: note: samples have no tasks: no types {here}\n");
	check_line("\nkvmprof: 7 of 50 names of such code are marked [or older code], because "
		   "earlier ");
	check_line("\nkvmprof: Python: 0 programs; 20 samples with 0 frames of 0 functions\n");
	root = json_of();
	guest = json_object_get(root, "guest");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(guest, "slide"), "slide")),
		"1000000");
	assert_int_equal(number(guest, "jit_names_in_doubt"), 7);
	disk = json_array_get(json_object_get(root, "disks"), 0);
	assert_string_equal(json_string_value(json_object_get(disk, "path")), "/a \"b\"");
	assert_int_equal(number(json_object_get(disk, "read"), "requests"), 5);
	assert_int_equal(number(json_object_get(root, "attach"), "pid"), 4711);
	assert_int_equal(json_array_size(json_object_get(root, "events")), 2);
	json_decref(root);
}

/* Each kind of fact, and each form of a value in a text. */
static void kinds(void **state)
{
	char *text = NULL;
	size_t len;
	struct facts_out o = { .text = open_memstream(&text, &len) };
	struct json_writer w;
	struct buf b;

	(void)state;
	buf_init(&b);
	for (int i = 0; i < 2; i++) {
		if (i) {
			o = (struct facts_out){ .json = &w };
			json_begin(&w, &b);
		}
		facts_object(&o, NULL);
		FACTS(&o, NUM("n", 1500, "{n} {n:1} {n:2/1e3} {n:g/1e3}"), NUM("none", 0, "hidden"),
		      STR("s", "a\"b", "<{s}>"), STR("empty", "", "hidden"), STR("null", NULL),
		      FLAG("yes", true, "{h} {r:3} {t.p50} {t.p99} {t.max:1/1e3}"), HEX("h", 0xabc),
		      REAL("r", 2, 0.12345), REAL("short", FACT_SHORTEST, 0.5),
		      TIMES("t", &stats[0].stop_ns), MAYBE("maybe", true, 4),
		      MAYBE("not", false, 4), VAR("v", 9), NUM_IF(false, "if", 8),
		      LINE(true, "{v} {if}"), LINE(false, "hidden"));
		FACTS_OBJECT(&o, "in", NUM("n", 2, "{n}"));
		facts_object_end(&o);
		if (!i)
			fclose(o.text);
	}
	assert_string_equal(text, "kvmprof: 1500 1500.0 1.50 1.5\nkvmprof: <a\"b>\n"
				  "kvmprof: abc 0.123 8000 8000 8.0\nkvmprof: 9 8\nkvmprof: 2\n");
	buf_u8(&b, 0);
	assert_string_equal((char *)b.data,
			    "{\"n\":1500,\"none\":0,\"s\":\"a\\\"b\",\"empty\":\"\",\"null\":null,"
			    "\"yes\":true,\"h\":\"abc\",\"r\":0.12,\"short\":0.5,\"t\":{\"count\":"
			    "100,\"p50\":8000,\"p99\":8000,\"max\":8000},\"maybe\":4,\"not\":null,"
			    "\"in\":{\"n\":2}}");
	buf_deinit(&b);
	free(text);
}

#define CRASH_AT UINT64_C(0xffffffff81000000)

static struct symtab *one_function(const char *name)
{
	struct symtab *t = symtab_create();

	assert_non_null(t);
	assert_int_equal(symtab_add(t, CRASH_AT, 64, 'T', name), 0);
	assert_int_equal(symtab_freeze(t, NULL), 0);
	return t;
}

/* The stack of a crash has the names of the kernel that crashed, which need not be the first one. */
static void crash_of_a_later_kernel(void **state)
{
	struct target second = { .name = target.name, .symbols = one_function("second") };
	static struct stack crash = { .n = 1, .ip = { CRASH_AT + 4 }, .exact = { 1 } };
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	target.symbols = one_function("first");
	s.present = &second;
	s.crash = &crash;
	result.have_regs = true;
	result.regs.rip = CRASH_AT + 4;
	summary_print_crash(&s, f);
	fclose(f);
	assert_non_null(strstr(text, "ffffffff81000004 second+0x4\n"));
	assert_null(strstr(text, "first"));
	free(text);
	symtab_destroy(target.symbols);
	symtab_destroy(second.symbols);
	target.symbols = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_plain_run, setup, teardown),
		cmocka_unit_test_setup_teardown(costs, setup, teardown),
		cmocka_unit_test_setup_teardown(parts, setup, teardown),
		cmocka_unit_test_setup_teardown(kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(crash_of_a_later_kernel, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
