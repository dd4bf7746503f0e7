/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/top/feed.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than any run's nanoseconds, and sums of many still count exactly enough. */
#define MAX_NUMBER 1e15

static double feed_number(const json_t *o, const char *key)
{
	double v = json_number_value(json_object_get(o, key));

	return v > 0 ? fmin(v, MAX_NUMBER) : 0;
}

static uint64_t feed_count(const json_t *o, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(o, key));

	return v > 0 ? (uint64_t)v : 0;
}

static const char *feed_text(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static bool feed_address(const json_t *o, uint64_t *out)
{
	const char *s = json_string_value(o);
	char *end;

	if (!s || s[0] != '0' || s[1] != 'x' || !s[2])
		return false;
	errno = 0;
	*out = strtoull(s, &end, 16);
	return !errno && !*end;
}

static bool parse_mode(const char *s, enum top_mode *out)
{
	for (unsigned int i = 0; i < TOP_MODES; i++)
		if (!strcmp(s, top_mode_name((enum top_mode)i))) {
			*out = (enum top_mode)i;
			return true;
		}
	return false;
}

/* -- profile -------------------------------------------------------------------------- */

/* A function without a name is shown by its address. */
#define UNNAMED 24

static int take_frame(const json_t *funcs, const json_t *index, enum top_mode mode,
		      struct top_frame *out, char unnamed[UNNAMED], struct err *e)
{
	json_int_t i = json_is_integer(index) ? json_integer_value(index) : -1;
	const json_t *f = i >= 0 ? json_array_get(funcs, (size_t)i) : NULL;
	uint64_t addr = 0;

	if (!f)
		return err_set(e, EPROTO, "the run's reply: a frame without its function");
	feed_address(json_object_get(f, "addr"), &addr);
	*out = (struct top_frame){ feed_text(f, "name"), feed_text(f, "dso"), addr, mode };
	if (!*out->name) {
		snprintf(unnamed, UNNAMED, "0x%llx", (unsigned long long)addr);
		out->name = unnamed;
	}
	/* Kernel stacks may end in a program. */
	if (mode != TOP_IDLE)
		out->mode = out->dso[0] == '[' && strcmp(out->dso, "[unknown]") ? TOP_KERNEL
			    : addr >> 63					? TOP_KERNEL
										: TOP_USER;
	return 0;
}

static int take_stack(struct top_model *m, const json_t *funcs, const json_t *s, struct err *e)
{
	struct top_frame frame[TOP_MAX_FRAMES];
	char unnamed[TOP_MAX_FRAMES][UNNAMED];
	const json_t *frames = json_object_get(s, "frames");
	size_t n = json_array_size(frames);
	enum top_mode mode;
	int ret;

	if (!parse_mode(feed_text(s, "mode"), &mode))
		return err_set(e, EPROTO, "the run's reply: a stack of an unknown mode");
	/* Counts of different things don't add up: the first event alone is shown. */
	if (feed_count(s, "event"))
		return 0;
	if (n > TOP_MAX_FRAMES)
		n = TOP_MAX_FRAMES;
	for (size_t i = 0; i < n; i++) {
		ret = take_frame(funcs, json_array_get(frames, i), mode, &frame[i], unnamed[i], e);
		if (ret)
			return ret;
	}
	return top_model_add(m,
			     &(struct top_stack){
				     .vcpu = (unsigned int)feed_count(s, "cpu"),
				     .mode = mode,
				     .weight = feed_number(s, "weight"),
				     .frame = frame,
				     .n = (unsigned int)n,
			     },
			     e);
}

int top_feed_profile(struct top_model *m, const json_t *reply, enum top_older older, uint64_t *seq,
		     struct err *e)
{
	const json_t *funcs = json_object_get(reply, "funcs");
	const json_t *stacks = json_object_get(reply, "stacks");
	const json_t *s;
	size_t i;
	int ret;

	if (!json_is_array(stacks) || !json_is_array(funcs) ||
	    !json_is_integer(json_object_get(reply, "seq")))
		return err_set(e, EPROTO, "the run's reply contains no profile");
	top_model_begin(m, older);
	json_array_foreach(stacks, i, s)
	{
		ret = take_stack(m, funcs, s, e);
		if (ret)
			return ret;
	}
	*seq = feed_count(reply, "seq");
	return 0;
}

/* -- status --------------------------------------------------------------------------- */

int top_feed_status(struct top_status *out, const json_t *reply, struct err *e)
{
	const json_t *event = json_array_get(json_object_get(reply, "events"), 0);

	if (!json_is_string(json_object_get(reply, "state")))
		return err_set(e, EPROTO, "the run's reply contains no status");
	out->elapsed_s = feed_number(reply, "elapsed_ns") / 1e9;
	out->seen_hz = feed_number(reply, "rate_hz");
	out->samples = feed_count(reply, "samples");
	out->lost = feed_count(reply, "lost");
	out->overruns = feed_count(reply, "overruns");
	out->stop_us = feed_number(json_object_get(reply, "stopped_ns"), "p50") / 1e3;
	out->collecting = json_is_true(json_object_get(reply, "collecting"));
	out->rate_hz = 0;
	if (!strcmp(feed_text(event, "unit"), "ns") && feed_number(event, "period") > 0)
		out->rate_hz = 1e9 / feed_number(event, "period");
	return 0;
}

/* -- code ----------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int take_hits(struct top_code *out, const json_t *hits, struct err *e)
{
	const json_t *h;
	size_t i;

	out->hit = calloc(json_array_size(hits) + 1, sizeof(*out->hit));
	if (!out->hit)
		return err_nomem(e);
	json_array_foreach(hits, i, h)
	{
		struct top_hit *hit = &out->hit[out->nhits];

		if (!feed_address(json_object_get(h, "addr"), &hit->addr))
			return err_set(e, EPROTO, "the run's reply: a hit without an address");
		hit->weight = feed_number(h, "weight");
		out->nhits++;
	}
	return 0;
}

int top_feed_code(struct top_code *out, const json_t *reply, struct err *e)
{
	const char *hex = feed_text(reply, "code");
	size_t len = strlen(hex);

	*out = (struct top_code){ 0 };
	buf_init(&out->code);
	if (!feed_address(json_object_get(reply, "addr"), &out->addr) || len % 2 ||
	    len / 2 > TOP_MAX_CODE)
		return err_set(e, EPROTO, "the run's reply contains no code");
	for (size_t i = 0; i < len; i += 2) {
		int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);

		if (high < 0 || low < 0)
			return err_set(e, EPROTO, "the run's reply: code that is not hexadecimal");
		buf_u8(&out->code, (uint8_t)(high << 4 | low));
	}
	if (out->code.failed)
		return err_nomem(e);
	snprintf(out->symbol, sizeof(out->symbol), "%s", feed_text(reply, "symbol"));
	return take_hits(out, json_object_get(reply, "hits"), e);
}

void top_code_deinit(struct top_code *c)
{
	buf_deinit(&c->code);
	free(c->hit);
	*c = (struct top_code){ 0 };
}
