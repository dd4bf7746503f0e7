/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/pit.h"

#include "base/clock.h"
#include "base/thread.h"
#include "vmm/layout.h"

#include <errno.h>
#include <string.h>

/*
 * An interrupt comes after this many minimum periods at the latest, whatever processor time the
 * guest had.
 */
#define MOST_PUT_OFF 20u

static uint64_t count_ns(uint32_t count)
{
	return count * NSEC_PER_SEC / PIT_HZ;
}

static bool periodic(const struct pit_channel *c)
{
	return c->mode == 2 || c->mode == 3;
}

/* Returns the counter value that the guest would read now. */
static uint16_t count_now(const struct pit_channel *c)
{
	uint64_t ticks = (uint64_t)((unsigned __int128)(clock_mono_ns() - c->start_ns) * PIT_HZ /
				    NSEC_PER_SEC);

	if (!c->reload)
		return 0;
	if (periodic(c))
		return (uint16_t)(c->reload - ticks % c->reload);
	/* One-shot modes continue counting down through zero. */
	return (uint16_t)(c->reload - ticks);
}

static bool output(const struct pit_channel *c)
{
	uint64_t ticks = (uint64_t)((unsigned __int128)(clock_mono_ns() - c->start_ns) * PIT_HZ /
				    NSEC_PER_SEC);

	if (!c->reload)
		return false;
	if (c->mode == 3)
		return ticks % c->reload < (c->reload + 1) / 2;
	return c->mode == 2 || ticks >= c->reload;
}

/* Computes the time of channel 0's next interrupt. Called with the lock. */
static void schedule(struct pit *p, uint64_t from)
{
	const struct pit_channel *c = &p->ch[0];
	uint64_t wait = count_ns(c->reload), next;

	if (periodic(c) && wait < p->floor_ns)
		wait = p->floor_ns;
	next = from + wait;
	if (next < p->last_ns + p->floor_ns)
		next = p->last_ns + p->floor_ns;
	p->next_ns = c->reload ? next : 0;
	pthread_cond_signal(&p->changed);
}

static void pit_set_reload(struct pit *p, unsigned int n, uint32_t count)
{
	struct pit_channel *c = &p->ch[n];

	c->reload = count ? count : 65536;
	c->start_ns = clock_mono_ns();
	if (n == 0)
		schedule(p, c->start_ns);
}

static void write_count(struct pit *p, unsigned int n, uint8_t v)
{
	struct pit_channel *c = &p->ch[n];

	switch (c->access) {
	case 1:
		pit_set_reload(p, n, v);
		break;
	case 2:
		pit_set_reload(p, n, (uint32_t)v << 8);
		break;
	default:
		if (c->write_high)
			pit_set_reload(p, n, (uint32_t)v << 8 | c->low);
		else
			c->low = v;
		c->write_high = !c->write_high;
	}
}

static uint8_t read_count(struct pit_channel *c)
{
	uint16_t v = c->latched ? c->latch : count_now(c);
	bool high = c->access == 2 || (c->access == 3 && c->read_high);

	if (c->access == 3)
		c->read_high = !c->read_high;
	if (c->access != 3 || high)
		c->latched = false;
	return (uint8_t)(high ? v >> 8 : v);
}

/*
 * Latches the count. A latched count stays until it is read; latching again before that has no
 * effect.
 */
static void latch(struct pit_channel *c)
{
	if (c->latched)
		return;
	c->latch = count_now(c);
	c->latched = true;
}

static void command(struct pit *p, uint8_t v)
{
	unsigned int n = v >> 6;
	struct pit_channel *c;

	if (n == 3) /* read-back: latch the requested counts */
		for (n = 0; n < 3; n++) {
			if ((v & 2u << n) && !(v & 0x20))
				latch(&p->ch[n]);
			if (n == 2)
				return;
		}
	c = &p->ch[n];
	if (!(v & 0x30)) {
		latch(c);
		return;
	}
	c->access = v >> 4 & 3;
	c->mode = v >> 1 & 7;
	if (c->mode > 5)
		c->mode -= 4; /* bit 2 is "don't care" for modes 2 and 3 */
	c->write_high = c->read_high = c->latched = false;
	c->reload = 0;
	if (n == 0)
		p->next_ns = 0;
}

static void pit_io(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	struct pit *p = dev;

	(void)len;
	pthread_mutex_lock(&p->lock);
	if (off == 3) {
		if (write)
			command(p, (uint8_t)*val);
	} else if (write) {
		write_count(p, off, (uint8_t)*val);
	} else {
		*val = read_count(&p->ch[off]);
	}
	pthread_mutex_unlock(&p->lock);
}

/* Handles port 0x61: gate and output of channel 2, refresh toggle. */
static void speaker_io(void *dev, uint16_t off, bool write, unsigned int len, uint32_t *val)
{
	struct pit *p = dev;

	(void)off;
	(void)len;
	pthread_mutex_lock(&p->lock);
	if (write) {
		bool gate = *val & 1;

		if (gate && !p->speaker_gate)
			p->ch[2].start_ns = clock_mono_ns();
		p->speaker_gate = gate;
	} else {
		*val = (p->speaker_gate ? 1u : 0) | (output(&p->ch[2]) ? 0x20u : 0) |
		       (clock_mono_ns() / 15000 & 1 ? 0x10u : 0);
	}
	pthread_mutex_unlock(&p->lock);
}

