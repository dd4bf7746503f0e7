/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/annotate/annotate.h"

#include "profile/analyse/annotate/arrows.h"
#include "profile/analyse/annotate/align.h"
#include "profile/analyse/annotate/print.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BASE 0xffffffff81000000u

/* As `as` makes them: see the text that is expected. */
static const uint8_t code[] = {
	0x0f, 0x1f, 0x44, 0x00, 0x00,		  /* 00 nopl: was call __fentry__ */
	0x55,					  /* 05 push %rbp */
	0x48, 0x85, 0xff,			  /* 06 test %rdi,%rdi */
	0x74, 0x0c,				  /* 09 je 17 */
	0x48, 0x8b, 0x05, 0x00, 0x10, 0x00, 0x00, /* 0b mov 0x1000(%rip),%rax */
	0xff, 0xcf,				  /* 12 dec %edi */
	0x75, 0xf0,				  /* 14 jne 06 */
	0x90,					  /* 16 nop */
	0xe8, 0xe4, 0x0f, 0x00, 0x00,		  /* 17 call 1000 */
	0x5d,					  /* 1c pop %rbp */
	0xc3,					  /* 1d ret */
};

static const char *name(void *ctx, uint64_t addr, uint64_t *off)
{
	(void)ctx;
	*off = addr - (BASE + 0x1000);
	return addr >= BASE + 0x1000 && addr < BASE + 0x1010 ? "target\033[2J" : NULL;
}

static bool line(void *ctx, uint64_t addr, struct annotate_line *out)
{
	(void)ctx;
	*out = (struct annotate_line){ "f", "/src/dir/f.c", addr < BASE + 0x17 ? 10 : 12 };
	if (addr - BASE >= 6 && addr - BASE < 0x0b)
		out->function = "inlined";
	return addr != BASE + 5;
}

static const char *source(void *ctx, const char *file, unsigned int n)
{
	(void)ctx;
	(void)file;
	return n == 12 ? "\treturn g(\001);\nnot this" : NULL;
}

static const struct annotate_hit hits[] = {
	{ BASE + 6, 300, 3 },	{ BASE + 0x0b, 500, 5 }, { BASE + 0x0d, 100, 1 },
	{ BASE + 0x1d, 50, 1 }, { BASE + 0x1e, 50, 1 }, /* behind the end */
};

static struct annotate_input input(void)
{
	return (struct annotate_input){
		.addr = BASE,
		.live = code,
		.len = sizeof(code),
		.hit = hits,
		.nhits = 5,
		.function = "f",
		.name = name,
	};
}

static struct annotate *build(const struct annotate_input *in)
{
	struct annotate *a = NULL;
	struct err e = { 0 };

	if (annotate_build(&a, in, &e) < 0)
		fail_msg("%s", e.text);
	return a;
}

static void expect(const struct annotate *a, const struct annotate_style *style, const char *want)
{
	struct buf b;

	buf_init(&b);
	annotate_print(&b, a, style);
	buf_u8(&b, 0);
	assert_string_equal((const char *)b.data, want);
	buf_deinit(&b);
}

static void plain(void **state)
{
	const struct annotate_style style = { 0 };
	struct annotate_input in = input();
	struct annotate *a = build(&in);

	(void)state;
	expect(a, &style,
	       "    0.00 : ffffffff81000000:          nopl    (%rax, %rax)\n"
	       "    0.00 : ffffffff81000005:          pushq   %rbp\n"
	       "   30.00 : ffffffff81000006:      /-> testq   %rdi, %rdi\n"
	       "    0.00 : ffffffff81000009:    /-|-- je      ffffffff81000017 <f+0x17>\n"
	       "   60.00 : ffffffff8100000b:    | |   movq    0x1000(%rip), %rax        # "
	       "ffffffff81001012\n"
	       "    0.00 : ffffffff81000012:    | |   decl    %edi\n"
	       "    0.00 : ffffffff81000014:    | \\-- jne     ffffffff81000006 <f+0x6>\n"
	       "    0.00 : ffffffff81000016:    |     nop\n"
	       "    0.00 : ffffffff81000017:    \\---> callq   ffffffff81001000 <target?[2J>\n"
	       "    0.00 : ffffffff8100001c:          popq    %rbp\n"
	       "    5.00 : ffffffff8100001d:          retq\n");
	assert_int_equal(a->samples, 11);
	assert_int_equal(a->weight, 1000);
	assert_int_equal(a->outside, 50);
	annotate_destroy(a);
}

