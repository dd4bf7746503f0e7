/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Stacks as text: what the parsers see in each line, and the profile that comes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "profile/analyse/import/folded.h"
#include "profile/analyse/import/import.h"
#include "profile/analyse/import/iprof.h"
#include "profile/analyse/import/kp.h"
#include "profile/analyse/import/script.h"
#include "profile/format/perfdata/sink.h"
#include "profile/analyse/stacks/coded.h"
#include "profile/analyse/stacks/stackset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- parsers: each sample as one line ---------------------------------------------------- */

static char seen[16 * IMPORT_MAX_FRAMES];
static struct import_stats stats;

static int show(void *ctx, const struct import_sample *s)
{
	size_t n = strlen(seen);

	(void)ctx;
#define ADD(...) n += (size_t)snprintf(seen + n, sizeof(seen) - n, __VA_ARGS__)
	ADD("<%.*s>", (int)s->comm.len, s->comm.s);
	if (s->has_task)
		ADD(" %u/%u", s->pid, s->tid);
	if (s->has_time)
		ADD(" [%u] %llu %.*s", s->cpu, (unsigned long long)s->time_ns, (int)s->event.len,
		    s->event.s);
	ADD(" %llu:", (unsigned long long)s->weight);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct import_frame *f = &s->frame[i];

		char name[64];
		int len = f->name_coded
				  ? (int)coded_read(name, sizeof(name), f->name.s, f->name.len)
				  : (int)f->name.len;

		ADD(" %s'%.*s'", f->kernel ? "k" : "", len, f->name_coded ? name : f->name.s);
		if (f->off)
			ADD("+%llu", (unsigned long long)f->off);
		if (f->dso.len)
			ADD("(%.*s)", (int)f->dso.len, f->dso.s);
	}
	ADD("\n");
	return 0;
}

static struct import_text whole(const char *text)
{
	return (struct import_text){ text, strlen(text) };
}

static void test_kp(void **state)
{
	static const char text[] =
		"a!b is no line before the first stack\n!\n"
		" 0xffffffff81000010 : a<b>(int)+0x10/0x20 [kernel]\n"
		" 0xffffffffc0000010 : ext4_read+0x1/0x20 [ext4]\n"
		" 0x401000 : main+0x0/0x10 [/bin/x y]\n\t12\n"
		"!\r\n  unix`mutex_enter+0x10\r\n  libc.so.1`a+b\r\n  0x401000\r\n  3\r\nbehind\r\n"
		"!\n 0xffffffff81000010\n 0x0 : (idle)+0x0/0x0 [unknown]\n!\n 7\n!\n";
	struct err e = { 0 };

	(void)state;
	*seen = '\0';
	assert_int_equal(import_kp(whole(text), show, NULL, &stats, &e), 0);
	assert_string_equal(seen, "<> 12: k'a<b>(int)'+16([kernel]) k'ext4_read'+1(ext4) "
				  "'main'(/bin/x y)\n"
				  "<> 3: k'mutex_enter'+16(unix) 'a+b'(libc.so.1) ''\n"
				  "<> 1: k'' '(idle)'\n");
	assert_int_equal(stats.samples, 3);
	assert_int_equal(stats.ignored, 1);
	assert_int_equal(stats.first_ignored, 12);
	assert_int_equal(stats.bare, 1);
	assert_int_equal(import_kp(whole("main\n12\n"), show, NULL, &stats, &e), -ENODATA);
}

/* Names are coded if the first line says so, and an address in place of a name is none. */
static void test_coded_kp(void **state)
{
	static const char stacks[] = "!\n 0x401000 : a%2bb%+0x1/0x20 [/bin/x]\n"
				     " 0x0000000000401000 : 0x0000000000401000+0x0/0x0 [[vdso]]\n"
				     "\t1\n!\n";
	struct err e = { 0 };
	char text[256];

	(void)state;
	*seen = '\0';
	snprintf(text, sizeof(text), "Function %s\n%s", CODED_KP_MARK, stacks);
	assert_int_equal(import_kp(whole(text), show, NULL, &stats, &e), 0);
	assert_string_equal(seen, "<> 1: 'a+b%'+1(/bin/x) ''([vdso])\n");
	*seen = '\0';
	assert_int_equal(import_kp(whole(stacks), show, NULL, &stats, &e), 0);
	assert_string_equal(seen, "<> 1: 'a%2bb%'+1(/bin/x) '0x0000000000401000'([vdso])\n");
}

