// SPDX-License-Identifier: GPL-2.0-or-later
/* Makes one ordinary request to each kind of device, to judge an attack. */
#include "villain.h"

/* Descriptors that attacks do not use. */
#define OURS 200u
#define SECTOR 512u
#define ARP_TRIES 8u
#define NET_HEADER 12u
#define NET_ROOM 2048u

static int blk_works(struct vdev *d)
{
	struct vq *q = &d->q[0];
	u64 header = buffer(0), data = buffer(1), status = buffer(2);
	u16 used = vq_used(q);

	memset(at(header), 0, 16);
	*(u64 *)at(header + 8) = 1; /* sector 1, which begins with its number */
	*(u64 *)at(data) = 0;
	*(u8 *)at(status) = 0xff;
	desc_set(vq_desc(q, OURS), header, 16, DESC_NEXT, OURS + 1);
	desc_set(vq_desc(q, OURS + 1), data, SECTOR, DESC_NEXT | DESC_WRITE, OURS + 2);
	desc_set(vq_desc(q, OURS + 2), status, 1, DESC_WRITE, 0);
	vq_offer(d, 0, OURS);
	return vq_wait(d, 0, used) && *(volatile u8 *)at(status) == 0 &&
	       *(volatile u64 *)at(data) == 1;
}

static int rng_works(struct vdev *d)
{
	struct vq *q = &d->q[0];
	u16 used = vq_used(q);

	memset(at(buffer(0)), 0, 16);
	desc_set(vq_desc(q, OURS), buffer(0), 16, DESC_WRITE, 0);
	vq_offer(d, 0, OURS);
	return vq_wait(d, 0, used) && vq_used_len(q) == 16 &&
	       (*(volatile u64 *)at(buffer(0)) || *(volatile u64 *)at(buffer(0) + 8));
}

static int console_works(struct vdev *d)
{
	struct vq *q = &d->q[1];
	u16 used = vq_used(q);

	*(u8 *)at(buffer(0)) = '\n';
	desc_set(vq_desc(q, OURS), buffer(0), 1, 0, 0);
	vq_offer(d, 1, OURS);
	return vq_wait(d, 1, used);
}

/* -- net -------------------------------------------------------------------------------- */

u32 net_arp(u8 *frame)
{
	/* Ethernet broadcast, and a request of 10.0.2.15 for 10.0.2.2 (RFC 826). */
	static const u8 arp[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x52, 0x54, 0, 0,	 0,
				  1,	8,    6,    0,	  1,	8,    0,    6,	  4, 0,	 1,
				  0x52, 0x54, 0,    0,	  0,	1,    10,   0,	  2, 15, 0,
				  0,	0,    0,    0,	  0,	10,   0,    2,	  2 };

	memcpy(frame, arp, sizeof(arp));
	return sizeof(arp);
}

int net_send(struct vdev *d, const u8 *frame, u32 len)
{
	struct vq *q = &d->q[1];
	u16 used = vq_used(q);
	u8 *to = at(buffer(0));

	memset(to, 0, NET_HEADER);
	memcpy(to + NET_HEADER, frame, len);
	desc_set(vq_desc(q, OURS), buffer(0), NET_HEADER + len, 0, 0);
	vq_offer(d, 1, OURS);
	return vq_wait(d, 1, used);
}

static int net_works(struct vdev *d)
{
	struct vq *q = &d->q[0];
	u8 frame[64], *got = at(buffer(4));
	u32 len = net_arp(frame);

	for (u32 i = 0; i < ARP_TRIES; i++) {
		u16 used = vq_used(q);

		desc_set(vq_desc(q, OURS), buffer(4), NET_ROOM, DESC_WRITE, 0);
		vq_offer(d, 0, OURS);
		if (!net_send(d, frame, len) || !vq_wait(d, 0, used))
			return 0;
		/* Other frames may come first. */
		if (vq_used_len(q) >= NET_HEADER + len && got[NET_HEADER + 12] == 8 &&
		    got[NET_HEADER + 13] == 6 && got[NET_HEADER + 21] == 2)
			return 1;
	}
	return 0;
}

/* -- 9P ---------------------------------------------------------------------------------- */

static u32 p9_len;

u32 p9_call(struct vdev *d, u32 len, u32 room)
{
	struct vq *q = &d->q[0];
	u16 used = vq_used(q);
	u8 *reply = at(P9_REPLY);

	memset(reply, 0, 16);
	desc_set(vq_desc(q, OURS), P9_REQUEST, len, DESC_NEXT, OURS + 1);
	desc_set(vq_desc(q, OURS + 1), P9_REPLY, room, DESC_WRITE, 0);
	vq_offer(d, 0, OURS);
	return vq_wait(d, 0, used) ? reply[4] : 0;
}

void p9_put(u64 v, u32 bytes)
{
	u8 *to = at(P9_REQUEST);

	for (; bytes; bytes--, v >>= 8)
		to[p9_len++] = (u8)v;
}

void p9_put_text(const char *s)
{
	u32 n = 0;

	while (s[n])
		n++;
	p9_put(n, 2);
	for (u32 i = 0; i < n; i++)
		p9_put((u8)s[i], 1);
}

void p9_begin(u8 type, u16 tag)
{
	p9_len = 0;
	p9_put(0, 4);
	p9_put(type, 1);
	p9_put(tag, 2);
}

u32 p9_end(struct vdev *d)
{
	*(u32 *)at(P9_REQUEST) = p9_len;
	return p9_call(d, p9_len, 2 * BUFFER_SIZE);
}

static int p9_works(struct vdev *d)
{
	p9_begin(100, 0xffff); /* Tversion */
	p9_put(8192, 4);
	p9_put_text("9P2000.L");
	return p9_end(d) == 101;
}

int dev_works(struct vdev *d)
{
	switch (d->id) {
	case ID_NET:
		return net_works(d);
	case ID_BLOCK:
		return blk_works(d);
	case ID_CONSOLE:
		return console_works(d);
	case ID_RNG:
		return rng_works(d);
	case ID_9P:
		return p9_works(d);
	default:
		return 1;
	}
}
