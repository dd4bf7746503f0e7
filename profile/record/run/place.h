/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_place: the addresses of a PLACE, the value of --start-at and similar options:
 *
 *   FUNCTION[+OFFSET]     FUNCTION as in profile/format/names/function.h; several addresses only
 *                         with #all
 *   0xADDRESS
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_PLACE_H
#define KVMPROF_PROFILE_RECORD_RUN_PLACE_H

#include "base/err.h"
#include "profile/record/guest/target.h"
#include "base/event.h"

struct run_place {
	uint64_t addr[VM_MAX_BREAKPOINTS]; /* linked addresses */
	unsigned int n;
};

/*
 * Finds the addresses of `text` in *t. Returns 0, -ENOENT or -EINVAL; *e then describes the error
 * in the text, or lists the functions with the name. Called by the main thread.
 */
int run_place_find(const struct target *t, const char *text, struct run_place *out, struct err *e);

#endif
