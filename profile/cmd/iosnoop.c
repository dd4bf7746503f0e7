/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_iosnoop: `kvmprof iosnoop`: each request of the guest to its disks, as it ends.
 */
#include "profile/cmd/cmd.h"
#include "profile/cmd/common.h"
#include "profile/cmd/iosnoop_breakdown.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "profile/record/run/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Powers of two of microseconds: up to 9 hours. */
#define BUCKETS 36u
#define STARS 40u

static const char usage[] =
	"Usage: kvmprof iosnoop [--stacks] [--breakdown] [--json] [OPTIONS OF kvmprof run] --disk "
	"PATH [IMAGE]\n"
	"\n"
	"Run a guest and print each request to its disks as it ends, in the format of biosnoop:\n"
	"time, the task that issued it (for delayed writes the kernel's worker), its id, the\n"
	"disk, R, W, F, D or Z (read, write, flush, discard, zeroes), sector, bytes and the time\n"
	"it took; at the end a histogram of these times. It needs nothing in the guest, whose\n"
	"console goes to standard error.\n"
	"\n"
	"      --stacks            the kernel's stack below each line\n"
	"      --breakdown         at the end how long the parts of a request's way took: queue,\n"
	"                          host, interrupt, task; with --json in each object\n"
	"      --json              an object for each request, and one for the histogram\n"
	"  -o, --output PATH       keep a profile, too: kvmprof flamegraph, report\n"
	"  -e, --event LIST        of that profile (default io: by bytes; io:latency: by time;\n"
	"                          with --breakdown io,wall)\n"
	"  -q, --quiet             do not show the guest's console\n"
	"  -h, --help              this text; `kvmprof run --help` has the other options\n";

struct snoop {
	struct run *run;
	bool stacks, json, begun;
	uint64_t count[IO_TYPES], bytes[IO_TYPES], failed;
	uint64_t bucket[BUCKETS];
	struct breakdown *breakdown; /* NULL: not asked for */
};

/* Printable, for a terminal: the guest wrote it. */
static void snoop_task_name(const struct io_who *who, char out[SAMPLE_COMM + 1])
{
	size_t n = 0;

	if (!who || who->task.state != SAMPLE_TASK_FOUND) {
		strcpy(out, "-");
		return;
	}
	for (; n < SAMPLE_COMM && who->task.comm[n]; n++)
		out[n] = who->task.comm[n] > ' ' && who->task.comm[n] < 127 ? who->task.comm[n]
									    : '_';
	out[n] = '\0';
	if (!n)
		strcpy(out, "-");
}

static const char *snoop_frame_name(const struct guest *g, const struct stack *s, unsigned int i,
				    char out[160])
{
	uint64_t ip = i == 0 || s->exact[i] ? s->ip[i] : s->ip[i] - 1, off = 0;
	const struct symbol *sym = guest_kernel_symbol(g, ip, &off);

	if (sym)
		snprintf(out, 160, "%.120s+0x%" PRIx64, sym->name, off + (s->ip[i] - ip));
	else
		snprintf(out, 160, "0x%" PRIx64, s->ip[i]);
	return out;
}

static void snoop_print_line(struct snoop *o, const struct guest *g, const struct io_record *r,
			     const struct io_who *who, double seconds, const char *disk)
{
	char comm[SAMPLE_COMM + 1], pid[16] = "-", frame[160];

	snoop_task_name(who, comm);
	if (who && who->task.state == SAMPLE_TASK_FOUND)
		snprintf(pid, sizeof(pid), "%" PRIu32, who->task.pid);
	if (!o->begun)
		printf("%-11s %-14s %-7s %-7s %-1s %-10s %-8s %7s\n", "TIME(s)", "COMM", "PID",
		       "DISK", "T", "SECTOR", "BYTES", "LAT(ms)");
	printf("%-11.6f %-14s %-7s %-7s %c %-10" PRIu64 " %-8" PRIu64 " %7.2f%s\n", seconds, comm,
	       pid, disk, io_type_letter(r->type), r->sector, r->bytes,
	       (double)(r->complete_ns - r->submit_ns) / 1e6, r->status == IO_OK ? "" : " failed");
	if (o->stacks && who)
		for (unsigned int i = 0; i < who->stack.n_kernel; i++)
			printf("    %s\n", snoop_frame_name(g, &who->stack, i, frame));
}

