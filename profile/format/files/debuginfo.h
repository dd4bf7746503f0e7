/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuginfo: finds the file with the debug information for a build id.
 *
 * The places are searched in this order; the first file that has the build id and source lines is
 * used:
 *
 *   --debuginfo FILE             must have the id: another one is refused
 *   --debuginfo DIR              .build-id/xx/rest.debug, usr/lib/debug/ with the same below
 *                                it and boot/vmlinux-RELEASE; else any file right in DIR
 *   --build-id-map FILE          of `kvmprof scan`
 *   perf's build-id cache        .build-id/xx/rest/debug and elf
 *   /usr/lib/debug               as in DIR
 *   debuginfod                   when DEBUGINFOD_URLS is set; through libdebuginfod, which is
 *                                loaded only then and keeps its own cache
 *
 * The reasons why a place did not help are kept for the error message. Only the places that the
 * user named can make the search fail; without debug information, source lines are missing. Not
 * thread-safe: the caller serialises calls on one object.
 */
#ifndef KVMPROF_PROFILE_FORMAT_FILES_DEBUGINFO_H
#define KVMPROF_PROFILE_FORMAT_FILES_DEBUGINFO_H

#include "base/err.h"
#include "profile/format/files/debuginfod.h"
#include "symbolizer/program/lines.h"

#define DEBUGINFO_MAX_FILE (16ull << 30)
#define DEBUGINFO_MAX_DIR 65536u /* number of files examined in a directory that the user named */

struct debuginfo_places {
	const char *given;		  /* --debuginfo; NULL: not given */
	const char *map_file;		  /* --build-id-map; NULL: not given */
	const char *cache_dir;		  /* perf's build-id cache; NULL: $HOME/.debug */
	const char *release;		  /* the kernel's release; NULL: not known */
	debuginfod_progress_fn *progress; /* called during a download; may be NULL */
	void *progress_ctx;
};

struct debuginfo;

/*
 * Finds the file for a build id of 1 to 20 bytes and opens it. On success, sets *out, which the
 * caller frees with debuginfo_close(). `places` is used during the call only. Returns 0 or
 *   -ENOENT   no file was found; the message lists the places that were searched
 *   -ESTALE   the file given has another build id; the message has both
 *   -errno    for a place given by the user that cannot be used, and for -ENOMEM
 */
int debuginfo_open(struct debuginfo **out, const struct debuginfo_places *places, const uint8_t *id,
		   size_t len, struct err *e);
/* Closes the file and frees d; does nothing for NULL. */
void debuginfo_close(struct debuginfo *d);

/* Returns the source lines. d owns them. */
struct lines *debuginfo_lines(struct debuginfo *d);
/* Returns the path of the file. d owns it. */
const char *debuginfo_path(const struct debuginfo *d);
/* Returns a note on a missing alternate file (.gnu_debugaltlink, made by dwz), or "". d owns it. */
const char *debuginfo_note(const struct debuginfo *d);
/*
 * Return the address range of the executable segments, as linked: where the first segment starts
 * (Linux: _text), and where the last one ends. Only segments in the kernel's half of the address
 * space count, if there are any.
 */
uint64_t debuginfo_text(const struct debuginfo *d);
uint64_t debuginfo_text_end(const struct debuginfo *d);

#endif
