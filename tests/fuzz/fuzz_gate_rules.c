/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A gate's rules: what parses keeps what the header promises; what does not says where. */
#include "tests/fuzz/fuzz.h"

#include "profile/compare/gate/rules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void check_rule(const struct gate_rule *r)
{
	struct stats_rule stats = gate_rule_stats(r, 1e9, 0.01);

	if (!r->name || !*r->name || !r->key || r->metric >= GATE_RULE_METRIC_MAX || !r->line)
		abort();
	if (!(r->threshold.value > 0) || !isfinite(r->threshold.value) || !(stats.min_effect > 0))
		abort();
	if (r->min_share < 0 || r->min_share > 1 || r->power < 0.5 || r->alpha < 0)
		abort();
	(void)gate_rule_dimension(r);
	(void)gate_rule_matches(r, "kmem_cache_alloc", "[kernel.kallsyms]");
	(void)gate_rule_matches(r, "", "/lib/x86_64-linux-gnu/libc.so.6");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gate_rules *rules = NULL;
	struct err e = { 0 };

	if (gate_rules_parse(&rules, "fuzz", (const char *)data, size, &e) < 0) {
		if (strncmp(e.text, "fuzz:", 5) != 0 || strchr(e.text, '\n') || rules)
			abort();
		return 0;
	}
	if (!rules->n || rules->n > GATE_RULE_MAX)
		abort();
	for (size_t i = 0; i < rules->n; i++)
		check_rule(&rules->rule[i]);
	gate_rules_destroy(rules);
	return 0;
}
