// SPDX-License-Identifier: GPL-2.0-or-later
/* Invalid split virtqueues (2.7). The request queue of each device is attacked. */
#include "villain.h"

#define LENGTH 64u

static struct vq *queue_of(struct vdev *d)
{
	return &d->q[d->attacked];
}

/*
 * Offers a chain of one descriptor and notifies the device. The descriptor is writable if the
 * device needs that.
 */
static int offer_one(struct vdev *d, u64 address, u32 len, u16 flags, u16 next)
{
	if (d->id == ID_RNG)
		flags |= DESC_WRITE;
	desc_set(vq_desc(queue_of(d), 0), address, len, flags, next);
	vq_offer(d, d->attacked, 0);
	return 0;
}

static int next_out_of_range(struct vdev *d)
{
	return offer_one(d, buffer(0), LENGTH, DESC_NEXT, VQ_SIZE + 44);
}

static int next_65535(struct vdev *d)
{
	return offer_one(d, buffer(0), LENGTH, DESC_NEXT, 0xffff);
}

static int head_out_of_range(struct vdev *d)
{
	vq_offer(d, d->attacked, VQ_SIZE);
	return 0;
}

static int head_65535(struct vdev *d)
{
	vq_offer(d, d->attacked, 0xffff);
	return 0;
}

static int loop_of(struct vdev *d, u32 n)
{
	u16 write = d->id == ID_RNG ? DESC_WRITE : 0;

	for (u32 i = 0; i < n; i++)
		desc_set(vq_desc(queue_of(d), (u16)i), buffer(0), 1, DESC_NEXT | write,
			 (u16)((i + 1) % n));
	vq_offer(d, d->attacked, 0);
	return 0;
}

static int loop_self(struct vdev *d)
{
	return loop_of(d, 1);
}

static int loop_two(struct vdev *d)
{
	return loop_of(d, 2);
}

static int loop_all(struct vdev *d)
{
	return loop_of(d, VQ_SIZE);
}

static int address_behind_ram(struct vdev *d)
{
	return offer_one(d, RAM_END, LENGTH, 0, 0);
}

static int address_across_end(struct vdev *d)
{
	return offer_one(d, RAM_END - LENGTH / 2, LENGTH, 0, 0);
}

static int address_wraps(struct vdev *d)
{
	return offer_one(d, ~0ul - LENGTH / 2, LENGTH, 0, 0);
}

static int address_2_63(struct vdev *d)
{
	return offer_one(d, (1ul << 63) + buffer(0), LENGTH, 0, 0);
}

static int address_bar(struct vdev *d)
{
	return offer_one(d, d->pci ? d->bar : d->mmio, LENGTH, 0, 0);
}

static int address_apic(struct vdev *d)
{
	return offer_one(d, LAPIC, LENGTH, 0, 0);
}

static int address_in_hole(struct vdev *d)
{
	return offer_one(d, 0xd0000000, LENGTH, 0, 0);
}

static int address_4_gib(struct vdev *d)
{
	return offer_one(d, 1ul << 32, LENGTH, 0, 0);
}

static int length_0(struct vdev *d)
{
	return offer_one(d, buffer(0), 0, 0, 0);
}

static int length_max(struct vdev *d)
{
	return offer_one(d, buffer(0), 0xffffffff, 0, 0);
}

/* 2.7.5.2: a chain of more than 2^32 bytes is not allowed; the buffers share memory. */
static int length_sum(struct vdev *d)
{
	u16 write = d->id == ID_RNG ? DESC_WRITE : 0;

	for (u32 i = 0; i < VQ_SIZE; i++)
		desc_set(vq_desc(queue_of(d), (u16)i), VQ_AREA, RAM_END - VQ_AREA,
			 (i < VQ_SIZE - 1 ? DESC_NEXT : 0) | write, (u16)(i + 1));
	vq_offer(d, d->attacked, 0);
	return 0;
}

static int write_before_read(struct vdev *d)
{
	struct vq *q = queue_of(d);

	desc_set(vq_desc(q, 0), buffer(0), LENGTH, DESC_NEXT | DESC_WRITE, 1);
	desc_set(vq_desc(q, 1), buffer(1), LENGTH, 0, 0);
	vq_offer(d, d->attacked, 0);
	return 0;
}

static int flags_all(struct vdev *d)
{
	return offer_one(d, buffer(0), LENGTH, 0xffff, 0);
}

