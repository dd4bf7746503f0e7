/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks the compilation units twice, each at most once and no further than needed: one walk
 * collects structures, one enumerators. Each unit repeats what it includes, so only the first
 * definition of a name and size is kept.
 */
#include "symbolizer/types/dwarf.h"

#include "base/hash.h"

#include "symbolizer/core/elf64.h"
#include "symbolizer/types/path.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of typedefs and qualifiers on one type, and of array dimensions. */
#define MAX_MODIFIERS 64u
/* Maximum nesting of anonymous members, and maximum number of members examined for one query. */
#define MAX_DEPTH 32u
#define MAX_VISITS 65536u
/*
 * Maximum number of distinct structures or enumerators; a kernel with all options has some
 * 100,000.
 */
#define MAX_INDEX (4u << 20)

struct dwarf_entry {
	const char *name; /* in the file */
	uint64_t value;	  /* a structure: where its DIE is; an enumerator: its value */
	uint64_t size;	  /* a structure's */
	uint32_t next;	  /* index + 1 of an earlier entry with the same hash; 0: none */
};

/* A table of entries, filled unit by unit. */
struct index {
	struct dwarf_entry *entry;
	uint32_t n, cap;
	uint32_t *bucket, mask; /* the first entry with this hash */
	Dwarf_Off next_unit;
	bool complete;
};

struct types_dwarf {
	Elf *elf;
	Dwarf *dw;
	struct index structures, enumerators;
};

/* A place in a structure. */
struct dwarf_place {
	Dwarf_Die type;
	uint64_t bits; /* from the start of the structure */
	uint32_t bit_count;
};

struct dwarf_search {
	const struct types_step *step;
	unsigned int visits, depth;
};

/* -- index ------------------------------------------------------------------------ */

/* Bytes of a name that are hashed, which suffice to distinguish names. */
#define INDEX_HASH_LEN 64u

