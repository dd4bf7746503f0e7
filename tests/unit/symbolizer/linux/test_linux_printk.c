/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's log of both forms: sound, wrapped, while it is written, with gaps, and lying. */
#include "symbolizer/linux/printk.h"

#include "tests/printk_guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define RECORDS 500u

static struct pg g;
static const struct memory mem = { pg_read, &g };
static struct linux_printk_layout layout;
static struct buf out;
static struct linux_printk_losses losses;

static void use(bool old, const struct types *types)
{
	struct symtab *symbols = pg_symbols(old);

	assert_int_equal(linux_printk_layout(&layout, types, symbols, NULL), 0);
	symtab_destroy(symbols);
}

struct printing {
	struct linux_printk_style style;
	struct linux_printk_record last;
	unsigned int n;
};

static int print(void *ctx, const struct linux_printk_record *r)
{
	struct printing *p = ctx;

	linux_printk_print(r, &p->style, &out);
	p->last = *r;
	p->n++;
	return 0;
}

static int read_log(struct printing *p, size_t most)
{
	struct linux_printk_reading reading = { .most = most, .each = print, .ctx = p };
	int ret;

	buf_deinit(&out);
	buf_init(&out);
	p->n = 0;
	ret = linux_printk_read(&layout, &mem, &reading, NULL);
	losses = reading.losses;
	buf_u8(&out, '\0');
	return ret;
}

static void expect(const char *text)
{
	struct printing p = { linux_printk_style(&layout, &mem), { 0 }, 0 };

	assert_int_equal(read_log(&p, SIZE_MAX), 0);
	assert_string_equal((const char *)out.data, text);
}

static void store(const char *text, uint64_t ts_ns)
{
	pg_store(&g, &(struct pg_record){ text, ts_ns, 0, 6, 0, NULL, NULL }, 2);
}

static void lines(void **state)
{
	(void)state;
	pg_make(&g, 12);
	use(false, &pg_types);
	assert_true(layout.by_types);
	store("one", 0);
	store("a\nb\n", 1234567890);
	store("", 12345678901234);
	store("tab\there \x1b[1m\xff", 99999999999999999);
	expect("[    0.000000] one\n"
	       "[    1.234567] a\n"
	       "[    1.234567] b\n"
	       "[    1.234567] \n"
	       "[12345.678901] \n"
	       "[99999999.999999] tab\there \x1b[1m\xff\n");
	g.bytes[PG_TIME - PG_BASE] = 0;
	expect("one\na\nb\n\n\ntab\there \x1b[1m\xff\n");
}

/* The level in front, and the thread or the processor that printed. */
static void prefixes(void **state)
{
	static const char format[] = "[%6s]";
	struct printing p;

	(void)state;
	pg_make(&g, 12);
	use(false, &pg_types);
	pg_put(&g, PG_RODATA + 3, format, sizeof(format));
	assert_false(linux_printk_style(&layout, &mem).caller); /* nothing refers to it */
	pg_u32(&g, PG_CODE + 7, (uint32_t)(PG_RODATA + 4));
	assert_false(linux_printk_style(&layout, &mem).caller);
	pg_u32(&g, PG_CODE + 7, (uint32_t)(PG_RODATA + 3));
	assert_true(linux_printk_style(&layout, &mem).caller);
	pg_u32(&g, PG_CODE + 7, 0);
	pg_u32(&g, PG_CODE + 60, (uint32_t)(PG_RODATA + 3 - (PG_CODE + 64)));
	pg_store(&g, &(struct pg_record){ "x", 5000, 0, 4, 17, "pci", "+pci:0000:00:01.0" }, 2);
	pg_store(&g, &(struct pg_record){ "y", 6000, 1, 7, 0x80000003, NULL, NULL }, 2);
	expect("[    0.000005][   T17] x\n[    0.000006][    C3] y\n");
	p.style = (struct linux_printk_style){ .time = true, .level = true };
	assert_int_equal(read_log(&p, SIZE_MAX), 0);
	assert_string_equal((const char *)out.data, "<4>[    0.000005] x\n<15>[    0.000006] y\n");
	assert_string_equal(p.last.device, "");
	assert_int_equal(read_log(&p, SIZE_MAX), 0);
	assert_int_equal(p.last.seq, 1);
	g.bytes[PG_TIME - PG_BASE] = 0;
	p.style = linux_printk_style(&layout, &mem);
	assert_false(p.style.time);
	assert_true(p.style.caller);
	g.gone[0] = true;
	p.style = linux_printk_style(&layout, &mem);
	assert_true(p.style.time); /* not known */
	assert_false(p.style.caller);
}

