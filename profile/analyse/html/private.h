/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * html_private: what the parts of the page's data share. Functions append to buffers, whose
 * `failed` the caller checks.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_HTML_PRIVATE_H
#define KVMPROF_PROFILE_ANALYSE_HTML_PRIVATE_H

#include "base/json.h"
#include "profile/analyse/html/html.h"

/*
 * Appends the columns of one event to *out, and writes the members to the open object in w that a
 * reader needs to find them: strings, counts and the offset of each column. begin_ns is the zero of
 * the page's times. Returns 0, -ENOMEM or -E2BIG.
 */
int html_data_event(struct buf *out, struct json_writer *w, const struct stackset *s,
		    uint64_t begin_ns, struct err *e);

/*
 * Writes the members markers, phases, requests, packets and totals. Times are relative to begin_ns.
 * Returns 0 or -ENOMEM.
 */
int html_facts(struct json_writer *w, const struct html_profile *p, uint64_t begin_ns,
	       struct err *e);

/*
 * Appends the JSON array of the hottest functions of an event with their instructions. An error
 * that concerns one function leaves this function out. Returns 0 or -errno.
 */
int html_code(struct buf *out, const struct html_options *opt, const struct stackset *s,
	      struct err *why, struct err *e);

#endif
