/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/rules_name.h"

#include "base/buf.h"

#include <string.h>

static void name_functions(const struct grule *r, struct buf *b)
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
static char *key_of(const struct grule *r)
{
	struct buf b;

	buf_init(&b);
	buf_printf(&b, "%s", grule_metric_name(r->metric));
	if (r->has_phase)
		buf_printf(&b, " in %s", phase_name(r->phase));
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

int grule_settle_name(const struct grule_parse *p, const struct toml_node *table, struct grule *r)
{
	r->key = key_of(r);
	if (r->key && !r->name)
		r->name = strdup(r->key);
	if (!r->key || !r->name)
		return grule_no_memory(p);
	for (const struct grule *x = p->rules->rule; x != r; x++)
		if (!strcmp(x->name, r->name))
			return grule_wrong(
				p, table,
				"a second rule called \"%.64s\" (the first is in line %u): give "
				"one a name",
				r->name, x->line);
	return 0;
}
