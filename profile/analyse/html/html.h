/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * html: one self-contained HTML page that shows a profile, or a profile beside its base.
 *
 * The page has a script that draws all views, and the samples as compressed columns (data.c). It
 * needs no network, and its Content-Security-Policy forbids all requests and all scripts but its
 * own. Equal profiles give equal bytes. Not thread-safe: the caller serialises calls.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_HTML_HTML_H
#define KVMPROF_PROFILE_ANALYSE_HTML_HTML_H

#include "base/buf.h"
#include "profile/analyse/stacks/stackset.h"
#include "profile/format/names/srcline.h"

#define HTML_MAX_EVENTS 16u
/* Samples of one event; a page with more would take a browser too long. */
#define HTML_MAX_SAMPLES 8000000u
/* Default number of functions whose instructions the page has. */
#define HTML_FUNCTIONS 100u

/* What html_load() reads. Strings are borrowed until html_unload(). */
struct html_options {
	/* Selects samples; keep_samples is set by html_load(). event NULL: all events. */
	struct stackset_options load;
	unsigned int functions;		       /* number of functions with instructions; 0: none */
	const struct debuginfo_places *places; /* of source lines; NULL: no source lines */
};

struct html_profile {
	const char *name;			 /* of the file, for display */
	struct stackset *event[HTML_MAX_EVENTS]; /* owned */
	struct stackset *whole;			 /* owned; unfiltered, if samples are filtered */
	struct buf code[HTML_MAX_EVENTS];	 /* JSON array of functions; empty: none */
	unsigned int n;				 /* events, the first is shown first */
};

/*
 * Loads all events of a profile that have samples, or the one that the options name, and the code
 * of the hottest functions. A profile without samples has n 0. `why` receives the first reason for
 * which source lines are missing (code 0: none is). Returns 0 or -errno; *p is to be freed with
 * html_unload() in both cases.
 */
int html_load(struct html_profile *p, const struct html_options *opt, struct err *why,
	      struct err *e);
/* Frees what html_load() allocated. A zeroed profile is allowed. */
void html_unload(struct html_profile *p);

/*
 * Appends the page to *out. base NULL: one profile. title NULL: a default. Returns 0, -ENOMEM, or
 * -E2BIG beyond HTML_MAX_SAMPLES.
 */
int html_write(struct buf *out, const struct html_profile *p, const struct html_profile *base,
	       const char *title, struct err *e);

#endif
