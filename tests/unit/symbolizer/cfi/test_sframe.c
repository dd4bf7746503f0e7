/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sections of .sframe written here, of each version, whole and damaged. Those of an assembler are
 * in tests/unit/symbolizer/unwind/test_unwind_sframe.c.
 */
#include "symbolizer/cfi/sframe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* -- sections made here ---------------------------------------------------------------- */

#define VA 0x400000u
#define CODE 0x401000u
#define MAX_FUNCS 8u

struct made_func {
	uint64_t start;
	uint32_t size, nrows;
	uint8_t form, type, repeats;
	uint8_t rows[64];
	uint8_t len;
};

struct made {
	uint8_t version, flags, more; /* more: bytes of more header */
	int8_t rbp;
	unsigned int n;
	struct made_func func[MAX_FUNCS];
	uint8_t b[1024];
	size_t len, there;  /* there: of these, the ones that can be read */
	size_t at, rows_at; /* offsets of the functions, of the rows */
};

static size_t read_made(void *ctx, uint64_t va, void *dst, size_t len)
{
	const struct made *m = ctx;
	uint64_t off = va - VA;

	if (off >= m->there)
		return 0;
	len = len < m->there - off ? len : (size_t)(m->there - off);
	memcpy(dst, m->b + off, len);
	return len;
}

static void put(struct made *m, size_t at, uint64_t v, size_t n)
{
	assert_true(at + n <= sizeof(m->b));
	memcpy(m->b + at, &v, n);
}

static void write_func(struct made *m, unsigned int i, size_t rows)
{
	static const size_t lens[] = { 0, 17, 20, 16 };
	const struct made_func *f = &m->func[i];
	size_t at = m->at + i * lens[m->version];
	uint64_t start = f->start - (m->flags & 4 ? VA + at : VA);

	put(m, at, start, m->version == 3 ? 8 : 4);
	at += m->version == 3 ? 8 : 4;
	put(m, at, f->size, 4);
	put(m, at + 4, rows, 4);
	if (m->version == 3) {
		put(m, m->rows_at + rows, f->nrows, 2);
		put(m, m->rows_at + rows + 2, f->form, 1);
		put(m, m->rows_at + rows + 3, f->type, 1);
		put(m, m->rows_at + rows + 4, f->repeats, 1);
		rows += 5;
	} else {
		put(m, at + 8, f->nrows, 4);
		put(m, at + 12, f->form, 1);
		if (m->version == 2)
			put(m, at + 13, f->repeats, 3);
	}
	memcpy(m->b + m->rows_at + rows, f->rows, f->len);
}

static void write_section(struct made *m)
{
	static const uint32_t lens[] = { 0, 17, 20, 16 };
	uint32_t rows = 0, nrows = 0;

	memset(m->b, 0, sizeof(m->b));
	m->at = 28u + m->more;
	m->rows_at = m->at + m->n * lens[m->version];
	for (unsigned int i = 0; i < m->n; i++) {
		write_func(m, i, rows);
		rows += m->func[i].len + (m->version == 3 ? 5 : 0);
		nrows += m->func[i].nrows;
	}
	put(m, 0, 0xdee2, 2);
	put(m, 2, m->version, 1);
	put(m, 3, m->flags, 1);
	put(m, 4, 3, 1);
	put(m, 5, (uint8_t)m->rbp, 1);
	put(m, 6, (uint8_t)-8, 1);
	put(m, 7, m->more, 1);
	put(m, 8, m->n, 4);
	put(m, 12, nrows, 4);
	put(m, 16, rows, 4);
	put(m, 20, 0, 4);
	put(m, 24, m->rows_at - m->at, 4);
	m->len = m->there = m->rows_at + rows;
}

