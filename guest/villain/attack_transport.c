// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Initialisation in the wrong order and with wrong values (2.1 to 2.5, 3.1.1), on both transports.
 */
#include "villain.h"

#define ALL_BEGUN (STATUS_BEGUN | STATUS_FEATURES_OK)

static int driver_ok_first(struct vdev *d)
{
	dev_set_status(d, 0);
	dev_set_status(d, STATUS_DRIVER_OK);
	return 0;
}

static int driver_ok_without_features(struct vdev *d)
{
	dev_setup(d, 0, STEP_BEGUN);
	dev_set_status(d, STATUS_BEGUN | STATUS_DRIVER_OK);
	return 0;
}

static int driver_ok_without_queues(struct vdev *d)
{
	dev_setup(d, 0, STEP_FEATURES_OK);
	dev_set_status(d, ALL_BEGUN | STATUS_DRIVER_OK);
	for (u32 i = 0; i < d->nqueues; i++)
		dev_notify(d, i);
	return 0;
}

/* 6.3: a device may refuse a legacy driver, and this one must. */
static int without_version_1(struct vdev *d)
{
	dev_setup(d, 0, STEP_BEGUN);
	dev_set_features(d, 0, 0);
	dev_set_features(d, 1, 0);
	dev_set_status(d, ALL_BEGUN);
	return (dev_status(d) & STATUS_FEATURES_OK) != 0;
}

static int features_not_offered(struct vdev *d)
{
	dev_setup(d, 0, STEP_BEGUN);
	dev_set_features(d, 0, 0xffffffff);
	dev_set_features(d, 1, 0xffffffff);
	dev_set_status(d, ALL_BEGUN);
	return (dev_status(d) & STATUS_FEATURES_OK) != 0;
}

static int features_after_ok(struct vdev *d)
{
	dev_set_features(d, 0, 0xffffffff);
	dev_set_features(d, 1, 0);
	dev_set_features(d, 1, 0xffffffff);
	return 0;
}

static int feature_words_beyond(struct vdev *d)
{
	static const u32 words[] = { 2, 3, 31, 32, 63, 64, 0x7fffffff, 0x80000000, 0xffffffff };
	int wrong = 0;

	dev_setup(d, 0, STEP_BEGUN);
	for (u32 i = 0; i < ARRAY_SIZE(words); i++) {
		wrong |= dev_features(d, words[i]) != 0;
		dev_set_features(d, words[i], i & 1 ? 0xffffffff : 0);
	}
	return wrong;
}

static int reset_at(struct vdev *d, int step)
{
	int wrong = 0;

	for (u32 i = 0; i < 3; i++) {
		dev_setup(d, 0, step);
		dev_set_status(d, 0);
		wrong |= dev_status(d) != 0;
	}
	return wrong | !dev_setup(d, 0, STEP_DRIVER_OK);
}

static int reset_begun(struct vdev *d)
{
	return reset_at(d, STEP_BEGUN);
}

static int reset_features(struct vdev *d)
{
	return reset_at(d, STEP_FEATURES);
}

static int reset_features_ok(struct vdev *d)
{
	return reset_at(d, STEP_FEATURES_OK);
}

static int reset_queues(struct vdev *d)
{
	return reset_at(d, STEP_QUEUES);
}

static int reset_driver_ok(struct vdev *d)
{
	return reset_at(d, STEP_DRIVER_OK);
}

static int reset_storm(struct vdev *d)
{
	for (u32 i = 0; i < 200; i++)
		dev_set_status(d, 0);
	return !dev_setup(d, 0, STEP_DRIVER_OK);
}

static void offer_many(struct vdev *d)
{
	u16 write = d->id == ID_RNG ? DESC_WRITE : 0;

	for (u16 i = 0; i < 32; i++) {
		memset(at(buffer(i)), 0, 16);
		if (d->id == ID_BLOCK || d->id == ID_9P) {
			desc_set(vq_desc(&d->q[0], (u16)(2 * i)), buffer(i), 16, DESC_NEXT,
				 (u16)(2 * i + 1));
			desc_set(vq_desc(&d->q[0], (u16)(2 * i + 1)), BIG_BUFFER, 513, DESC_WRITE,
				 0);
			vq_publish(d, 0, (u16)(2 * i));
		} else {
			desc_set(vq_desc(&d->q[d->attacked], i), buffer(i), 64, write, 0);
			vq_publish(d, d->attacked, i);
		}
	}
	dev_notify(d, d->attacked);
}

