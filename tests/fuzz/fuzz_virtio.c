/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: 6000 runs */
/*
 * Bytes as a driver: flags (1 byte), number of steps (1), steps of 8 bytes each, then guest RAM
 * from address 0 on.
 *
 *	step: device (1; 0 to 2 mmio, 3 to 5 the same in PCI BARs, 6 PCI configuration space,
 *	      7 console input), bit 7 write | access width (1), offset (2), value (4)
 *
 * With flag 1 the devices are set up before the steps as FUZZ_* say, features from flags 2
 * (indirect) and 4 (event index). With flag 8 the probe gives nothing back: it must not get more
 * than the queue has descriptors. Every byte of a chain must be RAM, and whatever was done, after a
 * reset each device works.
 */
#include "tests/fuzz/fuzz.h"

#include "vmm/dev/pci.h"
#include "vmm/dev/virtio_console.h"
#include "vmm/dev/virtio_mmio.h"
#include "vmm/dev/virtio_pci.h"
#include "vmm/dev/virtio_rng.h"

#include <stdlib.h>
#include <string.h>

#define FUZZ_RAM 0x10000u
#define FUZZ_QUEUE 8u /* descriptors */
/* address of the rings of queue 0, and distance to those of the next queue */
#define FUZZ_RINGS 0x1000u
#define FUZZ_AVAIL 0x100u
#define FUZZ_USED 0x200u
#define DEVICES 3u

enum { READY = 1, INDIRECT = 2, EVENT_IDX = 4, KEEP = 8 };

static void require(int ok)
{
	if (!ok)
		abort();
}

static uint8_t *ram;

struct probe {
	struct virtio d; /* first: cast from it */
	unsigned int kept[VIRTIO_MAX_QUEUES];
	bool keeps;
};

/* A device that touches all that it was given. */
static void probe_kick(struct virtio *d, unsigned int q)
{
	static struct virtio_chain c;
	struct probe *probe = (struct probe *)d;
	unsigned int n = 0;

	while (virtio_pop(d, q, &c)) {
		size_t sum[2] = { 0, 0 };

		require(c.nout + c.nin <= VIRTIO_MAX_IOV && ++n <= UINT16_MAX);
		for (unsigned int i = 0; i < c.nout + c.nin; i++) {
			uint8_t *p = c.iov[i].iov_base;
			size_t len = c.iov[i].iov_len;

			require(len && p >= ram && len <= (size_t)(ram + FUZZ_RAM - p));
			sum[i >= c.nout] += len;
			if (i >= c.nout)
				p[0] ^= p[len - 1];
		}
		require(sum[0] == c.out_len && sum[1] == c.in_len);
		if (probe->keeps)
			require(++probe->kept[q] <= d->queue[q].size);
		else
			virtio_push(d, q, c.head, (uint32_t)c.in_len);
		/* The rings may lie in what was just written: then there is always more. */
		if (n > 64)
			return;
	}
}

static void probe_reset(struct virtio *d)
{
	memset(((struct probe *)d)->kept, 0, sizeof(((struct probe *)d)->kept));
}

static void probe_destroy(struct virtio *d)
{
	virtio_deinit(d);
	free(d);
}

static void ignore_byte(void *ctx, uint8_t byte)
{
	(void)ctx;
	(void)byte;
}

static void ignore_irq(void *ctx, unsigned int irq, int level)
{
	(void)ctx;
	(void)irq;
	(void)level;
}

static void ignore_msi(void *ctx, uint64_t addr, uint32_t data)
{
	(void)ctx;
	(void)addr;
	(void)data;
}

static void make(struct virtio *d[DEVICES], const struct gmem *mem)
{
	static const struct virtio_ops probe = {
		.kick = probe_kick,
		.reset = probe_reset,
		.destroy = probe_destroy,
	};

	require(!virtio_rng_new(&d[0], mem, NULL));
	require(!virtio_console_new(&d[1], mem, ignore_byte, NULL, NULL));
	d[2] = calloc(1, sizeof(struct probe));
	require(d[2] != NULL);
	d[2]->id = VIRTIO_ID_BLOCK;
	d[2]->name = "probe";
	d[2]->nqueues = 2;
	d[2]->config_len = 16;
	d[2]->ops = &probe;
	virtio_init(d[2], mem);
}

static void start(struct virtio *d, unsigned int flags)
{
	virtio_set_status(d, 0);
	virtio_set_status(d, 3);
	virtio_features_write(
		d, 0, (flags & INDIRECT ? 1u << 28 : 0) | (flags & EVENT_IDX ? 1u << 29 : 0));
	virtio_features_write(d, 1, 1);
	virtio_set_status(d, 3 | VIRTIO_FEATURES_OK);
	for (unsigned int i = 0; i < d->nqueues; i++) {
		struct virtio_queue *q = virtio_queue_setup(d, i);

		require(q != NULL);
		q->size = FUZZ_QUEUE;
		q->desc = FUZZ_RINGS * (1 + i);
		q->avail = q->desc + FUZZ_AVAIL;
		q->used = q->desc + FUZZ_USED;
		virtio_queue_enable(d, i);
	}
	virtio_set_status(d, 3 | VIRTIO_FEATURES_OK | VIRTIO_DRIVER_OK);
	require(!d->failed);
}

