/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_dyncode: code that the guest's kernel makes while it runs (BPF, ftrace, kprobes) as it
 * comes and goes, told to the sink and to the unwinder.
 *
 * Each piece is a module of its own to the sink, with one symbol. Used by the consumer's thread
 * alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_DYNCODE_H
#define KVMPROF_PROFILE_RECORD_GUEST_DYNCODE_H

#include "profile/record/guest/modules.h"
#include "symbolizer/linux/dyncode.h"

/* Pieces that were told, in all. What comes later is unwound, and bears no name. */
#define GUEST_DYNCODE_MAX_TOLD 65536u

struct guest_dyncode_stats {
	uint64_t seen; /* pieces, each time they came */
	uint64_t without_symbols;
	uint64_t skipped; /* that could not be believed, each time a list was read */
	uint64_t failed;  /* looks at the lists that found them changing or damaged */
};

struct guest_dyncode;

/* All must outlive it, as it must outlive the sink's end(). */
int guest_dyncode_create(struct guest_dyncode **out, const struct linux_dyncode_layout *layout,
			 const struct memory *memory, struct sink *sink, struct err *e);
void guest_dyncode_destroy(struct guest_dyncode *g);

/* Before a sample at kernel address ip is unwound. Errors are the sink's. */
int guest_dyncode_see(struct guest_dyncode *g, uint64_t ip, enum guest_ip where, uint64_t time_ns,
		      struct err *e);

/*
 * What there is together with the modules' regions, sorted; valid until either changes. What lies
 * over a module's is left out. Where there is no memory for that, the modules alone.
 */
const struct unwind_region *guest_dyncode_join(struct guest_dyncode *g,
					       const struct guest_modules *modules, size_t *n);

/* How often the list became another. */
uint64_t guest_dyncode_changes(const struct guest_dyncode *g);

const struct guest_dyncode_stats *guest_dyncode_stats(const struct guest_dyncode *g);

#endif
