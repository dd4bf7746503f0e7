/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_iosnoop: `kvmprof iosnoop`: each request of the guest to its disks, as it ends.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/hist.h"
#include "base/json.h"
#include "base/option.h"
#include "profile/cmd/common.h"
#include "profile/record/options/options.h"
#include "profile/record/pipeline/io_stages.h"
#include "profile/record/run/run.h"
#include "vmm/devices.h"
#include "vmm/vm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The parts, in order; WHOLE is from the first moment that is seen to the last. */
enum part { PART_QUEUE, PART_WAIT, PART_HOST, DIFFERENCE_INTERRUPT, PART_TASK, PART_WHOLE, PARTS };

static const struct {
	const char *name, *key, *told;
} parts[PARTS] = {
	{ "queue", "queue_ns", "from the notification until it was taken out of the queue" },
	{ "thread", "thread_ns", "until a thread of the host began it" },
	{ "host", "host_ns", "until it was carried out" },
	{ "interrupt", "interrupt_ns", "until the guest acknowledged the disk's interrupt" },
	{ "task", "task_ns", "until the task that asked was seen to run" },
	{ "whole", "whole_ns", "from the notification to that" },
};

struct breakdown {
	struct hist of[PARTS];
	uint64_t requests, failed, without_task, raised;
	/* Open objects: added - taken of them. No more requests wait for their stages. */
	struct buf kept[IO_STAGES_WAITING + 1];
	uint64_t added, taken;
};

/* Returns NULL if out of memory. */
static struct breakdown *breakdown_create(void)
{
	return calloc(1, sizeof(struct breakdown));
}

static void breakdown_destroy(struct breakdown *b)
{
	if (!b)
		return;
	while (b->taken < b->added)
		buf_deinit(&b->kept[b->taken++ % ARRAY_SIZE(b->kept)]);
	free(b);
}

/*
 * Takes over a request's JSON object that is still open, and prints it with its stages when they
 * come.
 */
static void breakdown_keep(struct breakdown *b, struct buf *object)
{
	b->kept[b->added++ % ARRAY_SIZE(b->kept)] = *object;
}

/* Sets *ns to the time that a part of the request's way took. Returns false if one of its ends was not seen. */
static bool part_of(const struct io_stages *s, enum part part, uint64_t *ns)
{
	uint64_t back = s->handled_ns ? s->handled_ns : s->r.complete_ns;
	const uint64_t ends[PARTS][2] = {
		[PART_QUEUE] = { s->r.notified_ns, s->r.submit_ns },
		[PART_WAIT] = { s->r.submit_ns, s->r.begun_ns },
		[PART_HOST] = { s->r.begun_ns, s->r.complete_ns },
		[DIFFERENCE_INTERRUPT] = { s->r.complete_ns, s->handled_ns },
		[PART_TASK] = { back, s->sign_ns },
		[PART_WHOLE] = { io_stages_begin(s), s->sign_ns },
	};

	if (!ends[part][0] || !ends[part][1] || ends[part][1] < ends[part][0])
		return false;
	*ns = ends[part][1] - ends[part][0];
	return true;
}

static void print_object(struct buf *object, const struct io_stages *s)
{
	struct json_writer w;

	json_begin_members(&w, object);
	json_object_begin(&w, "stages");
	io_stages_json(s, &w);
	json_object_end(&w);
	(void)json_close(&w, stdout);
	fflush(stdout);
}

/* In the order in which objects were kept. */
static void breakdown_add(struct breakdown *b, const struct io_stages *s)
{
	uint64_t ns;

	if (b->taken < b->added)
		print_object(&b->kept[b->taken++ % ARRAY_SIZE(b->kept)], s);
	if (s->r.status != IO_OK) {
		b->failed++;
		return;
	}
	b->requests++;
	b->raised += s->raised_ns != 0;
	b->without_task += s->task.state != SAMPLE_TASK_FOUND;
	for (unsigned int i = 0; i < PARTS; i++)
		if (part_of(s, i, &ns))
			hist_add(&b->of[i], ns);
}

