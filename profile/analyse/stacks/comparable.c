/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/stacks/comparable.h"

#include "base/hash.h"
#include "base/table.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Where a fact is found: in the object of the engine `exact`, in that of a KVM machine, or at the
 * top of the totals.
 */
enum place { IN_ENGINE = 1, IN_MACHINE = 2, IN_TOTALS = 4, IN_EVENT = 8 };

static const struct part {
	const char *key, *word, *unit;
	unsigned int shift;
	unsigned int places;
	bool of_samples; /* exact counts do not depend on it */
	bool of_words;
} parts[] = {
	{ "name", "engine", "", 0, IN_ENGINE, false, false },
	{ "counts", "exact counts", "", 0, IN_ENGINE, false, false },
	{ "qemu", "QEMU", "", 0, IN_ENGINE, false, false },
	{ "plugin", "plugin version", "", 0, IN_ENGINE, false, false },
	{ "cpu", "processor", "", 0, IN_ENGINE, false, false },
	{ "memory_bytes", "memory", " MiB", 20, IN_ENGINE | IN_MACHINE, false, false },
	{ "vcpus", "vCPUs", "", 0, IN_ENGINE | IN_TOTALS, false, false },
	{ "cmdline", "command line", "", 0, IN_ENGINE | IN_MACHINE, false, true },
	{ "freq_hz", "frequency", " Hz", 0, IN_TOTALS, true, false },
	{ "period", "period", "", 0, IN_ENGINE | IN_EVENT, true, false },
	{ "jitter", "jitter", "", 0, IN_ENGINE | IN_TOTALS, true, false },
	{ "host_cpu", "host processor", "", 0, IN_MACHINE, false, false },
	{ "version", "kvmprof version", "", 0, IN_TOTALS, false, false },
};

static json_t *totals_of(const char *totals)
{
	return totals ? json_loads(totals, 0, NULL) : NULL;
}

/*
 * Returns the event that is compared if it is a count; an event of time has its frequency instead.
 */
static const json_t *counter_of(const json_t *totals)
{
	const json_t *event = json_array_get(json_object_get(totals, "events"), 0);
	const char *unit = json_string_value(json_object_get(event, "unit"));

	return unit && !strcmp(unit, "count") ? event : NULL;
}

static const json_t *value_of(const json_t *totals, const struct part *part)
{
	const json_t *in[] = {
		part->places & IN_ENGINE ? json_object_get(totals, "engine") : NULL,
		part->places & IN_MACHINE ? json_object_get(totals, "machine") : NULL,
		part->places & IN_TOTALS ? totals : NULL,
		part->places & IN_EVENT ? counter_of(totals) : NULL,
	};
	const json_t *v = NULL;

	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]) && !v; i++)
		v = json_object_get(in[i], part->key);
	return v;
}

/* json_equal() returns false for two missing values. */
static bool same_value(const json_t *v, const json_t *w)
{
	return (!v && !w) || json_equal(v, w);
}

/*
 * Appends a value as words; "?" for values that are neither text nor number. A text with blanks is
 * quoted.
 */
static void put_value(struct buf *out, const json_t *v, unsigned int shift)
{
	const char *text = json_string_value(v);

	if (text)
		buf_printf(out, *text && !strchr(text, ' ') ? "%.200s" : "\"%.200s\"", text);
	else if (json_is_boolean(v))
		buf_printf(out, "%s", json_is_true(v) ? "yes" : "no");
	else if (json_is_integer(v))
		buf_printf(out, "%lld", (long long)json_integer_value(v) >> shift);
	else if (json_is_real(v))
		buf_printf(out, "%g", json_real_value(v));
	else
		buf_printf(out, "?");
}

#define WORDS_BYTES 200u

/* Writes the words of `of` that `other` does not have, separated by blanks, as far as they fit. */
static void words_beside(char out[WORDS_BYTES], const char *of, const char *other)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t len; *(of += strspn(of, " ")); of += len) {
		bool there = false;

		len = strcspn(of, " ");
		for (const char *at = other; !there && *(at += strspn(at, " "));
		     at += strcspn(at, " "))
			there = strcspn(at, " ") == len && !memcmp(at, of, len);
		if (there || used + len + 2 > WORDS_BYTES)
			continue;
		used += (size_t)snprintf(out + used, WORDS_BYTES - used, "%s%.*s", used ? " " : "",
					 (int)len, of);
	}
}

