/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The disk of the guest, by a driver that puts requests into its queues. */
#include "tests/unit/blk_fixture.h"
#include "tests/unit/dir_fixture.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SECTORS 4096u
#define SIZE (SECTORS * 512u)

static char image[64];
static uint8_t model[SIZE];

static struct {
	pthread_mutex_t lock;
	struct io_record record[4096];
	unsigned int n;
	uint64_t batches;
	unsigned int raised; /* interrupts, each of a request that was told of before */
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t batch(void *ctx)
{
	(void)ctx;
	return ++seen.batches;
}

static void done(void *ctx, const struct io_record *r)
{
	(void)ctx;
	pthread_mutex_lock(&seen.lock);
	if (r->type == IO_RAISED)
		for (unsigned int i = 0; i < seen.n; i++)
			seen.raised += seen.record[i].submit_ns == r->submit_ns &&
				       seen.record[i].sector == r->sector &&
				       seen.record[i].complete_ns <= r->complete_ns;
	else if (seen.n < ARRAY_SIZE(seen.record))
		seen.record[seen.n++] = *r;
	pthread_mutex_unlock(&seen.lock);
}

static int set_up(void **state)
{
	(void)state;
	seen.n = 0;
	seen.batches = seen.raised = 0;
	return blk_image(image, model, SIZE);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(image);
}

struct fixture {
	struct disk *disk;
	struct blk_driver b;
};

static void begin(struct fixture *f, enum disk_write how, unsigned int queues, uint64_t features)
{
	struct disk_config dc = { .path = image, .write = how };
	struct virtio_blk_config cfg = {
		.serial = "serial-0123456789-too-long",
		.index = 3,
		.queues = queues,
		.io = { .batch = batch, .done = done },
	};
	struct err e = { 0 };

	if (disk_open(&f->disk, &dc, &e) < 0)
		fail_msg("%s", e.text);
	cfg.disk = f->disk;
	assert_int_equal(blk_driver_init(&f->b, &cfg), 0);
	blk_begin(&f->b, features);
}

static void end(struct fixture *f)
{
	blk_driver_deinit(&f->b);
	disk_close(f->disk, NULL);
}

static uint64_t config(struct fixture *f, uint64_t off, unsigned int len)
{
	return virtio_config_read(f->b.d, off, len);
}

static void describes_itself(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, DISK_OVERLAY, 40, BLK_F_FLUSH);
	assert_int_equal(f.b.d->id, 2);
	assert_int_equal(f.b.d->nqueues, 16);
	assert_int_equal(config(&f, 0, 8), SECTORS);
	assert_int_equal(config(&f, 12, 4), 254);
	assert_int_equal(config(&f, 20, 4), 512);
	assert_int_equal(config(&f, 34, 2), 16);
	assert_true(f.b.d->features & 1u << 13);
	assert_false(f.b.d->features & 1u << 5);
	end(&f);
	begin(&f, DISK_READ_ONLY, 0, 0);
	assert_int_equal(f.b.d->nqueues, 1);
	assert_true(f.b.d->features & 1u << 5);
	assert_false(f.b.d->features & 1u << 13);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_OUT, 0, 512), IO_ERROR);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, 0, 512), IO_OK);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_FLUSH, 0, 0), IO_OK);
	end(&f);
}

