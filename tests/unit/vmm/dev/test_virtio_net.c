/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-net from the driver's side, with what is at the other end of the cable: an ARP each. */
#include "tests/unit/virtio_fixture.h"
#include "tests/unit/skip.h"

#include "base/clock.h"
#include "vmm/dev/virtio_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define HEADER 12u
#define ARP_LEN 42u
#define WAIT_MS 20000u

static const uint8_t own[6] = { 0x52, 0x54, 1, 2, 3, 4 };

/* RFC 826: who has `to`? */
static void put_arp(uint8_t *p, uint32_t from, uint32_t to)
{
	static const uint8_t fixed[] = { 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1 };

	memset(p, 0, HEADER + ARP_LEN);
	p += HEADER;
	memset(p, 0xff, 6);
	memcpy(p + 6, own, 6);
	memcpy(p + 12, fixed, sizeof(fixed));
	memcpy(p + 22, own, 6);
	from = htonl(from);
	to = htonl(to);
	memcpy(p + 28, &from, 4);
	memcpy(p + 38, &to, 4);
}

/* The ring is written by another thread. */
static bool wait_for(unsigned int q, uint32_t *len)
{
	uint32_t head;

	for (unsigned int i = 0; i < WAIT_MS; i++) {
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (fix_take(q, &head, len))
			return true;
		usleep(1000);
	}
	return false;
}

/* Frames of other kinds may come first. */
static void ask(struct virtio *d, uint32_t from, uint32_t to)
{
	uint32_t want = htonl(to), len = 0;
	const uint8_t *f = fix_ram + FIX_DATA + HEADER;

	fix_start(d, 0);
	fix_put(0, 0, FIX_DATA, HEADER + NET_FRAME_MAX, FIX_WRITE, 0);
	fix_offer(0, 0);
	virtio_notify(d, 0);
	put_arp(fix_ram + FIX_DATA + 0x1000, from, to);
	fix_put(1, 0, FIX_DATA + 0x1000, HEADER, FIX_NEXT, 1);
	fix_put(1, 1, FIX_DATA + 0x1000 + HEADER, ARP_LEN, 0, 0);
	fix_offer(1, 0);
	virtio_notify(d, 1);
	assert_true(wait_for(1, &len));
	for (;;) {
		assert_true(wait_for(0, &len));
		assert_true(len >= HEADER + 14);
		assert_int_equal(fix_ram[FIX_DATA + 10], 1); /* num_buffers */
		if (f[12] == 0x08 && f[13] == 0x06 && f[21] == 2 && !memcmp(f + 28, &want, 4))
			break;
		fix_offer(0, 0);
	}
	assert_memory_equal(f + 32, own, 6);
	assert_true(len >= HEADER + ARP_LEN);
}

static void user(void **state)
{
	struct net_config cfg = { .kind = NET_USER };
	struct err e = { 0 };
	struct virtio *d;
	int ret = virtio_net_new(&d, &fix_mem, &cfg, &e);

	(void)state;
	if (ret == -ENOENT) {
		SKIP("%s", e.text);
	}
	assert_int_equal(ret, 0);
	assert_int_equal(d->ops->start(d, &e), 0);
	assert_int_equal(d->config[6], 1);
	ask(d, 0x0a00020f, 0x0a000202);
	ask(d, 0x0a00020f, 0x0a000203); /* after a reset */
	/* Frames that are none are taken and dropped. */
	fix_put(1, 0, FIX_DATA, HEADER, 0, 0);
	fix_offer(1, 0);
	fix_put(1, 1, FIX_DATA, 0x8000, 0, 0);
	fix_offer(1, 1);
	virtio_notify(d, 1);
	assert_false(d->failed);
	fix_put(1, 0, FIX_DATA, HEADER - 1, 0, 0);
	fix_offer(1, 0);
	virtio_notify(d, 1);
	assert_true(d->failed);
	d->ops->destroy(d);
}

