/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/json_members.h"

#include <string.h>

struct scan {
	const char *p, *end;
};

static void skip_blanks(struct scan *s)
{
	while (s->p < s->end && memchr(" \t\r\n", *s->p, 4))
		s->p++;
}

static bool take(struct scan *s, char c)
{
	skip_blanks(s);
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

/* Past a string, whose first quote is taken. */
static bool skip_string(struct scan *s)
{
	while (s->p < s->end) {
		char c = *s->p++;

		if (c == '"')
			return true;
		if (c == '\\' && s->p < s->end)
			s->p++;
	}
	return false;
}

/* Up to the comma or brace behind a value. */
static bool skip_value(struct scan *s)
{
	unsigned int depth = 0;
	const char *start = s->p;

	for (; s->p < s->end; s->p++) {
		switch (*s->p) {
		case '"':
			s->p++;
			if (!skip_string(s))
				return false;
			s->p--;
			break;
		case '{':
		case '[':
			if (++depth > JSON_MEMBERS_DEPTH)
				return false;
			break;
		case '}':
		case ']':
			if (!depth)
				return s->p > start;
			depth--;
			break;
		case ',':
			if (!depth)
				return s->p > start;
			break;
		}
	}
	return false;
}

bool json_members(const char *text, size_t len, json_member each, void *ctx)
{
	struct scan s = { text, text + len };

	if (!take(&s, '{'))
		return false;
	if (take(&s, '}'))
		return true;
	for (unsigned int i = 0; i < JSON_MEMBERS_MAX; i++) {
		const char *key, *value;
		size_t key_len;

		if (!take(&s, '"'))
			return false;
		key = s.p;
		if (!skip_string(&s))
			return false;
		key_len = (size_t)(s.p - key) - 1;
		if (!take(&s, ':'))
			return false;
		skip_blanks(&s);
		value = s.p;
		if (!skip_value(&s))
			return false;
		each(ctx, key, key_len, value, (size_t)(s.p - value));
		if (*s.p++ != ',')
			return true;
	}
	return false;
}
