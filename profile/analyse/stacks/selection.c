/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/stacks/selection.h"

#include "base/buf.h"
#include "base/nearest.h"
#include "base/number.h"
#include "profile/analyse/stacks/slices.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTED 12u /* names in a message */

/* -- options ------------------------------------------------------------------------------- */

/* "1,3-5" */
static int parse_numbers(void *at, char *arg, struct err *e)
{
	struct selection_numbers *l = at;
	const char *s = arg;
	struct number_range r;
	int ret;

	(void)e;
	l->n = 0;
	while ((ret = number_range(&s, UINT32_MAX, &r)) > 0) {
		if (l->n == SELECTION_MAX_RANGES)
			return -E2BIG;
		l->range[l->n].from = (uint32_t)r.from;
		l->range[l->n++].to = (uint32_t)r.to;
	}
	return ret;
}

int selection_parse_texts(struct selection_texts *l, char *list)
{
	char *save = NULL;

	l->n = 0;
	for (char *s = strtok_r(list, ",", &save); s && l->n < SELECTION_MAX_TEXTS;
	     s = strtok_r(NULL, ",", &save))
		l->text[l->n++] = s;
	return l->n ? 0 : -EINVAL;
}

static int parse_texts(void *at, char *arg, struct err *e)
{
	(void)e;
	return selection_parse_texts(at, arg);
}

/*
 * Parses "1.5", "200ms" or "10%", and moves *s behind it, to a ',' or the end; behind "%" other text
 * may follow. An empty text leaves the limit open.
 */
static bool parse_moment(const char **s, struct selection_moment *out)
{
	size_t len = strcspn(*s, ",%");
	char text[64];

	len += (*s)[len] == '%';
	*out = (struct selection_moment){ 0 };
	if (!len)
		return true;
	if (len >= sizeof(text))
		return false;
	memcpy(text, *s, len);
	text[len] = '\0';
	*s += len;
	out->given = true;
	out->percent = text[len - 1] == '%';
	if (!out->percent)
		return number_seconds(text, 0, HUGE_VAL, &out->value);
	text[len - 1] = '\0';
	return number_real(text, 0, 100, &out->value);
}

/* "FROM,TO"; between percentages also "-", as in perf. */
static int parse_time(void *at, char *arg, struct err *e)
{
	struct selection *f = at;
	const char *s = arg;
	bool ok = parse_moment(&s, &f->from) && (*s == ',' || (*s == '-' && f->from.percent));

	(void)e;
	if (ok) {
		s++;
		ok = parse_moment(&s, &f->to) && !*s && (f->from.given || f->to.given);
	}
	if (ok && f->from.given && f->to.given && f->from.percent == f->to.percent)
		ok = f->from.value <= f->to.value;
	return ok ? 0 : -EINVAL;
}

static int parse_phase(void *at, char *arg, struct err *e)
{
	struct selection *f = at;

	(void)e;
	f->phases = !arg;
	f->phase = arg;
	return 0;
}

static int set_regex(regex_t *re, const regex_t **used, const char *text, struct err *e)
{
	char message[128];
	int ret;

	if (*used)
		regfree(re);
	*used = NULL;
	ret = regcomp(re, text, REG_EXTENDED | REG_NOSUB);
	if (!ret) {
		*used = re;
		return 0;
	}
	regerror(ret, re, message, sizeof(message));
	return err_set(e, EINVAL, "bad expression '%.150s': %s", text, message);
}

int selection_parse_parent(struct selection *f, const char *text, struct err *e)
{
	return set_regex(&f->parent_regex, &f->parent, text, e);
}

int selection_parse_symbol(struct selection *f, const char *text, struct err *e)
{
	f->symbols = NULL;
	return set_regex(&f->symbol_regex, &f->symbol, text, e);
}