/* Appends the words that only one of two command lines has. */
static void put_words(struct buf *out, const char *v, const char *w)
{
	char one[WORDS_BYTES], other[WORDS_BYTES];

	words_beside(one, v, w);
	words_beside(other, w, v);
	if (*one || *other)
		buf_printf(out, "with \"%s\" and with \"%s\"", one, other);
	else
		buf_printf(out, "\"%.200s\" and \"%.200s\"", v, w);
}

static void put_part(struct buf *out, const struct part *part, const json_t *v, const json_t *w)
{
	buf_printf(out, "%s%s ", out->len ? ", " : "", part->word);
	if (part->of_words && json_is_string(v) && json_is_string(w)) {
		put_words(out, json_string_value(v), json_string_value(w));
		return;
	}
	put_value(out, v, part->shift);
	buf_printf(out, " and ");
	put_value(out, w, part->shift);
	buf_printf(out, "%s", part->unit);
}

bool comparable_differs(const char *a, const char *b, struct buf *out)
{
	json_t *first = totals_of(a), *other = totals_of(b);
	const json_t *x = json_object_get(first, "engine"), *y = json_object_get(other, "engine");
	/* If counted, samples are only used to distinguish processes. */
	const bool counted = json_is_true(json_object_get(x, "counts"));
	struct buf words;
	bool differs;

	buf_init(&words);
	if (!x != !y)
		buf_printf(&words, "engine %s and %s", x ? "exact" : "kvm", y ? "exact" : "kvm");
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const json_t *v = value_of(first, &parts[i]), *w = value_of(other, &parts[i]);
		/*
		 * The totals of an exact engine are complete. In others a missing fact is unknown.
		 */
		const bool complete = x && y && parts[i].places & IN_ENGINE;

		if (same_value(v, w) || (counted && parts[i].of_samples) ||
		    (!complete && (!v || !w)))
			continue;
		put_part(&words, &parts[i], v, w);
	}
	/* The words above mention most options of QEMU's machine; this covers the rest. */
	if (x && y && !words.len &&
	    !same_value(json_object_get(x, "machine"), json_object_get(y, "machine")))
		buf_printf(&words, "the machine's options");
	differs = words.len > 0;
	buf_add(out, words.data, words.len);
	out->failed |= words.failed;
	buf_deinit(&words);
	json_decref(first);
	json_decref(other);
	return differs;
}

char *comparable_facts(const char *totals)
{
	json_t *all = totals_of(totals), *few = json_object(), *engine = json_object();
	const json_t *from = json_object_get(all, "engine");
	char *text;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		json_t *v = json_object_get(from, parts[i].key);

		if (v && parts[i].places & IN_ENGINE)
			json_object_set(engine, parts[i].key, v);
		v = json_object_get(all, parts[i].key);
		if (v && parts[i].places & IN_TOTALS)
			json_object_set(few, parts[i].key, v);
	}
	if (from) {
		json_object_set(engine, "machine", json_object_get(from, "machine"));
		json_object_set(few, "engine", engine);
	}
	json_object_set(few, "machine", json_object_get(all, "machine"));
	if (counter_of(all))
		json_object_set_new(few, "events", json_pack("[O]", counter_of(all)));
	text = json_dumps(few, JSON_COMPACT);
	json_decref(engine);
	json_decref(few);
	json_decref(all);
	return text;
}

uint64_t comparable_contents(const struct stackset *s)
{
	uint64_t h = hash_text(HASH_START, s->event ? s->event : "");

	h = table_mix(table_mix(h, s->first_ns), s->last_ns);
	for (size_t i = 0; i < s->nstacks; i++) {
		const struct stackset_stack *st = &s->stack[i];

		h = table_mix(table_mix(table_mix(h, st->weight), st->samples), st->mode);
		/* Hash addresses, because names depend on which symbols are found. */
		for (uint32_t k = 0; k < st->n; k++)
			h = table_mix(h, s->frame[st->frame[k]].addr);
	}
	for (size_t i = 0; s->sample && i < s->nsamples; i++)
		h = table_mix(table_mix(h, s->sample[i].time_ns), s->sample[i].weight);
	return h;
}
