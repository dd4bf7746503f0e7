/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Virtqueues as a driver sees them, good ones and bad ones, and the two simplest devices. */
#include "tests/unit/virtio_fixture.h"

#include "vmm/dev/virtio_console.h"
#include "vmm/dev/virtio_rng.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct virtio dev;
static unsigned int kicks, activations, resets;
static uint64_t activated_with;

static void on_kick(struct virtio *d, unsigned int q)
{
	(void)d;
	(void)q;
	kicks++;
}

static void on_activate(struct virtio *d, uint64_t features)
{
	(void)d;
	activations++;
	activated_with = features;
}

static void on_reset(struct virtio *d)
{
	(void)d;
	resets++;
}

static const struct virtio_ops ops = {
	.kick = on_kick,
	.activate = on_activate,
	.reset = on_reset,
};

static int setup(void **state)
{
	(void)state;
	memset(&dev, 0, sizeof(dev));
	kicks = activations = resets = 0;
	dev.id = VIRTIO_ID_BLOCK;
	dev.name = "dev";
	dev.features = 1;
	dev.nqueues = 2;
	dev.config_len = 8;
	dev.ops = &ops;
	virtio_init(&dev, &fix_mem);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	virtio_deinit(&dev);
	return 0;
}

static void chains(void **state)
{
	struct virtio_chain c;
	char text[16] = "";
	uint32_t head = 0, len = 0;

	(void)state;
	fix_start(&dev, 0);
	assert_int_equal(virtio_pop(&dev, 0, &c), 0);
	memcpy(fix_ram + FIX_DATA, "hello ", 6);
	memcpy(fix_ram + FIX_DATA + 0x100, "world", 5);
	fix_put(0, 3, FIX_DATA, 6, FIX_NEXT, 7);
	fix_put(0, 7, FIX_DATA + 0x100, 5, FIX_NEXT, 1);
	fix_put(0, 1, FIX_DATA + 0x200, 3, FIX_NEXT | FIX_WRITE, 2);
	fix_put(0, 2, FIX_DATA + 0x300, 8, FIX_WRITE, 0);
	fix_offer(0, 3);
	assert_int_equal(virtio_pop(&dev, 1, &c), 0);
	assert_int_equal(virtio_pop(&dev, 0, &c), 1);
	assert_int_equal(c.head, 3);
	assert_int_equal(c.nout, 2);
	assert_int_equal(c.nin, 2);
	assert_int_equal(c.out_len, 11);
	assert_int_equal(c.in_len, 11);
	assert_ptr_equal(c.iov[2].iov_base, fix_ram + FIX_DATA + 0x200);
	assert_int_equal(virtio_chain_read(&c, 0, text, sizeof(text)), 11);
	assert_string_equal(text, "hello world");
	assert_int_equal(virtio_chain_read(&c, 4, text, 4), 4);
	assert_memory_equal(text, "o wo", 4);
	assert_int_equal(virtio_chain_read(&c, 11, text, 4), 0);
	assert_int_equal(virtio_chain_write(&c, 2, "abcdefghijklm", 13), 9);
	assert_memory_equal(fix_ram + FIX_DATA + 0x200, "\0\0a", 3);
	assert_memory_equal(fix_ram + FIX_DATA + 0x300, "bcdefghi\0", 9);
	virtio_push(&dev, 0, c.head, 11);
	assert_true(fix_take(0, &head, &len));
	assert_int_equal(head, 3);
	assert_int_equal(len, 11);
	assert_int_equal(fix_queue_interrupts, 1);
	assert_int_equal(virtio_pop(&dev, 0, &c), 0);
	assert_int_equal(dev.bad, 0);
}

