/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/disks.h"

#include "base/json.h"

#include <inttypes.h>
#include <string.h>

static double mib(uint64_t bytes)
{
	return (double)bytes / (1 << 20);
}

void summary_disks_print(const struct vm *vm, const struct pipeline_io_stats *io, FILE *out)
{
	struct vm_disk_info d;

	for (unsigned int i = 0; vm_disk(vm, i, &d); i++) {
		const struct io_stats *s = &d.io;

		fprintf(out,
			"kvmprof: disk %s: %" PRIu64 " reads (%.1f MiB), %" PRIu64
			" writes (%.1f MiB), %" PRIu64 " flushes, %" PRIu64 " discards, %" PRIu64
			" errors; %s",
			d.name, s->requests[IO_READ], mib(s->bytes[IO_READ]),
			s->requests[IO_WRITE] + s->requests[IO_ZEROES],
			mib(s->bytes[IO_WRITE] + s->bytes[IO_ZEROES]), s->requests[IO_FLUSH],
			s->requests[IO_DISCARD], s->errors, d.path);
		if (d.overlay_bytes)
			fprintf(out, " with %.1f MiB over it", mib(d.overlay_bytes));
		fputc('\n', out);
		if (d.no_room)
			fprintf(out,
				"kvmprof: warning: %" PRIu64
				" writes to disk %s failed: what guests write over images takes as "
				"much memory as --overlay-max allows\n",
				d.no_room, d.name);
	}
	if (io->wanted && (io->unknown || io->lost))
		fprintf(out,
			"kvmprof: %" PRIu64 " of %" PRIu64
			" requests have no stack (%.1f MiB), and of %" PRIu64
			" there is no record\n",
			io->unknown, io->records, mib(io->unknown_bytes), io->lost);
}

static void json_disk(const struct vm_disk_info *d, struct buf *b)
{
	static const char *const name[IO_TYPES] = { "read", "write", "flush", "discard", "zeroes" };

	buf_printf(b, "{\"name\":\"%s\",\"path\":", d->name);
	json_quote(b, d->path);
	buf_printf(b, ",\"size\":%" PRIu64 ",\"overlay_bytes\":%" PRIu64, d->size,
		   d->overlay_bytes);
	buf_printf(b, ",\"no_room\":%" PRIu64, d->no_room);
	for (unsigned int i = 0; i < IO_TYPES; i++)
		buf_printf(b, ",\"%s\":{\"requests\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", name[i],
			   d->io.requests[i], d->io.bytes[i]);
	buf_printf(b, ",\"errors\":%" PRIu64 "}", d->io.errors);
}

void summary_disks_json(const struct vm *vm, const struct pipeline_io_stats *io, struct buf *out)
{
	uint64_t bytes[2] = { 0 };
	struct vm_disk_info d;

	buf_printf(out, ",\"disks\":[");
	for (unsigned int i = 0; vm_disk(vm, i, &d); i++) {
		if (i)
			buf_u8(out, ',');
		json_disk(&d, out);
		bytes[0] += d.io.bytes[IO_READ];
		bytes[1] += d.io.bytes[IO_WRITE] + d.io.bytes[IO_ZEROES];
	}
	buf_printf(out, "],\"io\":{\"read_bytes\":%" PRIu64 ",\"written_bytes\":%" PRIu64, bytes[0],
		   bytes[1]);
	if (io->wanted)
		buf_printf(out,
			   ",\"records\":%" PRIu64 ",\"unknown\":%" PRIu64
			   ",\"unknown_bytes\":%" PRIu64 ",\"failed\":%" PRIu64
			   ",\"lost\":%" PRIu64,
			   io->records, io->unknown, io->unknown_bytes, io->failed, io->lost);
	buf_u8(out, '}');
}

static void json_request(const struct vm *vm, const struct io_stages *s, struct buf *b)
{
	const struct sample_task *task = &s->task;
	struct vm_disk_info d = { .name = "?" };
	char comm[SAMPLE_COMM + 1] = "";

	(void)vm_disk(vm, s->r.device, &d);
	buf_printf(b,
		   "{\"disk\":\"%s\",\"type\":\"%c\",\"sector\":%" PRIu64 ",\"bytes\":%" PRIu64
		   ",\"ok\":%s,",
		   d.name, io_type_letter(s->r.type), s->r.sector, s->r.bytes,
		   s->r.status == IO_OK ? "true" : "false");
	if (task->state == SAMPLE_TASK_FOUND) {
		memcpy(comm, task->comm, SAMPLE_COMM);
		buf_printf(b, "\"comm\":");
		json_quote(b, comm);
		buf_printf(b, ",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"vcpu\":%" PRIu32 ",",
			   task->pid, task->tid, s->vcpu);
	}
	io_stages_json(s, b);
	buf_u8(b, '}');
}

void summary_requests_json(const struct vm *vm, struct io_requests *q, struct buf *out)
{
	pthread_mutex_lock(&q->lock);
	buf_printf(out, ",\"requests\":[");
	for (size_t i = 0; i < q->n; i++) {
		if (i)
			buf_u8(out, ',');
		json_request(vm, &q->list[i], out);
	}
	buf_printf(out, "],\"requests_beyond\":%" PRIu64, q->beyond);
	pthread_mutex_unlock(&q->lock);
}