static int take_first(void *ctx, const struct linux_printk_record *r)
{
	*(struct linux_printk_record *)ctx = *r;
	return 7;
}

static void device(void **state)
{
	struct linux_printk_record r;
	struct linux_printk_reading reading = { .most = SIZE_MAX, .each = take_first, .ctx = &r };
	char long_name[49];

	(void)state;
	memset(long_name, 'd', 48);
	long_name[48] = '\0';
	pg_make(&g, 12);
	use(false, &pg_types);
	pg_store(&g, &(struct pg_record){ "x", 5000, 0, 4, 0, "0123456789abcdef", long_name }, 2);
	store("second", 1);
	assert_int_equal(linux_printk_read(&layout, &mem, &reading, NULL), 7);
	assert_string_equal(r.subsystem, "0123456789abcdef");
	assert_string_equal(r.device, long_name);
	/* Without these members the rest is known. */
	use(false, &(struct types){ pg_member, pg_size, pg_enumerator, "dev_info.device" });
	assert_true(layout.by_types);
	assert_int_equal(linux_printk_read(&layout, &mem, &reading, NULL), 7);
	assert_string_equal(r.subsystem, "");
}

/* Many records of all lengths in a small ring: what is read is always the end of what was written. */
static void wraps(void **state)
{
	static char all[RECORDS * 160];
	static const unsigned int bits[] = { 10, 11, 14 };

	(void)state;
	for (unsigned int k = 0; k < 6; k++) {
		size_t len = 0, kept;
		uint32_t seed = k + 1;

		pg_make(&g, bits[k % 3]);
		g.fits_exactly = k >= 3;
		use(false, k % 2 ? &pg_types : NULL);
		for (unsigned int i = 0; i < RECORDS; i++) {
			struct printing p = { { .time = false }, { 0 }, 0 };
			char text[160];
			unsigned int n;

			seed = seed * 1103515245 + 12345;
			n = (unsigned int)snprintf(
				text, sizeof(text), "%u %.*s", i, (int)(seed >> 16) % 120,
				"................................................"
				"................................................"
				"........................");
			store(text, i);
			memcpy(all + len, text, n);
			all[len + n] = '\n';
			len += n + 1;
			if (i < 3)
				continue;
			assert_int_equal(read_log(&p, SIZE_MAX), 0);
			kept = out.len - 1;
			assert_true(p.n >= 5 || p.n == i + 1);
			assert_true(kept <= len);
			assert_memory_equal(out.data, all + len - kept, kept);
			assert_true(!losses.overwritten && !losses.unfinished && !losses.absent);
			/* No older record is left that could have been read. */
			assert_int_equal(p.n, ((g.head - g.tail) & PG_ID_MASK) +
						      (pg_state(&g, g.tail) >> 62 == 2));
		}
	}
}

/* The last ones only. */
static void last(void **state)
{
	struct printing p = { { .time = false }, { 0 }, 0 };

	(void)state;
	pg_make(&g, 12);
	use(false, &pg_types);
	for (unsigned int i = 0; i < 200; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%u", i);
		store(text, i);
	}
	pg_store(&g, &(struct pg_record){ "open", 1, 0, 6, 0, NULL, NULL }, 1);
	assert_int_equal(read_log(&p, 3), 0);
	assert_string_equal((const char *)out.data, "197\n198\n199\n");
	assert_int_equal(losses.unfinished, 1);
	assert_int_equal(read_log(&p, 0), 0);
	assert_string_equal((const char *)out.data, "");
}

/* Records that are being written, had no room for their text, or were dropped. */
static void unfinished(void **state)
{
	(void)state;
	pg_make(&g, 12);
	use(false, &pg_types);
	store("one", 0);
	pg_store(&g, &(struct pg_record){ "reserved", 0, 0, 6, 0, NULL, NULL }, 0);
	store("two", 0);
	pg_store(&g, &(struct pg_record){ "", 0, 0, 6, 0, NULL, NULL }, 2);
	pg_u64(&g, pg_desc(g.head) + 8, 1); /* FAILED_LPOS */
	pg_u64(&g, pg_desc(g.head) + 16, 1);
	pg_store(&g, &(struct pg_record){ "continues", 0, 0, 6, 0, NULL, NULL }, 1);
	expect("[    0.000000] one\n[    0.000000] two\n");
	assert_int_equal(losses.unfinished, 2);
	assert_int_equal(losses.overwritten, 1);
	assert_int_equal(losses.absent, 0);
}

