/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/rules.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "profile/analyse/stacks/identity.h"
#include "profile/compare/gate/toml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RULES_MAX_ALIAS 16384u /* bytes of a function's other name; what is longer is cut */

extern const char gate_default_toml[], gate_default_toml_end[];
extern const char gate_exact_toml[], gate_exact_toml_end[];
extern const char gate_vmm_toml[], gate_vmm_toml_end[];

#define DEFAULT_PATH "(default rules)"

static const struct {
	const char *name;
	enum gate_rule_dimension dimension;
	const char *members; /* name of a family's members; NULL: functions */
} metrics[GATE_RULE_METRIC_MAX] = {
	[GATE_RULE_TIME] = { "time", GATE_RULE_NS },
	[GATE_RULE_BOOT_TIME] = { "boot-time", GATE_RULE_NS },
	[GATE_RULE_VMM_TIME] = { "vmm-time", GATE_RULE_NS },
	[GATE_RULE_SHARE] = { "share", GATE_RULE_PART },
	[GATE_RULE_FUNCTION_TIME] = { "function-time", GATE_RULE_NS },
	[GATE_RULE_SYMBOLS] = { "symbols", GATE_RULE_PART },
	[GATE_RULE_NEW_SYMBOLS] = { "new-symbols", GATE_RULE_PART },
	[GATE_RULE_EXITS] = { "exits", GATE_RULE_RATE },
	[GATE_RULE_IO_BYTES] = { "io-bytes", GATE_RULE_BYTES },
	[GATE_RULE_COUNTER] = { "counter", GATE_RULE_COUNT },
	[GATE_RULE_INSNS] = { "instructions", GATE_RULE_COUNT },
	[GATE_RULE_INSN_FUNCTIONS] = { "function-instructions", GATE_RULE_COUNT },
	[GATE_RULE_INSN_STACKS] = { "stack-instructions", GATE_RULE_COUNT, "stacks" },
	[GATE_RULE_INSN_SYSCALLS] = { "syscall-instructions", GATE_RULE_COUNT, "system calls" },
	[GATE_RULE_INSN_TASKS] = { "task-instructions", GATE_RULE_COUNT, "tasks" },
	[GATE_RULE_INSN_PHASES] = { "phase-instructions", GATE_RULE_COUNT, "phases" },
};

#define ALL ((1u << GATE_RULE_METRIC_MAX) - 1)
#define FUNCTIONS (1u << GATE_RULE_SHARE | 1u << GATE_RULE_FUNCTION_TIME)
#define FAMILIES (1u << GATE_RULE_SYMBOLS | 1u << GATE_RULE_NEW_SYMBOLS | EXACT_FAMILIES)
#define EXACT_FAMILIES                                                  \
	(1u << GATE_RULE_INSN_FUNCTIONS | 1u << GATE_RULE_INSN_STACKS | \
	 1u << GATE_RULE_INSN_SYSCALLS | 1u << GATE_RULE_INSN_TASKS | 1u << GATE_RULE_INSN_PHASES)
#define NAMELESS (1u << GATE_RULE_INSN_TASKS | 1u << GATE_RULE_INSN_PHASES) /* no functions */
#define EXACT (1u << GATE_RULE_INSNS | EXACT_FAMILIES)
#define SELECTS (FUNCTIONS | 1u << GATE_RULE_INSNS)

/* How a key's value is read, and so of which kind it is. */
enum taking {
	TAKE_METRIC, /* before all others */
	TAKE_LEVEL,
	TAKE_WORSE,
	TAKE_MEASURE,
	TAKE_PHASE,
	TAKE_WORK,
	TAKE_TEXT,
	TAKE_REGEX,
	TAKE_EXCLUDE,
	TAKE_AMOUNT,
	TAKE_SHARE,
	TAKE_PART,
	TAKE_FLAG,
};

#define AT(member) .at = offsetof(struct gate_rule, member)