static struct {
	pthread_mutex_t lock;
	struct io_record r[16];
	unsigned int n, batches;
} told = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t told_batch(void *ctx)
{
	assert_ptr_equal(ctx, &told);
	return 100 + ++told.batches;
}

static void told_done(void *ctx, const struct io_record *r)
{
	assert_ptr_equal(ctx, &told);
	pthread_mutex_lock(&told.lock);
	if (told.n < 16)
		told.r[told.n] = *r;
	told.n++;
	pthread_mutex_unlock(&told.lock);
}

/* The record number i of this type; waits for it, as other threads bring what is received. */
static struct io_record told_of(uint8_t type, unsigned int i)
{
	for (unsigned int ms = 0; ms < WAIT_MS; ms++) {
		unsigned int n = i;

		pthread_mutex_lock(&told.lock);
		for (unsigned int k = 0; k < told.n && k < 16; k++)
			if (told.r[k].type == type && n-- == 0) {
				struct io_record r = told.r[k];

				pthread_mutex_unlock(&told.lock);
				return r;
			}
		pthread_mutex_unlock(&told.lock);
		usleep(1000);
	}
	fail_msg("no packet %u of type %u", i, type);
	return (struct io_record){ 0 };
}

/* Each packet once, with its length and its moments in order; what is lost is told as lost. */
static void packets_are_told(void **state)
{
	const struct dev_io io = { told_batch, told_done, &told };
	const struct net_config cfg = { .kind = NET_USER };
	struct net_stats stats;
	struct err e = { 0 };
	struct io_record r;
	struct virtio *d;
	int ret = virtio_net_new(&d, &fix_mem, &cfg, &e);

	(void)state;
	if (ret == -ENOENT) {
		SKIP("%s", e.text);
	}
	virtio_net_watch(d, &io);
	assert_int_equal(d->ops->start(d, &e), 0);
	ask(d, 0x0a00020f, 0x0a000202);
	r = told_of(IO_SENT, 0);
	assert_int_equal(r.status, IO_OK);
	assert_int_equal(r.bytes, ARP_LEN);
	assert_int_equal(r.token, 101);
	assert_true(r.notified_ns && r.notified_ns <= r.submit_ns && r.submit_ns <= r.complete_ns);
	assert_true(r.raised_ns >= r.complete_ns);
	r = told_of(IO_RECEIVED, 0);
	assert_int_equal(r.status, IO_OK);
	assert_true(r.bytes >= ARP_LEN && r.bytes <= NET_FRAME_MAX);
	assert_int_equal(r.token | r.notified_ns, 0);
	assert_true(r.submit_ns && r.submit_ns <= r.complete_ns && r.complete_ns <= r.raised_ns);
	/* A notification of nothing asks for no name; one of two packets asks once. */
	virtio_notify(d, 1);
	assert_int_equal(told.batches, 1);
	fix_put(1, 0, FIX_DATA, HEADER, 0, 0);
	fix_offer(1, 0);
	fix_put(1, 1, FIX_DATA, 0x8000, 0, 0);
	fix_offer(1, 1);
	virtio_notify(d, 1);
	assert_int_equal(told.batches, 2);
	for (unsigned int i = 1; i <= 2; i++) {
		r = told_of(IO_SENT, i);
		assert_int_equal(r.status, IO_ERROR);
		assert_int_equal(r.bytes, i == 1 ? 0 : 0x8000 - HEADER);
		assert_int_equal(r.complete_ns, 0);
		assert_int_equal(r.token, 102);
	}
	/* No buffer is left for this answer, unless one was for what came unasked. */
	virtio_net_stats(d, &stats);
	assert_int_equal(stats.sent, 1);
	assert_int_equal(stats.sent_bytes, ARP_LEN);
	assert_int_equal(stats.not_sent, 2);
	put_arp(fix_ram + FIX_DATA + 0x1000, 0x0a00020f, 0x0a000202);
	fix_put(1, 0, FIX_DATA + 0x1000, HEADER + ARP_LEN, 0, 0);
	fix_offer(1, 0);
	virtio_notify(d, 1);
	told_of(IO_RECEIVED, (unsigned int)(stats.received + stats.not_received));
	/* With the guest gone nothing gets into it, and nothing is told. */
	virtio_net_end(d);
	virtio_net_stats(d, &stats);
	assert_int_equal(stats.received + stats.not_received + stats.sent + stats.not_sent, told.n);
	put_arp(fix_ram + FIX_DATA + 0x1000, 0x0a00020f, 0x0a000203);
	fix_put(0, 0, FIX_DATA, HEADER + NET_FRAME_MAX, FIX_WRITE, 0);
	fix_offer(0, 0);
	fix_offer(1, 0);
	virtio_notify(d, 1);
	assert_int_equal(told_of(IO_SENT, 4).status, IO_OK);
	usleep(20000);
	virtio_net_stats(d, &stats);
	assert_int_equal(stats.received + stats.not_received + stats.sent + stats.not_sent, told.n);
	assert_int_equal(stats.sent, 3);
	d->ops->destroy(d);
}

