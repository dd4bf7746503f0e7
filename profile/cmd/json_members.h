/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json_members: the members of one JSON object, as text.
 *
 * For the totals that a profile carries (RFC 8259): what stands in them is only shown, so
 * nothing below the first level is looked at but for where it ends.
 */
#ifndef KVMPROF_PROFILE_CMD_JSON_MEMBERS_H
#define KVMPROF_PROFILE_CMD_JSON_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

#define JSON_MEMBERS_MAX 1024u
#define JSON_MEMBERS_DEPTH 64u

/* key: without its quotes, escapes as they are; value: as it stands. Not terminated. */
typedef void (*json_member)(void *ctx, const char *key, size_t key_len, const char *value,
			    size_t value_len);

/* False: it is no object, too deep, or ends early; the members before that were told. */
bool json_members(const char *text, size_t len, json_member each, void *ctx);

#endif
