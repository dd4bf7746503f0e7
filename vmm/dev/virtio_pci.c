/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio_pci.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VENDOR_RED_HAT 0x1af4u
#define DEVICE_MODERN 0x1040u /* + VIRTIO_ID_* (4.1.2.1) */
#define REVISION 1u

/* Layout of the BAR. */
enum {
	BAR_COMMON = 0x0000,
	BAR_ISR = 0x1000,
	BAR_CONFIG = 0x2000,
	BAR_NOTIFY = 0x3000,
	BAR_TABLE = 0x4000,
	BAR_PENDING = 0x5000,
	BAR_SIZE = 0x8000
};
#define BAR_STEP 0x1000u
#define NOTIFY_STEP 4u /* notify_off_multiplier */

/* Registers of the common configuration structure, 4.1.4.3. */
enum {
	REG_FEATURE_SELECT = 0x00,
	REG_FEATURE = 0x04,
	REG_DRIVER_FEATURE_SELECT = 0x08,
	REG_DRIVER_FEATURE = 0x0c,
	REG_CONFIG_VECTOR = 0x10,
	REG_QUEUES = 0x12,
	REG_STATUS = 0x14,
	REG_GENERATION = 0x15,
	REG_QUEUE_SELECT = 0x16,
	REG_QUEUE_SIZE = 0x18,
	REG_QUEUE_VECTOR = 0x1a,
	REG_QUEUE_ENABLE = 0x1c,
	REG_QUEUE_NOTIFY_OFF = 0x1e,
	REG_QUEUE_DESC = 0x20,
	REG_QUEUE_DRIVER = 0x28,
	REG_QUEUE_DEVICE = 0x30,
	COMMON_SIZE = 0x38
};

/* Capabilities, 4.1.4: their offsets in the configuration space. */
enum {
	CAP_COMMON = 0x40,
	CAP_NOTIFY = 0x50,
	CAP_ISR = 0x64,
	CAP_DEVICE = 0x74,
	CAP_WINDOW = 0x84,
	CAP_MSIX = 0x98
};
enum { TYPE_COMMON = 1, TYPE_NOTIFY, TYPE_ISR, TYPE_DEVICE, TYPE_WINDOW };
#define CAP_ID_VENDOR 0x09u
#define CAP_ID_MSIX 0x11u
#define CAP_LEN 16u
#define CAP_BAR 4u
#define CAP_OFFSET 8u
#define CAP_LENGTH 12u
#define CAP_DATA 16u /* data of CAP_WINDOW, and the multiplier of CAP_NOTIFY */

/* MSI-X, PCI Local Bus 3.0, 6.8.2. */
#define MSIX_CONTROL 2u /* offset in the capability */
#define MSIX_ENABLE 0x8000u
#define MSIX_MASK_ALL 0x4000u
#define VECTORS_MAX (VIRTIO_MAX_QUEUES + 1)
#define ENTRY_SIZE 16u
#define ENTRY_MASKED 1u

#define ISR_QUEUE 1u
#define ISR_CONFIG 2u

struct msix_entry {
	uint32_t addr_low, addr_high, data, control;
};
_Static_assert(sizeof(struct msix_entry) == ENTRY_SIZE, "as in the specification");

struct virtio_pci {
	struct virtio *d;
	struct pci_function f;
	struct dev_msi msi;
	unsigned int nvectors;
	/* Protects the common registers; not the members that irq_lock protects. */
	pthread_mutex_t lock;
	uint32_t feature_select, driver_feature_select;
	uint16_t queue_select;
	/*
	 * Protects interrupts and the queues' vectors. Any thread may lock it, always as the last
	 * lock.
	 */
	pthread_mutex_t irq_lock;
	uint8_t isr;
	uint16_t config_vector;
	bool enabled, masked; /* state of all of MSI-X */
	struct msix_entry entry[VECTORS_MAX];
	uint64_t pending[(VECTORS_MAX + 63) / 64];
};

/* -- interrupts ------------------------------------------------------------------- */

/* Sends the interrupt of a vector, or marks it as pending if it is masked. Called with irq_lock. */
static void fire(struct virtio_pci *p, uint16_t vector)
{
	const struct msix_entry *t = &p->entry[vector < p->nvectors ? vector : 0];

	if (!p->enabled || vector >= p->nvectors)
		return;
	if (p->masked || (t->control & ENTRY_MASKED))
		p->pending[vector / 64] |= UINT64_C(1) << vector % 64;
	else
		p->msi.send(p->msi.ctx, (uint64_t)t->addr_high << 32 | t->addr_low, t->data);
}

