/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * write_feature: what a perf.data file says about itself: its event, and the
 * features behind the records (format.h has the sources).
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_WRITE_FEATURE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_WRITE_FEATURE_H

#include "profile/format/perfdata/write.h"

#define PERFDATA_EVENT_ID 1u /* our only event's */

/* The facts that a file has beside its records. */
struct perfdata_about {
	const struct profile_info *info;
	const char *osrelease; /* NULL: not known */
	const char *json;      /* one object; NULL: none */
};

/* struct perf_event_attr, PERFDATA_ATTR_SIZE bytes. */
void perfdata_put_attr(struct buf *b, const struct profile_info *info, unsigned int event);

/*
 * All features that have something to say: their bytes go to blobs, where they
 * begin there and how long they are to index, and their numbers to bits. Check
 * both for `failed`.
 */
void perfdata_put_features(struct buf *blobs, struct buf *index, uint64_t bits[4],
			   const struct perfdata_writer *w, const struct perfdata_about *about);

/*
 * What makes perf take n ranges of modules for code of a BPF program, whose maps it
 * keeps: a blob for PERFDATA_FEAT_BPF_PROG_INFO, for the program PERFDATA_KEPT_ID.
 */
#define PERFDATA_KEPT_ID 1u
void perfdata_put_kept(struct buf *b, const struct profile_module *const *m, size_t n);

#endif