static int index_grow(struct index *x)
{
	uint32_t cap = x->cap ? 2 * x->cap : 4096;
	struct dwarf_entry *entry;
	uint32_t *bucket;

	if (cap > MAX_INDEX)
		return -EINVAL;
	entry = realloc(x->entry, cap * sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	x->entry = entry;
	x->cap = cap;
	bucket = calloc(2 * (size_t)cap, sizeof(*bucket));
	if (!bucket)
		return -ENOMEM;
	free(x->bucket);
	x->bucket = bucket;
	x->mask = 2 * cap - 1;
	/* Backwards, so that earlier entries come first in their chains. */
	for (uint32_t i = x->n; i; i--) {
		uint32_t *head = &bucket[hash_text32(entry[i - 1].name, INDEX_HASH_LEN) & x->mask];

		entry[i - 1].next = *head;
		*head = i;
	}
	return 0;
}

/* Adds an entry after all with the same name, unless it is there already. */
static int index_add(struct index *x, const char *name, uint64_t value, uint64_t size)
{
	uint32_t *link;

	if (x->n == x->cap) {
		int ret = index_grow(x);

		if (ret < 0)
			return ret;
	}
	link = &x->bucket[hash_text32(name, INDEX_HASH_LEN) & x->mask];
	for (; *link; link = &x->entry[*link - 1].next)
		if (x->entry[*link - 1].size == size && !strcmp(x->entry[*link - 1].name, name))
			return 0;
	x->entry[x->n] = (struct dwarf_entry){ .name = name, .value = value, .size = size };
	*link = ++x->n;
	return 0;
}

/* Returns the next entry of this name after *at, where 0 means the first one, or NULL. */
static const struct dwarf_entry *index_next(const struct index *x, const char *name, uint32_t *at)
{
	uint32_t i = *at    ? x->entry[*at - 1].next
		     : x->n ? x->bucket[hash_text32(name, INDEX_HASH_LEN) & x->mask]
			    : 0;

	for (; i; i = x->entry[i - 1].next) {
		if (strcmp(x->entry[i - 1].name, name))
			continue;
		/* Stays valid while the table grows: chains are in order of the index. */
		*at = i;
		return &x->entry[i - 1];
	}
	return NULL;
}

/* -- attributes ------------------------------------------------------------------ */

static bool dwarf_number(Dwarf_Die *die, unsigned int which, uint64_t *out)
{
	Dwarf_Attribute a;
	Dwarf_Word v;

	if (!dwarf_attr(die, which, &a) || dwarf_formudata(&a, &v) != 0)
		return false;
	*out = v;
	return true;
}

/*
 * Stores the type without typedefs and qualifiers. Returns false for void, or if there are too
 * many of them.
 */
static bool type_of(Dwarf_Die *die, Dwarf_Die *out)
{
	Dwarf_Die d = *die;

	for (unsigned int i = 0; i < MAX_MODIFIERS; i++) {
		Dwarf_Attribute a;

		if (!dwarf_attr(&d, DW_AT_type, &a) || !dwarf_formref_die(&a, out))
			return false;
		switch (dwarf_tag(out)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			d = *out;
			break;
		default:
			return true;
		}
	}
	return false;
}

/*
 * Counts the elements of an array, all its dimensions together, as in BTF, where an array of
 * arrays is one long array. 0: a flexible array.
 */
static int count_elements(Dwarf_Die *array, uint64_t *out)
{
	uint64_t n = 1, v;
	bool any = false;
	Dwarf_Die d;

	for (int ret = dwarf_child(array, &d); ret == 0; ret = dwarf_siblingof(&d, &d)) {
		if (dwarf_tag(&d) != DW_TAG_subrange_type)
			continue;
		any = true;
		/* The upper bound of an array without elements is -1. */
		if (!dwarf_number(&d, DW_AT_count, &v))
			v = dwarf_number(&d, DW_AT_upper_bound, &v) ? v + 1 : 0;
		if (__builtin_mul_overflow(n, v, &n) || n > UINT32_MAX)
			return -EINVAL;
	}
	*out = any ? n : 0;
	return 0;
}

static int size_of(Dwarf_Die *type, uint64_t *out)
{
	uint64_t n = 1, count, size = 0;
	Dwarf_Die d = *type;

	for (unsigned int level = 0; dwarf_tag(&d) == DW_TAG_array_type; level++) {
		if (level == MAX_MODIFIERS || count_elements(&d, &count) < 0 ||
		    __builtin_mul_overflow(n, count, &n) || n > UINT32_MAX || !type_of(&d, &d))
			return -EINVAL;
	}
	if (!dwarf_number(&d, DW_AT_byte_size, &size))
		size = dwarf_tag(&d) == DW_TAG_pointer_type ? 8 : 0;
	if (__builtin_mul_overflow(n, size, &n) || n > UINT32_MAX)
		return -EINVAL;
	*out = n;
	return 0;
}

/* -- units --------------------------------------------------------------------------- */

typedef int (*visit_fn)(struct index *x, Dwarf_Die *die);

static int take_structure(struct index *x, Dwarf_Die *die)
{
	int tag = dwarf_tag(die);
	uint64_t size = 0;
	const char *name;

	if ((tag != DW_TAG_structure_type && tag != DW_TAG_union_type) ||
	    dwarf_hasattr(die, DW_AT_declaration))
		return 0;
	name = dwarf_diename(die);
	(void)dwarf_number(die, DW_AT_byte_size, &size); /* an empty one may have none */
	return name ? index_add(x, name, dwarf_dieoffset(die), size) : 0;
}

static int take_enumerator(struct index *x, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);
	Dwarf_Attribute a;
	Dwarf_Sword v;
	Dwarf_Word u;

	if (!name || !dwarf_attr(die, DW_AT_const_value, &a))
		return 0;
	/* Signed values have a signed form; the others would be sign-extended. */
	switch (dwarf_whatform(&a)) {
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
		if (dwarf_formsdata(&a, &v) != 0)
			return 0;
		break;
	default:
		if (dwarf_formudata(&a, &u) != 0)
			return 0;
		v = (Dwarf_Sword)u;
	}
	return index_add(x, name, (uint64_t)v, 0);
}

static bool holds_enumerators(int tag)
{
	return tag == DW_TAG_enumeration_type || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_union_type;
}

/* clang puts unnamed enums where they are declared, into a structure. */
static int take_enumerators_at(struct index *x, Dwarf_Die *die, unsigned int depth)
{
	Dwarf_Die d;
	int ret = 0;

	if (!holds_enumerators(dwarf_tag(die)) || depth == MAX_DEPTH || dwarf_child(die, &d) != 0)
		return 0;
	do
		ret = dwarf_tag(&d) == DW_TAG_enumerator ? take_enumerator(x, &d)
							 : take_enumerators_at(x, &d, depth + 1);
	while (ret == 0 && dwarf_siblingof(&d, &d) == 0);
	return ret;
}

static int take_enumerators(struct index *x, Dwarf_Die *die)
{
	return take_enumerators_at(x, die, 0);
}

