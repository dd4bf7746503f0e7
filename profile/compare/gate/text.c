/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/text.h"

#include "base/cleanup.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAMED 3u /* functions of a family that a sentence names */

/* -- numbers -------------------------------------------------------------------------------- */

/* The largest unit of which there is one at least; the last is the smallest. */
struct scale {
	double one;
	const char *unit;
};

static const struct scale times[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };
static const struct scale sizes[] = {
	{ 1073741824, "GiB" },
	{ 1048576, "MiB" },
	{ 1024, "KiB" },
	{ 1, "B" },
};

static void scaled(char *out, size_t size, const struct scale *s, unsigned int n, double v,
		   bool sign)
{
	unsigned int i = 0;

	while (i + 1 < n && fabs(v) < s[i].one)
		i++;
	snprintf(out, size, sign ? "%+.4g %s" : "%.4g %s", v / s[i].one, s[i].unit);
}

static void say_number(char *out, size_t size, enum gate_rule_dimension d, double v, bool sign)
{
	if (!isfinite(v)) {
		snprintf(out, size, "-");
		return;
	}
	switch (d) {
	case GATE_RULE_NS:
		scaled(out, size, times, ARRAY_SIZE(times), v, sign);
		break;
	case GATE_RULE_BYTES:
		scaled(out, size, sizes, ARRAY_SIZE(sizes), v, sign);
		break;
	case GATE_RULE_PART:
		snprintf(out, size, sign ? "%+.2f %%" : "%.2f %%", 100 * v);
		break;
	case GATE_RULE_RATE:
		snprintf(out, size, sign ? "%+.4g /s" : "%.4g /s", v);
		break;
	default:
		/* Whole numbers whole. */
		snprintf(out, size, sign ? "%+.*g" : "%.*g",
			 fabs(v) < 1e15 && v == floor(v) ? 15 : 6, v);
	}
}

void gate_text_value(char *out, size_t size, enum gate_rule_dimension d, double v)
{
	say_number(out, size, d, v, false);
}

void gate_text_effect(char *out, size_t size, const struct stats_rule *stats,
		      enum gate_rule_dimension d, double effect, enum gate_effect_is what)
{
	const bool plain = what == GATE_EFFECT_IS_SIZE;

	if (!isfinite(effect))
		snprintf(out, size, "-");
	else if (stats->unit == STATS_RELATIVE)
		snprintf(out, size, plain ? "%.3g %%" : "%+.2f %%", 100 * effect);
	else if (stats->unit == STATS_POINTS)
		snprintf(out, size, plain ? "%.3g points" : "%+.2f points", effect);
	else
		say_number(out, size, d, effect, !plain);
}

/* Two ends in one unit: "+1.05 .. +1.30" */
static void say_interval(char *out, size_t size, const struct gate_finding *f,
			 enum gate_rule_dimension d)
{
	char lo[GATE_CELL], hi[GATE_CELL];
	double by = f->stats.unit == STATS_RELATIVE ? 100 : 1;

	out[0] = '\0';
	if (!isfinite(f->result.lo) || !isfinite(f->result.hi))
		return;
	if (f->stats.unit != STATS_ABSOLUTE) {
		snprintf(out, size, "%+.2f .. %+.2f", by * f->result.lo, by * f->result.hi);
		return;
	}
	say_number(lo, sizeof(lo), d, f->result.lo, true);
	say_number(hi, sizeof(hi), d, f->result.hi, true);
	snprintf(out, size, "%.28s .. %.28s", lo, hi);
}

/* Both ways to say it, whichever the rule asks for. */
static void say_exact_change(char *out, size_t size, const struct stats_result *x)
{
	if (x->base > 0 && x->diff != 0)
		snprintf(out, size, "%+.0f (%+.3g %%)", x->diff, 100 * x->diff / x->base);
	else
		snprintf(out, size, x->diff != 0 ? "%+.0f" : "0", x->diff);
}

