/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio devices through the registers of their transports, as a driver finds and uses them. */
#include "tests/unit/virtio_fixture.h"

#include "vmm/dev/pci.h"
#include "vmm/dev/virtio_mmio.h"
#include "vmm/dev/virtio_pci.h"
#include "vmm/layout.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/dev_fixture.h"

static struct pci pci;
static struct virtio dev;
static struct virtio_pci *vp;
static struct virtio_mmio *vm;
static unsigned int kicks, last_kick;
static struct {
	unsigned int n;
	uint64_t addr;
	uint32_t data;
} msi;

static void on_kick(struct virtio *d, unsigned int q)
{
	struct virtio_chain c;

	kicks++;
	last_kick = q;
	while (virtio_pop(d, q, &c))
		virtio_push(d, q, c.head, (uint32_t)virtio_chain_write(&c, 0, "answer", 6));
}

static unsigned int acknowledged;

static void on_acknowledged(struct virtio *d)
{
	assert_ptr_equal(d, &dev);
	acknowledged++;
}

static const struct virtio_ops ops = { .kick = on_kick, .acknowledged = on_acknowledged };

static void on_msi(void *ctx, uint64_t addr, uint32_t data)
{
	(void)ctx;
	msi.n++;
	msi.addr = addr;
	msi.data = data;
}

static void on_power(void *ctx, enum dev_end how)
{
	(void)ctx;
	seen.ends++;
	seen.how = how;
}

static int setup(void **state)
{
	clean(state);
	memset(&dev, 0, sizeof(dev));
	memset(&msi, 0, sizeof(msi));
	memset(fix_ram, 0, sizeof(fix_ram));
	memset(fix_avail, 0, sizeof(fix_avail));
	memset(fix_used, 0, sizeof(fix_used));
	kicks = acknowledged = 0;
	dev.id = VIRTIO_ID_NET;
	dev.name = "net0";
	dev.nqueues = 3;
	dev.features = UINT64_C(1) << 5;
	dev.config_len = 6;
	memcpy(dev.config, "\x52\x54\x00\x12\x34\x56", 6);
	dev.ops = &ops;
	virtio_init(&dev, &fix_mem);
	return pci_init(&pci, &bus, (struct dev_power){ on_power, NULL });
}

static int teardown(void **state)
{
	(void)state;
	virtio_pci_destroy(vp);
	virtio_mmio_destroy(vm);
	vp = NULL;
	vm = NULL;
	virtio_deinit(&dev);
	pci_deinit(&pci);
	return 0;
}

static int setup_pci(void **state)
{
	struct err e = { 0 };

	return setup(state) ||
	       virtio_pci_new(&vp, &dev, &pci, (struct dev_msi){ on_msi, NULL }, &e);
}

static int setup_mmio(void **state)
{
	struct err e = { 0 };

	return setup(state) || virtio_mmio_new(&vm, &dev, 2, &bus, irq_line, &e);
}

static uint64_t rd(uint64_t gpa, unsigned int len)
{
	uint64_t v = 0;

	assert_true(bus_mmio(&bus, gpa, BUS_READ, len, (uint8_t *)&v));
	return v;
}

static void wr(uint64_t gpa, unsigned int len, uint64_t v)
{
	assert_true(bus_mmio(&bus, gpa, BUS_WRITE, len, (uint8_t *)&v));
}

/* By the ports. */
static uint32_t cf(unsigned int slot, unsigned int off, unsigned int len)
{
	out_n(0xcf8, 0x80000000 | slot << 11 | (off & 0xfc), 4);
	return in_n((uint16_t)(0xcfc + (off & 3)), len);
}

static void cf_write(unsigned int slot, unsigned int off, unsigned int len, uint32_t v)
{
	out_n(0xcf8, 0x80000000 | slot << 11 | (off & 0xfc), 4);
	out_n((uint16_t)(0xcfc + (off & 3)), v, len);
}

/* -- the bus ------------------------------------------------------------------------- */