/* Processors that print at once take their text in another order than their ids. */
static void out_of_order(void **state)
{
	uint64_t a, b;

	(void)state;
	pg_make(&g, 12);
	use(false, &pg_types);
	store("aaaaaaa", 0);
	store("bbbbbbb", 0);
	a = pg_desc(g.head - 1);
	b = pg_desc(g.head);
	/* Exchange the two blocks: positions, ids and texts. */
	for (unsigned int i = 8; i < 24; i++) {
		uint8_t v = g.bytes[a + i - PG_BASE];

		g.bytes[a + i - PG_BASE] = g.bytes[b + i - PG_BASE];
		g.bytes[b + i - PG_BASE] = v;
	}
	pg_u64(&g, PG_DATA, g.head);
	pg_u64(&g, PG_DATA + 16, g.head - 1);
	expect("[    0.000000] bbbbbbb\n[    0.000000] aaaaaaa\n");
	assert_int_equal(losses.overwritten, 0);
}

/* The guest goes on while its log is read. */
static unsigned int reads, change_at;

static size_t read_and_change(void *ctx, uint64_t space, uint64_t va, void *dst, size_t len)
{
	size_t got = pg_read(ctx, space, va, dst, len);

	if (++reads == change_at)
		for (unsigned int i = 0; i < PG_COUNT / 2; i++)
			store("later, later, later", 9000);
	return got;
}

static void changes(void **state)
{
	const struct memory moving = { read_and_change, &g };

	(void)state;
	for (change_at = 1; change_at < 20; change_at++) {
		struct printing p = { { .time = true }, { 0 }, 0 };
		struct linux_printk_reading reading = { .most = SIZE_MAX,
							.each = print,
							.ctx = &p };

		reads = 0;
		pg_make(&g, 11);
		use(false, &pg_types);
		for (unsigned int i = 0; i < 2 * PG_COUNT; i++)
			store("earlier record", 1000);
		buf_deinit(&out);
		buf_init(&out);
		assert_int_equal(linux_printk_read(&layout, &moving, &reading, NULL), 0);
		buf_u8(&out, '\0');
		for (const char *line = (char *)out.data; *line; line = strchr(line, '\n') + 1)
			assert_true(!strncmp(line, "[    0.000001] earlier record\n", 30) ||
				    !strncmp(line, "[    0.000009] later, later, later\n", 35));
	}
}

/* Pages that are not in memory cost their records and no others. */
static void gaps(void **state)
{
	struct printing p = { { .time = false }, { 0 }, 0 };
	struct err e = { 0 };
	struct linux_printk_reading reading = { .most = SIZE_MAX, .each = print, .ctx = &p };

	(void)state;
	pg_make(&g, 14);
	use(false, &pg_types);
	for (unsigned int i = 0; i < 50; i++)
		store("a text of some length, so that pages are filled with no more than 31 of "
		      "them "
		      "...................................................",
		      0);
	g.gone[(PG_DATA - PG_BASE) / PG_PAGE] = true;
	assert_int_equal(read_log(&p, SIZE_MAX), 0);
	assert_int_equal(p.n + losses.absent, 50);
	assert_true(losses.absent >= 29 && losses.absent <= 32);
	g.gone[(PG_DATA - PG_BASE) / PG_PAGE] = false;
	g.gone[(PG_INFOS - PG_BASE) / PG_PAGE] = true;
	assert_int_equal(read_log(&p, SIZE_MAX), 0);
	assert_int_equal(p.n + losses.absent, 50);
	assert_true(losses.absent >= 46 && p.n);
	g.gone[(PG_DESCS - PG_BASE) / PG_PAGE] = true;
	assert_int_equal(linux_printk_read(&layout, &mem, &reading, &e), -EFAULT);
	assert_non_null(strstr(e.text, "not in memory"));
	g.gone[0] = true;
	e = (struct err){ 0 };
	assert_int_equal(linux_printk_read(&layout, &mem, &reading, &e), -EFAULT);
	assert_non_null(strstr(e.text, "prb"));
}

