// SPDX-License-Identifier: GPL-2.0-or-later
/* Invalid frames in invalid buffers (5.1.6), to a card whose other end is in our VMM. */
#include "villain.h"

#define HEADER 12u
#define ETHERNET 14u
#define IPV4 0x0800u
#define IPV6 0x86ddu

static int send_without_header(struct vdev *d)
{
	send_one(d, buffer(0), HEADER - 1, 0);
	return 0;
}

static int send_only_header(struct vdev *d)
{
	return send_one(d, buffer(0), HEADER, 0);
}

static int send_short(struct vdev *d)
{
	int wrong = 0;

	memset(at(buffer(0)), 0, 64);
	for (u32 len = 1; len < 20; len++)
		wrong |= send_one(d, buffer(0), HEADER + len, 0);
	return wrong;
}

static int send_long(struct vdev *d)
{
	static const u32 lengths[] = { 1514,  1515,  1518,  1519,    2048,   9000,
				       65535, 65536, 65550, 1 << 20, 1 << 22 };
	int wrong = 0;

	memset(at(BIG_BUFFER), 0xff, 0x1000);
	memset(at(BIG_BUFFER), 0, HEADER);
	for (u32 i = 0; i < ARRAY_SIZE(lengths); i++)
		wrong |= send_one(d, BIG_BUFFER, lengths[i], 0);
	return wrong;
}

static int send_writable(struct vdev *d)
{
	send_one(d, buffer(0), 64, DESC_WRITE);
	return 0;
}

/* 5.1.6.2: checksums and segments that were not agreed on. */
static int header_junk(struct vdev *d)
{
	int wrong = 0;

	for (u32 i = 0; i < 32; i++) {
		u8 *p = at(buffer(0));
		u32 len = net_arp(p + HEADER);

		for (u32 k = 0; k < HEADER; k++)
			p[k] = (u8)random64();
		wrong |= send_one(d, buffer(0), HEADER + len, 0);
	}
	return wrong;
}

static void ask(struct vdev *d)
{
	u8 frame[64];

	net_send(d, frame, net_arp(frame));
}

static void wait_for_answer(void)
{
	for (u32 i = 0; i < 50; i++)
		wait_shortly();
}

static int receive_readable(struct vdev *d)
{
	desc_set(vq_desc(&d->q[RECEIVE], 0), buffer(4), 2048, 0, 0);
	vq_offer(d, RECEIVE, 0);
	ask(d);
	return 0;
}

static int receive_tiny(struct vdev *d)
{
	desc_set(vq_desc(&d->q[RECEIVE], 0), buffer(4), 20, DESC_WRITE, 0);
	vq_offer(d, RECEIVE, 0);
	ask(d);
	return 0;
}

/* The answer overwrites the ring in which it is announced. */
static int receive_into_rings(struct vdev *d)
{
	struct vq *q = &d->q[RECEIVE];

	desc_set(vq_desc(q, 0), q->desc, 0x6000, DESC_WRITE, 0);
	vq_offer(d, RECEIVE, 0);
	ask(d);
	wait_for_answer();
	return 0;
}

static int receive_nothing(struct vdev *d)
{
	for (u32 i = 0; i < 64; i++)
		ask(d);
	return 0;
}

static int receive_flood(struct vdev *d)
{
	struct vq *q = &d->q[RECEIVE];

	for (u16 i = 0; i < VQ_SIZE; i++) {
		desc_set(vq_desc(q, i), BIG_BUFFER, 2048, DESC_WRITE, 0);
		vq_publish(d, RECEIVE, i);
	}
	dev_notify(d, RECEIVE);
	for (u32 i = 0; i < 64; i++)
		ask(d);
	wait_for_answer();
	return !dev_setup(d, 0, STEP_DRIVER_OK);
}

static int reset_while_received(struct vdev *d)
{
	for (u32 i = 0; i < 20; i++) {
		desc_set(vq_desc(&d->q[RECEIVE], 0), buffer(4), 2048, DESC_WRITE, 0);
		vq_offer(d, RECEIVE, 0);
		ask(d);
		if (!dev_setup(d, 0, STEP_DRIVER_OK))
			return 1;
	}
	return 0;
}

