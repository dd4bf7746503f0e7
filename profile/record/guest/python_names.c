/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/python_names.h"

#include "base/hash.h"
#include "base/table.h"
#include "profile/record/guest/dso.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/program/elfsynth.h"
#include "symbolizer/python/python_code.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define DSO_NAME "[python]"
/* Address of the file's only segment. */
#define FILE_BASE 0x1000u
#define UNKNOWN_NAME "py::?"

/* A function as people see it: by name, file and first line. */
struct python_names_function {
	uint64_t name; /* a hash of its name and file */
	uint32_t first;
	uint32_t offset, span; /* range of its addresses, relative to the base; one for each line */
	char *text;	       /* owned */
};

/* A code object that was read. */
struct python_names_code {
	uint64_t mm, at;
	struct python_code_id id;
	uint32_t function; /* index of its function */
	uint32_t first;
	uint64_t start;
	uint8_t *lines; /* owned; NULL: not kept */
	uint32_t nlines;
};

struct python_names {
	struct table function, code;
	uint8_t *scratch; /* PYTHON_MAX_LINES */
	uint64_t kept;	  /* bytes of line tables */
	uint32_t used;	  /* number of addresses in use */
	uint8_t build_id[GUEST_BUILD_ID];
	struct python_names_stats stats;
};

static bool is_same_function(const void *a, const void *b, const void *ctx)
{
	const struct python_names_function *x = a, *y = b;

	(void)ctx;
	return x->name == y->name && x->first == y->first && !strcmp(x->text, y->text);
}

static bool is_same_code(const void *a, const void *b, const void *ctx)
{
	const struct python_names_code *x = a, *y = b;

	(void)ctx;
	return x->mm == y->mm && x->at == y->at && !memcmp(&x->id, &y->id, sizeof(x->id));
}

/* -- functions ------------------------------------------------------------------------- */

static int add_function(struct python_names *t, char *text, uint32_t first, uint32_t span,
			uint32_t *index)
{
	struct python_names_function f = {
		.first = first, .offset = t->used, .span = span, .text = text
	};
	uint64_t hash = hash_bytes(HASH_START, text, strlen(text) + 1);
	bool fresh;
	int ret;

	f.name = hash;
	hash = table_mix(hash, first);
	if (table_find(&t->function, hash, &f, index)) {
		free(text);
		return 0;
	}
	if (t->function.n >= PYTHON_NAMES_MAX_FUNCTIONS || PYTHON_NAMES_LEN - t->used < span) {
		t->stats.beyond++;
		free(text);
		*index = 0;
		return 0;
	}
	ret = table_add(&t->function, hash, &f, index, &fresh);
	if (ret < 0) {
		free(text);
		return ret;
	}
	t->used += span;
	t->stats.functions++;
	return 0;
}

int python_names_create(struct python_names **out, struct err *e)
{
	struct python_names *t = calloc(1, sizeof(*t));
	char text[64], *unknown = strdup(UNKNOWN_NAME);
	uint32_t index;
	uint64_t run;

	if (t)
		t->scratch = malloc(PYTHON_MAX_LINES);
	if (!t || !t->scratch || !unknown) {
		free(unknown);
		python_names_destroy(t);
		return err_nomem(e);
	}
	t->function = TABLE_OF(struct python_names_function, is_same_function);
	t->code = TABLE_OF(struct python_names_code, is_same_code);
	/* Index 0 is the unknown function. */
	if (add_function(t, unknown, 0, 1, &index) < 0) {
		python_names_destroy(t);
		return err_nomem(e);
	}
	t->stats.functions = 0;
	if (getrandom(&run, sizeof(run), 0) != sizeof(run)) {
		python_names_destroy(t);
		return err_set(e, EIO, "cannot get a random number for this run's build ids");
	}
	snprintf(text, sizeof(text), "python %" PRIx64, run);
	guest_dso_name_id(t->build_id, text);
	*out = t;
	return 0;
}

static void forget_code(struct python_names *t)
{
	for (size_t i = 0; i < t->code.n; i++)
		free(((struct python_names_code *)t->code.item)[i].lines);
	table_deinit(&t->code);
	t->kept = 0;
}

void python_names_destroy(struct python_names *t)
{
	if (!t)
		return;
	forget_code(t);
	for (size_t i = 0; i < t->function.n; i++)
		free(((struct python_names_function *)t->function.item)[i].text);
	table_deinit(&t->function);
	free(t->scratch);
	free(t);
}

const struct python_names_stats *python_names_stats(const struct python_names *t)
{
	return &t->stats;
}

/* -- code objects ---------------------------------------------------------------------- */

