/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_code: kernel code that is not in the image, as it comes and goes: modules, and what the
 * kernel generates at run time (BPF, ftrace, kprobes). It is reported to the sink and to the
 * unwinder as one list of regions.
 *
 * A cheap hash detects that one of the guest's lists has changed. It is computed periodically, and
 * soon if a sample lies outside of all known code. A list that changes while it is read is read
 * again later. Each piece of generated code is reported to the sink as a module of its own, with
 * one symbol.
 *
 * All functions are called by the consumer thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_CODE_H
#define KVMPROF_PROFILE_RECORD_GUEST_CODE_H

#include "profile/format/sink/sink.h"
#include "symbolizer/linux/dyncode.h"
#include "symbolizer/linux/module.h"
#include "symbolizer/unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>

#define GUEST_CODE_CHECK_NS 100000000u /* interval between two looks at the lists */
#define GUEST_CODE_RETRY_NS 2000000u   /* the same, if a sample lies in unknown code */

/*
 * Symbols of unloaded modules stay until the sink's end(). When this many are kept, modules that
 * are loaded later get no symbols.
 */
#define GUEST_CODE_MAX_KEPT (2u << 20)
/* The most generated pieces that are reported in all. Later ones are unwound but have no name. */
#define GUEST_CODE_MAX_MADE 65536u

struct guest_code_stats {
	uint64_t seen; /* modules or pieces, counted each time that they appear */
	uint64_t without_symbols;
	uint64_t without_orc; /* modules only */
	uint64_t skipped;     /* implausible pieces, counted each time that a list is read */
	uint64_t replaced;    /* regions whose code was replaced or removed between two looks */
	uint64_t failed;      /* looks that found a list changing or damaged */
};

struct guest_code;

/*
 * Creates a list without code. memory and sink must outlive it; it must outlive the sink's end().
 * Returns 0 or -ENOMEM. The caller frees it with guest_code_destroy(), which accepts NULL.
 */
int guest_code_create(struct guest_code **out, const struct memory *memory, struct sink *sink,
		      struct err *e);
void guest_code_destroy(struct guest_code *g);

/*
 * Starts to read the list of modules, or of generated code, by this layout, which must outlive g.
 */
void guest_code_use_modules(struct guest_code *g, const struct linux_module_layout *layout);
void guest_code_use_dynamic(struct guest_code *g, const struct linux_dyncode_layout *layout);

/* Whether an address lies in the kernel's own text (where no other code is) or elsewhere. */
enum guest_ip { GUEST_IP_IN_IMAGE, GUEST_IP_ELSEWHERE };

/* Returns the current time in ns. */
typedef uint64_t (*guest_code_clock)(void *ctx);
/* Sets the clock of the samples' times. Without a call it is CLOCK_MONOTONIC. */
void guest_code_set_clock(struct guest_code *g, guest_code_clock clock, void *ctx);

/*
 * Reads the lists if a look is due. To be called before a sample at kernel address ip is unwound,
 * with the sample's time. Returns 0, -ENOMEM or the error of the sink.
 */
int guest_code_update(struct guest_code *g, uint64_t ip, enum guest_ip where, uint64_t time_ns,
		      struct err *e);

/*
 * Looks at the lists once more if one of the n addresses of a sample lies in code that was last
 * seen before the sample was taken, so that each name is proven by a look before and a look after
 * the sample. Returns as guest_code_update().
 */
int guest_code_prove(struct guest_code *g, const uint64_t *ip, unsigned int n, uint64_t time_ns,
		     struct err *e);
/*
 * Returns whether the code at va may have been other code when a sample of time_ns was taken: two
 * looks around that time found different code, or no later look could read the lists completely. To
 * be called after guest_code_prove() for the same sample.
 */
bool guest_code_is_uncertain(const struct guest_code *g, uint64_t va, uint64_t time_ns);

/*
 * Returns all known code, sorted by address, and its number of regions in *n. Regions do not
 * overlap: generated code within a module is omitted. Valid until the next guest_code_update() or
 * guest_code_prove().
 */
const struct unwind_region *guest_code_regions(const struct guest_code *g, size_t *n);

/* Returns the number of times that the regions have changed. */
uint64_t guest_code_changes(const struct guest_code *g);

/* Return the counters of modules and of generated code, valid as long as g. */
const struct guest_code_stats *guest_code_module_stats(const struct guest_code *g);
const struct guest_code_stats *guest_code_dynamic_stats(const struct guest_code *g);

#endif
