/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/annotate_diff.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "profile/analyse/annotate/align.h"
#include "profile/analyse/annotate/print.h"
#include "profile/compare/stats/share.h"

#include <inttypes.h>
#include <stdlib.h>

/* What one side has of an instruction. */
struct value {
	const struct annotate_row *row; /* NULL: the side does not have the instruction */
	uint64_t weight, samples;
	double share; /* 0 to 1 */
};

static struct value value_of(const struct annotate_side *s, size_t row, enum annotate_compared what)
{
	struct value v = { 0 };

	if (row == ANNOTATE_NO_ROW)
		return v;
	v.row = &s->a->row[row];
	v.weight = v.row->weight;
	v.samples = v.row->samples;
	if (what == ANNOTATE_WITH_CALLEES) {
		v.weight += v.row->below_weight;
		v.samples += v.row->below_samples;
	}
	v.share = s->a->whole ? (double)v.weight / (double)s->a->whole : 0;
	return v;
}

/* Returns the 95 % noise of a difference, in shares; 0 for exact counts. */
static double noise_of(const struct annotate_side *base, const struct annotate_side *head,
		       const struct value *b, const struct value *h)
{
	if (base->counted || head->counted)
		return 0;
	return share_noise(b->share, (double)base->total_samples, h->share,
			   (double)head->total_samples);
}

static void put_side(struct buf *b, const char *what, const struct annotate_side *s)
{
	buf_printf(b, "# %s %s: %" PRIu64 " %s of %s in %s, %.2f %% of the profile\n", what,
		   s->input, s->counted ? s->weight : s->samples,
		   s->counted ? "counted" : "samples", s->function, s->dso,
		   s->total_weight ? 100 * (double)s->weight / (double)s->total_weight : 0);
}

static void put_text_row(struct buf *out, const struct annotate_side *base,
			 const struct annotate_side *head, const struct value *b,
			 const struct value *h)
{
	const struct annotate_side *shown = h->row ? head : base;
	const struct annotate_row *row = h->row ? h->row : b->row;
	const bool counted = base->counted && head->counted;

	buf_printf(out, "%+9.2f", 100 * (h->share - b->share));
	if (!counted)
		buf_printf(out, " %6.2f", 100 * noise_of(base, head, b, h));
	buf_printf(out, " %6.2f%% %6.2f%% %10" PRIu64 " %10" PRIu64 " : %16" PRIx64 ":  %c ",
		   100 * b->share, 100 * h->share, counted ? b->weight : b->samples,
		   counted ? h->weight : h->samples, row->addr,
		   !b->row   ? '+'
		   : !h->row ? '-'
			     : ' ');
	annotate_put_insn(out, shown->a, &row->insn);
	buf_u8(out, '\n');
}

int annotate_diff_text(struct buf *out, const struct annotate_side *base,
		       const struct annotate_side *head, enum annotate_compared what, struct err *e)
{
	const bool counted = base->counted && head->counted;
	cleanup_free struct annotate_pair *pair = NULL;
	size_t n = 0;
	int ret = annotate_align(base->a, head->a, &pair, &n, e);

	if (ret)
		return ret;
	put_side(out, "base", base);
	put_side(out, "head", head);
	buf_printf(out,
		   "# compared: %s, in percentage points; + and - mark instructions of one side "
		   "only\n#\n#  Change%s    Base    Head  %s: Base %10s : address\n",
		   what == ANNOTATE_SELF ? "self" : "children", counted ? "" : "  Noise",
		   counted ? " Count" : "Samples", "Head");
	for (size_t i = 0; i < n; i++) {
		struct value b = value_of(base, pair[i].base, what);
		struct value h = value_of(head, pair[i].head, what);

		put_text_row(out, base, head, &b, &h);
	}
	return out->failed ? err_nomem(e) : 0;
}

static void put_json_side(struct json_writer *w, const char *key, const struct annotate_side *s)
{
	json_put_object(w, key, "input", s->input, "symbol", s->function, "dso", s->dso, "address",
			json_address(s->a->in->addr), "weight", s->weight, "samples", s->samples,
			"total_weight", s->total_weight, "total_samples", s->total_samples,
			"percent_of", s->a->whole);
}

static void put_json_values(struct json_writer *w, const char *side, const struct value *v)
{
	if (!v->row)
		return;
	json_put_object(w, side, "address", json_address(v->row->addr), "percent",
			json_fixed(4, 100 * v->share), "weight", v->weight, "samples", v->samples);
}

static void put_json_row(struct json_writer *w, const struct annotate_side *base,
			 const struct annotate_side *head, const struct value *b,
			 const struct value *h)
{
	struct buf text;

	buf_init(&text);
	annotate_put_insn(&text, h->row ? head->a : base->a, &(h->row ? h->row : b->row)->insn);
	buf_u8(&text, 0);
	json_line(w);
	json_object_begin(w, NULL);
	w->b->failed |= text.failed;
	if (!text.failed)
		json_str(w, "text", (const char *)text.data);
	json_put(w, "change", json_fixed(4, 100 * (h->share - b->share)));
	if (!base->counted && !head->counted)
		json_put(w, "noise", json_fixed(4, 100 * noise_of(base, head, b, h)));
	put_json_values(w, "base", b);
	put_json_values(w, "head", h);
	json_object_end(w);
	buf_deinit(&text);
}

int annotate_diff_json(struct buf *out, const struct annotate_side *base,
		       const struct annotate_side *head, enum annotate_compared what, struct err *e)
{
	cleanup_free struct annotate_pair *pair = NULL;
	struct json_writer w;
	size_t n = 0;
	int ret = annotate_align(base->a, head->a, &pair, &n, e);

	if (ret)
		return ret;
	json_begin(&w, out);
	json_object_begin(&w, NULL);
	put_json_side(&w, "base", base);
	put_json_side(&w, "head", head);
	json_put(&w, "compared", what == ANNOTATE_SELF ? "self" : "children");
	json_array_begin(&w, "instructions");
	for (size_t i = 0; i < n; i++) {
		struct value b = value_of(base, pair[i].base, what);
		struct value h = value_of(head, pair[i].head, what);

		put_json_row(&w, base, head, &b, &h);
	}
	json_array_end(&w);
	json_object_end(&w);
	buf_u8(out, '\n');
	return out->failed ? err_nomem(e) : 0;
}