/* What cannot be a log. */
static void lies(void **state)
{
	static const struct {
		uint64_t at, v;
	} lie[] = {
		{ PG_RING, 0 },		  { PG_RING, 25 },	   { PG_RING + 48, 9 },
		{ PG_RING + 48, 32 },	  { PG_RING + 8, 0x1000 }, { PG_RING + 16, 0 },
		{ PG_RING + 56, 0x7ff0 }, { PG_RING + 24, 4096 },
	};
	struct linux_printk_reading reading = { .most = SIZE_MAX, .each = print };
	struct printing p = { { 0 }, { 0 }, 0 };
	struct err e;

	(void)state;
	reading.ctx = &p;
	for (size_t i = 0; i < sizeof(lie) / sizeof(lie[0]); i++) {
		pg_make(&g, 12);
		use(false, &pg_types);
		for (unsigned int k = 0; k < 4; k++)
			store("x", 0);
		pg_u64(&g, lie[i].at, lie[i].v);
		e = (struct err){ 0 };
		assert_int_equal(linux_printk_read(&layout, &mem, &reading, &e), -ENOENT);
		assert_non_null(strstr(e.text, "prb"));
	}
	/* Text that is another record's, and lengths beyond a block. */
	pg_make(&g, 12);
	use(false, &pg_types);
	for (unsigned int k = 0; k < 4; k++)
		store("text", 0);
	pg_u64(&g, PG_DATA, 5);
	g.bytes[PG_INFOS + (g.head & (PG_COUNT - 1)) * PG_INFO + 16 - PG_BASE] = 9;
	pg_u64(&g, pg_desc(g.head - 1) + 16, g.head_lpos + (1 << 12));
	assert_int_equal(read_log(&p, SIZE_MAX), 0);
	assert_int_equal(p.n, 1);
	assert_int_equal(losses.overwritten, 3);
}

/* Kernels without types: the form is found, or refused. */
static void without_types(void **state)
{
	struct linux_printk_reading reading = { .most = SIZE_MAX, .each = print };
	struct printing p = { { 0 }, { 0 }, 0 };
	struct err e = { 0 };

	(void)state;
	reading.ctx = &p;
	pg_make(&g, 12);
	use(false, NULL);
	assert_false(layout.by_types);
	store("one", 0);
	store("two", 0);
	/* Two records prove nothing. */
	assert_int_equal(linux_printk_read(&layout, &mem, &reading, &e), -ENOENT);
	assert_non_null(strstr(e.text, "0 known forms"));
	store("three", 0);
	expect("[    0.000000] one\n[    0.000000] two\n[    0.000000] three\n");
	/* Types that lack a member count as none. */
	use(false, &(struct types){ pg_member, pg_size, pg_enumerator, "desc_ring.infos" });
	assert_false(layout.by_types);
	expect("[    0.000000] one\n[    0.000000] two\n[    0.000000] three\n");
}

static void no_log(void **state)
{
	struct symtab *symbols = symtab_create();
	struct err e = { 0 };

	(void)state;
	assert_int_equal(linux_printk_layout(&layout, NULL, NULL, &e), -ENOENT);
	assert_int_equal(symtab_add(symbols, PG_PRB, 0, 'd', "log_buf"), 0);
	assert_int_equal(symtab_freeze(symbols, NULL), 0);
	assert_int_equal(linux_printk_layout(&layout, NULL, symbols, &e), -ENOENT);
	assert_non_null(strstr(e.text, "CONFIG_KALLSYMS_ALL"));
	symtab_destroy(symbols);
}

/* -- before 5.10 ------------------------------------------------------------------------- */

static void old_lines(void **state)
{
	static const char dict[] = "SUBSYSTEM=usb\0DEVICE=c189:3";

	(void)state;
	for (unsigned int header = 16; header <= 20; header += 4) {
		struct printing p = { { .level = true, .caller = header == 20 }, { 0 }, 0 };

		pg_make_old(&g, 4096, header);
		use(true, NULL);
		expect("");
		pg_store_old(&g, &(struct pg_record){ "one", 5000, 0, 5, 3, NULL, NULL }, NULL, 0);
		pg_store_old(&g, &(struct pg_record){ "a\nb", 6000, 1, 3, 4, NULL, NULL }, dict,
			     sizeof(dict) - 1);
		expect("[    0.000005] one\n[    0.000006] a\n[    0.000006] b\n");
		assert_int_equal(read_log(&p, SIZE_MAX), 0);
		assert_string_equal((char *)out.data, header == 20
							      ? "<5>[    T3] one\n<11>[    T4] a\n"
								"<11>[    T4] b\n"
							      : "<5>one\n<11>a\n<11>b\n");
		assert_string_equal(p.last.subsystem, "usb");
		assert_string_equal(p.last.device, "c189:3");
		assert_int_equal(read_log(&p, 1), 0);
		assert_int_equal(p.n, 1);
	}
}