/* Prints a line for each part that cannot be seen, and no guess. */
static void print_unseen(const struct breakdown *b)
{
	printf("Not seen: what the guest does before the notification, and the exit's way through "
	       "KVM.\n");
	if (b->without_task)
		printf("Of %" PRIu64 " requests it is not known which task asked.\n",
		       b->without_task);
	if (b->raised > b->of[DIFFERENCE_INTERRUPT].count)
		printf("%" PRIu64
		       " interrupts were not seen to be acknowledged: an MSI (virtio-pci) "
		       "needs no access; --virtio mmio has one.\n",
		       b->raised - b->of[DIFFERENCE_INTERRUPT].count);
	if (b->requests > b->raised)
		printf("Of %" PRIu64
		       " requests the guest wanted no interrupt: it was looking already.\n",
		       b->requests - b->raised);
	printf("A task is seen by samples and by its own notifications: later than its wake-up, by "
	       "up to a period.\n");
}

/* To standard output. */
static void breakdown_print(const struct breakdown *b)
{
	if (!b->requests)
		return;
	printf("\n%-10s %9s %10s %10s %10s %10s %10s  (us)\n", "PART", "REQUESTS", "MEAN", "P50",
	       "P90", "P99", "MAX");
	for (unsigned int i = 0; i < PARTS; i++) {
		const struct hist *h = &b->of[i];

		printf("%-10s %9" PRIu64, parts[i].name, h->count);
		if (h->count)
			printf(" %10.1f %10.1f %10.1f %10.1f %10.1f",
			       (double)h->sum / (double)h->count / 1e3,
			       (double)hist_quantile(h, 500) / 1e3,
			       (double)hist_quantile(h, 900) / 1e3,
			       (double)hist_quantile(h, 990) / 1e3, (double)h->max / 1e3);
		else
			printf(" %10s %10s %10s %10s %10s", "-", "-", "-", "-", "-");
		printf("  %s\n", parts[i].told);
	}
	print_unseen(b);
}

/* Writes the member "breakdown". */
static void breakdown_json(const struct breakdown *b, struct json_writer *w)
{
	json_object_begin(w, "breakdown");
	json_put(w, "requests", b->requests, "failed", b->failed, "without_task", b->without_task,
		 "interrupts", b->raised);
	for (unsigned int i = 0; i < PARTS; i++) {
		const struct hist *h = &b->of[i];

		json_put_object(w, parts[i].key, "count", h->count, "sum", h->sum, "p50",
				hist_quantile(h, 500), "p90", hist_quantile(h, 900), "p99",
				hist_quantile(h, 990), "max", h->max);
	}
	json_object_end(w);
}

/* Powers of two of microseconds: up to 9 hours. */
#define BUCKETS 36u
#define STARS 40u

struct snoop {
	struct run *run;
	bool stacks, json, begun;
	uint64_t count[IO_TYPES], bytes[IO_TYPES], failed;
	uint64_t bucket[BUCKETS];
	struct breakdown *breakdown; /* NULL: not asked for */
};

#define OPTION_STRUCT struct snoop
#define AS_RUN(name, text) OPTION_AS(name, text, run_option_rows, run)
#define ONLY_HELP .kind = OPTION_IS_PUT

/* For --help only: snoop_take_own() and run_options_parse() parse the options. */
static const struct option_row help_rows[] = {
	{ "stacks", 0, NULL, "the kernel's stack below each line", ONLY_HELP },
	{ "breakdown", 0, NULL,
	  "at the end the times of a request's stages: queue, host,\n"
	  "interrupt, task; with --json in each object",
	  ONLY_HELP },
	AS_RUN("json", "an object for each request, and one for the histogram"),
	AS_RUN("output", "also write a profile: kvmprof flamegraph, report"),
	AS_RUN("event", "of that profile (default io: by bytes; io:latency: by time;\n"
			"with --breakdown io,wall)"),
	AS_RUN("quiet", "do not show the guest's console"),
	OPTION_HELP,
	{ 0 },
};

