/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exittime: how long a VM exit was worked for, as the samples of events of exits have it.
 *
 * It stands at the end of the sample's PERF_SAMPLE_RAW, little endian, behind what memref.h has
 * there (run --mem) or alone:
 *
 *   raw := [memref, u32 0] u32 magic "KEXT" | u64 ns
 *
 * A field of perf's own (WEIGHT) would be a column of `perf script`, whose readers do not expect it.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_EXITTIME_H
#define KVMPROF_PROFILE_FORMAT_SINK_EXITTIME_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

#define EXITTIME_MAGIC 0x5458454bu /* "KEXT" */
/* Bytes in RAW, with its length or with what fills the place of that behind others. */
#define EXITTIME_SIZE 16u

enum exittime_place { EXITTIME_ALONE, EXITTIME_BEHIND };

/* ns 0: not known. RAW's length is not written. */
void exittime_put(struct buf *b, uint64_t ns, enum exittime_place place);
/* raw: what is behind the length. 0: it does not say. */
uint64_t exittime_parse(const uint8_t *raw, size_t len);

#endif
