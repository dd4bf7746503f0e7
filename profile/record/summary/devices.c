/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/devices.h"

#include "vmm/device.h"
#include "vmm/devices.h"

#include <string.h>

/* The name of the only card. */
#define CARD "net0"
#define MIB "1/1048576"

static void write_disk(const struct facts_out *o, const struct vm_disk_info *d)
{
	static const char *const name[IO_TYPES] = { "read", "write", "flush", "discard", "zeroes" };
	const uint64_t *n = d->io.requests, *bytes = d->io.bytes;

	facts_object(o, NULL);
	FACTS(o, VAR("reads", n[IO_READ]), VAR("read_bytes", bytes[IO_READ]),
	      VAR("writes", n[IO_WRITE] + n[IO_ZEROES]),
	      VAR("written", bytes[IO_WRITE] + bytes[IO_ZEROES]), VAR("flushes", n[IO_FLUSH]),
	      VAR("discards", n[IO_DISCARD]), STR("name", d->name), STR("path", d->path),
	      NUM("size", d->size), NUM("overlay_bytes", d->overlay_bytes),
	      NUM("errors", d->io.errors),
#define DISK                                                                                    \
	"disk {name}: {reads} reads ({read_bytes:" MIB "} MiB), {writes} writes ({written:" MIB \
	"} MiB), {flushes} flushes, {discards} "                                                \
	"discards, {errors} errors; {path}"
	      LINE(!d->overlay_bytes, DISK),
	      LINE(d->overlay_bytes, DISK " with {overlay_bytes:" MIB "} MiB over it"),
	      NUM("no_room", d->no_room,
		  "warning: {no_room} writes to disk {name} failed, because the data that guests "
		  "have written fills the memory that --overlay-max allows"));
	for (unsigned int i = 0; i < IO_TYPES; i++) {
		FACTS_OBJECT(o, name[i], NUM("requests", n[i]), NUM("bytes", bytes[i]));
	}
	facts_object_end(o);
}

void summary_disks(const struct facts_out *o, const struct vm *vm,
		   const struct pipeline_io_stats *io)
{
	uint64_t read = 0, written = 0;
	struct vm_disk_info d;

	facts_array(o, "disks");
	for (unsigned int i = 0; vm_disk(vm, i, &d); i++) {
		write_disk(o, &d);
		read += d.io.bytes[IO_READ];
		written += d.io.bytes[IO_WRITE] + d.io.bytes[IO_ZEROES];
	}
	facts_array_end(o);

	FACTS_OBJECT(o, "io", NUM("read_bytes", read), NUM("written_bytes", written),
		     NUM_IF(io->wanted, "records", io->records),
		     NUM_IF(io->wanted, "unknown", io->unknown),
		     NUM_IF(io->wanted, "unknown_bytes", io->unknown_bytes),
		     NUM_IF(io->wanted, "failed", io->failed), NUM_IF(io->wanted, "lost", io->lost),
		     LINE(io->wanted && (io->unknown || io->lost),
			  "{unknown} of {records} requests have no stack ({unknown_bytes:" MIB
			  "} MiB), and of {lost} there is no record"));
}

void summary_net(const struct facts_out *o, const struct vm *vm,
		 const struct pipeline_io_stats *net)
{
	struct net_stats s;

	if (!vm_net(vm, &s)) {
		FACTS(o, STR("network", NULL));
		return;
	}

	facts_object(o, "network");
	FACTS(o, VAR("out", s.sent), VAR("out_bytes", s.sent_bytes), VAR("out_lost", s.not_sent),
	      VAR("in", s.received), VAR("in_bytes", s.received_bytes),
	      VAR("in_lost", s.not_received),
	      STR("name", CARD,
		  "network: {out} packets sent ({out_bytes} bytes), {in} received ({in_bytes} "
		  "bytes), lost {out_lost} of those sent and {in_lost} of those for the guest"),
	      NUM_IF(net->wanted, "records", net->records),
	      NUM_IF(net->wanted, "unknown", net->unknown),
	      NUM_IF(net->wanted, "unknown_bytes", net->unknown_bytes),
	      NUM_IF(net->wanted, "lost_records", net->lost),
	      LINE(net->wanted && (net->unknown || net->lost),
		   "{unknown} packets that were sent have no stack ({unknown_bytes} bytes), and "
		   "{lost_records} packets have no record"));
	FACTS_OBJECT(o, "sent", NUM("packets", s.sent), NUM("bytes", s.sent_bytes),
		     NUM("lost", s.not_sent));
	FACTS_OBJECT(o, "received", NUM("packets", s.received), NUM("bytes", s.received_bytes),
		     NUM("lost", s.not_received));
	facts_object_end(o);
}

