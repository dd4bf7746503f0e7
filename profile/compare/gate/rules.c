/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/rules.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "profile/compare/gate/rules_name.h"
#include "profile/compare/gate/rules_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const char gate_default_toml[], gate_default_toml_end[];
extern const char gate_exact_toml[], gate_exact_toml_end[];

#define DEFAULT_PATH "(default rules)"

static const char *const metric_name[GRULE_METRICS] = {
	[GRULE_TIME] = "time",	     [GRULE_BOOT_TIME] = "boot-time",
	[GRULE_SHARE] = "share",     [GRULE_FUNCTION_TIME] = "function-time",
	[GRULE_SYMBOLS] = "symbols", [GRULE_NEW_SYMBOLS] = "new-symbols",
	[GRULE_EXITS] = "exits",     [GRULE_IO_BYTES] = "io-bytes",
	[GRULE_COUNTER] = "counter", [GRULE_INSNS] = "instructions",
	[GRULE_INSN_FUNCTIONS] = "function-instructions",
	[GRULE_INSN_STACKS] = "stack-instructions",
	[GRULE_INSN_SYSCALLS] = "syscall-instructions",
	[GRULE_INSN_TASKS] = "task-instructions",
	[GRULE_INSN_PHASES] = "phase-instructions",
};

#define ALL ((1u << GRULE_METRICS) - 1)
#define FUNCTIONS (1u << GRULE_SHARE | 1u << GRULE_FUNCTION_TIME)
#define FAMILIES (1u << GRULE_SYMBOLS | 1u << GRULE_NEW_SYMBOLS | EXACT_FAMILIES)
#define EXACT_FAMILIES                                                                           \
	(1u << GRULE_INSN_FUNCTIONS | 1u << GRULE_INSN_STACKS | 1u << GRULE_INSN_SYSCALLS | \
	 1u << GRULE_INSN_TASKS | 1u << GRULE_INSN_PHASES)
#define NAMELESS (1u << GRULE_INSN_TASKS | 1u << GRULE_INSN_PHASES) /* no functions */
#define EXACT (1u << GRULE_INSNS | EXACT_FAMILIES)
#define SELECTS (FUNCTIONS | 1u << GRULE_INSNS)

enum key {
	KEY_NAME,
	KEY_METRIC,
	KEY_LEVEL,
	KEY_OPTIONAL,
	KEY_STRICT,
	KEY_WORSE,
	KEY_ALPHA,
	KEY_POWER,
	KEY_QUANTILE,
	KEY_THRESHOLD,
	KEY_MIN_EFFECT,
	KEY_FROM,
	KEY_UNTIL,
	KEY_PHASE,
	KEY_SYMBOL,
	KEY_SUBTREE,
	KEY_REGEX,
	KEY_SUBTREE_REGEX,
	KEY_DSO,
	KEY_MEASURE,
	KEY_CHILDREN,
	KEY_MIN_SHARE,
	KEY_EXCLUDE,
	KEY_EXIT,
	KEY_COUNTER,
	KEY_PER_SECOND,
	KEYS
};