void gate_text_cells(struct gate_cells *out, const struct gate_rule *r,
		     const struct gate_finding *f)
{
	enum gate_rule_dimension d = gate_rule_dimension(r);

	*out = (struct gate_cells){ 0 };
	if (!f->value)
		return;
	gate_text_value(out->base, sizeof(out->base), d, f->result.base);
	gate_text_value(out->head, sizeof(out->head), d, f->result.head);
	if (gate_rule_is_exact(r))
		say_exact_change(out->change, sizeof(out->change), &f->result);
	else
		gate_text_effect(out->change, sizeof(out->change), &f->stats, d, f->result.effect,
				 GATE_EFFECT_IS_CHANGE);
	say_interval(out->interval, sizeof(out->interval), f, d);
	if (isnan(f->result.p_fail))
		out->p[0] = '\0';
	else if (f->name)
		snprintf(out->p, sizeof(out->p), "q %.2g", f->result.q);
	else
		snprintf(out->p, sizeof(out->p), "p %.2g", f->result.p_fail);
	if (f->seen < 0)
		return;
	if (isfinite(f->seen))
		gate_text_effect(out->seen, sizeof(out->seen), &f->stats, d, f->seen,
				 GATE_EFFECT_IS_SIZE);
	else
		snprintf(out->seen, sizeof(out->seen), "none");
}

static void say_amount(char *out, size_t size, const struct gate_rule *r,
		       const struct gate_rule_amount *a)
{
	const struct stats_rule unit = { .unit = a->unit };

	gate_text_effect(out, size, &unit, gate_rule_dimension(r), a->value, GATE_EFFECT_IS_SIZE);
}

void gate_text_threshold(char *out, size_t size, const struct gate_rule *r)
{
	static const char *const way[] = {
		[STATS_HIGHER] = "more",
		[STATS_LOWER] = "less",
		[STATS_EITHER] = "more or less",
	};
	char threshold[GATE_CELL], least[GATE_CELL];

	say_amount(threshold, sizeof(threshold), r, &r->threshold);
	say_amount(least, sizeof(least), r, &r->min_effect);
	if (r->min_effect.value)
		snprintf(out, size, "%s and at least %s %s", threshold, least, way[r->worse]);
	else
		snprintf(out, size, "%s %s", threshold, way[r->worse]);
}

/* -- sentences ------------------------------------------------------------------------------- */

/* Appends; what does not fit is left out. */
static __attribute__((format(printf, 3, 4))) void say_add(char *out, size_t size, const char *fmt,
							  ...)
{
	size_t len = strlen(out);
	va_list args;

	if (len + 1 >= size)
		return;
	va_start(args, fmt);
	vsnprintf(out + len, size - len, fmt, args);
	va_end(args);
}

static unsigned int say_count(const struct gate_report *r, enum gate_status s)
{
	unsigned int n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->outcome[i].status == s;
	return n;
}

void gate_text_verdict(char *out, size_t size, const struct gate_report *r)
{
	static const char *const word[] = {
		[GATE_OK] = "PASS",
		[GATE_SKIPPED] = "PASS",
		[GATE_UNSURE] = "INCONCLUSIVE",
		[GATE_WARNED] = "PASS with warnings",
		[GATE_FAILED] = "FAIL",
	};
	static const enum gate_status order[] = { GATE_FAILED, GATE_WARNED, GATE_UNSURE, GATE_OK,
						  GATE_SKIPPED };
	static const char *const did[] = { "failed", "warned", "inconclusive", "passed",
					   "skipped" };
	const char *sep = ": ";

	snprintf(out, size, "%s", word[r->status]);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		unsigned int n = say_count(r, order[i]);

		if (!n)
			continue;
		say_add(out, size, "%s%u %s", sep, n, did[i]);
		sep = ", ";
	}
	say_add(out, size, " of %zu rule%s", r->n, r->n == 1 ? "" : "s");
}

#define WORK_ALPHA 0.05 /* with a larger p, the runs do not tell which side does less */