int selection_parse_symbols(struct selection *f, const char *text, struct err *e)
{
	struct buf expression;
	int ret = -ENOMEM;

	if (!*text)
		return err_set(e, EINVAL, "expected the name of a function, not ''");
	buf_init(&expression);
	buf_printf(&expression, "^(");
	for (const char *s = text; *s; s++) {
		if (*s == ',')
			buf_u8(&expression, '|');
		else if (strchr("\\^$.[]|()*+?{}", *s))
			buf_printf(&expression, "\\%c", *s);
		else
			buf_u8(&expression, (uint8_t)*s);
	}
	buf_printf(&expression, ")$%c", 0);
	if (!expression.failed)
		ret = selection_parse_symbol(f, (char *)expression.data, e);
	buf_deinit(&expression);
	if (!ret)
		f->symbols = text;
	return ret;
}

static int parse_parent(void *at, char *arg, struct err *e)
{
	return selection_parse_parent(at, arg, e);
}

static int parse_symbol(void *at, char *arg, struct err *e)
{
	return selection_parse_symbol(at, arg, e);
}

static int parse_symbols(void *at, char *arg, struct err *e)
{
	return selection_parse_symbols(at, arg, e);
}

#define OPTION_STRUCT struct selection
#define NAMES(m) OPTION_CALL_AT(parse_texts, m, "a name")
#define NUMBERS(m) OPTION_CALL_AT(parse_numbers, m, "a list such as 0,2-3")

/* Rows without a text are earlier names of those above them. */
const struct option_row selection_sample_rows[] = {
	{ "comms", 'c', "NAME,...", "samples of these tasks only", NAMES(comm) },
	{ "comm", 0, "NAME,...", NULL, NAMES(comm) },
	{ "pid", 0, "LIST", "of these processes: 1,100-199", NUMBERS(pid) },
	{ "tid", 0, "LIST", "of these threads", NUMBERS(tid) },
	{ "cpu", 'C', "LIST", "on these vCPUs", NUMBERS(cpu) },
	{ "time", 0, "FROM,TO",
	  "seconds since the first sample, or 10%,20% of all the\n"
	  "time; both are optional",
	  OPTION_CALL(parse_time, "FROM,TO such as 1.5,3 or 10%,20% or 2,") },
	/* Its name may stand alone, too. */
	{ "phase", 0, "[=NAME]",
	  "samples of this phase of a boot, or from this marker to\n"
	  "the next; `kvmprof report --phase' lists them",
	  OPTION_CALL(parse_phase, NULL), .next = true },
	{ "parent", 'p', "REGEX", "stacks that contain a matching function",
	  OPTION_CALL(parse_parent, NULL) },
	{ "kernel-only", 0, NULL, "samples in the kernel, and kernel frames of those",
	  OPTION_PUT(mode, SELECTION_KERNEL) },
	{ "user-only", 0, NULL, "samples in programs, and their frames",
	  OPTION_PUT(mode, SELECTION_USER) },
	{ 0 },
};

const struct option_row selection_function_rows[] = {
	{ "dsos", 'd', "NAME,...",
	  "functions of these programs, modules and libraries only:\n"
	  "the rows of a table, whose percentages are still of all\n"
	  "samples; elsewhere samples that are innermost in one",
	  NAMES(dso) },
	{ "dso", 0, "NAME,...", NULL, NAMES(dso) },
	{ "symbols", 'S', "NAME,...", "likewise functions of these names; all of a name",
	  OPTION_CALL(parse_symbols, NULL) },
	{ "symbol-filter", 0, "REGEX", "likewise functions that match (POSIX extended)",
	  OPTION_CALL(parse_symbol, NULL) },
	{ "symbol", 0, "REGEX", NULL, OPTION_CALL(parse_symbol, NULL) },
	{ 0 },
};

void selection_deinit(struct selection *f)
{
	if (f->parent == &f->parent_regex)
		regfree(&f->parent_regex);
	if (f->symbol == &f->symbol_regex)
		regfree(&f->symbol_regex);
	f->parent = f->symbol = NULL;
}