/* Returns NULL if out of memory. */
static struct python_names_code *add_code(struct python_names *t,
					  const struct python_names_program *p,
					  const struct python_code *c,
					  const struct python_names_code *like, uint64_t hash)
{
	uint32_t n = python_code_lines(c, &p->program, t->scratch, PYTHON_MAX_LINES);
	struct python_line_range r = python_lines_range(t->scratch, n, c->first);
	char text[2 * PYTHON_MAX_NAME + 8];
	struct python_names_code o = *like;
	uint32_t index;
	bool fresh;
	char *copy;

	snprintf(text, sizeof(text), "py::%s:%s", c->name, c->file);
	copy = strdup(text);
	if (!copy ||
	    add_function(t, copy, c->first,
			 r.high >= c->first && r.high - c->first < 1u << 20 ? r.high - c->first + 1
									    : 1,
			 &o.function) < 0)
		return NULL;
	o.first = c->first;
	o.start = c->start;
	if (n && t->kept + n <= PYTHON_NAMES_MAX_TABLES)
		o.lines = malloc(n);
	if (o.lines) {
		memcpy(o.lines, t->scratch, n);
		o.nlines = n;
		t->kept += n;
	}
	if (table_add(&t->code, hash, &o, &index, &fresh) < 0) {
		free(o.lines);
		return NULL;
	}
	t->stats.read++;
	return &((struct python_names_code *)t->code.item)[index];
}

/* Returns NULL if it is not the sampled object, or if it cannot be read. */
static struct python_names_code *code_of(struct python_names *t,
					 const struct python_names_program *p,
					 const struct sample_python *f)
{
	struct python_names_code like = { .mm = p->mm, .at = f->code };
	struct python_code c;
	uint64_t hash;
	uint32_t index;

	_Static_assert(sizeof(like.id) == sizeof(f->id), "the words that capture copies");
	memcpy(&like.id, f->id, sizeof(like.id));
	hash = hash_bytes(table_mix(like.mm, like.at), &like.id, sizeof(like.id));
	if (table_find(&t->code, hash, &like, &index))
		return &((struct python_names_code *)t->code.item)[index];
	if (!python_code_read(&c, p->layout, &p->program, f->code) ||
	    memcmp(&c.id, &like.id, sizeof(c.id)) != 0)
		return NULL;
	if (t->code.n >= PYTHON_NAMES_MAX_CODE) {
		forget_code(t);
		t->code = TABLE_OF(struct python_names_code, is_same_code);
	}
	return add_code(t, p, &c, &like, hash);
}

uint64_t python_names_ip(struct python_names *t, const struct python_names_program *p,
			 const struct sample_python *f)
{
	const struct python_names_code *c = code_of(t, p, f);
	const struct python_names_function *fn;
	uint32_t line = 0;

	if (!c || !c->function) {
		t->stats.unknown++;
		return PYTHON_NAMES_BASE;
	}
	/*
	 * One unit before the first instruction: the function has not begun, and is at its `def`.
	 */
	if (f->instr >= c->start)
		line = python_line_at(c->lines, c->nlines, c->first, (f->instr - c->start) / 2);
	fn = &((struct python_names_function *)t->function.item)[c->function];
	line = line > c->first && line - c->first < fn->span ? line - c->first : 0;
	return PYTHON_NAMES_BASE + fn->offset + line;
}

/* -- the file -------------------------------------------------------------------------- */

int python_names_map(const struct python_names *t, struct sink *sink, uint32_t pid,
		     uint64_t time_ns, struct err *e)
{
	return sink->ops->map(sink,
			      &(struct profile_map){
				      .pid = pid,
				      .tid = pid,
				      .addr = PYTHON_NAMES_BASE,
				      .len = PYTHON_NAMES_LEN,
				      .pgoff = FILE_BASE,
				      .time_ns = time_ns,
				      .path = DSO_NAME,
				      .build_id = t->build_id,
			      },
			      e);
}

static int add_symbols(const struct python_names *t, struct symtab *symbols, struct err *e)
{
	const struct python_names_function *f = t->function.item;
	int ret = 0;

	for (size_t i = 0; i < t->function.n && !ret; i++)
		ret = symtab_add(symbols, FILE_BASE + f[i].offset, f[i].span, 't', f[i].text);
	return ret ? err_set(e, -ret, "names of Python functions: %s", strerror(-ret))
		   : symtab_freeze(symbols, e);
}

int python_names_finish(struct python_names *t, struct sink *sink, struct err *e)
{
	struct userelf u = {
		.name = DSO_NAME,
		.type = ET_DYN,
		.nseg = 1,
		.seg = { { .va = FILE_BASE,
			   .file_off = FILE_BASE,
			   .file_len = t->used,
			   .mem_len = t->used,
			   .align = 1,
			   .flags = PF_R | PF_X } },
	};
	struct profile_dso dso = { .path = DSO_NAME, .build_id = t->build_id };
	struct symtab *symbols;
	struct buf elf;
	int ret;

	if (!t->stats.functions && !t->stats.unknown)
		return 0;
	symbols = symtab_create();
	if (!symbols)
		return err_nomem(e);
	buf_init(&elf);
	ret = add_symbols(t, symbols, e);
	ret = ret ? ret : elfsynth_write(&elf, &u, t->build_id, GUEST_BUILD_ID, symbols, e);
	if (!ret) {
		dso.elf = elf.data;
		dso.elf_len = elf.len;
		ret = sink->ops->dso(sink, &dso, e);
	}
	buf_deinit(&elf);
	symtab_destroy(symbols);
	return ret;
}