void gate_text_work(char *out, size_t size, const struct gate_report *r)
{
	const struct stats_shift *x = &r->work.shift;
	const bool counted = r->work.known && !gate_run_at(r->gate, GATE_BASE, 0)->weight_is_ns;
	const double change = 100 * x->diff / x->base;
	char base[GATE_CELL], head[GATE_CELL];

	out[0] = '\0';
	if (!r->work.known)
		return;
	gate_text_value(base, sizeof(base), counted ? GATE_RULE_COUNT : GATE_RULE_NS, x->base);
	gate_text_value(head, sizeof(head), counted ? GATE_RULE_COUNT : GATE_RULE_NS, x->head);
	if (r->work.exact && !(fabs(x->diff) > 0))
		snprintf(out, size, "head does as much work as base from /init on (%s", base);
	else if (r->work.exact || (x->tested && x->p <= WORK_ALPHA))
		snprintf(out, size, "head does %.3g %% %s work from /init on (%s, base %s",
			 fabs(change), change < 0 ? "less" : "more", head, base);
	else
		snprintf(out, size,
			 "these runs do not tell whether head does less work from /init on "
			 "(%+.3g %%: %s, base %s",
			 change, head, base);
	say_add(out, size, counted ? " instructions" : " of processor time");
	if (!r->work.exact && x->tested && isfinite(x->lo) && isfinite(x->hi))
		say_add(out, size, "; 95 %%: %+.3g .. %+.3g %%", 100 * x->lo / x->base,
			100 * x->hi / x->base);
	say_add(out, size, ")");
}

static const char *plural(unsigned int n)
{
	return n == 1 ? "" : "s";
}

static void say_design(char *out, size_t size, const struct gate_report *r)
{
	if (r->exact) {
		snprintf(out, size,
			 r->sampled
				 ? "one exact run of each side, sampled: totals are the engine's "
				   "own count"
				 : "one run of each side, counted: each difference is one");
		return;
	}
	snprintf(out, size, "%u run%s of the base, %u of the head", r->nbase, plural(r->nbase),
		 r->nhead);
	if (r->nbase == 1 || r->nhead == 1) {
		say_add(out, size, ": how much runs differ can't be known from one; give several");
		return;
	}
	if (r->paired)
		say_add(out, size, ", compared in pairs");
	else if (r->confounded)
		say_add(out, size,
			", not interleaved: a drift of the host looks like a change (see kvmprof "
			"bench)");
	else if (r->ordered)
		say_add(out, size,
			", compared within blocks of neighbouring runs (intervals and detectable "
			"changes ignore the blocks: too wide if the host drifts)");
	say_add(out, size, "; identical code fails in at most %g %% of all gates",
		100 * r->error_rate);
}

/* Appends which guests ran: one where all are the same, else the first of each side. */
static void say_guests(char *out, size_t size, const struct gate_report *r)
{
	const char *name[GATE_SIDE_MAX] = { NULL };
	bool differs = false;

	for (unsigned int s = 0; s < GATE_SIDE_MAX; s++)
		for (unsigned int i = 0; i < gate_runs(r->gate, (enum gate_side)s); i++) {
			const char *guest = gate_run_at(r->gate, (enum gate_side)s, i)->guest;

			name[s] = name[s] ? name[s] : guest;
			differs |= strcmp(guest, name[GATE_BASE]) != 0;
		}
	if (!name[GATE_BASE] || !name[GATE_HEAD])
		return;
	if (differs)
		say_add(out, size, "; guests: base %.60s, head %.60s",
			*name[GATE_BASE] ? name[GATE_BASE] : "unknown",
			*name[GATE_HEAD] ? name[GATE_HEAD] : "unknown");
	else if (*name[GATE_BASE])
		say_add(out, size, "; guest: %.60s", name[GATE_BASE]);
}

void gate_text_means(char *out, size_t size, const struct gate_report *r)
{
	out[0] = '\0';
	if (*r->means)
		say_add(out, size,
			"the runs were not made in the same way, so differences may come from "
			"that: %s",
			r->means);
	if (r->same)
		say_add(out, size,
			"%s%.300s is a run of the base and of the head: what is compared with "
			"itself does not differ",
			*r->means ? "; " : "", r->same);
}

static void say_hangs(char *out, size_t size, const struct gate *g)
{
	static const char *const name[GATE_SIDE_MAX] = {
		[GATE_BASE] = "base", [GATE_HEAD] = "head"
	};

	for (unsigned int s = GATE_SIDE_MAX; s-- > 0;) {
		const char *verdict = gate_hang(g, (enum gate_side)s);

		if (verdict)
			say_add(out, size, "the %s's guest hung: %.300s; ", name[s], verdict);
	}
}

