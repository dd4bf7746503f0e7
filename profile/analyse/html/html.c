/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page: the markup, style and script of page.html, page.css and the scripts, which travel
 * inside the program, around the data:
 *
 *	data := base64(zlib(length of text, text, columns))
 *
 * The length has 4 bytes, little-endian. The text is JSON; offsets of columns count from its end.
 */
#include "profile/analyse/html/html.h"

#include "base/cleanup.h"
#include "base/xml.h"
#include "profile/analyse/html/private.h"
#include "profile/analyse/stacks/selection.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/read.h"

#include <errno.h>
#include <html_hashes.h>
#include <string.h>
#include <zlib.h>

#define LENGTH_BYTES 4u
#define TITLE_MAX 256u

extern const char html_markup[], html_markup_end[];
extern const char html_style[], html_style_end[];
extern const char html_script[], html_script_end[];

/* -- loading --------------------------------------------------------------------------------- */

static int load_event(struct html_profile *p, const struct html_options *opt, const char *event,
		      struct err *why, struct err *e)
{
	struct stackset_options load = opt->load;
	struct stackset *s = NULL;
	int ret;

	load.keep_samples = true;
	load.event = event;
	ret = stackset_load(&s, &load, e);
	if (ret)
		return ret;
	p->event[p->n] = s;
	buf_init(&p->code[p->n]);
	p->n++;
	if (!opt->functions || !s->samples)
		return 0;
	load.event = event ? event : s->event;
	return html_code(&p->code[p->n - 1],
			 &(struct html_options){ load, opt->functions, opt->places }, s, why, e);
}

/* Loads every event that has samples, the first one first. */
static int load_events(struct html_profile *p, const struct html_options *opt, struct err *why,
		       struct err *e)
{
	struct perfdata *file = NULL;
	int ret = perfdata_open(&file, opt->load.input, e);

	for (uint32_t n = 0; !ret && n < file->nevents && p->n < HTML_MAX_EVENTS; n++) {
		uint32_t i = n == 0 ? file->chosen : n <= file->chosen ? n - 1 : n;

		if (file->events[i].samples &&
		    strcmp(file->events[i].name, PERFDATA_MARKER_EVENT) != 0)
			ret = load_event(p, opt, file->events[i].name, why, e);
	}
	perfdata_close(file);
	return ret;
}

int html_load(struct html_profile *p, const struct html_options *opt, struct err *why,
	      struct err *e)
{
	struct stackset_options all = { .input = opt->load.input,
					.event = opt->load.event,
					.buildid_dir = opt->load.buildid_dir,
					.no_demangle = true,
					.keep_samples = true };
	int ret;

	*p = (struct html_profile){ .name = opt->load.input };
	/* Standard input is read once: it has one event then, and no code. */
	ret = opt->load.event || !strcmp(opt->load.input, "-") || opt->load.epoch
		      ? load_event(p, opt, opt->load.event, why, e)
		      : load_events(p, opt, why, e);
	if (ret ||
	    (!selection_selects(opt->load.selection) && !selection_chooses(opt->load.selection)))
		return ret;
	/* Phases come from the whole profile: what a selection leaves does not show where they began. */
	return stackset_load(&p->whole, &all, e);
}

void html_unload(struct html_profile *p)
{
	for (unsigned int i = 0; i < p->n; i++) {
		stackset_destroy(p->event[i]);
		buf_deinit(&p->code[i]);
	}
	stackset_destroy(p->whole);
	*p = (struct html_profile){ .n = 0 };
}

/* -- data ------------------------------------------------------------------------------------ */

/* Returns the zero of the profile's times: that of its first sample of any event. */
static uint64_t begin_of(const struct html_profile *p)
{
	const struct stackset *const whole = p->whole;
	uint64_t begin = whole && whole->samples ? whole->first_ns : UINT64_MAX;

	for (unsigned int i = 0; i < p->n; i++)
		if (p->event[i]->samples && p->event[i]->first_ns < begin)
			begin = p->event[i]->first_ns;
	return begin == UINT64_MAX ? 0 : begin;
}

static int put_profile(struct buf *columns, struct json_writer *w, const struct html_profile *p,
		       struct err *e)
{
	uint64_t begin_ns = begin_of(p);
	int ret;

