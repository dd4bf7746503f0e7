/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/control/request.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The most bytes of the client's own text that an error repeats. */
#define SHOWN 60

#define WRONG(e, ...) err_set(e, EINVAL, __VA_ARGS__)

typedef int take_fn(struct control_request *r, const char *key, const json_t *v, struct err *e);

/* -- members -------------------------------------------------------------------------- */

static int take_on(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	if (!json_is_boolean(v))
		return WRONG(e, "'%s' must be true or false", key);
	r->on = json_is_true(v);
	return 0;
}

static int take_number(const char *key, const json_t *v, uint64_t min, uint64_t max, uint64_t *out,
		       struct err *e)
{
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v) || n < 0 || (uint64_t)n < min || (uint64_t)n > max)
		return WRONG(e, "'%s' must be a whole number from %llu to %llu", key,
			     (unsigned long long)min, (unsigned long long)max);
	*out = (uint64_t)n;
	return 0;
}

static int take_u32(const char *key, const json_t *v, uint32_t min, uint32_t max, uint32_t *out,
		    struct err *e)
{
	uint64_t n = 0;
	int ret = take_number(key, v, min, max, &n, e);

	if (!ret)
		*out = (uint32_t)n;
	return ret;
}

static int take_vcpu(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	if (json_is_string(v) && !strcmp(json_string_value(v), "all")) {
		r->all = true;
		return 0;
	}
	if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > UINT32_MAX)
		return WRONG(e, "'%s' must be a vCPU's number or \"all\"", key);
	r->vcpu = (uint32_t)json_integer_value(v);
	return 0;
}

static int take_event(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	struct control_event *ev = &r->event[r->nevents];
	size_t len = json_string_length(v);

	if (json_is_integer(v) && json_integer_value(v) >= 0 &&
	    json_integer_value(v) <= UINT32_MAX) {
		ev->index = (uint32_t)json_integer_value(v);
	} else if (json_is_string(v) && len && len < sizeof(ev->name)) {
		memcpy(ev->name, json_string_value(v), len + 1);
	} else {
		return WRONG(e, "'%s' must be an event's name or index", key);
	}
	r->nevents++;
	return 0;
}

static int take_events(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	int ret = 0;

	if (!json_is_array(v) || !json_array_size(v) || json_array_size(v) > CONTROL_MAX_EVENTS)
		return WRONG(e, "'%s' must be a list of 1 to %u events", key, CONTROL_MAX_EVENTS);
	for (size_t i = 0; !ret && i < json_array_size(v); i++)
		ret = take_event(r, key, json_array_get(v, i), e);
	return ret;
}

static int take_value(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	if (r->cmd != CONTROL_FREQ)
		return take_number(key, v, 1, INT64_MAX, &r->value, e);
	r->hz = json_number_value(v);
	/* Written so that it also fails for NaN. */
	if (!json_is_number(v) || !(r->hz > 0 && r->hz <= 1e9))
		return WRONG(e, "'%s' must be a number of samples a second", key);
	return 0;
}

static int take_amount(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	return take_number(key, v, 1, UINT32_MAX, &r->value, e);
}

static int take_path(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	size_t len = json_string_length(v);

	if (!json_is_string(v) || !len || len >= sizeof(r->path))
		return WRONG(e, "'%s' must be a path of 1 to %zu bytes", key, sizeof(r->path) - 1);
	memcpy(r->path, json_string_value(v), len + 1);
	return 0;
}

static int take_name(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	size_t len = json_string_length(v);

	if (!json_is_string(v) || !len || len >= sizeof(r->name))
		return WRONG(e, "'%s' must be a name of 1 to %zu bytes", key, sizeof(r->name) - 1);
	memcpy(r->name, json_string_value(v), len + 1);
	return 0;
}

static int take_since(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	return take_number(key, v, 0, INT64_MAX, &r->since, e);
}

static int take_stacks(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	return take_u32(key, v, 1, 10000, &r->max_stacks, e);
}

static int take_depth(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	return take_u32(key, v, 1, 127, &r->max_depth, e);
}

static int take_addr(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	const char *s = json_is_string(v) ? json_string_value(v) : "";
	size_t len = strlen(s);

	/* strtoull would accept a sign, blanks, and more than 64 bits. */
	if (len < 3 || len > 18 || s[0] != '0' || s[1] != 'x' ||
	    strspn(s + 2, "0123456789abcdefABCDEF") != len - 2)
		return WRONG(e, "'%s' must be an address as \"0xffffffff81000000\"", key);
	r->addr = strtoull(s, NULL, 16);
	return 0;
}

static int take_len(struct control_request *r, const char *key, const json_t *v, struct err *e)
{
	return take_u32(key, v, 1, CONTROL_MAX_TEXT, &r->len, e);
}

/* -- commands ------------------------------------------------------------------------- */

#define MAX_MEMBERS 3