static void reads_and_writes(void **state)
{
	static const enum disk_write how[] = { DISK_OVERLAY, DISK_WRITABLE };

	(void)state;
	for (size_t h = 0; h < ARRAY_SIZE(how); h++) {
		struct fixture f;
		struct io_stats st;
		uint64_t reads = 0, writes = 0;
		uint32_t random = 12345;

		blk_model(model, SIZE);
		begin(&f, how[h], 2, BLK_F_FLUSH);
		for (unsigned int i = 0; i < 400; i++) {
			uint32_t sectors, sector;
			uint8_t *data = blk_ptr(&f.b, blk_data_at(0), BLK_DATA_SPACE);

			random = random * 1664525 + 1013904223;
			sectors = 1 + (random >> 8) % (random & 64 ? 8 : 512);
			sector = (random >> 12) % (SECTORS - sectors);
			if (random & 128) {
				for (uint32_t k = 0; k < sectors * 512; k++)
					data[k] = (uint8_t)(random + k);
				assert_int_equal(blk_do(&f.b, i & 1, BLK_T_OUT, sector,
							sectors * 512),
						 IO_OK);
				memcpy(model + sector * 512, data, sectors * 512);
				writes += sectors * 512;
			} else {
				memset(data, 0xee, sectors * 512 + 1);
				assert_int_equal(blk_do(&f.b, i & 1, BLK_T_IN, sector,
							sectors * 512),
						 IO_OK);
				assert_memory_equal(data, model + sector * 512, sectors * 512);
				assert_int_equal(data[sectors * 512], 0xee);
				reads += sectors * 512;
			}
		}
		assert_int_equal(blk_do(&f.b, 1, BLK_T_FLUSH, 0, 0), IO_OK);
		virtio_blk_stats(f.b.d, &st);
		assert_int_equal(st.bytes[IO_READ], reads);
		assert_int_equal(st.bytes[IO_WRITE], writes);
		assert_int_equal(st.requests[IO_READ] + st.requests[IO_WRITE], 400);
		assert_int_equal(st.requests[IO_FLUSH], 1);
		assert_int_equal(st.errors, 0);
		assert_int_equal(f.b.d->bad, 0);
		assert_true(f.b.interrupts > 0);
		end(&f);
	}
}

/* Each request that ended is told of once, with what it was. */
static void tells_of_requests(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, DISK_WRITABLE, 1, BLK_F_FLUSH);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, 8, 4096), IO_OK);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_OUT, 16, 1024), IO_OK);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_FLUSH, 5, 0), IO_OK);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, SECTORS, 512), IO_ERROR);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_GET_ID, 0, 20), IO_OK);
	for (unsigned int k = 0; k < 5; k++)
		blk_put(&f.b, 0, k, BLK_T_IN, k, 512);
	virtio_notify(f.b.d, 0);
	assert_true(blk_wait(&f.b, 0));
	assert_int_equal(seen.n, 9);
	for (unsigned int i = 0; i < seen.n; i++) {
		const struct io_record *r = &seen.record[i];

		assert_int_equal(r->device, 3);
		assert_true(r->notified_ns && r->submit_ns >= r->notified_ns);
		assert_true(r->begun_ns >= r->submit_ns && r->complete_ns >= r->begun_ns);
		assert_int_equal(r->token, i < 4 ? i + 1 : 5); /* GET_ID is nobody's */
	}
	/* Those that were there alone have one each. */
	assert_true(seen.raised >= 4);
	assert_int_equal(seen.record[0].type, IO_READ);
	assert_int_equal(seen.record[0].sector, 8);
	assert_int_equal(seen.record[0].bytes, 4096);
	assert_int_equal(seen.record[1].type, IO_WRITE);
	assert_int_equal(seen.record[1].bytes, 1024);
	assert_int_equal(seen.record[2].type, IO_FLUSH);
	assert_int_equal(seen.record[2].bytes, 0);
	assert_int_equal(seen.record[2].sector, 0);
	assert_int_equal(seen.record[3].status, IO_ERROR);
	assert_int_equal(seen.record[3].bytes, 512);
	end(&f);
}

static void gives_its_serial(void **state)
{
	struct fixture f;
	uint8_t *data;

	(void)state;
	begin(&f, DISK_OVERLAY, 1, 0);
	data = blk_ptr(&f.b, blk_data_at(0), 64);
	memset(data, 0xee, 64);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_GET_ID, 0, 20), IO_OK);
	assert_memory_equal(data, "serial-0123456789-to", 20);
	assert_int_equal(data[20], 0xee);
	memset(data, 0xee, 64);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_GET_ID, 0, 7), IO_OK);
	assert_memory_equal(data, "serial-\xee", 8);
	end(&f);
}