static int flags_reserved(struct vdev *d)
{
	return offer_one(d, buffer(0), LENGTH, 0xfff8, 0);
}

/* -- indirect descriptors, 2.7.5.3 ----------------------------------------------------------- */

static int offer_table(struct vdev *d, u64 address, u32 len, u16 flags)
{
	desc_set(vq_desc(queue_of(d), 0), address, len, DESC_INDIRECT | flags, 1);
	desc_set(vq_desc(queue_of(d), 1), buffer(0), LENGTH, 0, 0);
	vq_offer(d, d->attacked, 0);
	return 0;
}

/* Fills an indirect table with n linked entries. */
static u64 fill_table(struct vdev *d, u32 n)
{
	struct desc *t = vq_table(queue_of(d));
	u16 write = d->id == ID_RNG ? DESC_WRITE : 0;

	for (u32 i = 0; i < n; i++)
		desc_set(&t[i], buffer(0), 1, (i < n - 1 ? DESC_NEXT : 0) | write, (u16)(i + 1));
	return vq_table_address(queue_of(d));
}

static int indirect_nested(struct vdev *d)
{
	u64 table = fill_table(d, 2);

	desc_set(vq_table(queue_of(d)), table + 16, 16, DESC_INDIRECT, 0);
	return offer_table(d, table, 32, 0);
}

static int indirect_itself(struct vdev *d)
{
	u64 table = fill_table(d, 1);

	desc_set(vq_table(queue_of(d)), table, 16, DESC_INDIRECT, 0);
	return offer_table(d, table, 16, 0);
}

static int indirect_and_next(struct vdev *d)
{
	return offer_table(d, fill_table(d, 2), 32, DESC_NEXT);
}

static int indirect_length_0(struct vdev *d)
{
	return offer_table(d, fill_table(d, 2), 0, 0);
}

static int indirect_length_odd(struct vdev *d)
{
	return offer_table(d, fill_table(d, 2), 24, 0);
}

static int indirect_length_15(struct vdev *d)
{
	return offer_table(d, fill_table(d, 1), 15, 0);
}

static int indirect_overlong(struct vdev *d)
{
	return offer_table(d, fill_table(d, VQ_SIZE + 1), 16 * (VQ_SIZE + 1), 0);
}

static int indirect_length_max(struct vdev *d)
{
	return offer_table(d, fill_table(d, 2), 0xfffffff0, 0);
}

static int indirect_behind_ram(struct vdev *d)
{
	return offer_table(d, RAM_END, 32, 0);
}

static int indirect_across_end(struct vdev *d)
{
	return offer_table(d, RAM_END - 16, 32, 0);
}

static int indirect_wraps(struct vdev *d)
{
	return offer_table(d, ~0ul - 15, 32, 0);
}

static int indirect_in_registers(struct vdev *d)
{
	return offer_table(d, d->pci ? d->bar : d->mmio, 32, 0);
}

static int indirect_loop(struct vdev *d)
{
	u64 table = fill_table(d, 4);
	struct desc *t = vq_table(queue_of(d));

	t[3].flags |= DESC_NEXT;
	t[3].next = 0;
	return offer_table(d, table, 64, 0);
}

static int indirect_next_out_of_range(struct vdev *d)
{
	u64 table = fill_table(d, 2);

	vq_table(queue_of(d))[0].next = 7;
	return offer_table(d, table, 32, 0);
}

static int indirect_unagreed(struct vdev *d)
{
	if (!dev_setup(d, F_INDIRECT_DESC, STEP_DRIVER_OK))
		return 1;
	return offer_table(d, fill_table(d, 1), 16, 0);
}

static int indirect_full(struct vdev *d)
{
	return offer_table(d, fill_table(d, VQ_SIZE), 16 * VQ_SIZE, 0);
}

/* The table overlaps the queue's own descriptors, and memory that the device writes. */
static int indirect_is_queue(struct vdev *d)
{
	return offer_table(d, queue_of(d)->desc, 16 * VQ_SIZE, 0);
}

static int indirect_unaligned(struct vdev *d)
{
	return offer_table(d, fill_table(d, 4) + 3, 32, 0);
}

/* -- rings, 2.7.6 to 2.7.10 -------------------------------------------------------------------- */