/* 2.4: a reset while requests are in flight. */
static int reset_in_flight(struct vdev *d)
{
	for (u32 i = 0; i < 20; i++) {
		offer_many(d);
		dev_set_status(d, 0);
		if (!dev_setup(d, 0, STEP_DRIVER_OK))
			return 1;
	}
	return 0;
}

/* Memory of a reset device's queues no longer belongs to the device. */
static int reset_then_silent(struct vdev *d)
{
	struct vq *q = &d->q[d->attacked];
	u16 used;

	offer_many(d);
	dev_set_status(d, 0);
	used = vq_used(q);
	memset(at(q->used), 0xee, 8 + 8 * VQ_SIZE);
	for (u32 i = 0; i < 4; i++) {
		dev_notify(d, d->attacked);
		wait_shortly();
	}
	(void)used;
	for (u32 i = 0; i < 8 + 8 * VQ_SIZE; i += 8)
		if (*(volatile u64 *)at(q->used + i) != 0xeeeeeeeeeeeeeeeeul)
			return 1;
	return !dev_setup(d, 0, STEP_DRIVER_OK);
}

/* 2.1.1: the driver must not clear bits. */
static int status_taken_back(struct vdev *d)
{
	dev_set_status(d, STATUS_ACKNOWLEDGE);
	return !(dev_status(d) & STATUS_FEATURES_OK);
}

static int status_all_bits(struct vdev *d)
{
	for (u32 s = 255; s; s--)
		dev_set_status(d, s);
	return 0;
}

/* 2.1.2: the device needs a reset, and does nothing before. */
static int failed_stays_failed(struct vdev *d)
{
	struct vq *q = &d->q[d->attacked];
	u16 used;

	vq_offer(d, d->attacked, 0xffff);
	for (u32 i = 0; i < 100 && !(dev_status(d) & STATUS_NEEDS_RESET); i++)
		wait_shortly();
	used = vq_used(q);
	dev_set_status(d, ALL_BEGUN | STATUS_DRIVER_OK);
	desc_set(vq_desc(q, 0), buffer(0), 16, d->id == ID_RNG ? DESC_WRITE : 0, 0);
	vq_offer(d, d->attacked, 0);
	wait_shortly();
	return vq_used(q) != used || !(dev_status(d) & STATUS_NEEDS_RESET);
}

/* -- queues ------------------------------------------------------------------------------------ */

/* Sets size and addresses of a queue and enables it. If it is enabled, it is used. */
static int enable_queue(struct vdev *d, u32 size, u64 desc, u64 avail, u64 used)
{
	dev_setup(d, 0, STEP_FEATURES_OK);
	queue_select(d, d->attacked);
	queue_set_size(d, size);
	queue_set_places(d, desc, avail, used);
	queue_set_ready(d, 1);
	dev_set_status(d, ALL_BEGUN | STATUS_DRIVER_OK);
	dev_notify(d, d->attacked);
	return 0;
}

static int size_of(struct vdev *d, u32 size)
{
	return enable_queue(d, size, VQ_AREA, VQ_AREA + VQ_AVAIL, VQ_AREA + VQ_USED);
}

static int size_0(struct vdev *d)
{
	return size_of(d, 0);
}

static int size_3(struct vdev *d)
{
	return size_of(d, 3);
}

static int size_255(struct vdev *d)
{
	return size_of(d, 255);
}

static int size_512(struct vdev *d)
{
	return size_of(d, 512);
}

static int size_32768(struct vdev *d)
{
	return size_of(d, 32768);
}

static int size_65535(struct vdev *d)
{
	return size_of(d, 65535);
}