static void test_iprof(void **state)
{
	static const char syms[] = "0x0 0x100 outer%20one [kernel.kallsyms]\nnonsense\n"
				   "0x10 0x20 read [my mod]\n0x100 0x0 rest [kernel.kallsyms]\n";
	static const char user[] = "# image: /bin/a%20b\n# mode: user\n# pid: 7\n# comm: my sh\n"
				   "# future: x\n0x1010 3\r\n0x1040 0\nodd\n0x1050 1\n"
				   "# function: 0x1000 0x20  lead; %20 \n";
	struct import_stats st = { 0 };
	struct import_iprof *p;
	uint64_t ignored;
	struct err e = { 0 };

	(void)state;
	*seen = '\0';
	assert_int_equal(import_iprof_create(&p, whole(syms), &ignored, &e), 0);
	assert_int_equal(ignored, 1);
	assert_int_equal(
		import_iprof(p, "a_b-0123456789abcdef-7.prof", whole(user), show, NULL, &st), 0);
	/* Files without a header: the kernel's, a module's, a program's. */
	assert_int_equal(import_iprof(p, "kernel-0123456789abcdef.prof",
				      whole("0x1 1\n0x100 2\n0x200 3\n"), show, NULL, &st),
			 0);
	assert_int_equal(import_iprof(p, "x-0123456789abcdef.prof",
				      whole("# image: [my mod]\n0x11 1\n0x40 2\n"), show, NULL,
				      &st),
			 0);
	assert_int_equal(import_iprof(p, "libc-2.so-0123456789abcdef-12.prof",
				      whole("0x11 1\n0xffffffffffff0000 1"), show, NULL, &st),
			 0);
	assert_string_equal(seen, "<my sh> 7/7 3: ' lead; %20 '+16(/bin/a%20b)\n"
				  "<my sh> 7/7 1: ''(/bin/a%20b)\n"
				  "<> 1: k'outer one'+1([kernel.kallsyms])\n"
				  "<> 2: k'rest'([kernel.kallsyms])\n"
				  "<> 3: k'rest'+256([kernel.kallsyms])\n"
				  "<> 1: k'read'+1([my mod])\n<> 2: k''([my mod])\n"
				  "<> 12/12 1: ''(libc-2.so)\n<> 12/12 1: k''(libc-2.so)\n");
	assert_int_equal(st.samples, 9);
	assert_int_equal(st.ignored, 1);
	assert_int_equal(st.first_ignored, 8);
	import_iprof_destroy(p);
}

static void folded(const char *text, enum import_first first, const char *want)
{
	struct err e = { 0 };
	int ret;

	seen[0] = '\0';
	ret = import_folded(whole(text), first, show, NULL, &stats, &e);
	assert_string_equal(seen, want);
	assert_int_equal(ret, *want ? 0 : -ENODATA);
}

static void test_folded(void **state)
{
	(void)state;
	folded("sh;main;work 30\n", IMPORT_FIRST_IS_COMM, "<sh> 30: 'work' 'main'\n");
	folded("sh;main;work 30", IMPORT_FIRST_IS_FRAME, "<> 30: 'work' 'main' 'sh'\n");
	/* Spaces and digits are parts of names; the last word is the count. */
	folded("my prog;operator new[];foo 12 34\r\n", IMPORT_FIRST_IS_COMM,
	       "<my prog> 34: 'foo 12' 'operator new[]'\n");
	folded("a;b 1.5\na;b 1.4\n", IMPORT_FIRST_IS_COMM, "<a> 2: 'b'\n<a> 1: 'b'\n");
	folded("a-12/34;b 1\n", IMPORT_FIRST_IS_COMM, "<a> 12/34 1: 'b'\n");
	folded("kworker/0:1-ev;b 1\nx-7;b 1\n", IMPORT_FIRST_IS_COMM,
	       "<kworker/0:1-ev> 1: 'b'\n<x-7> 1: 'b'\n");
	folded("a;b_[k];c_[j];d_[i];e_[x] 1\n", IMPORT_FIRST_IS_COMM,
	       "<a> 1: 'e_[x]' 'd' 'c'([jit]) k'b'\n");
	assert_int_equal(stats.ignored, 0);
	folded("# a;b 1\n\na;b\na;b x\na;b 5\na 5\na;b 0\n", IMPORT_FIRST_IS_COMM,
	       "<a> 5: 'b'\n<a> 0: 'b'\n");
	assert_int_equal(stats.ignored, 2);
	assert_int_equal(stats.first_ignored, 3);
	assert_int_equal(stats.bare, 1);
	/* One mark is taken off, one blank is in front of the count and of a name that begins like a comment. */
	folded(" #a;b_[k]_[i];c  7\n  #a;b 1\n", IMPORT_FIRST_IS_COMM,
	       "<#a> 7: 'c ' 'b_[k]'\n< #a> 1: 'b'\n");
	folded("a;b 99999999999999999999\n", IMPORT_FIRST_IS_COMM, "");
	folded("", IMPORT_FIRST_IS_COMM, "");
}