static void empty_bus_is_silent(void **state)
{
	(void)state;
	for (unsigned int slot = 0; slot < 32; slot++)
		assert_int_equal(cf(slot, 0, 4), UINT32_MAX);
	assert_int_equal(in_n(0xcf8, 4), 0x80000000 | 31 << 11);
	assert_int_equal(bus.nmmio, 0);
	outb(0xcf9, 0x02);
	assert_int_equal(seen.ends, 0);
	outb(0xcf9, 0x06);
	assert_int_equal(seen.ends, 1);
}

static void configuration_space(void **state)
{
	uint64_t ecam = GPA_PCI_ECAM + (1 << 15);

	(void)state;
	assert_int_equal(cf(0, 8, 4) >> 16, 0x0600); /* a host bridge */
	assert_int_equal(cf(1, 0, 4), 0x10411af4);
	assert_int_equal(cf(1, 0, 2), 0x1af4);
	assert_int_equal(cf(1, 2, 2), 0x1041);
	assert_int_equal(cf(1, 3, 1), 0x10);
	assert_int_equal(cf(1, 0xa, 2), 0x0200);
	assert_int_equal(cf(2, 0, 4), UINT32_MAX);
	assert_int_equal(rd(ecam, 4), 0x10411af4);
	assert_int_equal(rd(ecam, 8), UINT64_MAX);
	assert_int_equal(rd(ecam + 0xff, 2), 0xffff);	    /* across its end */
	assert_int_equal(rd(ecam + 0x100, 4), UINT32_MAX);  /* no extended space */
	assert_int_equal(rd(ecam + 0x1000, 4), UINT32_MAX); /* function 1 */
	/* Bus 1; the enable bit; read-only registers. */
	out_n(0xcf8, 0x80010000 | 1 << 11, 4);
	assert_int_equal(in_n(0xcfc, 4), UINT32_MAX);
	out_n(0xcf8, 1 << 11, 4);
	assert_int_equal(in_n(0xcfc, 4), UINT32_MAX);
	cf_write(1, 0, 4, 0);
	assert_int_equal(cf(1, 0, 4), 0x10411af4);
	cf_write(1, 4, 2, 0xffff);
	assert_int_equal(cf(1, 4, 4), 0x00100406);
}

static void bar_sizing_and_moving(void **state)
{
	uint32_t at = cf(1, 0x10, 4);

	(void)state;
	assert_int_equal(at, GPA_PCI_MMIO);
	assert_int_equal(rd(at + 0x12, 2), 3); /* num_queues */
	cf_write(1, 4, 2, 0);
	assert_int_equal(bus_find_mmio(&bus, at), -1);
	cf_write(1, 0x10, 4, UINT32_MAX);
	assert_int_equal(cf(1, 0x10, 4), ~0x7fffu);
	for (unsigned int i = 0x14; i < 0x28; i += 4) {
		cf_write(1, i, 4, UINT32_MAX);
		assert_int_equal(cf(1, i, 4), 0);
	}
	cf_write(1, 0x10, 4, 0xc8000000);
	assert_int_equal(bus_find_mmio(&bus, 0xc8000000), -1);
	cf_write(1, 4, 2, 6);
	assert_int_equal(bus_find_mmio(&bus, at), -1);
	assert_int_equal(rd(0xc8000012, 2), 3);
	/* Over the ECAM window: that was there first. */
	cf_write(1, 0x10, 4, (uint32_t)GPA_PCI_ECAM);
	assert_int_equal(rd(GPA_PCI_ECAM, 2), 0x1b36);
	cf_write(1, 0x10, 4, 0xfffff000);
	assert_int_equal(rd(0xffff8012, 2), 3);
}

static unsigned int find_cap(unsigned int type)
{
	for (unsigned int at = cf(1, 0x34, 1), n = 0; at; at = cf(1, at + 1, 1)) {
		assert_true(++n < 10);
		if (type == 0x11 ? cf(1, at, 1) == 0x11
				 : cf(1, at, 1) == 9 && cf(1, at + 3, 1) == type)
			return at;
	}
	fail();
	return 0;
}

/* -- virtio-pci ------------------------------------------------------------------------ */

static uint64_t bar;

