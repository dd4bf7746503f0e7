/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inspect: an image and all that `run` would find out about it, as text or JSON. Not thread-safe:
 * one thread uses an object.
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_INSPECT_H
#define KVMPROF_PROFILE_RECORD_RUN_INSPECT_H

#include "base/buf.h"
#include "base/err.h"
#include "vmm/bootdisk/image_kind.h"
#include "profile/record/run/source.h"

struct inspect {
	const char *path; /* borrowed */
	struct image_what what;
	struct run_source source;
	bool have_kernel; /* source.target is valid */
};

/*
 * Examines the file at path, which is borrowed. Returns 0 or -errno with the reason in *e. Even
 * after a failure inspect_text() and inspect_json() print what was found. The caller always frees
 * it with inspect_close().
 */
int inspect_open(struct inspect *in, const char *path, struct err *e);
/* Frees what *in owns. */
void inspect_close(struct inspect *in);

/*
 * Appends a description. Control characters from a disk become '?'. A lack of memory sets
 * out->failed.
 */
void inspect_text(const struct inspect *in, struct buf *out);
/*
 * Appends a JSON object. why: the error of a failed inspect_open(), else NULL. A lack of memory
 * sets out->failed.
 */
void inspect_json(const struct inspect *in, const struct err *why, struct buf *out);

#endif