static void old_wraps(void **state)
{
	static char all[RECORDS * 160];

	(void)state;
	for (unsigned int header = 16; header <= 20; header += 4) {
		size_t len = 0;
		uint32_t seed = header;

		pg_make_old(&g, 2048, header);
		use(true, NULL);
		for (unsigned int i = 0; i < RECORDS; i++) {
			struct printing p = { { 0 }, { 0 }, 0 };
			char text[160];
			unsigned int n;

			seed = seed * 1103515245 + 12345;
			n = (unsigned int)snprintf(
				text, sizeof(text), "%u %.*s", i, (int)(seed >> 16) % 90,
				"................................................"
				"................................................");
			pg_store_old(&g, &(struct pg_record){ text, i, 0, 6, 0, NULL, NULL }, "K=V",
				     seed >> 20 & 3);
			memcpy(all + len, text, n);
			all[len + n] = '\n';
			len += n + 1;
			assert_int_equal(read_log(&p, SIZE_MAX), 0);
			assert_true(p.n >= 8 || p.n == i + 1);
			assert_memory_equal(out.data, all + len - (out.len - 1), out.len - 1);
			assert_false(losses.ended_early);
		}
	}
}

static void old_lies(void **state)
{
	struct linux_printk_reading reading = { .most = SIZE_MAX, .each = print };
	struct printing p = { { 0 }, { 0 }, 0 };
	struct err e = { 0 };

	(void)state;
	reading.ctx = &p;
	pg_make_old(&g, 4096, 16);
	use(true, NULL);
	for (unsigned int i = 0; i < 4; i++)
		pg_store_old(&g, &(struct pg_record){ "text", i, 0, 6, 0, NULL, NULL }, NULL, 0);
	g.bytes[PG_DATA + 40 + 8 - PG_BASE] = 17; /* the third one's length */
	assert_int_equal(read_log(&p, SIZE_MAX), 0);
	assert_int_equal(p.n, 2);
	assert_true(losses.ended_early);
	memset(g.bytes + (PG_DATA + 40 - PG_BASE), 0, 20); /* leads to the start again */
	assert_int_equal(read_log(&p, SIZE_MAX), 0);
	assert_int_equal(p.n, 4);
	assert_true(losses.ended_early);
	pg_u32(&g, PG_NEXT_IDX, 4096);
	assert_int_equal(linux_printk_read(&layout, &mem, &reading, &e), -ENOENT);
	pg_u32(&g, PG_NEXT_IDX, 0);
	pg_u32(&g, PG_LOG_BUF_LEN, 0xffffffff);
	assert_int_equal(linux_printk_read(&layout, &mem, &reading, &e), -ENOENT);
	assert_non_null(strstr(e.text, "contradict"));
	pg_u32(&g, PG_LOG_BUF_LEN, 4096);
	e = (struct err){ 0 };
	g.gone[(PG_DATA - PG_BASE) / PG_PAGE] = true;
	assert_int_equal(linux_printk_read(&layout, &mem, &reading, &e), -EFAULT);
	assert_non_null(strstr(e.text, "not in memory"));
	g.gone[0] = true;
	assert_int_equal(linux_printk_read(&layout, &mem, &reading, &e), -EFAULT);
	buf_deinit(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),	 cmocka_unit_test(prefixes),
		cmocka_unit_test(device),	 cmocka_unit_test(wraps),
		cmocka_unit_test(last),		 cmocka_unit_test(unfinished),
		cmocka_unit_test(out_of_order),	 cmocka_unit_test(changes),
		cmocka_unit_test(gaps),		 cmocka_unit_test(lies),
		cmocka_unit_test(without_types), cmocka_unit_test(no_log),
		cmocka_unit_test(old_lines),	 cmocka_unit_test(old_wraps),
		cmocka_unit_test(old_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
