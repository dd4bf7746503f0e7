/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mutate: new inputs for a fuzz target, made of those of its corpus.
 *
 * Run `n` of a seed depends on the seed, on n and on the corpus alone, so that a failure comes again, also by itself.
 */
#ifndef KVMPROF_TESTS_FUZZ_MUTATE_H
#define KVMPROF_TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#define MUTATE_MAX (64u << 10) /* bytes of an input that is made */

struct mutate_input {
	uint8_t *data;
	size_t len;
};

/*
 * Makes the input of run n in `out`, of MUTATE_MAX bytes, from the inputs in `from`, of which there is at least
 * one. Returns its length.
 */
size_t mutate_make(uint64_t seed, uint64_t n, const struct mutate_input *from, size_t count,
		   uint8_t *out);

#endif
