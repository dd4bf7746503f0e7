/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of this machine's own programs against those of libdw, at instructions all over
 * them; and tables written here, whole and damaged.
 */
#include "symbolizer/cfi/cfi_table.h"

#include "base/file.h"
#include "symbolizer/program/userelf_cfi.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* -- against libdw ------------------------------------------------------------------- */

struct program {
	struct file_map map;
	struct file_bytes bytes;
	struct userelf u;
	struct userelf_cfi *cfi;
	Elf *elf;
	Dwarf_CFI *truth;
	int fd;
};

static bool program_open(struct program *p, const char *path)
{
	struct file_source src;
	struct err e = { 0 };

	if (access(path, R_OK) < 0)
		return false;
	assert_int_equal(file_map_open(&p->map, path, 1u << 30, &e), 0);
	p->bytes = (struct file_bytes){ p->map.data, p->map.len };
	src = filepiece_source_of_bytes(&p->bytes);
	assert_int_equal(userelf_open(&p->u, path, &src, &e), 0);
	assert_int_equal(userelf_cfi_open(&p->cfi, &p->u), CFI_FOUND);
	elf_version(EV_CURRENT);
	p->fd = open(path, O_RDONLY | O_CLOEXEC);
	p->elf = elf_begin(p->fd, ELF_C_READ_MMAP, NULL);
	p->truth = dwarf_getcfi_elf(p->elf);
	assert_non_null(p->truth);
	return true;
}

static void program_close(struct program *p)
{
	dwarf_cfi_end(p->truth);
	elf_end(p->elf);
	close(p->fd);
	userelf_cfi_destroy(p->cfi);
	file_map_close(&p->map);
}

/* Are these operations "register + offset"? Numbers of registers are in the operation, or its operand. */
static bool is_offset(const Dwarf_Op *op, size_t n, unsigned int reg, int64_t off)
{
	if (n != 1)
		return false;
	if (op->atom == DW_OP_bregx)
		return op->number == reg && (int64_t)op->number2 == off;
	return op->atom == DW_OP_breg0 + reg && (int64_t)op->number == off;
}

/* CFA + offset: an offset of 0 may be left out. */
static bool is_at_cfa(const Dwarf_Op *op, size_t n, int64_t off)
{
	if (n < 1 || op[0].atom != DW_OP_call_frame_cfa)
		return false;
	return n == 1 ? off == 0 : op[1].atom == DW_OP_plus_uconst && (int64_t)op[1].number == off;
}

static bool agrees(const struct cfi_row *row, Dwarf_Frame *frame)
{
	Dwarf_Op mem[3], *op;
	size_t n;

	assert_int_equal(dwarf_frame_cfa(frame, &op, &n), 0);
	if (!row->cfa_len && !is_offset(op, n, row->cfa_reg, row->cfa))
		return false;
	for (unsigned int reg = 0; reg < CFI_REGS; reg++) {
		const struct cfi_rule *rule = &row->rule[reg];
		bool undefined, same, ok;

		assert_int_equal(dwarf_frame_register(frame, (int)reg, mem, &op, &n), 0);
		undefined = n == 0 && op == mem;
		same = n == 0 && op == NULL;
		switch (rule->how) {
		case CFI_SAVED:
			ok = is_at_cfa(op, n, rule->value);
			break;
		case CFI_UNDEFINED:
			ok = undefined;
			break;
		case CFI_SAME:
			ok = same;
			break;
		case CFI_DEFAULT:
			/* libdw has its own opinion of what functions keep. */
			ok = undefined || same || reg == CFI_RSP;
			break;
		default:
			ok = n != 0;
		}
		if (!ok) {
			print_error("register %u: rule %u, value %d; libdw has %zu operations\n",
				    reg, rule->how, rule->value, n);
			return false;
		}
	}
	return true;
}

