/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/why/log.h"

#include "base/cleanup.h"
#include "base/utf8.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct why_log {
	const struct why_log_request *q;
	struct linux_printk_style style;
	struct buf *out;
	json_t *records;
	bool failed;
};

static const char *const level_name[WHY_LOG_LEVELS] = { "emerg", "alert",  "crit", "err",
							"warn",	 "notice", "info", "debug" };

const char *why_log_level_name(unsigned int level)
{
	return level < WHY_LOG_LEVELS ? level_name[level] : NULL;
}

static void set(struct why_log *l, json_t *o, const char *key, json_t *v)
{
	l->failed |= json_object_set_new(o, key, v) < 0;
}

json_t *why_json_bytes(const char *text, size_t len)
{
	cleanup_free char *copy = strndup(text, len);
	cleanup_free char *valid = copy ? utf8_copy(copy) : NULL;

	return valid ? json_string(valid) : NULL;
}

json_t *why_json_text(const char *text)
{
	return why_json_bytes(text, strlen(text));
}

static void add_object(struct why_log *l, const struct linux_printk_record *r)
{
	json_t *o = json_object();

	set(l, o, "seq", json_integer((json_int_t)r->seq));
	set(l, o, "time_ns", json_integer((json_int_t)r->ts_ns));
	set(l, o, "facility", json_integer(r->facility));
	set(l, o, "level", json_string(level_name[r->level % WHY_LOG_LEVELS]));
	if (l->style.caller) {
		char caller[12];

		linux_printk_caller(r, caller);
		set(l, o, "caller", json_string(caller));
	}
	if (*r->subsystem)
		set(l, o, "subsystem", why_json_text(r->subsystem));
	if (*r->device)
		set(l, o, "device", why_json_text(r->device));
	set(l, o, "text", why_json_bytes(r->text, r->len));
	l->failed |= json_array_append_new(l->records, o) < 0;
	if (json_array_size(l->records) > l->q->most)
		json_array_remove(l->records, 0);
}

static int add_record(void *ctx, const struct linux_printk_record *r)
{
	struct why_log *l = ctx;

	if (!(l->q->levels >> r->level & 1))
		return 0;
	if (l->q->form == WHY_LOG_JSON)
		add_object(l, r);
	else
		linux_printk_print(r, &l->style, l->out);
	return l->failed || l->out->failed ? -ENOMEM : 0;
}

/* Removes all but the last `most` lines behind `start`. */
static void keep_lines(struct buf *out, size_t start, size_t most)
{
	size_t at = out->len;

	for (size_t n = 0; at > start; at--)
		if (out->data[at - 1] == '\n' && n++ == most)
			break;
	if (at == start)
		return;
	memmove(out->data + start, out->data + at, out->len - at);
	out->len -= at - start;
}

static int print_json(struct why_log *l, const char *release,
		      const struct linux_printk_losses *losses, struct err *e)
{
	json_t *o = json_object(), *missing = json_object();
	cleanup_free char *text = NULL;

	set(l, missing, "unfinished", json_integer((json_int_t)losses->unfinished));
	set(l, missing, "overwritten", json_integer((json_int_t)losses->overwritten));
	set(l, missing, "absent", json_integer((json_int_t)losses->absent));
	set(l, missing, "ended_early", json_boolean(losses->ended_early));
	set(l, o, "version", json_integer(1));
	set(l, o, "release", why_json_text(release));
	set(l, o, "missing", missing);
	l->failed |= json_object_set(o, "records", l->records) < 0;
	text = l->failed ? NULL : json_dumps(o, JSON_COMPACT);
	json_decref(o);
	if (!text)
		return err_nomem(e);
	buf_printf(l->out, "%s\n", text);
	return 0;
}

int why_log_read(struct guest *g, const struct why_log_request *q, struct buf *out,
		 struct linux_printk_losses *losses, struct err *e)
{
	const struct target *t = guest_target(g);
	const struct memory *m = guest_reader(g, e);
	struct why_log l = { .q = q, .out = out };
	struct linux_printk_reading reading = {
		.most = q->levels == WHY_LOG_ALL_LEVELS ? q->most : SIZE_MAX,
		.each = add_record,
		.ctx = &l,
	};
	size_t start = out->len;
	int ret;

	if (!m)
		return -EAGAIN;
	if (!t->linux_facts.have_printk)
		return err_set(e, ENOENT, "%s", t->linux_facts.printk_note.text);
	l.style = linux_printk_style(&t->linux_facts.printk, m);
	l.style.level = q->form == WHY_LOG_RAW;
	l.records = json_array();
	ret = l.records ? linux_printk_read(&t->linux_facts.printk, m, &reading, e) : -ENOMEM;
	if (!ret && q->form == WHY_LOG_JSON)
		ret = print_json(&l, guest_release(g), &reading.losses, e);
	else if (!ret)
		keep_lines(out, start, q->most);
	json_decref(l.records);
	*losses = reading.losses;
	return ret == -ENOMEM || out->failed ? err_nomem(e) : ret;
}
