/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/net.h"

#include "base/json.h"

#include <inttypes.h>
#include <string.h>

/* The name of the only one. */
#define CARD "net0"

void summary_net_print(const struct vm *vm, const struct pipeline_io_stats *net, FILE *out)
{
	struct net_stats s;

	if (!vm_net(vm, &s))
		return;
	fprintf(out,
		"kvmprof: network: %" PRIu64 " packets sent (%" PRIu64 " bytes), %" PRIu64
		" received (%" PRIu64 " bytes), lost %" PRIu64 " of those sent and %" PRIu64
		" of those for the guest\n",
		s.sent, s.sent_bytes, s.received, s.received_bytes, s.not_sent, s.not_received);
	if (net->wanted && (net->unknown || net->lost))
		fprintf(out,
			"kvmprof: %" PRIu64 " packets that were sent have no stack (%" PRIu64
			" bytes), and of %" PRIu64 " packets there is no record\n",
			net->unknown, net->unknown_bytes, net->lost);
}

void summary_net_json(const struct vm *vm, const struct pipeline_io_stats *net, struct buf *out)
{
	struct net_stats s;

	buf_printf(out, ",\"network\":");
	if (!vm_net(vm, &s)) {
		buf_printf(out, "null");
		return;
	}
	buf_printf(out,
		   "{\"name\":\"" CARD "\",\"sent\":{\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64
		   ",\"lost\":%" PRIu64 "},\"received\":{\"packets\":%" PRIu64 ",\"bytes\":%" PRIu64
		   ",\"lost\":%" PRIu64 "}",
		   s.sent, s.sent_bytes, s.not_sent, s.received, s.received_bytes, s.not_received);
	if (net->wanted)
		buf_printf(out,
			   ",\"records\":%" PRIu64 ",\"unknown\":%" PRIu64
			   ",\"unknown_bytes\":%" PRIu64 ",\"lost_records\":%" PRIu64,
			   net->records, net->unknown, net->unknown_bytes, net->lost);
	buf_u8(out, '}');
}

static void net_json_time(struct buf *b, const char *name, uint64_t ns)
{
	buf_printf(b, ",\"%s\":", name);
	if (ns)
		buf_printf(b, "%" PRIu64, ns);
	else
		buf_printf(b, "null");
}

static void net_json_packet(const struct io_stages *s, struct buf *b)
{
	const struct sample_task *task = &s->task;
	char comm[SAMPLE_COMM + 1] = "";

	buf_printf(b, "{\"card\":\"" CARD "\",\"way\":\"%s\",\"bytes\":%" PRIu64 ",\"ok\":%s",
		   s->r.type == IO_SENT ? "sent" : "received", s->r.bytes,
		   s->r.status == IO_OK ? "true" : "false");
	if (task->state == SAMPLE_TASK_FOUND) {
		memcpy(comm, task->comm, SAMPLE_COMM);
		buf_printf(b, ",\"comm\":");
		json_quote(b, comm);
		buf_printf(b, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"vcpu\":%" PRIu32,
			   task->pid, task->tid, s->vcpu);
	}
	net_json_time(b, "notified_ns", s->r.notified_ns);
	net_json_time(b, "taken_ns", s->r.submit_ns);
	net_json_time(b, "done_ns", s->r.complete_ns);
	net_json_time(b, "raised_ns", s->raised_ns);
	buf_u8(b, '}');
}

void summary_packets_json(struct io_requests *q, struct buf *out)
{
	pthread_mutex_lock(&q->lock);
	buf_printf(out, ",\"packets\":[");
	for (size_t i = 0; i < q->n; i++) {
		if (i)
			buf_u8(out, ',');
		net_json_packet(&q->list[i], out);
	}
	buf_printf(out, "],\"packets_beyond\":%" PRIu64, q->beyond);
	pthread_mutex_unlock(&q->lock);
}