static void rows_of(const char *path)
{
	struct program p = { .fd = -1 };
	unsigned long asked = 0, found = 0, none = 0;
	uint64_t x = 88172645463325252u;

	if (!program_open(&p, path))
		return;
	for (unsigned int i = 0; i < p.u.nseg; i++) {
		const struct userelf_segment *s = &p.u.seg[i];

		for (unsigned int k = 0; k < 4000 && (s->flags & 1); k++) {
			Dwarf_Frame *frame = NULL;
			struct cfi_row row;
			uint64_t va;

			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			va = s->va + x % s->file_len;
			asked++;
			if (dwarf_cfi_addrframe(p.truth, va, &frame)) {
				assert_int_not_equal(userelf_cfi_row(p.cfi, va, &row), CFI_FOUND);
				none++;
				continue;
			}
			if (userelf_cfi_row(p.cfi, va, &row) != CFI_FOUND || !agrees(&row, frame))
				fail_msg("%s: another row at %#llx", path, (unsigned long long)va);
			found++;
			free(frame);
		}
	}
	print_message("%s: %lu rows as libdw's, %lu addresses without\n", path, found, none);
	assert_true(found * 2 > asked);
	program_close(&p);
}

static void as_libdw(void **state)
{
	(void)state;
	rows_of("/bin/bash");
	rows_of("/usr/bin/git");
	rows_of("/lib/x86_64-linux-gnu/libc.so.6");
	rows_of("/lib64/ld-linux-x86-64.so.2");
	rows_of("/proc/self/exe");
}

/* -- tables of our own --------------------------------------------------------------- */

#define BASE 0x400000u
#define CODE 0x500000u

struct bytes {
	uint8_t at[8192];
	size_t len;
	size_t missing; /* from here on; 0: nothing is */
};

static size_t read_bytes(void *ctx, uint64_t va, void *dst, size_t len)
{
	const struct bytes *b = ctx;
	size_t have = b->missing ? b->missing : b->len;

	if (va < BASE || va - BASE >= have)
		return 0;
	if (len > have - (va - BASE))
		len = have - (size_t)(va - BASE);
	memcpy(dst, b->at + (va - BASE), len);
	return len;
}

static void put(struct bytes *b, const void *p, size_t n)
{
	assert_true(n <= sizeof(b->at) - b->len);
	memcpy(b->at + b->len, p, n);
	b->len += n;
}

static void put32(struct bytes *b, uint64_t v)
{
	uint32_t w = (uint32_t)v;

	put(b, &w, 4);
}

/* An entry of .eh_frame: its length is set by end_entry(). Returns where it begins. */
static size_t begin_entry(struct bytes *b)
{
	put32(b, 0);
	return b->len - 4;
}

static void end_entry(struct bytes *b, size_t at)
{
	uint32_t len;

	while ((b->len - at) % 8 != 4)
		b->at[b->len++] = 0;
	len = (uint32_t)(b->len - at - 4);
	memcpy(b->at + at, &len, 4);
}

/* "zR", or "zRS": factors 1 and -8, return address 16, CFA rsp + 8, addresses pcrel sdata4. */
static size_t put_cie(struct bytes *b, const char *letters)
{
	static const uint8_t rest[] = { 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1 };
	size_t at = begin_entry(b);

	put32(b, 0);
	put(b, "\1", 1);
	put(b, letters, strlen(letters) + 1);
	put(b, rest, sizeof(rest));
	end_entry(b, at);
	return at;
}

static size_t put_fde(struct bytes *b, size_t cie, uint64_t start, uint32_t len, const void *insns,
		      size_t n)
{
	size_t at = begin_entry(b);

	put32(b, b->len - cie);
	put32(b, start - (BASE + b->len));
	put32(b, len);
	put(b, "", 1);
	put(b, insns, n);
	end_entry(b, at);
	return at;
}

static enum cfi_found row_at(struct bytes *b, size_t section, uint64_t va, struct cfi_row *row)
{
	struct cfi_section s = {
		.src = { read_bytes, b },
		.kind = CFI_EH_FRAME,
		.va = BASE + section,
		.len = b->len - section,
	};
	struct cfi_table t;
	enum cfi_found found = cfi_table_by_section(&t, &s);

	if (found != CFI_FOUND)
		return found;
	found = cfi_table_row(&t, va, row);
	cfi_table_deinit(&t);
	return found;
}

