/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a made-up profile of a guest that starts programs without end, and of one process
 * whose code made at run time grows without end.
 *
 *   mkmany OUT SAMPLES EXECS PROGRAMS GROWTHS
 *
 * Each exec maps its program and six libraries, at places of chance, and has its share of
 * the SAMPLES. Each of GROWTHS maps the same place anew, one page longer, with a sample at
 * its end.
 */
#include "base/cleanup.h"
#include "profile/format/perfdata/sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT 0xffffffff81000000u
#define T0 5000000000u
#define PIDS 30000u
#define JIT_PID 7u
#define JIT UINT64_C(0x7f0000000000)
#define LIBRARIES 6u

static struct stack st;
static struct sink *sink;
static struct err e;
static uint64_t now = T0;

static uint64_t next_random(void)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static int map(uint32_t pid, uint64_t addr, uint64_t len, const char *path, uint32_t id)
{
	uint8_t build_id[20] = { 1 };

	memcpy(build_id + 4, &id, sizeof(id));
	return sink->ops->map(sink,
			      &(struct profile_map){ .pid = pid,
						     .tid = pid,
						     .addr = addr,
						     .len = len,
						     .time_ns = now++,
						     .path = path,
						     .build_id = build_id },
			      &e);
}

static int sample(uint32_t pid)
{
	st.n_kernel = 1;
	st.end = STACK_END_USER;
	st.exact[0] = st.exact[1] = 1;
	return sink->ops->sample(
		sink,
		&(struct profile_sample){
			.pid = pid, .tid = pid, .period = 1000, .stack = &st, .time_ns = now++ },
		&e);
}

/* One process from its exec on. */
static int put_program(uint32_t exec, uint32_t programs, uint32_t samples)
{
	uint32_t pid = 100 + exec % PIDS, id = exec % programs;
	uint64_t at[LIBRARIES + 1];
	char path[64];
	int ret = sink->ops->fork(sink, &(struct profile_fork){ pid, pid, 1, 1, now++ }, &e);

	snprintf(path, sizeof(path), "p%u", id);
	if (!ret)
		ret = sink->ops->comm(sink, &(struct profile_comm){ pid, pid, path, true, now++ },
				      &e);
	for (uint32_t i = 0; !ret && i <= LIBRARIES; i++) {
		snprintf(path, sizeof(path), i ? "/lib/l%u.so" : "/bin/p%u", i ? i : id);
		at[i] = (0x550000000000 + (uint64_t)i * 0x10000000000) |
			(next_random() & 0xfffffff000);
		ret = map(pid, at[i], 0x10000, path, i ? i : 100 + id);
	}
	for (uint32_t i = 0; !ret && i < samples; i++) {
		st.n = 3;
		st.ip[0] = TEXT + 0x41 + 0x100 * (next_random() % 64);
		st.ip[1] = at[1 + i % LIBRARIES] + 0x100 * (next_random() % 16);
		st.ip[2] = at[0] + 0x100;
		ret = sample(pid);
	}
	return ret;
}

static int put_growth(uint32_t pages)
{
	int ret = map(JIT_PID, JIT, 4096 * (uint64_t)pages, "//anon", 99);

	st.n = 2;
	st.ip[0] = TEXT + 0x41;
	st.ip[1] = JIT + 4096 * (uint64_t)pages - 8;
	return ret ? ret : sample(JIT_PID);
}

int main(int argc, char **argv)
{
	struct profile_info info = {
		.event = { PROFILE_EVENT_WALL(1000) }, .nevents = 1, .vcpus = 1, .hostname = "host"
	};
	struct symtab *symbols = symtab_create();
	struct profile_kernel kernel = { .symbols = symbols, .text = TEXT, .end = TEXT + 0x10000 };
	struct profile_totals totals = { .json = "{}" };
	struct sink_perfdata_options opt = { 0 };
	uint32_t n[4];
	int ret;

	if (argc != 6)
		return 2;
	opt.path = argv[1];
	for (unsigned int i = 0; i < 4; i++)
		n[i] = (uint32_t)strtoul(argv[2 + i], NULL, 10);
	symtab_add(symbols, TEXT, 0x10000, 'T', "_text");
	ret = symtab_freeze(symbols, &e);
	ret = ret ? ret : perfdata_sink_create(&sink, &opt, &e);
	ret = ret ? ret : sink->ops->begin(sink, &info, &e);
	ret = ret ? ret : sink->ops->kernel(sink, &kernel, &e);
	for (uint32_t i = 0; !ret && i < n[1]; i++)
		ret = put_program(
			i, n[2],
			(uint32_t)((uint64_t)n[0] * (i + 1) / n[1] - (uint64_t)n[0] * i / n[1]));
	for (uint32_t i = 1; !ret && i <= n[3]; i++)
		ret = put_growth(i);
	ret = ret ? ret : sink->ops->end(sink, &totals, &e);
	if (ret)
		fprintf(stderr, "mkmany: %s\n", e.text);
	if (sink)
		sink->ops->destroy(sink);
	symtab_destroy(symbols);
	return ret ? 1 : 0;
}
