/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/display_name.h"

#include "symbolizer/core/demangle.h"

#include <stdlib.h>
#include <string.h>

struct display_entry {
	const struct symbol *symbol; /* NULL: free */
	char *text;		     /* NULL: the symbol's own name */
};

void display_names_init(struct display_names *d, bool demangle, bool demangle_kernel)
{
	*d = (struct display_names){ .demangle = demangle, .demangle_kernel = demangle_kernel };
}

void display_names_deinit(struct display_names *d)
{
	for (size_t i = 0; i < d->cap; i++)
		free(d->entry[i].text);
	free(d->entry);
	d->entry = NULL;
	d->n = d->cap = 0;
}

/* Where the symbol is, or where it would go. cap is a power of two and never full. */
static struct display_entry *find(const struct display_names *d, const struct symbol *s)
{
	size_t i = (size_t)((uintptr_t)s * 0x9e3779b97f4a7c15ull >> 20);

	for (;; i++) {
		struct display_entry *e = &d->entry[i & (d->cap - 1)];

		if (!e->symbol || e->symbol == s)
			return e;
	}
}

static bool make_room(struct display_names *d)
{
	struct display_names x = *d;

	if (d->n < d->cap / 2)
		return true;
	x.cap = d->cap ? 2 * d->cap : 1024;
	x.entry = calloc(x.cap, sizeof(*x.entry));
	if (!x.entry)
		return false;
	for (size_t i = 0; i < d->cap; i++)
		if (d->entry[i].symbol)
			*find(&x, d->entry[i].symbol) = d->entry[i];
	free(d->entry);
	*d = x;
	return true;
}

const char *display_name(struct display_names *d, const struct symbol *s, bool kernel)
{
	struct display_entry *e;

	if (!d || !d->demangle || (kernel && !d->demangle_kernel) || !make_room(d))
		return s->name;
	e = find(d, s);
	if (!e->symbol) {
		e->symbol = s;
		e->text = demangle(s->name);
		d->n++;
	}
	return e->text ? e->text : s->name;
}