static void instructions(void **state)
{
	/* push rbp; mov; in between remembered and recalled; the CFA by an expression. */
	static const uint8_t insns[] = {
		0x41, 0x0e, 16,	  0x86, 2,	       /* +1: CFA rsp+16, rbp at CFA-16 */
		0x43, 0x0d, 6,			       /* +4: CFA rbp+16 */
		0x0a, 0x41, 0x0c, 7,	8,    0xc6,    /* +5: CFA rsp+8, rbp as before */
		0x41, 0x0b,			       /* +6: as at +4 */
		0x02, 10,   0x0f, 3,	0x77, 8,    6, /* +16: CFA is what is at rsp+8 */
	};
	struct bytes b = { .len = 0 };
	size_t cie = put_cie(&b, "zR");
	struct cfi_row row;

	(void)state;
	put_fde(&b, cie, CODE, 32, insns, sizeof(insns));
	assert_int_equal(row_at(&b, 0, CODE, &row), CFI_FOUND);
	assert_int_equal(row.cfa_reg, CFI_RSP);
	assert_int_equal(row.cfa, 8);
	assert_int_equal(row.rule[CFI_RIP].how, CFI_SAVED);
	assert_int_equal(row.rule[CFI_RIP].value, -8);
	assert_int_equal(row.rule[CFI_RBP].how, CFI_DEFAULT);
	assert_int_equal(row_at(&b, 0, CODE + 3, &row), CFI_FOUND);
	assert_int_equal(row.cfa, 16);
	assert_int_equal(row.rule[CFI_RBP].value, -16);
	assert_int_equal(row_at(&b, 0, CODE + 4, &row), CFI_FOUND);
	assert_int_equal(row.cfa_reg, CFI_RBP);
	assert_int_equal(row.cfa, 16);
	assert_int_equal(row_at(&b, 0, CODE + 5, &row), CFI_FOUND);
	assert_int_equal(row.cfa_reg, CFI_RSP);
	assert_int_equal(row.rule[CFI_RBP].how, CFI_DEFAULT);
	assert_int_equal(row_at(&b, 0, CODE + 15, &row), CFI_FOUND);
	assert_int_equal(row.cfa_reg, CFI_RBP);
	assert_int_equal(row_at(&b, 0, CODE + 31, &row), CFI_FOUND);
	assert_int_equal(row.cfa_len, 3);
	assert_memory_equal(row.expr + row.cfa, "\x77\x08\x06", 3);
	assert_int_equal(row_at(&b, 0, CODE + 32, &row), CFI_NONE);
	assert_int_equal(row_at(&b, 0, CODE - 1, &row), CFI_NONE);
}

static void damaged(void **state)
{
	static const struct {
		const char *what;
		uint8_t insns[16];
		size_t n;
	} bad[] = {
		{ "recalled, never remembered", { 0x0b }, 1 },
		{ "an instruction that is not known", { 0x3f }, 1 },
		{ "a number without an end",
		  { 0x0e, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01 },
		  12 },
		{ "an expression longer than the entry", { 0x0f, 0x70, 0x77 }, 3 },
		{ "a CFA by a register that there is not", { 0x0c, 99, 8 }, 3 },
		{ "an offset that does not fit", { 0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f }, 7 },
		{ "part of a CFA that is an expression", { 0x0f, 1, 0x30, 0x0e, 16 }, 5 },
	};
	struct cfi_row row;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct bytes b = { .len = 0 };
		size_t cie = put_cie(&b, "zR");

		put_fde(&b, cie, CODE, 32, bad[i].insns, bad[i].n);
		if (row_at(&b, 0, CODE + 1, &row) != CFI_BAD)
			fail_msg("%s: not refused", bad[i].what);
	}
}