static int size_65536(struct vdev *d)
{
	return d->pci ? size_of(d, 0) : size_of(d, 65536 + 8);
}

static int place_desc_unaligned(struct vdev *d)
{
	return enable_queue(d, 256, VQ_AREA + 8, VQ_AREA + VQ_AVAIL, VQ_AREA + VQ_USED);
}

static int place_avail_unaligned(struct vdev *d)
{
	return enable_queue(d, 256, VQ_AREA, VQ_AREA + VQ_AVAIL + 1, VQ_AREA + VQ_USED);
}

static int place_used_unaligned(struct vdev *d)
{
	return enable_queue(d, 256, VQ_AREA, VQ_AREA + VQ_AVAIL, VQ_AREA + VQ_USED + 2);
}

static int place_desc_behind(struct vdev *d)
{
	return enable_queue(d, 256, RAM_END, VQ_AREA + VQ_AVAIL, VQ_AREA + VQ_USED);
}

static int place_avail_across(struct vdev *d)
{
	return enable_queue(d, 256, VQ_AREA, RAM_END - 16, VQ_AREA + VQ_USED);
}

static int place_used_across(struct vdev *d)
{
	return enable_queue(d, 256, VQ_AREA, VQ_AREA + VQ_AVAIL, RAM_END - 16);
}

static int place_used_wraps(struct vdev *d)
{
	return enable_queue(d, 256, VQ_AREA, VQ_AREA + VQ_AVAIL, ~0ul - 3);
}

static int place_desc_wraps(struct vdev *d)
{
	return enable_queue(d, 256, ~0ul - 15, VQ_AREA + VQ_AVAIL, VQ_AREA + VQ_USED);
}

static int place_in_registers(struct vdev *d)
{
	u64 registers = d->pci ? d->bar : d->mmio;

	return enable_queue(d, 16, registers, registers + 0x400, registers + 0x800);
}

static int place_all_the_same(struct vdev *d)
{
	return enable_queue(d, 256, VQ_AREA, VQ_AREA, VQ_AREA);
}

/* 4.1.4.3.2, 4.2.2.2: not allowed after the queue is enabled. */
static int moved_after_enable(struct vdev *d)
{
	queue_select(d, d->attacked);
	queue_set_places(d, RAM_END, RAM_END, RAM_END);
	queue_set_size(d, 8);
	queue_set_ready(d, 1);
	return 0;
}

static int disabled_after_enable(struct vdev *d)
{
	queue_select(d, d->attacked);
	queue_set_ready(d, 0);
	queue_set_places(d, RAM_END, RAM_END, RAM_END);
	queue_set_ready(d, 1);
	return 0;
}

static int queues_beyond(struct vdev *d)
{
	int wrong = 0;

	for (u32 i = d->nqueues + 8; i < 0x10000; i = 2 * i + 1) {
		queue_select(d, i);
		queue_set_size(d, 8);
		queue_set_places(d, VQ_AREA, VQ_AREA, VQ_AREA);
		queue_set_ready(d, 1);
		wrong |= queue_ready(d) != 0;
		dev_notify(d, i % 1000);
	}
	return wrong;
}

static int notify_before_ok(struct vdev *d)
{
	dev_setup(d, 0, STEP_QUEUES);
	offer_many(d);
	return 0;
}

/* -- configuration, 2.5 ---------------------------------------------------------------------------- */

static int config_written(struct vdev *d)
{
	u64 config = config_address(d);

	for (u32 i = 0; i < 0x100; i += 4) {
		/* The console's emergency output would get between our lines. */
		if (d->id == ID_CONSOLE && i == 8)
			continue;
		write32(config + i, (u32)random64());
		write8(config + i + 1, 0xff);
		write16(config + i + 2, 0xffff);
	}
	return 0;
}

static int config_read_oddly(struct vdev *d)
{
	u64 config = config_address(d);

	for (u32 i = 0; i < 0x100; i++) {
		read8(config + i);
		read16(config + (i & ~1u));
		read64(config + (i & ~7u));
		if (i < 0xf0) {
			read32(config + i);
			read64(config + i);
		}
	}
	return 0;
}

