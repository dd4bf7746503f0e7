/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_mmio.h"

#include "vmm/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Registers, 4.2.2. All are 4 bytes wide and aligned, except for the config space. */
enum {
	REG_MAGIC = 0x000,
	REG_VERSION = 0x004,
	REG_DEVICE = 0x008,
	REG_VENDOR = 0x00c,
	REG_FEATURES = 0x010,
	REG_FEATURES_SEL = 0x014,
	REG_DRIVER_FEATURES = 0x020,
	REG_DRIVER_FEATURES_SEL = 0x024,
	REG_QUEUE_SEL = 0x030,
	REG_QUEUE_SIZE_MAX = 0x034,
	REG_QUEUE_SIZE = 0x038,
	REG_QUEUE_READY = 0x044,
	REG_QUEUE_NOTIFY = 0x050,
	REG_INTERRUPT_STATUS = 0x060,
	REG_INTERRUPT_ACK = 0x064,
	REG_STATUS = 0x070,
	REG_QUEUE_DESC_LOW = 0x080,
	REG_QUEUE_DESC_HIGH = 0x084,
	REG_QUEUE_AVAIL_LOW = 0x090,
	REG_QUEUE_AVAIL_HIGH = 0x094,
	REG_QUEUE_USED_LOW = 0x0a0,
	REG_QUEUE_USED_HIGH = 0x0a4,
	REG_SHM_LEN_LOW = 0x0b0, /* up to 0x0bc: no shared memory, all ones */
	REG_SHM_BASE_HIGH = 0x0bc,
	REG_CONFIG_GENERATION = 0x0fc,
	REG_CONFIG = 0x100
};
#define MAGIC 0x74726976u /* "virt" */
#define VERSION 2u
#define VENDOR 0x4b564d50u /* kvmprof's: "PMVK" */
#define INTERRUPT_USED 1u
#define INTERRUPT_CONFIG 2u

struct virtio_mmio {
	struct virtio *d;
	struct dev_irq irq;
	unsigned int line;
	pthread_mutex_t lock; /* protects the registers; not the members that irq_lock protects */
	uint32_t features_sel, driver_features_sel, queue_sel;
	pthread_mutex_t irq_lock;
	uint32_t status; /* interrupt status */
	int level;
};

/*
 * Sets the interrupt line. The controller detects rising edges, so the line falls and rises while
 * there is a cause. Called with irq_lock.
 */
static void set_line(struct virtio_mmio *m)
{
	if (m->level)
		m->irq.set(m->irq.ctx, m->line, 0);
	m->level = m->status != 0;
	if (m->level)
		m->irq.set(m->irq.ctx, m->line, 1);
}

/* Raises an interrupt. Any thread. */
static void virtio_mmio_interrupt(void *transport, unsigned int q)
{
	struct virtio_mmio *m = transport;

	pthread_mutex_lock(&m->irq_lock);
	m->status |= q == UINT32_MAX ? INTERRUPT_CONFIG : INTERRUPT_USED;
	/*
	 * The line is still high: the driver checks all queues after it acknowledges that
	 * interrupt.
	 */
	if (!m->level)
		set_line(m);
	pthread_mutex_unlock(&m->irq_lock);
}

static void acknowledge(struct virtio_mmio *m, uint32_t bits)
{
	bool used;

	pthread_mutex_lock(&m->irq_lock);
	used = m->status & bits & INTERRUPT_USED;
	m->status &= ~bits;
	set_line(m);
	pthread_mutex_unlock(&m->irq_lock);
	if (used && m->d->ops->acknowledged)
		m->d->ops->acknowledged(m->d);
}

static uint32_t interrupt_status(struct virtio_mmio *m)
{
	uint32_t v;

	pthread_mutex_lock(&m->irq_lock);
	v = m->status;
	pthread_mutex_unlock(&m->irq_lock);
	return v;
}

static void set_low(uint64_t *v, uint32_t low)
{
	*v = (*v & ~(uint64_t)UINT32_MAX) | low;
}

static void set_high(uint64_t *v, uint32_t high)
{
	*v = (uint64_t)high << 32 | (uint32_t)*v;
}

static uint32_t reg_read(struct virtio_mmio *m, uint64_t off)
{
	struct virtio *d = m->d;
	unsigned int q = m->queue_sel;

	switch (off) {
	case REG_MAGIC:
		return MAGIC;
	case REG_VERSION:
		return VERSION;
	case REG_DEVICE:
		return d->id;
	case REG_VENDOR:
		return VENDOR;
	case REG_FEATURES:
		return virtio_features_read(d, m->features_sel);
	case REG_QUEUE_SIZE_MAX:
		return q < d->nqueues ? VIRTIO_QUEUE_SIZE : 0;
	case REG_QUEUE_READY:
		return q < d->nqueues && d->queue[q].enabled;
	case REG_INTERRUPT_STATUS:
		return interrupt_status(m);
	case REG_STATUS:
		return atomic_load(&d->status);
	case REG_CONFIG_GENERATION:
		return 0; /* the device never changes its config (2.5.3) */
	default:
		return off >= REG_SHM_LEN_LOW && off <= REG_SHM_BASE_HIGH ? UINT32_MAX : 0;
	}
}