static void test_deep(void **state)
{
	static char text[3 * IMPORT_MAX_FRAMES + 64];
	size_t n = 0;

	(void)state;
	n += (size_t)sprintf(text, "comm");
	for (unsigned int i = 0; i < IMPORT_MAX_FRAMES + 5; i++)
		n += (size_t)sprintf(text + n, ";%c", i < 5 ? 'o' : 'i');
	sprintf(text + n, " 1\n");
	seen[0] = '\0';
	assert_int_equal(import_folded(whole(text), IMPORT_FIRST_IS_COMM, show, NULL, &stats, NULL),
			 0);
	assert_int_equal(stats.dropped, 5);
	/* The outer ones. */
	assert_null(strstr(seen, "'o'"));
}

static void script(const char *text, const char *want)
{
	struct err e = { 0 };
	int ret;

	seen[0] = '\0';
	ret = import_script(whole(text), show, NULL, &stats, &e);
	assert_string_equal(seen, want);
	assert_int_equal(ret, *want ? 0 : -ENODATA);
}

static void test_script(void **state)
{
	(void)state;
	script("swapper     0 [003]     5.000001:    1000000 wall: \n"
	       "\tffffffff81000341 guest_idle+0x41 ([kernel.kallsyms])\n"
	       "\t          401010 main+0x10 (/bin/a)\n\n",
	       "<swapper> 0/0 [3] 5000001000 wall 1000000: k'guest_idle'+65([kernel.kallsyms]) "
	       "'main'+16(/bin/a)\n");
	/* Names with spaces, a process's number, no CPU, no period, no blank line at the end. */
	script("my prog 1 12/34 6.5: cycles:u: \n"
	       "\t401010 operator new(unsigned long)+0x10 (/bin/a b (deleted))\n"
	       "\t401011 f(int) const (/lib/x (2).so)\n"
	       "\t401012 [unknown] ([unknown])",
	       "<my prog 1> 12/34 [0] 6500000000 cycles:u 1: "
	       "'operator new(unsigned long)'+16(/bin/a b (deleted)) 'f(int) const'(/lib/x (2).so) "
	       "''([unknown])\n");
	/* Samples of one line; a module; the kernel by its address. */
	script("   ls  1234 77.000001:     250000 cpu-clock:  ffffffffc0001000 foo+0x1 ([ext4])\n"
	       "   ls  1234 77.000002:          1 cpu-clock:  7f12 bar (/x)\n",
	       "<ls> 1234/1234 [0] 77000001000 cpu-clock 250000: k'foo'+1([ext4])\n"
	       "<ls> 1234/1234 [0] 77000002000 cpu-clock 1: 'bar'(/x)\n");
	/* Inlined functions belong to what is around them; source lines are not frames. */
	script("a 1 1.0: 1 e: \n\tff a (inlined)\n  a.c:12\n\tff b+0x2 (/b)\n  b.c:3\n\n",
	       "<a> 1/1 [0] 1000000000 e 1: 'a'(/b) 'b'+2(/b)\n");
	assert_int_equal(stats.ignored, 0);
	/* Names of tasks, events, functions and files that look like something else. */
	script("1 [0] 2.0:     7 [001]     5.000001:          3 my event: \n"
	       "\t          401010  [x] (y)+0x1+0x10 (/a (b/c d)\n"
	       "\t          401010 [unknown]+0x1 ([unknown])\n"
	       "\t          401010 [unknown] (/a (b)\n\n"
	       "#c 7 5.1: 1 sched:sched_switch: x=a 1 9.0: b:\n\t1 a (b)\n",
	       "<1 [0] 2.0:> 7/7 [1] 5000001000 my event 3: ' [x] (y)+0x1'+16(/a (b/c d) "
	       "'[unknown]'+1([unknown]) ''(/a (b)\n"
	       "<#c> 7/7 [0] 5100000000 sched:sched_switch 1: 'a'(b)\n");
	script("# a\nnonsense\na 1 1.0: 1 e: \n\na 1 2.0: 3 e: \n\tff b (c)\n\n",
	       "<a> 1/1 [0] 2000000000 e 3: 'b'(c)\n");
	assert_int_equal(stats.ignored, 1);
	assert_int_equal(stats.first_ignored, 2);
	assert_int_equal(stats.bare, 1);
	script("a 99999999999 1.0: 1 e: \n\tff b (c)\n\n", "");
	script("a 1 99999999999.0: 1 e: \n\tff b (c)\n\n", "");
}