static int avail_jump(struct vdev *d, u16 by)
{
	struct vq *q = queue_of(d);

	desc_set(vq_desc(q, 0), buffer(0), LENGTH, d->id == ID_RNG ? DESC_WRITE : 0, 0);
	q->next_avail = (u16)(q->next_avail + by);
	((volatile u16 *)at(q->avail))[1] = q->next_avail;
	dev_notify(d, d->attacked);
	return 0;
}

static int avail_jump_257(struct vdev *d)
{
	return avail_jump(d, VQ_SIZE + 1);
}

static int avail_jump_32768(struct vdev *d)
{
	return avail_jump(d, 0x8000);
}

static int avail_back(struct vdev *d)
{
	return avail_jump(d, 0xffff);
}

static int avail_all_same(struct vdev *d)
{
	return avail_jump(d, VQ_SIZE);
}

/* 2.7.6: the entry changes after it was published. */
static int avail_entry_changes(struct vdev *d)
{
	volatile u16 *avail = at(queue_of(d)->avail);

	for (u32 i = 0; i < 200; i++) {
		offer_one(d, buffer(0), LENGTH, 0, 0);
		avail[2 + i % VQ_SIZE] = i & 1 ? 0xffff : 0;
	}
	return 0;
}

/* 2.7.5: descriptors change while another thread may read them. */
static int descriptor_changes(struct vdev *d)
{
	struct desc *t = vq_desc(queue_of(d), 0);

	for (u32 i = 0; i < 50 && !(dev_status(d) & STATUS_NEEDS_RESET); i++) {
		offer_one(d, buffer(0), LENGTH, 0, 0);
		for (u32 k = 0; k < 20; k++) {
			*(volatile u64 *)&t->addr = k & 1 ? RAM_END : buffer(0);
			*(volatile u32 *)&t->len = k & 1 ? 0xffffffff : LENGTH;
			*(volatile u16 *)&t->flags = k & 1 ? DESC_NEXT : 0;
		}
	}
	return 0;
}

/* 2.7.8: the used ring belongs to the device. */
static int used_written(struct vdev *d)
{
	volatile u16 *used = at(queue_of(d)->used);

	for (u32 i = 0; i < 20; i++) {
		used[0] = (u16)random64();
		used[1] = (u16)random64();
		used[2 + i] = (u16)random64();
		dev_notify(d, d->attacked);
	}
	return 0;
}

static int writes_to(struct vdev *d, u64 address)
{
	desc_set(vq_desc(queue_of(d), 0), buffer(0), 16, DESC_NEXT, 1);
	desc_set(vq_desc(queue_of(d), 1), address, 1024, DESC_WRITE, 0);
	memset(at(buffer(0)), 0, 16);
	vq_offer(d, d->attacked, d->id == ID_RNG ? 1 : 0);
	return 0;
}

static int writes_to_used(struct vdev *d)
{
	return writes_to(d, queue_of(d)->used);
}

static int writes_to_avail(struct vdev *d)
{
	return writes_to(d, queue_of(d)->avail);
}

static int writes_to_descriptors(struct vdev *d)
{
	return writes_to(d, queue_of(d)->desc);
}

static int notify_nothing(struct vdev *d)
{
	for (u32 i = 0; i < 100; i++)
		dev_notify(d, d->attacked);
	return 0;
}

static int notify_no_queue(struct vdev *d)
{
	for (u32 i = d->nqueues; i < 1000; i += 1 + i / 4)
		dev_notify(d, i);
	return 0;
}

static int event_idx_junk(struct vdev *d)
{
	dev_setup(d, 0, STEP_BEGUN);
	dev_set_features(d, 0, (u32)(F_EVENT_IDX | F_INDIRECT_DESC));
	dev_set_features(d, 1, 1);
	dev_set_status(d, STATUS_BEGUN | STATUS_FEATURES_OK);
	for (u32 i = 0; i < d->nqueues; i++) {
		memset(at(d->q[i].avail), 0, 8 + 2 * VQ_SIZE);
		memset(at(d->q[i].used), 0, 8 + 8 * VQ_SIZE);
		d->q[i].next_avail = 0;
		queue_select(d, i);
		queue_set_places(d, d->q[i].desc, d->q[i].avail, d->q[i].used);
		queue_set_ready(d, 1);
		((volatile u16 *)at(d->q[i].avail))[2 + VQ_SIZE] = 0xfffe; /* used_event */
		((volatile u16 *)at(d->q[i].used))[2 + 4 * VQ_SIZE] = 0x1234;
	}
	dev_set_status(d, STATUS_BEGUN | STATUS_FEATURES_OK | STATUS_DRIVER_OK);
	return 0;
}

