/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * svg: the file of a picture: an SVG, or an HTML page around it.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_FLAME_SVG_H
#define KVMPROF_PROFILE_ANALYSE_FLAME_SVG_H

#include "base/buf.h"
#include "base/err.h"
#include "profile/analyse/flame/flamegraph.h"

enum flame_format { FLAME_SVG, FLAME_HTML };

/* Returns the format that a file's ending names: HTML for .html and .htm, otherwise SVG. */
enum flame_format flame_format_of(const char *path);
/* Returns whether a picture may have this name: .svg, .html, .htm, or no ending; `-` is standard output. Records
 * what is wrong with another one in *e. */
bool flame_path_is_fit(const char *path, struct err *e);

/* The file's bytes, appended; out->failed tells of lack of memory. */
void flame_write(struct buf *out, const struct flame_picture *p, enum flame_format format);
/* "1.234 s", "12.345 ms", "3.210 us" */
void flame_time(char *out, size_t size, uint64_t ns);

#endif