/* -- profiles ------------------------------------------------------------------------------ */

static char root[64];
static struct stackset *set;

static int setup(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/kvmprof-test.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	stackset_destroy(set);
	set = NULL;
	return file_remove_tree(root, NULL);
}

/* `shown`: the event of the profile that is loaded; NULL: the first. */
static void make_event(const char *text, bool is_folded, struct import_options opt,
		       struct import_facts *facts, const char *shown)
{
	char path[96], cache[96];
	struct sink_perfdata_options o = { .path = path, .buildid_dir = cache };
	struct profile_info info = { .event = { PROFILE_EVENT_WALL(1000) },
				     .nevents = 1,
				     .vcpus = 1 };
	struct stackset_options load = { 0 };
	struct err e = { 0 };
	struct import *i;
	struct sink *sink;

	snprintf(path, sizeof(path), "%s/p", root);
	snprintf(cache, sizeof(cache), "%s/cache", root);
	load.input = path;
	load.buildid_dir = cache;
	load.event = shown;
	assert_int_equal(import_create(&i, &opt, NULL), 0);
	if (is_folded)
		assert_int_equal(import_folded(whole(text), IMPORT_FIRST_IS_COMM, import_add, i,
					       &stats, NULL),
				 0);
	else
		assert_int_equal(import_script(whole(text), import_add, i, &stats, NULL), 0);
	assert_int_equal(perfdata_sink_create(&sink, &o, &e), 0);
	if (import_write(i, sink, &info, facts, &e))
		fail_msg("%s", e.text);
	sink->ops->destroy(sink);
	import_destroy(i);
	stackset_destroy(set);
	set = NULL;
	if (stackset_load(&set, &load, &e))
		fail_msg("%s", e.text);
}

static void make(const char *text, bool is_folded, struct import_options opt,
		 struct import_facts *facts)
{
	make_event(text, is_folded, opt, facts, NULL);
}

static void has(const char *text, const char *comm, enum stackset_mode mode, uint64_t weight)
{
	char got[512];

	for (size_t i = 0; i < set->nstacks; i++) {
		const struct stackset_stack *s = &set->stack[i];
		size_t n = 0;

		got[0] = '\0';
		for (uint32_t k = 0; k < s->n; k++) {
			const struct stackset_frame *f = &set->frame[s->frame[k]];

			n += (size_t)snprintf(
				got + n, sizeof(got) - n, "%s%s+%llu(%s)", k ? " " : "",
				set->func[f->func].named ? set->func[f->func].name : "?",
				(unsigned long long)f->off, set->func[f->func].dso);
		}
		if (strcmp(got, text) || strcmp(set->task[s->task].comm, comm))
			continue;
		assert_int_equal(s->mode, mode);
		assert_int_equal(s->weight, weight);
		return;
	}
	fail_msg("no stack %s (the last was %s)", text, got);
}