static uint8_t give_up(struct fixture *f, uint32_t type, unsigned int n, uint64_t sector,
		       uint32_t sectors, uint32_t flags)
{
	uint8_t *data = blk_ptr(&f->b, blk_data_at(0), BLK_DATA_SPACE);

	for (unsigned int i = 0; i < n; i++) {
		memcpy(data + 16 * i, &sector, 8);
		memcpy(data + 16 * i + 8, &sectors, 4);
		memcpy(data + 16 * i + 12, &flags, 4);
		sector += 2 * sectors;
	}
	return blk_do(&f->b, 0, type, 0, 16 * n);
}

static void discards(void **state)
{
	struct fixture f;
	struct io_stats st;
	uint8_t *data;

	(void)state;
	begin(&f, DISK_OVERLAY, 1, BLK_F_FLUSH);
	assert_int_equal(give_up(&f, BLK_T_DISCARD, 3, 8, 8, 0), IO_OK);
	assert_int_equal(give_up(&f, BLK_T_WRITE_ZEROES, 1, 100, 1, 1), IO_OK);
	for (unsigned int i = 0; i < 3; i++)
		memset(model + (8 + 16 * i) * 512, 0, 8 * 512);
	memset(model + 100 * 512, 0, 512);
	data = blk_ptr(&f.b, blk_data_at(0), 128 * 512);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, 0, 128 * 512), IO_OK);
	assert_memory_equal(data, model, 128 * 512);
	virtio_blk_stats(f.b.d, &st);
	assert_int_equal(st.bytes[IO_DISCARD], 3 * 8 * 512);
	assert_int_equal(st.bytes[IO_ZEROES], 512);
	assert_int_equal(seen.record[0].sector, 8);
	assert_int_equal(seen.record[0].bytes, 3 * 8 * 512);

	assert_int_equal(give_up(&f, BLK_T_DISCARD, 1, SECTORS - 1, 2, 0), IO_ERROR);
	assert_int_equal(give_up(&f, BLK_T_DISCARD, 1, UINT64_MAX, 2, 0), IO_ERROR);
	assert_int_equal(give_up(&f, BLK_T_DISCARD, 1, 0, UINT32_MAX, 0), IO_ERROR);
	assert_int_equal(give_up(&f, BLK_T_DISCARD, 17, 0, 1, 0), IO_ERROR);
	assert_int_equal(give_up(&f, BLK_T_DISCARD, 0, 0, 1, 0), IO_ERROR);
	assert_int_equal(give_up(&f, BLK_T_DISCARD, 1, 0, 1, 1), IO_UNSUPPORTED);
	assert_int_equal(give_up(&f, BLK_T_WRITE_ZEROES, 1, 0, 1, 2), IO_UNSUPPORTED);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_DISCARD, 0, 15), IO_ERROR);
	/* One bad segment: none is carried out. */
	assert_int_equal(give_up(&f, BLK_T_DISCARD, 2, 2000, 2000, 0), IO_ERROR);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, 2000, 512), IO_OK);
	assert_memory_equal(data, model + 2000 * 512, 512);
	end(&f);
}

static void odd_requests_fail(void **state)
{
	static const uint32_t types[] = { 2, 3, 5, 6, 10, 12, 14, 255, UINT32_MAX };
	struct fixture f;
	struct io_stats st;

	(void)state;
	begin(&f, DISK_OVERLAY, 1, BLK_F_FLUSH);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, SECTORS - 1, 1024), IO_ERROR);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, UINT64_MAX, 512), IO_ERROR);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, UINT64_MAX / 512, 512), IO_ERROR);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_OUT, SECTORS, 512), IO_ERROR);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, 0, 511), IO_ERROR);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_OUT, 0, 513), IO_ERROR);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, 0, 0), IO_OK);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		assert_int_equal(blk_do(&f.b, 0, types[i], 0, 512), IO_UNSUPPORTED);
	virtio_blk_stats(f.b.d, &st);
	assert_int_equal(st.errors, 6 + ARRAY_SIZE(types));
	assert_int_equal(f.b.d->bad, 0);
	/* It goes on. */
	assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, 0, 512), IO_OK);
	end(&f);
}