static int transmit_flood(struct vdev *d)
{
	struct vq *q = &d->q[SEND];
	u8 *p = at(buffer(0));
	u32 len;

	memset(p, 0, HEADER);
	len = net_arp(p + HEADER);
	for (u16 i = 0; i < VQ_SIZE; i++) {
		desc_set(vq_desc(q, i), buffer(0), HEADER + len, 0, 0);
		vq_publish(d, SEND, i);
	}
	dev_notify(d, SEND);
	for (u32 i = 0; i < 10000 && vq_used(q) != q->next_avail; i++)
		wait_shortly();
	return vq_used(q) != q->next_avail;
}

static int config_kept(struct vdev *d)
{
	u64 config = config_address(d);
	u32 mac = read32(config);

	write32(config, 0xffffffff);
	write16(config + 6, 0);
	return read32(config) != mac;
}

/* -- frames -------------------------------------------------------------------------------------- */

static void put16(u8 *p, u32 v)
{
	p[0] = (u8)(v >> 8);
	p[1] = (u8)v;
}

static void ethernet(u8 *f, u32 type)
{
	static const u8 addresses[] = { 0x52, 0x55, 10, 0, 2, 2, 0x52, 0x54, 0, 0, 0, 1 };

	memcpy(f, addresses, sizeof(addresses));
	put16(f + 12, type);
}

static u32 sum16(const u8 *p, u32 len)
{
	u32 sum = 0;

	for (u32 i = 0; i + 1 < len; i += 2)
		sum += (u32)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

/*
 * Writes an IPv4 header of this many words with a valid checksum, so that its contents are
 * processed.
 */
static void ipv4(u8 *f, u32 words, u32 total, u32 fragment, u8 protocol)
{
	u8 *p = f + ETHERNET;

	ethernet(f, IPV4);
	p[0] = (u8)(0x40 | words);
	p[1] = 0;
	put16(p + 2, total);
	put16(p + 4, 7);
	put16(p + 6, fragment);
	p[8] = 64;
	p[9] = protocol;
	put16(p + 10, 0);
	put16(p + 12, 10 << 8);
	put16(p + 14, 2 << 8 | 15);
	put16(p + 16, 10 << 8);
	put16(p + 18, 2 << 8 | 2);
	put16(p + 10, sum16(p, words >= 5 ? 4 * words : 20));
}

static int frames_arp(struct vdev *d)
{
	u8 frame[128];
	int wrong = 0;

	for (u32 i = 0; i < 40; i++) {
		u32 len = net_arp(frame);

		frame[14 + i % 28] ^= (u8)(1u << i % 8);
		wrong |= !net_send(d, frame, i & 1 ? len : 14 + i);
	}
	return wrong;
}

static int frames_ipv4_lengths(struct vdev *d)
{
	static const u16 totals[] = { 0, 1, 19, 20, 21, 28, 60, 100, 1500, 1501, 0x7fff, 0xffff };
	u8 frame[256];
	int wrong = 0;

	for (u32 words = 0; words < 16; words += 3)
		for (u32 i = 0; i < ARRAY_SIZE(totals); i++) {
			memset(frame, 0, sizeof(frame));
			ipv4(frame, words, totals[i], 0, 17);
			wrong |= !net_send(d, frame, ETHERNET + 20 + 5 * i);
		}
	return wrong;
}

static int frames_ipv4_fragments(struct vdev *d)
{
	static const u16 fragments[] = { 0x2000, 0x2001, 0x1fff, 0x3fff,
					 0x2003, 0x0002, 0x8000, 0xffff };
	u8 frame[256];
	int wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(fragments); i++)
		for (u32 total = 20; total < 80; total += 13) {
			memset(frame, 0x41, sizeof(frame));
			ipv4(frame, 5, total, fragments[i], (u8)(i & 1 ? 17 : 6));
			wrong |= !net_send(d, frame, ETHERNET + total);
		}
	return wrong;
}

static int frames_udp(struct vdev *d)
{
	/* Domain names, BOOTP, TFTP, and a port without a service. */
	static const u16 ports[] = { 53, 67, 69, 9 };
	static const u16 lengths[] = { 0, 7, 8, 9, 40, 0xffff };
	u8 frame[512];
	int wrong = 0;

	for (u32 p = 0; p < 4; p++)
		for (u32 i = 0; i < ARRAY_SIZE(lengths); i++) {
			for (u32 k = 0; k < sizeof(frame); k++)
				frame[k] = (u8)random64();
			ipv4(frame, 5, 320, 0, 17);
			put16(frame + ETHERNET + 20, 68);
			put16(frame + ETHERNET + 22, ports[p]);
			put16(frame + ETHERNET + 24, lengths[i]);
			put16(frame + ETHERNET + 26, 0);
			wrong |= !net_send(d, frame, ETHERNET + 320);
		}
	return wrong;
}

