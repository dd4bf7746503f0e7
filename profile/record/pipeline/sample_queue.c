/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/pipeline/sample_queue.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * The part of a sample that is kept if it is outside of the kernel's half of the address space.
 * Such samples are mostly those of the kernel's decompressor, whose stacks nobody needs; if it is
 * interpreted it runs for many minutes, so that they must be small.
 */
struct sample_queue_low {
	uint8_t head[offsetof(struct sample, regs)];
	uint64_t rip, cr4, efer;
	uint32_t rflags, cr0; /* the upper halves are reserved, and 0 */
	uint16_t cs, ss;
};

/* Precedes each stored sample, at a multiple of 8. */
struct sample_queue_head {
	/* bytes that follow: those of a struct sample_queue_low, or of a whole sample */
	uint32_t len;
	/* a struct sample_queue_low follows */
	uint32_t low;
};

static struct sample_queue_low sample_queue_low_of(const struct sample *s)
{
	struct sample_queue_low h = {
		.rip = s->regs.rip,
		.rflags = (uint32_t)s->regs.rflags,
		.cr0 = (uint32_t)s->regs.cr0,
		.cr4 = s->regs.cr4,
		.efer = s->regs.efer,
		.cs = s->regs.cs,
		.ss = s->regs.ss,
	};

	memcpy(h.head, s, sizeof(h.head));
	return h;
}

static struct sample sample_queue_low_sample(const struct sample_queue_low *h)
{
	struct sample s = { 0 };

	memcpy(&s, h->head, sizeof(h->head));
	s.nslices = s.insn_len = 0;
	s.stack_len = 0;
	s.regs.rip = h->rip;
	s.regs.rflags = h->rflags;
	s.regs.cr0 = h->cr0;
	s.regs.cr4 = h->cr4;
	s.regs.efer = h->efer;
	s.regs.cs = h->cs;
	s.regs.ss = h->ss;
	return s;
}

void sample_queue_init(struct sample_queue *h)
{
	buf_init(&h->bytes);
	h->programs = false;
}

void sample_queue_deinit(struct sample_queue *h)
{
	buf_deinit(&h->bytes);
}

bool sample_queue_add(struct sample_queue *h, const struct sample *s)
{
	static const uint8_t zeros[8];
	const bool whole = h->programs && h->bytes.len < SAMPLE_QUEUE_PROGRAMS;
	struct sample_queue_head head = { .low = !(s->regs.rip >> 63) && !whole };
	struct sample_queue_low low;
	size_t before = h->bytes.len;

	head.len = (uint32_t)(head.low ? sizeof(low) : sample_size(s));
	if (before + sizeof(head) + head.len + sizeof(zeros) > SAMPLE_QUEUE_MAX)
		return false;
	buf_add(&h->bytes, &head, sizeof(head));
	if (head.low) {
		low = sample_queue_low_of(s);
		buf_add(&h->bytes, &low, sizeof(low));
	} else {
		buf_add(&h->bytes, s, head.len);
	}
	buf_add(&h->bytes, zeros, -head.len & 7);
	if (!h->bytes.failed)
		return true;
	/* Remove what was already written of this sample. */
	h->bytes.len = before;
	return false;
}

void sample_queue_release(struct sample_queue *h, void (*take)(void *ctx, const struct sample *s),
			  void *ctx)
{
	size_t at = 0;

	while (at < h->bytes.len) {
		const uint8_t *bytes = h->bytes.data + at;
		const struct sample_queue_head *head = (const struct sample_queue_head *)bytes;

		bytes += sizeof(*head);
		if (head->low) {
			struct sample s =
				sample_queue_low_sample((const struct sample_queue_low *)bytes);

			take(ctx, &s);
		} else {
			take(ctx, (const struct sample *)bytes);
		}
		at += sizeof(*head) + ((head->len + 7) & ~(size_t)7);
	}
	buf_deinit(&h->bytes);
	buf_init(&h->bytes);
}
