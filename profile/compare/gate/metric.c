/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/metric.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

json_t *gate_totals(const char *text)
{
	json_error_t why;
	json_t *t;

	if (!text || strlen(text) > GATE_MAX_TOTALS)
		return NULL;
	t = json_loads(text, 0, &why);
	if (t && json_is_object(t))
		return t;
	json_decref(t);
	return NULL;
}

static __attribute__((format(printf, 2, 3))) double none(char *why, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, GATE_WHY, fmt, args);
	va_end(args);
	return NAN;
}

/* -- numbers of the totals ------------------------------------------------------------------ */

/* NaN: not there, or not a finite number. */
static double number_of(const json_t *v)
{
	double x = json_is_number(v) ? json_number_value(v) : NAN;

	return isfinite(x) ? x : NAN;
}

static double total(const struct gate_source *src, const char *key)
{
	return number_of(json_object_get(src->totals, key));
}

/* "host.syscalls_assisted" */
static double counter(const struct gate_source *src, const char *path)
{
	const json_t *at = src->totals;
	char part[GATE_RULE_MAX_NAME + 1];

	while (at) {
		size_t len = strcspn(path, ".");

		if (len > GATE_RULE_MAX_NAME)
			return NAN;
		memcpy(part, path, len);
		part[len] = '\0';
		at = json_object_get(at, part);
		if (!path[len])
			return number_of(at);
		path += len + 1;
	}
	return NAN;
}

/* -- times ---------------------------------------------------------------------------------- */

/* ns; what the samples span where nobody counted. */
static double run_ns(const struct gate_source *src)
{
	double s = total(src, "run_seconds");

	if (s > 0)
		return s * (double)NSEC_PER_SEC;
	return src->set->last_ns > src->set->first_ns
		       ? (double)(src->set->last_ns - src->set->first_ns)
		       : NAN;
}

/* The first one of that name, in ns since the first instruction. */
static double marker_ns(const struct gate_source *src, const char *name)
{
	const json_t *list = json_object_get(src->totals, "markers");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *m = json_array_get(list, i);
		const char *called = json_string_value(json_object_get(m, "name"));
		double at = number_of(json_object_get(m, "time_ns"));

		if (called && !strcmp(called, name) && at >= 0)
			return at;
	}
	return NAN;
}

static double time_to_marker(const struct gate_source *src, const struct gate_rule *r, char *why)
{
	double to = marker_ns(src, r->until), from = r->from ? marker_ns(src, r->from) : 0;

	if (isnan(to) || isnan(from))
		return none(why, "no marker \"%.80s\"", isnan(to) ? r->until : r->from);
	if (to < from)
		return none(why, "the marker \"%.60s\" comes before \"%.60s\"", r->until, r->from);
	return to - from;
}

static double phase_ns(const struct gate_source *src, enum phase p, char *why)
{
	const struct phase_span *span = &src->phases.span[p];

	if (!src->phases.boot)
		return none(why, "it is not the boot of a Linux kernel");
	if (!span->seen)
		return none(why, "it has no phase %s", phase_name(p));
	return (double)(span->to_ns - span->from_ns);
}

/* Returns a time of the VMM that `kvmprof attach -- VMM` has measured, in ns. */
static double vmm_ns(const struct gate_source *src, const char *key, char *why)
{
	const json_t *start = json_object_get(json_object_get(src->totals, "attach"), "start");
	double ns = number_of(json_object_get(start, key));

	return ns >= 0 ? ns : none(why, "it does not begin with the start of a VMM");
}

static double start_ns(const struct gate_source *src, enum gate_rule_start s, char *why)
{
	char key[16];

	snprintf(key, sizeof(key), "%s_ns", gate_rule_start_name(s));
	return vmm_ns(src, key, why);
}

/* Returns the time from execve(2) to the end, without the time in which kvmprof held the vCPUs. */
static double vmm_time(const struct gate_source *src, char *why)
{
	double whole = vmm_ns(src, "elapsed_ns", why), held = vmm_ns(src, "held_ns", why);

	return whole - held;
}

static double boot_ns(const struct gate_source *src, char *why)
{
	const struct phases *p = &src->phases;

	if (!p->boot)
		return none(why, "it is not the boot of a Linux kernel");
	if (!p->span[PHASE_INIT].seen)
		return none(why, "it ends before /init");
	for (unsigned int i = 0; i < PHASE_INIT; i++)
		if (p->span[i].seen)
			return (double)(p->span[PHASE_INIT].from_ns - p->span[i].from_ns);
	return none(why, "it begins in /init");
}

