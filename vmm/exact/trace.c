/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/trace.h"

#include <errno.h>
#include <string.h>

int trace_open(struct trace_reader *out, const void *data, size_t len, struct err *e)
{
	struct trace_head h;

	if (len < TRACE_DATA)
		return err_set(e, EINVAL, "trace: it is cut off");
	memcpy(&h, data, sizeof(h));
	if (h.magic != TRACE_MAGIC)
		return err_set(e, EINVAL, "trace: the plugin inside QEMU has written none");
	if (h.step ? h.used || h.nchecks > (len - TRACE_DATA) / sizeof(*out->check)
		   : h.nchecks || h.used > len - TRACE_DATA)
		return err_set(e, EINVAL, "trace: its head is damaged");
	*out = (struct trace_reader){
		.data = (const uint8_t *)data + TRACE_DATA,
		.len = h.used,
		.head = h,
		.check = (const void *)((const uint8_t *)data + TRACE_DATA),
	};
	return 0;
}

static int trace_damaged(const struct trace_reader *r, struct err *e)
{
	return err_set(e, EINVAL, "trace: the record at byte %zu is damaged", r->at);
}

/* Returns whether the lengths of the instructions, each at least 1, add up to the code's length. */
static bool trace_lengths_fit(const struct trace_record *rec)
{
	size_t sum = 0;

	for (unsigned int i = 0; i < rec->block.insns; i++) {
		if (!rec->length[i])
			return false;
		sum += rec->length[i];
	}
	return sum == rec->block.len;
}

static int trace_next_block(struct trace_reader *r, struct trace_record *out, struct err *e)
{
	struct trace_block *b = &out->block;
	size_t left = r->len - r->at, size;

	if (left < sizeof(*b))
		return trace_damaged(r, e);
	memcpy(b, r->data + r->at, sizeof(*b));
	size = (sizeof(*b) + b->insns + b->len + 7u) & ~(size_t)7;
	if (!b->insns || b->insns > TRACE_MAX_INSNS || b->len > TRACE_MAX_CODE || size > left)
		return trace_damaged(r, e);
	out->length = r->data + r->at + sizeof(*b);
	out->code = out->length + b->insns;
	if (!trace_lengths_fit(out))
		return trace_damaged(r, e);
	r->at += size;
	return 1;
}

int trace_next(struct trace_reader *r, struct trace_record *out, struct err *e)
{
	uint32_t kind;

	if (r->at == r->len)
		return 0;
	if (r->len - r->at < sizeof(out->access))
		return trace_damaged(r, e);
	memcpy(&kind, r->data + r->at, sizeof(kind));
	out->kind = kind;
	if (kind == TRACE_BLOCK)
		return trace_next_block(r, out, e);
	if (kind != TRACE_READ && kind != TRACE_WRITE)
		return trace_damaged(r, e);
	memcpy(&out->access, r->data + r->at, sizeof(out->access));
	if (!out->access.size || out->access.size > 16)
		return trace_damaged(r, e);
	r->at += sizeof(out->access);
	return 1;
}