static const struct request_command {
	const char *name;
	struct request_member {
		const char *key;
		take_fn *take;
		bool optional;
	} member[MAX_MEMBERS];
} commands[CONTROL_CMDS] = {
	[CONTROL_HELLO] = { "hello", { { "version", take_amount, false } } },
	[CONTROL_STATUS] = { "status", { { 0 } } },
	[CONTROL_STATS] = { "stats", { { 0 } } },
	[CONTROL_COLLECT] = { "collect", { { "on", take_on, false } } },
	[CONTROL_VCPU] = { "vcpu", { { "vcpu", take_vcpu, false }, { "on", take_on, false } } },
	[CONTROL_ARM] = { "arm", { { "event", take_event, false } } },
	[CONTROL_DISARM] = { "disarm", { { "event", take_event, false } } },
	[CONTROL_EVENT] = { "event", { { "events", take_events, false } } },
	[CONTROL_PERIOD] = { "period",
			     { { "event", take_event, false }, { "value", take_value, false } } },
	[CONTROL_FREQ] = { "freq",
			   { { "event", take_event, false }, { "value", take_value, false } } },
	[CONTROL_STACK_SIZE] = { "stack-size", { { "bytes", take_amount, false } } },
	[CONTROL_MAX_STACK] = { "max-stack", { { "frames", take_amount, false } } },
	[CONTROL_SNAPSHOT] = { "snapshot", { { "path", take_path, false } } },
	[CONTROL_MARK] = { "mark", { { "name", take_name, false } } },
	[CONTROL_PROFILE] = { "profile",
			      { { "since", take_since, true },
				{ "max_stacks", take_stacks, true },
				{ "max_depth", take_depth, true } } },
	[CONTROL_TEXT] = { "text", { { "addr", take_addr, false }, { "len", take_len, true } } },
	[CONTROL_PS] = { "ps", { { "stacks", take_on, true } } },
	[CONTROL_STOP] = { "stop", { { 0 } } },
};

const char *control_cmd_name(enum control_cmd cmd)
{
	return commands[cmd].name;
}

static int find_command(struct control_request *r, const json_t *root, struct err *e)
{
	const char *name = json_string_value(json_object_get(root, "cmd"));

	if (!name)
		return WRONG(e, "a request needs a 'cmd', which is a string");
	for (unsigned int i = 0; i < CONTROL_CMDS; i++)
		if (!strcmp(name, commands[i].name)) {
			r->cmd = (enum control_cmd)i;
			return 0;
		}
	return WRONG(e, "there is no command '%.*s'", SHOWN, name);
}

static const struct request_member *find_member(const struct request_command *c, const char *key)
{
	for (unsigned int i = 0; i < MAX_MEMBERS && c->member[i].key; i++)
		if (!strcmp(key, c->member[i].key))
			return &c->member[i];
	return NULL;
}

static int take_members(struct control_request *r, json_t *root, struct err *e)
{
	const struct request_command *c = &commands[r->cmd];
	const char *key;
	json_t *v;
	int ret;

	json_object_foreach(root, key, v)
	{
		const struct request_member *m = find_member(c, key);

		if (!strcmp(key, "cmd") || !strcmp(key, "id"))
			continue;
		if (!m)
			return WRONG(e, "'%s' has no member '%.*s'", c->name, SHOWN, key);
		ret = m->take(r, key, v, e);
		if (ret)
			return ret;
	}
	for (unsigned int i = 0; i < MAX_MEMBERS && c->member[i].key; i++)
		if (!c->member[i].optional && !json_object_get(root, c->member[i].key))
			return WRONG(e, "'%s' needs '%s'", c->name, c->member[i].key);
	return 0;
}

static int parse_object(struct control_request *r, json_t *root, struct err *e)
{
	const json_t *id = json_object_get(root, "id");
	int ret;

	if (!json_is_object(root))
		return WRONG(e, "a request must be a JSON object");
	if (json_is_integer(id)) {
		r->has_id = true;
		r->id = json_integer_value(id);
	} else if (id) {
		return WRONG(e, "'id' must be a whole number");
	}
	ret = find_command(r, root, e);
	return ret ? ret : take_members(r, root, e);
}

int control_request_parse(struct control_request *out, const char *line, size_t len, struct err *e)
{
	json_error_t why;
	json_t *root;
	int ret;

	memset(out, 0, sizeof(*out));
	if (len > CONTROL_MAX_LINE)
		return WRONG(e, "a request may have %u bytes at most", CONTROL_MAX_LINE);
	root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		return WRONG(e, "not a line of JSON: at byte %d: %.200s", why.position, why.text);
	ret = parse_object(out, root, e);
	json_decref(root);
	return ret;
}

/* -- replies -------------------------------------------------------------------------- */

static void reply_begin(struct json_writer *w, struct buf *b, const struct control_request *r,
			bool ok)
{
	buf_u8(b, '{');
	json_begin_members(w, b);
	json_bool(w, "ok", ok);
	if (r->has_id)
		json_i64(w, "id", r->id);
}

void control_reply_begin(struct json_writer *w, struct buf *b, const struct control_request *r)
{
	reply_begin(w, b, r, true);
}

void control_reply_end(struct json_writer *w)
{
	buf_u8(w->b, '}');
}

void control_reply_error(struct buf *b, const struct control_request *r, const char *text)
{
	struct json_writer w;

	reply_begin(&w, b, r, false);
	json_str(&w, "error", text);
	control_reply_end(&w);
}