/* Below a call are the samples whose stacks pass through it; the address is inside of it. */
static void with_callees(void **state)
{
	static const struct annotate_hit below[] = { { BASE + 0x1b, 4000, 4 } };
	struct annotate_style style = { .children = true, .counts = ANNOTATE_SAMPLES };
	struct annotate_input in = input();
	struct annotate *a;
	struct buf b;

	(void)state;
	in.below = below;
	in.nbelow = 1;
	in.whole = 5000;
	a = build(&in);
	buf_init(&b);
	annotate_print_columns(&b, &style);
	buf_u8(&b, '\n');
	annotate_print(&b, a, &style);
	buf_u8(&b, 0);
	assert_memory_equal(b.data, "Children    Samples     Self    Samples \n", 41);
	assert_non_null(strstr((char *)b.data,
			       "\n    6.00          3     6.00          3 : ffffffff81000006:"));
	assert_non_null(strstr((char *)b.data,
			       "\n   80.00          4     0.00          0 : ffffffff81000017:"));
	assert_int_equal(a->row[8].below_weight, 4000);
	assert_int_equal(a->weight, 1000);
	buf_deinit(&b);
	annotate_destroy(a);
}

/* The head has one instruction more before the loop, and its call has moved. */
static void aligned(void **state)
{
	static const uint8_t more[] = "\x0f\x1f\x44\x00\x00" /* nop */
				      "\x55"		     /* push rbp */
				      "\x90"		     /* nop, which is new */
				      "\x48\x85\xff";	     /* test rdi, rdi */
	struct annotate_input in = input(), with = input();
	struct annotate_pair *pair = NULL;
	struct annotate *base, *head;
	struct err e = { 0 };
	size_t n = 0;

	(void)state;
	in.len = 9;
	with.live = more;
	with.len = sizeof(more) - 1;
	in.nhits = with.nhits = 0;
	base = build(&in);
	head = build(&with);
	assert_int_equal(base->nrows, 3);
	assert_int_equal(head->nrows, 4);
	assert_int_equal(annotate_align(base, head, &pair, &n, &e), 0);
	assert_int_equal(n, 4);
	assert_true(pair[0].base == 0 && pair[0].head == 0);
	assert_true(pair[1].base == 1 && pair[1].head == 1);
	assert_true(pair[2].base == ANNOTATE_NO_ROW && pair[2].head == 2);
	assert_true(pair[3].base == 2 && pair[3].head == 3);
	free(pair);
	assert_int_equal(annotate_align(head, base, &pair, &n, &e), 0);
	assert_true(n == 4 && pair[2].base == 2 && pair[2].head == ANNOTATE_NO_ROW);
	free(pair);
	annotate_destroy(base);
	annotate_destroy(head);
}

static void patched(void **state)
{
	struct annotate_style style = { .color = true };
	struct annotate_input in = input();
	uint8_t image[sizeof(code)];
	struct annotate *a;
	struct json_writer w;
	struct buf b;

	(void)state;
	memcpy(image, code, sizeof(code));
	/* call at the start; one long instruction in the place of three at 0x12. */
	memcpy(image, "\xe8\xfb\x0f\x00\x00", 5);
	memcpy(image + 0x12, "\x0f\x1f\x44\x00\x00", 5);
	in.image = image;
	in.syntax = DISASM_INTEL;
	a = build(&in);
	assert_int_equal(a->ndiffer, 4);
	buf_init(&b);
	annotate_print(&b, a, &style);
	buf_u8(&b, 0);
	assert_non_null(strstr((char *)b.data,
			       "nop     dword ptr [rax + rax]\033[33m        # image: "
			       "call ffffffff81001000 <target?[2J>\033[m\n"));
	assert_non_null(strstr((char *)b.data,
			       "dec     edi\033[33m        # image: nop dword ptr [rax "
			       "+ rax]\033[m\n"));
	assert_non_null(
		strstr((char *)b.data, "<f+0x6>\033[33m        # image: (as above)\033[m\n"));
	assert_non_null(strstr((char *)b.data, "\033[31m   60.00\033[m : "));
	b.len = 0;
	json_begin(&w, &b);
	annotate_json(&w, NULL, a, false);
	buf_u8(&b, 0);
	assert_non_null(
		strstr((char *)b.data,
		       "{\"address\":\"0xffffffff81000000\",\"bytes\":\"0f1f440000\","
		       "\"text\":\"nop dword ptr [rax + rax]\",\"percent\":0.0000,\"weight\":0,"
		       "\"samples\":0,\"differs\":true,\"image\":[\"call ffffffff81001000 "
		       "<target?[2J>\"]},\n"));
	assert_non_null(strstr((char *)b.data,
			       "\"target\":\"0xffffffff81001000\",\"target_symbol\":"
			       "\"target\\u001b[2J\",\"differs\":false"));
	buf_deinit(&b);
	annotate_destroy(a);
}

