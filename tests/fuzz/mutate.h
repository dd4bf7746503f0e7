/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mutate: makes new inputs for a fuzz target from those of its corpus.
 *
 * Run `n` of a seed depends only on the seed, on n and on the corpus, so that a failure can be
 * repeated, also alone.
 */
#ifndef KVMPROF_TESTS_FUZZ_MUTATE_H
#define KVMPROF_TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#define MUTATE_MAX (64u << 10) /* maximum bytes of a generated input */

struct mutate_input {
	uint8_t *data;
	size_t len;
};

/*
 * Makes the input of run n in `out`, which has MUTATE_MAX bytes, from the inputs in `from`, of
 * which there is at least one. Returns its length. The same arguments give the same input.
 */
size_t mutate_make(uint64_t seed, uint64_t n, const struct mutate_input *from, size_t count,
		   uint8_t *out);

#endif
