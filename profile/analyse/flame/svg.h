/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * svg: writes the file of a picture, an SVG or an HTML page around it. The functions keep no state;
 * any thread may call them.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_FLAME_SVG_H
#define KVMPROF_PROFILE_ANALYSE_FLAME_SVG_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/analyse/flame/flamegraph.h"

enum flame_format { FLAME_SVG, FLAME_HTML };

/* Returns the format for a file name: HTML for .html and .htm, otherwise SVG. */
enum flame_format flame_format_of(const char *path);
/*
 * Returns true if path may be the name of a picture: .svg, .html, .htm, no ending, or `-` for
 * standard output. Otherwise stores the reason in *e.
 */
bool flame_path_is_fit(const char *path, struct err *e);

/* Appends the file's bytes to out; out->failed is set if out of memory. */
void flame_write(struct buf *out, const struct flame_picture *p, enum flame_format format);
/* Writes a time such as "1.234 s", "12.345 ms" or "3.210 us", cut to size bytes with the NUL. */
void flame_time(char *out, size_t size, uint64_t ns);

#endif
