/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_symbols_at: `kvmprof symbols IMAGE ADDRESS...`: function, source line and inlined
 * calls of addresses, as text or as one JSON object.
 */
#ifndef KVMPROF_PROFILE_CMD_SYMBOLS_AT_H
#define KVMPROF_PROFILE_CMD_SYMBOLS_AT_H

#include "profile/format/files/debuginfo.h"
#include "symbolizer/core/kimage.h"

struct symbols_at {
	const char *path; /* of the image */
	const struct kimage *kernel;
	const struct symtab *symbols;
	struct debuginfo_places places;
	bool json, demangle;
};

/*
 * Prints to stdout; address is a list of names of functions and hexadecimal numbers that ends with
 * NULL; one that is neither fails before anything is printed. Debug information is that of --debuginfo or --build-id-map, else the image's own,
 * else what is found by build id; without any there are functions alone. -errno when what the
 * user gave can't be used.
 */
int symbols_at_print(const struct symbols_at *s, char **address, struct err *e);

/* Writes "key":"value" with what JSON wants escaped, or null for an empty or missing value. */
void symbols_at_json_text(const char *key, const char *value);

#endif