static void forms(void **state)
{
	static const uint8_t none[1] = { 0 };
	struct bytes b = { .len = 0 }, huge = { .len = 0 };
	struct cfi_row row;
	size_t cie = put_cie(&b, "zRS"), first;

	(void)state;
	/*
	 * If two entries overlap, the one that begins last counts; addresses after its end have
	 * none.
	 */
	put_fde(&b, cie, CODE, 64, none, 1);
	put_fde(&b, cie, CODE + 16, 16, none, 1);
	assert_int_equal(row_at(&b, 0, CODE + 20, &row), CFI_FOUND);
	assert_true(row.is_signal);
	assert_int_equal(row_at(&b, 0, CODE + 40, &row), CFI_NONE);
	/* Bytes that are missing: at the entry's begin, in its middle. */
	b.missing = b.len - 2;
	assert_int_equal(row_at(&b, 0, CODE, &row), CFI_HOLE);
	b.missing = 2;
	assert_int_equal(row_at(&b, 0, CODE, &row), CFI_HOLE);
	b.missing = 0;
	/* Its CIE is an FDE, which would go on for ever. */
	b.len = 0;
	cie = put_cie(&b, "zR");
	first = put_fde(&b, cie, CODE, 16, none, 1);
	put_fde(&b, first, CODE + 32, 16, none, 1);
	assert_int_equal(row_at(&b, 0, CODE, &row), CFI_BAD);
	/* Letters that are not known. */
	b.len = 0;
	cie = put_cie(&b, "eh");
	put_fde(&b, cie, CODE, 16, none, 1);
	assert_int_equal(row_at(&b, 0, CODE, &row), CFI_BAD);
	b.len = 0;
	cie = put_cie(&b, "zRzzzzzzzzzzzzzzzzzzzzzzzzzz");
	put_fde(&b, cie, CODE, 16, none, 1);
	assert_int_equal(row_at(&b, 0, CODE, &row), CFI_BAD);
	/* Longer than any entry may be. */
	put32(&huge, 0x7fffffff);
	put32(&huge, 0);
	assert_int_equal(row_at(&huge, 0, CODE, &row), CFI_BAD);
}

static void header(void **state)
{
	static const uint8_t none[1] = { 0 };
	struct cfi_source src;
	struct bytes b = { .len = 0 };
	struct cfi_table t;
	struct cfi_row row;
	size_t cie = put_cie(&b, "zR"), fde[300], hdr;
	uint64_t frame;

	(void)state;
	for (unsigned int i = 0; i < 150; i++)
		fde[i] = put_fde(&b, cie, CODE + 64 * i, 32, none, 1);
	hdr = b.len;
	put(&b, "\x01\x1b\x03\x3b", 4);
	put32(&b, 0 - (uint64_t)b.len);
	put32(&b, 150);
	for (unsigned int i = 0; i < 150; i++) {
		put32(&b, CODE + 64 * i - BASE - hdr);
		put32(&b, fde[i] - hdr);
	}
	src = (struct cfi_source){ read_bytes, &b };
	assert_int_equal(cfi_table_by_header(&t, &src, BASE + hdr, b.len - hdr, &frame), CFI_FOUND);
	assert_int_equal(frame, BASE);
	for (unsigned int i = 0; i < 150; i++) {
		assert_int_equal(cfi_table_row(&t, CODE + 64 * i, &row), CFI_FOUND);
		assert_int_equal(cfi_table_row(&t, CODE + 64 * i + 31, &row), CFI_FOUND);
		assert_int_equal(cfi_table_row(&t, CODE + 64 * i + 32, &row), CFI_NONE);
	}
	assert_int_equal(cfi_table_row(&t, CODE - 1, &row), CFI_NONE);
	/* More entries than there is room for; of no known form; a version to come; without a table. */
	b.at[hdr + 8] = 151;
	assert_int_equal(cfi_table_by_header(&t, &src, BASE + hdr, b.len - hdr, &frame), CFI_BAD);
	b.at[hdr + 8] = 150;
	b.at[hdr + 3] = 0x0b;
	assert_int_equal(cfi_table_by_header(&t, &src, BASE + hdr, b.len - hdr, &frame), CFI_BAD);
	b.at[hdr + 3] = 0xff;
	assert_int_equal(cfi_table_by_header(&t, &src, BASE + hdr, b.len - hdr, &frame), CFI_NONE);
	b.at[hdr] = 2;
	assert_int_equal(cfi_table_by_header(&t, &src, BASE + hdr, b.len - hdr, &frame), CFI_BAD);
}

