/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes the file: style, boxes as drawn without scripts, the same boxes as data, and the script.
 */
#include "profile/analyse/flame/svg.h"

#include "base/cleanup.h"
#include "base/xml.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Pixels. */
#define MARGIN 10u
#define ROW 16u
#define HEAD 72u	/* title, subtitle, legend */
#define BANDS 20u	/* chart: phases */
#define AXIS 18u	/* chart: times */
#define FOOT 46u	/* details, notes */
#define TICK 110.0	/* pixels for each label on the axis */
#define FONT_COLUMN 6.7 /* width of a character of a monospaced font of 11 px */
#define GAP 0.6		/* between boxes that are at least WIDE */
#define WIDE 3.0
#define MIN_DRAWN 0.5 /* narrower boxes are drawn by the script only, after zooming in */

extern const char flamegraph_js[], flamegraph_js_end[];

static const char *const kind_names[FRAMETREE_KINDS] = {
	"kernel", "module", "user", "JIT", "unknown", "host", "waiting", "idle", "task",
};

/*
 * Hues that are distinguishable with any colour vision (after Okabe and Ito), of different
 * lightness, light enough for black text; four shades of each.
 */
static const char *const kind_colours[FRAMETREE_KINDS][FLAME_VARIANTS] = {
	[STACKSET_KIND_KERNEL] = { "#f2b04a", "#eda033", "#f5bd66", "#e8982a" },
	[STACKSET_KIND_MODULE] = { "#3dbb94", "#2cab84", "#5cc7a5", "#239f78" },
	[STACKSET_KIND_USER] = { "#8ccbf4", "#74bfef", "#a3d6f7", "#65b3e6" },
	[STACKSET_KIND_JIT] = { "#d99cc8", "#cd86b8", "#e2b2d5", "#c47bae" },
	[STACKSET_KIND_UNKNOWN] = { "#f3ec9e", "#ebe084", "#f7f2b8", "#e3d674" },
	[STACKSET_KIND_HOST] = { "#c2b2ea", "#b5a3e4", "#cfc2ef", "#a994de" },
	[STACKSET_KIND_WAITING] = { "#d8b99a", "#cfad8b", "#e0c6ac", "#c7a27d" },
	[FRAMETREE_KIND_IDLE] = { "#c4c4c4", "#b9b9b9", "#cecece", "#b0b0b0" },
	[FRAMETREE_KIND_TASK] = { "#ece8e0", "#e6e1d8", "#f0ede7", "#e2dcd1" },
};

/* From "shrank most" to "grew most"; red and blue are distinguishable with any colour vision. */
static const char *const diff_colours[2 * FLAME_DIFF_STEPS + 1] = {
	"#4d94da", "#7db1e5", "#abceef", "#d3e5f7", "#f1f1f1",
	"#fbdccf", "#f7b79f", "#f08f70", "#e6633f",
};

static const char *const band_colours[] = { "#d9d2e9", "#cfe2f3", "#fce5cd",
					    "#d9ead3", "#f4cccc", "#fff2cc" };

/* The layout of the picture. */
struct sheet {
	const struct flame_picture *p;
	uint32_t *lane_row; /* the first row of each lane, from the top */
	unsigned int frames_top, frames_bottom, height;
	double scale; /* pixels per unit */
};

void flame_time(char *out, size_t size, uint64_t ns)
{
	if (ns >= 1000000000u)
		snprintf(out, size, "%.3f s", (double)ns / 1e9);
	else if (ns >= 1000000u)
		snprintf(out, size, "%.3f ms", (double)ns / 1e6);
	else if (ns >= 1000u)
		snprintf(out, size, "%.3f us", (double)ns / 1e3);
	else
		snprintf(out, size, "%" PRIu64 " ns", ns);
}

/*
 * Background in dark mode: dark enough for light text, light enough for dimmed frames with black
 * text.
 */
#define DARK_GROUND "#1b1e23"

static void text_at(struct buf *out, double x, unsigned int y, const char *class, const char *text)
{
	buf_printf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%u\">", class, x, y);
	xml_quote(out, text, FLAME_MAX_NAME);
	buf_printf(out, "</text>\n");
}