static const struct rules_key {
	const char *name;
	unsigned int metrics;
	enum taking taking;
	size_t at;	    /* offset of the member: TAKE_TEXT, _AMOUNT, _PART and _FLAG */
	double least, most; /* bounds for TAKE_PART */
	bool selects;	    /* a rule on functions has one such key */
	bool subtree;
} known[] = {
	{ "name", ALL, TAKE_TEXT, AT(name) },
	{ "metric", ALL, .taking = TAKE_METRIC },
	{ "level", ALL, .taking = TAKE_LEVEL },
	{ "optional", ALL, TAKE_FLAG, AT(optional) },
	{ "strict", ALL & ~EXACT, TAKE_FLAG, AT(strict) },
	{ "worse", ALL & ~(1u << GATE_RULE_NEW_SYMBOLS), .taking = TAKE_WORSE },
	{ "alpha", ALL & ~EXACT, TAKE_PART, AT(alpha), .least = 1e-6, .most = 0.5 },
	{ "power", ALL & ~EXACT, TAKE_PART, AT(power), .least = 0.5, .most = 0.999 },
	{ "quantile", ALL & ~FAMILIES & ~EXACT, TAKE_PART, AT(quantile), .least = 0, .most = 1 },
	{ "threshold", ALL, TAKE_AMOUNT, AT(threshold) },
	{ "min-effect", ALL, TAKE_AMOUNT, AT(min_effect) },
	{ "from", 1u << GATE_RULE_TIME, TAKE_TEXT, AT(from) },
	{ "until", 1u << GATE_RULE_TIME, TAKE_TEXT, AT(until) },
	{ "phase", 1u << GATE_RULE_TIME | (EXACT & ~(1u << GATE_RULE_INSN_PHASES)),
	  .taking = TAKE_PHASE },
	{ "work", EXACT, .taking = TAKE_WORK },
	{ "symbol", SELECTS, TAKE_TEXT, AT(symbol), .selects = true },
	{ "subtree", SELECTS, TAKE_TEXT, AT(symbol), .selects = true, .subtree = true },
	{ "regex", SELECTS, .taking = TAKE_REGEX, .selects = true },
	{ "subtree-regex", SELECTS, .taking = TAKE_REGEX, .selects = true, .subtree = true },
	{ "dso", SELECTS | (FAMILIES & ~NAMELESS), TAKE_TEXT, AT(dso) },
	{ "measure", 1u << GATE_RULE_SYMBOLS, .taking = TAKE_MEASURE },
	{ "children",
	  1u << GATE_RULE_SYMBOLS | 1u << GATE_RULE_NEW_SYMBOLS | 1u << GATE_RULE_INSN_FUNCTIONS,
	  TAKE_FLAG, AT(children) },
	{ "min-share", 1u << GATE_RULE_SYMBOLS, .taking = TAKE_SHARE },
	{ "exclude", FAMILIES, .taking = TAKE_EXCLUDE },
	{ "exit", 1u << GATE_RULE_EXITS, TAKE_TEXT, AT(exit) },
	{ "counter", 1u << GATE_RULE_COUNTER, TAKE_TEXT, AT(counter) },
	{ "per-second", 1u << GATE_RULE_COUNTER, TAKE_FLAG, AT(per_second) },
};

struct rules_parse {
	const char *path;
	struct gate_rules *rules;
	struct err *e;
};

/* -- values ---------------------------------------------------------------------------------------- */

/* Bounds of a number with its unit: arithmetic with larger ones could overflow. */
#define LEAST_AMOUNT 1e-9
#define MOST_AMOUNT 1e15

/* The units of each dimension, in its own unit. */
static const struct {
	enum gate_rule_dimension dimension;
	const char *name;
	double scale;
} units[] = {
	{ GATE_RULE_NS, "ns", 1 },
	{ GATE_RULE_NS, "us", 1e3 },
	{ GATE_RULE_NS, "ms", 1e6 },
	{ GATE_RULE_NS, "s", 1e9 },
	{ GATE_RULE_NS, "min", 60e9 },
	{ GATE_RULE_RATE, "/s", 1 },
	{ GATE_RULE_BYTES, "B", 1 },
	{ GATE_RULE_BYTES, "kB", 1e3 },
	{ GATE_RULE_BYTES, "MB", 1e6 },
	{ GATE_RULE_BYTES, "GB", 1e9 },
	{ GATE_RULE_BYTES, "KiB", 1024 },
	{ GATE_RULE_BYTES, "MiB", 1048576 },
	{ GATE_RULE_BYTES, "GiB", 1073741824 },
	{ GATE_RULE_COUNT, "", 1 },
};

static const char *const dimension_units[] = {
	[GATE_RULE_NS] = "%, ns, us, ms, s or min",
	[GATE_RULE_PART] = "% or points",
	[GATE_RULE_RATE] = "% or /s",
	[GATE_RULE_BYTES] = "%, B, kB, MB, GB, KiB, MiB or GiB",
	[GATE_RULE_COUNT] = "% or a number without one",
};