static void test_folded_profile(void **state)
{
	struct import_facts facts;

	(void)state;
	make("sh;main;work 30\nsh;main;work;sys_write_[k] 10\nmy prog-12/34;main;a b 60\n", true,
	     (struct import_options){ .counts = true }, &facts);
	assert_int_equal(set->samples, 100);
	assert_int_equal(set->weight, 100);
	assert_string_equal(set->event, "samples");
	assert_false(set->weight_is_ns);
	has("work+0(imported) main+0(imported)", "sh", STACKSET_USER, 30);
	has("sys_write+0([kernel.kallsyms]) work+0(imported) main+0(imported)", "sh",
	    STACKSET_KERNEL, 10);
	has("a b+0(imported) main+0(imported)", "my prog", STACKSET_USER, 60);
	/* Larger ones stay weights. */
	make("sh;main 1000000\nsh;work 1\n", true,
	     (struct import_options){ .counts = true, .event = "wall", .kernel = true }, &facts);
	assert_int_equal(set->samples, 2);
	assert_int_equal(set->weight, 1000001);
	assert_true(set->weight_is_ns);
	has("main+0([kernel.kallsyms])", "sh", STACKSET_KERNEL, 1000000);
	/* Code without a file has no file, unless it is the kernel's. */
	make("sh;main;compiled_[j] 3\nsh;main_[k];compiled_[j] 4\n", true,
	     (struct import_options){ .counts = true }, &facts);
	has("compiled+0([jit]) main+0(imported)", "sh", STACKSET_USER, 3);
	has("compiled+0([kernel.kallsyms]) main+0([kernel.kallsyms])", "sh", STACKSET_KERNEL, 4);
}

static void test_script_profile(void **state)
{
	static const char text[] = "swapper     0 [000]     5.000001:    100 wall: \n"
				   "\tffffffff81000341 idle+0x41 ([kernel.kallsyms])\n\n"
				   "sh     7/8 [001]     5.000002:    1000 wall: \n"
				   "\tffffffffc0000341 mod_read+0x1 ([ext4])\n"
				   "\tffffffff81000341 read+0x1ff ([kernel.kallsyms])\n"
				   "\t7f0000000341 libc_read+0x80000 (/lib/libc.so)\n"
				   "\t7f0000000000 [unknown] (/lib/libc.so)\n\n"
				   "bash     7/8 [001]     5.000003:    10000 wall: \n"
				   "\t7f0000000341 libc_read+0x7 (/lib/libc.so)\n"
				   "\tffffffff81000341 odd+0x2 ([kernel.kallsyms])\n"
				   "\t123 [unknown] ([unknown])\n\n";
	struct import_facts facts;

	(void)state;
	make(text, false, (struct import_options){ 0 }, &facts);
	assert_int_equal(set->first_ns, 5000001000u);
	assert_int_equal(set->last_ns, 5000003000u);
	assert_true(set->weight_is_ns);
	assert_int_equal(set->ncpus, 2);
	has("idle+65([kernel.kallsyms])", "swapper", STACKSET_IDLE, 100);
	has("mod_read+1([ext4]) read+511([kernel.kallsyms]) libc_read+524288(/lib/libc.so) "
	    "?+0(/lib/libc.so)",
	    "sh", STACKSET_KERNEL, 1000);
	/* A caller of kernel code belongs to the kernel. */
	has("libc_read+7([libc.so]) odd+2([kernel.kallsyms]) ?+0([unknown])", "bash",
	    STACKSET_KERNEL, 10000);
	assert_int_equal(facts.cut, 0);
}

static void test_events(void **state)
{
	static const char text[] =
		"app 1/1 [0] 5.1: 250 cpu-clock:\n\tffffffff81000100 busy ([kernel.kallsyms])\n\n"
		"app 1/1 [0] 5.2: 1 sched:sched_switch: prev_comm=app prev_pid=1\n"
		"\tffffffff81000200 __schedule ([kernel.kallsyms])\n\n"
		"app 1/1 [0] 5.3: 1000 page-faults:\n\tffffffff81000300 fault "
		"([kernel.kallsyms])\n";
	static const char name[] = "%s 1/1 [0] 5.1: 7 event-%u:\n\t401000 main (/bin/a)\n\n";
	static const char *const want[] = { "cpu-clock", "sched:sched_switch", "page-faults" };
	struct import_facts facts;
	char many[1024];
	size_t n = 0;

	(void)state;
	make(text, false, (struct import_options){ 0 }, &facts);
	assert_int_equal(facts.nevents, 3);
	for (unsigned int k = 0; k < 3; k++) {
		assert_string_equal(facts.event[k].name, want[k]);
		assert_int_equal(facts.event[k].samples, 1);
	}
	assert_int_equal(set->weight, 250);
	has("busy+0([kernel.kallsyms])", "app", STACKSET_KERNEL, 250);
	make_event(text, false, (struct import_options){ 0 }, &facts, "page-faults");
	assert_int_equal(set->weight, 1000);
	has("fault+0([kernel.kallsyms])", "app", STACKSET_KERNEL, 1000);
	/* One event alone, which need not be the first. */
	make(text, false, (struct import_options){ .event = "sched:sched_switch" }, &facts);
	assert_int_equal(facts.nevents, 1);
	assert_string_equal(set->event, "sched:sched_switch");
	assert_int_equal(set->weight, 1);
	/* A profile has eight events. What is left out is counted. */
	for (unsigned int k = 0; k < PROFILE_MAX_EVENTS + 2; k++)
		n += (size_t)snprintf(many + n, sizeof(many) - n, name, "app", k);
	make(many, false, (struct import_options){ 0 }, &facts);
	assert_int_equal(facts.nevents, PROFILE_MAX_EVENTS);
	assert_int_equal(facts.other, 2);
	assert_int_equal(set->weight, 7);
}