/* Sends pending interrupts whose mask is gone. Called with irq_lock. */
static void fire_pending(struct virtio_pci *p)
{
	for (uint16_t v = 0; v < p->nvectors; v++) {
		uint64_t bit = UINT64_C(1) << v % 64;

		if (!(p->pending[v / 64] & bit))
			continue;
		p->pending[v / 64] &= ~bit;
		fire(p, v); /* marks it as pending again if there still is a mask */
	}
}

static void virtio_pci_interrupt(void *transport, unsigned int q)
{
	struct virtio_pci *p = transport;

	pthread_mutex_lock(&p->irq_lock);
	p->isr |= q == UINT32_MAX ? ISR_CONFIG : ISR_QUEUE;
	fire(p, q == UINT32_MAX ? p->config_vector : p->d->queue[q].vector);
	pthread_mutex_unlock(&p->irq_lock);
}

static uint8_t take_isr(struct virtio_pci *p)
{
	uint8_t v;

	pthread_mutex_lock(&p->irq_lock);
	v = p->isr;
	p->isr = 0;
	pthread_mutex_unlock(&p->irq_lock);
	return v;
}

static void set_vector(struct virtio_pci *p, uint16_t *vector, uint32_t v)
{
	pthread_mutex_lock(&p->irq_lock);
	*vector = v < p->nvectors ? (uint16_t)v : VIRTIO_NO_VECTOR;
	pthread_mutex_unlock(&p->irq_lock);
}

static void msix_reset(struct virtio_pci *p)
{
	pthread_mutex_lock(&p->irq_lock);
	p->isr = 0;
	p->config_vector = VIRTIO_NO_VECTOR;
	for (unsigned int i = 0; i < p->d->nqueues; i++)
		p->d->queue[i].vector = VIRTIO_NO_VECTOR;
	pthread_mutex_unlock(&p->irq_lock);
}

static void table_io(struct virtio_pci *p, uint64_t off, bool write, uint64_t *val)
{
	struct msix_entry *t = &p->entry[off / ENTRY_SIZE % VECTORS_MAX];
	uint32_t *const word[] = { &t->addr_low, &t->addr_high, &t->data, &t->control };

	if (off / ENTRY_SIZE >= p->nvectors)
		return;
	pthread_mutex_lock(&p->irq_lock);
	if (write) {
		*word[off / 4 % 4] = (uint32_t)*val;
		fire_pending(p);
	} else {
		*val = *word[off / 4 % 4];
	}
	pthread_mutex_unlock(&p->irq_lock);
}

static void pending_read(struct virtio_pci *p, uint64_t off, uint64_t *val)
{
	if (off >= sizeof(p->pending))
		return;
	pthread_mutex_lock(&p->irq_lock);
	*val = (uint32_t)(p->pending[off / 8] >> 8 * (off & 4));
	pthread_mutex_unlock(&p->irq_lock);
}

/* -- common configuration ---------------------------------------------------------- */

static unsigned int reg_len(uint64_t off)
{
	if (off == REG_STATUS || off == REG_GENERATION)
		return 1;
	return off >= REG_CONFIG_VECTOR && off < REG_QUEUE_DESC ? 2 : 4;
}

static uint32_t common_read(struct virtio_pci *p, uint64_t off)
{
	struct virtio *d = p->d;
	const struct virtio_queue *q =
		p->queue_select < d->nqueues ? &d->queue[p->queue_select] : NULL;

	switch (off) {
	case REG_FEATURE_SELECT:
		return p->feature_select;
	case REG_FEATURE:
		return virtio_features_read(d, p->feature_select);
	case REG_DRIVER_FEATURE_SELECT:
		return p->driver_feature_select;
	case REG_DRIVER_FEATURE:
		return p->driver_feature_select < 2
			       ? (uint32_t)(d->agreed >> 32 * p->driver_feature_select)
			       : 0;
	case REG_CONFIG_VECTOR:
		return p->config_vector;
	case REG_QUEUES:
		return d->nqueues;
	case REG_STATUS:
		return atomic_load(&d->status);
	case REG_GENERATION:
		return 0; /* the device never changes its config (2.5.3) */
	case REG_QUEUE_SELECT:
		return p->queue_select;
	}
	if (!q) /* a size of 0 means that the queue does not exist */
		return off == REG_QUEUE_VECTOR ? VIRTIO_NO_VECTOR : 0;
	switch (off) {
	case REG_QUEUE_SIZE:
		return q->size;
	case REG_QUEUE_VECTOR:
		return q->vector;
	case REG_QUEUE_ENABLE:
		return q->enabled;
	case REG_QUEUE_NOTIFY_OFF:
		return p->queue_select;
	case REG_QUEUE_DESC:
	case REG_QUEUE_DESC + 4:
		return (uint32_t)(q->desc >> 8 * (off & 4));
	case REG_QUEUE_DRIVER:
	case REG_QUEUE_DRIVER + 4:
		return (uint32_t)(q->avail >> 8 * (off & 4));
	case REG_QUEUE_DEVICE:
	case REG_QUEUE_DEVICE + 4:
		return (uint32_t)(q->used >> 8 * (off & 4));
	}
	return 0;
}

