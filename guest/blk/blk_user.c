// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ring 3: the driver of a split virtqueue (VIRTIO 1.2, 2.7), and the workload.
 *
 * Like guest/demo/user.c, it refers to nothing outside of this file and has no data. Each request is
 * a chain of three descriptors that do not change; chain i has buffer i.
 */
#include "blk.h"

#define DESC_NEXT 1u
#define DESC_WRITE 2u
#define AVAIL_NO_INTERRUPT 1u
#define USED_NO_NOTIFY 1u

struct desc {
	u64 addr;
	u32 len;
	u16 flags, next;
};

struct avail {
	volatile u16 flags, index, ring[BLK_QUEUE], used_event;
};

struct used {
	volatile u16 flags, index;
	struct {
		volatile u32 id, len;
	} ring[BLK_QUEUE];
	volatile u16 avail_event;
};

struct header {
	u32 type, reserved;
	volatile u64 sector;
};

#define DESC ((struct desc *)BLK_DESC)
#define AVAIL ((struct avail *)BLK_AVAIL)
#define USED ((struct used *)BLK_USED)
#define HEADERS ((struct header *)BLK_HEADERS)
#define STATUS ((volatile u8 *)BLK_STATUS)

static inline u64 buffer_of(u32 i)
{
	return BLK_DATA + (u64)i * BLK_MAX_BYTES;
}

demo_function void chains_make(struct blk_box *box);
demo_function void chains_make(struct blk_box *box)
{
	demo_frame();
	for (u32 i = 0; i < box->depth; i++) {
		struct desc *d = DESC + 3 * i;

		d[0].addr = BLK_HEADERS + i * sizeof(struct header);
		d[0].len = sizeof(struct header);
		d[0].flags = DESC_NEXT;
		d[0].next = (u16)(3 * i + 1);
		d[1].addr = buffer_of(i);
		d[1].len = box->bytes;
		d[1].flags = DESC_NEXT | DESC_WRITE;
		d[1].next = (u16)(3 * i + 2);
		d[2].addr = BLK_STATUS + i;
		d[2].len = 1;
		d[2].flags = DESC_WRITE;
		d[2].next = 0;
		HEADERS[i].type = 0; /* a read */
		HEADERS[i].reserved = 0;
	}
	AVAIL->flags = box->irq ? 0 : AVAIL_NO_INTERRUPT;
}

static inline u64 next_sector(struct blk_box *box)
{
	u64 blocks = box->sectors / (box->bytes / BLK_SECTOR), block;

	if (box->random) {
		/* xorshift (Marsaglia 2003) */
		box->random_state ^= box->random_state << 13;
		box->random_state ^= box->random_state >> 7;
		box->random_state ^= box->random_state << 17;
		block = box->random_state % blocks;
	} else {
		block = box->next < blocks ? box->next : 0;
		box->next = block + 1;
	}
	return block * (box->bytes / BLK_SECTOR);
}

static inline void submit(struct blk_box *box, u32 i)
{
	u64 sector = next_sector(box);

	box->at[i] = sector;
	HEADERS[i].sector = sector;
	STATUS[i] = 0xff;
	AVAIL->ring[box->next_avail++ % BLK_QUEUE] = (u16)(3 * i);
}

/* Publishes the requests submitted since `old`, and notifies the device if it needs that. */
demo_function void kick(struct blk_box *box, u16 old);
demo_function void kick(struct blk_box *box, u16 old)
{
	int wanted;

	demo_frame();
	__asm__ volatile("" : : : "memory"); /* stores stay in order on x86 */
	AVAIL->index = box->next_avail;
	__asm__ volatile("mfence" : : : "memory");
	if (box->event_idx)
		wanted = (u16)(box->next_avail - USED->avail_event - 1) <
			 (u16)(box->next_avail - old);
	else
		wanted = !(USED->flags & USED_NO_NOTIFY);
	if (wanted) {
		box->kicks++;
		*(volatile u32 *)box->notify = 0; /* queue 0 */
	}
}

/* Every sector begins with its number. */
demo_function u64 check(const struct blk_box *box, u32 i);
demo_function u64 check(const struct blk_box *box, u32 i)
{
	const volatile u64 *data = (const volatile u64 *)buffer_of(i);
	u64 sector = box->at[i], wrong = STATUS[i];

	demo_frame();
	for (u32 k = 0; k < box->bytes / BLK_SECTOR; k++)
		wrong |= data[k * (BLK_SECTOR / 8)] ^ (sector + k);
	return wrong != 0;
}

demo_function u64 sum_of(const struct blk_box *box, u32 i);
demo_function u64 sum_of(const struct blk_box *box, u32 i)
{
	const u64 *data = (const u64 *)buffer_of(i);
	u64 sum = 0;

	demo_frame();
	for (u32 k = 0; k < box->bytes / 8; k++)
		sum += data[k];
	return sum;
}

/* Waits for an answer. Returns 0 if the device does not answer any more. */
demo_function int wait(struct blk_box *box);
demo_function int wait(struct blk_box *box)
{
	u64 since;

	demo_frame();
	if (USED->index != box->next_used)
		return 1;
	box->waits++;
	since = rdtsc();
	while (USED->index == box->next_used) {
		__asm__ volatile("pause");
		if (rdtsc() - since > box->limit)
			return 0;
	}
	return 1;
}

demo_function void user_main(u64 address, u64 unused)
{
	struct blk_box *box = (struct blk_box *)address;
	u64 left = box->budget ? ~0ul : box->sectors / (box->bytes / BLK_SECTOR);
	u64 start, flying = 0;
	u16 old;

	(void)unused;
	demo_frame();
	chains_make(box);
	start = rdtsc();
	old = box->next_avail;
	for (u32 i = 0; i < box->depth && left; i++, left--, flying++)
		submit(box, i);
	kick(box, old);
	while (flying) {
		if (!wait(box)) {
			box->stuck = 1;
			break;
		}
		if (box->budget && rdtsc() - start >= box->budget)
			left = 0;
		old = box->next_avail;
		while (USED->index != box->next_used) {
			u32 i = USED->ring[box->next_used++ % BLK_QUEUE].id / 3;

			if (i >= box->depth) { /* not one of our chains */
				box->bad++;
				continue;
			}
			box->bad += check(box, i);
			if (box->sum_all)
				box->sum += sum_of(box, i);
			box->requests++;
			flying--;
			if (left) {
				submit(box, i);
				left--;
				flying++;
			}
		}
		if (box->irq)
			AVAIL->used_event = box->next_used;
		else /* never reached */
			AVAIL->used_event = (u16)(box->next_used - 1);
		if (box->next_avail != old)
			kick(box, old);
	}
	box->cycles = rdtsc() - start;
	__asm__ volatile("int $0x80" : : "a"(0ul) : "memory");
	for (;;)
		;
}