static void with_source(void **state)
{
	const struct annotate_style style = { .source = source };
	const struct annotate_style full = { .full_path = true };
	struct annotate_input in = input();
	struct annotate *a;
	struct buf b;

	(void)state;
	in.line = line;
	a = build(&in);
	buf_init(&b);
	annotate_print(&b, a, &style);
	buf_u8(&b, 0);
	assert_int_equal(strncmp((char *)b.data, "         :  f.c:10\n    0.00 : ", 30), 0);
	assert_non_null(strstr((char *)b.data, "pushq   %rbp\n         :  inlined():\n         :  "
					       "f.c:10\n   30.00 : "));
	assert_non_null(strstr((char *)b.data, "         :  f.c:12   return g(?);\n    0.00 : "));
	assert_null(strstr((char *)b.data, "not this"));
	b.len = 0;
	annotate_print(&b, a, &full);
	buf_u8(&b, 0);
	assert_non_null(strstr((char *)b.data, "         :  /src/dir/f.c:12\n"));
	buf_deinit(&b);
	annotate_destroy(a);
}

/* Bytes that are no instruction are shown as bytes, and the next instruction is right again. */
static void bytes(void **state)
{
	static const uint8_t odd[] = { 0x06, 0x90, 0x48, 0x8b };
	const struct annotate_style style = { 0 };
	struct annotate_input in = { .addr = 0x1000, .live = odd, .len = 4, .function = "f" };
	struct annotate *a = build(&in);

	(void)state;
	expect(a, &style,
	       "    0.00 :             1000:      .byte   0x06\n"
	       "    0.00 :             1001:      nop\n"
	       "    0.00 :             1002:      .byte   0x48\n"
	       "    0.00 :             1003:      .byte   0x8b\n");
	annotate_destroy(a);
}

/* More arrows than lanes: nested jumps, of which the inner ones are drawn. */
static void many_arrows(void **state)
{
	uint8_t nest[4 * 12 + 1];
	struct annotate_input in = {
		.addr = 0, .live = nest, .len = sizeof(nest), .function = "f"
	};
	struct annotate *a;
	char text[2 * ANNOTATE_MAX_LANES + 2];

	(void)state;
	memset(nest, 0x90, sizeof(nest));
	for (unsigned int i = 0; i < 12; i++) {
		nest[2 * i] = 0xeb; /* jmp to the i-th byte from the end */
		nest[2 * i + 1] = (uint8_t)(sizeof(nest) - 1 - i - (2 * i + 2));
	}
	a = build(&in);
	assert_int_equal(a->lanes, ANNOTATE_MAX_LANES);
	assert_int_equal(a->narrows, 8);
	assert_int_equal(a->undrawn, 4);
	for (size_t i = 0; i < a->nrows; i++) {
		annotate_draw(a, i, text);
		assert_int_equal(strlen(text), 2 * ANNOTATE_MAX_LANES + 1);
	}
	annotate_draw(a, 11, text);
	assert_string_equal(text, "| | | | | | | /--");
	annotate_destroy(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),       cmocka_unit_test(with_callees),
		cmocka_unit_test(aligned),     cmocka_unit_test(patched),
		cmocka_unit_test(with_source), cmocka_unit_test(bytes),
		cmocka_unit_test(many_arrows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