/* Header and status in odd pieces: their layout is the driver's choice. */
static void any_layout_will_do(void **state)
{
	struct fixture f;
	struct blk_desc *t;
	uint8_t *data;
	uint64_t h;

	(void)state;
	begin(&f, DISK_OVERLAY, 1, BLK_F_FLUSH);
	t = blk_table(&f.b, 0);
	data = blk_ptr(&f.b, blk_data_at(0), 2048);
	blk_put(&f.b, 0, 0, BLK_T_OUT, 9, 512);
	h = blk_header_at(0, 0);
	/* The header in three parts, of which the last is in front of the data. */
	memset(data, 0, 2048);
	memcpy(data + 100, blk_ptr(&f.b, h + 12, 4), 4);
	memset(data + 104, 0x5a, 512);
	t[0] = (struct blk_desc){ h, 5, BLK_NEXT, 1 };
	t[1] = (struct blk_desc){ h + 5, 7, BLK_NEXT, 2 };
	t[2] = (struct blk_desc){ blk_data_at(0) + 100, 516, BLK_NEXT, 3 };
	t[3] = (struct blk_desc){ h + 16, 1, BLK_WRITE, 0 };
	virtio_notify(f.b.d, 0);
	assert_true(blk_wait(&f.b, 0));
	assert_int_equal(blk_status(&f.b, 0, 0), IO_OK);
	/* The status behind the data in one buffer. */
	blk_put(&f.b, 0, 0, BLK_T_IN, 9, 512);
	t[1] = (struct blk_desc){ blk_data_at(0), 513, BLK_WRITE, 0 };
	memset(data, 0xff, 1024);
	virtio_notify(f.b.d, 0);
	assert_true(blk_wait(&f.b, 0));
	for (unsigned int i = 0; i < 512; i++)
		assert_int_equal(data[i], 0x5a);
	assert_int_equal(data[512], IO_OK);
	assert_int_equal(data[513], 0xff);
	end(&f);
}

/* No place for a header or a status: the device has failed until the driver resets it. */
static void nonsense_fails_the_device(void **state)
{
	struct fixture f;
	struct blk_desc *t;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		begin(&f, DISK_OVERLAY, 1, BLK_F_FLUSH);
		t = blk_table(&f.b, 0);
		blk_put(&f.b, 0, 0, BLK_T_IN, 0, 512);
		if (i == 0)
			t[0].len = 15;
		else if (i == 1)
			t[2].flags &= (uint16_t)~BLK_WRITE, t[1].flags = BLK_NEXT, t[3].flags = 0;
		else
			t[0].addr = BLK_RAM - 8;
		virtio_notify(f.b.d, 0);
		assert_int_equal(f.b.d->bad, 1);
		assert_true(f.b.d->failed);
		blk_put(&f.b, 0, 1, BLK_T_IN, 0, 512);
		virtio_notify(f.b.d, 0);
		assert_int_equal(blk_used(&f.b, 0), 0);
		blk_begin(&f.b, BLK_F_FLUSH);
		assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, 0, 512), IO_OK);
		end(&f);
	}
}

/*
 * A driver that notifies again and again of a whole queue of requests, each too large for the
 * vCPU's thread, without waiting for one of them: what is kept of them on the host is bounded.
 */
static void requests_in_flight_are_bounded(void **state)
{
	struct fixture f;
	uint16_t *avail;

	(void)state;
	begin(&f, DISK_OVERLAY, 1, BLK_F_FLUSH);
	blk_put(&f.b, 0, 0, BLK_T_IN, 0, SIZE);
	avail = blk_ptr(&f.b, blk_avail_at(0), 4 + 2 * BLK_SIZE);
	f.b.avail[0] = 0;
	for (unsigned int round = 0; round < 100 && !f.b.d->failed; round++) {
		f.b.avail[0] += BLK_SIZE;
		__atomic_store_n(&avail[1], f.b.avail[0], __ATOMIC_RELEASE);
		virtio_notify(f.b.d, 0);
		assert_true(f.b.d->chains - blk_used(&f.b, 0) <= BLK_SIZE);
	}
	assert_true(f.b.d->failed);
	/* Requests in flight end, and the driver can begin again. */
	f.b.d->ops->drain(f.b.d);
	blk_begin(&f.b, BLK_F_FLUSH);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, 0, 512), IO_OK);
	end(&f);
}

