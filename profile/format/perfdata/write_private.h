/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_write_private: what the parts of the writer share. For perfdata_write*.c alone.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_WRITE_PRIVATE_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_WRITE_PRIVATE_H

#include "profile/format/perfdata/write.h"

/* Remember the first failure; return -err with a message. */
int perfdata_fail(struct perfdata_writer *w, int err, struct err *e);
int perfdata_no_memory(struct perfdata_writer *w, struct err *e);

/* Hand what has been collected in `out` to the kernel. window.c */
int perfdata_push(struct perfdata_writer *w, struct err *e);
/* A record has been appended to `held` from `start` on: enter it, and make room when it is time. */
int perfdata_hold(struct perfdata_writer *w, size_t start, uint64_t time_ns, struct err *e);

/* The file's header; data_end 0: no records yet. */
void perfdata_put_header(struct buf *b, const struct perfdata_writer *w, uint64_t data_end,
			 const uint64_t features[4]);
/* A LOST_SAMPLES record. */
void perfdata_put_lost(struct buf *b, const struct perfdata_writer *w, uint32_t cpu, uint64_t count,
		       uint64_t time_ns);

/* Which event a record belongs to is told only where there are several. */
static inline bool perfdata_has_identifier(const struct perfdata_writer *w)
{
	return w->nevents > 1;
}

#endif