static void snoop_print_json(struct snoop *o, const struct guest *g, const struct io_record *r,
			     const struct io_who *who, double seconds, const char *disk)
{
	char comm[SAMPLE_COMM + 1], frame[160];
	struct buf b;

	buf_init(&b);
	snoop_task_name(who, comm);
	buf_printf(&b, "{\"time\":%.6f,\"comm\":", seconds);
	if (who && who->task.state == SAMPLE_TASK_FOUND) {
		json_quote(&b, comm);
		buf_printf(&b, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, who->task.pid,
			   who->task.tid);
	} else {
		buf_printf(&b, "null,\"pid\":null,\"tid\":null");
	}
	buf_printf(&b,
		   ",\"disk\":\"%s\",\"type\":\"%c\",\"sector\":%" PRIu64 ",\"bytes\":%" PRIu64
		   ",\"latency_ns\":%" PRIu64 ",\"ok\":%s",
		   disk, io_type_letter(r->type), r->sector, r->bytes,
		   r->complete_ns - r->submit_ns, r->status == IO_OK ? "true" : "false");
	if (o->stacks) {
		buf_printf(&b, ",\"stack\":[");
		for (unsigned int i = 0; who && i < who->stack.n_kernel; i++) {
			buf_printf(&b, "%s", i ? "," : "");
			json_quote(&b, snoop_frame_name(g, &who->stack, i, frame));
		}
		buf_printf(&b, "]");
	}
	if (o->breakdown) {
		breakdown_keep(o->breakdown, &b); /* until the rest of its way is known */
		return;
	}
	buf_printf(&b, "}");
	if (!b.failed)
		printf("%.*s\n", (int)b.len, (const char *)b.data);
	buf_deinit(&b);
}

static void snoop_stages(void *ctx, const struct io_stages *s)
{
	struct snoop *o = ctx;

	breakdown_add(o->breakdown, s);
}

/* On the consumer's thread, the only one that prints to standard output before the end. */
static void snoop_request(void *ctx, const struct guest *g, const struct io_record *r,
			  const struct io_who *who)
{
	struct snoop *o = ctx;
	uint64_t first = vm_first_entry_ns(o->run->vm), us = (r->complete_ns - r->submit_ns) / 1000;
	double seconds = first && r->submit_ns > first ? (double)(r->submit_ns - first) / 1e9 : 0;
	unsigned int k = us ? 64 - (unsigned int)__builtin_clzll(us) : 0;
	struct vm_disk_info d = { .name = "?" };

	(void)vm_disk(o->run->vm, r->device, &d);
	(o->json ? snoop_print_json : snoop_print_line)(o, g, r, who, seconds, d.name);
	fflush(stdout);
	o->begun = true;
	if (r->status != IO_OK || r->type >= IO_TYPES) {
		o->failed++;
		return;
	}
	o->count[r->type]++;
	o->bytes[r->type] += r->bytes;
	o->bucket[k < BUCKETS ? k : BUCKETS - 1]++;
}

/* As biolatency's: how many took from .. to microseconds. */
static void print_histogram(const struct snoop *o)
{
	uint64_t most = 0;
	unsigned int n = 0;

	for (unsigned int i = 0; i < BUCKETS; i++) {
		if (o->bucket[i])
			n = i + 1;
		if (o->bucket[i] > most)
			most = o->bucket[i];
	}
	if (!n)
		return;
	printf("\n%15s %-10s : count    distribution\n", "", "usecs");
	for (unsigned int i = 0; i < n; i++) {
		unsigned int stars = (unsigned int)(o->bucket[i] * STARS / most);
		uint64_t from = i ? UINT64_C(1) << (i - 1) : 0;

		printf("%11" PRIu64 " -> %-11" PRIu64 ": %-8" PRIu64 " |%-*.*s|\n", from,
		       i ? 2 * from - 1 : 0, o->bucket[i], (int)STARS, (int)stars,
		       "****************************************");
	}
}

