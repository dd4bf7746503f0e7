/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many gates over the same runs, for bench_gate.py: each profile is loaded once.
 *
 *     gate_many RULES|- auto|free < GATES
 *
 * A line is a gate: paths of the base, "|", paths of the head, with blanks in between. For each
 * a line comes out: the exit status that `kvmprof gate` would have, and rule:function or rule of
 * all that failed.
 */
#include "profile/compare/gate/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 8192

static struct gate_run *run[RUNS_MAX];
static char *path[RUNS_MAX];
static size_t nruns;

static struct gate_run *find(const char *want, const struct gate_rules *rules, struct err *e)
{
	for (size_t i = 0; i < nruns; i++)
		if (!strcmp(path[i], want))
			return run[i];
	if (nruns == RUNS_MAX || gate_run_load(&run[nruns], want, rules, e))
		return NULL;
	path[nruns] = strdup(want);
	return run[nruns++];
}

static void print(const struct gate_report *r)
{
	printf("%d", gate_exit_status(r));
	for (size_t i = 0; i < r->n; i++) {
		const struct gate_outcome *o = &r->outcome[i];

		if (o->status != GATE_FAILED)
			continue;
		for (size_t k = 0; k < o->nworse; k++)
			printf("\t%s:%s", o->rule->name, o->finding[k].name);
		if (!o->nworse)
			printf("\t%s", o->rule->name);
	}
	putchar('\n');
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct gate_eval_options opt = { .pairing = STATS_AUTO };
	struct gate_rules *rules = NULL;
	struct err e = { 0 };
	char *line = NULL;
	size_t size = 0;

	if (argc != 3 || gate_rules_load(&rules, strcmp(argv[1], "-") ? argv[1] : NULL, &e)) {
		fprintf(stderr, "gate_many: %s\n", argc == 3 ? e.text : "RULES|- auto|free");
		return 1;
	}
	if (!strcmp(argv[2], "free"))
		opt.pairing = STATS_FREE;
	while (getline(&line, &size, stdin) > 0) {
		struct gate g = { .rules = rules };
		enum gate_side side = GATE_BASE;
		struct gate_report *r = NULL;

		for (char *w = strtok(line, " \n"); w; w = strtok(NULL, " \n")) {
			struct gate_run *one;

			if (!strcmp(w, "|")) {
				side = GATE_HEAD;
				continue;
			}
			one = find(w, rules, &e);
			if (!one || g.n[side] == STATS_MAX_RUNS) {
				fprintf(stderr, "gate_many: %s\n", one ? "too many runs" : e.text);
				return 1;
			}
			g.run[side][g.n[side]++] = one;
		}
		if (gate_evaluate(&g, &opt, &r, &e)) {
			fprintf(stderr, "gate_many: %s\n", e.text);
			return 1;
		}
		print(r);
		gate_report_destroy(r);
	}
	free(line);
	for (size_t i = 0; i < nruns; i++) {
		gate_run_destroy(run[i]);
		free(path[i]);
	}
	gate_rules_destroy(rules);
	return 0;
}
