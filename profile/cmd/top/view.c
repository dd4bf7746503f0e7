/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/top/view.h"

#include "profile/analyse/annotate/print.h"
#include "profile/cmd/top/feed.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COLUMNS 512u
#define NARROW 80u
#define BAR_MAX 50u
/* Rows that a list without a terminal has. */
#define PLAIN_ROWS 40u
#define CALLERS_LEAST 0.02
#define CALLERS_DEPTH 8u
#define DSO_WIDTH 20

const char *top_mode_name(enum top_mode mode)
{
	static const char *const name[] = { "kernel", "user", "idle" };

	return name[mode];
}

void top_screen_init(struct top_screen *s)
{
	memset(s, 0, sizeof(*s));
	buf_init(&s->text);
	buf_init(&s->style);
}

void top_screen_deinit(struct top_screen *s)
{
	buf_deinit(&s->text);
	buf_deinit(&s->style);
}

struct drawing {
	struct top_screen *s;
	unsigned int lines, columns; /* limits */
};

static bool is_full(const struct drawing *d)
{
	return d->s->nlines >= d->lines;
}

__attribute__((format(printf, 3, 4))) static void line(struct drawing *d, enum top_style style,
						       const char *fmt, ...)
{
	char text[MAX_COLUMNS + 1];
	va_list ap;
	int n;

	if (is_full(d))
		return;
	va_start(ap, fmt);
	n = vsnprintf(text, d->columns + 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	/* The guest's names must not steer the terminal. */
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	buf_add(&d->s->text, text, strlen(text));
	buf_u8(&d->s->text, '\n');
	buf_u8(&d->s->style, (uint8_t)style);
	d->s->nlines++;
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void draw_head(struct drawing *d, const struct top_status *st, struct top_choice *c)
{
	char rate[32] = "", stop[48] = "";

	if (st->rate_hz > 0)
		snprintf(rate, sizeof(rate), " of %.0f Hz", st->rate_hz);
	if (st->stop_us > 0)
		snprintf(stop, sizeof(stop), ", stopped %.1f us each", st->stop_us);
	line(d, TOP_STYLE_HEAD, "kvmprof top: %s, %.1f s%s%s", st->title, st->elapsed_s,
	     c->frozen ? " [frozen]" : "", st->collecting ? "" : " [not collecting]");
	line(d, TOP_STYLE_HEAD,
	     "%.0f samples/s (%s%s), %" PRIu64 " in all, lost %" PRIu64 ", missed %" PRIu64 "%s",
	     st->seen_hz, st->event, rate, st->samples, st->lost, st->overruns, stop);
	if (st->end)
		line(d, TOP_STYLE_ALERT, "%s", st->end);
}

static void draw_vcpus(struct drawing *d, const struct top_model *m)
{
	unsigned int n, width = d->columns > NARROW + 20 ? BAR_MAX : 20;
	const struct top_vcpu *v = top_model_vcpus(m, &n);

	for (unsigned int i = 0; i < n; i++) {
		double all =
			v[i].weight[TOP_KERNEL] + v[i].weight[TOP_USER] + v[i].weight[TOP_IDLE];
		double kernel = percent(v[i].weight[TOP_KERNEL], all);
		double user = percent(v[i].weight[TOP_USER], all);
		double idle = percent(v[i].weight[TOP_IDLE], all);
		unsigned int nk = (unsigned int)(kernel * width / 100 + 0.5);
		unsigned int nu = (unsigned int)((kernel + user) * width / 100 + 0.5) - nk;
		char bar[BAR_MAX + 1];

		memset(bar, all > 0 ? '.' : ' ', width);
		memset(bar, 'k', nk);
		memset(bar + nk, 'u', nu);
		bar[width] = '\0';
		line(d, TOP_STYLE_BAR, "vCPU %-2u [%s] kernel %5.1f %% user %5.1f %% idle %5.1f %%",
		     i, bar, kernel, user, idle);
	}
}

static enum top_style row_style(enum top_mode mode)
{
	return mode == TOP_KERNEL ? TOP_STYLE_KERNEL
	       : mode == TOP_USER ? TOP_STYLE_USER
				  : TOP_STYLE_IDLE;
}

/* Selects the columns beside percentages and symbol that leave room for the symbol. */
#define WITH_DSO 72u
#define WITH_MODE 48u

static void draw_columns(struct drawing *d, bool by_self)
{
	const char *children = by_self ? "Children" : "Children*",
		   *self = by_self ? "Self*" : "Self";

	if (d->columns >= WITH_DSO)
		line(d, TOP_STYLE_COLUMNS, "%9s %9s  %-6s  %-*s  %s", children, self, "Mode",
		     DSO_WIDTH, "Shared Object", "Symbol");
	else if (d->columns >= WITH_MODE)
		line(d, TOP_STYLE_COLUMNS, "%9s %9s  %-6s  %s", children, self, "Mode", "Symbol");
	else
		line(d, TOP_STYLE_COLUMNS, "%9s %8s  %s", children, self, "Symbol");
}

static void draw_row(struct drawing *d, const struct top_row *row, double total)
{
	double children = percent(row->children, total), self = percent(row->self, total);

	if (d->columns >= WITH_DSO)
		line(d, row_style(row->mode), "%8.2f%% %8.2f%%  %-6s  %-*.*s  %s", children, self,
		     top_mode_name(row->mode), DSO_WIDTH, DSO_WIDTH, row->dso, row->name);
	else if (d->columns >= WITH_MODE)
		line(d, row_style(row->mode), "%8.2f%% %8.2f%%  %-6s  %s", children, self,
		     top_mode_name(row->mode), row->name);
	else
		line(d, row_style(row->mode), "%8.2f%% %7.2f%%  %s", children, self, row->name);
}

static void draw_callers(struct drawing *d, struct top_model *m, const struct top_row *row,
			 double total)
{
	struct top_caller caller[TOP_MAX_CALLERS];
	size_t n = top_model_callers(m, row->func, CALLERS_LEAST, CALLERS_DEPTH, caller,
				     TOP_MAX_CALLERS);

	if (!n)
		line(d, TOP_STYLE_CALLER, "%20s no caller is known", "");
	for (size_t i = 0; i < n; i++)
		line(d, TOP_STYLE_CALLER, "%20s %*s%6.2f%%  <- %s", "",
		     (int)(caller[i].depth - 1) * 2, "", percent(caller[i].weight, total),
		     caller[i].name);
}

static void draw_rows(struct drawing *d, struct top_model *m, const struct top_rows *rows,
		      const struct top_choice *c, size_t limit)
{
	const struct top_row *row = rows->row;
	size_t room = d->lines - d->s->nlines, first = 0;

	/* The selected row stays on the screen, with its callers below. */
	if (c->expanded && room > TOP_MAX_CALLERS / 2)
		room -= TOP_MAX_CALLERS / 2;
	if (c->selected >= room)
		first = c->selected - room + 1;
	d->s->row_line = d->s->nlines;
	for (size_t i = first; i < rows->n && i - first < limit && !is_full(d); i++) {
		if (i == c->selected) {
			d->s->selected_line = d->s->nlines;
			d->s->selected = row[i];
		}
		draw_row(d, &row[i], rows->total);
		if (i == c->selected && c->expanded)
			draw_callers(d, m, &row[i], rows->total);
	}
}

int top_view_draw(struct top_screen *s, struct top_model *m, const struct top_status *status,
		  struct top_choice *choice, struct top_size room, struct err *e)
{
	struct drawing d = { s, room.lines ? room.lines : UINT_MAX, room.columns };
	struct top_filter filter = { .text = *choice->filter ? choice->filter : NULL,
				     .no_idle = choice->no_idle };
	const bool by_self = choice->order == TOP_BY_SELF;
	struct top_rows rows;
	int ret = top_model_rows(m, choice->order, &filter, &rows, e);

	if (ret)
		return ret;
	if (!d.columns || d.columns > MAX_COLUMNS)
		d.columns = MAX_COLUMNS;
	s->text.len = s->style.len = 0;
	s->nlines = 0;
	s->selected = (struct top_row){ 0 };
	s->selected_line = UINT_MAX;
	s->nrows = rows.n;
	if (choice->selected >= rows.n)
		choice->selected = rows.n ? rows.n - 1 : 0;
	draw_head(&d, status, choice);
	draw_vcpus(&d, m);
	if (choice->typing || *choice->filter)
		line(&d, TOP_STYLE_ALERT, "filter: %s%s", choice->filter,
		     choice->typing ? "_" : "");
	else
		line(&d, TOP_STYLE_PLAIN, "%s", "");
	draw_columns(&d, by_self);
	if (!rows.n)
		line(&d, TOP_STYLE_PLAIN, "%s",
		     *choice->filter ? "  nothing matches" : "  no samples yet");
	draw_rows(&d, m, &rows, choice, room.lines ? SIZE_MAX : PLAIN_ROWS);
	if (s->text.failed || s->style.failed)
		return err_nomem(e);
	return 0;
}

/* -- a function's code ------------------------------------------------------------------------ */

static const char *no_name(void *ctx, uint64_t addr, uint64_t *off)
{
	(void)ctx;
	(void)addr;
	(void)off;
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	const struct annotate_hit *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

int top_code_draw(struct buf *text, const struct top_code *code, struct err *e)
{
	struct annotate_hit *hit = calloc(code->nhits + 1, sizeof(*hit));
	struct annotate_input in = {
		.addr = code->addr,
		.live = code->code.data,
		.len = code->code.len,
		.hit = hit,
		.function = code->symbol,
		.name = no_name,
	};
	const struct annotate_style style = { 0 };
	struct annotate *a = NULL;
	int ret = 0;

	if (!hit)
		return err_nomem(e);
	for (size_t i = 0; i < code->nhits; i++)
		if (code->hit[i].weight >= 1)
			hit[in.nhits++] = (struct annotate_hit){
				.addr = code->hit[i].addr,
				.weight = (uint64_t)llround(code->hit[i].weight),
				.samples = 1,
			};
	qsort(hit, in.nhits, sizeof(*hit), by_address);
	ret = in.len ? annotate_build(&a, &in, e)
		     : err_set(e, ENODATA, "the guest has no code there now");
	if (!ret) {
		annotate_print(text, a, &style);
		buf_u8(text, 0);
		if (text->failed)
			ret = err_nomem(e);
	}
	annotate_destroy(a);
	free(hit);
	return ret;
}
