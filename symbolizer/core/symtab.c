/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/symtab.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/texts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Limit for all names together. Names in an ELF string table may overlap, so a small file could
 * otherwise request a thousand times its size.
 */
#define SYMTAB_MAX_NAME_BYTES (256u << 20)
#define ARENA_BLOCK (64u << 10)
#define PAGE 4096u
#define NO_SYMBOL UINT32_MAX
#define CUT_MARK "..." /* ends a truncated name */

struct symtab_entry {
	struct symbol sym; /* must be first: a symbol that was returned is converted to its entry */
	uint32_t len;	   /* length of the name */
	bool sized;	   /* the symbol was added with a size */
};

struct arena_block {
	struct arena_block *next;
	char bytes[];
};

struct name_key {
	uint32_t hash, index;
};

struct symtab {
	struct symtab_entry *e;
	size_t n, cap;
	struct arena_block *arena;
	size_t arena_used, arena_cap, name_bytes;
	struct texts files;
	const char *file; /* the source file of the next symbol; in files */
	bool frozen;

	/*
	 * The address space, divided into pieces that each belong to one symbol, so that a lookup
	 * is one search even if symbols overlap.
	 */
	uint64_t *piece_start; /* a piece extends to the start of the next one */
	uint32_t *piece_sym;
	size_t npieces;
	/* bucket[b] = first piece that starts in or after bucket b */
	uint32_t *bucket;
	size_t nbuckets;
	unsigned int shift;

	struct name_key *by_name; /* by hash, then index */
};

struct symtab *symtab_create(void)
{
	return calloc(1, sizeof(struct symtab));
}

void symtab_destroy(struct symtab *t)
{
	struct arena_block *b, *next;

	if (!t)
		return;
	for (b = t->arena; b; b = next) {
		next = b->next;
		free(b);
	}
	free(t->e);
	free(t->piece_start);
	free(t->piece_sym);
	free(t->bucket);
	free(t->by_name);
	texts_deinit(&t->files);
	free(t);
}

static char *arena_copy(struct symtab *t, const char *s, size_t len)
{
	char *p;

	if (t->arena_cap - t->arena_used < len + 1) {
		struct arena_block *b = malloc(sizeof(*b) + ARENA_BLOCK);

		if (!b)
			return NULL;
		b->next = t->arena;
		t->arena = b;
		t->arena_used = 0;
		t->arena_cap = ARENA_BLOCK;
	}
	p = t->arena->bytes + t->arena_used;
	memcpy(p, s, len);
	p[len] = 0;
	t->arena_used += len + 1;
	return p;
}

/* Returns the offset of ".llvm.NUMBER" at the end of a name, or 0. */
static size_t promoted_at(const char *name, size_t len)
{
	static const char mark[] = ".llvm.";
	const size_t n = sizeof(mark) - 1;
	size_t at = len;

	while (at && ((name[at - 1] >= '0' && name[at - 1] <= '9') ||
		      (name[at - 1] >= 'a' && name[at - 1] <= 'f')))
		at--;
	return at < len && at > n && !memcmp(name + at - n, mark, n) ? at - n : 0;
}

/* Returns the same hash with and without that end. */
static uint32_t name_hash(const char *name, size_t promoted)
{
	return hash_text32(name, promoted ? promoted : SIZE_MAX);
}

/* Returns the largest length up to `most` that does not cut a UTF-8 sequence. */
static size_t cut_at(const char *name, size_t most)
{
	size_t at = most;

	while (at && ((uint8_t)name[at] & 0xc0) == 0x80)
		at--;
	return at ? at : most;
}