/* "PATH:LINE:COLUMN: what"; -EINVAL. */
__attribute__((format(printf, 3, 4))) static int rules_wrong(const struct rules_parse *p,
							     const struct toml_node *at,
							     const char *fmt, ...)
{
	char text[320];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return err_set(p->e, EINVAL, "%s:%u:%u: %s", p->path, at->line, at->column, text);
}

static int rules_no_memory(const struct rules_parse *p)
{
	return err_set(p->e, ENOMEM, "%s: out of memory", p->path);
}

static int rules_check_kind(const struct rules_parse *p, const struct toml_node *n,
			    enum toml_kind kind)
{
	if (n->kind == kind || (kind == TOML_REAL && n->kind == TOML_INTEGER))
		return 0;
	return rules_wrong(p, n, "%.64s has the type %s, expected %s%s", n->key,
			   toml_kind_name(n->kind), toml_kind_name(kind),
			   kind == TOML_STRING && n->kind <= TOML_REAL && n->kind >= TOML_INTEGER
				   ? " (in quotes, with its unit)"
				   : "");
}

static int rules_take_text(const struct rules_parse *p, const struct toml_node *n, char **out)
{
	if (!*n->string)
		return rules_wrong(p, n, "%.64s is empty", n->key);
	if (strlen(n->string) > GATE_RULE_MAX_NAME)
		return rules_wrong(p, n, "%.64s is longer than %u bytes", n->key,
				   GATE_RULE_MAX_NAME);
	for (const char *c = n->string; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return rules_wrong(p, n, "%.64s contains a control character", n->key);
	/* Two selectors in one rule are refused later. */
	free(*out);
	*out = strdup(n->string);
	return *out ? 0 : rules_no_memory(p);
}

/* One of two or three words. */
static int rules_take_word(const struct rules_parse *p, const struct toml_node *n,
			   const char *const *word, unsigned int nwords, unsigned int *out)
{
	*out = 0;
	for (unsigned int i = 0; i < nwords; i++)
		if (!strcmp(n->string, word[i])) {
			*out = i;
			return 0;
		}
	return rules_wrong(p, n, "%s is \"%.64s\", expected \"%s\"%s%s%s or \"%s\"", n->key,
			   n->string, word[0], nwords > 2 ? ", \"" : "", nwords > 2 ? word[1] : "",
			   nwords > 2 ? "\"" : "", word[nwords - 1]);
}

static int rules_take_part(const struct rules_parse *p, const struct toml_node *n, double least,
			   double most, double *out)
{
	if (!(n->real >= least && n->real <= most))
		return rules_wrong(p, n, "%s is %g, expected %g to %g", n->key, n->real, least,
				   most);
	*out = n->real;
	return 0;
}

static int rules_take_regex(const struct rules_parse *p, const struct toml_node *n, char **text,
			    regex_t *out)
{
	char why[160];
	int ret;

	if (strlen(n->string) > GATE_RULE_MAX_PATTERN)
		return rules_wrong(p, n, "%s is longer than %u bytes", n->key,
				   GATE_RULE_MAX_PATTERN);
	/* Two selectors in one rule are refused later. */
	if (*text)
		regfree(out);
	free(*text);
	*text = NULL;
	ret = regcomp(out, n->string, REG_EXTENDED | REG_NOSUB);
	if (ret) {
		regerror(ret, out, why, sizeof(why));
		return rules_wrong(p, n, "%s \"%.64s\" is not a regular expression: %s", n->key,
				   n->string, why);
	}
	*text = strdup(n->string);
	if (*text)
		return 0;
	regfree(out);
	return rules_no_memory(p);
}

/* "2 %", "0.5 points", "20 ms" */
static int rules_take_amount(const struct rules_parse *p, const struct toml_node *n,
			     enum gate_rule_dimension d, struct gate_rule_amount *out)
{
	char *unit;
	double v;

	errno = 0;
	v = strtod(n->string, &unit);
	if (unit == n->string || errno || !(v >= LEAST_AMOUNT && v <= MOST_AMOUNT))
		return rules_wrong(p, n,
				   "%s is \"%.64s\", expected a number above 0 with a unit: %s",
				   n->key, n->string, dimension_units[d]);
	while (*unit == ' ')
		unit++;
	*out = (struct gate_rule_amount){ .unit = STATS_ABSOLUTE, .value = v };
	if (!strcmp(unit, "%")) {
		out->unit = STATS_RELATIVE;
		out->value = v / 100;
		return 0;
	}
	if (d == GATE_RULE_PART && (!strcmp(unit, "points") || !strcmp(unit, "point"))) {
		out->unit = STATS_POINTS;
		return v <= 100 ? 0 : rules_wrong(p, n, "%s is more than 100 points", n->key);
	}
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (units[i].dimension == d && !strcmp(unit, units[i].name)) {
			out->value = v * units[i].scale;
			return 0;
		}
	return rules_wrong(p, n, "%s is \"%.64s\": its unit can be %s", n->key, n->string,
			   dimension_units[d]);
}

/* A share: "0.5 %" */
static int rules_take_share(const struct rules_parse *p, const struct toml_node *n, double *out)
{
	struct gate_rule_amount a = { 0 };
	int ret = rules_take_amount(p, n, GATE_RULE_PART, &a);

	if (ret)
		return ret;
	*out = a.unit == STATS_POINTS ? a.value / 100 : a.value;
	return *out <= 1 ? 0 : rules_wrong(p, n, "%s is more than 100 %%", n->key);
}

/* -- rules --------------------------------------------------------------------------------------- */

/* Writes which of the words it is; for a bool the second one is true. */
static int take_word_of(const struct rules_parse *p, const struct toml_node *n, struct gate_rule *r,
			enum taking taking)
{
	static const char *const levels[] = { "warn", "fail" };
	static const char *const measures[] = { "share", "time" };
	static const char *const ways[] = { "more", "less", "either" };
	static const char *const works[] = { "all", "workload", "meanwhile" };
	static const enum stats_worse worse[] = { STATS_HIGHER, STATS_LOWER, STATS_EITHER };
	const char *const *words = taking == TAKE_LEVEL	    ? levels
				   : taking == TAKE_MEASURE ? measures
				   : taking == TAKE_WORK    ? works
							    : ways;
	unsigned int i;
	int ret = rules_take_word(p, n, words, taking == TAKE_WORSE || taking == TAKE_WORK ? 3 : 2,
				  &i);

	if (ret)
		return ret;
	if (taking == TAKE_LEVEL)
		r->fail = i == 1;
	else if (taking == TAKE_MEASURE)
		r->time = i == 1;
	else if (taking == TAKE_WORK)
		r->work = (enum gate_rule_work)i;
	else
		r->worse = worse[i];
	return 0;
}

static const char *const starts[GATE_RULE_STARTS] = { "", "vmm", "kvm" };

const char *gate_rule_start_name(enum gate_rule_start s)
{
	return starts[s];
}

static int take_phase(const struct rules_parse *p, const struct toml_node *n, struct gate_rule *r)
{
	for (unsigned int i = GATE_RULE_START_VMM; i < GATE_RULE_STARTS; i++)
		if (r->metric == GATE_RULE_TIME && !strcmp(n->string, starts[i])) {
			r->start = (enum gate_rule_start)i;
			return 0;
		}
	if (!phase_parse(n->string, &r->phase))
		return rules_wrong(p, n,
				   "no phase \"%.64s\": %sfirst, decompressor, start_kernel, "
				   "initcalls, init or user",
				   n->string, r->metric == GATE_RULE_TIME ? "vmm, kvm, " : "");
	r->has_phase = true;
	return 0;
}

static int take_key(const struct rules_parse *p, const struct toml_node *n,
		    const struct rules_key *k, struct gate_rule *r)
{
	void *at = (char *)r + k->at;

	r->children |= k->subtree;
	switch (k->taking) {
	case TAKE_TEXT:
		return rules_take_text(p, n, at);
	case TAKE_FLAG:
		*(bool *)at = n->boolean;
		return 0;
	case TAKE_PART:
		return rules_take_part(p, n, k->least, k->most, at);
	case TAKE_AMOUNT:
		return rules_take_amount(p, n, gate_rule_dimension(r), at);
	case TAKE_SHARE:
		return rules_take_share(p, n, &r->min_share);
	case TAKE_REGEX:
		return rules_take_regex(p, n, &r->pattern, &r->regex);
	case TAKE_EXCLUDE:
		return rules_take_regex(p, n, &r->exclude, &r->except);
	case TAKE_PHASE:
		return take_phase(p, n, r);
	case TAKE_METRIC:
		return 0;
	default:
		return take_word_of(p, n, r, k->taking);
	}
}

/* NULL: there is none of this name. */
static const struct rules_key *find_key(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(name, known[i].name))
			return &known[i];
	return NULL;
}

