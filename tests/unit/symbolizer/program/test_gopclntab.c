/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A Go program's own tables: its rows against the .debug_frame of the same program, its names
 * against the symbols that a stripped copy lacks; and tables that lie.
 */
#include "symbolizer/program/gopclntab.h"

#include "base/file.h"
#include "symbolizer/program/userelf.h"
#include "symbolizer/program/userelf_cfi.h"
#include "tests/unit/skip.h"

#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DIR_NAME "/tmp/kvmprof-go-XXXXXX"
#define PROGRAM                                                                          \
	"package main\nimport (\"fmt\"; \"os\"; \"sort\")\n"                             \
	"func main() { a := os.Args; sort.Slice(a, func(i, j int) bool { return a[i] < " \
	"a[j] }); fmt.Println(a) }\n"

static char dir[] = DIR_NAME;
static bool built;

struct program {
	struct file_map map;
	struct file_bytes bytes;
	struct file_source src;
	struct userelf u;
};

static void load(struct program *p, const char *name)
{
	char path[128];
	struct err e = { 0 };

	memset(p, 0, sizeof(*p));
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (file_map_open(&p->map, path, 1u << 28, &e) < 0)
		fail_msg("%s", e.text);
	p->bytes = (struct file_bytes){ p->map.data, p->map.len };
	p->src = filepiece_source_of_bytes(&p->bytes);
	if (userelf_open(&p->u, name, &p->src, &e) < 0)
		fail_msg("%s", e.text);
}

static bool section(const struct program *p, const char *name, Elf64_Shdr *out)
{
	const uint8_t *b = p->bytes.data;
	Elf64_Shdr names;

	memcpy(&names, b + p->u.shoff + p->u.shstrndx * sizeof(names), sizeof(names));
	for (uint32_t i = 0; i < p->u.shnum; i++) {
		memcpy(out, b + p->u.shoff + i * sizeof(*out), sizeof(*out));
		if (!strcmp((const char *)b + names.sh_offset + out->sh_name, name))
			return true;
	}
	return false;
}

static int setup(void **state)
{
	char cmd[1024], path[128];
	FILE *f;

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/p.go", dir);
	f = fopen(path, "we");
	if (!f || fputs(PROGRAM, f) < 0 || fclose(f))
		return -1;
	snprintf(cmd, sizeof(cmd),
		 "cd %s && export GOCACHE=%s/cache GOFLAGS= HOME=%s && "
		 "go build -ldflags=-compressdwarf=false -o plain p.go && "
		 "go build -ldflags='-s -w' -o stripped p.go",
		 dir, dir, dir);
	built = system("go version >/dev/null 2>&1") == 0 && system(cmd) == 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	file_remove_tree(dir, NULL);
	return 0;
}

/* Does Go call it a first function, or one that changes stacks? debug_frame does not know. */
static bool is_end(const struct cfi_row *row)
{
	return row->rule[CFI_RIP].how == CFI_UNDEFINED;
}

static size_t read_frames(void *ctx, uint64_t va, void *dst, size_t len)
{
	const struct file_bytes *b = ctx;

	if (va >= b->len)
		return 0;
	len = len < b->len - va ? len : (size_t)(b->len - va);
	memcpy(dst, b->data + va, len);
	return len;
}

static void compare(const char *name)
{
	struct program p;
	Elf64_Shdr h, text;
	struct gopclntab t;
	struct file_bytes frames;
	struct cfi_table truth;
	struct cfi_row go, frame;
	unsigned long same = 0, ends = 0, code = 0;

	load(&p, name);
	assert_true(section(&p, ".text", &text));
	assert_true(section(&p, ".gopclntab", &h) || section(&p, ".data.rel.ro.gopclntab", &h));
	assert_int_equal(gopclntab_open(&t, &p.src, h.sh_offset, h.sh_size, text.sh_addr),
			 CFI_FOUND);
	assert_true(section(&p, ".debug_frame", &h));
	frames = (struct file_bytes){ p.bytes.data + h.sh_offset, h.sh_size };
	assert_int_equal(
		cfi_table_by_section(&truth, &(struct cfi_section){ .src = { read_frames, &frames },
								    .kind = CFI_DEBUG_FRAME,
								    .len = h.sh_size }),
		CFI_FOUND);
	for (uint64_t va = text.sh_addr; va < text.sh_addr + text.sh_size; va += 3) {
		if (cfi_table_row(&truth, va, &frame) != CFI_FOUND)
			continue;
		code++;
		if (gopclntab_row(&t, va, &go) != CFI_FOUND)
			continue;
		assert_int_equal(frame.cfa_reg, CFI_RSP);
		assert_int_equal(go.cfa_reg, CFI_RSP);
		if (go.cfa != frame.cfa)
			fail_msg("%s: at %#llx %d, .debug_frame has %d", name,
				 (unsigned long long)va, go.cfa, frame.cfa);
		ends += is_end(&go);
		same += !is_end(&go);
	}
	print_message("%s: %lu of %lu places, %lu more without a caller\n", name, same, code, ends);
	assert_true(code > 100000);
	assert_true(same + ends >= code - code / 200);
	assert_true(ends < code / 50);
	cfi_table_deinit(&truth);
	file_map_close(&p.map);
}

