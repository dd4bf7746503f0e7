/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * srcline: source lines for run-time addresses of a guest kernel.
 *
 * The debug file is searched for at the first lookup, and each address is looked up once. If there
 * is no debug file, srcline_reason() returns the reason in one line and every lookup is empty. Not
 * thread-safe: the caller serialises calls on one object. Strings that are returned belong to s.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_SRCLINE_H
#define KVMPROF_PROFILE_FORMAT_NAMES_SRCLINE_H

#include "profile/format/files/debuginfo.h"
#include "profile/format/perfdata/read.h"

/* number of addresses cached; beyond it the cache is emptied */
#define SRCLINE_MAX_ADDRESSES (4u << 20)

struct srcline;

/* The lines at one address. frame belongs to s and is valid until the next call. */
struct srcline_result {
	const struct line_frame *frame; /* innermost first, as from lines_lookup() */
	unsigned int n;			/* 0: unknown */
};

/*
 * Creates *out; the caller frees it with srcline_destroy(). The struct places is copied, its
 * strings are borrowed until then. Returns 0 or -ENOMEM.
 */
int srcline_create(struct srcline **out, const struct debuginfo_places *places, struct err *e);
/* Frees s; does nothing for NULL. */
void srcline_destroy(struct srcline *s);
/* Returns the copy of places, valid as long as s. */
const struct debuginfo_places *srcline_places(const struct srcline *s);

/* Sets the kernel's build id of len bytes, at most 20. Without one, the search finds nothing. */
void srcline_set_id(struct srcline *s, const uint8_t *id, size_t len);
/*
 * srcline_set_profile() takes build id and release from the profile's header; srcline_set_map()
 * takes the text's run-time address from the record of the kernel's map, and ignores other maps.
 */
void srcline_set_profile(struct srcline *s, const struct perfdata *p);
void srcline_set_map(struct srcline *s, const struct perfdata_record *map);

/*
 * Searches for the debug file, unless a search was made; lookups do so by themselves. Returns 0,
 * -ENOENT if there is none, or -errno for a place given by the user that cannot be used.
 */
int srcline_load(struct srcline *s, struct err *e);
/*
 * Returns why the search or the latest lookup failed, or a note on an alternate file that is
 * missing; "" if all is well.
 */
const char *srcline_reason(const struct srcline *s);
/* Returns the path of the debug file, or NULL before it was found. */
const char *srcline_file(const struct srcline *s);

/*
 * These four may be called only after srcline_load() has returned 0, and after srcline_set_map() if
 * there is a map. srcline_linked() stores in *va the address as linked and returns false if addr is
 * not in the image. srcline_text() and srcline_text_end() return the range of the code as linked.
 * srcline_lines() returns the debug information, which belongs to s.
 */
bool srcline_linked(const struct srcline *s, uint64_t addr, uint64_t *va);
uint64_t srcline_text(const struct srcline *s);
uint64_t srcline_text_end(const struct srcline *s);
struct lines *srcline_lines(const struct srcline *s);

/*
 * Returns the lines at a run-time address inside an instruction (for a caller: inside its call). n
 * is 0 if nothing is known.
 */
struct srcline_result srcline_of(struct srcline *s, uint64_t addr);

/*
 * Returns the last component of the frame's file, as perf prints it, or "??" if it is unknown;
 * valid as long as f->file.
 */
const char *srcline_basename(const struct line_frame *f);

#endif