/* Reads one more unit into x. Returns 1, or 0 if there is none left. */
static int read_unit(struct types_dwarf *d, struct index *x, visit_fn visit)
{
	Dwarf_Off next, off = x->next_unit;
	size_t header;
	Dwarf_Die unit, die;
	int ret = x->complete ? 1
			      : dwarf_next_unit(d->dw, off, &next, &header, NULL, NULL, NULL, NULL,
						NULL, NULL);

	if (ret != 0) {
		x->complete = true;
		return ret < 0 ? -EINVAL : 0;
	}
	x->next_unit = next;
	if (!dwarf_offdie(d->dw, off + header, &unit) || dwarf_child(&unit, &die) != 0)
		return 1;
	do {
		ret = visit(x, &die);
		if (ret < 0) {
			x->complete = true;
			return ret;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
	return 1;
}

/* -- queries ------------------------------------------------------------------------ */

/* Computes where a member begins in its structure, in bits, and how many bits a bit field has. */
static int member_place(Dwarf_Die *m, struct dwarf_place *p)
{
	uint64_t bytes = 0, bits = 0, count = 0, size = 0;
	Dwarf_Attribute a;
	Dwarf_Op *op;
	size_t n;

	if (dwarf_attr(m, DW_AT_data_member_location, &a)) {
		/* Before DWARF 3 it was an expression. */
		if (!dwarf_number(m, DW_AT_data_member_location, &bytes)) {
			if (dwarf_getlocation(&a, &op, &n) != 0 || n != 1 ||
			    op[0].atom != DW_OP_plus_uconst)
				return -EINVAL;
			bytes = op[0].number;
		}
	}
	if (!type_of(m, &p->type) || bytes > UINT32_MAX)
		return -EINVAL;
	if (dwarf_number(m, DW_AT_bit_size, &count)) {
		if (dwarf_number(m, DW_AT_data_bit_offset, &bits)) {
			bytes = 0;
		} else if (dwarf_number(m, DW_AT_bit_offset, &bits)) {
			/* Before DWARF 4 it was counted from the other end of the type. */
			if (!dwarf_number(m, DW_AT_byte_size, &size) &&
			    size_of(&p->type, &size) < 0)
				return -EINVAL;
			bits = 8 * size - bits - count;
		}
	}
	if (bits > 8ull * UINT32_MAX || count > 255)
		return -EINVAL;
	p->bits += 8 * bytes + bits;
	p->bit_count = (uint32_t)count;
	return 0;
}

/* Finds the member of this name in *p, which becomes its place. */
static int find_member(struct dwarf_search *s, struct dwarf_place *p)
{
	int tag = dwarf_tag(&p->type), ret;
	Dwarf_Die m;

	if ((tag != DW_TAG_structure_type && tag != DW_TAG_union_type) ||
	    dwarf_child(&p->type, &m) != 0)
		return -ENOENT;
	if (s->depth == MAX_DEPTH)
		return -EINVAL;
	s->depth++;
	do {
		const char *name = dwarf_tag(&m) == DW_TAG_member ? dwarf_diename(&m) : "";
		struct dwarf_place inner = *p;

		if (++s->visits > MAX_VISITS)
			return -EINVAL;
		if (name && !types_step_is(s->step, name))
			continue;
		ret = member_place(&m, &inner);
		if (ret == 0 && !name)
			ret = find_member(s, &inner);
		if (ret == -ENOENT)
			continue;
		if (ret == 0)
			*p = inner;
		s->depth--;
		return ret;
	} while (dwarf_siblingof(&m, &m) == 0);
	s->depth--;
	return -ENOENT;
}

static int find_element(const struct types_step *step, struct dwarf_place *p)
{
	uint64_t count, size;
	int ret;

	if (dwarf_tag(&p->type) != DW_TAG_array_type)
		return -ENOENT;
	ret = count_elements(&p->type, &count);
	if (ret < 0)
		return ret;
	if (step->index >= count)
		return -ENOENT;
	if (!type_of(&p->type, &p->type))
		return -EINVAL;
	ret = size_of(&p->type, &size);
	if (ret < 0)
		return ret;
	size *= step->index; /* both below 2^32 */
	if (size > UINT32_MAX)
		return -EINVAL;
	p->bits += 8 * size;
	return 0;
}

static int dwarf_describe(struct dwarf_place *p, uint64_t struct_size, struct type_member *out)
{
	uint64_t size;
	int ret = size_of(&p->type, &size);

	return ret < 0 ? ret : types_member_at(p->bits, p->bit_count, size, struct_size, out);
}

static int member_of(struct types_dwarf *d, const struct dwarf_entry *x, const char *path,
		     struct type_member *out)
{
	struct types_step step;
	struct dwarf_search s = { .step = &step };
	struct dwarf_place p = { 0 };
	int ret;

	if (!dwarf_offdie(d->dw, x->value, &p.type))
		return -EINVAL;
	for (ret = types_path_name(&path, &step); ret > 0; ret = types_path_next(&path, &step)) {
		ret = step.name ? find_member(&s, &p) : find_element(&step, &p);
		if (ret < 0)
			return ret;
	}
	return ret ? ret : dwarf_describe(&p, x->size, out);
}

static int types_member(void *ctx, const char *structure, const char *path, struct type_member *out)
{
	struct types_dwarf *d = ctx;
	struct index *x = &d->structures;
	int ret = -ENOENT, more;
	uint32_t at = 0;

	do {
		const struct dwarf_entry *s;

		while ((s = index_next(x, structure, &at))) {
			int one = member_of(d, s, path, out);

			if (one == 0)
				return 0;
			if (one != -ENOENT)
				ret = one;
		}
		more = read_unit(d, x, take_structure);
	} while (more > 0);
	return more < 0 ? more : ret;
}

static int find_entry(struct types_dwarf *d, struct index *x, visit_fn visit, const char *name,
		      const struct dwarf_entry **out)
{
	int more;

	do {
		uint32_t at = 0;

		*out = index_next(x, name, &at);
		if (*out)
			return 0;
		more = read_unit(d, x, visit);
	} while (more > 0);
	return more ? more : -ENOENT;
}

static int types_size(void *ctx, const char *structure, uint64_t *out)
{
	struct types_dwarf *d = ctx;
	const struct dwarf_entry *s;
	int ret = find_entry(d, &d->structures, take_structure, structure, &s);

	if (ret == 0)
		*out = s->size;
	return ret;
}

static int types_enumerator(void *ctx, const char *name, int64_t *out)
{
	struct types_dwarf *d = ctx;
	const struct dwarf_entry *v;
	int ret = find_entry(d, &d->enumerators, take_enumerators, name, &v);

	if (ret == 0)
		*out = (int64_t)v->value;
	return ret;
}

struct types types_dwarf_types(struct types_dwarf *d)
{
	return (struct types){
		.member = types_member,
		.size = types_size,
		.enumerator = types_enumerator,
		.ctx = d,
	};
}

/* -- opening ------------------------------------------------------------------------- */

/* libdw would look for the other file by itself. */
static int check_sections(const struct elf64 *f, struct err *e)
{
	bool info = false;

	for (uint32_t i = 0; i < f->shnum; i++) {
		Elf64_Shdr s = elf64_shdr(f, i);
		const char *name = elf64_section_name(f, &s);

		if (!strcmp(name, ".gnu_debugaltlink"))
			return err_set(e, ENOTSUP,
				       "%s: a part of its debug information is in another file "
				       "(.gnu_debugaltlink, made by dwz)",
				       f->name);
		info |= (!strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info")) &&
			s.sh_size && s.sh_type != SHT_NOBITS;
	}
	return info ? 0
		    : err_set(e, ENOENT, "%s: no debug information in it (.debug_info)", f->name);
}

int types_dwarf_open(struct types_dwarf **out, const uint8_t *elf, size_t len, const char *name,
		     struct err *e)
{
	struct types_dwarf *d;
	struct elf64 f;
	int ret = elf64_open(&f, name, elf, len, e);

	if (ret < 0)
		return ret;
	ret = check_sections(&f, e);
	if (ret < 0)
		return ret;
	elf_version(EV_CURRENT);
	d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(e, ENOMEM, "%s: no memory for its debug information", name);
	/* Opened for reading: not written to. */
	d->elf = elf_memory((char *)(uintptr_t)elf, len);
	d->dw = d->elf ? dwarf_begin_elf(d->elf, DWARF_C_READ, NULL) : NULL;
	if (!d->dw) {
		err_set(e, EINVAL, "%s: its debug information cannot be read: %s", name,
			d->elf ? dwarf_errmsg(-1) : elf_errmsg(-1));
		types_dwarf_destroy(d);
		return -EINVAL;
	}
	*out = d;
	return 0;
}

void types_dwarf_destroy(struct types_dwarf *d)
{
	if (!d)
		return;
	dwarf_end(d->dw);
	elf_end(d->elf);
	free(d->structures.entry);
	free(d->structures.bucket);
	free(d->enumerators.entry);
	free(d->enumerators.bucket);
	free(d);
}
