/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/hist.h"

#include "base/count.h"

static unsigned int bucket_of(uint64_t ns)
{
	unsigned int log2;

	if (ns < 8)
		return (unsigned int)ns;
	log2 = 63 - (unsigned int)__builtin_clzll(ns);
	return (log2 - 2) * 8 + (unsigned int)((ns >> (log2 - 3)) & 7);
}

/* Returns the largest value that falls into the bucket. */
static uint64_t bucket_top(unsigned int b)
{
	unsigned int log2;

	if (b < 8)
		return b;
	log2 = b / 8 + 2;
	return ((8ull + b % 8) << (log2 - 3)) + ((1ull << (log2 - 3)) - 1);
}

void hist_add(struct hist *h, uint64_t ns)
{
	uint32_t *b = &h->bucket[bucket_of(ns)];

	count_add(&h->count, 1);
	count_add(&h->sum, ns);
	if (ns > h->max)
		count_set(&h->max, ns);
	__atomic_store_n(b, *b + 1, __ATOMIC_RELAXED);
}

void hist_merge(struct hist *dst, const struct hist *src)
{
	dst->count += src->count;
	dst->sum += src->sum;
	if (src->max > dst->max)
		dst->max = src->max;
	for (unsigned int i = 0; i < HIST_BUCKETS; i++)
		dst->bucket[i] += src->bucket[i];
}

uint64_t hist_quantile(const struct hist *h, unsigned int per_mille)
{
	uint64_t want = (h->count * per_mille + 999) / 1000, seen = 0;

	if (!h->count)
		return 0;
	for (unsigned int i = 0; i < HIST_BUCKETS; i++) {
		seen += h->bucket[i];
		if (seen >= want)
			return bucket_top(i) < h->max ? bucket_top(i) : h->max;
	}
	return h->max;
}