/* A driver's way to DRIVER_OK; vectors: config 0, queue i has 1 + i. */
static void pci_start(void)
{
	bar = cf(1, 0x10, 4);
	wr(bar + 0x14, 1, 0);
	wr(bar + 0x14, 1, 3);
	wr(bar + 0x00, 4, 1);
	assert_int_equal(rd(bar + 0x04, 4), 1); /* VERSION_1 */
	wr(bar + 0x00, 4, 0);
	assert_int_equal(rd(bar + 0x04, 4), 1u << 28 | 1u << 29 | 1u << 5);
	wr(bar + 0x08, 4, 0);
	wr(bar + 0x0c, 4, 1u << 5);
	wr(bar + 0x08, 4, 1);
	wr(bar + 0x0c, 4, 1);
	wr(bar + 0x14, 1, 11);
	assert_int_equal(rd(bar + 0x14, 1), 11);
	wr(bar + 0x10, 2, 0);
	assert_int_equal(rd(bar + 0x10, 2), 0);
	for (unsigned int i = 0; i < 3; i++) {
		wr(bar + 0x16, 2, i);
		assert_int_equal(rd(bar + 0x18, 2), VIRTIO_QUEUE_SIZE);
		wr(bar + 0x18, 2, FIX_SIZE);
		wr(bar + 0x1a, 2, 1 + i);
		assert_int_equal(rd(bar + 0x1a, 2), 1 + i);
		wr(bar + 0x20, 4, fix_rings(i));
		wr(bar + 0x24, 4, 0);
		wr(bar + 0x28, 8, fix_rings(i) + FIX_AVAIL);
		wr(bar + 0x30, 4, fix_rings(i) + FIX_USED);
		wr(bar + 0x1c, 2, 1);
		assert_int_equal(rd(bar + 0x1c, 2), 1);
	}
	wr(bar + 0x14, 1, 15);
}

static void msix_entry(unsigned int i, uint32_t data, uint32_t control)
{
	uint64_t table = bar + 0x4000 + i * 16;

	wr(table, 4, 0xfee01000);
	wr(table + 4, 4, 0);
	wr(table + 8, 4, data);
	wr(table + 12, 4, control);
}

static void request(unsigned int q)
{
	fix_put(q, 0, FIX_DATA, 64, FIX_WRITE, 0);
	fix_offer(q, 0);
	wr(bar + 0x3000 + 4 * q, 2, q);
}

static void pci_requests(void **state)
{
	unsigned int msix = find_cap(0x11);
	uint32_t head = 0, len = 0;

	(void)state;
	assert_int_equal(cf(1, msix + 2, 2), 3); /* 4 vectors */
	assert_int_equal(cf(1, find_cap(1) + 8, 4), 0);
	assert_int_equal(cf(1, find_cap(2) + 8, 4), 0x3000);
	assert_int_equal(cf(1, find_cap(2) + 16, 4), 4);
	pci_start();
	assert_int_equal(rd(bar + 0x2000, 4), 0x12005452);
	assert_int_equal(rd(bar + 0x2004, 2), 0x5634);
	wr(bar + 0x2000, 4, 0);
	assert_int_equal(rd(bar + 0x2000, 1), 0x52);
	/* Without MSI-X there is the ISR to poll. */
	request(1);
	assert_int_equal(kicks, 1);
	assert_int_equal(last_kick, 1);
	assert_true(fix_take(1, &head, &len));
	assert_int_equal(len, 6);
	assert_memory_equal(fix_ram + FIX_DATA, "answer", 6);
	assert_int_equal(msi.n, 0);
	assert_int_equal(rd(bar + 0x1000, 1), 1);
	assert_int_equal(rd(bar + 0x1000, 1), 0);
	/* Entries are masked at first: pending until they aren't. */
	cf_write(1, msix + 2, 2, 0x8000);
	request(1);
	assert_int_equal(msi.n, 0);
	assert_int_equal(rd(bar + 0x5000, 8), 1 << 2);
	msix_entry(2, 0x41, 0);
	assert_int_equal(msi.n, 1);
	assert_int_equal(msi.data, 0x41);
	assert_int_equal(msi.addr, 0xfee01000);
	assert_int_equal(rd(bar + 0x5000, 4), 0);
	request(1);
	assert_int_equal(msi.n, 2);
	/* All of them masked. */
	cf_write(1, msix + 2, 2, 0xc000);
	request(1);
	request(1);
	assert_int_equal(msi.n, 2);
	cf_write(1, msix + 2, 2, 0x8000);
	assert_int_equal(msi.n, 3);
	/* A queue without a vector; a vector that is not there. */
	wr(bar + 0x16, 2, 1);
	wr(bar + 0x1a, 2, 4);
	assert_int_equal(rd(bar + 0x1a, 2), VIRTIO_NO_VECTOR);
	request(1);
	assert_int_equal(msi.n, 3);
	/* A failure of the device raises a configuration interrupt. */
	msix_entry(0, 0x77, 0);
	fix_offer(0, 999);
	wr(bar + 0x3000, 2, 0);
	assert_int_equal(msi.n, 4);
	assert_int_equal(msi.data, 0x77);
	assert_int_equal(rd(bar + 0x1000, 1) & 2, 2);
	assert_int_equal(rd(bar + 0x14, 1), 15 | 64);
	wr(bar + 0x14, 1, 0);
	assert_int_equal(rd(bar + 0x14, 1), 0);
	assert_int_equal(rd(bar + 0x10, 2), VIRTIO_NO_VECTOR);
	assert_int_equal(rd(bar + 0x1000, 1), 0);
}

