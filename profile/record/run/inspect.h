/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inspect: an image and all that `run` would find out about it, as text or JSON.
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
	bool have_kernel; /* source.target is there */
};

/* Also after a failure there may be something to tell; close it in any case. */
int inspect_open(struct inspect *in, const char *path, struct err *e);
void inspect_close(struct inspect *in);

/* Appended. What a disk says is made harmless: control characters become '?'. */
void inspect_text(const struct inspect *in, struct buf *out);
/* why: of a failed inspect_open(), else NULL. */
void inspect_json(const struct inspect *in, const struct err *why, struct buf *out);

#endif