static double time_of(const struct gate_source *src, const struct gate_rule *r, char *why)
{
	double ns;

	if (r->has_phase)
		return phase_ns(src, r->phase, why);
	if (r->start)
		return start_ns(src, r->start, why);
	if (r->until)
		return time_to_marker(src, r, why);
	ns = run_ns(src);
	return isnan(ns) ? none(why, "it does not say how long it took") : ns;
}

/* -- functions -------------------------------------------------------------------------------- */

static bool counts(const struct stackset_stack *st, const bool *match, const struct stackset *s,
		   bool children)
{
	for (uint32_t i = 0; i < (children ? st->n : st->n ? 1 : 0); i++)
		if (match[s->frame[st->frame[i]].func])
			return true;
	return false;
}

struct gate_counting gate_counting_of(const struct gate_rules *rules, const struct stackset *s)
{
	struct gate_counting c = { .no_idle = rules->no_idle, .kernel_only = rules->kernel_only };

	/* The mean, so that times are still times. */
	if (rules->count_samples && s->samples)
		c.per_sample = (double)s->weight / (double)s->samples;
	return c;
}

double gate_amount(const struct gate_counting *c, const struct stackset_stack *st)
{
	if ((c->no_idle && st->mode == STACKSET_IDLE) ||
	    (c->kernel_only && st->mode != STACKSET_KERNEL))
		return 0;
	return c->per_sample > 0 ? c->per_sample * (double)st->samples : (double)st->weight;
}

bool gate_counts_sample(const struct gate_rule *r, const struct phases *p, const uint8_t *of_stack,
			const struct stackset_sample *m)
{
	static const enum work meant[] = {
		[GATE_RULE_WORKLOAD] = WORK_WORKLOAD, [GATE_RULE_MEANWHILE] = WORK_MEANWHILE
	};

	if (r->has_phase && (!p->boot || phases_at(p, m->time_ns) != r->phase))
		return false;
	return r->work == GATE_RULE_ALL_WORK || work_of_sample(of_stack, p, m) == meant[r->work];
}

/* Returns the weight of the stacks that match, or of their samples that the rule is about. match: NULL for all. */
static double matching_weight(const struct gate_source *src, const struct gate_rule *r,
			      const bool *match)
{
	const struct stackset *s = src->set;
	double sum = 0;

	if (!r->work && (!r->has_phase || r->metric != GATE_RULE_INSNS)) {
		for (size_t i = 0; i < s->nstacks; i++)
			if (!match || counts(&s->stack[i], match, s, r->children))
				sum += gate_amount(&src->counting, &s->stack[i]);
		return sum;
	}
	for (size_t i = 0; i < s->nsamples; i++)
		if ((!match || counts(&s->stack[s->sample[i].stack], match, s, r->children)) &&
		    gate_counts_sample(r, &src->phases, src->work, &s->sample[i]))
			sum += (double)s->sample[i].weight;
	return sum;
}

static int function_weight(const struct gate_source *src, const struct gate_rule *r, double *out,
			   char *why)
{
	const struct stackset *s = src->set;
	cleanup_free bool *match = calloc(s->nfuncs + 1, sizeof(*match));
	bool any = false;

	if (!match)
		return -ENOMEM;
	for (size_t i = 0; i < s->nfuncs; i++) {
		const struct stackset_func *f = &s->func[i];

		match[i] = f->named && gate_rule_matches_function(r, f);
		any |= match[i];
	}
	if (!any)
		none(why, "no function that matches was sampled");
	*out = matching_weight(src, r, match);
	return 0;
}

static int measure_functions(const struct gate_source *src, const struct gate_rule *r, double *out,
			     char *why)
{
	double sum;
	int ret = function_weight(src, r, &sum, why);

	if (ret)
		return ret;
	if (r->metric == GATE_RULE_SHARE)
		*out = src->weight > 0 ? sum / src->weight : 0;
	else if (src->set->weight_is_ns)
		*out = sum;
	else
		*out = none(why, "its samples count %.80s, not time", src->set->event);
	return 0;
}

