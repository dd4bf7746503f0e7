/* SPDX-License-Identifier: GPL-2.0-or-later */
/* read_record: the fields of one record. */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_RECORD_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_RECORD_H

#include "profile/format/perfdata/private.h"

enum perfdata_parsed {
	PERFDATA_PARSED,       /* r is filled in */
	PERFDATA_PARSED_OTHER, /* a kind of record that nobody asks for */
	PERFDATA_PARSED_BAD,
};

/* The record at off of v->records; bad when it has no room for a header or is cut. */
struct cursor perfdata_record_at(const struct perfdata_private *v, uint64_t off);
/* Bytes behind the record that belong to it; UINT64_MAX: nonsense. */
uint64_t perfdata_record_extra(const struct perfdata_private *v, struct cursor c);
/* Stores the event with this id in *event. Returns false if no event has it. */
bool perfdata_event_of_id(const struct perfdata_private *v, uint64_t id, uint32_t *event);
/* Returns the enum perfdata_owner that the misc field of a sample, a mapping or a build id names. */
uint8_t perfdata_owner_of(uint16_t misc);
/* c is one whole record. *event: whose sample it is. */
enum perfdata_parsed perfdata_parse(struct perfdata_private *v, struct cursor *c,
				    struct perfdata_record *r, uint32_t *event);

#endif
