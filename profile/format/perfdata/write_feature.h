/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * write_feature: the self-description of a perf.data file: its events, and the features after the
 * records (format.h has the sources). The functions append to buffers and set their `failed` if out
 * of memory; they are called by the writer's thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_WRITE_FEATURE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_WRITE_FEATURE_H

#include "profile/format/perfdata/write.h"

#define PERFDATA_EVENT_ID 1u /* id of the only event */

/* Facts stored beside the records. */
struct perfdata_about {
	const struct profile_info *info;
	const char *osrelease; /* NULL: unknown */
	const char *json;      /* one object; NULL: none */
};

/* Appends the struct perf_event_attr of an event, PERFDATA_ATTR_SIZE bytes. */
void perfdata_put_attr(struct buf *b, const struct profile_info *info, unsigned int event);

/*
 * Appends all features that have contents: their bytes to blobs, their offsets in blobs and lengths
 * to index. Sets their numbers in bits.
 */
void perfdata_put_features(struct buf *blobs, struct buf *index, uint64_t bits[4],
			   const struct perfdata_writer *w, const struct perfdata_about *about);

/*
 * Appends a blob for PERFDATA_FEAT_BPF_PROG_INFO that makes perf treat n ranges of modules as code
 * of the BPF program PERFDATA_KEPT_ID, whose maps it keeps.
 */
#define PERFDATA_KEPT_ID 1u
void perfdata_put_kept(struct buf *b, const struct profile_module *const *m, size_t n);

#endif
