/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * identity: what functions of different runs and builds are the same by.
 *
 * Functions are the same when name, DSO and mode are. Names are compared without the suffixes that compilers add
 * to clones and parts of a function ("name.isra.0.cold"): which of them there are changes with any edit near by,
 * with the compiler and with its options. What has no name counts by its DSO, as addresses differ from run to
 * run, and so do the numbers in the names of JIT code. One thread.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_STACKS_IDENTITY_H
#define KVMPROF_PROFILE_ANALYSE_STACKS_IDENTITY_H

#include "base/texts.h"
#include "profile/analyse/stacks/stackset.h"

#define IDENTITY_UNNAMED "[unnamed]"

/*
 * Returns how many bytes of a name are left without the suffixes of clones. Suffixes are those of GCC and Clang
 * (".isra.0", ".constprop.1", ".part.0", ".cold", ".llvm.123", ".lto_priv.0" and others, also several of them),
 * c++filt's " [clone .isra.0]", and a number alone (".12") behind a name without other dots.
 */
size_t identity_name_len(const char *name);
/* Returns a name without the suffixes of clones, which belongs to texts. NULL: out of memory. */
const char *identity_plain(struct texts *texts, const char *name);

/* Texts are the set's, or those of its struct identity_names. */
struct identity {
	const char *name, *dso;
	uint8_t mode; /* for identity_mode_name() */
};

/* Hash and equality (table_equal) of identities whose texts are from one struct texts, so that equal ones are one pointer. */
uint64_t identity_hash(const struct identity *id);
bool identity_equal(const void *a, const void *b, const void *ctx);

/* The names that functions of a set are compared by. The set must outlive it. */
struct identity_names {
	const struct stackset *set;
	const char **name; /* one for each function; equal names are one pointer */
	bool *clone;	   /* for each function, whether its name has a suffix */
	struct texts texts;
};

/* Returns 0 or -ENOMEM. identity_names_deinit() in either case. */
int identity_names_init(struct identity_names *n, const struct stackset *s);
void identity_names_deinit(struct identity_names *n);

/* Returns the DSO that a function is compared by: JIT code is one, whatever its number. */
const char *identity_dso(const struct stackset_func *f);

/* Returns what function `func` (an index) is in this stack. */
struct identity identity_of(const struct identity_names *n, const struct stackset_stack *stack,
			    uint32_t func);

/* Returns "kernel", "user", "idle" or "guest". */
const char *identity_mode_name(uint8_t mode);

#endif