/* Around the ring, and the 16-bit indices around their end. */
static void rings_wrap(void **state)
{
	struct virtio_chain c;
	uint32_t head = 0, len = 0;

	(void)state;
	fix_start(&dev, 0);
	for (unsigned int i = 0; i < FIX_SIZE; i++)
		fix_put(0, i, FIX_DATA + i, 1, 0, 0);
	for (unsigned int i = 0; i < 70000; i += 7) {
		for (unsigned int k = 0; k < 7; k++)
			fix_offer(0, (uint16_t)((i + k) % FIX_SIZE));
		for (unsigned int k = 0; k < 7; k++) {
			assert_int_equal(virtio_pop(&dev, 0, &c), 1);
			assert_int_equal(c.head, (i + k) % FIX_SIZE);
			virtio_push(&dev, 0, c.head, i);
			assert_true(fix_take(0, &head, &len));
			assert_int_equal(head, (i + k) % FIX_SIZE);
			assert_int_equal(len, i);
		}
		assert_int_equal(virtio_pop(&dev, 0, &c), 0);
	}
	assert_int_equal(dev.bad, 0);
}

static void indirect(void **state)
{
	uint64_t table = FIX_DATA + 0x1000;
	struct virtio_chain c;

	(void)state;
	fix_start(&dev, VIRTIO_F_INDIRECT_DESC);
	for (uint16_t i = 0; i < 40; i++)
		fix_desc(table, i, FIX_DATA + i, 1, i < 39 ? FIX_NEXT : 0, (uint16_t)(i + 1));
	fix_put(0, 0, table, 40 * 16, FIX_INDIRECT, 0);
	fix_offer(0, 0);
	assert_int_equal(virtio_pop(&dev, 0, &c), 1); /* longer than the queue, as Linux does */
	assert_int_equal(c.nout, 40);
	/* Behind a direct descriptor. */
	fix_put(0, 1, FIX_DATA, 9, FIX_NEXT, 0);
	fix_offer(0, 1);
	assert_int_equal(virtio_pop(&dev, 0, &c), 1);
	assert_int_equal(c.nout, 41);
	assert_int_equal(c.out_len, 49);
	/* Not agreed on. */
	fix_start(&dev, 0);
	fix_desc(table, 0, FIX_DATA, 1, 0, 0);
	fix_put(0, 0, table, 16, FIX_INDIRECT, 0);
	fix_offer(0, 0);
	assert_int_equal(virtio_pop(&dev, 0, &c), 0);
	assert_true(dev.failed);
}

static void interrupts_are_as_wished(void **state)
{
	struct virtio_chain c;
	uint32_t head = 0, len = 0;

	(void)state;
	fix_start(&dev, 0);
	fix_put(0, 0, FIX_DATA, 1, 0, 0);
	fix_put16(fix_rings(0) + FIX_AVAIL, 1); /* VIRTQ_AVAIL_F_NO_INTERRUPT */
	fix_offer(0, 0);
	assert_int_equal(virtio_pop(&dev, 0, &c), 1);
	virtio_push(&dev, 0, 0, 0);
	assert_int_equal(fix_queue_interrupts, 0);

	/* An interrupt when the third is used, and only then. */
	fix_start(&dev, VIRTIO_F_EVENT_IDX);
	fix_put(0, 0, FIX_DATA, 1, 0, 0);
	fix_put16(fix_rings(0) + FIX_AVAIL + 4 + 2 * FIX_SIZE, 2);
	for (unsigned int i = 0; i < 5; i++) {
		fix_offer(0, 0);
		assert_int_equal(virtio_pop(&dev, 0, &c), 1);
		virtio_push(&dev, 0, 0, 0);
		assert_true(fix_take(0, &head, &len));
		assert_int_equal(fix_queue_interrupts, i >= 2);
	}
	/* And the queue asks to be told of the next one, once it is empty. */
	assert_int_equal(virtio_pop(&dev, 0, &c), 0);
	assert_int_equal(fix_get16(fix_rings(0) + FIX_USED + 4 + 8 * FIX_SIZE), 5);
}

/* -- what is no chain ------------------------------------------------------------- */

static void loop(void)
{
	fix_put(0, 0, FIX_DATA, 1, FIX_NEXT, 1);
	fix_put(0, 1, FIX_DATA, 1, FIX_NEXT, 0);
	fix_offer(0, 0);
}

static void head_out_of_range(void)
{
	fix_offer(0, FIX_SIZE);
}

static void next_out_of_range(void)
{
	fix_put(0, 0, FIX_DATA, 1, FIX_NEXT, FIX_SIZE);
	fix_offer(0, 0);
}

