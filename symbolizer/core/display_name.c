/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/display_name.h"

#include "symbolizer/core/demangle.h"

#include <stdlib.h>
#include <string.h>

struct display_entry {
	const struct symbol *symbol;
	char *text; /* NULL: the symbol's own name */
};

static bool equal_entry(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return ((const struct display_entry *)a)->symbol ==
	       ((const struct display_entry *)b)->symbol;
}

void display_names_init(struct display_names *d, enum demangle_which which)
{
	*d = (struct display_names){ .which = which,
				     .entries = TABLE_OF(struct display_entry, equal_entry) };
}

void display_names_deinit(struct display_names *d)
{
	struct display_entry *e = d->entries.item;

	for (size_t i = 0; i < d->entries.n; i++)
		free(e[i].text);
	table_deinit(&d->entries);
}

const char *display_name(struct display_names *d, const struct symbol *s, enum names_of whose)
{
	const struct display_entry like = { .symbol = s };
	struct display_entry *e;
	bool demangled, fresh;
	uint32_t index;

	if (!d || d->which == DEMANGLE_NONE)
		return s->name;
	demangled = whose == NAMES_PROGRAM || d->which == DEMANGLE_ALL;
	if (!demangled && !s->promoted)
		return s->name;
	if (table_add(&d->entries, table_mix((uintptr_t)s, 0), &like, &index, &fresh))
		return s->name;
	e = (struct display_entry *)d->entries.item + index;
	if (fresh && demangled)
		e->text = demangle(s->name);
	if (fresh && !e->text && s->promoted)
		e->text = strndup(s->name, s->promoted);
	return e->text ? e->text : s->name;
}
