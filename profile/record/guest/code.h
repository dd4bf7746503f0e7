/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_code: the guest's kernel code beside the image's own, as it comes and goes: modules, and
 * what the kernel makes at run time (BPF, ftrace, kprobes). It is reported to the sink and to the
 * unwinder as one list of regions.
 *
 * A cheap hash tells whether a list of the guest's has changed. It is computed now and then, and soon when a
 * sample lies where no known code is. A list that changes while it is read is read again later.
 * Each piece that the kernel has made is a module of its own to the sink, with one symbol.
 * Used by the consumer's thread alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_CODE_H
#define KVMPROF_PROFILE_RECORD_GUEST_CODE_H

#include "profile/format/sink/sink.h"
#include "symbolizer/linux/dyncode.h"
#include "symbolizer/linux/module.h"
#include "symbolizer/unwind/unwind.h"

#include <stdbool.h>
#include <stdint.h>

#define GUEST_CODE_CHECK_NS 100000000u /* from one look to the next */
#define GUEST_CODE_RETRY_NS 2000000u   /* the same, for a sample in unknown code */

/*
 * Symbols of modules that are gone stay until the sink's end(). A guest that loads
 * and unloads all day gets no more names when so many symbols are kept.
 */
#define GUEST_CODE_MAX_KEPT (2u << 20)
/* Pieces made at run time that were reported, in all. What comes later is unwound, and bears no name. */
#define GUEST_CODE_MAX_MADE 65536u

struct guest_code_stats {
	uint64_t seen; /* modules or pieces, each time they came */
	uint64_t without_symbols;
	uint64_t without_orc; /* modules alone */
	uint64_t skipped;     /* pieces that could not be believed, each time a list was read */
	uint64_t replaced;    /* regions that other code had, or lost, between two looks */
	uint64_t failed;      /* looks at the list that found it changing or damaged */
};

struct guest_code;

/* memory and sink must outlive it, as it must outlive the sink's end(). -ENOMEM. */
int guest_code_create(struct guest_code **out, const struct memory *memory, struct sink *sink,
		      struct err *e);
void guest_code_destroy(struct guest_code *g);

/* From now on the list behind this layout is read, too; it must outlive g. */
void guest_code_use_modules(struct guest_code *g, const struct linux_module_layout *layout);
void guest_code_use_made(struct guest_code *g, const struct linux_dyncode_layout *layout);

/* GUEST_IP_IN_IMAGE: in the kernel's own text, where no other code is. */
enum guest_ip { GUEST_IP_IN_IMAGE, GUEST_IP_ELSEWHERE };

typedef uint64_t (*guest_code_clock)(void *ctx);
/* The clock that samples are taken by, instead of CLOCK_MONOTONIC. */
void guest_code_set_clock(struct guest_code *g, guest_code_clock clock, void *ctx);

/* Before a sample at kernel address ip is unwound. Errors are the sink's, and -ENOMEM. */
int guest_code_see(struct guest_code *g, uint64_t ip, enum guest_ip where, uint64_t time_ns,
		   struct err *e);

/*
 * Looks at the lists once more if one of the n addresses, which a sample of time_ns has, lies in code that was last seen before the
 * sample was taken. So each name is proven by a look before the sample and one after it. Errors as above.
 */
int guest_code_prove(struct guest_code *g, const uint64_t *ip, unsigned int n, uint64_t time_ns,
		     struct err *e);
/*
 * Returns whether the code at va may have been other code when a sample of time_ns was taken: what a look found there is not what the
 * look before it had found, or no look since then could read the lists whole. Called after guest_code_prove() for the sample.
 */
bool guest_code_in_doubt(const struct guest_code *g, uint64_t va, uint64_t time_ns);

/* All code there is, sorted; what lies over a module's is left out. Valid until the next guest_code_see(). */
const struct unwind_region *guest_code_regions(const struct guest_code *g, size_t *n);

/* How often these regions became others. */
uint64_t guest_code_changes(const struct guest_code *g);

const struct guest_code_stats *guest_code_module_stats(const struct guest_code *g);
const struct guest_code_stats *guest_code_made_stats(const struct guest_code *g);

#endif