void gate_text_design(char *out, size_t size, const struct gate_report *r)
{
	const char *base = gate_panic(r->gate, GATE_BASE), *head = gate_panic(r->gate, GATE_HEAD);

	out[0] = '\0';
	if (head)
		say_add(out, size, "the head's guest panicked: %.200s; ", head);
	if (base)
		say_add(out, size, "the base's guest panicked: %.200s; ", base);
	say_hangs(out, size, r->gate);
	say_design(out + strlen(out), size - strlen(out), r);
	say_guests(out, size, r);
	if (*r->means || r->same) {
		say_add(out, size, "; WARNING: ");
		gate_text_means(out + strlen(out), size - strlen(out), r);
	}
}

void gate_text_relation(char *out, size_t size, const struct gate_report *r,
			const struct gate_relation *x)
{
	enum gate_rule_dimension d = r->exact ? GATE_RULE_COUNT : GATE_RULE_PART;
	char base[GATE_CELL], head[GATE_CELL], text[LINEAGE_TEXT];

	gate_text_value(base, sizeof(base), d, x->base);
	gate_text_value(head, sizeof(head), d, x->head);
	out[0] = '\0';
	say_add(out, size, "%s", lineage_text(text, x->kind, x->function, x->other));
	say_add(out, size, "%s -> %s", base, head);
}

void gate_text_function(char *out, size_t size, const struct gate_finding *f)
{
	const char *slash = strrchr(f->dso, '/');

	snprintf(out, size, "%.180s", f->name);
	if (*f->dso && (strcmp(f->mode, "kernel") != 0 || strcmp(f->dso, "[kernel.kallsyms]") != 0))
		say_add(out, size, " (%.60s%s)", slash ? slash + 1 : f->dso,
			!strcmp(f->mode, "idle") ? ", idle" : "");
	if (f->note)
		say_add(out, size, ", %.120s", f->note);
}

static void say_finding(char *out, size_t size, const struct gate_rule *r,
			const struct gate_finding *f)
{
	struct gate_cells c;
	char name[256];

	gate_text_cells(&c, r, f);
	if (f->name) {
		gate_text_function(name, sizeof(name), f);
		say_add(out, size, "%s ", name);
	}
	say_add(out, size, "%s -> %s, %s", c.base, c.head, c.change);
	if (c.interval[0])
		say_add(out, size, " (95 %%: %s), %s", c.interval, c.p);
}

static void say_family(char *out, size_t size, const struct gate_outcome *o)
{
	size_t shown = o->nworse < NAMED ? o->nworse : NAMED;

	if (!o->nworse) {
		snprintf(out, size, "none of %zu %s got worse by the threshold",
			 o->ncompared ? o->ncompared : o->nfindings, gate_rule_members(o->rule));
		if (o->ncompared && o->nfindings)
			say_add(out, size, "; %zu differ", o->nfindings);
		if (o->why[0])
			snprintf(out, size, "inconclusive: %s", o->why);
		return;
	}
	snprintf(out, size, "%zu of %zu %s: ", o->nworse,
		 o->ncompared ? o->ncompared : o->nfindings, gate_rule_members(o->rule));
	for (size_t i = 0; i < shown; i++) {
		say_add(out, size, "%s", i ? "; " : "");
		say_finding(out, size, o->rule, &o->finding[i]);
	}
	if (shown < o->nworse)
		say_add(out, size, "; and %zu more", o->nworse - shown);
}

void gate_text_outcome(char *out, size_t size, const struct gate_outcome *o)
{
	char threshold[160];

	out[0] = '\0';
	if (gate_rule_is_family(o->rule) && (o->nfindings || !o->why[0])) {
		say_family(out, size, o);
	} else if (o->total.value) {
		say_finding(out, size, o->rule, &o->total);
		if (o->why[0])
			say_add(out, size, "; %s", o->why);
	} else {
		snprintf(out, size, "%s", o->why);
		return;
	}
	gate_text_threshold(threshold, sizeof(threshold), o->rule);
	say_add(out, size, "; threshold: %s", threshold);
}

