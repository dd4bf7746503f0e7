/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuginfo: the file with the debug information of a build id.
 *
 * Looked for in this order; the first file that proves its build id and has source
 * lines is taken:
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
 * Why a place did not help is kept for the message. No place but those given by the user
 * can make the search fail: what is missing costs lines, not the run. One thread.
 */
#ifndef KVMPROF_PROFILE_FORMAT_FILES_DEBUGINFO_H
#define KVMPROF_PROFILE_FORMAT_FILES_DEBUGINFO_H

#include "base/err.h"
#include "profile/format/files/debuginfod.h"
#include "symbolizer/program/lines.h"

#define DEBUGINFO_MAX_FILE (16ull << 30)
#define DEBUGINFO_MAX_DIR 65536u /* files looked at in a directory given by the user */

struct debuginfo_places {
	const char *given;		  /* --debuginfo, NULL: not given */
	const char *map_file;		  /* --build-id-map, NULL: not given */
	const char *cache_dir;		  /* perf's cache; NULL: $HOME/.debug */
	const char *release;		  /* the kernel's; NULL: not known */
	debuginfod_progress_fn *progress; /* while something is fetched; may be NULL */
	void *progress_ctx;
};

struct debuginfo;

/*
 * Find and open. id: 1 to 20 bytes.
 *   -ENOENT   there is none; the message says where it was looked for
 *   -ESTALE   the file given has another build id; both are in the message
 *   others    a place given by the user can't be used
 */
int debuginfo_open(struct debuginfo **out, const struct debuginfo_places *places, const uint8_t *id,
		   size_t len, struct err *e);
void debuginfo_close(struct debuginfo *d);

struct lines *debuginfo_lines(struct debuginfo *d);
const char *debuginfo_path(const struct debuginfo *d);
/* What is missing although a file was found (the one that dwz made), or "". */
const char *debuginfo_note(const struct debuginfo *d);
/*
 * Executable segments of the kernel's half, or of all when it has none there: where the
 * first starts (Linux: _text as linked), and where the last ends.
 */
uint64_t debuginfo_text(const struct debuginfo *d);
uint64_t debuginfo_text_end(const struct debuginfo *d);

#endif
