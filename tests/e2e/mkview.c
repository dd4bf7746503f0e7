/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a made-up profile with two vCPUs, states of their threads, markers, requests of a disk and
 * packets, for tests of pages.
 *
 *   mkview [-n SAMPLES] [-s] [-t] OUT
 *     -n  samples of each vCPU, 1 ms each (default: 100)
 *     -s  without callers      -t  all samples at one time
 *
 * Of each 10 samples 4 are in the guest's kernel and 1 in its user mode, 2 in KVM, 1 in the VMM, 1
 * waits for a processor and 1 is halted. Names of tasks, markers and disks try to break out.
 */
#include "base/cleanup.h"
#include "base/sample.h"
#include "profile/format/perfdata/sink.h"
#include "profile/format/sink/where.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT 0xffffffff81000000u
#define FUNC 0x90u
#define T0 5000000000u
#define STEP 1000000u
#define HOSTILE "</script><img src=x onerror=alert(1)>"

enum { MAIN, WORK, LEAF, NFUNC };

static const char *const name[NFUNC] = { "view_main", "view_work", "view_leaf" };
static uint8_t text[NFUNC * FUNC];

static size_t read_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	if (va < TEXT || va - TEXT >= sizeof(text))
		return 0;
	if (len > sizeof(text) - (va - TEXT))
		len = sizeof(text) - (va - TEXT);
	memcpy(dst, text + (va - TEXT), len);
	return len;
}

/* The state of a vCPU's thread in its ith sample; user mode is in the guest. */
static enum sample_where state_of(unsigned int i)
{
	static const enum sample_where states[10] = {
		SAMPLE_IN_GUEST, SAMPLE_IN_GUEST, SAMPLE_IN_GUEST, SAMPLE_IN_GUEST, SAMPLE_IN_GUEST,
		SAMPLE_IN_KVM,	 SAMPLE_IN_KVM,	  SAMPLE_IN_VMM,   SAMPLE_RUNNABLE, SAMPLE_HALTED,
	};

	return states[i % 10];
}

static int put_sample(struct sink *sink, unsigned int i, uint32_t cpu, bool stacks, bool times,
		      struct err *e)
{
	static struct stack st;
	struct profile_sample s = { .pid = 1 + cpu,
				    .tid = 1 + cpu,
				    .cpu = cpu,
				    .period = STEP,
				    .mode = i % 10 == 4 ? SAMPLE_USER : SAMPLE_KERNEL,
				    .time_ns = T0 + (times ? (i + 1) * STEP : 0),
				    .stack = &st };

	memset(&st, 0, offsetof(struct stack, ip));
	st.end = STACK_END_ROOT;
	if (state_of(i) != SAMPLE_IN_GUEST && stacks)
		st.ip[st.n++] = where_address(state_of(i));
	for (unsigned int f = i % 2 ? LEAF : WORK; f < NFUNC; f--)
		st.ip[st.n++] = TEXT + f * FUNC + 0x25;
	if (i % 10 == 4)
		st.ip[0] = 0x401000;
	if (i % 10 == 4 || !stacks)
		st.n = 1;
	st.n_kernel = i % 10 == 4 ? 0 : st.n;
	for (unsigned int k = 0; k < st.n; k++)
		st.exact[k] = k == 0;
	return sink->ops->sample(sink, &s, e);
}

static int put_samples(struct sink *sink, unsigned int n, bool stacks, bool times, struct err *e)
{
	int ret = 0;

	for (unsigned int i = 0; i < n && !ret; i++) {
		if (i == n / 2)
			ret = sink->ops->marker(
				sink,
				&(struct profile_marker){ .name = "half " HOSTILE,
							  .time_ns = T0 + (i + 1) * STEP },
				e);
		for (uint32_t cpu = 0; cpu < 2 && !ret; cpu++)
			ret = put_sample(sink, i, cpu, stacks, times, e);
	}
	return ret;
}

static int put_tasks(struct sink *sink, struct err *e)
{
	int ret = sink->ops->comm(sink, &(struct profile_comm){ 1, 1, "worker", false, 1 }, e);

	return ret ? ret
		   : sink->ops->comm(
			     sink, &(struct profile_comm){ 2, 2, "<b>\"x'\xe2\x80\xae", false, 1 },
			     e);
}

static const char totals_json[] =
	"{\"where\":{\"guest\":100000000,\"kvm\":40000000,\"halted\":20000000},"
	"\"requests\":[{\"disk\":\"vda\",\"type\":\"R\",\"sector\":8,\"bytes\":4096,\"comm\":"
	"\"dd\",\"pid\":7,"
	"\"vcpu\":0,\"ok\":true,\"notified_ns\":5010000000,\"taken_ns\":5011000000,\"begun_ns\":"
	"5012000000,"
	"\"done_ns\":5015000000},"
	"{\"disk\":\"vda\",\"type\":\"W\",\"sector\":16,\"bytes\":65536,\"comm\":\"" HOSTILE
	"\",\"pid\":8,"
	"\"vcpu\":1,\"ok\":false,\"notified_ns\":5012000000,\"taken_ns\":5020000000},"
	"{\"disk\":3},{\"disk\":\"vda\"},17],"
	"\"packets\":[{\"card\":\"net0\",\"way\":\"sent\",\"bytes\":1500,\"comm\":\"curl\",\"pid\":"
	"9,"
	"\"vcpu\":0,\"notified_ns\":5040000000,\"done_ns\":5041000000}]}";

int main(int argc, char **argv)
{
	struct sink_perfdata_options opt = { .path = argv[argc - 1] };
	struct profile_info info = { .event = { PROFILE_EVENT_WALL(1000) },
				     .nevents = 1,
				     .markers = true,
				     .vcpus = 2,
				     .hostname = "host",
				     .argc = argc,
				     .argv = argv };
	struct profile_kernel where = { .osrelease = "6.9.0-guest",
					.text = TEXT,
					.end = TEXT + 0x1000000,
					.read_text = read_text };
	struct profile_totals totals = { .json = totals_json };
	struct symtab *syms = symtab_create();
	bool stacks = true, times = true;
	struct sink *sink = NULL;
	unsigned int n = 100;
	struct err e = { 0 };
	int ret, c;

	while ((c = getopt(argc, argv, "n:st")) != -1) {
		if (c == 'n')
			n = (unsigned int)strtoul(optarg, NULL, 10);
		stacks &= c != 's';
		times &= c != 't';
	}
	memset(text, 0x90, sizeof(text));
	symtab_add(syms, TEXT, 0, 'T', "_text");
	for (unsigned int f = 0; f < NFUNC; f++)
		symtab_add(syms, TEXT + f * FUNC, FUNC, 'T', name[f]);
	symtab_add(syms, TEXT + 0x1000000, 0, 'B', "_end");
	symtab_freeze(syms, NULL);
	where.symbols = syms;
	ret = perfdata_sink_create(&sink, &opt, &e);
	ret = ret ? ret : sink->ops->begin(sink, &info, &e);
	ret = ret ? ret : sink->ops->kernel(sink, &where, &e);
	ret = ret ? ret : put_tasks(sink, &e);
	ret = ret ? ret : put_samples(sink, n, stacks, times, &e);
	ret = ret ? ret : sink->ops->end(sink, &totals, &e);
	if (ret)
		fprintf(stderr, "mkview: %s\n", e.text);
	if (sink)
		sink->ops->destroy(sink);
	symtab_destroy(syms);
	return ret ? 1 : 0;
}