static void print_json_histogram(const struct snoop *o)
{
	const char *comma = "";

	printf("{\"histogram_us\":[");
	for (unsigned int i = 0; i < BUCKETS; i++) {
		if (!o->bucket[i])
			continue;
		printf("%s{\"from\":%" PRIu64 ",\"to\":%" PRIu64 ",\"count\":%" PRIu64 "}", comma,
		       i ? UINT64_C(1) << (i - 1) : 0, i ? (UINT64_C(1) << i) - 1 : 0,
		       o->bucket[i]);
		comma = ",";
	}
	printf("],\"types\":{");
	for (unsigned int i = 0; i < IO_TYPES; i++)
		printf("%s\"%c\":{\"requests\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", i ? "," : "",
		       "RWFDZ"[i], o -> count[i], o -> bytes[i]);
	printf("},\"failed\":%" PRIu64, o->failed);
	if (o->breakdown)
		breakdown_print_json(o->breakdown);
	printf("}\n");
}

/* Takes --stacks, --breakdown and --help out of argv; -1 or an exit status. */
static int snoop_take_own(struct snoop *o, int *argc, char **argv)
{
	int n = 1;

	for (int i = 1; i < *argc; i++) {
		if (!strcmp(argv[i], "--stacks")) {
			o->stacks = true;
		} else if (!strcmp(argv[i], "--breakdown")) {
			if (!o->breakdown)
				o->breakdown = breakdown_create();
			if (!o->breakdown)
				return cmd_no_memory();
		} else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			fputs(usage, stdout);
			return 0;
		} else {
			argv[n++] = argv[i];
		}
	}
	argv[n] = NULL;
	*argc = n;
	return -1;
}

static int snoop_check(struct snoop *o)
{
	struct run_options *opt = &o->run->asked;
	struct err e = { 0 };

	if (opt->output && run_to_stdout(opt))
		return run_options_wrong(opt, "-o -: standard output has the requests");
	o->json = opt->json;
	opt->json = false;
	/* A task is seen by samples. */
	if (!opt->events.n && events_add(&opt->events, o->breakdown ? "io,wall" : "io", &e) < 0)
		return run_options_wrong(opt, "%s", e.text);
	if (!events_have(&opt->events, EVENT_IO))
		return run_options_wrong(opt, "--event: io or io:latency has to be among them");
	return -1;
}

static int iosnoop(struct snoop *o, int argc, char **argv)
{
	struct run *r = o->run;
	int status = snoop_take_own(o, &argc, argv);

	if (status >= 0)
		return status;
	r->asked.command = "iosnoop";
	status = run_options_parse(&r->asked, argc, argv);
	if (status >= 0)
		return status;
	status = snoop_check(o);
	if (status >= 0)
		return status;
	r->request = snoop_request;
	r->stages = o->breakdown ? snoop_stages : NULL;
	r->request_ctx = o;
	status = run_main(r, argc, argv);
	if (o->json)
		print_json_histogram(o);
	else
		print_histogram(o);
	if (o->breakdown && !o->json)
		breakdown_print(o->breakdown);
	return status;
}

int cmd_iosnoop(int argc, char **argv)
{
	cleanup_free struct run *r = calloc(1, sizeof(*r)); /* large: two stacks of frames */
	struct snoop o = { .run = r };
	int status;

	if (!r)
		return cmd_no_memory();
	status = iosnoop(&o, argc, argv);
	breakdown_destroy(o.breakdown);
	return status;
}