/* ROWS are its bytes. */
#define FUNC(begin, len_, nrows_, form_, ...)         \
	((struct made_func){ .start = (begin),        \
			     .size = (len_),          \
			     .nrows = (nrows_),       \
			     .form = (form_),         \
			     .repeats = 16,           \
			     .rows = { __VA_ARGS__ }, \
			     .len = sizeof((const uint8_t[]){ __VA_ARGS__ }) })

/* A form of a row: by rsp (1) or rbp (0), words, size of a word as its power of 2. */
#define ROW(rsp, n, size) ((uint8_t)((rsp) | (n) << 1 | (size) << 5))

/* push rbp at 1, mov rsp to rbp at 4, leave at 0x1f; then one without rbp, then a PLT. */
static void make(struct made *m, uint8_t version, uint8_t flags)
{
	memset(m, 0, sizeof(*m));
	m->version = version;
	m->flags = flags;
	m->n = 3;
	m->func[0] = FUNC(CODE, 0x20, 4, 0, 0, ROW(1, 1, 0), 8, 1, ROW(1, 2, 0), 16, 0xf0, 4,
			  ROW(0, 2, 0), 16, 0xf0, 0x1f, ROW(1, 1, 0), 8);
	m->func[1] = FUNC(CODE + 0x20, 0x1000, 2, 1, 0, 0, ROW(1, 1, 0), 8, 0x34, 0x02,
			  ROW(1, 2, 1), 0x10, 0x04, 0xf0, 0xff);
	m->func[2] = FUNC(CODE + 0x2000, 0x40, 2, 0x10, 0, ROW(1, 1, 0), 8, 11, ROW(1, 1, 0), 16);
	write_section(m);
}

static enum cfi_found open_made(struct sframe *t, struct made *m)
{
	return sframe_open(t, &(struct cfi_source){ read_made, m }, VA, m->len);
}

/* CFI_FOUND, or why not; the row is all zero then. */
static enum cfi_found row_at(struct made *m, uint64_t va, struct cfi_row *row)
{
	struct sframe t;
	enum cfi_found found = open_made(&t, m);

	memset(row, 0, sizeof(*row));
	if (found != CFI_FOUND)
		return found;
	found = sframe_row(&t, va, row);
	sframe_deinit(&t);
	return found;
}

/* rbp: where it is saved; 0: it is not. */
static void expect(struct made *m, uint64_t va, unsigned int reg, int32_t cfa, int32_t rbp)
{
	struct cfi_row row;

	assert_int_equal(row_at(m, va, &row), CFI_FOUND);
	assert_int_equal(row.cfa_len, 0);
	assert_int_equal(row.cfa_reg, reg);
	assert_int_equal(row.cfa, cfa);
	assert_int_equal(row.rule[CFI_RIP].how, CFI_SAVED);
	assert_int_equal(row.rule[CFI_RIP].value, -8);
	assert_int_equal(row.rule[CFI_RBP].how, rbp ? CFI_SAVED : CFI_DEFAULT);
	assert_int_equal(row.rule[CFI_RBP].value, rbp);
	/* Nothing is said of the others, and that was settled. */
	assert_int_equal(row.rule[CFI_RBX].how, CFI_UNDEFINED);
	assert_int_equal(row.rule[CFI_R12].how, CFI_UNDEFINED);
	assert_int_equal(row.rule[CFI_R15].how, CFI_UNDEFINED);
	assert_true(row.ruled >> CFI_RIP & 1);
	assert_true(row.ruled >> CFI_RBX & 1);
}

