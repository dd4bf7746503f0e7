/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pipeline_io: requests of disks and packets, with the stacks of who brought them. */
#include "profile/record/pipeline/pipeline_private.h"

/* Requests of which no more can be learned by now. */
static void tell_stages(struct pipeline *p, uint64_t now_ns)
{
	struct io_stages s;

	while (p->stages && io_stages_next(p->stages, now_ns, &s)) {
		if (p->opt.requests)
			io_requests_add(p->opt.requests, &s);
		if (p->opt.stages)
			p->opt.stages(p->opt.request_ctx, &s);
	}
}

/* A sample of each event that counts it, with the stack of who brought it. */
static void weigh_record(struct pipeline *p, const struct io_record *r, const struct io_who *who)
{
	for (unsigned int i = 0; i < VM_MAX_EVENTS; i++) {
		struct profile_sample out = who->sample;
		enum pipeline_io by = p->opt.io[i];

		if (by == PIPELINE_NO_IO || (by == PIPELINE_NET_BYTES) != io_is_packet(r->type) ||
		    !vm_event_is_armed(p->vm, i) ||
		    (p->opt.max_samples && p->stats.samples == p->opt.max_samples))
			continue;
		p->stack = who->stack;
		out.stack = &p->stack;
		out.event = (uint8_t)i;
		out.period = by == PIPELINE_IO_LATENCY ? r->complete_ns - r->submit_ns : r->bytes;
		if (!out.period) /* a flush has no bytes */
			continue;
		pipeline_count(p, &out);
		pipeline_cut(p, &p->stack);
		pipeline_fail(p, pipeline_write(p, &out));
	}
}

static void process_packet(struct pipeline *p, const struct io_record *r, const struct io_who *who)
{
	struct io_stages s = { .r = *r, .raised_ns = r->raised_ns };
	struct pipeline_io_stats *st = &p->stats.net;
	bool unknown = !who && r->type == IO_SENT;

	st->records++;
	st->failed += r->status != IO_OK;
	st->unknown += unknown;
	if (unknown && r->status == IO_OK)
		st->unknown_bytes += r->bytes;
	if (who) {
		s.task = who->task;
		s.vcpu = who->sample.cpu;
	}
	if (p->opt.packets)
		io_requests_add(p->opt.packets, &s);
	if (who && r->status == IO_OK)
		weigh_record(p, r, who);
}

static void process_request(struct pipeline *p, const struct io_record *r, const struct io_who *who)
{
	struct pipeline_io_stats *st = &p->stats.io;

	st->records++;
	st->failed += r->status != IO_OK;
	st->unknown += !who;
	if (!who && r->status == IO_OK)
		st->unknown_bytes += r->bytes;
	if (p->opt.request)
		p->opt.request(p->opt.request_ctx, p->guest, r, who);
	if (p->stages) {
		tell_stages(p, vm_now_ns(p->vm));
		io_stages_request(p->stages, r, who);
	}
	if (who && r->status == IO_OK)
		weigh_record(p, r, who);
}

/* Until it is known who brought it. */
static void hold_record(struct pipeline *p, const struct io_record *r)
{
	bool packet = io_is_packet(r->type);

	if (!packet && r->type >= IO_TYPES) {
		if (p->stages)
			io_stages_interrupt(p->stages, r);
	} else if (!io_join_record(p->io, r)) {
		p->io_full += !packet;
		p->net_full += packet;
	}
}

void pipeline_requests(struct pipeline *p, enum io_join_which which)
{
	struct io_record r[64];
	const struct io_who *who;
	uint64_t packets;
	unsigned int n;

	if (!p->io)
		return;
	while ((n = vm_io_take(p->vm, r, 64)) > 0)
		for (unsigned int i = 0; i < n; i++)
			hold_record(p, &r[i]);
	while (io_join_next(p->io, which, &r[0], &who)) {
		if (io_is_packet(r[0].type))
			process_packet(p, &r[0], who);
		else
			process_request(p, &r[0], who);
	}
	tell_stages(p, which == IO_JOIN_REST ? UINT64_MAX : vm_now_ns(p->vm));
	p->stats.io.lost = vm_io_lost(p->vm, &packets) + p->io_full;
	p->stats.net.lost = packets + p->net_full;
}
