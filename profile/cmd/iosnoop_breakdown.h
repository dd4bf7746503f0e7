/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * iosnoop_breakdown: how long the parts of requests' ways took (profile/live/io_stages.h), as
 * percentiles. On the consumer's thread, and after its end.
 */
#ifndef KVMPROF_PROFILE_CMD_IOSNOOP_BREAKDOWN_H
#define KVMPROF_PROFILE_CMD_IOSNOOP_BREAKDOWN_H

#include "base/buf.h"
#include "profile/record/pipeline/io_stages.h"

struct breakdown;

struct breakdown *breakdown_create(void);    /* NULL: no memory */
void breakdown_destroy(struct breakdown *b); /* NULL is fine */

/* A request's JSON object, still open: printed with its stages when they come. Takes over. */
void breakdown_keep(struct breakdown *b, struct buf *object);
/* In the order in which objects were kept. */
void breakdown_add(struct breakdown *b, const struct io_stages *s);

/* To standard output. */
void breakdown_print(const struct breakdown *b);
/* As a member with a comma in front. */
void breakdown_print_json(const struct breakdown *b);

#endif