void gate_text_noise(char *out, size_t size, const struct gate_report *r)
{
	const struct gate_noise *n = &r->noise;
	char spread[GATE_CELL], threshold[GATE_CELL], name[256] = "";
	const unsigned int have = r->nbase < r->nhead ? r->nbase : r->nhead;
	enum gate_rule_dimension d;
	double sd;

	out[0] = '\0';
	if (!n->outcome)
		return;
	d = gate_rule_dimension(n->outcome->rule);
	sd = n->finding->spread.sd;
	if (n->finding->stats.unit == STATS_RELATIVE)
		sd /= n->finding->spread.base;
	else if (n->finding->stats.unit == STATS_POINTS)
		sd *= 100;
	gate_text_effect(spread, sizeof(spread), &n->finding->stats, d, sd, GATE_EFFECT_IS_SIZE);
	gate_text_effect(threshold, sizeof(threshold), &n->finding->stats, d,
			 n->finding->stats.min_effect, GATE_EFFECT_IS_SIZE);
	if (n->finding->name)
		gate_text_function(name, sizeof(name), n->finding);
	snprintf(out, size,
		 "runs of one side differ by %s (%s%s%s) and the threshold is %s: ", spread,
		 n->outcome->rule->name, *name ? ", " : "", name, threshold);
	if (n->runs > have)
		say_add(out, size, "%u runs a side would suffice, and there are %u", n->runs, have);
	else if (n->runs)
		say_add(out, size,
			"%u runs a side settle that in %g %% of all gates, and in this one more "
			"are needed",
			have, 100 * n->outcome->rule->power);
	else
		say_add(out, size,
			"more than %u runs a side would be needed; count instructions instead "
			"(run --engine exact, gate --exact)",
			STATS_MAX_RUNS);
}

/* The least able comparison. */
static const struct gate_finding *blindest(const struct gate_outcome *o)
{
	const struct gate_finding *worst = NULL;

	if (!gate_rule_is_family(o->rule))
		return o->total.value ? &o->total : NULL;
	for (size_t i = 0; i < o->nfindings; i++)
		if (o->finding[i].seen >= 0 && (!worst || o->finding[i].seen > worst->seen))
			worst = &o->finding[i];
	return worst;
}

void gate_text_power(char *out, size_t size, const struct gate_report *r,
		     const struct gate_outcome *o)
{
	const struct gate_finding *f = blindest(o);
	struct gate_cells c;
	char runs[64], name[256];

	out[0] = '\0';
	if (!f || r->exact)
		return;
	gate_text_cells(&c, o->rule, f);
	if (r->nbase == r->nhead)
		snprintf(runs, sizeof(runs), "%u run%s a side", r->nbase, plural(r->nbase));
	else
		snprintf(runs, sizeof(runs), "%u and %u runs", r->nbase, r->nhead);
	if (!isfinite(f->seen)) {
		snprintf(out, size, "%s are too few to detect a change of any size", runs);
		return;
	}
	snprintf(out, size, "with these %s a change of %s would be seen %g %% of the time", runs,
		 c.seen, 100 * o->rule->power);
	if (f->name) {
		gate_text_function(name, sizeof(name), f);
		say_add(out, size, " in any of %zu function%s (least surely in %s)", o->nfindings,
			o->nfindings == 1 ? "" : "s", name);
	}
}

void gate_text_notes(char *out, size_t size, const struct gate_finding *f)
{
	static const struct {
		unsigned int flag;
		const char *text;
	} notes[] = {
		{ STATS_OUTLIERS, "mean and median differ in direction: outliers" },
		{ STATS_CHANGED, "a significant change, below the threshold" },
		{ STATS_IMPROVED, "improved" },
	};
	const char *sep = "";

	out[0] = '\0';
	for (size_t i = 0; f->value && i < ARRAY_SIZE(notes); i++)
		if (f->result.flags & notes[i].flag) {
			say_add(out, size, "%s%s", sep,
				notes[i].flag == STATS_CHANGED && isnan(f->result.p_two)
					? "changed, by less than the threshold"
					: notes[i].text);
			sep = "; ";
		}
}

const char *gate_finding_word(const struct gate_outcome *o, const struct gate_finding *f)
{
	if (f->result.verdict == STATS_FAIL)
		return o->rule->fail ? "fail" : "warn";
	if (f->result.verdict == STATS_INCONCLUSIVE)
		return "inconclusive";
	return f->result.flags & STATS_IMPROVED ? "better" : "pass";
}