/*
 * Returns how much longer a due interrupt waits for a guest that has hardly run since the last one;
 * 0: not at all. Called with the lock.
 */
static uint64_t too_soon(struct pit *p)
{
	uint64_t cpu, left;

	if (!p->load.runs || !p->load.runs(p->load.ctx, &cpu))
		return 0;
	left = cpu < p->last_cpu ? 0 : p->last_cpu + p->floor_ns;
	left = left > cpu ? left - cpu : 0;
	if (!left || p->put_off >= MOST_PUT_OFF * p->floor_ns) {
		p->last_cpu = cpu;
		return 0;
	}
	return left;
}

static void *tick_thread(void *arg)
{
	struct pit *p = arg;

	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		uint64_t next = p->next_ns, now = clock_mono_ns(), wait;

		if (!next) {
			pthread_cond_wait(&p->changed, &p->lock);
			continue;
		}
		if (now < next) {
			thread_cond_wait_until(&p->changed, &p->lock, next);
			continue;
		}
		wait = too_soon(p);
		if (wait) {
			p->put_off += wait;
			p->next_ns = now + wait;
			continue;
		}
		p->put_off = 0;
		p->ticks++;
		p->last_ns = now;
		if (periodic(&p->ch[0]))
			schedule(p, now);
		else
			p->next_ns = 0;
		/* An edge: the controller latches the rise. */
		p->irq.set(p->irq.ctx, IRQ_TIMER, 1);
		p->irq.set(p->irq.ctx, IRQ_TIMER, 0);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int pit_init(struct pit *p, struct bus *bus, struct dev_irq irq, struct pit_load load,
	     uint64_t floor_ns, struct err *e)
{
	int ret;

	memset(p, 0, sizeof(*p));
	p->irq = irq;
	p->load = load;
	p->floor_ns = floor_ns;
	for (unsigned int i = 0; i < 3; i++)
		p->ch[i].access = 3;
	ret = bus_add(bus, 0x40, 4, "pit", pit_io, p);
	ret = ret ? ret : bus_add(bus, 0x61, 1, "speaker", speaker_io, p);
	if (ret)
		return err_set(e, -ret, "cannot register the PIT: %s", strerror(-ret));
	pthread_mutex_init(&p->lock, NULL);
	thread_cond_init(&p->changed);
	return 0;
}

int pit_start(struct pit *p, struct err *e)
{
	int ret = thread_start(&p->thread, THREAD_PIT, tick_thread, p);

	p->running = ret == 0;
	return ret ? err_set(e, ret, "cannot start the PIT thread: %s", strerror(ret)) : 0;
}

void pit_deinit(struct pit *p)
{
	if (p->running) {
		pthread_mutex_lock(&p->lock);
		p->stop = true;
		pthread_cond_signal(&p->changed);
		pthread_mutex_unlock(&p->lock);
		pthread_join(p->thread, NULL);
		p->running = false;
	}
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
}

static uint64_t since(uint64_t then, uint64_t now)
{
	return now > then ? now - then : 0;
}

int pit_save(void *pit, struct buf *out, struct err *e)
{
	struct pit *p = pit;
	uint64_t now;

	(void)e;
	pthread_mutex_lock(&p->lock);
	now = clock_mono_ns();
	for (unsigned int i = 0; i < 3; i++) {
		const struct pit_channel *c = &p->ch[i];

		buf_u8(out, c->mode);
		buf_u8(out, c->access);
		buf_u8(out, c->write_high);
		buf_u8(out, c->read_high);
		buf_u8(out, c->latched);
		buf_u8(out, c->low);
		buf_u16(out, c->latch);
		buf_u32(out, c->reload);
		buf_u64(out, since(c->start_ns, now));
	}
	buf_u8(out, p->speaker_gate);
	buf_u8(out, p->next_ns != 0);
	buf_u64(out, since(now, p->next_ns));
	pthread_mutex_unlock(&p->lock);
	return 0;
}

int pit_restore(void *pit, struct cursor *in, struct err *e)
{
	struct pit *p = pit;
	struct pit_channel ch[3];
	uint64_t now = clock_mono_ns(), next;
	bool gate, due, bad = false;

	for (unsigned int i = 0; i < 3; i++) {
		struct pit_channel *c = &ch[i];

		c->mode = cursor_u8(in);
		c->access = cursor_u8(in);
		c->write_high = cursor_u8(in) & 1;
		c->read_high = cursor_u8(in) & 1;
		c->latched = cursor_u8(in) & 1;
		c->low = cursor_u8(in);
		c->latch = cursor_u16(in);
		c->reload = cursor_u32(in);
		/* A start before the host's boot counts as the host's boot. */
		c->start_ns = since(cursor_u64(in), now);
		bad |= c->mode > 5 || c->access < 1 || c->access > 3 || c->reload > 65536;
	}
	gate = cursor_u8(in) & 1;
	due = cursor_u8(in) & 1;
	next = cursor_u64(in);
	if (in->bad || cursor_left(in) || bad || next > 3600 * NSEC_PER_SEC)
		return err_set(e, EINVAL, "the state of the interval timer is damaged");
	pthread_mutex_lock(&p->lock);
	memcpy(p->ch, ch, sizeof(ch));
	p->speaker_gate = gate;
	p->next_ns = due ? now + next : 0;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return 0;
}