/* -- steps --------------------------------------------------------------------------- */

static bool read_stack(void *ctx, uint64_t va, uint64_t *out)
{
	const uint64_t *word = ctx;

	if (va < 0x1000 || va >= 0x1000 + 64 || va % 8)
		return false;
	*out = word[(va - 0x1000) / 8];
	return true;
}

static void steps(void **state)
{
	uint64_t word[8] = { 1, 2, 3, 0x5555, 0x400123, 6, 7, 8 };
	struct cfi_stack stack = { .read = read_stack, .ctx = word };
	struct cfi_row row = { .cfa = 40, .cfa_reg = CFI_RSP };
	struct cfi_regs g = { .known = 0 }, out;

	(void)state;
	cfi_set(&g, CFI_RSP, 0x1000);
	cfi_set(&g, CFI_RBX, 77);
	cfi_set(&g, CFI_RAX, 78);
	row.rule[CFI_RIP] = (struct cfi_rule){ .how = CFI_SAVED, .value = -8 };
	row.rule[CFI_RBP] = (struct cfi_rule){ .how = CFI_SAVED, .value = -16 };
	cfi_row_classify(&row);
	assert_int_equal(cfi_step(&row, &g, &stack, &out), CFI_STEP_ON);
	assert_int_equal(out.r[CFI_RIP], 0x400123);
	assert_int_equal(out.r[CFI_RSP], 0x1028);
	assert_int_equal(out.r[CFI_RBP], 0x5555);
	assert_true(cfi_knows(&out, CFI_RBX) && out.r[CFI_RBX] == 77);
	/* A call may have changed it. */
	assert_false(cfi_knows(&out, CFI_RAX));
	assert_false(cfi_knows(&out, CFI_R12));
	/* Behind pop %rbp it is in its register again; what lies below rsp was not copied. */
	cfi_set(&g, CFI_RSP, 0x1020);
	cfi_set(&g, CFI_RBP, 0x6666);
	row.cfa = 8;
	assert_int_equal(cfi_step(&row, &g, &stack, &out), CFI_STEP_ON);
	assert_int_equal(out.r[CFI_RIP], 0x400123);
	assert_int_equal(out.r[CFI_RBP], 0x6666);
	cfi_set(&g, CFI_RSP, 0x1000);
	/* The return address is not there, or the CFA's register is not known. */
	row.cfa = 80;
	assert_int_equal(cfi_step(&row, &g, &stack, &out), CFI_STEP_MISSING);
	assert_int_equal(stack.missing, 0x1048);
	row.cfa_reg = CFI_R12;
	assert_int_equal(cfi_step(&row, &g, &stack, &out), CFI_STEP_UNKNOWN);
	row.rule[CFI_RIP].how = CFI_UNDEFINED;
	assert_int_equal(cfi_step(&row, &g, &stack, &out), CFI_STEP_ROOT);
}

/* Rows as compilers make them, at places on, above and below what is there of the stack. */
static void random_row(struct cfi_row *row, struct cfi_regs *g)
{
	static const uint8_t reg[] = { CFI_RBX, CFI_RBP, CFI_R12, CFI_R13, CFI_R14, CFI_R15 };
	static const uint8_t cfa[] = { CFI_RSP, CFI_RSP, CFI_RBP, CFI_R10 };

	*row = (struct cfi_row){ .cfa = rand() % 12 * 8, .cfa_reg = cfa[rand() % 4] };
	row->rule[CFI_RIP] = (struct cfi_rule){ .how = CFI_SAVED, .value = -8 };
	for (unsigned int i = 0; i < sizeof(reg); i++)
		if (rand() % 3 == 0)
			row->rule[reg[i]] = (struct cfi_rule){ .how = CFI_SAVED,
							       .value = -8 * (rand() % 6 + 1) };
	if (rand() % 16 == 0)
		row->rule[rand() % CFI_REGS].how = (uint8_t)(rand() % (CFI_REGISTER + 1));
	if (rand() % 16 == 0)
		row->is_signal = 1;
	cfi_row_classify(row);
	g->known = 0;
	for (unsigned int i = 0; i < CFI_REGS; i++)
		if (rand() % 8)
			cfi_set(g, i, 0xff0 + (uint64_t)(rand() % 12) * 8);
}