static void test_unknown_event(void **state)
{
	static const char text[] = "app 1/1 [0] 5.1: 2 a:\n\t401000 main (/bin/a)\n\n"
				   "app 1/1 [0] 5.2: 3 b:\n\t401000 main (/bin/a)\n\n";
	const struct profile_info info = { .event = { PROFILE_EVENT_WALL(1000) }, .nevents = 1 };
	const struct import_options opt = { .event = "c" };
	struct import_facts facts;
	struct err e = { 0 };
	struct import *i;

	(void)state;
	assert_int_equal(import_create(&i, &opt, NULL), 0);
	assert_int_equal(import_script(whole(text), import_add, i, &stats, NULL), 0);
	assert_int_equal(import_write(i, NULL, &info, &facts, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no sample has the event c"));
	import_destroy(i);
}

/* The later one of two captures comes first in the text. */
static void test_times_that_go_back(void **state)
{
	static const char text[] = "java 8/8 [0] 9.0: 10 wall:\n\t401000 late (/bin/a)\n\n"
				   "java 8/8 [0] 9.1: 10 wall:\n\t401000 late (/bin/a)\n\n"
				   "sh 8/8 [0] 1.0: 30 wall:\n\t401000 early (/bin/a)\n\n"
				   "java 8/8 [0] 2.0: 50 wall:\n\t401000 early (/bin/a)\n\n";
	struct import_facts facts;

	(void)state;
	make(text, false, (struct import_options){ 0 }, &facts);
	assert_int_equal(set->first_ns, 1000000000u);
	has("early+0(/bin/a)", "sh", STACKSET_USER, 30);
	has("early+0(/bin/a)", "java", STACKSET_USER, 50);
	has("late+0(/bin/a)", "java", STACKSET_USER, 20);
}

static void test_periods(void **state)
{
	static const char text[] =
		"a 8/8 [0] 1.0: 0 cycles:\n\t401000 zero (/bin/a)\n\n"
		"a 8/8 [0] 1.1: 9223372036854775807 cycles:\n\t401000 most (/bin/a)\n\n"
		"a 8/8 [0] 1.2: 18446744073709551615 cycles:\n\t401000 broken (/bin/a)\n\n"
		"a 8/8 [0] 1.3: 99999999999999999999999 cycles:\n\t401000 broken (/bin/a)\n";
	struct import_facts facts;

	(void)state;
	make(text, false, (struct import_options){ 0 }, &facts);
	assert_int_equal(stats.bare, 0);
	assert_int_equal(stats.broken, 2);
	assert_int_equal(set->samples, 4);
	has("zero+0(/bin/a)", "a", STACKSET_USER, 0);
	has("most+0(/bin/a)", "a", STACKSET_USER, INT64_MAX);
	has("broken+0(/bin/a)", "a", STACKSET_USER, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_script),
		cmocka_unit_test_setup_teardown(test_folded_profile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_script_profile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_events, setup, teardown),
		cmocka_unit_test(test_unknown_event),
		cmocka_unit_test(test_kp),
		cmocka_unit_test(test_coded_kp),
		cmocka_unit_test(test_iprof),
		cmocka_unit_test_setup_teardown(test_times_that_go_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_periods, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
