/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_place: the addresses of a PLACE of --start-at and its like:
 *
 *	FUNCTION[+OFFSET]     FUNCTION as in profile/format/names/function.h; several addresses only with #all
 *	0xADDRESS
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_PLACE_H
#define KVMPROF_PROFILE_RECORD_RUN_PLACE_H

#include "base/err.h"
#include "profile/record/guest/target.h"
#include "base/event.h"

struct run_place {
	uint64_t addr[VM_MAX_BREAKPOINTS]; /* as linked */
	unsigned int n;
};

/* -ENOENT, -EINVAL: the message says what is wrong with the text, or lists the functions of the name. */
int run_place_find(const struct target *t, const char *text, struct run_place *out, struct err *e);

#endif