static void outside(void)
{
	fix_put(0, 0, FIX_RAM, 1, 0, 0);
	fix_offer(0, 0);
}

static void across_the_end(void)
{
	fix_put(0, 0, FIX_RAM - 4, 5, FIX_WRITE, 0);
	fix_offer(0, 0);
}

static void wraps(void)
{
	fix_put(0, 0, UINT64_MAX - 3, 8, 0, 0);
	fix_offer(0, 0);
}

static void empty_buffer(void)
{
	fix_put(0, 0, FIX_DATA, 0, 0, 0);
	fix_offer(0, 0);
}

static void out_after_in(void)
{
	fix_put(0, 0, FIX_DATA, 1, FIX_NEXT | FIX_WRITE, 1);
	fix_put(0, 1, FIX_DATA, 1, 0, 0);
	fix_offer(0, 0);
}

static void too_many(void)
{
	fix_put16(fix_rings(0) + FIX_AVAIL + 2, FIX_SIZE + 1);
}

static void index_goes_back(void)
{
	fix_put16(fix_rings(0) + FIX_AVAIL + 2, UINT16_MAX);
}

static void nested_table(void)
{
	fix_desc(FIX_DATA, 0, FIX_DATA + 64, 16, FIX_INDIRECT, 0);
	fix_desc(FIX_DATA + 64, 0, FIX_DATA, 16, 0, 0);
	fix_put(0, 0, FIX_DATA, 16, FIX_INDIRECT, 0);
	fix_offer(0, 0);
}

static void table_that_loops(void)
{
	fix_desc(FIX_DATA, 0, FIX_DATA, 16, FIX_NEXT, 0);
	fix_put(0, 0, FIX_DATA, 16, FIX_INDIRECT, 0);
	fix_offer(0, 0);
}

static void table_goes_on(void)
{
	fix_desc(FIX_DATA, 0, FIX_DATA, 16, FIX_NEXT, 1);
	fix_put(0, 0, FIX_DATA, 16, FIX_INDIRECT, 0);
	fix_offer(0, 0);
}

static void odd_table(void)
{
	fix_desc(FIX_DATA, 0, FIX_DATA, 16, 0, 0);
	fix_put(0, 0, FIX_DATA, 17, FIX_INDIRECT, 0);
	fix_offer(0, 0);
}

static void empty_table(void)
{
	fix_put(0, 0, FIX_DATA, 0, FIX_INDIRECT, 0);
	fix_offer(0, 0);
}

static void huge_table(void)
{
	fix_desc(FIX_DATA, 0, FIX_DATA, 16, 0, 0);
	fix_put(0, 0, FIX_DATA, (VIRTIO_MAX_IOV + 1) * 16, FIX_INDIRECT, 0);
	fix_offer(0, 0);
}

static void table_outside(void)
{
	fix_put(0, 0, FIX_RAM - 16, 32, FIX_INDIRECT, 0);
	fix_offer(0, 0);
}

static void table_and_next(void)
{
	fix_desc(FIX_DATA, 0, FIX_DATA, 16, 0, 0);
	fix_put(0, 0, FIX_DATA, 16, FIX_INDIRECT | FIX_NEXT, 1);
	fix_put(0, 1, FIX_DATA, 16, 0, 0);
	fix_offer(0, 0);
}

