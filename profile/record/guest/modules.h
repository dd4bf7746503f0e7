/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_modules: the guest's kernel modules as they come and go, told to the sink and
 * to the unwinder.
 *
 * A list that changes while it is read is read again later. Used by the consumer's thread alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_MODULES_H
#define KVMPROF_PROFILE_RECORD_GUEST_MODULES_H

#include "profile/record/guest/code_watch.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/linux/module.h"
#include "symbolizer/unwind/unwind.h"

/*
 * Symbols of modules that are gone stay until the sink's end(). A guest that loads
 * and unloads all day gets no more names when so many symbols are kept.
 */
#define GUEST_MODULES_MAX_KEPT (2u << 20)

struct guest_modules_stats {
	uint64_t seen; /* modules, each time they came */
	uint64_t without_symbols, without_orc;
	uint64_t failed; /* looks at the list that found it changing or damaged */
};

struct guest_modules;

/* All must outlive it, as it must outlive the sink's end(). */
int guest_modules_create(struct guest_modules **out, const struct linux_module_layout *layout,
			 const struct memory *memory, struct sink *sink, struct err *e);
void guest_modules_destroy(struct guest_modules *g);

/* Before a sample at kernel address ip is unwound. Errors are the sink's. */
int guest_modules_see(struct guest_modules *g, uint64_t ip, enum guest_ip where, uint64_t time_ns,
		      struct err *e);

/* The code of those that are loaded; valid until the next guest_modules_see(). */
const struct unwind_region *guest_modules_regions(const struct guest_modules *g, size_t *n);

/* How often these regions became others. */
uint64_t guest_modules_changes(const struct guest_modules *g);

const struct guest_modules_stats *guest_modules_stats(const struct guest_modules *g);

#endif