	json_object_begin(w, NULL);
	json_put(w, "file", p->name);
	ret = html_facts(w, p, begin_ns, e);
	json_array_begin(w, "events");
	for (unsigned int i = 0; i < p->n && !ret; i++) {
		json_object_begin(w, NULL);
		ret = html_data_event(columns, w, p->event[i], begin_ns, e);
		if (p->code[i].len)
			json_raw(w, "code", (const char *)p->code[i].data);
		json_object_end(w);
	}
	json_array_end(w);
	json_object_end(w);
	return ret;
}

static int put_data(struct buf *data, const struct html_profile *p, const struct html_profile *base,
		    const char *title, struct err *e)
{
	const struct html_profile *const all[] = { p, base };
	struct buf columns;
	struct json_writer w;
	int ret = 0;

	buf_init(&columns);
	buf_add(data, NULL, LENGTH_BYTES);
	json_begin(&w, data);
	json_object_begin(&w, NULL);
	json_put(&w, "version", KVMPROF_VERSION, "title", title);
	json_array_begin(&w, "profiles");
	for (size_t i = 0; i < ARRAY_SIZE(all) && !ret; i++)
		if (all[i])
			ret = put_profile(&columns, &w, all[i], e);
	if (!ret) {
		json_array_end(&w);
		json_object_end(&w);
		buf_put32(data, 0, (uint32_t)(data->len - LENGTH_BYTES));
		buf_add(data, columns.data, columns.len);
		if (data->failed || columns.failed)
			ret = err_nomem(e);
	}
	buf_deinit(&columns);
	return ret;
}

/* Replaces the bytes by their compressed form. */
static int pack(struct buf *packed, const struct buf *data, struct err *e)
{
	uLongf len = compressBound(data->len);
	uint8_t *p = buf_reserve(packed, len);

	if (!p || compress2(p, &len, data->data, data->len, Z_DEFAULT_COMPRESSION) != Z_OK)
		return err_nomem(e);
	packed->len += len;
	return 0;
}

static void base64_put(struct buf *out, const uint8_t *p, size_t len)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t *to = buf_reserve(out, (len + 2) / 3 * 4);
	size_t n = 0;

	if (!to)
		return;
	for (size_t i = 0; i < len; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < len ? (uint32_t)p[i + 1] << 8 : 0) |
			     (i + 2 < len ? p[i + 2] : 0);

		to[n++] = (uint8_t)digit[v >> 18];
		to[n++] = (uint8_t)digit[v >> 12 & 63];
		to[n++] = i + 1 < len ? (uint8_t)digit[v >> 6 & 63] : '=';
		to[n++] = i + 2 < len ? (uint8_t)digit[v & 63] : '=';
	}
	out->len += n;
}

/* -- page ------------------------------------------------------------------------------------ */

static void put_head(struct buf *out, const char *title)
{
	buf_printf(out,
		   "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		   "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		   "base-uri 'none'; form-action 'none'; script-src 'sha256-%s'; "
		   "style-src 'sha256-%s'\">\n"
		   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		   "<meta name=\"color-scheme\" content=\"light dark\">\n"
		   "<meta name=\"generator\" content=\"kvmprof view\">\n<title>",
		   HTML_SCRIPT_HASH, HTML_STYLE_HASH);
	xml_quote(out, title, TITLE_MAX);
	buf_printf(out, "</title>\n<style>");
	buf_add(out, html_style, (size_t)(html_style_end - html_style));
	buf_printf(out, "</style></head>\n<body>\n");
}

int html_write(struct buf *out, const struct html_profile *p, const struct html_profile *base,
	       const char *title, struct err *e)
{
	struct buf data, packed;
	char text[TITLE_MAX];
	int ret;

	if (!title)
		snprintf(text, sizeof(text), base ? "%.100s compared with %.100s" : "%.200s",
			 p->name, base ? base->name : "");
	title = title ? title : text;
	buf_init(&data);
	buf_init(&packed);
	ret = put_data(&data, p, base, title, e);
	ret = ret ? ret : pack(&packed, &data, e);
	if (!ret) {
		put_head(out, title);
		buf_add(out, html_markup, (size_t)(html_markup_end - html_markup));
		buf_printf(out, "<script id=\"data\" type=\"application/octet-stream\">");
		base64_put(out, packed.data, packed.len);
		buf_printf(out, "</script>\n<script>");
		buf_add(out, html_script, (size_t)(html_script_end - html_script));
		buf_printf(out, "</script>\n</body></html>\n");
		if (out->failed)
			ret = err_nomem(e);
	}
	buf_deinit(&packed);
	buf_deinit(&data);
	return ret;
}