static void plain_steps(void **state)
{
	uint64_t word[8] = { 11, 22, 33, 44, 55, 66, 77, 88 };
	struct cfi_stack stack = { read_stack, word, (uint8_t *)word, 0x1000, sizeof(word), 0 };
	unsigned int plain = 0;

	(void)state;
	srand(1);
	for (unsigned int i = 0; i < 20000; i++) {
		struct cfi_regs g, mine, out;
		struct cfi_plain at;
		struct cfi_row row;

		random_row(&row, &g);
		mine = g;
		if (!cfi_plain_at(&row, &g, &stack, &at))
			continue;
		plain++;
		cfi_plain_apply(&at, &mine);
		assert_false(row.is_signal);
		assert_int_equal(cfi_step(&row, &g, &stack, &out), CFI_STEP_ON);
		assert_int_equal(mine.known, out.known);
		for (unsigned int reg = 0; reg < CFI_REGS; reg++)
			if (cfi_knows(&out, reg))
				assert_int_equal(mine.r[reg], out.r[reg]);
	}
	assert_true(plain > 1000);
}

/* The linker's rule for a procedure linkage table: 8 more in the last part of 16 bytes. */
static void expressions(void **state)
{
	static const uint8_t plt[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 };
	static const uint8_t loop[] = { 0x30, 0x2f, 0xfc, 0xff };
	static const uint8_t deep[] = { 0x30, 0x12, 0x2f, 0xfc, 0xff };
	uint64_t word[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	struct cfi_stack stack = { .read = read_stack, .ctx = word };
	struct cfi_row row = { .cfa_len = sizeof(plt), .expr_len = sizeof(plt) };
	struct cfi_regs g = { .known = 0 }, out;

	(void)state;
	memcpy(row.expr, plt, sizeof(plt));
	row.rule[CFI_RIP] = (struct cfi_rule){ .how = CFI_SAVED, .value = -8 };
	cfi_row_classify(&row);
	cfi_set(&g, CFI_RSP, 0x1008);
	cfi_set(&g, CFI_RIP, 0x401030);
	assert_int_equal(cfi_step(&row, &g, &stack, &out), CFI_STEP_ON);
	assert_int_equal(out.r[CFI_RSP], 0x1010);
	assert_int_equal(out.r[CFI_RIP], 1);
	cfi_set(&g, CFI_RIP, 0x40103b);
	assert_int_equal(cfi_step(&row, &g, &stack, &out), CFI_STEP_ON);
	assert_int_equal(out.r[CFI_RSP], 0x1018);
	/* They end although they do not. */
	row.cfa_len = sizeof(loop);
	memcpy(row.expr, loop, sizeof(loop));
	assert_int_equal(cfi_step(&row, &g, &stack, &out), CFI_STEP_UNKNOWN);
	row.cfa_len = sizeof(deep);
	memcpy(row.expr, deep, sizeof(deep));
	assert_int_equal(cfi_step(&row, &g, &stack, &out), CFI_STEP_UNKNOWN);
	/* Nothing on the stack; a division by 0. */
	row.cfa_len = 1;
	row.expr[0] = 0x22;
	assert_int_equal(cfi_step(&row, &g, &stack, &out), CFI_STEP_UNKNOWN);
	row.cfa_len = 3;
	memcpy(row.expr, "\x31\x30\x1b", 3);
	assert_int_equal(cfi_step(&row, &g, &stack, &out), CFI_STEP_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_libdw),    cmocka_unit_test(instructions),
		cmocka_unit_test(damaged),     cmocka_unit_test(forms),
		cmocka_unit_test(header),      cmocka_unit_test(steps),
		cmocka_unit_test(plain_steps), cmocka_unit_test(expressions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