static void nonsense_fails_the_device(void **state)
{
	static void (*const bad[])(void) = {
		loop,	      head_out_of_range, next_out_of_range, outside,   across_the_end,
		wraps,	      empty_buffer,	 out_after_in,	    too_many,  index_goes_back,
		nested_table, table_that_loops,	 table_goes_on,	    odd_table, empty_table,
		huge_table,   table_outside,	 table_and_next,
	};
	struct virtio_chain c;
	uint32_t head = 0, len = 0;

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fix_start(&dev, VIRTIO_F_INDIRECT_DESC);
		assert_false(dev.failed);
		bad[i]();
		if (virtio_pop(&dev, 0, &c) || !dev.failed)
			fail_msg("case %u was taken", i);
		assert_int_equal(dev.bad, i + 1);
		assert_int_equal(dev.status, 15 | VIRTIO_NEEDS_RESET);
		assert_int_equal(fix_config_interrupts, 1);
		/* Nothing more, in either direction, from any queue, until it is reset. */
		fix_put(1, 0, FIX_DATA, 1, 0, 0);
		fix_offer(1, 0);
		assert_int_equal(virtio_pop(&dev, 1, &c), 0);
		virtio_push(&dev, 0, 0, 0);
		assert_false(fix_take(0, &head, &len));
		virtio_notify(&dev, 1);
		assert_int_equal(kicks, 0);
	}
	fix_start(&dev, 0);
	fix_put(0, 0, FIX_DATA, 1, 0, 0);
	fix_offer(0, 0);
	assert_int_equal(virtio_pop(&dev, 0, &c), 1);
}

/*
 * A driver that makes more chains available than the queue has descriptors, each within the
 * limits, while none was given back: the device must not take them all.
 */
static void chains_in_flight_are_bounded(void **state)
{
	struct virtio_chain c;
	unsigned int popped = 0;

	(void)state;
	fix_start(&dev, 0);
	fix_put(0, 0, FIX_DATA, 1, 0, 0);
	for (unsigned int i = 0; i < 4 * FIX_SIZE; i++) {
		fix_offer(0, 0);
		popped += (unsigned int)virtio_pop(&dev, 0, &c);
	}
	assert_int_equal(popped, FIX_SIZE);
	assert_true(dev.failed);
	assert_int_equal(dev.bad, 1);

	/* All of them in flight is fine, and one that came back makes room for one. */
	fix_start(&dev, 0);
	fix_put(0, 0, FIX_DATA, 1, 0, 0);
	for (unsigned int i = 0; i < FIX_SIZE; i++) {
		fix_offer(0, 0);
		assert_int_equal(virtio_pop(&dev, 0, &c), 1);
	}
	for (unsigned int i = 0; i < 4 * FIX_SIZE; i++) {
		virtio_push(&dev, 0, 0, 0);
		fix_offer(0, 0);
		assert_int_equal(virtio_pop(&dev, 0, &c), 1);
	}
	assert_false(dev.failed);
	/* Available chains count as well: no driver has so many descriptors. */
	virtio_push(&dev, 0, 0, 0);
	fix_offer(0, 0);
	fix_offer(0, 0);
	assert_int_equal(virtio_pop(&dev, 0, &c), 0);
	assert_true(dev.failed);
}

static void queue_places_are_checked(void **state)
{
	static const struct {
		uint16_t size;
		uint64_t desc, avail, used;
	} bad[] = {
		{ 0, 0x1000, 0x2000, 0x3000 },	     { 3, 0x1000, 0x2000, 0x3000 },
		{ 512, 0x1000, 0x2000, 0x3000 },     { 16, 0x1008, 0x2000, 0x3000 },
		{ 16, 0x1000, 0x2001, 0x3000 },	     { 16, 0x1000, 0x2000, 0x3002 },
		{ 16, FIX_RAM, 0x2000, 0x3000 },     { 16, 0x1000, FIX_RAM - 2, 0x3000 },
		{ 16, 0x1000, 0x2000, FIX_RAM - 8 }, { 16, UINT64_MAX - 15, 0x2000, 0x3000 },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct virtio_queue *q;

		virtio_set_status(&dev, 0);
		assert_false(dev.failed);
		q = virtio_queue_setup(&dev, 0);
		q->size = bad[i].size;
		q->desc = bad[i].desc;
		q->avail = bad[i].avail;
		q->used = bad[i].used;
		virtio_queue_enable(&dev, 0);
		assert_true(dev.failed);
		assert_false(q->enabled);
	}
	assert_null(virtio_queue_setup(&dev, 2));
	virtio_queue_enable(&dev, 77);
}

