/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * identity: decides which functions of different runs and builds are the same.
 *
 * Functions are the same if name, DSO and mode are. Names are compared without the suffixes that
 * compilers add to clones and parts of a function ("name.isra.0.cold"): which of them exist changes
 * with any nearby edit, with the compiler and with its options. Addresses without a name count by
 * their DSO, because addresses differ from run to run; so do the numbers in the names of JIT code.
 * Not thread-safe: the caller serialises calls on one object.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_IDENTITY_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_IDENTITY_H

#include "base/texts.h"
#include "profile/analyse/stacks/stackset.h"

#define IDENTITY_UNNAMED "[unnamed]"

/*
 * Returns the length of a name without the suffixes of clones. Suffixes are those of GCC and Clang
 * (".isra.0", ".constprop.1", ".part.0", ".cold", ".llvm.123", ".lto_priv.0" and others, also
 * several of them), c++filt's " [clone .isra.0]", and a number alone (".12") after a name without
 * other dots.
 */
size_t identity_name_len(const char *name);
/*
 * Returns a name without the suffixes of clones; it belongs to texts. Returns NULL if out of
 * memory.
 */
const char *identity_plain(struct texts *texts, const char *name);

/* The key of a function. Its texts belong to the set, or to its struct identity_names. */
struct identity {
	const char *name, *dso;
	uint8_t mode; /* see identity_mode_name() */
};

/*
 * Hash and compare (table_equal) identities whose texts are from one struct texts, so that equal
 * texts are one pointer.
 */
uint64_t identity_hash(const struct identity *id);
bool identity_equal(const void *a, const void *b, const void *ctx);

/* The names under which functions of a set are compared. The set must outlive it. */
struct identity_names {
	const struct stackset *set;
	const char **name; /* one for each function; equal names are one pointer */
	bool *clone;	   /* for each function: true if its name has a suffix */
	struct texts texts;
};

/*
 * Computes the names. Returns 0 or -ENOMEM; the caller calls identity_names_deinit() in either
 * case.
 */
int identity_names_init(struct identity_names *n, const struct stackset *s);
void identity_names_deinit(struct identity_names *n);

/*
 * Returns the DSO under which a function is compared, which the set owns; a constant for JIT code,
 * all of which has one DSO.
 */
const char *identity_dso(const struct stackset_func *f);

/* Returns the key of function `func` (an index) in this stack. */
struct identity identity_of(const struct identity_names *n, const struct stackset_stack *stack,
			    uint32_t func);

/* Returns "kernel", "user", "idle" or "guest", and "unknown" for another value; a constant. */
const char *identity_mode_name(uint8_t mode);

#endif