/* The guest goes on: one byte each way. */
static void still_works(struct virtio *d)
{
	static const uint8_t desc[2][16] = { { [1] = 0x80, [8] = 1, [12] = 2 },
					     { [1] = 0x80, [8] = 1 } };
	unsigned int queue = d->nqueues - 1, in = d->id == VIRTIO_ID_RNG ? 0 : 1;
	uint8_t *rings = ram + FUZZ_RINGS * (1 + queue);

	memset(ram, 0, FUZZ_RAM);
	start(d, 0);
	memcpy(rings, desc[in], 16);
	rings[FUZZ_AVAIL + 2] = 1;
	virtio_notify(d, queue);
	require(!d->failed && rings[FUZZ_USED + 2] == 1);
}

static void step(struct bus *bus, struct pci *pci, struct virtio *const d[DEVICES],
		 const uint8_t *s)
{
	static const unsigned int width[] = { 1, 2, 4, 8 };
	unsigned int len = width[s[1] & 3], kind = s[0] & 7;
	bool write = s[1] & 0x80;
	uint64_t val = 0;
	uint32_t v;
	uint16_t off;

	memcpy(&off, s + 2, sizeof(off));
	memcpy(&v, s + 4, sizeof(v));
	if (kind == 7) {
		(void)virtio_console_input(d[1], s + 2, 6);
	} else if (kind == 6) {
		if (write)
			pci_config_write(pci, 1 + off / 256 % DEVICES, off % 256, len & 7 ? len : 4,
					 v);
		else
			(void)pci_config_read(pci, 1 + off / 256 % DEVICES, off % 256,
					      len & 7 ? len : 4);
	} else {
		uint64_t gpa =
			bus->mmio[kind + (kind >= DEVICES)].base; /* [3] is the ECAM window */

		val = v;
		if (gpa != BUS_NOWHERE)
			(void)bus_mmio(bus, gpa + off % 0x8000, write ? BUS_WRITE : BUS_READ, len,
				       (uint8_t *)&val);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gmem mem = { .n = 1 };
	struct virtio *d[2 * DEVICES];
	struct virtio_mmio *m[DEVICES];
	struct virtio_pci *p[DEVICES];
	struct bus *bus = calloc(1, sizeof(*bus));
	struct pci *pci = calloc(1, sizeof(*pci));
	unsigned int flags = size ? data[0] : 0, steps = size > 1 ? data[1] : 0;
	const uint8_t *script = data + 2;

	ram = aligned_alloc(4096, FUZZ_RAM);
	require(ram && bus && pci);
	memset(ram, 0, FUZZ_RAM);
	size = size > 2 ? size - 2 : 0;
	steps = steps < size / 8 ? steps : (unsigned int)(size / 8);
	size -= steps * 8;
	mem.region[0] = (struct gmem_region){ .gpa = 0, .size = FUZZ_RAM, .host = ram };
	make(d, &mem);
	make(d + DEVICES, &mem);
	require(!pci_init(pci, bus, (struct dev_power){ 0 }));
	for (unsigned int i = 0; i < DEVICES; i++)
		require(!virtio_mmio_new(&m[i], d[i], i, bus, (struct dev_irq){ ignore_irq, NULL },
					 NULL));
	for (unsigned int i = 0; i < DEVICES; i++)
		require(!virtio_pci_new(&p[i], d[DEVICES + i], pci,
					(struct dev_msi){ ignore_msi, NULL }, NULL));
	((struct probe *)d[2])->keeps = flags & KEEP;
	((struct probe *)d[DEVICES + 2])->keeps = flags & KEEP;
	for (unsigned int i = 0; (flags & READY) && i < 2 * DEVICES; i++)
		start(d[i], flags);
	if (size)
		memcpy(ram, script + steps * 8, size < FUZZ_RAM ? size : FUZZ_RAM);
	for (unsigned int i = 0; i < steps; i++)
		step(bus, pci, d, script + 8 * i);
	((struct probe *)d[2])->keeps = ((struct probe *)d[DEVICES + 2])->keeps = false;
	for (unsigned int i = 0; i < 2 * DEVICES; i++)
		still_works(d[i]);
	for (unsigned int i = 0; i < 2 * DEVICES; i++)
		d[i]->ops->destroy(d[i]);
	for (unsigned int i = 0; i < DEVICES; i++) {
		virtio_mmio_destroy(m[i]);
		virtio_pci_destroy(p[i]);
	}
	pci_deinit(pci);
	free(bus);
	free(pci);
	free(ram);
	return 0;
}