static int frames_tcp(struct vdev *d)
{
	u8 frame[128];
	int wrong = 0;

	for (u32 i = 0; i < 64; i++) {
		for (u32 k = 0; k < sizeof(frame); k++)
			frame[k] = (u8)random64();
		ipv4(frame, 5, 60, 0, 6);
		put16(frame + ETHERNET + 22, 9);     /* discard */
		frame[ETHERNET + 32] = (u8)(i << 4); /* data offset */
		wrong |= !net_send(d, frame, ETHERNET + 60);
	}
	return wrong;
}

static int frames_icmp(struct vdev *d)
{
	u8 frame[128];
	int wrong = 0;

	for (u32 i = 0; i < 64; i++) {
		for (u32 k = 0; k < sizeof(frame); k++)
			frame[k] = (u8)random64();
		ipv4(frame, 5, 20 + i, 0, 1);
		frame[ETHERNET + 20] = (u8)(i & 1 ? 8 : i);
		wrong |= !net_send(d, frame, ETHERNET + 20 + i);
	}
	return wrong;
}

static int frames_ipv6(struct vdev *d)
{
	static const u8 next[] = { 0, 6, 17, 43, 44, 50, 51, 58, 59, 60, 255 };
	u8 frame[256];
	int wrong = 0;

	for (u32 i = 0; i < 5 * sizeof(next); i++) {
		for (u32 k = 0; k < sizeof(frame); k++)
			frame[k] = (u8)random64();
		ethernet(frame, IPV6);
		frame[ETHERNET] = 0x60;
		put16(frame + ETHERNET + 4, i % 5 == 0 ? 0xffff : i % 5 == 1 ? 0 : 64);
		frame[ETHERNET + 6] = next[i / 5];
		frame[ETHERNET + 7] = 255;
		frame[ETHERNET + 8] = frame[ETHERNET + 24] = 0xfe;
		frame[ETHERNET + 9] = frame[ETHERNET + 25] = 0x80;
		/* ICMPv6: router and neighbour discovery. */
		frame[ETHERNET + 40] = (u8)(133 + i % 5);
		wrong |= !net_send(d, frame, ETHERNET + 40 + 3 * i);
	}
	return wrong;
}

static int frames_random(struct vdev *d)
{
	u8 frame[512];
	int wrong = 0;

	for (u32 i = 0; i < 100; i++) {
		for (u32 k = 0; k < sizeof(frame); k += 8) {
			u64 v = random64();

			memcpy(frame + k, &v, 8);
		}
		ethernet(frame, i & 1 ? IPV4 : (u32)random64());
		wrong |= !net_send(d, frame, ETHERNET + (u32)(random64() % 480));
	}
	return wrong;
}

static const struct attack attacks[] = {
	{ "5.1.6.2 send-without-header", REJECT, send_without_header },
	{ "5.1.6.2 send-only-header", PASS, send_only_header },
	{ "5.1.6.2 send-short", PASS, send_short },
	{ "5.1.6.2 send-long", PASS, send_long },
	{ "5.1.6.2 send-writable", REJECT, send_writable },
	{ "5.1.6.2 header-junk", PASS, header_junk },
	{ "5.1.6.3 receive-readable", REJECT, receive_readable },
	{ "5.1.6.3 receive-tiny", REJECT, receive_tiny },
	{ "5.1.6.3 receive-into-rings", ANY, receive_into_rings },
	{ "5.1.6.3 receive-nothing", PASS, receive_nothing },
	{ "5.1.6.3 receive-flood", PASS, receive_flood },
	{ "5.1.6.3 reset-while-received", PASS, reset_while_received },
	{ "5.1.6.2 transmit-flood", PASS, transmit_flood },
	{ "5.1.4 config-written", PASS, config_kept },
	{ "rfc826 frames-arp", PASS, frames_arp },
	{ "rfc791 frames-ipv4-lengths", PASS, frames_ipv4_lengths },
	{ "rfc791 frames-ipv4-fragments", PASS, frames_ipv4_fragments },
	{ "rfc768 frames-udp", PASS, frames_udp },
	{ "rfc9293 frames-tcp", PASS, frames_tcp },
	{ "rfc792 frames-icmp", PASS, frames_icmp },
	{ "rfc8200 frames-ipv6", PASS, frames_ipv6 },
	{ "net frames-random", PASS, frames_random },
};

const struct attack_class net_class = { "net", ATTACKS(attacks), ID_NET, 0 };
