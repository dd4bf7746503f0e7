/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * osrel: reads values of an os-release file. Pure functions over text; any thread.
 *
 * Source of the format: os-release(5):
 *
 *	file  := { line "\n" }
 *	line  := "#" text | KEY "=" value
 *	value := text | "'" text "'" | "\"" text with "\\" before $ " ` \ "\""
 */
#ifndef KVMPROF_VMM_BOOTDISK_OSREL_H
#define KVMPROF_VMM_BOOTDISK_OSREL_H

#include <stdbool.h>
#include <stddef.h>

#define OSREL_MAX_VALUE 256u /* bytes including the NUL; a longer value is truncated */

/*
 * Copies the last value of key to to[OSREL_MAX_VALUE]. Returns false, with to "", if there is none
 * or it is empty. text may contain anything; a NUL byte ends it.
 */
bool osrel_value(const char *text, size_t len, const char *key, char *to);

/*
 * Copies the value of the first of these keys that has one; a NULL ends the keys. Returns as
 * osrel_value().
 */
bool osrel_first(const char *text, size_t len, const char *const *keys, char *to);

#endif