static const struct option_set help_set = {
	.usage =
		"Usage: kvmprof iosnoop [--stacks] [--breakdown] [--json] [OPTIONS OF kvmprof run] "
		"--disk PATH [IMAGE]\n"
		"\n"
		"Run a guest and print each request to its disks as it ends, in the format of "
		"biosnoop:\n"
		"time, the task that issued it (for delayed writes the kernel's worker), its id, "
		"the\n"
		"disk, R, W, F, D or Z (read, write, flush, discard, zeroes), sector, bytes and "
		"the time\n"
		"it took; at the end a histogram of these times. It needs nothing in the guest, "
		"whose\n"
		"console goes to standard error. `kvmprof run --help` has the other options.\n"
		"\n",
	.rows = help_rows,
	.column = RUN_OPTIONS_COLUMN,
};
#undef OPTION_STRUCT

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
	       pid, disk, io_stages_type_letter(r->type), r->sector, r->bytes,
	       (double)(r->complete_ns - r->submit_ns) / 1e6, r->status == IO_OK ? "" : " failed");
	if (o->stacks && who)
		for (unsigned int i = 0; i < who->stack.n_kernel; i++)
			printf("    %s\n", snoop_frame_name(g, &who->stack, i, frame));
}

static void snoop_print_json(struct snoop *o, const struct guest *g, const struct io_record *r,
			     const struct io_who *who, double seconds, const char *disk)
{
	const struct json_value none = json_of_str(NULL);
	char comm[SAMPLE_COMM + 1], frame[160];
	const char type[] = { io_stages_type_letter(r->type), '\0' };
	struct json_writer w;

	snoop_task_name(who, comm);
	json_open(&w);
	json_put(&w, "time", json_fixed(6, seconds));
	if (who && who->task.state == SAMPLE_TASK_FOUND)
		json_put(&w, "comm", comm, "pid", who->task.pid, "tid", who->task.tid);
	else
		json_put(&w, "comm", none, "pid", none, "tid", none);
	json_put(&w, "disk", disk, "type", type, "sector", r->sector, "bytes", r->bytes,
		 "latency_ns", r->complete_ns - r->submit_ns, "ok",
		 json_of_bool(r->status == IO_OK));
	if (o->stacks) {
		json_array_begin(&w, "stack");
		for (unsigned int i = 0; who && i < who->stack.n_kernel; i++)
			json_str(&w, NULL, snoop_frame_name(g, &who->stack, i, frame));
		json_array_end(&w);
	}
	if (o->breakdown) {
		breakdown_keep(o->breakdown, w.b); /* until the rest of its way is known */
		return;
	}
	(void)json_close(&w, stdout);
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
	struct json_writer w;

	json_open(&w);
	json_array_begin(&w, "histogram_us");
	for (unsigned int i = 0; i < BUCKETS; i++)
		if (o->bucket[i])
			json_put_object(&w, NULL, "from", i ? UINT64_C(1) << (i - 1) : 0, "to",
					i ? (UINT64_C(1) << i) - 1 : 0, "count", o->bucket[i]);
	json_array_end(&w);
	json_object_begin(&w, "types");
	for (uint8_t i = 0; i < IO_TYPES; i++) {
		const char type[] = { io_stages_type_letter(i), '\0' };

		json_put_object(&w, type, "requests", o->count[i], "bytes", o->bytes[i]);
	}
	json_object_end(&w);
	json_u64(&w, "failed", o->failed);
	if (o->breakdown)
		breakdown_json(o->breakdown, &w);
	(void)json_close(&w, stdout);
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
			option_help(&help_set, stdout);
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

	if (opt->output && run_options_to_stdout(opt))
		return run_options_wrong(
			opt, "-o -: standard output is used for the requests: give -o PATH");
	o->json = opt->json;
	opt->json = false;
	/* A task is seen by samples. */
	if (!opt->events.n && events_add(&opt->events, o->breakdown ? "io,wall" : "io", &e) < 0)
		return run_options_wrong(opt, "%s", e.text);
	if (!events_contain(&opt->events, EVENT_IO))
		return run_options_wrong(opt, "--event: add io or io:latency");
	return -1;
}

static int iosnoop(struct snoop *o, int argc, char **argv)
{
	struct run *r = o->run;
	int status = snoop_take_own(o, &argc, argv);

	if (status >= 0)
		return status;
	r->asked.command = "iosnoop";
	r->asked.reporter = &cmd_reporter;
	r->asked.help = stdout;
	status = run_options_parse(&r->asked, argc, argv);
	if (status >= 0)
		return status;
	status = snoop_check(o);
	if (status >= 0)
		return status;
	r->pipeline_options.request = snoop_request;
	r->pipeline_options.stages = o->breakdown ? snoop_stages : NULL;
	r->pipeline_options.request_ctx = o;
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