static int lay_out(struct sheet *s, const struct flame_picture *p)
{
	uint32_t row = 0;

	s->p = p;
	s->lane_row = calloc(p->nlanes + 1, sizeof(*s->lane_row));
	if (!s->lane_row)
		return -1;
	for (size_t i = 0; i < p->nlanes; i++) {
		row += p->lane[i].label[0] != '\0';
		s->lane_row[i] = row;
		row += p->lane[i].rows;
	}
	s->frames_top = HEAD + (p->nbands ? BANDS : 0) + (p->chart ? AXIS : 0);
	s->frames_bottom = s->frames_top + row * ROW;
	s->height = s->frames_bottom + FOOT;
	s->scale = (double)(p->width - 2 * MARGIN) / (double)p->total;
	return 0;
}

static uint32_t screen_row(const struct sheet *s, size_t lane, const struct flame_box *b)
{
	return s->lane_row[lane] + (s->p->inverted ? b->row : s->p->lane[lane].rows - 1 - b->row);
}

static void write_style(struct buf *out)
{
	buf_printf(out,
		   "<style>\n"
		   ":root{background:#fff}\n"
		   "text{font:11px 'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#000}\n"
		   ".t{font:bold 16px 'DejaVu Sans',Verdana,sans-serif}\n"
		   ".u{font:12px 'DejaVu Sans',Verdana,sans-serif;fill:#444}\n"
		   ".m{font:11px 'DejaVu Sans',Verdana,sans-serif;fill:#333}\n"
		   ".b{font:12px 'DejaVu Sans',Verdana,sans-serif;fill:#0645ad;cursor:pointer}\n"
		   ".b:hover{text-decoration:underline}.off{visibility:hidden}\n"
		   "#frames text,#bands text,#axis text{pointer-events:none}\n"
		   "#frames rect{cursor:pointer}\n"
		   "#frames rect:hover{stroke:#000;stroke-width:1}\n"
		   "#frames .hit{fill:#e23ce2}#frames .dim{opacity:.55}\n"
		   "#axis line{stroke:#999}#bands rect{stroke:#888;stroke-width:.5}\n");
	for (unsigned int k = 0; k < FRAMETREE_KINDS; k++)
		for (unsigned int v = 0; v < FLAME_VARIANTS; v++)
			buf_printf(out, ".c%u{fill:%s}", k * FLAME_VARIANTS + v,
				   kind_colours[k][v]);
	buf_printf(out, ".c%u{fill:#e9e9e9}", FLAME_CLASS_NARROW);
	for (unsigned int i = 0; i < ARRAY_SIZE(diff_colours); i++)
		buf_printf(out, ".c%u{fill:%s}", FLAME_CLASS_DIFF + i, diff_colours[i]);
	for (unsigned int i = 0; i < ARRAY_SIZE(band_colours); i++)
		buf_printf(out, ".p%u{fill:%s}", i, band_colours[i]);
	/* Names on frames and bands stay black, because these are light in both modes. */
	buf_printf(out, "\n@media(prefers-color-scheme:dark){:root{background:" DARK_GROUND "}"
			"#ground{fill:" DARK_GROUND "}text,.t,.u,.m{fill:#d5d8dc}.b{fill:#8ab4f8}"
			"#frames text,#bands text{fill:#000}#frames .dim{opacity:.85}"
			"#frames rect:hover{stroke:#fff}}\n</style>\n");
}

static void legend_entry(struct buf *out, double *x, const char *class, const char *text)
{
	buf_printf(out, "<g><rect class=\"%s\" x=\"%.1f\" y=\"54\" width=\"11\" height=\"11\"/>",
		   class, *x);
	text_at(out, *x + 15, 64, "m", text);
	buf_printf(out, "</g>\n");
	*x += 15 + 6.8 * (double)strlen(text) + 14;
}

static void write_legend(struct buf *out, const struct flame_picture *p)
{
	double x = MARGIN;
	char text[64], class[16];

	if (p->diff) {
		buf_printf(out, "<g>");
		text_at(out, x, 64, "m", "shrank");
		for (unsigned int i = 0; i < ARRAY_SIZE(diff_colours); i++)
			buf_printf(
				out,
				"<rect class=\"c%u\" x=\"%u\" y=\"54\" width=\"18\" height=\"11\" "
				"stroke=\"#bbb\" stroke-width=\".5\"/>",
				FLAME_CLASS_DIFF + i, MARGIN + 50 + i * 18);
		text_at(out, MARGIN + 56 + ARRAY_SIZE(diff_colours) * 18, 64, "m",
			"grew, as a share of all");
		buf_printf(out, "</g>\n");
		return;
	}
	for (unsigned int k = 0; k < FRAMETREE_KINDS; k++) {
		if (p->kind_share[k] <= 0)
			continue;
		snprintf(text, sizeof(text), "%s %.2f %%", kind_names[k], 100 * p->kind_share[k]);
		snprintf(class, sizeof(class), "c%u", k * FLAME_VARIANTS);
		legend_entry(out, &x, class, text);
	}
}