static const struct {
	const char *name;
	enum toml_kind kind; /* TOML_REAL: integers, too */
	unsigned int metrics;
} known[KEYS] = {
	[KEY_NAME] = { "name", TOML_STRING, ALL },
	[KEY_METRIC] = { "metric", TOML_STRING, ALL },
	[KEY_LEVEL] = { "level", TOML_STRING, ALL },
	[KEY_OPTIONAL] = { "optional", TOML_BOOLEAN, ALL },
	[KEY_STRICT] = { "strict", TOML_BOOLEAN, ALL & ~EXACT },
	[KEY_WORSE] = { "worse", TOML_STRING, ALL & ~(1u << GRULE_NEW_SYMBOLS) },
	[KEY_ALPHA] = { "alpha", TOML_REAL, ALL & ~EXACT },
	[KEY_POWER] = { "power", TOML_REAL, ALL & ~EXACT },
	[KEY_QUANTILE] = { "quantile", TOML_REAL, ALL & ~FAMILIES & ~EXACT },
	[KEY_THRESHOLD] = { "threshold", TOML_STRING, ALL },
	[KEY_MIN_EFFECT] = { "min-effect", TOML_STRING, ALL },
	[KEY_FROM] = { "from", TOML_STRING, 1u << GRULE_TIME },
	[KEY_UNTIL] = { "until", TOML_STRING, 1u << GRULE_TIME },
	[KEY_PHASE] = { "phase", TOML_STRING,
			1u << GRULE_TIME | (EXACT & ~(1u << GRULE_INSN_PHASES)) },
	[KEY_SYMBOL] = { "symbol", TOML_STRING, SELECTS },
	[KEY_SUBTREE] = { "subtree", TOML_STRING, SELECTS },
	[KEY_REGEX] = { "regex", TOML_STRING, SELECTS },
	[KEY_SUBTREE_REGEX] = { "subtree-regex", TOML_STRING, SELECTS },
	[KEY_DSO] = { "dso", TOML_STRING, SELECTS | (FAMILIES & ~NAMELESS) },
	[KEY_MEASURE] = { "measure", TOML_STRING, 1u << GRULE_SYMBOLS },
	[KEY_CHILDREN] = { "children", TOML_BOOLEAN,
			   1u << GRULE_SYMBOLS | 1u << GRULE_NEW_SYMBOLS | 1u << GRULE_INSN_FUNCTIONS },
	[KEY_MIN_SHARE] = { "min-share", TOML_STRING, 1u << GRULE_SYMBOLS },
	[KEY_EXCLUDE] = { "exclude", TOML_STRING, FAMILIES },
	[KEY_EXIT] = { "exit", TOML_STRING, 1u << GRULE_EXITS },
	[KEY_COUNTER] = { "counter", TOML_STRING, 1u << GRULE_COUNTER },
	[KEY_PER_SECOND] = { "per-second", TOML_BOOLEAN, 1u << GRULE_COUNTER },
};

/* -- rules --------------------------------------------------------------------------------------- */

static int take_level(const struct grule_parse *p, const struct toml_node *n, struct grule *r)
{
	static const char *const levels[] = { "warn", "fail" };
	unsigned int i;
	int ret = grule_take_word(p, n, levels, 2, &i);

	if (!ret)
		r->fail = i == 1;
	return ret;
}

static int take_worse(const struct grule_parse *p, const struct toml_node *n, struct grule *r)
{
	static const char *const ways[] = { "more", "less", "either" };
	static const enum gate_worse worse[] = { GATE_HIGHER, GATE_LOWER, GATE_EITHER };
	unsigned int i;
	int ret = grule_take_word(p, n, ways, 3, &i);

	if (!ret)
		r->worse = worse[i];
	return ret;
}

static int take_measure(const struct grule_parse *p, const struct toml_node *n, struct grule *r)
{
	static const char *const measures[] = { "share", "time" };
	unsigned int i;
	int ret = grule_take_word(p, n, measures, 2, &i);

	if (!ret)
		r->time = i == 1;
	return ret;
}

static int take_phase(const struct grule_parse *p, const struct toml_node *n, struct grule *r)
{
	if (!phase_parse(n->string, &r->phase))
		return grule_wrong(
			p, n,
			"no phase \"%.64s\": first, decompressor, start_kernel, initcalls, init "
			"or user",
			n->string);
	r->has_phase = true;
	return 0;
}

static int take_key(const struct grule_parse *p, const struct toml_node *n, enum key k,
		    struct grule *r)
{
	switch (k) {
	case KEY_NAME:
		return grule_take_text(p, n, &r->name);
	case KEY_LEVEL:
		return take_level(p, n, r);
	case KEY_OPTIONAL:
		r->optional = n->boolean;
		return 0;
	case KEY_STRICT:
		r->strict = n->boolean;
		return 0;
	case KEY_WORSE:
		return take_worse(p, n, r);
	case KEY_ALPHA:
		return grule_take_part(p, n, 1e-6, 0.5, &r->alpha);
	case KEY_POWER:
		return grule_take_part(p, n, 0.5, 0.999, &r->power);
	case KEY_QUANTILE:
		return grule_take_part(p, n, 0, 1, &r->quantile);
	case KEY_THRESHOLD:
		return grule_take_amount(p, n, grule_dimension(r), &r->threshold);
	case KEY_MIN_EFFECT:
		return grule_take_amount(p, n, grule_dimension(r), &r->min_effect);
	case KEY_FROM:
		return grule_take_text(p, n, &r->from);
	case KEY_UNTIL:
		return grule_take_text(p, n, &r->until);
	case KEY_PHASE:
		return take_phase(p, n, r);
	case KEY_SUBTREE:
		r->children = true;
		/* fall through */
	case KEY_SYMBOL:
		return grule_take_text(p, n, &r->symbol);
	case KEY_SUBTREE_REGEX:
		r->children = true;
		/* fall through */
	case KEY_REGEX:
		return grule_take_regex(p, n, &r->pattern, &r->regex);
	case KEY_DSO:
		return grule_take_text(p, n, &r->dso);
	case KEY_MEASURE:
		return take_measure(p, n, r);
	case KEY_CHILDREN:
		r->children = n->boolean;
		return 0;
	case KEY_MIN_SHARE:
		return grule_take_share(p, n, &r->min_share);
	case KEY_EXCLUDE:
		return grule_take_regex(p, n, &r->exclude, &r->except);
	case KEY_EXIT:
		return grule_take_text(p, n, &r->exit);
	case KEY_COUNTER:
		return grule_take_text(p, n, &r->counter);
	case KEY_PER_SECOND:
		r->per_second = n->boolean;
		return 0;
	default: /* metric: taken first */
		return 0;
	}
}

