/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tests: 20000 runs */
/*
 * A hostile log of the kernel. The input: a byte of flags (1: the form before 5.10, 2: with types,
 * 4: the guest goes on while it is read, 8: callers' ids), a byte for how many records it has
 * before, then changes of its memory: u8 kind, u16 where, u32 what.
 */
#include "tests/fuzz/fuzz.h"

#include "base/cursor.h"
#include "tests/printk_guest.h"

#include <stdio.h>

#define MAX_CHANGES 512u

static struct pg guest;
static unsigned int reads, moves_at;

static void store(unsigned int i, unsigned int flags)
{
	char text[128];
	struct pg_record r = { text, i * 1000003ull, (uint8_t)(i % 24), i % 8, i, "pci", "+pci:1" };

	snprintf(text, sizeof(text), "%u%.*s", i, (int)(i * 7 % 100),
		 "\n.......................\n......................................................"
		 "....."
		 "............................................");
	if (flags & 1)
		pg_store_old(&guest, &r, "SUBSYSTEM=pci\0DEVICE=x", 22 * (i % 2));
	else
		pg_store(&guest, &r, i % 17 ? 2 : i % 4);
}

static size_t read_guest(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	size_t got = pg_read(ctx, space, va, dst, len);

	/* A liar may also change its variables, but the fixture's own stores must stay inside. */
	if (++reads == moves_at)
		memset(guest.bytes + reads % 3 * 0x400, (int)reads, 0x200);
	return got;
}

static void change(struct cursor *c)
{
	uint8_t kind = cursor_u8(c);
	uint16_t where = cursor_u16(c);
	uint32_t what = cursor_u32(c);
	uint64_t at = PG_BASE + where * 8ull % (PG_BYTES - 8);

	switch (kind & 7) {
	case 0:
		pg_u64(&guest, at, PG_BASE + what % PG_BYTES);
		break;
	case 1:
		pg_u64(&guest, at, (uint64_t)what << 32);
		break;
	case 2:
		pg_u32(&guest, at + (kind >> 3 & 4), what);
		break;
	case 3:
		guest.bytes[where % PG_BYTES] = (uint8_t)what;
		break;
	case 4:
		guest.gone[where % PG_PAGES] = true;
		break;
	case 5: /* the variables of the ring */
		pg_u64(&guest, PG_RING + where % 10 * 8, (uint64_t)(int64_t)(int32_t)what);
		break;
	case 6: /* a descriptor's words */
		pg_u64(&guest, PG_DESCS + where % (3 * PG_COUNT) * 8,
		       (uint64_t)(int64_t)(int32_t)what);
		break;
	default:
		pg_u64(&guest, at, (uint64_t)(int64_t)(int32_t)what);
		break;
	}
}

struct seen {
	size_t n, bytes;
	struct linux_printk_style style;
};

static int check_record(void *ctx, const struct linux_printk_record *r)
{
	struct seen *s = ctx;
	struct buf out;
	unsigned int sum = 0;

	if (r->level > 7 || r->len > UINT16_MAX || strlen(r->subsystem) >= LINUX_PRINTK_SUBSYSTEM ||
	    strlen(r->device) >= LINUX_PRINTK_DEVICE)
		abort();
	for (size_t i = 0; i < r->len; i++)
		sum += (unsigned char)r->text[i];
	buf_init(&out);
	linux_printk_print(r, &s->style, &out);
	if (out.failed || out.len < r->len + 1 || out.data[out.len - 1] != '\n' ||
	    sum > UINT16_MAX * 255u)
		abort();
	buf_deinit(&out);
	s->n++;
	s->bytes += r->len;
	return s->n == 100000;
}

static void read_all(const struct linux_printk_layout *l, const struct memory *m, size_t most)
{
	struct seen s = { 0 };
	struct linux_printk_reading r = { .most = most, .each = check_record, .ctx = &s };
	int ret;

	s.style = linux_printk_style(l, m);
	ret = linux_printk_read(l, m, &r, NULL);
	if ((ret && ret != -ENOENT && ret != -EFAULT && ret != -ENOMEM && ret != 1) ||
	    (ret != 1 && s.n > most) || s.n > LINUX_PRINTK_MAX_RECORDS ||
	    r.losses.unfinished + r.losses.overwritten + r.losses.absent >
		    2 * LINUX_PRINTK_MAX_RECORDS)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct symtab *symbols[2];
	const struct memory m = { read_guest, &guest };
	struct linux_printk_layout l;
	struct cursor c;
	uint8_t flags, records;

	cursor_init(&c, data, size);
	flags = cursor_u8(&c);
	records = cursor_u8(&c);
	if (!symbols[flags & 1])
		symbols[flags & 1] = pg_symbols(flags & 1);
	if (flags & 1)
		pg_make_old(&guest, 4096 << (flags >> 4 & 1), flags & 8 ? 20 : 16);
	else
		pg_make(&guest, 10 + (flags >> 4) % 5);
	for (unsigned int i = 0; i < records; i++)
		store(i, flags);
	for (unsigned int i = 0; i < MAX_CHANGES && cursor_left(&c) >= 7; i++)
		change(&c);
	if (linux_printk_layout(&l, flags & 2 ? &pg_types : NULL, symbols[flags & 1], NULL))
		abort();
	reads = 0;
	moves_at = flags & 4 ? records % 24 + 1u : 0;
	read_all(&l, &m, SIZE_MAX);
	moves_at = 0;
	read_all(&l, &m, records % 9);
	return 0;
}
