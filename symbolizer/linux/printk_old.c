/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * printk_old: the log before 5.10 (kernel/printk/printk.c).
 *
 * log_buf has records one behind the other, from log_first_idx to log_next_idx. A record is a
 * struct printk_log, then text, then a dictionary, padded to 4 bytes:
 *
 *	u64 ts_nsec; u16 len, text_len, dict_len; u8 facility; u8 flags:5, level:3;
 *	with CONFIG_PRINTK_CALLER (5.1): u32 caller_id
 *
 * len is that of all. A len of 0 means that the next record is at the buffer's start.
 */
#include "symbolizer/linux/printk_old.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER 16u
#define HEADER_WITH_CALLER 20u
#define LOG_ALIGN 4u
#define PAGE 4096u

struct printk_old {
	uint8_t *bytes;
	uint32_t len, first, next;
	uint32_t header; /* bytes of struct printk_log */
};

/* Copies the value of `key` ("SUBSYSTEM=") in a dictionary of NUL-separated texts. */
static void find_value(const char *dict, size_t len, const char *key, char *out, size_t cap)
{
	size_t key_len = strlen(key);

	for (size_t at = 0, n; at < len; at += n + 1) {
		n = strnlen(dict + at, len - at);
		if (n < key_len || memcmp(dict + at, key, key_len) != 0)
			continue;
		snprintf(out, cap, "%.*s", (int)(n - key_len), dict + at + key_len);
		return;
	}
}

/* Returns the offset behind the record at `at` and fills in *r; 0: it cannot be a record. */
static uint32_t parse_record(const struct printk_old *b, uint32_t at, struct linux_printk_record *r)
{
	const uint8_t *p = b->bytes + at;
	uint16_t len, text_len, dict_len;
	uint32_t used;
	const char *dict;

	if (b->len - at < b->header)
		return 0;
	memcpy(&len, p + 8, 2);
	memcpy(&text_len, p + 10, 2);
	memcpy(&dict_len, p + 12, 2);
	used = b->header + text_len + dict_len;
	if (len % LOG_ALIGN || len > b->len - at || used > len || len - used >= LOG_ALIGN)
		return 0;
	dict = (const char *)p + b->header + text_len;
	*r = (struct linux_printk_record){
		.ts_ns = memory_word(p, 0),
		.facility = p[14],
		.level = p[15] >> 5,
		.caller = b->header == HEADER_WITH_CALLER ? memory_half(p, 16) : 0,
		.text = (const char *)p + b->header,
		.len = text_len,
	};
	find_value(dict, dict_len, "SUBSYSTEM=", r->subsystem, sizeof(r->subsystem));
	find_value(dict, dict_len, "DEVICE=", r->device, sizeof(r->device));
	return at + len;
}

/*
 * Passes on the records behind the first `skip`, or only counts with each() NULL. *n gets their
 * number in all. *whole gets whether the last record ends at log_next_idx.
 */
static int walk(const struct printk_old *b, size_t skip, const struct linux_printk_reading *to,
		size_t *n, bool *whole)
{
	uint32_t at = b->first;
	bool wrapped = false;
	int ret = 0;

	*n = 0;
	while (!ret && at != b->next && *n < LINUX_PRINTK_MAX_RECORDS) {
		struct linux_printk_record r;
		uint16_t len = 0;

		if (b->len - at >= HEADER)
			memcpy(&len, b->bytes + at + 8, 2);
		if (!len) {
			if (wrapped)
				break;
			wrapped = true;
			at = 0;
			continue;
		}
		at = parse_record(b, at, &r);
		if (!at || (wrapped && at > b->next))
			break;
		if (to && *n >= skip)
			ret = to->each(to->ctx, &r);
		++*n;
		if (at == b->len) {
			wrapped = true;
			at = 0;
		}
	}
	*whole = at == b->next;
	return ret;
}

/* Returns the number of records with struct printk_log of one size or the other. */
static size_t count_records(struct printk_old *b)
{
	size_t with, without;
	bool whole_with, whole_without;

	b->header = HEADER_WITH_CALLER;
	walk(b, 0, NULL, &with, &whole_with);
	b->header = HEADER;
	walk(b, 0, NULL, &without, &whole_without);
	/* A wrong size contradicts the lengths of each record, so this decides at the first one. */
	if (with > without) {
		b->header = HEADER_WITH_CALLER;
		return with;
	}
	return without;
}

/* Copies the buffer. What is not in memory stays zeros, in which no record is found. */
static uint32_t copy_buffer(const struct printk_old *b, const struct memory *m, uint64_t at)
{
	uint32_t got = 0;

	for (uint32_t off = 0, n; off < b->len; off += n) {
		n = PAGE - (uint32_t)((at + off) % PAGE);
		n = n < b->len - off ? n : b->len - off;
		if (memory_read(m, MEMORY_KERNEL, at + off, b->bytes + off, n))
			got += n;
		else
			memset(b->bytes + off, 0, n);
	}
	return got;
}

int printk_old_read(const struct linux_printk_layout *l, const struct memory *m,
		    struct linux_printk_reading *to, struct err *e)
{
	cleanup_free uint8_t *bytes = NULL;
	struct printk_old b = { 0 };
	uint64_t at;
	size_t n;
	bool whole;
	int ret;

	if (!memory_u64(m, l->log_buf, &at) || !memory_is_kernel(at) ||
	    !memory_u32(m, l->log_buf_len, &b.len) || !memory_u32(m, l->first_idx, &b.first) ||
	    !memory_u32(m, l->next_idx, &b.next))
		return err_set(e, EFAULT, "the variables of the kernel's log cannot be read");
	if (b.len < HEADER || b.len > LINUX_PRINTK_MAX_BYTES || b.first >= b.len || b.next >= b.len)
		return err_set(e, ENOENT,
			       "the variables of the kernel's log contradict each other");
	bytes = calloc(1, b.len);
	if (!bytes)
		return err_nomem(e);
	b.bytes = bytes;
	if (!copy_buffer(&b, m, at))
		return err_set(e, EFAULT,
			       "the kernel's log cannot be read: its pages are not in memory");
	n = count_records(&b);
	ret = walk(&b, n > to->most ? n - to->most : 0, to, &n, &whole);
	to->losses.ended_early = !ret && !whole;
	return ret;
}