static enum key find_key(const char *name)
{
	for (unsigned int k = 0; k < KEYS; k++)
		if (!strcmp(name, known[k].name))
			return (enum key)k;
	return KEYS;
}

static const struct toml_node *member(const struct toml_node *table, const char *key)
{
	for (const struct toml_node *n = table->child; n; n = n->next)
		if (!strcmp(n->key, key))
			return n;
	return NULL;
}

static int take_metric(const struct grule_parse *p, const struct toml_node *table, struct grule *r)
{
	const struct toml_node *n = member(table, "metric");
	struct buf names;
	int ret;

	if (!n)
		return grule_wrong(p, table, "a rule without a metric");
	ret = grule_check_kind(p, n, TOML_STRING);
	if (ret)
		return ret;
	for (unsigned int m = 0; m < GRULE_METRICS; m++)
		if (!strcmp(n->string, metric_name[m])) {
			r->metric = (enum grule_metric)m;
			return 0;
		}
	buf_init(&names);
	for (unsigned int m = 0; m < GRULE_METRICS; m++)
		buf_printf(&names, "%s%s", m ? ", " : "", metric_name[m]);
	buf_u8(&names, 0);
	ret = grule_wrong(p, n, "no metric \"%.64s\": %s", n->string,
			  names.failed ? "" : (const char *)names.data);
	buf_deinit(&names);
	return ret;
}

/* In the order of `known', so that what decides on units comes before what has them. */
static int take_keys(const struct grule_parse *p, const struct toml_node *table, struct grule *r)
{
	for (const struct toml_node *n = table->child; n; n = n->next) {
		enum key k = find_key(n->key);

		if (k == KEYS)
			return err_set(p->e, EINVAL, "%s:%u:%u: unknown key '%.64s' in a rule",
				       p->path, n->key_line, n->key_column, n->key);
		if (!(known[k].metrics & 1u << r->metric))
			return err_set(p->e, EINVAL,
				       "%s:%u:%u: '%s' does not go with the metric %s", p->path,
				       n->key_line, n->key_column, n->key, metric_name[r->metric]);
		if (grule_check_kind(p, n, known[k].kind) < 0)
			return -EINVAL;
		if (k == KEY_MEASURE && take_measure(p, n, r) < 0)
			return -EINVAL;
		/* Its unit is that of rates. */
		if (k == KEY_PER_SECOND)
			r->per_second = n->boolean;
	}
	for (const struct toml_node *n = table->child; n; n = n->next) {
		int ret = take_key(p, n, find_key(n->key), r);

		if (ret)
			return ret;
	}
	return 0;
}

static int check_rule(const struct grule_parse *p, const struct toml_node *table, struct grule *r)
{
	unsigned int selectors = 0;

	for (unsigned int k = KEY_SYMBOL; k <= KEY_SUBTREE_REGEX; k++)
		selectors += member(table, known[k].name) != NULL;
	if ((1u << r->metric & FUNCTIONS) && selectors != 1)
		return grule_wrong(
			p, table,
			"the metric %s needs one of symbol, subtree, regex and subtree-regex",
			metric_name[r->metric]);
	if (r->metric == GRULE_INSNS && selectors > 1)
		return grule_wrong(p, table,
				   "the metric instructions has at most one of symbol, subtree, "
				   "regex and subtree-regex");
	if (r->has_phase && (r->from || r->until))
		return grule_wrong(p, table, "a time is that of a phase or to a marker, not both");
	if (r->from && !r->until)
		return grule_wrong(p, table, "from needs until");
	if (r->metric == GRULE_COUNTER && !r->counter)
		return grule_wrong(p, table, "the metric counter needs the counter's name");
	if (!r->threshold.value)
		return grule_wrong(p, table, "a rule without a threshold");
	if (r->metric == GRULE_NEW_SYMBOLS &&
	    (r->threshold.unit != GATE_POINTS ||
	     (r->min_effect.value && r->min_effect.unit != GATE_POINTS)))
		return grule_wrong(p, table,
				   "new-symbols has nothing to be relative to: use points");
	return 0;
}

