/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * printk_ring: the log since 5.10 (kernel/printk/printk_ringbuffer.h).
 *
 * There are three rings. The i-th descriptor has a record's state and id in state_var (state: the
 * upper 2 bits), and the logical positions of the begin and the end of its text. The i-th info has
 * the time, the level and so on. The text ring has blocks of an id and text. Ids and positions only
 * grow, modulo 2^62 and 2^64; the place in the ring is their remainder. A block that does not fit
 * before the ring's end begins again at its start.
 */
#include "symbolizer/linux/printk_ring.h"

#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_MASK (~UINT64_C(0) >> 2)
#define STATE_RESERVED 0u
#define STATE_COMMITTED 1u
#define STATE_FINALIZED 2u
#define LPOS_DATALESS 1u
#define LPOS_EMPTY 3u
#define COUNT_BITS_MAX 24u
#define SIZE_BITS_MIN 10u
#define SIZE_BITS_MAX 31u
/* Records whose sequence numbers are compared where there are no types. */
#define PROOFS 16u
#define PROOFS_MIN 3u
/* Records beyond the wanted ones that are read, as the last ones may be unfinished. */
#define MORE 8u
#define PAGE 4096u
#define WORD 8u	    /* all elements and blocks are some words long */
#define BLOCK_ID 8u /* bytes of the id in front of a block's text */

/* A copy of guest memory that may have gaps. */
struct printk_copy {
	uint8_t *bytes;
	uint8_t *absent; /* one byte for each word */
	uint64_t len, gaps;
};

struct printk_ring {
	const struct linux_printk_ring *at;
	const struct memory *m;
	uint64_t descs, infos, data; /* addresses */
	uint64_t desc_mask, data_mask;
	uint64_t first, n; /* ids of the records to read: first + i, i < n */
	struct printk_copy desc, info, text;
	uint64_t text_lpos; /* position of text.bytes[0] */
};

/* -- copies ------------------------------------------------------------------------------ */

static void copy_deinit(struct printk_copy *c)
{
	free(c->bytes);
	free(c->absent);
	*c = (struct printk_copy){ 0 };
}

static int copy_init(struct printk_copy *c, uint64_t len)
{
	c->bytes = calloc(1, len ? len : 1);
	c->absent = calloc(1, len / WORD + 1);
	c->len = len;
	if (c->bytes && c->absent)
		return 0;
	copy_deinit(c);
	return -ENOMEM;
}

/* Reads copy bytes [off, off + len) from va. */
static void copy_fill(struct printk_copy *c, const struct memory *m, uint64_t off, uint64_t va,
		      uint64_t len)
{
	if (!len || memory_read(m, MEMORY_KERNEL, va, c->bytes + off, len))
		return;
	for (uint64_t done = 0, n; done < len; done += n) {
		n = PAGE - (va + done) % PAGE;
		n = n < len - done ? n : len - done;
		if (memory_read(m, MEMORY_KERNEL, va + done, c->bytes + off + done, n))
			continue;
		memset(c->bytes + off + done, 0, n);
		for (uint64_t i = (off + done) / WORD; i <= (off + done + n - 1) / WORD; i++)
			c->absent[i] = 1;
		c->gaps++;
	}
}

/* Reads elements [first, first + n) of `size` bytes each of a ring of mask + 1 elements. */
static void copy_ring(struct printk_copy *c, const struct printk_ring *r, uint64_t base,
		      uint64_t size)
{
	uint64_t index = r->first & r->desc_mask, rest = r->desc_mask + 1 - index;
	uint64_t front = r->n < rest ? r->n : rest;

	copy_fill(c, r->m, 0, base + index * size, front * size);
	copy_fill(c, r->m, front * size, base, (r->n - front) * size);
}

static bool copy_has(const struct printk_copy *c, uint64_t off, uint64_t len)
{
	for (uint64_t i = off / WORD; c->gaps && i <= (off + len - 1) / WORD; i++)
		if (c->absent[i])
			return false;
	return true;
}