static void versions(void **state)
{
	struct made m;
	struct cfi_row row;

	(void)state;
	for (uint8_t version = 1; version <= 3; version++)
		for (uint8_t flags = 0; flags < 8; flags++) {
			make(&m, version, flags);
			expect(&m, CODE, CFI_RSP, 8, 0);
			expect(&m, CODE + 1, CFI_RSP, 16, -16);
			expect(&m, CODE + 3, CFI_RSP, 16, -16);
			expect(&m, CODE + 4, CFI_RBP, 16, -16);
			expect(&m, CODE + 0x1e, CFI_RBP, 16, -16);
			expect(&m, CODE + 0x1f, CFI_RSP, 8, 0);
			expect(&m, CODE + 0x20, CFI_RSP, 8, 0);
			expect(&m, CODE + 0x20 + 0x233, CFI_RSP, 8, 0);
			expect(&m, CODE + 0x20 + 0x234, CFI_RSP, 0x410, -16);
			expect(&m, CODE + 0x101f, CFI_RSP, 0x410, -16);
			expect(&m, CODE + 0x2000 + 10, CFI_RSP, 8, 0);
			expect(&m, CODE + 0x2000 + 11, CFI_RSP, 16, 0);
			expect(&m, CODE + 0x2000 + 16, CFI_RSP, 8, 0);
			expect(&m, CODE + 0x203f, CFI_RSP, 16, 0);
			assert_int_equal(row_at(&m, CODE - 1, &row), CFI_NONE);
			assert_int_equal(row_at(&m, CODE + 0x1020, &row), CFI_NONE);
			assert_int_equal(row_at(&m, CODE + 0x2040, &row), CFI_NONE);
			assert_int_equal(row_at(&m, 0, &row), CFI_NONE);
			assert_int_equal(row_at(&m, UINT64_MAX, &row), CFI_NONE);
		}
	/* More header than is known, as a later errata may have. */
	make(&m, 2, 1);
	m.more = 12;
	write_section(&m);
	expect(&m, CODE + 4, CFI_RBP, 16, -16);
	/* rbp may have a place of its own, which is in no row then. */
	make(&m, 2, 1);
	m.rbp = -16;
	write_section(&m);
	expect(&m, CODE, CFI_RSP, 8, -16);
}

static void sizes(void **state)
{
	struct made m;

	(void)state;
	for (uint8_t version = 1; version <= 3; version++) {
		make(&m, version, 1);
		m.n = 1;
		m.func[0] = FUNC(CODE, 0x20000, 3, 2, 0, 0, 0, 0, ROW(1, 1, 0), 8, 1, 0, 1, 0,
				 ROW(1, 2, 2), 0, 0, 2, 0, 0xf0, 0xff, 0xfd, 0xff, 2, 0, 1, 0,
				 ROW(0, 2, 1), 0, 2, 0, 0xfe);
		write_section(&m);
		expect(&m, CODE + 0x10000, CFI_RSP, 8, 0);
		expect(&m, CODE + 0x10001, CFI_RSP, 0x20000, -0x20010);
		expect(&m, CODE + 0x10002, CFI_RBP, 0x200, -0x200);
		expect(&m, CODE + 0x1ffff, CFI_RBP, 0x200, -0x200);
	}
}

/* In any order, some without code, some over others. */
static void orders(void **state)
{
	struct made m;
	struct cfi_row row;

	(void)state;
	for (uint8_t version = 1; version <= 3; version++) {
		struct made_func f;

		make(&m, version, 0);
		f = m.func[0];
		m.func[0] = m.func[2];
		m.func[2] = f;
		write_section(&m);
		expect(&m, CODE + 4, CFI_RBP, 16, -16);
		expect(&m, CODE + 0x2000 + 11, CFI_RSP, 16, 0);
		/* Said to be sorted, which it is not: some are not found, none is wrong. */
		m.flags = 1;
		write_section(&m);
		assert_int_equal(row_at(&m, CODE + 4, &row), CFI_NONE);
		/* Two begin where the next one does, and have no code. */
		for (uint8_t flags = 0; flags < 2; flags++) {
			make(&m, version, flags);
			m.n = 5;
			m.func[4] = m.func[2];
			m.func[2] = m.func[3] = FUNC(CODE + 0x20, 0, 1, 0, 0, ROW(1, 1, 0), 24);
			write_section(&m);
			expect(&m, CODE + 0x20, CFI_RSP, 8, 0);
			expect(&m, CODE + 4, CFI_RBP, 16, -16);
		}
		/* The second one begins in the first: the last that begins counts, up to its end. */
		make(&m, version, 1);
		m.func[1].start = CODE + 8;
		m.func[1].size = 4;
		write_section(&m);
		expect(&m, CODE + 4, CFI_RBP, 16, -16);
		expect(&m, CODE + 8, CFI_RSP, 8, 0);
		assert_int_equal(row_at(&m, CODE + 12, &row), CFI_NONE);
	}
}