static void status_follows_the_specification(void **state)
{
	struct virtio_chain c;

	(void)state;
	/* Features that nobody offered; none of version 1. */
	virtio_features_write(&dev, 0, 2);
	virtio_features_write(&dev, 1, 1);
	virtio_set_status(&dev, 11);
	assert_int_equal(dev.status, 3);
	virtio_features_write(&dev, 0, 1);
	virtio_features_write(&dev, 1, 0);
	virtio_set_status(&dev, 11);
	assert_int_equal(dev.status, 3);
	virtio_features_write(&dev, 1, 1);
	virtio_set_status(&dev, 11);
	assert_int_equal(dev.status, 11);
	/* Final. */
	virtio_features_write(&dev, 0, 0);
	virtio_set_status(&dev, 15);
	assert_int_equal(activated_with, VIRTIO_F_VERSION_1 | 1);
	virtio_set_status(&dev, 15);
	assert_int_equal(activations, 1);
	/* An enabled queue stays as it is. */
	fix_start(&dev, 0);
	assert_int_equal(activations, 2);
	assert_null(virtio_queue_setup(&dev, 0));
	virtio_notify(&dev, 0);
	virtio_notify(&dev, 1);
	virtio_notify(&dev, 2);
	assert_int_equal(kicks, 2);
	assert_int_equal(dev.kicks, 3);
	/* Reset: no queue, no features. */
	resets = 0;
	fix_put(0, 0, FIX_DATA, 1, 0, 0);
	fix_offer(0, 0);
	virtio_set_status(&dev, 0);
	assert_int_equal(resets, 1);
	assert_int_equal(virtio_pop(&dev, 0, &c), 0);
	assert_non_null(virtio_queue_setup(&dev, 0));
	assert_int_equal(dev.agreed, 0);
	/* DRIVER_OK out of order. */
	virtio_set_status(&dev, 7);
	assert_true(dev.failed);
}

static void config_space(void **state)
{
	(void)state;
	fix_start(&dev, 0);
	memcpy(dev.config + 2, "\x11\x22\x33", 3);
	assert_int_equal(virtio_config_read(&dev, 0, 8), 0x3322110000);
	assert_int_equal(virtio_config_read(&dev, 3, 2), 0x3322);
	assert_int_equal(virtio_config_read(&dev, 5, 4), 0);
	assert_int_equal(virtio_config_read(&dev, UINT64_MAX, 8), 0);
	virtio_config_write(&dev, 2, 1, 0xff); /* read-only */
	assert_int_equal(virtio_config_read(&dev, 2, 1), 0x11);
}

static void state_survives(void **state)
{
	struct virtio_chain c;
	struct cursor in;
	struct err e = { 0 };
	struct buf b;
	uint32_t head = 0, len = 0;

	(void)state;
	fix_start(&dev, VIRTIO_F_EVENT_IDX);
	fix_put(0, 0, FIX_DATA, 1, 0, 0);
	fix_offer(0, 0);
	fix_offer(0, 0);
	assert_int_equal(virtio_pop(&dev, 0, &c), 1);
	virtio_push(&dev, 0, 0, 0);
	buf_init(&b);
	assert_int_equal(virtio_save(&dev, &b, &e), 0);
	virtio_set_status(&dev, 0);
	activations = 0;
	cursor_init(&in, b.data, b.len);
	assert_int_equal(virtio_restore(&dev, &in, &e), 0);
	assert_int_equal(cursor_left(&in), 0);
	assert_int_equal(activations, 1);
	assert_true(fix_take(0, &head, &len));
	assert_int_equal(virtio_pop(&dev, 0, &c), 1);
	virtio_push(&dev, 0, 0, 0);
	assert_true(fix_take(0, &head, &len));
	assert_int_equal(virtio_pop(&dev, 0, &c), 0);
	/* Cut short, anywhere; and a queue outside of RAM. */
	for (size_t n = 0; n < b.len; n++) {
		virtio_set_status(&dev, 0);
		memset(&e, 0, sizeof(e));
		cursor_init(&in, b.data, n);
		assert_int_equal(virtio_restore(&dev, &in, &e), -EINVAL);
		assert_non_null(strstr(e.text, "dev"));
		virtio_set_status(&dev, 0);
	}
	buf_put64(&b, 4 * 4 + 1 + 8 + 8 + 3, FIX_RAM);
	cursor_init(&in, b.data, b.len);
	assert_int_equal(virtio_restore(&dev, &in, &e), -EINVAL);
	buf_deinit(&b);
}