/* Writes the task of a request within the request's object. */
static void write_task(const struct facts_out *o, const struct io_stages *s)
{
	char comm[SAMPLE_COMM + 1] = "";

	if (s->task.state != SAMPLE_TASK_FOUND)
		return;
	memcpy(comm, s->task.comm, SAMPLE_COMM);

	FACTS(o, STR("comm", comm), NUM("pid", s->task.pid), NUM("tid", s->task.tid),
	      NUM("vcpu", s->vcpu));
}

static void write_request(const struct facts_out *o, const struct vm *vm, const struct io_stages *s)
{
	struct vm_disk_info d = { .name = "?" };
	const char type[] = { io_stages_type_letter(s->r.type), '\0' };

	(void)vm_disk(vm, s->r.device, &d);

	facts_object(o, NULL);
	FACTS(o, STR("disk", d.name), STR("type", type), NUM("sector", s->r.sector),
	      NUM("bytes", s->r.bytes), FLAG("ok", s->r.status == IO_OK));
	write_task(o, s);
	io_stages_json(s, o->json);
	facts_object_end(o);
}

static void write_packet(const struct facts_out *o, const struct io_stages *s)
{
	const struct io_record *r = &s->r;

	facts_object(o, NULL);
	FACTS(o, STR("card", CARD), STR("way", r->type == IO_SENT ? "sent" : "received"),
	      NUM("bytes", r->bytes), FLAG("ok", r->status == IO_OK),
	      MAYBE("notified_ns", r->notified_ns != 0, r->notified_ns),
	      MAYBE("taken_ns", r->submit_ns != 0, r->submit_ns),
	      MAYBE("done_ns", r->complete_ns != 0, r->complete_ns),
	      MAYBE("raised_ns", s->raised_ns != 0, s->raised_ns));
	write_task(o, s);
	facts_object_end(o);
}

void summary_requests(const struct facts_out *o, const struct vm *vm, struct io_requests *q)
{
	if (!o->json)
		return;
	pthread_mutex_lock(&q->lock);
	facts_array(o, "requests");
	for (size_t i = 0; i < q->n; i++)
		write_request(o, vm, &q->list[i]);
	facts_array_end(o);
	FACTS(o, NUM("requests_beyond", q->beyond));
	pthread_mutex_unlock(&q->lock);
}

void summary_packets(const struct facts_out *o, struct io_requests *q)
{
	pthread_mutex_lock(&q->lock);
	facts_array(o, "packets");
	for (size_t i = 0; i < q->n; i++)
		write_packet(o, &q->list[i]);
	facts_array_end(o);
	FACTS(o, NUM("packets_beyond", q->beyond));
	pthread_mutex_unlock(&q->lock);
}

/* Writes how often the guest accessed each device. */
void summary_devices(const struct facts_out *o, const struct vm *vm)
{
	struct vm_device d;

	if (!o->json)
		return;
	facts_array(o, "devices");
	for (unsigned int i = 0; vm_device(vm, i, &d); i++) {
		facts_object(o, NULL);
		json_str(o->json, "name", d.name);
		json_array_begin(o->json, "ports");
		json_u64(o->json, NULL, d.base);
		json_u64(o->json, NULL, d.base + d.count - 1u);
		json_array_end(o->json);
		json_u64(o->json, "exits", d.exits);
		json_u64(o->json, "accesses", d.accesses);
		facts_object_end(o);
	}
	facts_array_end(o);
}
