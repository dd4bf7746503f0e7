/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ip_set: distinct addresses that were sampled. All zero is an empty set. One thread.
 */
#ifndef KVMPROF_BASE_IP_SET_H
#define KVMPROF_BASE_IP_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IP_SET_MAX (1u << 20)

/* Open-addressed; 0 marks a free place. */
struct ip_set {
	uint64_t *slot;
	size_t cap, n;
};

void ip_set_deinit(struct ip_set *set);
/* to need not be one yet. False: no memory. */
bool ip_set_copy(struct ip_set *to, const struct ip_set *from);
/* Was it new? Best effort: beyond IP_SET_MAX, and without memory, nothing is. */
bool ip_set_add(struct ip_set *set, uint64_t ip);
/* slot[0..n) are the addresses, and the set takes no more. */
void ip_set_pack(struct ip_set *set);

#endif
