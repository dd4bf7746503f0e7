// SPDX-License-Identifier: GPL-2.0-or-later
/* Invalid requests to a disk (5.2.6). */
#include "villain.h"

enum { T_IN = 0, T_OUT = 1, T_FLUSH = 4, T_GET_ID = 8, T_DISCARD = 11, T_WRITE_ZEROES = 13 };
enum { S_OK = 0, S_IOERR = 1, S_UNSUPP = 2, S_NONE = 0xff };

#define HEADER buffer(0)
#define STATUS buffer(2)

static void put_header(u32 type, u64 sector)
{
	*(u32 *)at(HEADER) = type;
	*(u32 *)at(HEADER + 4) = 0;
	*(u64 *)at(HEADER + 8) = sector;
	*(u8 *)at(STATUS) = S_NONE;
}

/* Sends a header, one buffer unless its length is 0, and a status. Returns the resulting status. */
static u8 request(struct vdev *d, u32 type, u64 sector, u32 len, u16 data_flags)
{
	struct vq *q = &d->q[0];
	u16 used = vq_used(q);

	put_header(type, sector);
	desc_set(vq_desc(q, 0), HEADER, 16, DESC_NEXT, len ? 1 : 2);
	desc_set(vq_desc(q, 1), BIG_BUFFER, len, DESC_NEXT | data_flags, 2);
	desc_set(vq_desc(q, 2), STATUS, 1, DESC_WRITE, 0);
	vq_offer(d, 0, 0);
	vq_wait(d, 0, used);
	return *(volatile u8 *)at(STATUS);
}

static int unknown_types(struct vdev *d)
{
	static const u32 types[] = { 2,	 3,  5,	 6,  7,		 9,	     10,
				     12, 14, 15, 99, 0x7fffffff, 0x80000000, 0xffffffff };
	int wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(types); i++)
		wrong |= request(d, types[i], 0, 512, 0) != S_UNSUPP;
	return wrong;
}

static int header_in_bytes(struct vdev *d)
{
	struct vq *q = &d->q[0];
	u16 used = vq_used(q);

	put_header(T_IN, 1);
	for (u16 i = 0; i < 16; i++)
		desc_set(vq_desc(q, i), HEADER + i, 1, DESC_NEXT, (u16)(i + 1));
	for (u16 i = 0; i < 128; i++)
		desc_set(vq_desc(q, (u16)(16 + i)), buffer(1) + 4u * i, 4, DESC_NEXT | DESC_WRITE,
			 (u16)(17 + i));
	desc_set(vq_desc(q, 144), STATUS, 1, DESC_WRITE, 0);
	vq_offer(d, 0, 0);
	vq_wait(d, 0, used);
	return *(volatile u8 *)at(STATUS) != S_OK || *(volatile u64 *)at(buffer(1)) != 1;
}

static int header_short(struct vdev *d)
{
	desc_set(vq_desc(&d->q[0], 0), HEADER, 15, DESC_NEXT, 1);
	desc_set(vq_desc(&d->q[0], 1), STATUS, 1, DESC_WRITE, 0);
	vq_offer(d, 0, 0);
	return 0;
}

static int no_status(struct vdev *d)
{
	put_header(T_OUT, 0);
	desc_set(vq_desc(&d->q[0], 0), HEADER, 16 + 512, 0, 0);
	vq_offer(d, 0, 0);
	return 0;
}

static int only_status(struct vdev *d)
{
	desc_set(vq_desc(&d->q[0], 0), STATUS, 1, DESC_WRITE, 0);
	vq_offer(d, 0, 0);
	return 0;
}

static int sectors_beyond(struct vdev *d)
{
	static const u64 sectors[] = { 8192,	  8193,	     1ul << 32, 1ul << 54, (1ul << 55) - 1,
				       1ul << 55, 1ul << 63, ~0ul };
	int wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(sectors); i++) {
		wrong |= request(d, T_IN, sectors[i], 512, DESC_WRITE) != S_IOERR;
		wrong |= request(d, T_OUT, sectors[i], 512, 0) != S_IOERR;
	}
	return wrong;
}

static int across_end(struct vdev *d)
{
	return request(d, T_IN, 8191, 1024, DESC_WRITE) != S_IOERR ||
	       request(d, T_OUT, 8191, 1024, 0) != S_IOERR;
}

static int odd_lengths(struct vdev *d)
{
	static const u32 lengths[] = { 1, 511, 513, 4095 };
	int wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++) {
		wrong |= request(d, T_IN, 0, lengths[i], DESC_WRITE) != S_IOERR;
		wrong |= request(d, T_OUT, 0, lengths[i], 0) != S_IOERR;
	}
	return wrong;
}