static void write_head(struct buf *out, const struct sheet *s)
{
	const struct flame_picture *p = s->p;

	buf_printf(out,
		   "<rect id=\"ground\" width=\"%u\" height=\"%u\" fill=\"#fff\"/>\n"
		   "<text class=\"t\" id=\"title\" x=\"%u\" y=\"24\">",
		   p->width, s->height, MARGIN);
	xml_fit(out, p->title, (p->width - 260) / 10);
	buf_printf(out, "</text>\n<text class=\"u\" id=\"subtitle\" x=\"%u\" y=\"43\">", MARGIN);
	xml_fit(out, p->subtitle, (p->width - 2 * MARGIN) / 7);
	buf_printf(out, "</text>\n<g id=\"legend\">\n");
	write_legend(out, p);
	buf_printf(out, "</g>\n");
	buf_printf(out,
		   "<text class=\"b off\" id=\"back\" x=\"%u\" y=\"24\">back</text>\n"
		   "<text class=\"b off\" id=\"reset\" x=\"%u\" y=\"24\">reset zoom</text>\n"
		   "<text class=\"b off\" id=\"search\" x=\"%u\" y=\"24\" "
		   "text-anchor=\"end\">search</text>\n"
		   "<text id=\"matched\" x=\"%u\" y=\"64\" text-anchor=\"end\"> </text>\n",
		   p->width - 240, p->width - 190, p->width - MARGIN, p->width - MARGIN);
}

/* Writes a box's tooltip, as the script's describe() does. */
static void write_title(struct buf *out, const struct sheet *s, const struct flame_box *b)
{
	const struct flame_picture *p = s->p;
	const struct frametree_name *n = &p->name[b->name];
	double share = 100.0 * (double)b->w / (double)p->total;
	char time[32], from[32];

	buf_printf(out, "<title>");
	xml_quote(out, n->text, FLAME_MAX_NAME);
	if (n->dso[0]) {
		buf_printf(out, " (");
		xml_quote(out, n->dso, FLAME_MAX_NAME);
		buf_printf(out, ")");
	}
	flame_time(time, sizeof(time), b->w);
	if (p->chart) {
		flame_time(from, sizeof(from), b->x);
		buf_printf(out, ": %s from %s", time, from);
	} else if (p->weight_is_ns) {
		buf_printf(out, ": %.2f %%, %s", share, time);
	} else {
		buf_printf(out, ": %.2f %%, %" PRIu64 " ", share, b->w);
		xml_quote(out, p->event, 64);
	}
	if (!p->chart && !p->counted)
		buf_printf(out, ", %" PRIu64 " samples", b->samples);
	if (p->diff)
		buf_printf(out, ", %+.2f points", b->delta_ppm / 1e4);
	buf_printf(out, "</title>");
}

static void write_box(struct buf *out, const struct sheet *s, size_t lane,
		      const struct flame_box *b)
{
	double x = MARGIN + (double)b->x * s->scale, w = (double)b->w * s->scale;
	unsigned int y = s->frames_top + screen_row(s, lane, b) * ROW;

	if (w < MIN_DRAWN)
		return;
	buf_printf(out, "<g>");
	write_title(out, s, b);
	buf_printf(out, "<rect class=\"c%u\" x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%u\"/>",
		   b->class, x, y, w > WIDE ? w - GAP : w, ROW - 1);
	if (w >= FONT_COLUMN + 6) {
		buf_printf(out, "<text x=\"%.1f\" y=\"%u\">", x + 3, y + 11);
		xml_fit(out, s->p->name[b->name].text, (size_t)((w - 6) / FONT_COLUMN));
		buf_printf(out, "</text>");
	}
	buf_printf(out, "</g>\n");
}

static void write_boxes(struct buf *out, const struct sheet *s)
{
	const struct flame_picture *p = s->p;

	for (size_t i = 0; i < p->nlanes; i++)
		if (p->lane[i].label[0])
			text_at(out, MARGIN, s->frames_top + (s->lane_row[i] - 1) * ROW + 12, "m",
				p->lane[i].label);
	buf_printf(out, "<g id=\"frames\">\n");
	for (size_t i = 0; i < p->nlanes; i++)
		for (size_t k = 0; k < p->lane[i].n; k++)
			write_box(out, s, i, &p->box[p->lane[i].first + k]);
	buf_printf(out, "</g>\n");
}

