/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct demangle_result {
	jmp_buf too_long;
	size_t len;
	char text[DEMANGLE_MAX_RESULT];
};

/*
 * Appends printed text. The callback cannot report an error, and a hostile name of a kilobyte may
 * print for years, so it leaves by longjmp(). libiberty keeps its state on the stack while it
 * prints; at most one identifier of a Rust name in punycode is leaked.
 */
static void demangle_append(const char *s, size_t n, void *ctx)
{
	struct demangle_result *r = ctx;

	if (n == 0)
		return; /* s may be NULL then */
	if (n >= sizeof(r->text) - r->len)
		longjmp(r->too_long, 1);
	memcpy(r->text + r->len, s, n);
	r->len += n;
}

/* Prints the demangled name. A legacy Rust name is a valid C++ name too, so Rust is tried first. */
static bool print(const char *mangled, struct demangle_result *r)
{
	if (setjmp(r->too_long))
		return false;
	if (rust_demangle_callback(mangled, DMGL_NO_OPTS, demangle_append, r))
		return true;
	r->len = 0;
	return cplus_demangle_v3_callback(mangled, DMGL_NO_OPTS, demangle_append, r);
}

/*
 * Returns whether the name can be mangled. Everything that libiberty accepts begins like this;
 * most names do not.
 */
static bool may_be_mangled(const char *name)
{
	name += strspn(name, "_");
	return *name == 'Z' || *name == 'R' || !strncmp(name, "GLOBAL_", 7);
}

char *demangle(const char *name)
{
	size_t len = strnlen(name, DEMANGLE_MAX_NAME + 1);
	bool plt = len > 4 && len <= DEMANGLE_MAX_NAME && !strcmp(name + len - 4, "@plt");
	struct demangle_result *r;
	char *out = NULL, *bare = NULL;

	if (len > DEMANGLE_MAX_NAME || !may_be_mangled(name))
		return NULL;
	r = malloc(sizeof(*r));
	bare = strndup(name, plt ? len - 4 : len);
	if (r && bare) {
		r->len = 0;
		if (print(bare, r) && r->len) {
			out = malloc(r->len + 5);
			if (out) {
				memcpy(out, r->text, r->len);
				memcpy(out + r->len, "@plt", 5);
				if (!plt)
					out[r->len] = 0;
			}
		}
	}
	free(bare);
	free(r);
	return out;
}

/* -- display names -------------------------------------------------------------------------- */

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

void demangle_names_init(struct display_names *d, enum demangle_which which)
{
	*d = (struct display_names){ .which = which,
				     .entries = TABLE_OF(struct display_entry, equal_entry) };
}

void demangle_names_deinit(struct display_names *d)
{
	struct display_entry *e = d->entries.item;

	for (size_t i = 0; i < d->entries.n; i++)
		free(e[i].text);
	table_deinit(&d->entries);
}

const char *demangle_shown(struct display_names *d, const struct symbol *s, enum names_of whose)
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