/* Whatever is read and written, with every width, it neither crashes nor leaves its page. */
static void pci_any_access(void **state)
{
	static const unsigned int width[] = { 1, 2, 4, 8 };

	(void)state;
	pci_start();
	for (uint64_t off = 0; off < 0x8000; off += off % 0x1000 < 0x480 ? 1 : 64)
		for (unsigned int w = 0; w < 4; w++) {
			if (off + width[w] > 0x8000)
				continue;
			(void)rd(bar + off, width[w]);
			wr(bar + off, width[w], 0xfffefdfcfbfaf9f8);
			wr(bar + off, width[w], off);
		}
	for (unsigned int off = 0; off < 256; off++)
		for (unsigned int w = 0; w < 3; w++)
			if ((off & 3) + width[w] <= 4) {
				(void)cf(1, off, width[w]);
				if (off >= 0x40)
					cf_write(1, off, width[w], 0xa5a5a5a5);
			}
	wr(bar + 0x14, 1, 0);
	assert_int_equal(rd(bar + 0x14, 1), 0);
	pci_start();
	assert_int_equal(rd(bar + 0x14, 1), 15);
}

static void pci_window(void **state)
{
	unsigned int cap = find_cap(5);

	(void)state;
	cf_write(1, cap + 8, 4, 0x12);
	cf_write(1, cap + 12, 4, 2);
	assert_int_equal(cf(1, cap + 16, 2), 3);
	cf_write(1, cap + 8, 4, 0x14);
	cf_write(1, cap + 12, 4, 1);
	cf_write(1, cap + 16, 1, 3);
	assert_int_equal(dev.status, 3);
	/* Outside, of a width that there isn't, or in another BAR. */
	cf_write(1, cap + 8, 4, 0x8000);
	cf_write(1, cap + 16, 4, 0);
	cf_write(1, cap + 8, 4, 0x14);
	cf_write(1, cap + 12, 4, 3);
	cf_write(1, cap + 16, 4, 0);
	cf_write(1, cap + 12, 4, 0);
	cf_write(1, cap + 16, 4, 0);
	cf_write(1, cap + 12, 4, 1);
	cf_write(1, cap + 4, 1, 1);
	cf_write(1, cap + 16, 4, 0);
	assert_int_equal(dev.status, 3);
}