/* Returns the smallest step of 1, 2 or 5 times a power of ten that is not less than raw. */
static double tick_step(double raw)
{
	double unit = pow(10, floor(log10(raw)));

	return raw <= unit	 ? unit
	       : raw <= 2 * unit ? 2 * unit
	       : raw <= 5 * unit ? 5 * unit
				 : 10 * unit;
}

static void write_axis(struct buf *out, const struct sheet *s)
{
	const struct flame_picture *p = s->p;
	double step = tick_step((double)p->total * TICK / (p->width - 2 * MARGIN));

	buf_printf(out, "<g id=\"axis\">\n");
	for (unsigned int i = 0; p->chart && i * step <= (double)p->total; i++) {
		double x = MARGIN + i * step * s->scale;

		char label[32];
		int n = snprintf(label, sizeof(label), "%.6g s", i * step / 1e9);

		buf_printf(out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%u\" y2=\"%u\"/>", x, x,
			   s->frames_top - AXIS, s->frames_top - 2);
		/* At the end of the run there may be no space for a label. */
		if (x + 3 + n * FONT_COLUMN <= p->width)
			buf_printf(out, "<text x=\"%.1f\" y=\"%u\">%s</text>\n", x + 3,
				   s->frames_top - AXIS + 12, label);
	}
	buf_printf(out, "</g>\n<g id=\"bands\">\n");
	for (size_t i = 0; i < p->nbands; i++) {
		const struct flame_band *b = &p->band[i];
		double x = MARGIN + (double)b->from * s->scale;
		double w = (double)(b->to - b->from) * s->scale;
		char from[32], time[32];

		flame_time(from, sizeof(from), b->from);
		flame_time(time, sizeof(time), b->to - b->from);
		buf_printf(out, "<g><title>");
		xml_quote(out, b->label, 64);
		buf_printf(out, ": %s from %s</title><rect class=\"p%u\" x=\"%.1f\" y=\"%u\" ",
			   time, from, b->colour, x, HEAD);
		buf_printf(out, "width=\"%.1f\" height=\"%u\"/><text x=\"%.1f\" y=\"%u\">", w,
			   BANDS - 2, x + 4, HEAD + 13);
		xml_fit(out, b->label, w < 8 ? 0 : (size_t)((w - 8) / FONT_COLUMN));
		buf_printf(out, "</text></g>\n");
	}
	buf_printf(out, "</g>\n");
}

static void write_foot(struct buf *out, const struct sheet *s)
{
	buf_printf(out,
		   "<text id=\"details\" x=\"%u\" y=\"%u\"> </text>\n"
		   "<text class=\"m\" id=\"note\" x=\"%u\" y=\"%u\">",
		   MARGIN, s->frames_bottom + 18, MARGIN, s->frames_bottom + 36);
	xml_quote(out, s->p->note, sizeof(s->p->note));
	buf_printf(out, "</text>\n");
}

/* Writes the names in the order of the boxes that use them first; unused names are omitted. */
static void write_names(struct buf *out, const struct flame_picture *p, uint32_t *number)
{
	uint32_t n = 0;
	size_t start = out->len;

	buf_printf(out, "N=[");
	for (size_t i = 0; i < p->nboxes; i++) {
		const struct frametree_name *name = &p->name[p->box[i].name];
		size_t max = out->len - start < FLAME_MAX_NAMES_TOTAL ? FLAME_MAX_NAME
								      : FLAME_SHORT_NAME;

		if (number[p->box[i].name])
			continue;
		number[p->box[i].name] = ++n;
		buf_printf(out, n > 1 ? ",\n[" : "\n[");
		xml_script_string(out, name->text, max);
		buf_u8(out, ',');
		xml_script_string(out, name->dso, max);
		buf_u8(out, ']');
	}
	buf_printf(out, "],\n");
}

/*
 * Writes for each box: distance from the previous x, width, row, class, name, samples, self,
 * change.
 */