int symtab_add(struct symtab *t, uint64_t addr, uint64_t size, char type, const char *name)
{
	size_t len = strnlen(name, SYMTAB_MAX_NAME + 1);
	bool is_cut = len > SYMTAB_MAX_NAME;
	char *copy;

	if (len == 0 || t->frozen)
		return -EINVAL;
	if (is_cut)
		len = cut_at(name, SYMTAB_MAX_NAME - strlen(CUT_MARK)) + strlen(CUT_MARK);
	if (t->n >= SYMTAB_MAX_SYMBOLS || t->name_bytes + len > SYMTAB_MAX_NAME_BYTES)
		return -E2BIG;
	if (ARRAY_ROOM(t->e, t->n, t->cap))
		return -ENOMEM;
	copy = arena_copy(t, name, len);
	if (!copy)
		return -ENOMEM;
	if (is_cut)
		memcpy(copy + len - strlen(CUT_MARK), CUT_MARK, strlen(CUT_MARK));
	t->name_bytes += len;
	if (size > UINT64_MAX - addr)
		size = UINT64_MAX - addr;
	t->e[t->n++] = (struct symtab_entry){
		.sym = { .addr = addr,
			 .size = size,
			 .name = copy,
			 .file = t->file,
			 .type = type,
			 .promoted = (uint16_t)promoted_at(copy, len) },
		.len = (uint32_t)len,
		.sized = size != 0,
	};
	return 0;
}

int symtab_add_bounded(struct symtab *t, uint64_t addr, uint64_t most, char type, const char *name)
{
	int ret = symtab_add(t, addr, most, type, name);

	if (ret == 0)
		t->e[t->n - 1].sized = false;
	return ret;
}

/*
 * Returns whether a linker generated the name: link-time optimisation compiles several files at
 * once.
 */
static bool is_made_by_linker(const char *file)
{
	return !strcmp(file, "ld-temp.o") || strstr(file, ".ltrans") != NULL;
}

int symtab_set_file(struct symtab *t, const char *file)
{
	size_t len = file ? strnlen(file, SYMTAB_MAX_NAME + 1) : 0;
	size_t known = t->files.all.n;
	const char *kept;

	if (len && t->file && !strcmp(t->file, file))
		return 0;
	t->file = NULL;
	if (len == 0 || is_made_by_linker(file))
		return 0;
	if (len > SYMTAB_MAX_NAME)
		return -EINVAL;
	if (t->name_bytes + len > SYMTAB_MAX_NAME_BYTES)
		return -E2BIG;
	kept = texts_add(&t->files, file);
	if (!kept)
		return -ENOMEM;
	t->name_bytes += t->files.all.n > known ? len : 0;
	t->file = kept;
	return 0;
}

static bool is_code(const struct symbol *s)
{
	return s->type == 't' || s->type == 'T' || s->type == 'w' || s->type == 'W';
}

static bool ends_with(const char *name, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(name + len - n, end, n);
}

/*
 * Returns whether a name is a mark of a linker script, such as `__sched_text_start` or `_stext`:
 * the bound of a section instead of a function. Source: may_be_linker_script_provide_symbol() in
 * Linux's scripts/kallsyms.c.
 */
static bool is_mark(const char *name)
{
	static const char *const whole[] = { "_text",	   "_stext",	 "_etext",
					     "_sinittext", "_einittext", "_end" };
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
		if (!strcmp(name, whole[i]))
			return true;
	if (len < 8 || memcmp(name, "__", 2))
		return false;
	return !memcmp(name + 2, "start_", 6) || !memcmp(name + 2, "stop_", 5) ||
	       !memcmp(name + 2, "end_", 4) || ends_with(name, len, "_start") ||
	       ends_with(name, len, "_end");
}

/*
 * Returns whether another name is more common: glibc calls a function __GI_NAME internally, and
 * programs call it NAME.
 */
static bool is_weak(const struct symbol *s)
{
	return s->type == 'w' || s->type == 'W' || s->type == 'v' || s->type == 'V' ||
	       !strncmp(s->name, "__GI_", strlen("__GI_"));
}

/* Compares two aliases by name and type: negative if a is preferred. */
static int alias_cmp(const struct symbol *a, const struct symbol *b)
{
	bool local_a = a->type >= 'a', local_b = b->type >= 'a';
	size_t lines_a = strspn(a->name, "_"), lines_b = strspn(b->name, "_");
	int c = is_mark(a->name) - is_mark(b->name);

	if (!c)
		c = is_weak(a) - is_weak(b);
	if (!c)
		c = (lines_a > lines_b) - (lines_a < lines_b);
	return c ? c : local_a - local_b;
}