static void many_at_once(void **state)
{
	static const enum disk_write how[] = { DISK_OVERLAY, DISK_WRITABLE };

	(void)state;
	for (size_t h = 0; h < ARRAY_SIZE(how); h++) {
		struct fixture f;

		begin(&f, how[h], 4, BLK_F_FLUSH);
		for (unsigned int round = 0; round < 50; round++) {
			for (unsigned int k = 0; k < 16; k++) {
				uint8_t *data = blk_ptr(&f.b, blk_data_at(k), 8192);

				memset(data, (int)(round + k), 8192);
				blk_put(&f.b, k % 4, k, BLK_T_OUT, k * 16, 8192);
			}
			for (unsigned int q = 0; q < 4; q++)
				virtio_notify(f.b.d, q);
			if (round == 20) {
				f.b.d->ops->drain(f.b.d);
				for (unsigned int q = 0; q < 4; q++)
					assert_int_equal(blk_used(&f.b, q), f.b.avail[q]);
			}
			for (unsigned int q = 0; q < 4; q++)
				assert_true(blk_wait(&f.b, q));
			for (unsigned int k = 0; k < 16; k++) {
				uint8_t byte;
				struct iovec iov = { &byte, 1 };

				assert_int_equal(blk_status(&f.b, k % 4, k), IO_OK);
				assert_int_equal(disk_readv(f.disk, k * 8192 + 17, &iov, 1), 0);
				assert_int_equal(byte, (uint8_t)(round + k));
			}
		}
		end(&f);
	}
}

/* Large ones and small ones of one notification: more than one thread carries them out, each once. */
static void large_ones_are_shared(void **state)
{
	static const uint32_t len[] = { 131072, 512, 131072, 65536, 65536 - 512, 131072, 4096 };
	static const enum disk_write how[] = { DISK_OVERLAY, DISK_WRITABLE };

	(void)state;
	for (size_t h = 0; h < ARRAY_SIZE(how); h++) {
		struct fixture f;

		blk_model(model, SIZE);
		seen.n = 0;
		begin(&f, how[h], 1, BLK_F_FLUSH);
		for (unsigned int round = 0; round < 60; round++) {
			unsigned int n = 1 + round % 14, from = seen.n;

			for (unsigned int k = 0; k < n; k++) {
				uint32_t bytes = len[(k + round) % ARRAY_SIZE(len)];
				uint8_t *data = blk_ptr(&f.b, blk_data_at(k), bytes + 1);
				bool write = (k * 5 + round) % 3 == 0;
				uint64_t sector = k * 256;

				memset(data, (int)(round + k), bytes + 1);
				if (write)
					memcpy(model + sector * 512, data, bytes);
				blk_put(&f.b, 0, k, write ? BLK_T_OUT : BLK_T_IN, sector, bytes);
			}
			virtio_notify(f.b.d, 0);
			assert_true(blk_wait(&f.b, 0));
			for (unsigned int k = 0; k < n; k++) {
				uint32_t bytes = len[(k + round) % ARRAY_SIZE(len)];
				uint8_t *data = blk_ptr(&f.b, blk_data_at(k), bytes + 1);

				assert_int_equal(blk_status(&f.b, 0, k), IO_OK);
				assert_memory_equal(data, model + k * 256 * 512, bytes);
				assert_int_equal(data[bytes], (uint8_t)(round + k));
			}
			assert_int_equal(seen.n - from, n);
			for (unsigned int i = from; i < seen.n; i++)
				assert_int_equal(seen.record[i].token, seen.batches);
		}
		assert_int_equal(f.b.d->bad, 0);
		end(&f);
	}
}

