/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/counters/stat.h"

#include <inttypes.h>

/* For people: digits in groups of three. */
static void grouped(char *out, size_t size, uint64_t v)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, v);
	size_t at = 0;

	for (int i = 0; i < n && at + 2 < size; i++) {
		if (i && (n - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = digits[i];
	}
	out[at] = 0;
}

/* Of `vcpus` vCPUs together. Times: percent of theirs; counts: per second. */
static double metric(const struct stat_table *t, const struct stat_row *r, uint64_t v,
		     unsigned int vcpus)
{
	double seconds = (double)t->elapsed_ns / 1e9;

	if (!t->elapsed_ns)
		return 0;
	return r->unit == STAT_NS ? 100 * (double)v / 1e9 / (seconds * vcpus) : (double)v / seconds;
}

static void print_line(const struct stat_table *t, const struct stat_row *r, int vcpu,
		       const struct stat_style *s, FILE *out)
{
	uint64_t v = vcpu < 0 ? stat_sum(t, r) : r->v[vcpu];
	double m = metric(t, r, v, vcpu < 0 ? t->vcpus : 1);
	const char *unit = r->unit == STAT_NS ? "msec" : "";
	const char *of = r->unit == STAT_NS ? "% of the time" : "/sec";
	char value[40];

	if (!r->supported)
		snprintf(value, sizeof(value), "<not supported>");
	else if (r->unit == STAT_NS)
		snprintf(value, sizeof(value), "%.3f", (double)v / 1e6);
	else if (s->sep)
		snprintf(value, sizeof(value), "%" PRIu64, v);
	else
		grouped(value, sizeof(value), v);
	if (s->interval)
		fprintf(out, s->sep ? "%.6f%s" : "%14.6f ", (double)s->time_ns / 1e9, s->sep);
	if (s->per_vcpu)
		fprintf(out, s->sep ? "CPU%d%s" : "CPU%-4d", vcpu, s->sep);
	if (s->sep) {
		fprintf(out, "%s%s%s%s%s%s", value, s->sep, unit, s->sep, r->name, s->sep);
		if (r->supported)
			fprintf(out, "%.3f%s%s\n", m, s->sep, of);
		else
			fprintf(out, "%s\n", s->sep);
		return;
	}
	fprintf(out, "%18s %-4s  %-28s", value, unit, r->name);
	if (r->supported)
		fprintf(out, " #%12.3f %s", m, of);
	fputc('\n', out);
}

void stat_print(const struct stat_table *t, const struct stat_style *s, FILE *out)
{
	for (unsigned int i = 0; i < t->n; i++) {
		const struct stat_row *r = &t->row[i];

		if (!r->always && r->supported && !stat_sum(t, r))
			continue;
		if (!s->per_vcpu)
			print_line(t, r, -1, s, out);
		for (unsigned int v = 0; s->per_vcpu && v < t->vcpus; v++)
			print_line(t, r, (int)v, s, out);
	}
}

void stat_json(const struct stat_table *t, struct buf *b)
{
	buf_printf(b, "{\"elapsed_ns\":%" PRIu64 ",\"vcpus\":%u,\"counters\":{", t->elapsed_ns,
		   t->vcpus);
	for (unsigned int i = 0; i < t->n; i++) {
		const struct stat_row *r = &t->row[i];

		buf_printf(b, "%s\"%s\":", i ? "," : "", r->name);
		if (!r->supported) {
			buf_printf(b, "null");
			continue;
		}
		buf_printf(b, "{\"unit\":\"%s\",\"sum\":%" PRIu64 ",\"vcpu\":[",
			   r->unit == STAT_NS ? "ns" : "", stat_sum(t, r));
		for (unsigned int v = 0; v < t->vcpus; v++)
			buf_printf(b, "%s%" PRIu64, v ? "," : "", r->v[v]);
		buf_printf(b, "]}");
	}
	buf_printf(b, "}}");
}