/* Orders by address, with the preferred alias first. Only exact duplicates are equal. */
static int entry_cmp(const void *pa, const void *pb)
{
	const struct symtab_entry *a = pa, *b = pb;
	unsigned int ra, rb;
	int c;

	if (a->sym.addr != b->sym.addr)
		return a->sym.addr < b->sym.addr ? -1 : 1;
	ra = is_code(&a->sym) ? !a->sized : 2;
	rb = is_code(&b->sym) ? !b->sized : 2;
	if (ra != rb)
		return ra < rb ? -1 : 1;
	c = alias_cmp(&a->sym, &b->sym);
	if (c)
		return c;
	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	c = strcmp(a->sym.name, b->sym.name);
	if (c)
		return c;
	if (a->sym.type != b->sym.type)
		return a->sym.type < b->sym.type ? -1 : 1;
	if (a->sym.size != b->sym.size)
		return a->sym.size > b->sym.size ? -1 : 1;
	return 0;
}

/*
 * Chooses the file when a duplicate of a symbol is dropped: the one whose name sorts first, so
 * that the result does not depend on the order of the input.
 */
static void keep_file(struct symbol *kept, const struct symbol *s)
{
	if (s->file && (!kept->file || strcmp(s->file, kept->file) < 0))
		kept->file = s->file;
}

/*
 * Sorts the entries. Most inputs are ordered by address already (kallsyms, System.map): then only
 * the symbols at one address have to be sorted.
 */
static void sort_entries(struct symtab *t)
{
	size_t i = 1;

	while (i < t->n && t->e[i].sym.addr >= t->e[i - 1].sym.addr)
		i++;
	if (i < t->n) {
		qsort(t->e, t->n, sizeof(*t->e), entry_cmp);
		return;
	}
	for (size_t from = 0; from < t->n; from = i) {
		for (i = from + 1; i < t->n && t->e[i].sym.addr == t->e[from].sym.addr; i++)
			;
		if (i - from > 1)
			qsort(t->e + from, i - from, sizeof(*t->e), entry_cmp);
	}
}

static void drop_duplicates(struct symtab *t)
{
	size_t out = 0;

	for (size_t i = 0; i < t->n; i++)
		if (out == 0 || entry_cmp(&t->e[out - 1], &t->e[i]) != 0)
			t->e[out++] = t->e[i];
		else
			keep_file(&t->e[out - 1].sym, &t->e[i].sym);
	t->n = out;
}

/*
 * Extends code symbols without a size to the next address. A label inside a sized function is a
 * place in that function, and stays empty.
 */
static void fill_sizes(struct symtab *t)
{
	uint64_t next = 0, sized_end = 0, most;
	bool have_next = false;

	for (size_t i = t->n; i-- > 0;) {
		struct symbol *s = &t->e[i].sym;

		if (i + 1 < t->n && t->e[i + 1].sym.addr != s->addr) {
			/* Absolute symbols are values, not places. */
			for (size_t j = i + 1; j < t->n && t->e[j].sym.addr == t->e[i + 1].sym.addr;
			     j++)
				if (t->e[j].sym.type != 'A' && t->e[j].sym.type != 'a') {
					next = t->e[j].sym.addr;
					have_next = true;
					break;
				}
		}
		if (!is_code(s) || t->e[i].sized)
			continue;
		most = s->size; /* the limit of symtab_add_bounded(); 0: none */
		if (have_next && next - s->addr <= SYMTAB_MAX_GAP)
			s->size = next - s->addr;
		else
			s->size = s->addr >= UINT64_MAX - PAGE ? UINT64_MAX - s->addr
							       : PAGE - s->addr % PAGE;
		if (most && s->size > most)
			s->size = most;
	}
	for (size_t i = 0; i < t->n; i++) {
		struct symbol *s = &t->e[i].sym;

		if (!is_code(s))
			continue;
		if (t->e[i].sized) {
			if (s->addr + s->size > sized_end)
				sized_end = s->addr + s->size;
		} else if (s->addr < sized_end) {
			s->size = 0;
		}
	}
}