/* -- devices -------------------------------------------------------------------------- */

static void rng(void **state)
{
	static const uint8_t zero[64];
	struct virtio *d;
	uint32_t head = 0, len = 0;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(virtio_rng_new(&d, &fix_mem, &e), 0);
	fix_start(d, 0);
	fix_put(0, 0, FIX_DATA, 64, FIX_WRITE, 0);
	fix_put(0, 1, FIX_DATA + 0x100, 0x10000, FIX_WRITE, 0);
	fix_offer(0, 0);
	fix_offer(0, 1);
	virtio_notify(d, 0);
	assert_true(fix_take(0, &head, &len));
	assert_int_equal(len, 64);
	assert_memory_not_equal(fix_ram + FIX_DATA, zero, 64);
	assert_memory_equal(fix_ram + FIX_DATA + 64, zero, 64);
	assert_true(fix_take(0, &head, &len)); /* less than was asked for is allowed */
	assert_true(len > 0 && len < 0x10000);
	assert_int_equal(fix_queue_interrupts, 2);
	fix_put(0, 0, FIX_DATA, 64, 0, 0);
	fix_offer(0, 0);
	virtio_notify(d, 0);
	assert_true(d->failed);
	d->ops->destroy(d);
}

static char said[256];

static void hear(void *ctx, uint8_t byte)
{
	size_t n = strlen(said);

	(void)ctx;
	assert_true(n + 1 < sizeof(said));
	said[n] = (char)byte;
	said[n + 1] = 0;
}

static void console(void **state)
{
	struct virtio *d;
	uint32_t head = 0, len = 0;
	struct err e = { 0 };
	uint8_t line[2000];

	(void)state;
	said[0] = 0;
	memset(line, 'x', sizeof(line));
	assert_int_equal(virtio_console_new(&d, &fix_mem, hear, NULL, &e), 0);
	virtio_config_write(d, 8, 4, '!'); /* before there is a driver */
	assert_string_equal(said, "!");
	assert_false(virtio_console_ready(d));
	fix_start(d, 0);
	assert_true(virtio_console_ready(d));
	memcpy(fix_ram + FIX_DATA, "one two", 7);
	fix_put(1, 0, FIX_DATA, 4, FIX_NEXT, 1);
	fix_put(1, 1, FIX_DATA + 4, 3, 0, 0);
	fix_offer(1, 0);
	virtio_notify(d, 1);
	assert_string_equal(said, "!one two");
	assert_true(fix_take(1, &head, &len));
	/* Typed before and after there is a buffer, and more than fits into it. */
	assert_int_equal(virtio_console_input(d, (const uint8_t *)"abcdef", 6), 6);
	assert_false(fix_take(0, &head, &len));
	fix_put(0, 0, FIX_DATA, 4, FIX_WRITE, 0);
	fix_offer(0, 0);
	virtio_notify(d, 0);
	assert_true(fix_take(0, &head, &len));
	assert_int_equal(len, 4);
	assert_memory_equal(fix_ram + FIX_DATA, "abcd", 4);
	fix_offer(0, 0);
	assert_int_equal(virtio_console_input(d, (const uint8_t *)"g", 1), 1);
	assert_true(fix_take(0, &head, &len));
	assert_int_equal(len, 3);
	assert_memory_equal(fix_ram + FIX_DATA, "efgd", 4);
	assert_int_equal(virtio_console_input(d, line, sizeof(line)), 1024);
	assert_int_equal(virtio_console_input(d, line, 1), 0);
	d->ops->destroy(d);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(chains),
		T(rings_wrap),
		T(indirect),
		T(interrupts_are_as_wished),
		T(nonsense_fails_the_device),
		T(chains_in_flight_are_bounded),
		T(queue_places_are_checked),
		T(status_follows_the_specification),
		T(config_space),
		T(state_survives),
		cmocka_unit_test(rng),
		cmocka_unit_test(console),
	};

	return cmocka_run_group_tests_name("virtio", tests, NULL, NULL);
}
