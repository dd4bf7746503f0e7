/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/summary/facts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Finds the fact of a reference: "key}", "key:3/1e9}", "key.p50:1/1e3}". Returns NULL if there is
 * none.
 */
static const struct fact *fact_find(const struct fact *f, size_t n, const char *ref)
{
	size_t len = strcspn(ref, ".:}");

	for (size_t i = 0; i < n; i++)
		if (f[i].key && !strncmp(f[i].key, ref, len) && !f[i].key[len])
			return &f[i];
	return NULL;
}

static bool keys_are_known(const struct fact *f, size_t n, const char *text)
{
	while ((text = strchr(text, '{')))
		if (!fact_find(f, n, ++text) || !strchr(text, '}'))
			return false;
	return true;
}

static uint64_t number(const struct fact *f, const char *ref)
{
	const char *which = ref + strcspn(ref, ".}") + 1;

	if (f->kind != FACT_TIMES)
		return f->u;
	return *which == 'm' ? f->h->max : hist_quantile(f->h, (unsigned int)atoi(which + 1) * 10);
}

static void print_value(const struct fact *f, const char *ref, FILE *out)
{
	const char *form = ref + strcspn(ref, ":}");
	const char *by = form + strcspn(form, "/}");
	double v = f->kind == FACT_REAL ? f->d : (double)number(f, ref);

	if (f->kind == FACT_STR)
		fputs(f->s, out);
	else if (f->kind == FACT_HEX)
		fprintf(out, "%" PRIx64, f->u);
	else if (*form == '}')
		fprintf(out, "%" PRIu64, number(f, ref));
	else if (form[1] == 'g')
		fprintf(out, "%g", *by == '/' ? v / strtod(by + 1, NULL) : v);
	else
		fprintf(out, "%.*f", atoi(form + 1), *by == '/' ? v / strtod(by + 1, NULL) : v);
}

static void print_line(const struct fact *f, size_t n, const char *text, FILE *out)
{
	const char *ref;

	fputs("kvmprof: ", out);
	for (; (ref = strchr(text, '{')); text = strchr(ref, '}') + 1) {
		fwrite(text, 1, (size_t)(ref++ - text), out);
		print_value(fact_find(f, n, ref), ref, out);
	}
	fprintf(out, "%s\n", text);
}

static void write_member(const struct fact *f, struct json_writer *w)
{
	switch (f->kind) {
	case FACT_NUM:
		json_u64(w, f->key, f->u);
		break;
	case FACT_FLAG:
		json_bool(w, f->key, f->u);
		break;
	case FACT_STR:
		json_str(w, f->key, f->s);
		break;
	case FACT_HEX:
		json_strf(w, f->key, "%" PRIx64, f->u);
		break;
	case FACT_REAL:
		if (f->decimals == FACT_SHORTEST)
			json_number(w, f->key, "%g", f->d);
		else
			json_number(w, f->key, "%.*f", f->decimals, f->d);
		break;
	case FACT_TIMES:
		json_object_begin(w, f->key);
		json_u64(w, "count", f->h->count);
		json_u64(w, "p50", hist_quantile(f->h, 500));
		json_u64(w, "p99", hist_quantile(f->h, 990));
		json_u64(w, "max", f->h->max);
		json_object_end(w);
		break;
	}
}

void facts_write(const struct facts_out *o, const struct fact *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool shown = f[i].kind == FACT_STR ? f[i].s && *f[i].s : f[i].u != 0;

		assert(keys_are_known(f, n, f[i].text));
		if (o->json && f[i].key && !f[i].unless)
			write_member(&f[i], o->json);
		if (o->text && *f[i].text && shown)
			print_line(f, n, f[i].text, o->text);
	}
}

void facts_object(const struct facts_out *o, const char *key)
{
	if (o->json)
		json_object_begin(o->json, key);
}

void facts_object_end(const struct facts_out *o)
{
	if (o->json)
		json_object_end(o->json);
}

void facts_array(const struct facts_out *o, const char *key)
{
	if (o->json)
		json_array_begin(o->json, key);
}

void facts_array_end(const struct facts_out *o)
{
	if (o->json)
		json_array_end(o->json);
}

const char *facts_string(struct buf *b)
{
	buf_u8(b, 0);
	return b->failed ? "" : (const char *)b->data;
}
