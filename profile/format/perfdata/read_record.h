/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * read_record: parses one record. Called by the reader's thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_PERFDATA_READ_RECORD_H
#define KVMPROF_PROFILE_FORMAT_PERFDATA_READ_RECORD_H

#include "profile/format/perfdata/private.h"

enum perfdata_parsed {
	PERFDATA_PARSED,       /* r is filled in */
	PERFDATA_PARSED_OTHER, /* a kind of record that the reader does not return */
	/* damaged */
	PERFDATA_PARSED_BAD,
};

/*
 * Returns a cursor over the record at offset off of v->records; its `bad` is set if the record is
 * cut short.
 */
struct cursor perfdata_record_at(const struct perfdata_private *v, uint64_t off);
/*
 * Returns the number of bytes after the record c that belong to it; UINT64_MAX if they cannot be
 * determined.
 */
uint64_t perfdata_record_extra(const struct perfdata_private *v, struct cursor c);
/* Stores the event with this id in *event. Returns false if no event has it. */
bool perfdata_event_of_id(const struct perfdata_private *v, uint64_t id, uint32_t *event);
/* Returns the enum perfdata_owner for the misc field of a sample, a mapping or a build id. */
uint8_t perfdata_owner_of(uint16_t misc);
/*
 * Parses the whole record c into *r, whose pointers lead into the record. Sets *event to the event
 * of a sample.
 */
enum perfdata_parsed perfdata_parse(struct perfdata_private *v, struct cursor *c,
				    struct perfdata_record *r, uint32_t *event);

#endif
