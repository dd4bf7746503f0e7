// SPDX-License-Identifier: GPL-2.0-or-later
/* Split virtqueues, driver side (2.7), of 256 descriptors. */
#include "villain.h"

#define SHORTLY 2000000ul /* TSC cycles: about a millisecond */

u64 patience = PATIENCE;

struct desc *vq_desc(const struct vq *q, u16 i)
{
	return (struct desc *)at(q->desc) + i;
}

void desc_set(struct desc *d, u64 address, u32 len, u16 flags, u16 next)
{
	d->addr = address;
	d->len = len;
	d->flags = flags;
	d->next = next;
}

u64 vq_table_address(const struct vq *q)
{
	return q->desc + VQ_TABLES;
}

struct desc *vq_table(const struct vq *q)
{
	return at(vq_table_address(q));
}

u16 vq_used(const struct vq *q)
{
	return *(volatile u16 *)at(q->used + 2);
}

u32 vq_used_len(const struct vq *q)
{
	u16 last = (u16)(vq_used(q) - 1);

	return *(volatile u32 *)at(q->used + 4 + 8ul * (last % VQ_SIZE) + 4);
}

void vq_publish(struct vdev *d, u32 q, u16 head)
{
	struct vq *v = &d->q[q];
	volatile u16 *avail = at(v->avail);

	avail[2 + v->next_avail % VQ_SIZE] = head;
	v->next_avail++;
	__asm__ volatile("" : : : "memory");
	avail[1] = v->next_avail;
}

void vq_offer(struct vdev *d, u32 q, u16 head)
{
	vq_publish(d, q, head);
	dev_notify(d, q);
}

int vq_wait(const struct vdev *d, u32 q, u16 used)
{
	u64 start = rdtsc();

	while (vq_used(&d->q[q]) == used) {
		if ((dev_status(d) & STATUS_NEEDS_RESET) || rdtsc() - start > patience)
			return vq_used(&d->q[q]) != used;
	}
	return 1;
}

int send_one(struct vdev *d, u64 address, u32 len, u16 flags)
{
	struct vq *q = &d->q[SEND];
	u16 used = vq_used(q);

	desc_set(vq_desc(q, 0), address, len, flags, 0);
	vq_offer(d, SEND, 0);
	return !vq_wait(d, SEND, used);
}

void wait_shortly(void)
{
	u64 start = rdtsc();

	while (rdtsc() - start < SHORTLY)
		;
}

u64 buffer(u32 n)
{
	return BUFFERS + n * BUFFER_SIZE;
}