static void rows_as_debug_frame(void **state)
{
	(void)state;
	if (!built)
		SKIP("no Go compiler here");
	compare("plain");
}

/* By the file as a guest's: no .symtab, no .debug_frame. */
static void stripped(void **state)
{
	struct program whole, bare;
	struct symtab *a, *b;
	struct userelf_names n;
	struct userelf_cfi *cfi;
	struct cfi_row row;
	struct err e = { 0 };
	unsigned long same = 0, asked = 0;

	(void)state;
	if (!built)
		SKIP("no Go compiler here");
	load(&whole, "plain");
	load(&bare, "stripped");
	assert_int_equal(userelf_symbols(&whole.u, &a, &n, &e), 0);
	assert_int_equal(n.from_go, 0);
	assert_int_equal(userelf_symbols(&bare.u, &b, &n, &e), 0);
	assert_true(n.from_go > 1000);
	assert_int_equal(n.from_go, n.from_symtab);
	assert_int_equal(userelf_cfi_open(&cfi, &bare.u), CFI_FOUND);
	for (size_t i = 0; i < symtab_count(a); i++) {
		const struct symbol *s = symtab_at(a, i);
		const struct symbol *t;
		uint64_t off;

		if (strncmp(s->name, "main.", 5) && strncmp(s->name, "fmt.", 4))
			continue;
		asked++;
		t = symtab_lookup(b, s->addr, &off);
		same += t && !off && !strcmp(s->name, t->name);
		assert_int_equal(userelf_cfi_row(cfi, s->addr, &row), CFI_FOUND);
		assert_int_equal(row.cfa, 8); /* at its entry */
	}
	assert_true(asked > 20);
	assert_int_equal(same, asked);
	userelf_cfi_destroy(cfi);
	symtab_destroy(a);
	symtab_destroy(b);
	file_map_close(&whole.map);
	file_map_close(&bare.map);
}

/* -- made by hand ------------------------------------------------------------------ */

struct made {
	uint8_t b[512];
	struct file_bytes bytes;
	struct file_source src;
};

static void put(struct made *m, size_t at, uint64_t v, size_t n)
{
	memcpy(m->b + at, &v, n);
}

/* Two functions, at 0x1000 and 0x1040, up to 0x1080. */
static void make(struct made *m)
{
	static const uint8_t pcsp[] = { 2, 4, 0x90, 1, 0x38, 0x8f, 1, 4, 0 };

	memset(m, 0, sizeof(*m));
	put(m, 0, 0xfffffff1u, 4);
	m->b[6] = 1;
	m->b[7] = 8;
	put(m, 8, 2, 8);
	put(m, 24, 0x1000, 8);
	put(m, 32, 80, 8);  /* names */
	put(m, 56, 100, 8); /* pctab */
	put(m, 64, 200, 8); /* functab */
	memcpy(m->b + 80, "a.one\0a.two", 12);
	memcpy(m->b + 101, pcsp, sizeof(pcsp));
	for (unsigned int i = 0; i < 2; i++) {
		put(m, 200 + 8 * i, 0x40 * i, 4);
		put(m, 204 + 8 * i, 32 + 60 * i, 4);
		put(m, 232 + 60 * i, 0x40 * i, 4);
		put(m, 236 + 60 * i, 6 * i, 4);
		put(m, 248 + 60 * i, 1, 4);
	}
	put(m, 216, 0x80, 4);
	m->b[232 + 60 + 41] = 1; /* the second one is the first of a stack */
	m->bytes = (struct file_bytes){ m->b, sizeof(m->b) };
	m->src = filepiece_source_of_bytes(&m->bytes);
}