static void set_half(uint64_t *v, uint64_t off, uint32_t half)
{
	unsigned int shift = 8 * (off & 4);

	*v = (*v & ~((uint64_t)UINT32_MAX << shift)) | (uint64_t)half << shift;
}

static void queue_write(struct virtio_pci *p, uint64_t off, uint32_t v)
{
	struct virtio_queue *q = virtio_queue_setup(p->d, p->queue_select);

	if (off == REG_QUEUE_VECTOR && p->queue_select < p->d->nqueues) {
		set_vector(p, &p->d->queue[p->queue_select].vector, v);
		return;
	}
	if (!q)
		return;
	switch (off) {
	case REG_QUEUE_SIZE:
		q->size = (uint16_t)v; /* checked when the queue is enabled */
		break;
	case REG_QUEUE_ENABLE:
		if (v == 1)
			virtio_queue_enable(p->d, p->queue_select);
		break;
	case REG_QUEUE_DESC:
	case REG_QUEUE_DESC + 4:
		set_half(&q->desc, off, v);
		break;
	case REG_QUEUE_DRIVER:
	case REG_QUEUE_DRIVER + 4:
		set_half(&q->avail, off, v);
		break;
	case REG_QUEUE_DEVICE:
	case REG_QUEUE_DEVICE + 4:
		set_half(&q->used, off, v);
		break;
	}
}

static void common_write(struct virtio_pci *p, uint64_t off, uint32_t v)
{
	switch (off) {
	case REG_FEATURE_SELECT:
		p->feature_select = v;
		break;
	case REG_DRIVER_FEATURE_SELECT:
		p->driver_feature_select = v;
		break;
	case REG_DRIVER_FEATURE:
		virtio_features_write(p->d, p->driver_feature_select, v);
		break;
	case REG_CONFIG_VECTOR:
		set_vector(p, &p->config_vector, v);
		break;
	case REG_STATUS:
		virtio_set_status(p->d, (uint8_t)v);
		if (!(v & UINT8_MAX))
			msix_reset(p);
		break;
	case REG_QUEUE_SELECT:
		p->queue_select = (uint16_t)v;
		break;
	default:
		queue_write(p, off, v);
	}
}

static void common_io(struct virtio_pci *p, uint64_t off, bool write, unsigned int len,
		      uint64_t *val)
{
	/* 4.1.3.1: each field with its own width, 64-bit fields as two halves. */
	if (off >= COMMON_SIZE || off % len || len != reg_len(off))
		return;
	pthread_mutex_lock(&p->lock);
	if (write)
		common_write(p, off, (uint32_t)*val);
	else
		*val = common_read(p, off);
	pthread_mutex_unlock(&p->lock);
}

static void bar_io(void *dev, uint64_t at, bool write, unsigned int len, uint64_t *val)
{
	struct virtio_pci *p = dev;
	uint64_t off = at % BAR_STEP, page = at - off, half[2];

	if (len == 8 && (page == BAR_COMMON || page == BAR_TABLE || page == BAR_PENDING)) {
		half[0] = write ? (uint32_t)*val : 0;
		half[1] = write ? *val >> 32 : 0;
		bar_io(dev, at, write, 4, &half[0]);
		bar_io(dev, at + 4, write, 4, &half[1]);
		if (!write)
			*val = half[1] << 32 | (uint32_t)half[0];
		return;
	}
	if (!write)
		*val = 0;
	switch (page) {
	case BAR_COMMON:
		common_io(p, off, write, len, val);
		break;
	case BAR_ISR:
		if (!write && off == 0)
			*val = take_isr(p);
		break;
	case BAR_CONFIG:
		if (write)
			virtio_config_write(p->d, off, len, *val);
		else
			*val = virtio_config_read(p->d, off, len);
		break;
	case BAR_NOTIFY:
		/* Each queue has its own address; the number that is written is the same. */
		if (write && off % NOTIFY_STEP == 0)
			virtio_notify(p->d, (unsigned int)off / NOTIFY_STEP);
		break;
	case BAR_TABLE:
		if (len == 4 && off % 4 == 0)
			table_io(p, off, write, val);
		break;
	case BAR_PENDING:
		if (!write && len == 4 && off % 4 == 0)
			pending_read(p, off, val);
		break;
	}
}

