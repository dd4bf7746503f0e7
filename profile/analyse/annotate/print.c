/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/annotate/print.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "profile/analyse/annotate/arrows.h"

#include <inttypes.h>
#include <string.h>

#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define BLUE "\033[34m"
#define NORMAL "\033[m"

/* with the blank before it */
#define SAMPLES_WIDTH 11
#define WEIGHTS_WIDTH 15

/*
 * Appends a name or a line of a file as UTF-8, without control characters, which a terminal would
 * execute.
 */
static void put_clean_part(struct buf *b, const char *s, size_t len)
{
	size_t size = len * strlen(UTF8_REPLACEMENT) + 1;
	cleanup_free char *part = strndup(s, len);
	char *out = (char *)buf_reserve(b, size);

	b->failed |= !part;
	if (b->failed)
		return;
	for (char *c = part; *c; c++)
		*c = *c == '\t' ? ' ' : *c;
	b->len += utf8_clean(out, size, part);
}

static void put_clean(struct buf *b, const char *s)
{
	put_clean_part(b, s, strlen(s));
}

static double percent(const struct annotate *a, uint64_t weight)
{
	return a->whole ? 100.0 * (double)weight / (double)a->whole : 0;
}

static int count_width(const struct annotate_style *style)
{
	return style->counts == ANNOTATE_SAMPLES   ? SAMPLES_WIDTH
	       : style->counts == ANNOTATE_WEIGHTS ? WEIGHTS_WIDTH
						   : 0;
}

void annotate_print_columns(struct buf *out, const struct annotate_style *style)
{
	const char *count = style->counts == ANNOTATE_NO_COUNT	? ""
			    : style->counts == ANNOTATE_SAMPLES ? "Samples"
								: "Count";
	int width = count_width(style);

	if (style->children)
		buf_printf(out, "Children%*s     Self%*s ", width, count, width, count);
	else
		buf_printf(out, " Percent%*s ", width, count);
}

/* -- text ------------------------------------------------------------------------- */

/* Appends `callq ffffffff81001000 <name>`, or `movq 8(%rip), %rax # ffffffff82000000`. */
static void put_insn(struct buf *b, const struct annotate *a, const struct disasm_insn *i,
		     bool align)
{
	char target[ANNOTATE_TARGET];
	bool jumps = i->kind != DISASM_OTHER;

	buf_printf(b, align ? "%-7s " : "%s ", i->mnemonic);
	if (!jumps && !*i->operands && b->len && !b->failed)
		while (b->data[b->len - 1] == ' ')
			b->len--;
	buf_add(b, i->operands, strlen(i->operands));
	if (!i->has_target)
		return;
	buf_printf(b, jumps ? "%" PRIx64 : "        # %" PRIx64, i->target);
	annotate_target(a, i, target);
	if (*target) {
		buf_u8(b, ' ');
		put_clean(b, target);
	}
}

void annotate_put_insn(struct buf *out, const struct annotate *a, const struct disasm_insn *i)
{
	put_insn(out, a, i, false);
}

static bool is_same_line(const struct annotate_line *a, const struct annotate_line *b)
{
	return a->line == b->line &&
	       (a->file == b->file || (a->file && b->file && !strcmp(a->file, b->file))) &&
	       (a->function == b->function ||
		(a->function && b->function && !strcmp(a->function, b->function)));
}

/* Appends blanks, as wide as the columns that put_row() prints before the address. */
static void put_margin(struct buf *b, const struct annotate_style *style)
{
	int width = (style->children ? 2 : 1) * (8 + count_width(style)) + style->children;

	buf_printf(b, "%*s :  ", width, "");
}

/*
 * Appends function, file and line, and the text of the line, where the line changes between
 * instructions.
 */
static void put_line(struct buf *b, const struct annotate *a, size_t row,
		     const struct annotate_style *style)
{
	const struct annotate_line *l = &a->row[row].line;
	const struct annotate_line *last = row ? &a->row[row - 1].line : NULL;
	const char *file = l->file, *text, *slash;

	if (!l->line || (last && is_same_line(l, last)))
		return;
	if (l->function && (last ? !last->function || strcmp(last->function, l->function) != 0
				 : strcmp(l->function, a->in->function) != 0)) {
		put_margin(b, style);
		put_clean(b, l->function);
		buf_printf(b, "():\n");
	}
	text = style->source && file ? style->source(style->source_ctx, file, l->line) : NULL;
	slash = file && !style->full_path ? strrchr(file, '/') : NULL;
	put_margin(b, style);
	buf_printf(b, "%s", style->color ? BLUE : "");
	put_clean(b, !file ? "??" : slash && slash[1] ? slash + 1 : file);
	buf_printf(b, ":%u%s", l->line, style->color ? NORMAL : "");
	if (text) {
		buf_printf(b, "  ");
		put_clean_part(b, text, strcspn(text, "\n"));
	}
	buf_u8(b, '\n');
}