int selection_check(const struct selection *f, struct err *e)
{
	if (f->phases)
		return err_set(e, EINVAL,
			       "--phase needs the name of a phase or marker; `kvmprof report "
			       "--phase' lists them");
	if (f->phase && (f->from.given || f->to.given))
		return err_set(e, EINVAL, "--phase and --time both select a time: drop one");
	return 0;
}

bool selection_selects(const struct selection *f)
{
	return f && (f->pid.n || f->tid.n || f->cpu.n || f->comm.n || f->from.given ||
		     f->to.given || f->phase || f->mode != SELECTION_ANY_MODE || f->parent);
}

bool selection_chooses(const struct selection *f)
{
	return f && (f->dso.n || f->symbol);
}

/* -- time ---------------------------------------------------------------------------------- */

static uint64_t moment_ns(const struct selection_moment *m, const struct perfdata *p)
{
	double span = p->last_ns > p->first_ns ? (double)(p->last_ns - p->first_ns) : 0;
	double ns = m->percent ? m->value / 100 * span : m->value * 1e9;

	return ns >= (double)(UINT64_MAX - p->first_ns) / 2 ? UINT64_MAX - 1
							    : p->first_ns + (uint64_t)llround(ns);
}

int selection_set_window(const struct selection *f, struct perfdata *p, const char *input,
			 const char *buildid_dir, struct selection_window *out, struct err *e)
{
	*out = (struct selection_window){ 0, UINT64_MAX };
	if (f && f->phase)
		return slices_set_window(p, input, buildid_dir, f->phase, out, e);
	if (!f || (!f->from.given && !f->to.given))
		return 0;
	if (f->from.given)
		out->from_ns = moment_ns(&f->from, p);
	if (f->to.given)
		out->to_ns = moment_ns(&f->to, p) + 1;
	perfdata_set_window(p, out->from_ns, out->to_ns);
	return 0;
}

/* -- samples and functions ------------------------------------------------------------------ */

/* A function, or an address without a name. */
struct selection_function {
	const struct symbol *symbol; /* NULL: identified by dso and addr */
	const char *dso, *shown;     /* shown NULL: no name */
	uint64_t addr;
	unsigned int bits;
};

static bool equal_function(const void *a, const void *b, const void *ctx)
{
	const struct selection_function *x = a, *y = b;

	(void)ctx;
	return x->symbol == y->symbol && x->dso == y->dso && (x->symbol || x->addr == y->addr);
}

void selection_use_init(struct selection_use *u, const struct selection *f, struct names *names,
			struct tasks *tasks, struct display_names *display)
{
	*u = (struct selection_use){ .f = f, .names = names, .tasks = tasks, .display = display };
	u->functions = TABLE_OF(struct selection_function, equal_function);
}

void selection_use_deinit(struct selection_use *u)
{
	table_deinit(&u->functions);
}

static bool passes_number(const struct selection_numbers *l, uint32_t v)
{
	for (unsigned int i = 0; i < l->n; i++)
		if (v >= l->range[i].from && v <= l->range[i].to)
			return true;
	return l->n == 0;
}

static bool passes_text(const struct selection_texts *l, const char *s)
{
	for (unsigned int i = 0; i < l->n; i++)
		if (!strcmp(l->text[i], s))
			return true;
	return l->n == 0;
}

static bool is_dso(const char *dso, const char *wanted)
{
	const char *slash = strrchr(dso, '/');
	size_t n = strlen(dso);

	if (!strcmp(dso, wanted) || (slash && !strcmp(slash + 1, wanted)))
		return true;
	/* A module may be written without its brackets. */
	return n > 2 && dso[0] == '[' && strlen(wanted) == n - 2 &&
	       !strncmp(dso + 1, wanted, n - 2);
}

static bool passes_dso(const struct selection_texts *l, const char *dso)
{
	for (unsigned int i = 0; i < l->n; i++)
		if (is_dso(dso, l->text[i]))
			return true;
	return l->n == 0;
}

