/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The requests and packets of a profile's totals as slices of a trace: whatever the file says, on each track
 * slices begin and end in order of time, each within the one around it.
 */
#include "tests/fuzz/fuzz.h"

#include "profile/analyse/export/perfetto_requests.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRACKS 4096u
#define TRACK_EVENT 11u

struct reader {
	const uint8_t *at, *end;
};

static uint64_t varint(struct reader *r)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		if (r->at == r->end)
			abort();
		v |= (uint64_t)(*r->at & 0x7f) << shift;
		if (!(*r->at++ & 0x80))
			return v;
	}
	abort();
}

/* A field: its number, and its value, or what is in it. */
static unsigned int field(struct reader *r, uint64_t *v, struct reader *in)
{
	uint64_t tag = varint(r);

	*v = varint(r);
	*in = (struct reader){ 0 };
	if ((tag & 7) == 2) {
		if (*v > (uint64_t)(r->end - r->at))
			abort();
		*in = (struct reader){ r->at, r->at + *v };
		r->at += *v;
	} else if (tag & 7) {
		abort();
	}
	return (unsigned int)(tag >> 3);
}

static void read_event(struct reader event, uint64_t ns, uint64_t *last, int *depth)
{
	uint64_t type = 0, track = 0, v;
	struct reader in;

	while (event.at < event.end) {
		unsigned int f = field(&event, &v, &in);

		type = f == 9 ? v : type;
		track = f == 11 ? v : track;
	}
	track = (track & UINT32_MAX) + (track >> PERFETTO_KIND_SHIFT == PERFETTO_CARD ? TRACKS : 0);
	if (track >= 2 * TRACKS || ns < last[track])
		abort();
	last[track] = ns;
	depth[track] += type == 1 ? 1 : -1;
	if (depth[track] < 0 || depth[track] > 2)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t last[2 * TRACKS]; /* for disks, then for network cards */
	static int depth[2 * TRACKS];
	char *json = strndup((const char *)data, size);
	const struct stackset s = { .json = json };
	const struct export_options opt = { .version = "fuzz" };
	struct export_out out;
	struct perfetto p = { .o = &out, .opt = &opt };
	struct reader trace;

	if (!json || size > 1 << 16)
		goto out;
	memset(last, 0, sizeof(last));
	memset(depth, 0, sizeof(depth));
	export_out_init(&out, open("/dev/null", O_WRONLY | O_CLOEXEC), EXPORT_UNPACKED);
	buf_init(&p.packet);
	if (perfetto_requests(&p, &s) < 0 || p.packet.failed || p.packet.len)
		abort();
	/* All of a trace that is smaller than a chunk. */
	trace = (struct reader){ out.buf.data, out.buf.data };
	if (!out.written && out.buf.len)
		trace.end += out.buf.len;
	while (trace.at < trace.end) {
		struct reader packet, in;
		uint64_t v, ns = 0;

		if (field(&trace, &v, &packet) != 1)
			abort();
		while (packet.at < packet.end) {
			unsigned int f = field(&packet, &v, &in);

			if (f == 8)
				ns = v;
			if (f == TRACK_EVENT)
				read_event(in, ns, last, depth);
		}
	}
	for (unsigned int i = 0; i < 2 * TRACKS && !out.written; i++)
		if (depth[i])
			abort();
	buf_deinit(&p.packet);
	close(out.fd);
	export_out_deinit(&out);
out:
	free(json);
	return 0;
}