static void user_ports(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct net_config cfg = { .kind = NET_USER, .nforwards = 1 };
	socklen_t len = sizeof(at);
	struct err e = { 0 };
	struct virtio *d;
	int fd = socket(AF_INET, SOCK_STREAM, 0), ret;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	cfg.forward[0] = (struct net_forward){ .host = ntohs(at.sin_port), .guest = 80 };
	ret = virtio_net_new(&d, &fix_mem, &cfg, &e);
	close(fd);
	if (ret == -ENOENT)
		SKIP("%s", e.text);
	assert_int_equal(ret, -EADDRINUSE);
	assert_non_null(strstr(e.text, "cannot listen on port"));
}

static uint16_t sum16(const uint8_t *p, size_t n, uint32_t sum)
{
	for (size_t i = 0; i + 1 < n; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void be16(uint8_t *p, unsigned int v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* RFC 791, RFC 793: a SYN from 10.0.2.15 to this port of 10.0.2.2, behind a virtio header. */
#define SYN_LEN (14u + 20u + 20u)
static void put_syn(uint8_t *p, uint16_t port)
{
	static const uint8_t mac[14] = { 0x52, 0x55, 10, 0, 2, 2, 0x52, 0x54, 1, 2, 3, 4, 8, 0 };
	static const uint8_t ip[20] = { 0x45, 0, 0,  40, 0, 1,	0x40, 0, 64, 6,
					0,    0, 10, 0,	 2, 15, 10,   0, 2,  2 };
	uint8_t *i = p + HEADER + 14, *t = i + 20;

	memset(p, 0, HEADER + SYN_LEN);
	memcpy(p + HEADER, mac, sizeof(mac));
	memcpy(i, ip, sizeof(ip));
	be16(i + 10, (uint16_t)~sum16(i, 20, 0));
	be16(t, 40000);
	be16(t + 2, port);
	t[12] = 5 << 4; /* words of the header */
	t[13] = 2;	/* SYN */
	be16(t + 14, 8192);
	be16(t + 16, (uint16_t)~sum16(t, 20, sum16(i + 12, 8, 6 + 20))); /* and the pseudo header */
}

/* Does a guest on this network get through to a port of the host's 127.0.0.1? */
static bool reaches_host(const struct net_config *cfg)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), got;
	socklen_t len = sizeof(at);
	const uint8_t *f = fix_ram + FIX_DATA + HEADER;
	struct err e = { 0 };
	struct virtio *d;
	uint32_t n;

	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	if (virtio_net_new(&d, &fix_mem, cfg, &e) == -ENOENT) {
		close(listener);
		SKIP("%s", e.text);
	}
	assert_int_equal(d->ops->start(d, &e), 0);
	ask(d, 0x0a00020f, 0x0a000203); /* it knows our address now */
	fix_offer(0, 0);
	put_syn(fix_ram + FIX_DATA + 0x1000, ntohs(at.sin_port));
	fix_put(1, 0, FIX_DATA + 0x1000, HEADER + SYN_LEN, 0, 0);
	fix_offer(1, 0);
	virtio_notify(d, 1);
	/* An answer of either kind: SYN and ACK, or RST, or ICMP's "unreachable". Restricted: none. */
	for (unsigned int i = 0; i < (cfg->restricted ? 300 : WAIT_MS); i++) {
		uint32_t head;

		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (fix_take(0, &head, &n)) {
			if (f[12] == 8 && f[13] == 0 && (f[23] == 6 || f[23] == 1))
				break;
			fix_offer(0, 0);
		}
		usleep(1000);
	}
	got = accept(listener, NULL, NULL);
	if (got >= 0)
		close(got);
	d->ops->destroy(d);
	close(listener);
	return got >= 0;
}

/*
 * Services on 127.0.0.1 trust only the host's users: a guest is none of them, unless it was
 * requested.
 */
static void the_hosts_own_ports(void **state)
{
	const struct net_config plain = { .kind = NET_USER },
				loopback = { .kind = NET_USER, .host_loopback = true },
				restricted = { .kind = NET_USER, .restricted = true };

	(void)state;
	assert_true(reaches_host(&loopback));
	assert_false(reaches_host(&plain));
	assert_false(reaches_host(&restricted));
}

/* Puts n frames that are for nobody into the queue at once. */
static void send_many(struct virtio *d, unsigned int n)
{
	fix_start(d, 0);
	for (unsigned int i = 0; i < n; i++) {
		memset(fix_ram + FIX_DATA + 0x100 * i, 0, HEADER + 60);
		fix_put(1, i, FIX_DATA + 0x100 * i, HEADER + 60, 0, 0);
		fix_offer(1, i);
	}
	virtio_notify(d, 1);
}

static void limits_hold(void **state)
{
	struct net_config cfg = { .kind = NET_USER, .limit.operations = 20 };
	uint64_t begun, used = clock_ns(CLOCK_PROCESS_CPUTIME_ID), ns;
	struct net_stats stats = { 0 };
	struct err e = { 0 };
	struct virtio *d;
	int ret = virtio_net_new(&d, &fix_mem, &cfg, &e);

	(void)state;
	if (ret == -ENOENT) {
		SKIP("%s", e.text);
	}
	assert_int_equal(ret, 0);
	assert_int_equal(d->ops->start(d, &e), 0);
	begun = clock_mono_ns();
	send_many(d, 8);
	for (unsigned int i = 0; i < WAIT_MS && stats.sent + stats.not_sent < 8; i++) {
		usleep(1000);
		virtio_net_stats(d, &stats);
	}
	ns = clock_mono_ns() - begun;
	used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
	assert_int_equal(stats.sent, 8);
	/* 2 or 3 are in the bucket, the others come one each 50 ms. */
	assert_true(ns >= 240 * 1000000ull);
	assert_true(used < ns / 2);
	d->ops->destroy(d);
}

/* At one packet in a second they would take half a minute. */
static void nobody_waits_for_a_limit(void **state)
{
	struct net_config cfg = { .kind = NET_USER, .limit.operations = 1 };
	uint64_t begun = clock_mono_ns();
	struct net_stats stats;
	struct err e = { 0 };
	struct virtio *d;
	int ret = virtio_net_new(&d, &fix_mem, &cfg, &e);

	(void)state;
	if (ret == -ENOENT) {
		SKIP("%s", e.text);
	}
	assert_int_equal(ret, 0);
	assert_int_equal(d->ops->start(d, &e), 0);
	send_many(d, 8);
	d->ops->drain(d); /* sends them */
	virtio_net_stats(d, &stats);
	assert_int_equal(stats.sent + stats.not_sent, 8);
	send_many(d, 8); /* with a reset before */
	send_many(d, 8);
	d->ops->destroy(d);
	assert_true(clock_mono_ns() - begun < 10 * NSEC_PER_SEC);
}

/* EtherType for experiments (IEEE 802). */
#define TYPE 0x88b5

/* The other side of the interface: what the host sends into it and gets out of it; -1: no rights. */
static int open_host_side(const char *name)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(TYPE) };
	struct timeval limit = { .tv_sec = WAIT_MS / 1000 };
	struct ifreq ifr = { .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = socket(AF_PACKET, SOCK_RAW, htons(TYPE));

	if (fd < 0)
		return -1;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
	at.sll_ifindex = (int)if_nametoindex(name);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

static void tap(void **state)
{
	uint8_t frame[60] = {
		0x52, 0x54, 1, 2, 3, 4, 0x52, 0x54, 9, 9, 9, 9, 0x88, 0xb5, 'h', 'i'
	};
	const uint8_t *got = fix_ram + FIX_DATA + HEADER;
	struct net_config cfg = { .kind = NET_TAP };
	uint8_t host[sizeof(frame)] = { 0 };
	struct err e = { 0 };
	struct virtio *d;
	uint32_t len = 0;
	char name[16];
	int ret, fd;

	(void)state;
	snprintf(name, sizeof(name), "kvmprof%d", (int)getpid() % 100000);
	cfg.tap = name;
	ret = virtio_net_new(&d, &fix_mem, &cfg, &e);
	if (ret) { /* not root, or no such device in this container */
		assert_non_null(strstr(e.text, ret == -EPERM ? name : "/dev/net/tun"));
		SKIP("%s", e.text);
	}
	assert_int_equal(d->ops->start(d, &e), 0);
	fd = open_host_side(name);
	if (fd < 0) {
		d->ops->destroy(d);
		SKIP("no packet socket on %s may be opened here", name);
	}
	fix_start(d, 0);
	memcpy(fix_ram + FIX_DATA + 0x1000 + HEADER, frame, sizeof(frame));
	fix_put(1, 0, FIX_DATA + 0x1000, HEADER + sizeof(frame), 0, 0);
	fix_offer(1, 0);
	virtio_notify(d, 1);
	assert_int_equal(recv(fd, host, sizeof(host), 0), sizeof(frame));
	assert_memory_equal(host, frame, sizeof(frame));
	fix_put(0, 0, FIX_DATA, HEADER + NET_FRAME_MAX, FIX_WRITE, 0);
	fix_offer(0, 0);
	virtio_notify(d, 0);
	frame[14] = 'H';
	assert_int_equal(send(fd, frame, sizeof(frame), 0), sizeof(frame));
	do { /* the host says hello by IPv6, too; who finds no buffer is lost */
		assert_true(wait_for(0, &len));
		if (got[12] == 0x88 && got[13] == 0xb5)
			break;
		fix_offer(0, 0);
		assert_int_equal(send(fd, frame, sizeof(frame), 0), sizeof(frame));
	} while (true);
	assert_int_equal(len, HEADER + sizeof(frame));
	assert_memory_equal(got, frame, sizeof(frame));
	close(fd);
	d->ops->destroy(d);
	assert_int_equal(if_nametoindex(name), 0); /* the interface is gone */
	cfg.tap = "a-name-that-is-too-long";
	assert_int_equal(virtio_net_new(&d, &fix_mem, &cfg, &e), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user),
		cmocka_unit_test(packets_are_told),
		cmocka_unit_test(user_ports),
		cmocka_unit_test(the_hosts_own_ports),
		cmocka_unit_test(tap),
		cmocka_unit_test(limits_hold),
		cmocka_unit_test(nobody_waits_for_a_limit),
	};

	return cmocka_run_group_tests_name("virtio_net", tests, NULL, NULL);
}