/* -- configuration space ------------------------------------------------------------ */

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Accesses the BAR through the configuration space (4.1.4.9), for firmware that cannot map it. */
static void window_io(struct virtio_pci *p, bool write)
{
	uint8_t *cap = p->f.config + CAP_WINDOW;
	uint32_t off = get32(cap + CAP_OFFSET), len = get32(cap + CAP_LENGTH);
	uint64_t val = 0;

	if (cap[CAP_BAR] != 0 || (len != 1 && len != 2 && len != 4) || off % len ||
	    off > BAR_SIZE - len)
		return;
	if (write)
		memcpy(&val, cap + CAP_DATA, len);
	bar_io(p, off, write, len, &val);
	if (!write)
		memcpy(cap + CAP_DATA, &val, len);
}

static bool touches(unsigned int off, unsigned int len, unsigned int at, unsigned int n)
{
	return off < at + n && at < off + len;
}

static void config_read(void *dev, unsigned int off, unsigned int len)
{
	if (touches(off, len, CAP_WINDOW + CAP_DATA, 4))
		window_io(dev, false);
}

static void follow_msix_control(struct virtio_pci *p)
{
	unsigned int control = get32(p->f.config + CAP_MSIX) >> 16;

	pthread_mutex_lock(&p->irq_lock);
	p->enabled = control & MSIX_ENABLE;
	p->masked = control & MSIX_MASK_ALL;
	fire_pending(p);
	pthread_mutex_unlock(&p->irq_lock);
}

static void config_written(void *dev, unsigned int off, unsigned int len)
{
	if (touches(off, len, CAP_WINDOW + CAP_DATA, 4))
		window_io(dev, true);
	if (touches(off, len, CAP_MSIX + MSIX_CONTROL, 2))
		follow_msix_control(dev);
}

static void virtio_pci_put(uint8_t *at, unsigned int n, uint64_t v)
{
	memcpy(at, &v, n); /* little-endian, as the host is */
}

static void put_cap(struct virtio_pci *p, unsigned int at, unsigned int next, unsigned int type,
		    uint32_t off, uint32_t len)
{
	uint8_t *cap = p->f.config + at;

	cap[0] = CAP_ID_VENDOR;
	cap[1] = (uint8_t)next;
	cap[2] = type == TYPE_NOTIFY || type == TYPE_WINDOW ? CAP_LEN + 4 : CAP_LEN;
	cap[3] = (uint8_t)type;
	virtio_pci_put(cap + CAP_OFFSET, 4, off);
	virtio_pci_put(cap + CAP_LENGTH, 4, len);
}

static uint16_t class_of(uint32_t id)
{
	switch (id) {
	case VIRTIO_ID_NET:
		return 0x0200; /* Ethernet */
	case VIRTIO_ID_BLOCK:
		return 0x0180; /* mass storage, other */
	case VIRTIO_ID_CONSOLE:
		return 0x0780; /* communication, other */
	default:
		return 0xff00;
	}
}

