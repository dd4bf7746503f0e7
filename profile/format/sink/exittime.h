/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * exittime: how long the host worked for a VM exit, as stored with the samples of exit events.
 *
 * The value is at the end of the sample's PERF_SAMPLE_RAW field, little endian. It stands alone, or
 * after the bytes of memref.h (run --mem):
 *
 *   raw := [memref, u32 0] u32 magic "KEXT" | u64 ns
 *
 * It is not in perf's own field WEIGHT, because that would add a column to `perf script` which
 * readers of that output do not expect. The functions are pure; any thread may call them.
 */
#ifndef KVMPROF_PROFILE_FORMAT_SINK_EXITTIME_H
#define KVMPROF_PROFILE_FORMAT_SINK_EXITTIME_H

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

#define EXITTIME_MAGIC 0x5458454bu /* "KEXT" */
/*
 * Bytes that the value adds to the sample record, with RAW's u32 length (EXITTIME_ALONE) or with
 * the u32 0 in its place (EXITTIME_BEHIND).
 */
#define EXITTIME_SIZE 16u

/* EXITTIME_BEHIND: the value follows the bytes of memref.h in the same RAW field. */
enum exittime_place { EXITTIME_ALONE, EXITTIME_BEHIND };

/*
 * Appends the value to b, but not RAW's own u32 length, which the caller writes. ns 0 means
 * unknown. If memory runs out, b->failed is set.
 */
void exittime_put(struct buf *b, uint64_t ns, enum exittime_place place);
/*
 * Returns the ns stored in a RAW field, or 0 if the field has none. raw[0..len) are the bytes after
 * RAW's u32 length; raw may be NULL.
 */
uint64_t exittime_parse(const uint8_t *raw, size_t len);

#endif