static enum toml_kind kind_of(const struct rules_key *k)
{
	return k->taking == TAKE_FLAG	? TOML_BOOLEAN
	       : k->taking == TAKE_PART ? TOML_REAL
					: TOML_STRING;
}

static const struct toml_node *member(const struct toml_node *table, const char *key)
{
	for (const struct toml_node *n = table->child; n; n = n->next)
		if (!strcmp(n->key, key))
			return n;
	return NULL;
}

static int take_metric(const struct rules_parse *p, const struct toml_node *table,
		       struct gate_rule *r)
{
	const struct toml_node *n = member(table, "metric");
	struct buf names;
	int ret;

	if (!n)
		return rules_wrong(p, table, "a rule without a metric");
	ret = rules_check_kind(p, n, TOML_STRING);
	if (ret)
		return ret;
	for (unsigned int m = 0; m < GATE_RULE_METRIC_MAX; m++)
		if (!strcmp(n->string, metrics[m].name)) {
			r->metric = (enum gate_rule_metric)m;
			return 0;
		}
	buf_init(&names);
	for (unsigned int m = 0; m < GATE_RULE_METRIC_MAX; m++)
		buf_printf(&names, "%s%s", m ? ", " : "", metrics[m].name);
	buf_u8(&names, 0);
	ret = rules_wrong(p, n, "no metric \"%.64s\": %s", n->string,
			  names.failed ? "" : (const char *)names.data);
	buf_deinit(&names);
	return ret;
}

