/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/stacks/comparable.h"

#include <jansson.h>
#include <string.h>

static json_t *engine_of(const char *totals)
{
	json_t *all = totals ? json_loads(totals, 0, NULL) : NULL, *engine;

	engine = json_incref(json_object_get(all, "engine"));
	json_decref(all);
	return engine;
}

/* json_equal() says no of two that are not there. */
static bool same_value(const json_t *v, const json_t *w)
{
	return (!v && !w) || json_equal(v, w);
}

/* Words of a value; what is no text or number is "?". */
static void put_value(struct buf *out, const json_t *v, unsigned int shift)
{
	if (json_is_string(v))
		buf_printf(out, "%.200s", json_string_value(v));
	else if (json_is_boolean(v))
		buf_printf(out, "%s", json_is_true(v) ? "yes" : "no");
	else if (json_is_integer(v))
		buf_printf(out, "%lld", (long long)json_integer_value(v) >> shift);
	else
		buf_printf(out, "?");
}

bool comparable_differs(const char *a, const char *b, struct buf *out)
{
	static const struct {
		const char *key, *word, *unit;
		unsigned int shift;
		bool of_samples; /* of exact counts it does not matter */
	} parts[] = {
		{ "name", "engine", "", 0, false },
		{ "counts", "exact counts", "", 0, false },
		{ "qemu", "QEMU", "", 0, false },
		{ "plugin", "plugin version", "", 0, false },
		{ "cpu", "processor", "", 0, false },
		{ "memory_bytes", "memory", " MiB", 20, false },
		{ "vcpus", "vCPUs", "", 0, false },
		{ "period", "period", "", 0, true },
		{ "jitter", "jitter", "", 0, true },
	};
	json_t *x = engine_of(a), *y = engine_of(b);
	/* Then samples only tell processes apart. */
	bool counted = json_is_true(json_object_get(x, "counts")), differs = false;

	if (!x != !y) {
		buf_printf(out, "engine %s and %s", x ? "exact" : "kvm", y ? "exact" : "kvm");
		differs = true;
	}
	for (size_t i = 0; x && y && i < sizeof(parts) / sizeof(parts[0]); i++) {
		const json_t *v = json_object_get(x, parts[i].key),
			     *w = json_object_get(y, parts[i].key);

		if (same_value(v, w) || (counted && parts[i].of_samples))
			continue;
		buf_printf(out, "%s%s ", differs ? ", " : "", parts[i].word);
		put_value(out, v, parts[i].shift);
		buf_printf(out, " and ");
		put_value(out, w, parts[i].shift);
		buf_printf(out, "%s", parts[i].unit);
		differs = true;
	}
	/* The options of QEMU's machine have the rest; the words above have told most of it. */
	if (x && y && !differs &&
	    !same_value(json_object_get(x, "machine"), json_object_get(y, "machine"))) {
		buf_printf(out, "the machine's options");
		differs = true;
	}
	json_decref(x);
	json_decref(y);
	return differs;
}
