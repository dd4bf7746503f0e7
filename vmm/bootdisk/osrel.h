/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * osrel: what an os-release file says. A pure function over text.
 *
 * Source of the format: os-release(5):
 *	file  := { line "\n" }
 *	line  := "#" text | KEY "=" value
 *	value := text | "'" text "'" | "\"" text with "\\" before $ " ` \ "\""
 */
#ifndef KVMPROF_VMM_BOOTDISK_OSREL_H
#define KVMPROF_VMM_BOOTDISK_OSREL_H

#include <stdbool.h>
#include <stddef.h>

#define OSREL_MAX_VALUE 256u /* bytes with the terminator; what is longer is cut */

/*
 * KEY's value, the last one, into to[OSREL_MAX_VALUE]. False: there is none, or it is empty;
 * then to is "". text may hold anything, NUL bytes end it.
 */
bool osrel_value(const char *text, size_t len, const char *key, char *to);

/* That of the first of these keys (NULL ends them) that has one. */
bool osrel_first(const char *text, size_t len, const char *const *keys, char *to);

#endif