static void add_piece(struct symtab *t, uint64_t start, uint32_t sym)
{
	if (t->npieces && t->piece_start[t->npieces - 1] == start) {
		t->piece_sym[t->npieces - 1] = sym;
		return;
	}
	if (t->npieces && t->piece_sym[t->npieces - 1] == sym)
		return;
	t->piece_start[t->npieces] = start;
	t->piece_sym[t->npieces++] = sym;
}

/*
 * Divides the address space in one pass over the sorted symbols, with a stack of those that are
 * still open; the one that began last is on top. Each is pushed and popped once.
 */
static void cut_pieces(struct symtab *t, uint32_t *open)
{
	size_t depth = 0, i = 0;

	while (i < t->n || depth) {
		uint64_t addr = i < t->n ? t->e[i].sym.addr : UINT64_MAX;
		size_t group = i;

		while (depth) {
			const struct symbol *top = &t->e[open[depth - 1]].sym;
			uint64_t end = top->addr + top->size;

			if (end > addr)
				break;
			depth--;
			while (depth &&
			       t->e[open[depth - 1]].sym.addr + t->e[open[depth - 1]].sym.size <=
				       end)
				depth--;
			add_piece(t, end, depth ? open[depth - 1] : NO_SYMBOL);
		}
		if (i == t->n)
			break;
		while (i < t->n && t->e[i].sym.addr == addr)
			i++;
		/* The preferred alias is pushed last. */
		for (size_t j = i; j-- > group;)
			if (is_code(&t->e[j].sym) && t->e[j].sym.size)
				open[depth++] = (uint32_t)j;
		if (depth)
			add_piece(t, addr, open[depth - 1]);
	}
}

static int build_buckets(struct symtab *t)
{
	uint64_t span;
	size_t p = 0;

	if (t->npieces == 0)
		return 0;
	span = t->piece_start[t->npieces - 1] - t->piece_start[0];
	while ((span >> t->shift) > 2 * t->npieces)
		t->shift++;
	t->nbuckets = (size_t)(span >> t->shift) + 1;
	t->bucket = malloc((t->nbuckets + 1) * sizeof(*t->bucket));
	if (!t->bucket)
		return -ENOMEM;
	for (size_t b = 0; b < t->nbuckets; b++) {
		while (((t->piece_start[p] - t->piece_start[0]) >> t->shift) < b)
			p++;
		t->bucket[b] = (uint32_t)p;
	}
	t->bucket[t->nbuckets] = (uint32_t)t->npieces;
	return 0;
}

/*
 * Sorts by hash, and by index where hashes are equal: each pass keeps the order of the one before,
 * and the keys start in the order of their indexes. For a hundred thousand names this takes a
 * tenth of qsort's time.
 */
static void sort_keys(struct name_key *key, struct name_key *tmp, size_t n)
{
	enum { BITS = 8, PASSES = 32 / BITS, SIZE = 1 << BITS };

	for (unsigned int pass = 0; pass < PASSES; pass++) {
		size_t at[SIZE] = { 0 }, sum = 0;
		struct name_key *swap = key;

		for (size_t i = 0; i < n; i++)
			at[key[i].hash >> pass * BITS & (SIZE - 1)]++;
		for (unsigned int d = 0; d < SIZE; d++) {
			size_t count = at[d];

			at[d] = sum;
			sum += count;
		}
		for (size_t i = 0; i < n; i++)
			tmp[at[key[i].hash >> pass * BITS & (SIZE - 1)]++] = key[i];
		/* The number of passes is even, so the last one ends where the first began. */
		key = tmp;
		tmp = swap;
	}
}

/* Links each function to the next one at its address. Entries must not move from now on. */
static void link_aliases(struct symtab *t)
{
	for (size_t i = 0; i + 1 < t->n; i++) {
		const struct symbol *next = &t->e[i + 1].sym;
		bool same =
			t->e[i].sym.addr == next->addr && is_code(&t->e[i].sym) && is_code(next);

		t->e[i].sym.alias = same ? next : NULL;
	}
}