static void queue_write(struct virtio_mmio *m, uint64_t off, uint32_t v)
{
	struct virtio_queue *q = virtio_queue_setup(m->d, m->queue_sel);

	if (!q)
		return;
	switch (off) {
	case REG_QUEUE_SIZE:
		q->size = (uint16_t)(v <= VIRTIO_QUEUE_SIZE ? v : 0); /* 0 is refused later */
		break;
	case REG_QUEUE_READY:
		if (v & 1)
			virtio_queue_enable(m->d, m->queue_sel);
		break;
	case REG_QUEUE_DESC_LOW:
		set_low(&q->desc, v);
		break;
	case REG_QUEUE_DESC_HIGH:
		set_high(&q->desc, v);
		break;
	case REG_QUEUE_AVAIL_LOW:
		set_low(&q->avail, v);
		break;
	case REG_QUEUE_AVAIL_HIGH:
		set_high(&q->avail, v);
		break;
	case REG_QUEUE_USED_LOW:
		set_low(&q->used, v);
		break;
	case REG_QUEUE_USED_HIGH:
		set_high(&q->used, v);
		break;
	}
}

static void reg_write(struct virtio_mmio *m, uint64_t off, uint32_t v)
{
	switch (off) {
	case REG_FEATURES_SEL:
		m->features_sel = v;
		break;
	case REG_DRIVER_FEATURES:
		virtio_features_write(m->d, m->driver_features_sel, v);
		break;
	case REG_DRIVER_FEATURES_SEL:
		m->driver_features_sel = v;
		break;
	case REG_QUEUE_SEL:
		m->queue_sel = v;
		break;
	case REG_STATUS:
		virtio_set_status(m->d, (uint8_t)v);
		if (!(v & UINT8_MAX))
			acknowledge(m, UINT32_MAX);
		break;
	default:
		queue_write(m, off, v);
	}
}

static void mmio_io(void *dev, uint64_t off, bool write, unsigned int len, uint64_t *val)
{
	struct virtio_mmio *m = dev;
	bool reg = off < REG_CONFIG;

	if (!write)
		*val = 0;
	if (reg && (len != 4 || off % 4))
		return; /* 4.2.2.2 forbids this to drivers */
	/* The registers that are written for each request need no lock. */
	if (reg && write && off == REG_QUEUE_NOTIFY) {
		virtio_notify(m->d, (uint32_t)*val);
		return;
	}
	if (reg && write && off == REG_INTERRUPT_ACK) {
		acknowledge(m, (uint32_t)*val);
		return;
	}
	pthread_mutex_lock(&m->lock);
	if (!reg && write)
		virtio_config_write(m->d, off - REG_CONFIG, len, *val);
	else if (!reg)
		*val = virtio_config_read(m->d, off - REG_CONFIG, len);
	else if (write)
		reg_write(m, off, (uint32_t)*val);
	else
		*val = reg_read(m, off);
	pthread_mutex_unlock(&m->lock);
}

int virtio_mmio_new(struct virtio_mmio **out, struct virtio *d, unsigned int index, struct bus *bus,
		    struct dev_irq irq, struct err *e)
{
	struct virtio_mmio *m;
	int ret;

	if (index >= VIRTIO_MMIO_MAX)
		return err_set(e, ENOSPC,
			       "more than %u virtio-mmio devices: leave one out or use "
			       "--virtio pci",
			       VIRTIO_MMIO_MAX);
	m = calloc(1, sizeof(*m));
	if (!m)
		return err_nomem(e);
	m->d = d;
	m->irq = irq;
	m->line = IRQ_VIRTIO_MMIO + index;
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->irq_lock, NULL);
	ret = bus_add_mmio(bus, GPA_VIRTIO_MMIO + index * GPA_VIRTIO_MMIO_SIZE,
			   GPA_VIRTIO_MMIO_SIZE, d->name, mmio_io, m);
	if (ret) {
		virtio_mmio_destroy(m);
		return err_set(e, -ret, "cannot register %s: %s", d->name, strerror(-ret));
	}
	d->transport = m;
	d->interrupt = virtio_mmio_interrupt;
	*out = m;
	return 0;
}

void virtio_mmio_destroy(struct virtio_mmio *m)
{
	if (!m)
		return;
	pthread_mutex_destroy(&m->lock);
	pthread_mutex_destroy(&m->irq_lock);
	free(m);
}

void virtio_mmio_cmdline(unsigned int n, struct buf *out)
{
	for (unsigned int i = 0; i < n; i++)
		buf_printf(out, "virtio_mmio.device=%uK@0x%" PRIx64 ":%u ",
			   (unsigned int)(GPA_VIRTIO_MMIO_SIZE >> 10),
			   GPA_VIRTIO_MMIO + i * GPA_VIRTIO_MMIO_SIZE, IRQ_VIRTIO_MMIO + i);
}

int virtio_mmio_save(void *what, struct buf *out, struct err *e)
{
	struct virtio_mmio *m = what;

	buf_u32(out, m->features_sel);
	buf_u32(out, m->driver_features_sel);
	buf_u32(out, m->queue_sel);
	buf_u32(out, m->status);
	buf_u8(out, (uint8_t)m->level);
	return virtio_save(m->d, out, e);
}

int virtio_mmio_restore(void *what, struct cursor *in, struct err *e)
{
	struct virtio_mmio *m = what;

	m->features_sel = cursor_u32(in);
	m->driver_features_sel = cursor_u32(in);
	m->queue_sel = cursor_u32(in);
	m->status = cursor_u32(in) & (INTERRUPT_USED | INTERRUPT_CONFIG);
	m->level = cursor_u8(in) != 0; /* KVM restores the controller's view of the line */
	return virtio_restore(m->d, in, e);
}
