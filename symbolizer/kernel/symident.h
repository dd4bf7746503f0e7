/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symident: measures of an image's text by which two files are told to belong together.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_SYMIDENT_H
#define KVMPROF_SYMBOLIZER_KERNEL_SYMIDENT_H

#include "symbolizer/core/kimage.h"

/* Text bytes that the hash covers at most. */
#define SYMIDENT_MAX_HASHED (1u << 20)

/* FNV-1a (64 bit) of the first max text bytes that the image has; returns how many that were. */
uint64_t symident_text_hash(const struct kimage *k, uint64_t max, uint64_t *hash);

struct symident_calls {
	unsigned int calls; /* direct calls inside the text that were looked at */
	unsigned int hits;  /* of these, to the address of a code symbol */
};

/* Targets of direct calls, in windows spread over the text. */
struct symident_calls symident_count_calls(const struct kimage *k, const struct symtab *t);

#endif