/* perf's limits: MIN_RED and MIN_GREEN of tools/perf/util/color.h (Linux 6.1). */
static const char *color_of(double value)
{
	return value >= 5.0 ? RED : value > 0.5 ? GREEN : "";
}

static void put_share(struct buf *b, const struct annotate *a, uint64_t weight, uint64_t samples,
		      const struct annotate_style *style)
{
	double share = percent(a, weight);

	buf_printf(b, "%s%8.2f%s", style->color ? color_of(share) : "", share,
		   style->color ? NORMAL : "");
	if (style->counts)
		buf_printf(b, "%*" PRIu64, count_width(style),
			   style->counts == ANNOTATE_SAMPLES ? samples : weight);
	buf_u8(b, ' ');
}

static void put_row(struct buf *b, const struct annotate *a, size_t row,
		    const struct annotate_style *style)
{
	const struct annotate_row *r = &a->row[row];
	char arrows[2 * ANNOTATE_MAX_LANES + 2];

	annotate_draw(a, row, arrows);
	if (style->children)
		put_share(b, a, r->weight + r->below_weight, r->samples + r->below_samples, style);
	put_share(b, a, r->weight, r->samples, style);
	buf_printf(b, ": %16" PRIx64 ":  %s%c%s %s ", r->addr, style->color ? YELLOW : "",
		   r->differs ? '*' : ' ', style->color ? NORMAL : "", arrows);
	put_insn(b, a, &r->insn, true);
	if (r->differs) {
		buf_printf(b, "%s        # image:", style->color ? YELLOW : "");
		for (uint32_t i = 0; i < r->nimage; i++) {
			buf_printf(b, i ? "; " : " ");
			put_insn(b, a, &a->image[r->image + i].insn, false);
		}
		buf_printf(b, "%s%s", r->nimage ? "" : " (as above)", style->color ? NORMAL : "");
	}
	buf_u8(b, '\n');
}

void annotate_print(struct buf *out, const struct annotate *a, const struct annotate_style *style)
{
	for (size_t i = 0; i < a->nrows; i++) {
		put_line(out, a, i, style);
		put_row(out, a, i, style);
	}
}

/* -- JSON ------------------------------------------------------------------------- */

static void put_json_insn(struct json_writer *w, const char *key, const struct annotate *a,
			  const struct disasm_insn *i)
{
	struct buf text;

	buf_init(&text);
	put_insn(&text, a, i, false);
	buf_u8(&text, 0);
	if (text.failed)
		w->b->failed = true;
	else
		json_str(w, key, (const char *)text.data);
	buf_deinit(&text);
}

static void put_json_target(struct json_writer *w, const struct annotate *a,
			    const struct disasm_insn *i)
{
	char target[ANNOTATE_TARGET];
	size_t len;

	if (!i->has_target)
		return;
	json_hex(w, "target", i->target);
	annotate_target(a, i, target);
	len = strlen(target);
	if (len < 2)
		return;
	target[len - 1] = '\0';
	json_str(w, "target_symbol", target + 1);
}

static void put_json_row(struct json_writer *w, const struct annotate *a,
			 const struct annotate_row *r, bool children)
{
	const uint8_t *bytes = a->in->live + (r->addr - a->in->addr);
	char hex[2 * UINT8_MAX + 1] = "";

	for (unsigned int i = 0; i < r->insn.len; i++)
		snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
	json_object_begin(w, NULL);
	json_put(w, "address", json_address(r->addr), "bytes", hex);
	put_json_insn(w, "text", a, &r->insn);
	json_put(w, "percent", json_fixed(4, percent(a, r->weight)), "weight", r->weight, "samples",
		 r->samples);
	if (children)
		json_put(w, "children_percent",
			 json_fixed(4, percent(a, r->weight + r->below_weight)), "children_weight",
			 r->weight + r->below_weight, "children_samples",
			 r->samples + r->below_samples);
	put_json_target(w, a, &r->insn);
	if (r->line.line)
		json_put(w, "file", r->line.file ? r->line.file : "??", "line", r->line.line);
	if (r->line.function)
		json_str(w, "line_function", r->line.function);
	if (a->in->image)
		json_bool(w, "differs", r->differs);
	if (r->differs) {
		json_array_begin(w, "image");
		for (uint32_t i = 0; i < r->nimage; i++)
			put_json_insn(w, NULL, a, &a->image[r->image + i].insn);
		json_array_end(w);
	}
	json_object_end(w);
}

void annotate_json(struct json_writer *w, const char *key, const struct annotate *a, bool children)
{
	json_array_begin(w, key);
	for (size_t i = 0; i < a->nrows; i++) {
		json_line(w);
		put_json_row(w, a, &a->row[i], children);
	}
	json_array_end(w);
}
