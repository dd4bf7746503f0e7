/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/stacks/identity.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DECIMAL "0123456789"

/* -- suffixes of clones ------------------------------------------------------------------------------ */

/*
 * GCC: gcc/cgraphclones.cc clone_function_name() and its callers (isra, constprop, part, cold, simdclone, lto_priv,
 * localalias), before 4.6 "clone". LLVM: llvm/lib/Transforms (llvm, cold, specialized, memprof, argelim, argprom,
 * retelim), llvm/lib/CodeGen (__part of basic block sections), clang -funique-internal-linkage-names (__uniq), CFI
 * (cfi, cfi_jt). BOLT: warm. Kernels and programs see any combination of them.
 */
static const struct {
	const char *word;
	/*
	 * always followed by a number; the word alone may be a name in another language, such as
	 * Go's main.clone
	 */
	bool number;
} suffixes[] = {
	{ "isra", true },      { "constprop", true }, { "part", true },	       { "cold", false },
	{ "llvm", true },      { "lto_priv", true },  { "localalias", false }, { "clone", true },
	{ "simdclone", true }, { "argelim", false },  { "argprom", false },    { "retelim", false },
	{ "memprof", true },   { "__part", true },    { "__uniq", true },      { "cfi", false },
	{ "cfi_jt", false },   { "warm", true },      { "specialized", true },
};

/*
 * Returns the number of digits after the dot with which s begins, if only they are before the next
 * dot; otherwise 0.
 */
static size_t identity_number(const char *s, const char *digits)
{
	size_t n = *s == '.' ? strspn(s + 1, digits) : 0;

	return n && (!s[n + 1] || s[n + 1] == '.') ? n : 0;
}

/* Returns the length of the suffix (dot, word and number) with which s begins, or 0. */
static size_t identity_word(const char *s)
{
	size_t len = *s == '.' ? strcspn(s + 1, ".") : 0;

	for (size_t i = 0; len && i < ARRAY_SIZE(suffixes); i++) {
		const char *const word = suffixes[i].word;
		size_t number;

		if (strlen(word) != len || strncmp(s + 1, word, len) != 0)
			continue;
		/* Numbers of LLVM's local symbols are hashes. */
		number = identity_number(s + 1 + len,
					 !strcmp(word, "llvm") ? "0123456789abcdef" : DECIMAL);
		if (!number && suffixes[i].number)
			return 0;
		return 1 + len + (number ? number + 1 : 0);
	}
	return 0;
}

/*
 * Returns true if s consists of one or more suffixes. `plain`: numbers without a word count as
 * well.
 */
static bool identity_is_suffixes(const char *s, bool plain)
{
	if (!*s)
		return false;
	while (*s) {
		size_t len = identity_word(s);

		if (!len && plain && identity_number(s, DECIMAL))
			len = identity_number(s, DECIMAL) + 1;
		if (!len)
			return false;
		s += len;
	}
	return true;
}

/* Returns the length without c++filt's words for clones: "f(int) [clone .isra.0] [clone .cold]". */
static size_t identity_without_words(const char *name)
{
	static const char mark[] = " [clone .";
	const char *at = strstr(name, mark), *s = at;

	while (s && !strncmp(s, mark, sizeof(mark) - 1)) {
		s += strcspn(s, "]");
		s += *s == ']';
	}
	return at && at > name && !*s ? (size_t)(at - name) : strlen(name);
}

size_t identity_name_len(const char *name)
{
	const char *first = strchr(name, '.');
	size_t len = strlen(name);

	for (const char *s = first; s; s = strchr(s + 1, '.'))
		/*
		 * ".12" alone resolves a clash of names in C and LLVM; in Go it is part of the
		 * name, which has other dots.
		 */
		if (s > name && identity_is_suffixes(s, s == first))
			return (size_t)(s - name);
	return first ? identity_without_words(name) : len;
}

const char *identity_plain(struct texts *texts, const char *name)
{
	size_t len = identity_name_len(name);
	cleanup_free char *text = NULL;

	if (!name[len])
		return texts_add(texts, name);
	text = strndup(name, len);
	return text ? texts_add(texts, text) : NULL;
}

/* -- the names of a set --------------------------------------------------------------------------------- */

/* Returns the name under which this function is compared; NULL if out of memory. */
static const char *identity_name(struct identity_names *n, const struct stackset_func *f,
				 bool *clone)
{
	const char *name = f->named ? f->name : IDENTITY_UNNAMED;
	const char *kept = identity_plain(&n->texts, name);

	*clone = kept && strcmp(kept, name) != 0;
	return kept;
}

int identity_names_init(struct identity_names *n, const struct stackset *s)
{
	*n = (struct identity_names){ .set = s,
				      .name = calloc(s->nfuncs + 1, sizeof(*n->name)),
				      .clone = calloc(s->nfuncs + 1, sizeof(*n->clone)) };
	if (!n->name || !n->clone)
		return -ENOMEM;
	for (size_t i = 0; i < s->nfuncs; i++) {
		n->name[i] = identity_name(n, &s->func[i], &n->clone[i]);
		if (!n->name[i])
			return -ENOMEM;
	}
	return 0;
}

void identity_names_deinit(struct identity_names *n)
{
	free(n->name);
	free(n->clone);
	texts_deinit(&n->texts);
	*n = (struct identity_names){ 0 };
}

/* -- identities --------------------------------------------------------------------------------------------- */

/* "[jit:123#2]" becomes "[jit]": the number differs from run to run. */
const char *identity_dso(const struct stackset_func *f)
{
	return !strncmp(f->dso, "[jit:", 5) ? "[jit]" : f->dso;
}

static uint8_t identity_mode(const struct stackset_stack *s, const struct stackset_func *f)
{
	if (f->other)
		return STACKSET_GUEST;
	if (s->mode == STACKSET_IDLE)
		return STACKSET_IDLE;
	if (f->kind == STACKSET_KIND_UNKNOWN)
		return f->kernel ? STACKSET_KERNEL : STACKSET_USER;
	return stackset_kind_in_kernel(f->kind) ? STACKSET_KERNEL : STACKSET_USER;
}

struct identity identity_of(const struct identity_names *n, const struct stackset_stack *stack,
			    uint32_t func)
{
	const struct stackset_func *f = &n->set->func[func];

	return (struct identity){ n->name[func], identity_dso(f), identity_mode(stack, f) };
}

uint64_t identity_hash(const struct identity *id)
{
	return table_mix((uintptr_t)id->name, (uint64_t)(uintptr_t)id->dso << 2 | id->mode);
}

bool identity_equal(const void *a, const void *b, const void *ctx)
{
	const struct identity *x = a, *y = b;

	(void)ctx;
	return x->name == y->name && x->dso == y->dso && x->mode == y->mode;
}

const char *identity_mode_name(uint8_t mode)
{
	static const char *const name[] = { "kernel", "user", "idle", "guest" };

	return mode < ARRAY_SIZE(name) ? name[mode] : "unknown";
}
