/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/iosnoop_breakdown.h"

#include "base/cleanup.h"
#include "base/hist.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The parts, in order; WHOLE is from the first moment that is seen to the last. */
enum part { PART_QUEUE, PART_WAIT, PART_HOST, PART_INTERRUPT, PART_TASK, PART_WHOLE, PARTS };

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

struct breakdown *breakdown_create(void)
{
	return calloc(1, sizeof(struct breakdown));
}

void breakdown_destroy(struct breakdown *b)
{
	if (!b)
		return;
	while (b->taken < b->added)
		buf_deinit(&b->kept[b->taken++ % ARRAY_SIZE(b->kept)]);
	free(b);
}

void breakdown_keep(struct breakdown *b, struct buf *object)
{
	b->kept[b->added++ % ARRAY_SIZE(b->kept)] = *object;
}

/* What of its way is known, in ns; false: one of its ends was not seen. */
static bool part_of(const struct io_stages *s, enum part part, uint64_t *ns)
{
	uint64_t back = s->handled_ns ? s->handled_ns : s->r.complete_ns;
	const uint64_t ends[PARTS][2] = {
		[PART_QUEUE] = { s->r.notified_ns, s->r.submit_ns },
		[PART_WAIT] = { s->r.submit_ns, s->r.begun_ns },
		[PART_HOST] = { s->r.begun_ns, s->r.complete_ns },
		[PART_INTERRUPT] = { s->r.complete_ns, s->handled_ns },
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
	buf_printf(object, ",\"stages\":{");
	io_stages_json(s, object);
	buf_printf(object, "}}");
	if (!object->failed)
		printf("%.*s\n", (int)object->len, (const char *)object->data);
	buf_deinit(object);
	fflush(stdout);
}

void breakdown_add(struct breakdown *b, const struct io_stages *s)
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

/* What can't be seen has a line, not a guess. */
static void print_unseen(const struct breakdown *b)
{
	printf("Not seen: what the guest does before the notification, and the exit's way through "
	       "KVM.\n");
	if (b->without_task)
		printf("Of %" PRIu64 " requests it is not known which task asked.\n",
		       b->without_task);
	if (b->raised > b->of[PART_INTERRUPT].count)
		printf("%" PRIu64
		       " interrupts were not seen to be acknowledged: an MSI (virtio-pci) "
		       "needs no access; --virtio mmio has one.\n",
		       b->raised - b->of[PART_INTERRUPT].count);
	if (b->requests > b->raised)
		printf("Of %" PRIu64
		       " requests the guest wanted no interrupt: it was looking already.\n",
		       b->requests - b->raised);
	printf("A task is seen by samples and by its own notifications: later than its wake-up, by "
	       "up to a period.\n");
}

void breakdown_print(const struct breakdown *b)
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

void breakdown_print_json(const struct breakdown *b)
{
	printf(",\"breakdown\":{\"requests\":%" PRIu64 ",\"failed\":%" PRIu64
	       ",\"without_task\":%" PRIu64 ",\"interrupts\":%" PRIu64,
	       b->requests, b->failed, b->without_task, b->raised);
	for (unsigned int i = 0; i < PARTS; i++) {
		const struct hist *h = &b->of[i];

		printf(",\"%s\":{\"count\":%" PRIu64 ",\"sum\":%" PRIu64 ",\"p50\":%" PRIu64
		       ",\"p90\":%" PRIu64 ",\"p99\":%" PRIu64 ",\"max\":%" PRIu64 "}",
		       parts[i].key, h->count, h->sum, hist_quantile(h, 500), hist_quantile(h, 900),
		       hist_quantile(h, 990), h->max);
	}
	printf("}");
}