/* After a reset nothing writes to guest RAM any more. */
static void reset_waits(void **state)
{
	struct fixture f;

	(void)state;
	for (unsigned int round = 0; round < 50; round++) {
		uint16_t used;

		begin(&f, DISK_WRITABLE, 1, BLK_F_FLUSH);
		for (unsigned int k = 0; k < 16; k++)
			blk_put(&f.b, 0, k, BLK_T_OUT, k * 512, 65536);
		virtio_notify(f.b.d, 0);
		virtio_set_status(f.b.d, 0);
		used = blk_used(&f.b, 0);
		memset(blk_ptr(&f.b, blk_header_at(0, 0), 32 * 16), 0x77, 32 * 16);
		usleep(1000);
		assert_int_equal(blk_used(&f.b, 0), used);
		for (unsigned int k = 0; k < 16; k++)
			assert_int_equal(blk_status(&f.b, 0, k), 0x77);
		blk_begin(&f.b, BLK_F_FLUSH);
		assert_int_equal(blk_do(&f.b, 0, BLK_T_IN, 0, 512), IO_OK);
		end(&f);
	}
}

static void driver_chooses_the_cache(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, DISK_WRITABLE, 1, BLK_F_FLUSH | BLK_F_CONFIG_WCE);
	virtio_config_write(f.b.d, 32, 1, 0);
	assert_int_equal(config(&f, 32, 1), 0);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_OUT, 0, 512), IO_OK);
	virtio_config_write(f.b.d, 32, 1, 0xff);
	assert_int_equal(config(&f, 32, 1), 1);
	/* The rest of it is not the driver's. */
	virtio_config_write(f.b.d, 0, 8, UINT64_MAX);
	virtio_config_write(f.b.d, 30, 4, UINT32_MAX);
	assert_int_equal(config(&f, 0, 8), SECTORS);
	assert_int_equal(config(&f, 34, 2), 1);
	assert_int_equal(config(&f, 30, 2), 0);
	end(&f);
	begin(&f, DISK_WRITABLE, 1, 0);
	virtio_config_write(f.b.d, 32, 1, 0);
	assert_int_equal(config(&f, 32, 1), 1);
	assert_int_equal(blk_do(&f.b, 0, BLK_T_OUT, 0, 512), IO_OK);
	end(&f);
}

/* Rights are given up between create() and start(). */
static void create_starts_no_thread(void **state)
{
	struct virtio_blk_config cfg = { .name = "vda", .queues = 1 };
	unsigned int before = dir_entries("/proc/self/task");
	struct gmem mem = { 0 };
	struct err e = { 0 };
	struct virtio *d;

	(void)state;
	assert_int_equal(disk_open(&cfg.disk, &(struct disk_config){ .path = image }, &e), 0);
	assert_int_equal(gmem_alloc(&mem, &(struct gmem_config){ .size = BLK_RAM }, &e), 0);
	assert_int_equal(virtio_blk_create(&d, &mem, &cfg, &e), 0);
	assert_int_equal(dir_entries("/proc/self/task"), before);
	assert_int_equal(d->ops->start(d, &e), 0);
	assert_true(dir_entries("/proc/self/task") > before);
	d->ops->destroy(d);
	assert_int_equal(disk_close(cfg.disk, &e), 0);
	gmem_alloc_free(&mem);
}