int symtab_freeze(struct symtab *t, struct err *e)
{
	struct name_key *tmp;
	uint32_t *open;
	int ret;

	if (t->frozen)
		return 0;
	sort_entries(t);
	drop_duplicates(t);
	fill_sizes(t);
	link_aliases(t);

	/* Each symbol begins one piece and ends at most one. */
	t->piece_start = malloc((2 * t->n + 1) * sizeof(*t->piece_start));
	t->piece_sym = malloc((2 * t->n + 1) * sizeof(*t->piece_sym));
	t->by_name = malloc((t->n + 1) * sizeof(*t->by_name));
	open = malloc((t->n + 1) * sizeof(*open));
	tmp = malloc((t->n + 1) * sizeof(*tmp));
	if (!t->piece_start || !t->piece_sym || !t->by_name || !open || !tmp) {
		free(open);
		free(tmp);
		return err_set(e, ENOMEM, "no memory for a table of %zu symbols", t->n);
	}
	cut_pieces(t, open);
	free(open);
	ret = build_buckets(t);
	if (ret < 0) {
		free(tmp);
		return err_set(e, ENOMEM, "no memory for a table of %zu symbols", t->n);
	}
	for (size_t i = 0; i < t->n; i++)
		t->by_name[i] =
			(struct name_key){ name_hash(t->e[i].sym.name, t->e[i].sym.promoted),
					   (uint32_t)i };
	sort_keys(t->by_name, tmp, t->n);
	free(tmp);
	t->frozen = true;
	return 0;
}

/* Copies the symbols of t with moved addresses, without the sizes that freezing filled in. */
static int copy_moved(struct symtab *to, const struct symtab *t, uint64_t start, uint64_t end,
		      uint64_t slide)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct symbol *s = &t->e[i].sym;
		bool moves = s->addr >= start && s->addr <= end;
		int ret;

		if (!moves && s->addr >= start + slide && s->addr <= end + slide)
			continue;
		ret = symtab_set_file(to, s->file);
		if (ret < 0)
			return ret;
		ret = symtab_add(to, moves ? s->addr + slide : s->addr, t->e[i].sized ? s->size : 0,
				 s->type, s->name);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int symtab_slide(const struct symtab *t, uint64_t start, uint64_t end, uint64_t slide,
		 struct symtab **out, struct err *e)
{
	struct symtab *to;
	int ret;

	if (end < start || slide > UINT64_MAX - end)
		return err_set(e, EINVAL,
			       "symbols from 0x%" PRIx64 " to 0x%" PRIx64
			       " cannot be moved by 0x%" PRIx64,
			       start, end, slide);
	to = symtab_create();
	if (!to)
		return err_set(e, ENOMEM, "no memory for %zu moved symbols", t->n);
	ret = copy_moved(to, t, start, end, slide);
	ret = ret ? err_set(e, -ret, "no memory for %zu moved symbols", t->n)
		  : symtab_freeze(to, e);
	if (ret) {
		symtab_destroy(to);
		return ret;
	}
	*out = to;
	return 0;
}

const struct symbol *symtab_lookup(const struct symtab *t, uint64_t addr, uint64_t *off)
{
	const struct symbol *s;
	size_t b, lo, hi;

	if (!t->npieces || addr < t->piece_start[0])
		return NULL;
	b = (size_t)((addr - t->piece_start[0]) >> t->shift);
	if (b >= t->nbuckets)
		return NULL; /* the last piece is the end of the last symbol */
	/* The last piece that starts at or before addr: may lie in an earlier bucket. */
	lo = t->bucket[b];
	hi = t->bucket[b + 1];
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->piece_start[mid] <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || t->piece_sym[lo - 1] == NO_SYMBOL)
		return NULL;
	s = &t->e[t->piece_sym[lo - 1]].sym;
	if (off)
		*off = addr - s->addr;
	return s;
}