static int take_rule(const struct grule_parse *p, const struct toml_node *table, double power)
{
	struct grules *rules = p->rules;
	struct grule *r = &rules->rule[rules->n];
	int ret;

	if (table->kind != TOML_TABLE)
		return grule_wrong(p, table, "a rule is a table, written [[rule]]");
	*r = (struct grule){ .fail = true,
			     .power = power,
			     .quantile = -1,
			     .line = table->line,
			     .min_share = GRULE_MIN_SHARE };
	rules->n++;
	ret = take_metric(p, table, r);
	ret = ret ? ret : take_keys(p, table, r);
	ret = ret ? ret : check_rule(p, table, r);
	return ret ? ret : grule_settle_name(p, table, r);
}

/* -- the document ----------------------------------------------------------------------------------- */

static int take_gate(const struct grule_parse *p, const struct toml_node *table, double *power)
{
	if (table->kind != TOML_TABLE)
		return grule_wrong(p, table, "gate is a table, written [gate]");
	for (const struct toml_node *n = table->child; n; n = n->next) {
		int ret;

		if (!strcmp(n->key, "error-rate")) {
			ret = grule_check_kind(p, n, TOML_REAL);
			ret = ret ? ret : grule_take_part(p, n, 1e-6, 0.5, &p->rules->error_rate);
		} else if (!strcmp(n->key, "power")) {
			ret = grule_check_kind(p, n, TOML_REAL);
			ret = ret ? ret : grule_take_part(p, n, 0.5, 0.999, power);
		} else if (!strcmp(n->key, "no-idle")) {
			ret = grule_check_kind(p, n, TOML_BOOLEAN);
			p->rules->no_idle = n->boolean;
		} else if (!strcmp(n->key, "kernel-only")) {
			ret = grule_check_kind(p, n, TOML_BOOLEAN);
			p->rules->kernel_only = n->boolean;
		} else if (!strcmp(n->key, "count-samples")) {
			ret = grule_check_kind(p, n, TOML_BOOLEAN);
			p->rules->count_samples = n->boolean;
		} else {
			ret = err_set(p->e, EINVAL, "%s:%u:%u: unknown key '%.64s' in [gate]",
				      p->path, n->key_line, n->key_column, n->key);
		}
		if (ret)
			return ret;
	}
	return 0;
}

static int take_document(const struct grule_parse *p, const struct toml_node *document)
{
	const struct toml_node *rules = NULL;
	double power = GRULE_POWER;
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
		return grule_wrong(p, rules, "rules are written [[rule]], with two brackets");
	for (const struct toml_node *x = rules ? rules->child : NULL; x; x = x->next)
		n++;
	if (!n)
		return err_set(p->e, EINVAL, "%s: no rules in it ([[rule]])", p->path);
	if (n > GRULE_MAX)
		return err_set(p->e, E2BIG, "%s: %zu rules, at most %u", p->path, n, GRULE_MAX);
	p->rules->rule = calloc(n, sizeof(*p->rules->rule));
	if (!p->rules->rule)
		return grule_no_memory(p);
	for (const struct toml_node *x = rules->child; x; x = x->next) {
		int ret = take_rule(p, x, power);

		if (ret)
			return ret;
	}
	return 0;
}

int grules_parse(struct grules **out, const char *path, const char *text, size_t len, struct err *e)
{
	struct grule_parse p = { .path = path, .rules = calloc(1, sizeof(*p.rules)), .e = e };
	struct toml_node *document = NULL;
	int ret;

	if (p.rules)
		p.rules->path = strdup(path);
	if (!p.rules || !p.rules->path) {
		grules_destroy(p.rules);
		return grule_no_memory(&p);
	}
	p.rules->error_rate = GRULE_ERROR_RATE;
	ret = toml_parse(&document, path, text, len, e);
	ret = ret ? ret : take_document(&p, document);
	toml_free(document);
	if (ret)
		grules_destroy(p.rules);
	else
		*out = p.rules;
	return ret;
}