/* -- the variables of the ring ----------------------------------------------------------- */

static bool ring_member(const struct types *t, const char *structure, const char *path,
			uint32_t *off, uint32_t *len)
{
	struct type_member m;

	if (t->member(t->ctx, structure, path, &m))
		return false;
	*off = m.off;
	if (len)
		*len = m.size;
	return true;
}

static void find_device(struct linux_printk_ring *r, const struct types *t)
{
	static const char info[] = "printk_info";

	if (!ring_member(t, info, "dev_info.subsystem", &r->subsystem, &r->subsystem_len) ||
	    !ring_member(t, info, "dev_info.device", &r->device, &r->device_len) ||
	    r->subsystem_len > r->info_size || r->subsystem > r->info_size - r->subsystem_len ||
	    r->device_len > r->info_size || r->device > r->info_size - r->device_len)
		r->subsystem_len = r->device_len = 0;
}

bool printk_ring_by_types(struct linux_printk_ring *out, const struct types *t)
{
	static const char ring[] = "printk_ringbuffer", desc[] = "prb_desc", info[] = "printk_info";
	struct linux_printk_ring r = { 0 };
	const struct {
		const char *structure, *path;
		uint32_t *to;
	} want[] = {
		{ ring, "desc_ring.count_bits", &r.count_bits },
		{ ring, "desc_ring.descs", &r.descs },
		{ ring, "desc_ring.infos", &r.infos },
		{ ring, "desc_ring.head_id", &r.head_id },
		{ ring, "desc_ring.tail_id", &r.tail_id },
		{ ring, "text_data_ring.size_bits", &r.size_bits },
		{ ring, "text_data_ring.data", &r.data },
		{ desc, "state_var", &r.state },
		{ desc, "text_blk_lpos.begin", &r.begin },
		{ desc, "text_blk_lpos.next", &r.next },
		{ info, "seq", &r.seq },
		{ info, "ts_nsec", &r.ts },
		{ info, "text_len", &r.text_len },
		{ info, "facility", &r.facility },
		{ info, "caller_id", &r.caller },
	};
	uint64_t desc_size, info_size;

	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		if (!ring_member(t, want[i].structure, want[i].path, want[i].to, NULL))
			return false;
	if (t->size(t->ctx, desc, &desc_size) || t->size(t->ctx, info, &info_size) ||
	    desc_size < 24 || desc_size > 256 || info_size < 24 || info_size > 1024 ||
	    r.state > desc_size - 8 || r.begin > desc_size - 8 || r.next > desc_size - 8 ||
	    r.seq > info_size - 8 || r.ts > info_size - 8 || r.text_len > info_size - 2 ||
	    r.facility > info_size - 2 || r.caller > info_size - 4)
		return false;
	r.desc_size = (uint32_t)desc_size;
	r.info_size = (uint32_t)info_size;
	find_device(&r, t);
	*out = r;
	return true;
}

/* Reads the variables. Returns false if they cannot be those of a log. */
static bool read_ring(struct printk_ring *r, uint64_t prb, size_t most)
{
	const struct linux_printk_ring *at = r->at;
	uint32_t count_bits, size_bits;
	uint64_t head, tail;

	if (!memory_u32(r->m, prb + at->count_bits, &count_bits) || !count_bits ||
	    count_bits > COUNT_BITS_MAX || !memory_u32(r->m, prb + at->size_bits, &size_bits) ||
	    size_bits < SIZE_BITS_MIN || size_bits > SIZE_BITS_MAX ||
	    !memory_u64(r->m, prb + at->descs, &r->descs) || !memory_is_kernel(r->descs) ||
	    !memory_u64(r->m, prb + at->infos, &r->infos) || !memory_is_kernel(r->infos) ||
	    !memory_u64(r->m, prb + at->data, &r->data) || !memory_is_kernel(r->data) ||
	    !memory_u64(r->m, prb + at->tail_id, &tail) ||
	    !memory_u64(r->m, prb + at->head_id, &head))
		return false;
	r->desc_mask = (UINT64_C(1) << count_bits) - 1;
	r->data_mask = (UINT64_C(1) << size_bits) - 1;
	r->n = ((head - tail) & ID_MASK) + 1;
	/* The head may have moved on since the tail was read. */
	if (r->n > 2 * (r->desc_mask + 1))
		return false;
	if (most > LINUX_PRINTK_MAX_RECORDS)
		most = LINUX_PRINTK_MAX_RECORDS;
	most += MORE;
	if (most > r->desc_mask + 1)
		most = r->desc_mask + 1;
	if (r->n > most) {
		tail = head - most + 1;
		r->n = most;
	}
	r->first = tail & ID_MASK;
	return true;
}