static void no_caller(void **state)
{
	struct cfi_row row;
	struct made m;

	(void)state;
	for (uint8_t version = 1; version <= 3; version++) {
		make(&m, version, 1);
		m.n = 1;
		m.func[0] = FUNC(CODE, 0x20, 1, 0, 0, ROW(1, 0, 0));
		write_section(&m);
		assert_int_equal(row_at(&m, CODE + 2, &row), version == 1 ? CFI_BAD : CFI_FOUND);
		assert_int_equal(row.rule[CFI_RIP].how, version == 1 ? CFI_DEFAULT : CFI_UNDEFINED);
	}
}

/* -- flexible functions ------------------------------------------------------------------- */

#define BY(reg) ((reg) << 3 | 1)
#define AT(reg) ((reg) << 3 | 3)
#define AT_CFA 2

static bool read_stack(void *ctx, uint64_t va, uint64_t *out)
{
	(void)ctx;
	*out = va * 0x9e3779b97f4a7c15u | 1;
	return true;
}

static uint64_t stack_at(uint64_t va)
{
	uint64_t v;

	read_stack(NULL, va, &v);
	return v;
}

static void known_regs(struct cfi_regs *g, uint64_t rip)
{
	g->known = 0;
	for (unsigned int i = 0; i < CFI_REGS; i++)
		cfi_set(g, i, 0x7ffd00000000u + 0x10000 * i);
	cfi_set(g, CFI_RSP, 0x7ffc00000000u);
	cfi_set(g, CFI_RIP, rip);
}

static void step_made(struct made *m, uint64_t va, struct cfi_regs *out)
{
	struct cfi_stack stack = { .read = read_stack };
	struct cfi_regs g;
	struct cfi_row row;

	assert_int_equal(row_at(m, va, &row), CFI_FOUND);
	known_regs(&g, va);
	assert_int_equal(cfi_step(&row, &g, &stack, out), CFI_STEP_ON);
}

