/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An event's name: what parses is one of the classes, with what that class needs. */
#include "tests/fuzz/fuzz.h"

#include "profile/record/counters/event_name.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct event_name n, again;
	struct err e = { 0 };

	if (event_name_parse(&n, (const char *)data, size, &e) < 0) {
		if (!*e.text || strchr(e.text, '\n'))
			abort();
		return 0;
	}
	if (size >= EVENT_NAME_MAX || memcmp(n.text, data, size) || n.text[size] ||
	    n.base_len > size || n.precise > 3 || n.class > EVENT_TRACEPOINT)
		abort();
	if ((n.class == EVENT_EXIT) != (n.exits != 0))
		abort();
	if (n.class == EVENT_TRACEPOINT && !strchr(n.text, ':'))
		abort();
	/* The part in front of modifiers is an event of its own. */
	if (event_name_parse(&again, n.text, n.base_len, &e) < 0 || again.class != n.class ||
	    again.config != n.config)
		abort();
	return 0;
}