/* Returns the number of symbols at or before addr. */
static size_t count_before(const struct symtab *t, uint64_t addr)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->e[mid].sym.addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct symbol *symtab_nearest(const struct symtab *t, uint64_t addr)
{
	size_t n = count_before(t, addr);

	return n ? &t->e[n - 1].sym : NULL;
}

const struct symbol *symtab_before(const struct symtab *t, uint64_t addr, uint64_t *off)
{
	size_t lo = count_before(t, addr);

	for (; lo && addr - t->e[lo - 1].sym.addr < SYMTAB_MAX_GAP; lo--) {
		const struct symbol *s = &t->e[lo - 1].sym;

		if (!is_code(s))
			continue;
		/* Among aliases, take the preferred one, as the lookup does. */
		while (lo > 1 && t->e[lo - 2].sym.addr == s->addr && is_code(&t->e[lo - 2].sym))
			s = &t->e[--lo - 1].sym;
		if (off)
			*off = addr - s->addr;
		return s;
	}
	return NULL;
}

/* Returns the position in by_name of this hash's first entry from `index` on; t->n if not frozen. */
static size_t first_key(const struct symtab *t, uint32_t hash, size_t index)
{
	size_t lo = 0, hi = t->n;

	if (!t->frozen)
		return t->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		const struct name_key *k = &t->by_name[mid];

		if (k->hash < hash || (k->hash == hash && k->index < index))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool is_promoted_of(const struct symbol *s, const char *name)
{
	return s->promoted && !strncmp(s->name, name, s->promoted) && !name[s->promoted];
}

const struct symbol *symtab_find(const struct symtab *t, const char *name)
{
	uint32_t hash = name_hash(name, promoted_at(name, strlen(name)));
	const struct symbol *promoted = NULL;
	unsigned int n = 0;

	for (size_t i = first_key(t, hash, 0); i < t->n && t->by_name[i].hash == hash; i++) {
		const struct symbol *s = &t->e[t->by_name[i].index].sym;

		if (!strcmp(s->name, name))
			return s;
		if (is_promoted_of(s, name)) {
			promoted = s;
			n++;
		}
	}
	/* With local symbols of several files, it is unknown which one is meant. */
	return n == 1 ? promoted : NULL;
}

const struct symbol *symtab_find_next(const struct symtab *t, const char *name,
				      const struct symbol *after)
{
	uint32_t hash = name_hash(name, promoted_at(name, strlen(name)));
	size_t from = after ? (size_t)((const struct symtab_entry *)after - t->e) + 1 : 0;

	for (size_t i = first_key(t, hash, from); i < t->n && t->by_name[i].hash == hash; i++) {
		const struct symbol *s = &t->e[t->by_name[i].index].sym;

		if ((!after || s->addr > after->addr) &&
		    (!strcmp(s->name, name) || is_promoted_of(s, name)))
			return s;
	}
	return NULL;
}

const struct symbol *symtab_behind_prefix(const struct symtab *t, const struct symbol *s)
{
	static const char cfi[] = "__cfi_", padding[] = "__pfx_";
	const size_t n = sizeof(cfi) - 1;
	size_t i = (size_t)((const struct symtab_entry *)s - t->e);
	uint64_t start;

	if (strncmp(s->name, cfi, n) && strncmp(s->name, padding, n))
		return NULL;
	while (i < t->n && t->e[i].sym.addr == s->addr)
		i++;
	start = i < t->n ? t->e[i].sym.addr : 0;
	if (start < s->addr + s->size || start - s->addr > SYMTAB_MAX_PREFIX)
		return NULL;
	/* Functions have such names as well (`__cfi_slowpath`): what follows must be called so. */
	for (; i < t->n && t->e[i].sym.addr == start; i++)
		if (is_code(&t->e[i].sym) && !strcmp(t->e[i].sym.name, s->name + n))
			return symtab_lookup(t, start, NULL);
	return NULL;
}

size_t symtab_count(const struct symtab *t)
{
	return t->n;
}

const struct symbol *symtab_at(const struct symtab *t, size_t i)
{
	return i < t->n ? &t->e[i].sym : NULL;
}