static int take_keys(const struct rules_parse *p, const struct toml_node *table,
		     struct gate_rule *r)
{
	for (const struct toml_node *n = table->child; n; n = n->next) {
		const struct rules_key *k = find_key(n->key);

		if (!k)
			return err_set(p->e, EINVAL, "%s:%u:%u: unknown key '%.64s' in a rule",
				       p->path, n->key_line, n->key_column, n->key);
		if (!(k->metrics & 1u << r->metric))
			return err_set(p->e, EINVAL,
				       "%s:%u:%u: '%s' is not allowed with the metric %s", p->path,
				       n->key_line, n->key_column, n->key, metrics[r->metric].name);
		if (rules_check_kind(p, n, kind_of(k)) < 0)
			return -EINVAL;
		/* These decide on the unit of amounts, which may stand before them. */
		if (k->taking == TAKE_MEASURE && take_key(p, n, k, r) < 0)
			return -EINVAL;
		if (k->at == offsetof(struct gate_rule, per_second))
			r->per_second = n->boolean;
	}
	for (const struct toml_node *n = table->child; n; n = n->next) {
		int ret = take_key(p, n, find_key(n->key), r);

		if (ret)
			return ret;
	}
	return 0;
}

static int check_rule(const struct rules_parse *p, const struct toml_node *table,
		      struct gate_rule *r)
{
	unsigned int selectors = 0;

	for (const struct toml_node *n = table->child; n; n = n->next)
		selectors += find_key(n->key)->selects;
	if ((1u << r->metric & FUNCTIONS) && selectors != 1)
		return rules_wrong(
			p, table,
			"the metric %s needs one of symbol, subtree, regex and subtree-regex",
			metrics[r->metric].name);
	if (r->metric == GATE_RULE_INSNS && selectors > 1)
		return rules_wrong(p, table,
				   "the metric instructions has at most one of symbol, subtree, "
				   "regex and subtree-regex");
	if ((r->has_phase || r->start) && (r->from || r->until))
		return rules_wrong(p, table, "a time has either a phase or a marker, not both");
	if (r->from && !r->until)
		return rules_wrong(p, table, "from needs until");
	if (r->has_phase && r->phase < PHASE_START_KERNEL && r->work)
		return rules_wrong(
			p, table,
			"phase %s is firmware and decompressor, which only work = \"all\" includes",
			phase_name(r->phase));
	if (r->metric == GATE_RULE_COUNTER && !r->counter)
		return rules_wrong(p, table, "the metric counter needs the counter's name");
	if (!r->threshold.value)
		return rules_wrong(p, table, "a rule without a threshold");
	if (r->metric == GATE_RULE_NEW_SYMBOLS &&
	    (r->threshold.unit != STATS_POINTS ||
	     (r->min_effect.value && r->min_effect.unit != STATS_POINTS)))
		return rules_wrong(p, table,
				   "new-symbols has no base for a relative threshold: use points");
	return 0;
}

static void name_functions(const struct gate_rule *r, struct buf *b)
{
	if (r->symbol)
		buf_printf(b, " %s%s", r->children ? "subtree " : "", r->symbol);
	else if (r->pattern)
		buf_printf(b, " %s/%s/", r->children ? "subtree " : "", r->pattern);
	else if (r->children)
		buf_printf(b, " with callees");
	if (r->exclude)
		buf_printf(b, " but /%s/", r->exclude);
	if (r->dso)
		buf_printf(b, " in %s", r->dso);
}