static int read_as_write(struct vdev *d)
{
	request(d, T_IN, 0, 512, 0);
	request(d, T_OUT, 0, 512, DESC_WRITE);
	request(d, T_FLUSH, ~0ul, 512, DESC_WRITE);
	request(d, T_FLUSH, ~0ul, 512, 0);
	return 0;
}

static int get_id_lengths(struct vdev *d)
{
	static const u32 lengths[] = { 0, 1, 19, 20, 21, 4096, BIG_BUFFER_SIZE };
	int wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++)
		wrong |= request(d, T_GET_ID, ~0ul, lengths[i], DESC_WRITE) == S_NONE;
	return wrong;
}

/* A segment of DISCARD or WRITE_ZEROES, 5.2.6.2. */
static void put_segment(u32 n, u64 sector, u32 sectors, u32 flags)
{
	*(u64 *)at(BIG_BUFFER + 16ul * n) = sector;
	*(u32 *)at(BIG_BUFFER + 16ul * n + 8) = sectors;
	*(u32 *)at(BIG_BUFFER + 16ul * n + 12) = flags;
}

static int discard_lengths(struct vdev *d)
{
	static const u32 lengths[] = { 0, 1, 15, 17, 16 * 300, BIG_BUFFER_SIZE };
	int wrong = 0;

	memset(at(BIG_BUFFER), 0, 16 * 300);
	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++) {
		wrong |= request(d, T_DISCARD, 0, lengths[i], 0) != S_IOERR;
		wrong |= request(d, T_WRITE_ZEROES, 0, lengths[i], 0) != S_IOERR;
	}
	return wrong;
}

static int discard_sectors(struct vdev *d)
{
	static const struct {
		u64 sector;
		u32 sectors;
	} ranges[] = { { 8192, 1 }, { 8191, 2 },       { ~0ul, 1 },	 { ~0ul, 0xffffffff },
		       { 0, 8193 }, { 0, 0xffffffff }, { 1ul << 55, 1 }, { 1ul << 63, 8 } };
	int wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(ranges); i++) {
		put_segment(0, ranges[i].sector, ranges[i].sectors, 0);
		wrong |= request(d, T_DISCARD, 0, 16, 0) != S_IOERR;
		wrong |= request(d, T_WRITE_ZEROES, 0, 16, 0) != S_IOERR;
	}
	return wrong;
}

/* The first segment is valid, the second is not: neither is executed. */
static int discard_second_bad(struct vdev *d)
{
	put_segment(0, 1, 1, 0);
	put_segment(1, ~0ul, 1, 0);
	return request(d, T_WRITE_ZEROES, 0, 32, 0) != S_IOERR;
}

static int discard_flags(struct vdev *d)
{
	int wrong = 0;

	put_segment(0, 64, 1, 1);
	wrong |= request(d, T_DISCARD, 0, 16, 0) != S_UNSUPP;
	put_segment(0, 64, 1, 0xfffffffe);
	wrong |= request(d, T_DISCARD, 0, 16, 0) != S_UNSUPP;
	wrong |= request(d, T_WRITE_ZEROES, 0, 16, 0) != S_UNSUPP;
	return wrong;
}

static int buffers_are_one(struct vdev *d)
{
	struct vq *q = &d->q[0];
	u16 used = vq_used(q);

	put_header(T_IN, 1);
	desc_set(vq_desc(q, 0), HEADER, 16, DESC_NEXT, 1);
	desc_set(vq_desc(q, 1), HEADER, 512, DESC_NEXT | DESC_WRITE, 2);
	desc_set(vq_desc(q, 2), HEADER, 1, DESC_WRITE, 0);
	vq_offer(d, 0, 0);
	return !vq_wait(d, 0, used);
}

static int status_in_queue(struct vdev *d)
{
	struct vq *q = &d->q[0];

	put_header(T_FLUSH, 0);
	desc_set(vq_desc(q, 0), HEADER, 16, DESC_NEXT, 1);
	desc_set(vq_desc(q, 1), q->used + 2, 1, DESC_WRITE, 0);
	vq_offer(d, 0, 0);
	wait_shortly();
	return 0;
}

/* The disk's data overwrite the queue's descriptors. */
static int reads_into_queue(struct vdev *d)
{
	struct vq *q = &d->q[0];

	put_header(T_IN, 0);
	desc_set(vq_desc(q, 0), HEADER, 16, DESC_NEXT, 1);
	desc_set(vq_desc(q, 1), q->desc, 0x6000, DESC_NEXT | DESC_WRITE, 2);
	desc_set(vq_desc(q, 2), STATUS, 1, DESC_WRITE, 0);
	vq_offer(d, 0, 0);
	wait_shortly();
	return 0;
}