/* -- records ----------------------------------------------------------------------------- */

static const uint8_t *desc_of(const struct printk_ring *r, uint64_t i)
{
	return r->desc.bytes + i * r->at->desc_size;
}

static const uint8_t *info_of(const struct printk_ring *r, uint64_t i)
{
	return r->info.bytes + i * r->at->info_size;
}

static bool has_desc(const struct printk_ring *r, uint64_t i)
{
	return copy_has(&r->desc, i * r->at->desc_size, r->at->desc_size);
}

/* Returns whether the i-th descriptor is the i-th record's, in this state. */
static bool is_in_state(const struct printk_ring *r, uint64_t i, unsigned int state)
{
	uint64_t v = memory_word(desc_of(r, i), r->at->state);

	return has_desc(r, i) && v >> 62 == state && (v & ID_MASK) == ((r->first + i) & ID_MASK);
}

static bool is_final(const struct printk_ring *r, uint64_t i)
{
	return is_in_state(r, i, STATE_FINALIZED);
}

static void ring_deinit(struct printk_ring *r)
{
	copy_deinit(&r->desc);
	copy_deinit(&r->info);
	copy_deinit(&r->text);
}

static int read_records(struct printk_ring *r, struct err *e)
{
	if (copy_init(&r->desc, r->n * r->at->desc_size) ||
	    copy_init(&r->info, r->n * r->at->info_size))
		return err_nomem(e);
	copy_ring(&r->desc, r, r->descs, r->at->desc_size);
	copy_ring(&r->info, r, r->infos, r->at->info_size);
	return 0;
}

static bool has_text(const struct printk_ring *r, uint64_t i, uint64_t *begin, uint64_t *next)
{
	*begin = memory_word(desc_of(r, i), r->at->begin);
	*next = memory_word(desc_of(r, i), r->at->next);
	return !(*begin & LPOS_DATALESS) && !(*next & LPOS_DATALESS);
}

/* Reads all text between the lowest and the highest position of the records. */
static int read_text(struct printk_ring *r, struct err *e)
{
	uint64_t begin, next, low = 0, high = 0, size = r->data_mask + 1, off, front;
	bool any = false;

	/* Processors that print at once may have taken their text in another order than their ids. */
	for (uint64_t i = 0; i < r->n; i++) {
		if (!is_final(r, i) || !has_text(r, i, &begin, &next) || next - begin > size)
			continue;
		if (!any || (int64_t)(begin - low) < 0)
			low = begin;
		if (!any || (int64_t)(next - high) > 0)
			high = next;
		any = true;
	}
	if (high - low > size)
		low = high - size;
	if (high - low > LINUX_PRINTK_MAX_BYTES)
		low = high - LINUX_PRINTK_MAX_BYTES;
	r->text_lpos = low;
	if (copy_init(&r->text, high - low))
		return err_nomem(e);
	off = low & r->data_mask;
	front = high - low < size - off ? high - low : size - off;
	copy_fill(&r->text, r->m, 0, r->data + off, front);
	copy_fill(&r->text, r->m, front, r->data, high - low - front);
	return 0;
}

enum printk_text { TEXT_GOOD, TEXT_OVERWRITTEN, TEXT_ABSENT };