/* "time initcalls", "share subtree do_exit" */
static char *key_of(const struct gate_rule *r)
{
	struct buf b;

	buf_init(&b);
	buf_printf(&b, "%s", gate_rule_metric_name(r->metric));
	if (r->work)
		buf_printf(&b, " %s",
			   r->work == GATE_RULE_WORKLOAD ? "of the workload" : "meanwhile");
	if (r->has_phase)
		buf_printf(&b, " in %s", phase_name(r->phase));
	if (r->start)
		buf_printf(&b, " in %s", gate_rule_start_name(r->start));
	if (r->from)
		buf_printf(&b, " from %s", r->from);
	if (r->until)
		buf_printf(&b, " to %s", r->until);
	name_functions(r, &b);
	if (r->time)
		buf_printf(&b, " time");
	if (r->exit)
		buf_printf(&b, " %s", r->exit);
	if (r->counter)
		buf_printf(&b, " %s%s", r->counter, r->per_second ? " a second" : "");
	buf_u8(&b, 0);
	if (!b.failed)
		return (char *)b.data;
	buf_deinit(&b);
	return NULL;
}

static int rules_settle_name(const struct rules_parse *p, const struct toml_node *table,
			     struct gate_rule *r)
{
	r->key = key_of(r);
	if (r->key && !r->name)
		r->name = strdup(r->key);
	if (!r->key || !r->name)
		return rules_no_memory(p);
	for (const struct gate_rule *x = p->rules->rule; x != r; x++)
		if (!strcmp(x->name, r->name))
			return rules_wrong(p, table,
					   "a second rule has the name \"%.64s\" (the first is in "
					   "line %u): rename one of them",
					   r->name, x->line);
	return 0;
}

static int take_rule(const struct rules_parse *p, const struct toml_node *table, double power)
{
	struct gate_rules *rules = p->rules;
	struct gate_rule *r = &rules->rule[rules->n];
	int ret;

	if (table->kind != TOML_TABLE)
		return rules_wrong(p, table, "a rule is a table, written [[rule]]");
	*r = (struct gate_rule){ .fail = true,
				 .power = power,
				 .quantile = -1,
				 .line = table->line,
				 .min_share = GATE_RULE_MIN_SHARE };
	rules->n++;
	ret = take_metric(p, table, r);
	if (ret)
		return ret;
	ret = take_keys(p, table, r);
	if (ret)
		return ret;
	ret = check_rule(p, table, r);
	if (ret)
		return ret;
	return rules_settle_name(p, table, r);
}

/* -- the document ----------------------------------------------------------------------------------- */

static int take_gate(const struct rules_parse *p, const struct toml_node *table, double *power)
{
	const struct {
		const char *name;
		bool *flag; /* NULL: it is a number */
		double *number, least;
	} keys[] = {
		{ "error-rate", .number = &p->rules->error_rate, .least = 1e-6 },
		{ "power", .number = power, .least = 0.5 },
		{ "no-idle", .flag = &p->rules->no_idle },
		{ "kernel-only", .flag = &p->rules->kernel_only },
		{ "count-samples", .flag = &p->rules->count_samples },
	};

	if (table->kind != TOML_TABLE)
		return rules_wrong(p, table, "gate is a table, written [gate]");
	for (const struct toml_node *n = table->child; n; n = n->next) {
		size_t i = 0;
		int ret;

		while (i < ARRAY_SIZE(keys) && strcmp(n->key, keys[i].name) != 0)
			i++;
		if (i == ARRAY_SIZE(keys))
			return err_set(p->e, EINVAL, "%s:%u:%u: unknown key '%.64s' in [gate]",
				       p->path, n->key_line, n->key_column, n->key);
		ret = rules_check_kind(p, n, keys[i].flag ? TOML_BOOLEAN : TOML_REAL);
		if (!ret && keys[i].flag)
			*keys[i].flag = n->boolean;
		else if (!ret)
			ret = rules_take_part(p, n, keys[i].least,
					      keys[i].number == power ? 0.999 : 0.5,
					      keys[i].number);
		if (ret)
			return ret;
	}
	return 0;
}