static const struct attack attacks[] = {
	{ "2.7.5 next-out-of-range", REJECT, next_out_of_range },
	{ "2.7.5 next-65535", REJECT, next_65535 },
	{ "2.7.5 loop-self", REJECT, loop_self },
	{ "2.7.5 loop-two", REJECT, loop_two },
	{ "2.7.5 loop-all", REJECT, loop_all },
	{ "2.7.5 address-behind-ram", REJECT, address_behind_ram },
	{ "2.7.5 address-across-end", REJECT, address_across_end },
	{ "2.7.5 address-wraps", REJECT, address_wraps },
	{ "2.7.5 address-2^63", REJECT, address_2_63 },
	{ "2.7.5 address-registers", REJECT, address_bar },
	{ "2.7.5 address-apic", REJECT, address_apic },
	{ "2.7.5 address-hole", REJECT, address_in_hole },
	{ "2.7.5 address-4GiB", REJECT, address_4_gib },
	{ "2.7.5 length-0", ANY, length_0 },
	{ "2.7.5 length-2^32-1", REJECT, length_max },
	{ "2.7.5.2 length-sum", REJECT, length_sum },
	{ "2.7.4.2 write-before-read", REJECT, write_before_read },
	{ "2.7.5 flags-all", REJECT, flags_all },
	{ "2.7.5 flags-reserved", ANY, flags_reserved },
	{ "2.7.5 descriptor-changes", ANY, descriptor_changes },
	{ "2.7.5.3.1 indirect-nested", REJECT, indirect_nested },
	{ "2.7.5.3.1 indirect-itself", REJECT, indirect_itself },
	{ "2.7.5.3.1 indirect-and-next", REJECT, indirect_and_next },
	{ "2.7.5.3.1 indirect-length-0", REJECT, indirect_length_0 },
	{ "2.7.5.3.1 indirect-length-24", REJECT, indirect_length_odd },
	{ "2.7.5.3.1 indirect-length-15", REJECT, indirect_length_15 },
	{ "2.7.5.3.1 indirect-overlong", REJECT, indirect_overlong },
	{ "2.7.5.3.1 indirect-length-max", REJECT, indirect_length_max },
	{ "2.7.5.3.1 indirect-behind-ram", REJECT, indirect_behind_ram },
	{ "2.7.5.3.1 indirect-across-end", REJECT, indirect_across_end },
	{ "2.7.5.3.1 indirect-wraps", REJECT, indirect_wraps },
	{ "2.7.5.3.1 indirect-in-registers", REJECT, indirect_in_registers },
	{ "2.7.5.3.1 indirect-loop", REJECT, indirect_loop },
	{ "2.7.5.3.1 indirect-next-out-of-range", REJECT, indirect_next_out_of_range },
	{ "2.7.5.3.1 indirect-unagreed", REJECT, indirect_unagreed },
	{ "2.7.5.3.2 indirect-full", ANY, indirect_full },
	{ "2.7.5.3.2 indirect-is-queue", REJECT, indirect_is_queue },
	{ "2.7.5.3.2 indirect-unaligned", ANY, indirect_unaligned },
	{ "2.7.6 head-out-of-range", REJECT, head_out_of_range },
	{ "2.7.6 head-65535", REJECT, head_65535 },
	{ "2.7.6 avail-jump-257", REJECT, avail_jump_257 },
	{ "2.7.6 avail-jump-32768", REJECT, avail_jump_32768 },
	{ "2.7.6 avail-back", REJECT, avail_back },
	{ "2.7.6 avail-all-same", ANY, avail_all_same },
	{ "2.7.6 avail-entry-changes", ANY, avail_entry_changes },
	{ "2.7.8 used-written", PASS, used_written },
	{ "2.7.8 writes-to-used", ANY, writes_to_used },
	{ "2.7.8 writes-to-avail", ANY, writes_to_avail },
	{ "2.7.8 writes-to-descriptors", ANY, writes_to_descriptors },
	{ "2.7.10 notify-nothing", PASS, notify_nothing },
	{ "2.7.10 notify-no-queue", PASS, notify_no_queue },
	{ "2.7.7 used-event-junk", PASS, event_idx_junk },
};

const struct attack_class ring_class = { "ring", ATTACKS(attacks), ON_EACH, 0 };