/* Finds the bytes of a block in r->text; they do not pass the ring's end. */
static enum printk_text find_block(const struct printk_ring *r, uint64_t begin, uint64_t next,
				   uint64_t *off, uint64_t *len)
{
	uint64_t size = r->data_mask + 1, end = (begin | r->data_mask) + 1; /* end of this round */

	/* Differences, because positions pass 2^64 soon after the boot. */
	if (next - begin > size || next == begin)
		return TEXT_OVERWRITTEN;
	if (next - begin > end - begin) /* it did not fit, and is at the start of the next round */
		begin = end;
	*len = next - begin;
	*off = begin - r->text_lpos;
	if (*len <= BLOCK_ID || *off >= r->text.len || *len > r->text.len - *off)
		return TEXT_OVERWRITTEN;
	return copy_has(&r->text, *off, *len) ? TEXT_GOOD : TEXT_ABSENT;
}

static enum printk_text find_text(const struct printk_ring *r, uint64_t i,
				  struct linux_printk_record *out)
{
	uint64_t begin, next, off, len;
	enum printk_text ret;
	uint16_t text_len;

	memcpy(&text_len, info_of(r, i) + r->at->text_len, sizeof(text_len));
	out->text = "";
	out->len = 0;
	if (!has_text(r, i, &begin, &next))
		return begin == LPOS_EMPTY && next == LPOS_EMPTY ? TEXT_GOOD : TEXT_OVERWRITTEN;
	ret = find_block(r, begin, next, &off, &len);
	if (ret)
		return ret;
	if (memory_word(r->text.bytes, off) != ((r->first + i) & ID_MASK) ||
	    text_len > len - BLOCK_ID)
		return TEXT_OVERWRITTEN;
	out->text = (const char *)r->text.bytes + off + BLOCK_ID;
	out->len = text_len;
	return TEXT_GOOD;
}

static void fill_record(const struct printk_ring *r, uint64_t i, struct linux_printk_record *out)
{
	const struct linux_printk_ring *at = r->at;
	const uint8_t *info = info_of(r, i);

	*out = (struct linux_printk_record){
		.seq = memory_word(info, at->seq),
		.ts_ns = memory_word(info, at->ts),
		.caller = memory_half(info, at->caller),
		.facility = info[at->facility],
		.level = info[at->facility + 1] >> 5, /* u8 flags:5, level:3 */
	};
	snprintf(out->subsystem, sizeof(out->subsystem), "%.*s", (int)at->subsystem_len,
		 (const char *)info + at->subsystem);
	snprintf(out->device, sizeof(out->device), "%.*s", (int)at->device_len,
		 (const char *)info + at->device);
}

/*
 * Passes the i-th record on, or counts why it is not. after: the descriptors as they were after
 * info and text had been copied. A descriptor that has changed is another record's by now.
 */
static int pass_record(const struct printk_ring *r, uint64_t i, const struct printk_copy *after,
		       struct linux_printk_reading *to)
{
	uint32_t size = r->at->desc_size;
	struct linux_printk_record record;
	enum printk_text text;

	if (memcmp(desc_of(r, i), after->bytes + i * size, size) != 0) {
		to->losses.overwritten++;
		return 0;
	}
	if (!copy_has(&r->info, i * r->at->info_size, r->at->info_size)) {
		to->losses.absent++;
		return 0;
	}
	fill_record(r, i, &record);
	text = find_text(r, i, &record);
	to->losses.overwritten += text == TEXT_OVERWRITTEN;
	to->losses.absent += text == TEXT_ABSENT;
	return text ? 0 : to->each(to->ctx, &record);
}

static int pass_records(struct printk_ring *r, struct linux_printk_reading *to)
{
	struct printk_copy after;
	uint64_t final = 0;
	int ret = 0;

	if (copy_init(&after, r->desc.len))
		return -ENOMEM;
	copy_ring(&after, r, r->descs, r->at->desc_size);
	for (uint64_t i = 0; i < r->n; i++)
		final += is_final(r, i);
	for (uint64_t i = 0; !ret && i < r->n; i++) {
		if (is_final(r, i)) {
			if (final-- <= to->most)
				ret = pass_record(r, i, &after, to);
			continue;
		}
		to->losses.absent += !has_desc(r, i);
		to->losses.unfinished +=
			is_in_state(r, i, STATE_RESERVED) || is_in_state(r, i, STATE_COMMITTED);
	}
	copy_deinit(&after);
	return ret;
}

