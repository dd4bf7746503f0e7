/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * read_chain: completes call chains whose parts are at different places of the file.
 *
 *   deferred   the kernel walks a program's stack only when it returns to the program (perf 7.0 and later,
 *              --call-graph fp,defer): the sample's chain ends with USER_DEFERRED and a cookie, and a later
 *              CALLCHAIN_DEFERRED record of the same thread has the program's part under that cookie
 *   LBR        --call-graph lbr: the program's part is the branch stack, as the processor kept it
 *
 * Source: include/uapi/linux/perf_event.h (Linux 7.1); tools/perf/util/session.c,
 * evlist__deliver_deferred_callchain(), and machine.c, resolve_lbr_callchain_sample(). Called by
 * the reader's thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_CHAIN_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_CHAIN_H

#include "profile/format/perfdata/private.h"

/* Stores a record of kind PERFDATA_DEFERRED for the samples before it. Returns 0 or -ENOMEM. */
int perfdata_chains_add(struct perfdata_private *v, const struct perfdata_record *r);
/* Removes the records stored by perfdata_chains_add(). */
void perfdata_chains_reset(struct perfdata_private *v);
/* Frees all chains. */
void perfdata_chains_deinit(struct perfdata_private *v);
/* Adds the user part to the chain of a sample. If memory runs out, that part is missing. */
void perfdata_chains_complete(struct perfdata *p, struct perfdata_record *r);

#endif