/* 254 buffers of 4 MiB at one place: 1 GiB, in a request to a disk of 4 MiB. */
static int request_of_1_gib(struct vdev *d)
{
	struct vq *q = &d->q[0];
	u16 used = vq_used(q);

	put_header(T_OUT, 0);
	desc_set(vq_desc(q, 0), HEADER, 16, DESC_NEXT, 1);
	for (u16 i = 1; i < 255; i++)
		desc_set(vq_desc(q, i), BIG_BUFFER, BIG_BUFFER_SIZE, DESC_NEXT, (u16)(i + 1));
	desc_set(vq_desc(q, 255), STATUS, 1, DESC_WRITE, 0);
	vq_offer(d, 0, 0);
	return vq_wait(d, 0, used) && *(volatile u8 *)at(STATUS) != S_IOERR;
}

/* All descriptors at once, three in each request; writes go to the overlay. */
static int flood(struct vdev *d)
{
	struct vq *q = &d->q[0];

	put_header(T_OUT, 64);
	for (u16 i = 0; i < VQ_SIZE - 2; i += 3) {
		desc_set(vq_desc(q, i), HEADER, 16, DESC_NEXT, (u16)(i + 1));
		desc_set(vq_desc(q, (u16)(i + 1)), BIG_BUFFER, 0x10000, DESC_NEXT, (u16)(i + 2));
		desc_set(vq_desc(q, (u16)(i + 2)), STATUS, 1, DESC_WRITE, 0);
		vq_publish(d, 0, i);
	}
	dev_notify(d, 0);
	for (u32 i = 0; i < 10000 && vq_used(q) != d->q[0].next_avail; i++)
		wait_shortly();
	return vq_used(q) != d->q[0].next_avail;
}

/* The same request is offered repeatedly while the first one may be in flight. */
static int one_head_flood(struct vdev *d)
{
	struct vq *q = &d->q[0];

	put_header(T_IN, 0);
	desc_set(vq_desc(q, 0), HEADER, 16, DESC_NEXT, 1);
	desc_set(vq_desc(q, 1), BIG_BUFFER, BIG_BUFFER_SIZE, DESC_NEXT | DESC_WRITE, 2);
	desc_set(vq_desc(q, 2), STATUS, 1, DESC_WRITE, 0);
	for (u32 i = 0; i < 100 && !(dev_status(d) & STATUS_NEEDS_RESET); i++)
		vq_offer(d, 0, 0);
	for (u32 i = 0; i < 10000 && vq_used(q) != d->q[0].next_avail; i++)
		wait_shortly();
	return 0;
}

/* 5.2.5.2: the cache mode changes meanwhile. */
static int writeback_flips(struct vdev *d)
{
	int wrong = 0;

	for (u32 i = 0; i < 20; i++) {
		write8(config_address(d) + 32, i);
		wrong |= request(d, T_OUT, 64, 4096, 0) != S_OK;
	}
	return wrong;
}

static int capacity_written(struct vdev *d)
{
	u64 config = config_address(d);
	u32 before = read32(config);

	write32(config, 0xffffffff);
	write32(config + 4, 0xffffffff);
	return read32(config) != before || request(d, T_IN, 8192, 512, DESC_WRITE) != S_IOERR;
}

static const struct attack attacks[] = {
	{ "5.2.6 unknown-types", PASS, unknown_types },
	{ "5.2.6 header-in-bytes", PASS, header_in_bytes },
	{ "5.2.6 header-short", REJECT, header_short },
	{ "5.2.6 no-status", REJECT, no_status },
	{ "5.2.6 only-status", REJECT, only_status },
	{ "5.2.6 sectors-beyond", PASS, sectors_beyond },
	{ "5.2.6 across-end", PASS, across_end },
	{ "5.2.6 odd-lengths", PASS, odd_lengths },
	{ "5.2.6 read-as-write", PASS, read_as_write },
	{ "5.2.6 get-id-lengths", PASS, get_id_lengths },
	{ "5.2.6.2 discard-lengths", PASS, discard_lengths },
	{ "5.2.6.2 discard-sectors", PASS, discard_sectors },
	{ "5.2.6.2 discard-second-bad", PASS, discard_second_bad },
	{ "5.2.6.2 discard-flags", PASS, discard_flags },
	{ "5.2.6 buffers-are-one", PASS, buffers_are_one },
	{ "5.2.6 status-in-queue", ANY, status_in_queue },
	{ "5.2.6 reads-into-queue", ANY, reads_into_queue },
	{ "5.2.6 request-of-1-GiB", ANY, request_of_1_gib },
	{ "5.2.6 flood", PASS, flood },
	{ "5.2.6 one-head-flood", ANY, one_head_flood },
	{ "5.2.5.2 writeback-flips", PASS, writeback_flips },
	{ "5.2.4 capacity-written", PASS, capacity_written },
};

const struct attack_class blk_class = { "blk", ATTACKS(attacks), ID_BLOCK, 0 };