static bool passes_comm(struct selection_use *u, uint32_t tid)
{
	uint32_t name = tasks_name(u->tasks, tid);
	bool passes = passes_text(&u->f->comm, tasks_text(u->tasks, name));

	tasks_seen_add(&u->seen, name, passes);
	return passes;
}

bool selection_sample(struct selection_use *u, const struct perfdata_record *r)
{
	const struct selection *f = u->f;

	u->sampled = true;
	if (!f)
		return true;
	if (f->mode != SELECTION_ANY_MODE && r->kernel != (f->mode == SELECTION_KERNEL))
		return false;
	return passes_number(&f->cpu, r->cpu) && passes_number(&f->pid, r->pid) &&
	       passes_number(&f->tid, r->tid) && (!f->comm.n || passes_comm(u, r->tid));
}

bool selection_frame(const struct selection *f, const struct perfdata_frame *frame)
{
	return !f || f->mode == SELECTION_ANY_MODE ||
	       frame->kernel == (f->mode == SELECTION_KERNEL);
}

/* Returns whether the expression matches the displayed name or another name of the function. */
static bool matches(const struct selection_use *u, const regex_t *regex, const char *shown,
		    const struct symbol *symbol, bool kernel)
{
	bool found = !regex || regexec(regex, shown, 0, NULL, 0) == 0;

	for (const struct symbol *s = symbol ? symbol->alias : NULL; s && !found; s = s->alias)
		found = regexec(regex, demangle_shown(u->display, s, kernel), 0, NULL, 0) == 0;
	return found;
}

int selection_function(struct selection_use *u, const struct name *name, uint64_t addr, bool kernel,
		       unsigned int *bits)
{
	struct selection_function like = { .symbol = name->symbol, .dso = name->dso, .addr = addr };
	const struct selection *f = u->f;
	struct selection_function *fn;
	char number[24];
	const char *text = number;
	uint32_t index;
	bool fresh;

	*bits = SELECTION_CHOSEN | SELECTION_PARENT;
	if (!f || (!f->dso.n && !f->symbol && !f->parent))
		return 0;
	if (table_add(&u->functions,
		      table_mix(name->symbol ? (uintptr_t)name->symbol : addr,
				(uintptr_t)name->dso),
		      &like, &index, &fresh))
		return -ENOMEM;
	fn = (struct selection_function *)u->functions.item + index;
	if (fresh) {
		snprintf(number, sizeof(number), "0x%016" PRIx64, addr);
		if (name->symbol)
			text = fn->shown = demangle_shown(u->display, name->symbol, kernel);
		fn->bits = passes_dso(&f->dso, name->dso) &&
					   matches(u, f->symbol, text, name->symbol, kernel)
				   ? SELECTION_CHOSEN
				   : 0;
		if (matches(u, f->parent, text, name->symbol, kernel))
			fn->bits |= SELECTION_PARENT;
		u->met |= fn->bits;
	}
	*bits = fn->bits;
	return 0;
}

bool selection_needs_chain(const struct selection *f)
{
	return f && (f->parent || f->dso.n || f->symbol);
}

bool selection_dso(const struct selection *f, const char *dso)
{
	return passes_dso(&f->dso, dso);
}

/* Stores which of the two conditions a stack meets. Returns 0 or -ENOMEM. */
static int chain_bits(struct selection_use *u, const struct chain *c, bool exact, unsigned int *out)
{
	bool first = true;
	struct perfdata_walk walk;
	struct perfdata_frame frame;
	unsigned int bits;
	struct name name;
	uint64_t addr;

	*out = 0;
	chain_walk_begin(&walk, c);
	while (perfdata_walk_next(&walk, &frame)) {
		if (!selection_frame(u->f, &frame))
			continue;
		addr = names_lookup_frame(u->names, c->view, &frame, exact, &name);
		if (selection_function(u, &name, addr, frame.kernel, &bits) < 0)
			return -ENOMEM;
		*out |= first ? bits : bits & SELECTION_PARENT;
		first = false;
	}
	return 0;
}