static void pci_state_survives(void **state)
{
	struct err e = { 0 };
	struct cursor in;
	struct buf b;
	unsigned int msix = find_cap(0x11);

	(void)state;
	pci_start();
	cf_write(1, msix + 2, 2, 0x8000);
	msix_entry(2, 0x41, 1);
	request(1);
	cf_write(1, 0x10, 4, 0xc8000000);
	buf_init(&b);
	assert_int_equal(pci_save(&pci, &b, &e), 0);
	assert_int_equal(virtio_pci_save(vp, &b, &e), 0);
	virtio_set_status(&dev, 0);
	teardown(state);
	setup_pci(state);
	fix_avail[1] = fix_used[1] = 1;
	cursor_init(&in, b.data, b.len);
	assert_int_equal(pci_restore(&pci, &in, &e), 0);
	assert_int_equal(virtio_pci_restore(vp, &in, &e), 0);
	assert_int_equal(cursor_left(&in), 0);
	bar = 0xc8000000;
	assert_int_equal(rd(bar + 0x14, 1), 15);
	msix_entry(2, 0x41, 0);
	assert_int_equal(msi.n, 1); /* what was pending */
	memset(fix_ram, 0, sizeof(fix_ram));
	fix_put16(fix_rings(1) + FIX_USED + 2, 1);
	request(1);
	assert_int_equal(msi.n, 2);
	/* State of another machine, and truncated state. */
	buf_put16(&b, 8 + 256 + 2, 0x1042);
	cursor_init(&in, b.data, b.len);
	assert_int_equal(pci_restore(&pci, &in, &e), -EINVAL);
	assert_non_null(strstr(e.text, "net0"));
	cursor_init(&in, b.data, 300);
	memset(&e, 0, sizeof(e));
	assert_int_equal(pci_restore(&pci, &in, &e), -EINVAL);
	buf_deinit(&b);
}

static void pci_is_full(void **state)
{
	static struct virtio_pci *more[40];
	struct err e = { 0 };
	unsigned int n = 0;

	(void)state;
	while (n < 40 &&
	       !virtio_pci_new(&more[n], &dev, &pci, (struct dev_msi){ on_msi, NULL }, &e))
		n++;
	assert_in_range(n, 8, 30); /* the MMIO table or the slots end */
	assert_non_null(strstr(e.text, "net0"));
	while (n)
		virtio_pci_destroy(more[--n]);
}

/* -- virtio-mmio ------------------------------------------------------------------------ */

#define PAGE (GPA_VIRTIO_MMIO + 2 * GPA_VIRTIO_MMIO_SIZE)

static void mmio_start(void)
{
	wr(PAGE + 0x70, 4, 0);
	wr(PAGE + 0x70, 4, 3);
	wr(PAGE + 0x24, 4, 1);
	wr(PAGE + 0x20, 4, 1);
	wr(PAGE + 0x70, 4, 11);
	for (unsigned int i = 0; i < 3; i++) {
		wr(PAGE + 0x30, 4, i);
		assert_int_equal(rd(PAGE + 0x34, 4), VIRTIO_QUEUE_SIZE);
		wr(PAGE + 0x38, 4, FIX_SIZE);
		wr(PAGE + 0x80, 4, fix_rings(i));
		wr(PAGE + 0x90, 4, fix_rings(i) + FIX_AVAIL);
		wr(PAGE + 0xa0, 4, fix_rings(i) + FIX_USED);
		wr(PAGE + 0x44, 4, 1);
		assert_int_equal(rd(PAGE + 0x44, 4), 1);
	}
	wr(PAGE + 0x70, 4, 15);
}