static void flexible(void **state)
{
	const uint64_t rsp = 0x7ffc00000000u, rbp = 0x7ffd00000000u + 0x10000 * CFI_RBP,
		       r10 = 0x7ffd00000000u + 0x10000 * CFI_R10;
	struct cfi_regs out;
	struct cfi_row row;
	struct made m;

	(void)state;
	make(&m, 3, 5);
	m.n = 1;
	/* A stack that is aligned anew: by r10; then *(rbp - 8), with rbp at *rbp; a signal's. */
	m.func[0] = FUNC(CODE, 0x40, 4, 0, 0, ROW(1, 2, 0), BY(CFI_R10), 0, 8, ROW(1, 5, 0),
			 AT(CFI_RBP), 0xf8, 0, AT(CFI_RBP), 0, 16, ROW(1, 6, 0), BY(CFI_RSP), 8,
			 BY(CFI_RDX), 0, BY(CFI_RCX), 0x7f, 24, ROW(1, 6, 1), AT(CFI_RSP), 0, 0xa0,
			 0, AT(CFI_RSP), 0, 0xa8, 0, AT_CFA, 0, 0x78, 0);
	m.func[0].type = 1;
	write_section(&m);
	step_made(&m, CODE, &out);
	assert_int_equal(out.r[CFI_RSP], r10);
	assert_int_equal(out.r[CFI_RIP], stack_at(r10 - 8));
	assert_int_equal(out.r[CFI_RBP], rbp);
	assert_false(cfi_knows(&out, CFI_RBX));
	step_made(&m, CODE + 9, &out);
	assert_int_equal(out.r[CFI_RSP], stack_at(rbp - 8));
	assert_int_equal(out.r[CFI_RIP], stack_at(stack_at(rbp - 8) - 8));
	assert_int_equal(out.r[CFI_RBP], stack_at(rbp));
	step_made(&m, CODE + 16, &out);
	assert_int_equal(out.r[CFI_RSP], rsp + 8);
	assert_int_equal(out.r[CFI_RIP], 0x7ffd00000000u + 0x10000 * CFI_RDX);
	assert_int_equal(out.r[CFI_RBP], 0x7ffd00000000u + 0x10000 * CFI_RCX + 0x7f);
	m.func[0].form = 0x80;
	write_section(&m);
	step_made(&m, CODE + 24, &out);
	assert_int_equal(out.r[CFI_RSP], stack_at(rsp + 160));
	assert_int_equal(out.r[CFI_RIP], stack_at(rsp + 168));
	assert_int_equal(out.r[CFI_RBP], stack_at(out.r[CFI_RSP] + 0x78));
	assert_int_equal(row_at(&m, CODE + 24, &row), CFI_FOUND);
	assert_int_equal(row.is_signal, 1);
	/* No register: the CFA; words that are missing, or too many; a bit and a register not known. */
	static const uint8_t bad[][8] = {
		{ 0, ROW(1, 2, 0), AT_CFA, 8 },
		{ 0, ROW(1, 2, 0), 0, 8 },
		{ 0, ROW(1, 1, 0), BY(CFI_RSP) },
		{ 0, ROW(1, 3, 0), BY(CFI_RSP), 8, AT_CFA },
		{ 0, ROW(1, 5, 0), BY(CFI_RSP), 8, 0, 0, 0 },
		{ 0, ROW(1, 2, 0), BY(CFI_RSP) | 4, 8 },
		{ 0, ROW(1, 2, 0), BY(CFI_RIP), 8 },
		{ 0, ROW(1, 2, 0), BY(31), 8 },
		{ 0, ROW(1, 4, 0), BY(CFI_RSP), 8, 8 << 1 | 2, 0 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		m.func[0].form = 0;
		m.func[0].nrows = 1;
		memcpy(m.func[0].rows, bad[i], sizeof(bad[i]));
		write_section(&m);
		assert_int_equal(row_at(&m, CODE, &row), CFI_BAD);
	}
}

/* -- damage ----------------------------------------------------------------------------- */

static void headers(void **state)
{
	static const struct {
		uint8_t at, len;
		uint32_t v;
	} bad[] = {
		{ 0, 2, 0xe2de },      { 2, 1, 0 },	    { 2, 1, 4 },
		{ 3, 1, 8 },	       { 4, 1, 2 },	    { 6, 1, 0 },
		{ 7, 1, 255 },	       { 8, 4, 4 },	    { 8, 4, UINT32_MAX },
		{ 8, 4, 0x10000001 },  { 12, 4, 1u << 30 }, { 16, 4, UINT32_MAX },
		{ 16, 4, 1u << 20 },   { 20, 4, 1000 },	    { 20, 4, UINT32_MAX },
		{ 24, 4, UINT32_MAX }, { 24, 4, 1000 },
	};
	struct sframe t;
	struct made m;

	(void)state;
	for (uint8_t version = 1; version <= 3; version++)
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			make(&m, version, (uint8_t)(i & 1));
			m.len = m.there = m.len > 200 ? m.len : 200;
			/* Four functions are as many as there is room for, and behind. */
			if (bad[i].at == 8 && bad[i].v == 4)
				m.len = m.there = m.at + 60;
			put(&m, bad[i].at, bad[i].v, bad[i].len);
			assert_int_equal(open_made(&t, &m), CFI_BAD);
		}
	make(&m, 2, 1);
	m.len = 27;
	assert_int_equal(open_made(&t, &m), CFI_BAD);
	make(&m, 2, 1);
	m.len = SFRAME_MAX_SECTION + 1;
	assert_int_equal(open_made(&t, &m), CFI_BAD);
	make(&m, 2, 1);
	assert_int_equal(sframe_open(&t, &(struct cfi_source){ read_made, &m }, UINT64_MAX - 8, 64),
			 CFI_BAD);
}