static void fill_config(struct virtio_pci *p)
{
	uint8_t *c = p->f.config, *w = p->f.writable;

	virtio_pci_put(c + PCI_VENDOR, 2, VENDOR_RED_HAT);
	virtio_pci_put(c + PCI_DEVICE, 2, DEVICE_MODERN + p->d->id);
	virtio_pci_put(c + PCI_STATUS, 2, PCI_STATUS_CAPABILITIES);
	c[PCI_REVISION] = REVISION;
	virtio_pci_put(c + PCI_CLASS, 2, class_of(p->d->id));
	virtio_pci_put(c + PCI_SUBSYSTEM_VENDOR, 2, VENDOR_RED_HAT);
	virtio_pci_put(c + PCI_SUBSYSTEM, 2, 0x40 + p->d->id);
	c[PCI_CAPABILITIES] = CAP_COMMON;
	put_cap(p, CAP_COMMON, CAP_NOTIFY, TYPE_COMMON, BAR_COMMON, COMMON_SIZE);
	put_cap(p, CAP_NOTIFY, CAP_ISR, TYPE_NOTIFY, BAR_NOTIFY, p->d->nqueues * NOTIFY_STEP);
	virtio_pci_put(c + CAP_NOTIFY + CAP_DATA, 4, NOTIFY_STEP);
	put_cap(p, CAP_ISR, CAP_DEVICE, TYPE_ISR, BAR_ISR, 1);
	/* A length of 0 would mean an unused capability. */
	put_cap(p, CAP_DEVICE, CAP_WINDOW, TYPE_DEVICE, BAR_CONFIG, VIRTIO_CONFIG_SIZE);
	put_cap(p, CAP_WINDOW, CAP_MSIX, TYPE_WINDOW, 0, 0);
	w[CAP_WINDOW + CAP_BAR] = 0xff;
	memset(w + CAP_WINDOW + CAP_OFFSET, 0xff, 12);
	c[CAP_MSIX] = CAP_ID_MSIX;
	virtio_pci_put(c + CAP_MSIX + MSIX_CONTROL, 2, p->nvectors - 1);
	virtio_pci_put(w + CAP_MSIX + MSIX_CONTROL, 2, MSIX_ENABLE | MSIX_MASK_ALL);
	virtio_pci_put(c + CAP_MSIX + 4, 4, BAR_TABLE); /* in BAR 0, as the low bits state */
	virtio_pci_put(c + CAP_MSIX + 8, 4, BAR_PENDING);
}

int virtio_pci_new(struct virtio_pci **out, struct virtio *d, struct pci *bus, struct dev_msi msi,
		   struct err *e)
{
	struct virtio_pci *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		return err_nomem(e);
	p->d = d;
	p->msi = msi;
	p->nvectors = d->nqueues + 1;
	for (unsigned int i = 0; i < p->nvectors; i++)
		p->entry[i].control = ENTRY_MASKED;
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->irq_lock, NULL);
	msix_reset(p);
	p->f.name = d->name;
	p->f.bar_size = BAR_SIZE;
	p->f.io = bar_io;
	p->f.dev = p;
	p->f.config_read = config_read;
	p->f.config_written = config_written;
	fill_config(p);
	ret = pci_add(bus, &p->f, e);
	if (ret) {
		virtio_pci_destroy(p);
		return ret;
	}
	d->transport = p;
	d->interrupt = virtio_pci_interrupt;
	*out = p;
	return 0;
}

void virtio_pci_destroy(struct virtio_pci *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->irq_lock);
	free(p);
}

int virtio_pci_save(void *what, struct buf *out, struct err *e)
{
	struct virtio_pci *p = what;

	buf_u32(out, p->nvectors);
	buf_u32(out, p->feature_select);
	buf_u32(out, p->driver_feature_select);
	buf_u16(out, p->queue_select);
	buf_u8(out, p->isr);
	buf_u16(out, p->config_vector);
	buf_add(out, p->entry, p->nvectors * sizeof(p->entry[0]));
	buf_add(out, p->pending, sizeof(p->pending));
	return virtio_save(p->d, out, e);
}

int virtio_pci_restore(void *what, struct cursor *in, struct err *e)
{
	struct virtio_pci *p = what;
	uint32_t nvectors = cursor_u32(in), control = get32(p->f.config + CAP_MSIX) >> 16;
	const uint8_t *entries, *pending;

	if (nvectors != p->nvectors)
		return err_set(e, EINVAL, "the saved %s has another number of interrupts",
			       p->d->name);
	p->feature_select = cursor_u32(in);
	p->driver_feature_select = cursor_u32(in);
	p->queue_select = cursor_u16(in);
	p->isr = cursor_u8(in);
	p->config_vector = cursor_u16(in);
	entries = cursor_bytes(in, nvectors * sizeof(p->entry[0]));
	pending = cursor_bytes(in, sizeof(p->pending));
	if (in->bad)
		return err_set(e, EINVAL, "the saved state of %s is cut short", p->d->name);
	memcpy(p->entry, entries, nvectors * sizeof(p->entry[0]));
	memcpy(p->pending, pending, sizeof(p->pending));
	p->enabled = control & MSIX_ENABLE;
	p->masked = control & MSIX_MASK_ALL;
	return virtio_restore(p->d, in, e);
}