static void mmio_requests(void **state)
{
	uint32_t head = 0, len = 0;

	(void)state;
	assert_int_equal(rd(PAGE, 4), 0x74726976);
	assert_int_equal(rd(PAGE + 4, 4), 2);
	assert_int_equal(rd(PAGE + 8, 4), VIRTIO_ID_NET);
	wr(PAGE + 0x14, 4, 0);
	assert_int_equal(rd(PAGE + 0x10, 4), 1u << 28 | 1u << 29 | 1u << 5);
	wr(PAGE + 0x14, 4, 2);
	assert_int_equal(rd(PAGE + 0x10, 4), 0);
	assert_int_equal(rd(PAGE + 0x100, 4), 0x12005452);
	assert_int_equal(rd(PAGE + 0x105, 1), 0x56);
	mmio_start();
	fix_put(2, 0, FIX_DATA, 64, FIX_WRITE, 0);
	fix_offer(2, 0);
	wr(PAGE + 0x50, 4, 2);
	assert_int_equal(last_kick, 2);
	assert_true(fix_take(2, &head, &len));
	assert_int_equal(seen.irq, IRQ_VIRTIO_MMIO + 2);
	assert_int_equal(seen.rises, 1);
	assert_int_equal(rd(PAGE + 0x60, 4), 1);
	/* The line stays up until it is acknowledged, and comes again for what is left. */
	fix_offer(2, 0);
	wr(PAGE + 0x50, 4, 2);
	dev.interrupt(dev.transport, UINT32_MAX);
	assert_int_equal(seen.rises, 1);
	assert_int_equal(rd(PAGE + 0x60, 4), 3);
	assert_int_equal(acknowledged, 0);
	wr(PAGE + 0x64, 4, 1);
	assert_int_equal(seen.rises, 2);
	assert_int_equal(acknowledged, 1);
	wr(PAGE + 0x64, 4, 2);
	assert_int_equal(seen.rises, 2);
	assert_int_equal(seen.level, 0);
	/* An acknowledgement without an interrupt is ignored: a guest can write it forever. */
	wr(PAGE + 0x64, 4, 3);
	assert_int_equal(acknowledged, 1);
	/* Accesses that drivers don't make. */
	assert_int_equal(rd(PAGE, 1), 0);
	assert_int_equal(rd(PAGE + 2, 4), 0);
	wr(PAGE + 0x50, 4, 64);
	wr(PAGE + 0x50, 4, UINT32_MAX);
	wr(PAGE + 0x30, 4, UINT32_MAX);
	assert_int_equal(rd(PAGE + 0x34, 4), 0);
	wr(PAGE + 0x80, 4, 1);
	assert_int_equal(rd(PAGE + 0xffc, 4), 0);
	assert_false(dev.failed);
}

static void mmio_state_survives(void **state)
{
	struct err e = { 0 };
	struct cursor in;
	struct buf b;

	(void)state;
	mmio_start();
	buf_init(&b);
	assert_int_equal(virtio_mmio_save(vm, &b, &e), 0);
	wr(PAGE + 0x70, 4, 0);
	cursor_init(&in, b.data, b.len);
	assert_int_equal(virtio_mmio_restore(vm, &in, &e), 0);
	assert_int_equal(cursor_left(&in), 0);
	fix_put(2, 0, FIX_DATA, 64, FIX_WRITE, 0);
	fix_offer(2, 0);
	wr(PAGE + 0x50, 4, 2);
	assert_int_equal(seen.rises, 1);
	buf_deinit(&b);
}

static void mmio_words(void **state)
{
	struct err e = { 0 };
	struct virtio_mmio *m;
	struct buf b;

	(void)state;
	buf_init(&b);
	virtio_mmio_cmdline(2, &b);
	buf_u8(&b, 0);
	assert_string_equal((const char *)b.data, "virtio_mmio.device=4K@0xfeb00000:16 "
						  "virtio_mmio.device=4K@0xfeb01000:17 ");
	buf_deinit(&b);
	assert_int_equal(virtio_mmio_new(&m, &dev, VIRTIO_MMIO_MAX, &bus, irq_line, &e), -ENOSPC);
}

int main(void)
{
#define T(f, s) cmocka_unit_test_setup_teardown(f, s, teardown)
	const struct CMUnitTest tests[] = {
		T(empty_bus_is_silent, setup),	     T(configuration_space, setup_pci),
		T(bar_sizing_and_moving, setup_pci), T(pci_requests, setup_pci),
		T(pci_any_access, setup_pci),	     T(pci_window, setup_pci),
		T(pci_state_survives, setup_pci),    T(pci_is_full, setup_pci),
		T(mmio_requests, setup_mmio),	     T(mmio_state_survives, setup_mmio),
		T(mmio_words, setup_mmio),
	};

	return cmocka_run_group_tests_name("virtio_transport", tests, NULL, NULL);
}