static void by_hand(void **state)
{
	struct gopclntab_func f;
	struct gopclntab t;
	struct cfi_row row;
	struct made m;

	(void)state;
	make(&m);
	assert_int_equal(gopclntab_open(&t, &m.src, 0, m.bytes.len, 0), CFI_FOUND);
	assert_int_equal(gopclntab_row(&t, 0x1003, &row), CFI_FOUND);
	assert_int_equal(row.cfa, 8);
	assert_int_equal(gopclntab_row(&t, 0x1004, &row), CFI_FOUND);
	assert_int_equal(row.cfa, 80);
	assert_int_equal(gopclntab_row(&t, 0x103c, &row), CFI_FOUND);
	assert_int_equal(row.cfa, 8);
	assert_int_equal(gopclntab_row(&t, 0x1044, &row), CFI_FOUND);
	assert_int_equal(row.rule[CFI_RIP].how, CFI_UNDEFINED);
	assert_int_equal(gopclntab_row(&t, 0xfff, &row), CFI_NONE);
	assert_int_equal(gopclntab_row(&t, 0x1080, &row), CFI_NONE);
	assert_int_equal(gopclntab_func_at(&t, 1, &f), CFI_FOUND);
	assert_string_equal(f.name, "a.two");
	assert_int_equal(f.start, 0x1040);
	assert_int_equal(f.end, 0x1080);
	assert_int_equal(gopclntab_func_at(&t, 2, &f), CFI_BAD);
	/* In a program that can be loaded anywhere .text tells where its code is. */
	put(&m, 24, 0, 8);
	assert_int_equal(gopclntab_open(&t, &m.src, 0, m.bytes.len, 0x5000), CFI_FOUND);
	assert_int_equal(gopclntab_row(&t, 0x5004, &row), CFI_FOUND);
	assert_int_equal(row.cfa, 80);
}

static void lies(void **state)
{
	struct gopclntab_func f;
	struct gopclntab t;
	struct cfi_row row;
	struct made m;

	(void)state;
	make(&m);
	put(&m, 0, 0xfffffffau, 4); /* Go 1.16 */
	assert_int_equal(gopclntab_open(&t, &m.src, 0, m.bytes.len, 0), CFI_NONE);
	make(&m);
	put(&m, 8, 1u << 30, 8);
	assert_int_equal(gopclntab_open(&t, &m.src, 0, m.bytes.len, 0), CFI_BAD);
	make(&m);
	put(&m, 24, UINT64_MAX, 8); /* code that would wrap around; found by fuzzing */
	assert_int_equal(gopclntab_open(&t, &m.src, 0, m.bytes.len, 0), CFI_BAD);
	make(&m);
	put(&m, 204, 0xfffffff0u, 4);
	assert_int_equal(gopclntab_open(&t, &m.src, 0, m.bytes.len, 0), CFI_FOUND);
	assert_int_equal(gopclntab_row(&t, 0x1004, &row), CFI_BAD);
	make(&m);
	put(&m, 236, 0x7fffffff, 4);
	assert_int_equal(gopclntab_open(&t, &m.src, 0, m.bytes.len, 0), CFI_FOUND);
	assert_int_equal(gopclntab_func_at(&t, 0, &f), CFI_BAD);
	make(&m);
	memset(m.b + 101, 0xff, 60); /* numbers that do not end */
	assert_int_equal(gopclntab_open(&t, &m.src, 0, m.bytes.len, 0), CFI_FOUND);
	assert_int_equal(gopclntab_row(&t, 0x1004, &row), CFI_BAD);
	make(&m);
	/* A section that is not in the file; found by fuzzing. */
	assert_int_equal(gopclntab_open(&t, &m.src, 1, m.bytes.len, 0), CFI_BAD);
	assert_int_equal(gopclntab_open(&t, &m.src, UINT64_MAX, 72, 0), CFI_BAD);
	make(&m);
	m.bytes.len = 240; /* the rest is not in memory */
	assert_int_equal(gopclntab_open(&t, &m.src, 0, sizeof(m.b), 0), CFI_FOUND);
	assert_int_equal(gopclntab_row(&t, 0x1044, &row), CFI_HOLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_as_debug_frame),
		cmocka_unit_test(stripped),
		cmocka_unit_test(by_hand),
		cmocka_unit_test(lies),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