double gate_engine_instructions(const struct json_t *totals)
{
	const json_t *engine = json_object_get(totals, "engine");
	const char *name = json_string_value(json_object_get(engine, "name"));
	double all = number_of(json_object_get(engine, "instructions")),
	       begun = number_of(json_object_get(engine, "begun"));

	if (!name || strcmp(name, "exact") != 0 || !(all > 0))
		return NAN;
	return begun > 0 && begun < all ? all - begun : all;
}

static int measure_instructions(const struct gate_source *src, const struct gate_rule *r,
				double *out, char *why)
{
	if (strncmp(src->set->event, "instructions", 12) != 0) {
		*out = none(why, "its samples count %.80s, not instructions", src->set->event);
		return 0;
	}
	if ((r->has_phase || r->work) && !src->set->counted)
		*out = none(why, "it was sampled: a part of the instructions needs --call-counts");
	else if (r->has_phase && !src->phases.boot)
		*out = none(why, "it is not the boot of a Linux kernel");
	else if (r->symbol || r->pattern || r->dso)
		return function_weight(src, r, out, why);
	else if (r->has_phase || r->work)
		*out = matching_weight(src, r, NULL);
	else if (src->set->counted || src->counting.no_idle || src->counting.kernel_only ||
		 isnan(*out = gate_engine_instructions(src->totals)))
		*out = src->weight;
	return 0;
}

/* -- exits, bytes, counters -------------------------------------------------------------------- */

/* "2_IO" is called IO, or 2. */
static bool is_exit(const char *key, const char *name)
{
	size_t len = strcspn(key, "_");

	return !strcmp(key + len + (key[len] == '_'), name) ||
	       (strlen(name) == len && !strncmp(key, name, len));
}

static double exits_per_second(const struct gate_source *src, const struct gate_rule *r, char *why)
{
	json_t *exits = json_object_get(src->totals, "exits"), *value;
	double ns = run_ns(src), sum = 0;
	const char *key;

	if (!json_is_object(exits) || isnan(ns))
		return none(why, "it has no counts of exits");
	json_object_foreach(exits, key, value)
	{
		double n = number_of(value);

		if (n > 0 && (!r->exit || is_exit(key, r->exit)))
			sum += n;
	}
	return sum / (ns / (double)NSEC_PER_SEC);
}

static double io_bytes(const struct gate_source *src, char *why)
{
	double all = total(src, "io_bytes"), in = counter(src, "io.read_bytes"),
	       out = counter(src, "io.written_bytes");

	if (!isnan(all))
		return all;
	if (isnan(in) && isnan(out))
		return none(why, "it has no counts of bytes read and written");
	return (isnan(in) ? 0 : in) + (isnan(out) ? 0 : out);
}

static double counter_of(const struct gate_source *src, const struct gate_rule *r, char *why)
{
	double v = counter(src, r->counter), ns = run_ns(src);

	if (isnan(v))
		return none(why, "its totals have no number \"%.80s\"", r->counter);
	if (!r->per_second)
		return v;
	return isnan(ns) ? none(why, "it does not say how long it took")
			 : v / (ns / (double)NSEC_PER_SEC);
}

int gate_measure(const struct gate_source *src, const struct gate_rule *r, double *out,
		 char why[GATE_WHY], struct err *e)
{
	int ret = 0;

	why[0] = '\0';
	*out = NAN;
	switch (r->metric) {
	case GATE_RULE_TIME:
		*out = time_of(src, r, why);
		break;
	case GATE_RULE_BOOT_TIME:
		*out = boot_ns(src, why);
		break;
	case GATE_RULE_VMM_TIME:
		*out = vmm_time(src, why);
		break;
	case GATE_RULE_SHARE:
	case GATE_RULE_FUNCTION_TIME:
		ret = measure_functions(src, r, out, why);
		break;
	case GATE_RULE_EXITS:
		*out = exits_per_second(src, r, why);
		break;
	case GATE_RULE_IO_BYTES:
		*out = io_bytes(src, why);
		break;
	case GATE_RULE_COUNTER:
		*out = counter_of(src, r, why);
		break;
	case GATE_RULE_INSNS: /* for a history; exact.h judges one run a side */
		ret = measure_instructions(src, r, out, why);
		break;
	default: /* families have no number of their own */
		break;
	}
	return ret ? err_set(e, -ret, "out of memory") : 0;
}