/* Saved in the middle of a run, and gone on with by another device. */
static void state_is_saved(void **state)
{
	struct fixture f, g;
	struct buf saved;
	struct cursor c;
	struct err e = { 0 };

	(void)state;
	begin(&f, DISK_OVERLAY, 2, BLK_F_FLUSH | BLK_F_CONFIG_WCE);
	assert_int_equal(blk_do(&f.b, 1, BLK_T_IN, 0, 512), IO_OK);
	virtio_config_write(f.b.d, 32, 1, 0);
	f.b.d->ops->drain(f.b.d);
	buf_init(&saved);
	assert_int_equal(virtio_save(f.b.d, &saved, &e), 0);
	begin(&g, DISK_OVERLAY, 2, 0);
	memcpy(blk_ptr(&g.b, 0x1000, BLK_RAM - 0x1000), blk_ptr(&f.b, 0x1000, BLK_RAM - 0x1000),
	       BLK_RAM - 0x1000);
	memcpy(g.b.avail, f.b.avail, sizeof(g.b.avail));
	cursor_init(&c, saved.data, saved.len);
	if (virtio_restore(g.b.d, &c, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(config(&g, 32, 1), 0);
	assert_int_equal(blk_do(&g.b, 1, BLK_T_IN, 3, 512), IO_OK);
	assert_memory_equal(blk_ptr(&g.b, blk_data_at(0), 512), model + 3 * 512, 512);
	buf_deinit(&saved);
	end(&f);
	end(&g);
}

static void begin_limited(struct fixture *f, struct rate_limit limit)
{
	struct disk_config dc = { .path = image };
	struct virtio_blk_config cfg = { .queues = 2, .limit = limit };
	struct err e = { 0 };

	if (disk_open(&f->disk, &dc, &e) < 0)
		fail_msg("%s", e.text);
	cfg.disk = f->disk;
	assert_int_equal(blk_driver_init(&f->b, &cfg), 0);
	blk_begin(&f->b, BLK_F_FLUSH);
}

/* Returns how long n reads of `len` bytes take, which are all put at once, as fits. */
static uint64_t time_reads(struct fixture *f, unsigned int n, uint32_t len)
{
	uint64_t begun = clock_mono_ns();

	for (unsigned int i = 0; i < n;) {
		unsigned int k = 0;

		for (; k < 8 && i < n; k++, i++)
			blk_put(&f->b, i & 8 ? 1 : 0, k, BLK_T_IN, i, len);
		virtio_notify(f->b.d, (i - 1) & 8 ? 1 : 0);
		assert_true(blk_wait(&f->b, 0) && blk_wait(&f->b, 1));
		while (k)
			assert_int_equal(blk_status(&f->b, (i - 1) & 8 ? 1 : 0, --k), IO_OK);
	}
	return clock_mono_ns() - begun;
}

/* A busy host only makes them slower. What waits uses no processor. */
static void limits_hold(void **state)
{
	static const struct rate_limit limits[] = { { .operations = 100 },
						    { .bytes = 100 * 4096 } };

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(limits); i++) {
		uint64_t used = clock_ns(CLOCK_PROCESS_CPUTIME_ID), ns;
		struct fixture f;

		begin_limited(&f, limits[i]);
		/* 10 or 11 are in the bucket, the others come one each 10 ms. */
		ns = time_reads(&f, 48, 4096);
		used = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
		assert_true(ns >= 360 * 1000000ull);
		/* blk_wait() looks each 0.1 ms. */
		if (used > ns / 2)
			fail_msg("%llu of %llu ns", (unsigned long long)used,
				 (unsigned long long)ns);
		end(&f);
	}
}

/* At one request in a second they would take half a minute. */
static void nobody_waits_for_a_limit(void **state)
{
	uint64_t begun = clock_mono_ns();
	struct fixture f;

	(void)state;
	begin_limited(&f, (struct rate_limit){ .operations = 1 });
	for (unsigned int k = 0; k < 16; k++)
		blk_put(&f.b, 0, k, BLK_T_IN, k, 512);
	virtio_notify(f.b.d, 0);
	f.b.d->ops->drain(f.b.d); /* carries them out */
	assert_int_equal(blk_used(&f.b, 0), 16);
	for (unsigned int k = 0; k < 16; k++)
		assert_int_equal(blk_status(&f.b, 0, k), IO_OK);
	for (unsigned int k = 0; k < 16; k++)
		blk_put(&f.b, 0, k, BLK_T_IN, k, 512);
	virtio_notify(f.b.d, 0);
	blk_begin(&f.b, BLK_F_FLUSH); /* a reset */
	for (unsigned int k = 0; k < 16; k++)
		blk_put(&f.b, 1, k, BLK_T_IN, k, 512);
	virtio_notify(f.b.d, 1);
	end(&f);
	assert_true(clock_mono_ns() - begun < 10 * NSEC_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		TEST(describes_itself),
		TEST(reads_and_writes),
		TEST(tells_of_requests),
		TEST(gives_its_serial),
		TEST(discards),
		TEST(odd_requests_fail),
		TEST(any_layout_will_do),
		TEST(nonsense_fails_the_device),
		TEST(requests_in_flight_are_bounded),
		TEST(many_at_once),
		TEST(large_ones_are_shared),
		TEST(reset_waits),
		TEST(driver_chooses_the_cache),
		TEST(create_starts_no_thread),
		TEST(state_is_saved),
		TEST(limits_hold),
		TEST(nobody_waits_for_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