static void write_data(struct buf *out, const struct sheet *s)
{
	const struct flame_picture *p = s->p;
	cleanup_free uint32_t *number = calloc(p->nnames + 1, sizeof(*number));
	uint64_t before = 0;

	if (!number) {
		out->failed = true;
		return;
	}
	buf_printf(out,
		   "var P={total:%" PRIu64
		   ",width:%u,height:%u,margin:%u,row:%u,top:%u,bandTop:%u,axisTop:%u,"
		   "fixed:%s,up:%s,chart:%s,diff:%s,ns:%s,counted:%s,event:",
		   p->total, p->width, s->height, MARGIN, ROW, s->frames_top, HEAD,
		   s->frames_top - AXIS, p->fixed ? "true" : "false",
		   p->inverted || p->chart ? "false" : "true", p->chart ? "true" : "false",
		   p->diff ? "true" : "false", p->weight_is_ns ? "true" : "false",
		   p->counted ? "true" : "false");
	xml_script_string(out, p->event, 64);
	buf_printf(out, ",title:");
	xml_script_string(out, p->title, FLAME_MAX_NAME);
	buf_printf(out, ",subtitle:");
	xml_script_string(out, p->subtitle, FLAME_MAX_NAME);
	buf_printf(out, ",note:");
	xml_script_string(out, p->note, sizeof(p->note));
	buf_printf(out, "},\nB=[");
	for (size_t i = 0; i < p->nbands; i++) {
		buf_printf(out, "%s[%" PRIu64 ",%" PRIu64 ",%u,", i ? "," : "", p->band[i].from,
			   p->band[i].to, p->band[i].colour);
		xml_script_string(out, p->band[i].label, 64);
		buf_u8(out, ']');
	}
	buf_printf(out, "],\nL=[");
	for (size_t i = 0; i < p->nlanes; i++)
		buf_printf(out, "%s%zu", i ? "," : "", p->lane[i].first);
	buf_printf(out, "],\n");
	write_names(out, p, number);
	buf_printf(out, "D=[");
	for (size_t i = 0; i < p->nlanes; i++)
		for (size_t k = 0; k < p->lane[i].n; k++) {
			const struct flame_box *b = &p->box[p->lane[i].first + k];

			buf_printf(out,
				   "%s%" PRId64 ",%" PRIu64 ",%u,%u,%u,%" PRIu64 ",%" PRIu64 ",%d",
				   b == p->box ? "\n" : ",\n", (int64_t)(b->x - before), b->w,
				   screen_row(s, i, b), b->class, number[b->name] - 1, b->samples,
				   b->self, b->delta_ppm);
			before = b->x;
		}
	buf_printf(out, "];\n");
}

/* Returns the extension of the file's name, without the dot; "" if it has none. */
static const char *ending_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : "";
}

enum flame_format flame_format_of(const char *path)
{
	const char *ending = ending_of(path);

	return !strcasecmp(ending, "html") || !strcasecmp(ending, "htm") ? FLAME_HTML : FLAME_SVG;
}

bool flame_path_is_fit(const char *path, struct err *e)
{
	const char *ending = ending_of(path);

	if (!ending[0] || !strcasecmp(ending, "svg") || flame_format_of(path) == FLAME_HTML)
		return true;
	err_set(e, EINVAL, "%s: a picture is written as .svg or .html, not as .%s", path, ending);
	return false;
}

void flame_write(struct buf *out, const struct flame_picture *p, enum flame_format format)
{
	struct sheet s = { 0 };

	if (lay_out(&s, p)) {
		out->failed = true;
		return;
	}
	if (format == FLAME_HTML) {
		buf_printf(
			out,
			"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
		xml_quote(out, p->title, FLAME_MAX_NAME);
		buf_printf(out, "</title><style>body{margin:0}svg{display:block}</style>"
				"</head><body>\n");
	} else {
		buf_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	}
	buf_printf(out,
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"kvmprof\" width=\"%u\" "
		   "height=\"%u\" "
		   "viewBox=\"0 0 %u %u\">\n<!-- Made by kvmprof flamegraph. -->\n",
		   p->width, s.height, p->width, s.height);
	write_style(out);
	write_head(out, &s);
	/* The script moves this group down if the head has more lines. */
	buf_printf(out, "<g id=\"body\">\n");
	write_axis(out, &s);
	write_boxes(out, &s);
	write_foot(out, &s);
	buf_printf(out, "</g>\n");
	/* For scripts this is a comment, for XML it begins a section. */
	buf_printf(out, "<script>//<![CDATA[\n(function(){\"use strict\";\n");
	write_data(out, &s);
	buf_add(out, flamegraph_js, (size_t)(flamegraph_js_end - flamegraph_js));
	buf_printf(out, "})();\n//]]></script>\n</svg>\n%s",
		   format == FLAME_HTML ? "</body></html>\n" : "");
	free(s.lane_row);
}