static int open_ring(const struct linux_printk_ring *at, const struct memory *m, uint64_t prb,
		     size_t most, struct printk_ring *out, struct err *e)
{
	struct printk_ring r = { .at = at, .m = m };
	int ret;

	if (!read_ring(&r, prb, most))
		return err_set(e, ENOENT, "the kernel's log is not where its variable prb says");
	ret = read_records(&r, e);
	if (ret)
		ring_deinit(&r);
	else
		*out = r;
	return ret;
}

/* -- kernels without types --------------------------------------------------------------- */

/* The forms of released kernels: where text_data_ring begins, and bytes of struct printk_info. */
static const uint32_t known_data[] = { 40, 48 }, known_info[] = { 88, 112, 32, 24 };

static struct linux_printk_ring known_form(uint32_t data, uint32_t info)
{
	return (struct linux_printk_ring){
		.descs = 8,
		.infos = 16,
		.head_id = 24,
		.tail_id = 32,
		.size_bits = data,
		.data = data + 8,
		.desc_size = 24,
		.begin = 8,
		.next = 16,
		.info_size = info,
		.ts = 8,
		.text_len = 16,
		.facility = 18,
		.caller = 20,
	};
}

/* Returns whether finished records have numbers that follow each other, PROOFS of them or all. */
static bool is_proven(const struct printk_ring *r)
{
	uint64_t before = 0;
	unsigned int n = 0;

	for (uint64_t i = 0; i < r->n && n < PROOFS; i++) {
		uint64_t seq = memory_word(info_of(r, i), r->at->seq);

		if (!is_final(r, i))
			continue;
		if (n && seq != before + 1)
			return false;
		before = seq;
		n++;
	}
	return n >= PROOFS_MIN;
}

/* Finds the one form that agrees with memory. */
static int find_form(const struct memory *m, uint64_t prb, struct linux_printk_ring *out,
		     struct err *e)
{
	struct linux_printk_ring found = { 0 };
	unsigned int n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(known_data); i++)
		for (size_t j = 0; j < ARRAY_SIZE(known_info); j++) {
			struct linux_printk_ring form = known_form(known_data[i], known_info[j]);
			struct printk_ring r = { 0 };

			if (open_ring(&form, m, prb, PROOFS, &r, NULL))
				continue;
			if (is_proven(&r)) {
				found = form;
				n++;
			}
			ring_deinit(&r);
		}
	if (n != 1)
		return err_set(e, ENOENT,
			       "the form of the kernel's log is unknown: the kernel has no types, "
			       "and %u known forms agree with its memory",
			       n);
	*out = found;
	return 0;
}

int printk_ring_read(const struct linux_printk_layout *l, const struct memory *m,
		     struct linux_printk_reading *to, struct err *e)
{
	struct linux_printk_ring form = l->ring;
	struct printk_ring r = { 0 };
	uint64_t prb;
	int ret;

	if (!memory_u64(m, l->prb, &prb) || !memory_is_kernel(prb))
		return err_set(e, EFAULT, "the kernel's variable prb cannot be read");
	ret = l->by_types ? 0 : find_form(m, prb, &form, e);
	ret = ret ? ret : open_ring(&form, m, prb, to->most, &r, e);
	ret = ret ? ret : read_text(&r, e);
	if (!ret)
		ret = pass_records(&r, to);
	if (ret == -ENOMEM)
		err_nomem(e);
	else if (!ret && to->losses.absent == r.n)
		ret = err_set(e, EFAULT,
			      "the kernel's log cannot be read: its pages are not in memory");
	ring_deinit(&r);
	return ret;
}
