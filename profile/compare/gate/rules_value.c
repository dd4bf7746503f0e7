/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/rules_value.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Of a number with its unit; beyond, nothing is meant, and arithmetic would overflow. */
#define LEAST_AMOUNT 1e-9
#define MOST_AMOUNT 1e15

/* What a unit is worth in a dimension's own. */
static const struct {
	enum grule_dimension dimension;
	const char *name;
	double scale;
} units[] = {
	{ GRULE_NS, "ns", 1 },
	{ GRULE_NS, "us", 1e3 },
	{ GRULE_NS, "ms", 1e6 },
	{ GRULE_NS, "s", 1e9 },
	{ GRULE_NS, "min", 60e9 },
	{ GRULE_RATE, "/s", 1 },
	{ GRULE_BYTES, "B", 1 },
	{ GRULE_BYTES, "kB", 1e3 },
	{ GRULE_BYTES, "MB", 1e6 },
	{ GRULE_BYTES, "GB", 1e9 },
	{ GRULE_BYTES, "KiB", 1024 },
	{ GRULE_BYTES, "MiB", 1048576 },
	{ GRULE_BYTES, "GiB", 1073741824 },
	{ GRULE_COUNT, "", 1 },
};

static const char *const dimension_units[] = {
	[GRULE_NS] = "%, ns, us, ms, s or min",
	[GRULE_PART] = "% or points",
	[GRULE_RATE] = "% or /s",
	[GRULE_BYTES] = "%, B, kB, MB, GB, KiB, MiB or GiB",
	[GRULE_COUNT] = "% or a number without one",
};

int grule_wrong(const struct grule_parse *p, const struct toml_node *at, const char *fmt, ...)
{
	char text[320];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return err_set(p->e, EINVAL, "%s:%u:%u: %s", p->path, at->line, at->column, text);
}

int grule_no_memory(const struct grule_parse *p)
{
	return err_set(p->e, ENOMEM, "%s: out of memory", p->path);
}

/* -- values ------------------------------------------------------------------------------------ */

int grule_check_kind(const struct grule_parse *p, const struct toml_node *n, enum toml_kind kind)
{
	if (n->kind == kind || (kind == TOML_REAL && n->kind == TOML_INTEGER))
		return 0;
	return grule_wrong(p, n, "%.64s is of the kind %s, expected %s%s", n->key,
			   toml_kind_name(n->kind), toml_kind_name(kind),
			   kind == TOML_STRING && n->kind <= TOML_REAL && n->kind >= TOML_INTEGER
				   ? " (in quotes, with its unit)"
				   : "");
}

int grule_take_text(const struct grule_parse *p, const struct toml_node *n, char **out)
{
	if (!*n->string)
		return grule_wrong(p, n, "%.64s is empty", n->key);
	if (strlen(n->string) > GRULE_MAX_NAME)
		return grule_wrong(p, n, "%.64s is longer than %u bytes", n->key, GRULE_MAX_NAME);
	for (const char *c = n->string; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return grule_wrong(p, n, "%.64s has a control character in it", n->key);
	/* Two selectors in one rule are refused later. */
	free(*out);
	*out = strdup(n->string);
	return *out ? 0 : grule_no_memory(p);
}

/* One of two or three words. */
int grule_take_word(const struct grule_parse *p, const struct toml_node *n, const char *const *word,
		    unsigned int nwords, unsigned int *out)
{
	*out = 0;
	for (unsigned int i = 0; i < nwords; i++)
		if (!strcmp(n->string, word[i])) {
			*out = i;
			return 0;
		}
	return grule_wrong(p, n, "%s is \"%.64s\", expected \"%s\"%s%s%s or \"%s\"", n->key,
			   n->string, word[0], nwords > 2 ? ", \"" : "", nwords > 2 ? word[1] : "",
			   nwords > 2 ? "\"" : "", word[nwords - 1]);
}

int grule_take_part(const struct grule_parse *p, const struct toml_node *n, double least,
		    double most, double *out)
{
	if (!(n->real >= least && n->real <= most))
		return grule_wrong(p, n, "%s is %g, expected %g to %g", n->key, n->real, least,
				   most);
	*out = n->real;
	return 0;
}

int grule_take_regex(const struct grule_parse *p, const struct toml_node *n, char **text,
		     regex_t *out)
{
	char why[160];
	int ret;

	if (strlen(n->string) > GRULE_MAX_PATTERN)
		return grule_wrong(p, n, "%s is longer than %u bytes", n->key, GRULE_MAX_PATTERN);
	ret = regcomp(out, n->string, REG_EXTENDED | REG_NOSUB);
	if (ret) {
		regerror(ret, out, why, sizeof(why));
		return grule_wrong(p, n, "%s \"%.64s\" is no regular expression: %s", n->key,
				   n->string, why);
	}
	*text = strdup(n->string);
	if (*text)
		return 0;
	regfree(out);
	return grule_no_memory(p);
}

/* "2 %", "0.5 points", "20 ms" */
int grule_take_amount(const struct grule_parse *p, const struct toml_node *n,
		      enum grule_dimension d, struct grule_amount *out)
{
	char *unit;
	double v;

	errno = 0;
	v = strtod(n->string, &unit);
	if (unit == n->string || errno || !(v >= LEAST_AMOUNT && v <= MOST_AMOUNT))
		return grule_wrong(p, n,
				   "%s is \"%.64s\", expected a number above 0 with a unit: %s",
				   n->key, n->string, dimension_units[d]);
	while (*unit == ' ')
		unit++;
	*out = (struct grule_amount){ .unit = GATE_ABSOLUTE, .value = v };
	if (!strcmp(unit, "%")) {
		out->unit = GATE_RELATIVE;
		out->value = v / 100;
		return 0;
	}
	if (d == GRULE_PART && (!strcmp(unit, "points") || !strcmp(unit, "point"))) {
		out->unit = GATE_POINTS;
		return v <= 100 ? 0 : grule_wrong(p, n, "%s is more than 100 points", n->key);
	}
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (units[i].dimension == d && !strcmp(unit, units[i].name)) {
			out->value = v * units[i].scale;
			return 0;
		}
	return grule_wrong(p, n, "%s is \"%.64s\": its unit can be %s", n->key, n->string,
			   dimension_units[d]);
}

/* A share: "0.5 %" */
int grule_take_share(const struct grule_parse *p, const struct toml_node *n, double *out)
{
	struct grule_amount a = { 0 };
	int ret = grule_take_amount(p, n, GRULE_PART, &a);

	if (ret)
		return ret;
	*out = a.unit == GATE_POINTS ? a.value / 100 : a.value;
	return *out <= 1 ? 0 : grule_wrong(p, n, "%s is more than 100 %%", n->key);
}