static int take_document(const struct rules_parse *p, const struct toml_node *document)
{
	const struct toml_node *rules = NULL;
	double power = GATE_RULE_POWER;
	size_t n = 0;

	for (const struct toml_node *x = document->child; x; x = x->next) {
		int ret = 0;

		if (!strcmp(x->key, "gate"))
			ret = take_gate(p, x, &power);
		else if (!strcmp(x->key, "rule"))
			rules = x;
		else
			ret = err_set(p->e, EINVAL,
				      "%s:%u:%u: unknown table or key '%.64s': [gate] and [[rule]] "
				      "are known",
				      p->path, x->key_line, x->key_column, x->key);
		if (ret)
			return ret;
	}
	if (rules && rules->kind != TOML_ARRAY)
		return rules_wrong(p, rules, "rules are written [[rule]], with two brackets");
	for (const struct toml_node *x = rules ? rules->child : NULL; x; x = x->next)
		n++;
	if (!n)
		return err_set(p->e, EINVAL, "%s: contains no rules ([[rule]])", p->path);
	if (n > GATE_RULE_MAX)
		return err_set(p->e, E2BIG, "%s: %zu rules, at most %u", p->path, n, GATE_RULE_MAX);
	p->rules->rule = calloc(n, sizeof(*p->rules->rule));
	if (!p->rules->rule)
		return rules_no_memory(p);
	for (const struct toml_node *x = rules->child; x; x = x->next) {
		int ret = take_rule(p, x, power);

		if (ret)
			return ret;
	}
	return 0;
}

int gate_rules_parse(struct gate_rules **out, const char *path, const char *text, size_t len,
		     struct err *e)
{
	struct rules_parse p = { .path = path, .rules = calloc(1, sizeof(*p.rules)), .e = e };
	struct toml_node *document = NULL;
	int ret;

	if (p.rules)
		p.rules->path = strdup(path);
	if (!p.rules || !p.rules->path) {
		gate_rules_destroy(p.rules);
		return rules_no_memory(&p);
	}
	p.rules->error_rate = GATE_RULE_ERROR_RATE;
	ret = toml_parse(&document, path, text, len, e);
	ret = ret ? ret : take_document(&p, document);
	toml_free(document);
	if (ret)
		gate_rules_destroy(p.rules);
	else
		*out = p.rules;
	return ret;
}

enum built_in { BUILT_IN_DEFAULT, BUILT_IN_EXACT, BUILT_IN_VMM };

static int gate_rules_load_built_in(struct gate_rules **out, enum built_in which, struct err *e)
{
	static const struct {
		const char *name, *text, *end;
	} files[] = {
		[BUILT_IN_DEFAULT] = { "gate-default.toml", gate_default_toml,
				       gate_default_toml_end },
		[BUILT_IN_EXACT] = { "gate-exact.toml", gate_exact_toml, gate_exact_toml_end },
		[BUILT_IN_VMM] = { "gate-vmm.toml", gate_vmm_toml, gate_vmm_toml_end },
	};
	const size_t len = (size_t)(files[which].end - files[which].text);
	int ret = gate_rules_parse(out, DEFAULT_PATH, files[which].text, len, e);

	if (!ret)
		(*out)->built_in = files[which].name;
	return ret;
}

int gate_rules_load_exact(struct gate_rules **out, const char *path, struct err *e)
{
	return path ? gate_rules_load(out, path, e)
		    : gate_rules_load_built_in(out, BUILT_IN_EXACT, e);
}

int gate_rules_load_vmm(struct gate_rules **out, const char *path, struct err *e)
{
	return path ? gate_rules_load(out, path, e)
		    : gate_rules_load_built_in(out, BUILT_IN_VMM, e);
}

int gate_rules_load(struct gate_rules **out, const char *path, struct err *e)
{
	struct file_map m;
	int ret;

	if (!path)
		return gate_rules_load_built_in(out, BUILT_IN_DEFAULT, e);
	ret = file_map_open(&m, path, TOML_MAX_TEXT, e);
	if (ret)
		return ret;
	ret = gate_rules_parse(out, path, (const char *)m.data, m.len, e);
	file_map_close(&m);
	return ret;
}

static bool is_line(const char *s)
{
	size_t len = s ? strlen(s) : 0;

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
			return false;
	return len && len <= GATE_ACCEPT_MAX;
}

int gate_acceptance_check(const struct gate_acceptance *a, struct err *e)
{
	if (is_line(a->by) && is_line(a->why))
		return 0;
	return err_set(
		e, EINVAL,
		"--accept needs --by and --why: 1 to %u bytes each, without control characters",
		GATE_ACCEPT_MAX);
}