int selection_chain(struct selection_use *u, const struct chain *c, bool exact)
{
	unsigned int bits;

	if (!selection_needs_chain(u->f))
		return 1;
	if (chain_bits(u, c, exact, &bits) < 0)
		return -ENOMEM;
	return bits == (SELECTION_CHOSEN | SELECTION_PARENT);
}

int selection_has_parent(struct selection_use *u, const struct chain *c, bool exact)
{
	unsigned int bits;

	if (!u->f || !u->f->parent)
		return 1;
	return chain_bits(u, c, exact, &bits) < 0 ? -ENOMEM : (bits & SELECTION_PARENT) != 0;
}

/* -- what was not there ----------------------------------------------------------------------- */

/* The DSOs of the functions met, each once, up to LISTED of them. */
static void list_dsos(const struct selection_use *u, char *out, size_t size)
{
	const struct selection_function *fn = u->functions.item;
	const char *seen[LISTED];
	unsigned int n = 0;
	size_t at = 0;

	*out = '\0';
	for (size_t i = 0; i < u->functions.n && n < LISTED && at < size; i++) {
		unsigned int k = 0;

		while (k < n && strcmp(seen[k], fn[i].dso) != 0)
			k++;
		if (k < n)
			continue;
		seen[n] = fn[i].dso;
		at += (size_t)snprintf(out + at, size - at, "%s%.60s", n++ ? ", " : "", fn[i].dso);
	}
}

static int dso_missed(const struct selection_use *u, struct err *e)
{
	const struct selection_function *fn = u->functions.item;
	char list[300];

	for (size_t i = 0; i < u->functions.n; i++)
		if (passes_dso(&u->f->dso, fn[i].dso))
			return 0;
	list_dsos(u, list, sizeof(list));
	return err_set(e, ENODATA, "--dsos: no sample is in '%.64s'; the samples are in %s",
		       u->f->dso.text[0], list);
}

/* The first name of --symbols, and what is nearest to it. */
static int symbol_missed(const struct selection_use *u, struct err *e)
{
	const struct selection_function *fn = u->functions.item;
	const char *symbols = u->f->symbols, *best;
	char typed[NEAREST_MAX + 1];
	struct nearest n = { .typed = typed };
	int len = symbols ? (int)strcspn(symbols, ",") : 0;

	if (!symbols)
		return err_set(e, ENODATA,
			       "--symbol-filter: no function of the samples matches the "
			       "expression");
	snprintf(typed, sizeof(typed), "%.*s", len, symbols);
	for (size_t i = 0; i < u->functions.n; i++)
		if (fn[i].shown)
			nearest_add(&n, fn[i].shown);
	best = nearest_word(&n);
	for (size_t i = 0; i < u->functions.n && !best; i++)
		if (fn[i].shown && strstr(fn[i].shown, typed))
			best = fn[i].shown;
	return err_set(e, ENODATA, "--symbols: no sample is in a function '%.*s'%s%.100s%s", len,
		       symbols, best ? " (did you mean " : "", best ? best : "", best ? "?)" : "");
}

int selection_missed(struct selection_use *u, struct err *e)
{
	const struct selection *f = u->f;
	char text[480];

	if (!f || !u->sampled)
		return 0;
	if (f->comm.n && !u->seen.met && u->seen.n) {
		tasks_seen_text(&u->seen, u->tasks, f->comm.text[0], text, sizeof(text));
		return err_set(e, ENODATA, "--comms: %s", text);
	}
	if (!u->functions.n)
		return 0;
	if (f->dso.n && dso_missed(u, e))
		return -ENODATA;
	if (f->symbol && !(u->met & SELECTION_CHOSEN))
		return symbol_missed(u, e);
	if (f->parent && !(u->met & SELECTION_PARENT))
		return err_set(e, ENODATA,
			       "--parent: no function in the samples' stacks matches the "
			       "expression");
	return 0;
}