static int grules_load_built_in(struct grules **out, const char *text, const char *end, struct err *e)
{
	int ret = grules_parse(out, DEFAULT_PATH, text, (size_t)(end - text), e);

	if (!ret)
		(*out)->built_in = true;
	return ret;
}

int grules_load_exact(struct grules **out, const char *path, struct err *e)
{
	return path ? grules_load(out, path, e)
		    : grules_load_built_in(out, gate_exact_toml, gate_exact_toml_end, e);
}

int grules_load(struct grules **out, const char *path, struct err *e)
{
	struct file_map m;
	int ret;

	if (!path)
		return grules_load_built_in(out, gate_default_toml, gate_default_toml_end, e);
	ret = file_map_open(&m, path, TOML_MAX_TEXT, e);
	if (ret)
		return ret;
	ret = grules_parse(out, path, (const char *)m.data, m.len, e);
	file_map_close(&m);
	return ret;
}

void grules_destroy(struct grules *rules)
{
	if (!rules)
		return;
	for (size_t i = 0; i < rules->n; i++) {
		struct grule *r = &rules->rule[i];

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
	}
	free(rules->rule);
	free(rules->path);
	free(rules);
}

/* -- what rules say ----------------------------------------------------------------------------------- */

enum grule_dimension grule_dimension(const struct grule *r)
{
	switch (r->metric) {
	case GRULE_TIME:
	case GRULE_BOOT_TIME:
	case GRULE_FUNCTION_TIME:
		return GRULE_NS;
	case GRULE_SYMBOLS:
		return r->time ? GRULE_NS : GRULE_PART;
	case GRULE_EXITS:
		return GRULE_RATE;
	case GRULE_IO_BYTES:
		return GRULE_BYTES;
	case GRULE_COUNTER:
		return r->per_second ? GRULE_RATE : GRULE_COUNT;
	case GRULE_INSNS:
	case GRULE_INSN_FUNCTIONS:
	case GRULE_INSN_STACKS:
	case GRULE_INSN_SYSCALLS:
	case GRULE_INSN_TASKS:
	case GRULE_INSN_PHASES:
		return GRULE_COUNT;
	default:
		return GRULE_PART;
	}
}

const char *grule_metric_name(enum grule_metric m)
{
	return m < GRULE_METRICS ? metric_name[m] : "unknown";
}

bool grule_is_exact(const struct grule *r)
{
	return 1u << r->metric & EXACT;
}

const char *grule_members(const struct grule *r)
{
	switch (r->metric) {
	case GRULE_INSN_STACKS:
		return "stacks";
	case GRULE_INSN_SYSCALLS:
		return "system calls";
	case GRULE_INSN_TASKS:
		return "tasks";
	case GRULE_INSN_PHASES:
		return "phases";
	default:
		return "functions";
	}
}

bool grule_is_family(const struct grule *r)
{
	return 1u << r->metric & FAMILIES;
}

/* A compiler's clones count as the function: "name.isra.0". */
static bool is_called(const char *name, const char *symbol)
{
	size_t len = strlen(symbol);

	return !strncmp(name, symbol, len) && (!name[len] || name[len] == '.');
}

bool grule_matches(const struct grule *r, const char *name, const char *dso)
{
	const char *slash = strrchr(dso, '/');

	if (r->dso && strcmp(dso, r->dso) != 0 && (!slash || strcmp(slash + 1, r->dso) != 0))
		return false;
	if (r->symbol)
		return is_called(name, r->symbol);
	if (r->pattern)
		return regexec(&r->regex, name, 0, NULL, 0) == 0;
	return !r->exclude || regexec(&r->except, name, 0, NULL, 0) != 0;
}

static double absolute(const struct grule_amount *a, double base)
{
	if (a->unit == GATE_RELATIVE)
		return a->value * base;
	return a->unit == GATE_POINTS ? a->value / 100 : a->value;
}

struct gate_rule grule_stats(const struct grule *r, double base, double alpha)
{
	const struct grule_amount *a = &r->threshold;

	if (r->min_effect.value && absolute(&r->min_effect, base) > absolute(a, base))
		a = &r->min_effect;
	return (struct gate_rule){
		.worse = r->worse,
		.unit = a->unit,
		.min_effect = a->value,
		.alpha = alpha,
		.miss = 1 - r->power,
		.strict = r->strict,
		.location = r->quantile < 0 ? GATE_MEAN : GATE_QUANTILE,
		.quantile = r->quantile < 0 ? 0 : r->quantile,
	};
}