/* Each shorter section is refused, or does not tell; where bytes are missing that is a hole. */
static void truncated(void **state)
{
	struct cfi_row row;
	struct made m;
	size_t whole;

	(void)state;
	for (uint8_t version = 1; version <= 3; version++)
		for (uint8_t flags = 0; flags < 2; flags++) {
			make(&m, version, flags);
			whole = m.len;
			for (m.len = m.there = 0; m.len < whole; m.there = ++m.len)
				assert_int_equal(row_at(&m, CODE + 0x2000 + 11, &row), CFI_BAD);
			for (m.there = 0; m.there < whole; m.there++)
				assert_int_equal(row_at(&m, CODE + 0x203f, &row), CFI_HOLE);
			assert_int_equal(row_at(&m, CODE + 0x203f, &row), CFI_FOUND);
		}
}

static void bad_rows(struct made *m)
{
	struct cfi_row row;

	write_section(m);
	assert_int_equal(row_at(m, CODE + 0x1e, &row), CFI_BAD);
	make(m, m->version, m->flags);
}

static void functions(void **state)
{
	struct cfi_row row;
	struct made m;

	(void)state;
	for (uint8_t version = 1; version <= 3; version++) {
		make(&m, version, 1);
		m.func[0].form = 3; /* sizes of begins */
		bad_rows(&m);
		m.func[0].form = 0x20; /* signed return addresses */
		bad_rows(&m);
		m.func[0].form = 0x40;
		bad_rows(&m);
		m.func[0].rows[1] = ROW(1, 1, 3); /* sizes of words */
		bad_rows(&m);
		m.func[0].rows[1] = ROW(1, 1, 0) | 0x80;
		bad_rows(&m);
		m.func[0].rows[1] = ROW(1, 3, 0); /* three words */
		m.func[0].rows[6] = 0x7f;
		bad_rows(&m);
		m.func[0].rows[7] = 0; /* begins that go back */
		bad_rows(&m);
		m.func[0].nrows = 60000; /* more rows than there are bytes */
		bad_rows(&m);
		if (version == 2) {
			m.func[0].form = 0x10;
			m.func[0].repeats = 0;
			bad_rows(&m);
		}
		if (version == 3) {
			m.func[0].type = 2;
			bad_rows(&m);
			m.func[0].type = 0x20;
			bad_rows(&m);
		}
		/* Rows somewhere else. */
		write_section(&m);
		put(&m, m.at + (version == 3 ? 12 : 8), UINT32_MAX, 4);
		assert_int_equal(row_at(&m, CODE + 4, &row), CFI_BAD);
		put(&m, m.at + (version == 3 ? 12 : 8), m.len - m.rows_at - 1, 4);
		assert_int_equal(row_at(&m, CODE + 4, &row), CFI_BAD);
		/* Without rows; with a first one that begins later. */
		make(&m, version, 1);
		m.func[0].nrows = 0;
		write_section(&m);
		assert_int_equal(row_at(&m, CODE + 4, &row), CFI_NONE);
		make(&m, version, 1);
		m.func[0].rows[0] = 1;
		write_section(&m);
		assert_int_equal(row_at(&m, CODE, &row), CFI_NONE);
		expect(&m, CODE + 4, CFI_RBP, 16, -16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),  cmocka_unit_test(sizes),	  cmocka_unit_test(orders),
		cmocka_unit_test(no_caller), cmocka_unit_test(flexible),  cmocka_unit_test(headers),
		cmocka_unit_test(truncated), cmocka_unit_test(functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
