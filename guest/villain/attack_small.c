// SPDX-License-Identifier: GPL-2.0-or-later
/* Invalid requests to the console (5.3.6) and to the entropy device (5.4.6). */
#include "villain.h"

static int console_send_writable(struct vdev *d)
{
	send_one(d, buffer(0), 16, DESC_WRITE);
	return 0;
}

static int console_send_too_long(struct vdev *d)
{
	memset(at(BIG_BUFFER), 0, 0x1000);
	send_one(d, BIG_BUFFER, (1u << 20) + 1, 0);
	return 0;
}

/* Terminal control bytes, without those that would look like our lines. */
static int console_control_bytes(struct vdev *d)
{
	u8 *p = at(BIG_BUFFER);

	for (u32 i = 0; i < 4096; i++)
		p[i] = (u8)(i % 32 == 10 ? 27 : i % 32);
	return send_one(d, BIG_BUFFER, 4096, 0);
}

static int console_high_bytes(struct vdev *d)
{
	u8 *p = at(BIG_BUFFER);

	for (u32 i = 0; i < 4096; i++)
		p[i] = (u8)(0x80 | random64());
	return send_one(d, BIG_BUFFER, 4096, 0);
}

/* Each request with all memory that one chain may have. */
static int console_flood(struct vdev *d)
{
	struct vq *q = &d->q[SEND];

	*(u8 *)at(buffer(0)) = '\n';
	for (u16 i = 0; i < VQ_SIZE; i++) {
		desc_set(vq_desc(q, i), buffer(0), 1, 0, 0);
		vq_publish(d, SEND, i);
	}
	dev_notify(d, SEND);
	for (u32 i = 0; i < 10000 && vq_used(q) != q->next_avail; i++)
		wait_shortly();
	return vq_used(q) != q->next_avail;
}

static int console_receive_readable(struct vdev *d)
{
	desc_set(vq_desc(&d->q[RECEIVE], 0), buffer(0), 64, 0, 0);
	vq_offer(d, RECEIVE, 0);
	return 0;
}

static int console_receive_tiny(struct vdev *d)
{
	struct vq *q = &d->q[RECEIVE];

	for (u16 i = 0; i < VQ_SIZE; i++) {
		desc_set(vq_desc(q, i), buffer(0), 1, DESC_WRITE, 0);
		vq_publish(d, RECEIVE, i);
	}
	dev_notify(d, RECEIVE);
	return 0;
}

static int console_queues_crossed(struct vdev *d)
{
	desc_set(vq_desc(&d->q[RECEIVE], 0), buffer(0), 64, DESC_WRITE, 0);
	vq_publish(d, RECEIVE, 0);
	for (u32 i = 0; i < 20; i++)
		dev_notify(d, i & 1 ? RECEIVE : SEND);
	return 0;
}

static int console_control_queues(struct vdev *d)
{
	/* 5.3.2: queues of MULTIPORT, which is not offered. */
	for (u32 i = 2; i < 6; i++) {
		queue_select(d, i);
		queue_set_places(d, VQ_AREA, VQ_AREA + VQ_AVAIL, VQ_AREA + VQ_USED);
		queue_set_ready(d, 1);
		dev_notify(d, i);
	}
	return queue_ready(d) != 0;
}

static int console_emergency_oddly(struct vdev *d)
{
	u64 emergency = config_address(d) + 8;

	/* Only the first byte is written out; these are other places and widths. */
	write8(emergency + 1, 'x');
	write16(emergency + 2, 0x7878);
	write8(emergency + 3, 'x');
	write32(emergency, '\n');
	write16(emergency, '\n');
	return 0;
}

static const struct attack console_attacks[] = {
	{ "5.3.6 send-writable", REJECT, console_send_writable },
	{ "5.3.6 send-too-long", REJECT, console_send_too_long },
	{ "5.3.6 control-bytes", PASS, console_control_bytes },
	{ "5.3.6 high-bytes", PASS, console_high_bytes },
	{ "5.3.6 flood", PASS, console_flood },
	{ "5.3.6 receive-readable", ANY, console_receive_readable },
	{ "5.3.6 receive-tiny", PASS, console_receive_tiny },
	{ "5.3.6 queues-crossed", PASS, console_queues_crossed },
	{ "5.3.2 control-queues", PASS, console_control_queues },
	{ "5.3.4 emergency-oddly", PASS, console_emergency_oddly },
};

const struct attack_class console_class = { "console", ATTACKS(console_attacks), ID_CONSOLE, 0 };

/* -- random numbers ---------------------------------------------------------------------------- */

static int rng_one(struct vdev *d, u64 address, u32 len, u16 flags)
{
	struct vq *q = &d->q[0];
	u16 used = vq_used(q);

	desc_set(vq_desc(q, 0), address, len, flags, 0);
	vq_offer(d, 0, 0);
	return !vq_wait(d, 0, used);
}

static int rng_readable(struct vdev *d)
{
	rng_one(d, buffer(0), 16, 0);
	return 0;
}

static int rng_mixed(struct vdev *d)
{
	struct vq *q = &d->q[0];

	desc_set(vq_desc(q, 0), buffer(0), 16, DESC_NEXT, 1);
	desc_set(vq_desc(q, 1), buffer(1), 16, DESC_WRITE, 0);
	vq_offer(d, 0, 0);
	return 0;
}

static int rng_one_byte(struct vdev *d)
{
	*(u64 *)at(buffer(0)) = 0;
	return rng_one(d, buffer(0), 1, DESC_WRITE) || *(volatile u64 *)at(buffer(0)) >> 8;
}

/* The device may return less than requested, and reports how much. */
static int rng_much(struct vdev *d)
{
	return rng_one(d, BIG_BUFFER, BIG_BUFFER_SIZE, DESC_WRITE) ||
	       vq_used_len(&d->q[0]) > BIG_BUFFER_SIZE;
}

static int rng_flood(struct vdev *d)
{
	struct vq *q = &d->q[0];

	for (u32 round = 0; round < 4; round++) {
		for (u16 i = 0; i < VQ_SIZE; i++) {
			desc_set(vq_desc(q, i), BIG_BUFFER, BUFFER_SIZE, DESC_WRITE, 0);
			vq_publish(d, 0, i);
		}
		dev_notify(d, 0);
		for (u32 i = 0; i < 10000 && vq_used(q) != q->next_avail; i++)
			wait_shortly();
	}
	return vq_used(q) != q->next_avail;
}

static int rng_scattered(struct vdev *d)
{
	struct vq *q = &d->q[0];
	u16 used = vq_used(q);

	for (u32 i = 0; i < VQ_SIZE; i++)
		desc_set(vq_desc(q, (u16)i), BIG_BUFFER + 8 * i, 1,
			 DESC_WRITE | (i < VQ_SIZE - 1 ? DESC_NEXT : 0), (u16)(i + 1));
	vq_offer(d, 0, 0);
	return !vq_wait(d, 0, used) || vq_used_len(q) > VQ_SIZE;
}

static const struct attack rng_attacks[] = {
	{ "5.4.6 readable", REJECT, rng_readable }, { "5.4.6 mixed", REJECT, rng_mixed },
	{ "5.4.6 one-byte", PASS, rng_one_byte },   { "5.4.6 much", PASS, rng_much },
	{ "5.4.6 flood", PASS, rng_flood },	    { "5.4.6 scattered", PASS, rng_scattered },
};

const struct attack_class rng_class = { "rng", ATTACKS(rng_attacks), ID_RNG, 0 };
