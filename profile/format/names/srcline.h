/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * srcline: source lines of a guest kernel's run-time addresses.
 *
 * Lazy: the debug file is searched for at the first address, and each address is
 * looked up once. When there is none, srcline_why says so in one line and every
 * lookup is empty. One thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_SRCLINE_H
#define KVMPROF_PROFILE_FORMAT_NAMES_SRCLINE_H

#include "profile/format/files/debuginfo.h"
#include "profile/format/perfdata/read.h"

#define SRCLINE_MAX_ADDRESSES (4u << 20) /* remembered; beyond, all are forgotten */

struct srcline;

/* The lines at one address. frame is valid until the next call with this ctx. */
struct srcline_result {
	const struct line_frame *frame; /* innermost first, as lines_lookup gives them */
	unsigned int n;			/* 0: nothing known */
};

/* places is copied, its strings are borrowed. */
int srcline_create(struct srcline **out, const struct debuginfo_places *places, struct err *e);
void srcline_destroy(struct srcline *s);
/* The copy of places, valid as long as s. */
const struct debuginfo_places *srcline_places(const struct srcline *s);

/* The kernel's build id, without which nothing is found. len <= 20. */
void srcline_set_id(struct srcline *s, const uint8_t *id, size_t len);
/* Both from a profile: build id and release from its header, the text's place from a kernel map. */
void srcline_set_profile(struct srcline *s, const struct perfdata *p);
void srcline_set_map(struct srcline *s, const struct perfdata_record *map);

/*
 * Search for the debug file now. 0, or why there is none (-ENOENT), or -errno for what
 * the user gave and that can't be used. Lookups do it by themselves.
 */
int srcline_load(struct srcline *s, struct err *e);
/* Of the search or of the latest lookup that failed; "" when all is well. */
const char *srcline_why(const struct srcline *s);
/* The debug file, NULL before it is found. */
const char *srcline_file(const struct srcline *s);

/*
 * After srcline_load() and the record of the kernel's map. The address as it was linked; false: it is
 * not in the image. Where its code was linked, from and to. Its debug information, as long as s.
 */
bool srcline_linked(const struct srcline *s, uint64_t addr, uint64_t *va);
uint64_t srcline_text(const struct srcline *s);
uint64_t srcline_text_end(const struct srcline *s);
struct lines *srcline_lines(const struct srcline *s);

/* addr: run-time, inside the instruction (of a caller: inside its call). */
struct srcline_result srcline_of(struct srcline *s, uint64_t addr);

/* The last component of a frame's file, as perf prints it; "??" when it is not known. */
const char *srcline_basename(const struct line_frame *f);

#endif
