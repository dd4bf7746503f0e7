/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/place.h"

#include "profile/format/names/function.h"
#include "profile/format/names/srcline.h"
#include "symbolizer/program/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Debug information of a target, opened when it is first needed. */
struct place_files {
	const struct target *target;
	struct lines *lines;
	struct srcline *found;
	bool opened, searched;
};

static void place_files_search(struct place_files *f)
{
	const struct debuginfo_places places = { .release = f->target->osrelease[0]
								    ? f->target->osrelease
								    : NULL };

	f->searched = true;
	if (!f->target->kernel.build_id_len || srcline_create(&f->found, &places, NULL))
		return;
	srcline_set_id(f->found, f->target->kernel.build_id, f->target->kernel.build_id_len);
	(void)srcline_load(f->found, NULL);
}

/*
 * Implements function_table.lines. Returns the image's own debug information, else that of the file
 * with its symbols, else, only if the user gives a source file, that of a file found by build id.
 */
static struct lines *place_lines(void *ctx, enum function_search how, uint64_t *addr)
{
	struct place_files *f = ctx;
	const struct target *t = f->target;
	const struct file_map *symbols = &t->symbols_file;

	(void)addr; /* linked addresses */
	if (!f->opened && lines_open(t->kernel.elf, t->kernel.elf_len, t->name, &f->lines, NULL) &&
	    symbols->data)
		(void)lines_open(symbols->data, symbols->len, t->symbol_source, &f->lines, NULL);
	f->opened = true;
	if (f->lines)
		return f->lines;
	if (how == FUNCTION_WANTED && !f->searched)
		place_files_search(f);
	return f->found && srcline_file(f->found) ? srcline_lines(f->found) : NULL;
}

static void place_files_deinit(struct place_files *f)
{
	lines_close(f->lines);
	srcline_destroy(f->found);
}

static int find_functions(const struct target *t, const char *name, struct functions *out,
			  struct err *e)
{
	struct place_files files = { .target = t };
	const struct function_table table = { t->symbols, t->name, place_lines, &files };
	int ret;

	if (t->live)
		return err_set(e, EINVAL,
			       "%s: with --symbols live names are known too late for a breakpoint; "
			       "give the image's own symbols, or an address",
			       name);
	if (!t->symbols)
		return err_set(e, ENOENT,
			       "%s: %s has no symbols; give --symbols FILE, or an address", name,
			       t->name);
	ret = function_resolve(&table, name, FUNCTION_ONE, out, e);
	for (size_t i = 0; !ret && i < out->n; i++)
		out->at[i].file = out->at[i].source = NULL; /* their files are closed now */
	place_files_deinit(&files);
	return ret;
}

/*
 * Returns the '+' of +OFFSET at the end of a place; NULL: it has none. A '+' may also be part of a
 * path.
 */
static const char *offset_of(const char *text)
{
	const char *plus = strrchr(text, '+'), *at = strchr(text, '@');

	return plus && at && at < plus && (plus[1] < '0' || plus[1] > '9') ? NULL : plus;
}

static int take_functions(const struct functions *f, const char *text, uint64_t off,
			  struct run_place *out, struct err *e)
{
	if (f->n > VM_MAX_BREAKPOINTS)
		return err_set(e, EINVAL,
			       "'%.200s' is %zu functions, and a processor has debug registers for "
			       "%u: choose some by NAME#NUMBER",
			       text, f->n, VM_MAX_BREAKPOINTS);
	for (size_t i = 0; i < f->n; i++) {
		const struct symbol *s = f->at[i].symbol;

		if (off && off >= s->size)
			return err_set(e, EINVAL,
				       "'%.200s' has %" PRIu64 " bytes: no offset of %" PRIu64,
				       s->name, s->size, off);
		out->addr[out->n++] = s->addr + off;
	}
	return 0;
}

int run_place_find(const struct target *t, const char *text, struct run_place *out, struct err *e)
{
	const char *plus = offset_of(text);
	struct functions f = { .n = 0 };
	char name[2 * SYMTAB_MAX_NAME];
	uint64_t off = 0;
	char *end = NULL;
	int ret;

	errno = 0;
	*out = (struct run_place){ .n = 0 };
	if (!strncmp(text, "0x", 2)) {
		out->addr[out->n++] = strtoull(text, &end, 16);
		return errno || *end || !out->addr[0] ? err_set(e, EINVAL, "bad address '%s'", text)
						      : 0;
	}
	if (plus) {
		off = strtoull(plus + 1, &end, 0);
		if (errno || *end || plus[1] < '0' || plus[1] > '9')
			return err_set(e, EINVAL, "bad offset in '%s' (like vfs_read+0x10)", text);
	} else {
		plus = text + strlen(text);
	}
	if (plus == text || (size_t)(plus - text) >= sizeof(name))
		return err_set(e, EINVAL, "bad symbol '%.60s'", text);
	memcpy(name, text, (size_t)(plus - text));
	name[plus - text] = '\0';
	ret = find_functions(t, name, &f, e);
	ret = ret ? ret : take_functions(&f, text, off, out, e);
	function_deinit(&f);
	return ret;
}