int gate_rules_accept(struct gate_rules *rules, const struct gate_acceptance *a, struct err *e)
{
	char names[256] = "";
	int ret = gate_acceptance_check(a, e);

	for (size_t i = 0; i < rules->n && !ret; i++) {
		struct gate_rule *r = &rules->rule[i];
		size_t len = strlen(names);

		if (!strcmp(r->name, a->rule)) {
			free(r->accepted);
			r->fail = false;
			if (asprintf(&r->accepted, "by %s: %s", a->by, a->why) >= 0)
				return 0;
			r->accepted = NULL;
			return err_nomem(e);
		}
		snprintf(names + len, sizeof(names) - len, "%s\"%s\"", len ? ", " : "", r->name);
	}
	return ret ? ret
		   : err_set(e, EINVAL, "--accept: no rule '%.100s' in %.100s; there are %s",
			     a->rule, rules->path, names);
}

void gate_rules_destroy(struct gate_rules *rules)
{
	if (!rules)
		return;
	for (size_t i = 0; i < rules->n; i++) {
		struct gate_rule *r = &rules->rule[i];

		if (r->pattern)
			regfree(&r->regex);
		if (r->exclude)
			regfree(&r->except);
		free(r->name);
		free(r->key);
		free(r->from);
		free(r->until);
		free(r->symbol);
		free(r->pattern);
		free(r->dso);
		free(r->exclude);
		free(r->exit);
		free(r->counter);
		free(r->accepted);
	}
	free(rules->rule);
	free(rules->path);
	free(rules);
}

/* -- what rules say ----------------------------------------------------------------------------------- */

enum gate_rule_dimension gate_rule_dimension(const struct gate_rule *r)
{
	if (r->time)
		return GATE_RULE_NS;
	return r->per_second ? GATE_RULE_RATE : metrics[r->metric].dimension;
}

const char *gate_rule_metric_name(enum gate_rule_metric m)
{
	return m < GATE_RULE_METRIC_MAX ? metrics[m].name : "unknown";
}

bool gate_rule_is_exact(const struct gate_rule *r)
{
	return 1u << r->metric & EXACT;
}

const char *gate_rule_members(const struct gate_rule *r)
{
	return metrics[r->metric].members ? metrics[r->metric].members : "functions";
}

bool gate_rule_is_family(const struct gate_rule *r)
{
	return 1u << r->metric & FAMILIES;
}

/* Returns whether the first len bytes of a name match. */
static bool rules_regex_matches(const regex_t *regex, const char *name, size_t len)
{
	regmatch_t span = { .rm_so = 0, .rm_eo = (regoff_t)len };

	return regexec(regex, name, 1, &span, REG_STARTEND) == 0;
}

bool gate_rule_matches(const struct gate_rule *r, const char *name, const char *dso)
{
	const char *slash = strrchr(dso, '/');
	const size_t len = identity_name_len(name);

	if (r->dso && strcmp(dso, r->dso) != 0 && (!slash || strcmp(slash + 1, r->dso) != 0))
		return false;
	if (r->symbol)
		return identity_name_len(r->symbol) == len && !strncmp(name, r->symbol, len);
	if (r->pattern)
		return rules_regex_matches(&r->regex, name, len);
	return !r->exclude || !rules_regex_matches(&r->except, name, len);
}

bool gate_rule_matches_function(const struct gate_rule *r, const struct stackset_func *f)
{
	/* A rule without a name is about all functions but some. */
	const bool wanted = r->symbol || r->pattern;
	bool found = gate_rule_matches(r, f->name, f->dso);
	char name[RULES_MAX_ALIAS];

	for (const char *s = f->aliases ? f->aliases : ""; *s && found != wanted;) {
		const size_t len = strcspn(s, "\n");

		snprintf(name, sizeof(name), "%.*s", (int)len, s);
		found = gate_rule_matches(r, name, f->dso);
		s += len + 1;
	}
	return found;
}

static double absolute(const struct gate_rule_amount *a, double base)
{
	if (a->unit == STATS_RELATIVE)
		return a->value * base;
	return a->unit == STATS_POINTS ? a->value / 100 : a->value;
}

struct stats_rule gate_rule_stats(const struct gate_rule *r, double base, double alpha)
{
	const struct gate_rule_amount *a = &r->threshold;

	if (r->min_effect.value && absolute(&r->min_effect, base) > absolute(a, base))
		a = &r->min_effect;
	return (struct stats_rule){
		.worse = r->worse,
		.unit = a->unit,
		.min_effect = a->value,
		.alpha = alpha,
		.miss = 1 - r->power,
		.strict = r->strict,
		.location = r->quantile < 0 ? STATS_MEAN : STATS_QUANTILE,
		.quantile = r->quantile < 0 ? 0 : r->quantile,
	};
}