/* Reads all registers with each width, except the status and those that notify. */
static int registers_read_oddly(struct vdev *d)
{
	u64 from = d->pci ? d->common : d->mmio;

	for (u32 i = 0; i < 0x100; i++) {
		read8(from + i);
		read16(from + i);
		read32(from + i);
		read64(from + i);
	}
	return 0;
}

static int registers_written_oddly(struct vdev *d)
{
	u64 from = d->pci ? d->common : d->mmio;

	for (u32 i = 0; i < 0x100; i++) {
		write8(from + i, (u32)random64());
		write16(from + i, (u32)random64());
		write32(from + i, (u32)random64());
		write64(from + i, random64());
	}
	return 0;
}

static const struct attack attacks[] = {
	{ "3.1.1 driver-ok-first", REJECT, driver_ok_first },
	{ "3.1.1 driver-ok-without-features", REJECT, driver_ok_without_features },
	{ "3.1.1 driver-ok-without-queues", ANY, driver_ok_without_queues },
	{ "6.3 without-version-1", ANY, without_version_1 },
	{ "2.2.1 features-not-offered", ANY, features_not_offered },
	{ "2.2.1 features-after-ok", PASS, features_after_ok },
	{ "2.2 feature-words-beyond", ANY, feature_words_beyond },
	{ "2.4 reset-begun", PASS, reset_begun },
	{ "2.4 reset-features", PASS, reset_features },
	{ "2.4 reset-features-ok", PASS, reset_features_ok },
	{ "2.4 reset-queues", PASS, reset_queues },
	{ "2.4 reset-driver-ok", PASS, reset_driver_ok },
	{ "2.4 reset-storm", PASS, reset_storm },
	{ "2.4 reset-in-flight", PASS, reset_in_flight },
	{ "2.4 reset-then-silent", PASS, reset_then_silent },
	{ "2.1.1 status-taken-back", PASS, status_taken_back },
	{ "2.1.1 status-all-bits", ANY, status_all_bits },
	{ "2.1.2 failed-stays-failed", REJECT, failed_stays_failed },
	{ "4.1.4.3 size-0", REJECT, size_0 },
	{ "4.1.4.3 size-3", REJECT, size_3 },
	{ "4.1.4.3 size-255", REJECT, size_255 },
	{ "4.1.4.3 size-512", REJECT, size_512 },
	{ "4.1.4.3 size-32768", REJECT, size_32768 },
	{ "4.1.4.3 size-65535", REJECT, size_65535 },
	{ "4.2.2 size-65544", REJECT, size_65536 },
	{ "2.7 desc-unaligned", REJECT, place_desc_unaligned },
	{ "2.7 avail-unaligned", REJECT, place_avail_unaligned },
	{ "2.7 used-unaligned", REJECT, place_used_unaligned },
	{ "2.7 desc-behind-ram", REJECT, place_desc_behind },
	{ "2.7 avail-across-end", REJECT, place_avail_across },
	{ "2.7 used-across-end", REJECT, place_used_across },
	{ "2.7 used-wraps", REJECT, place_used_wraps },
	{ "2.7 desc-wraps", REJECT, place_desc_wraps },
	{ "2.7 queue-in-registers", REJECT, place_in_registers },
	{ "2.7 parts-in-one-place", ANY, place_all_the_same },
	{ "4.1.4.3.2 moved-after-enable", PASS, moved_after_enable },
	{ "4.1.4.3.2 disabled-after-enable", ANY, disabled_after_enable },
	{ "4.1.5.1.3 queues-beyond", PASS, queues_beyond },
	{ "3.1.1 notify-before-driver-ok", ANY, notify_before_ok },
	{ "2.5 config-written", PASS, config_written },
	{ "2.5 config-read-oddly", PASS, config_read_oddly },
	{ "4.1.3.1 registers-read-oddly", PASS, registers_read_oddly },
	{ "4.1.3.1 registers-written-oddly", ANY, registers_written_oddly },
};

const struct attack_class transport_class = { "transport", ATTACKS(attacks), ON_EACH, 0 };
