/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replies of the control socket: whatever is in them, rows add up and lines fit. */
#include "tests/fuzz/fuzz.h"

#include "profile/cmd/top/feed.h"

#include <stdlib.h>

#define COLUMNS 100

static void check_rows(struct top_model *m)
{
	const struct top_filter all = { 0 };
	struct top_rows rows;
	struct err e = { 0 };

	if (top_model_rows(m, TOP_BY_SELF, &all, &rows, &e))
		return;
	for (size_t i = 0; i < rows.n; i++)
		if (rows.row[i].self > rows.row[i].children)
			abort();
}

static void check_screen(struct top_model *m, const struct top_status *st)
{
	struct top_choice choice = { .selected = 1, .expanded = true };
	struct top_screen s;
	struct err e = { 0 };

	top_screen_init(&s);
	if (!top_view_draw(&s, m, st, &choice, (struct top_size){ 30, COLUMNS }, &e) &&
	    (s.nlines > 30 || s.style.len != s.nlines || s.text.len > 30 * (COLUMNS + 1)))
		abort();
	top_screen_deinit(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct top_status st = { .title = "", .event = "" };
	struct top_code code = { 0 };
	struct top_model *m;
	struct err e = { 0 };
	uint64_t seq;
	json_error_t why;
	struct buf text;
	json_t *reply = json_loadb((const char *)data, size, 0, &why);

	if (!reply)
		return 0;
	if (top_model_create(&m, &e))
		abort();
	top_feed_status(&st, reply, &e);
	if (!top_feed_profile(m, reply, TOP_OLDER_FADE, &seq, &e))
		check_rows(m);
	check_screen(m, &st);
	top_model_destroy(m);
	buf_init(&text);
	if (!top_feed_code(&code, reply, &e))
		top_code_draw(&text, &code, &e);
	top_code_deinit(&code);
	buf_deinit(&text);
	json_decref(reply);
	return 0;
}
