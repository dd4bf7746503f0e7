/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * image_check: what kvmprof will be able to tell of a kernel, by its image alone.
 *
 * The one place that says so: commands print it, tests of kernels hold it against what
 * must be. Nothing is run and nothing goes by the kernel's version.
 *
 * Pure functions, any thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_IMAGE_CHECK_H
#define KVMPROF_PROFILE_RECORD_GUEST_IMAGE_CHECK_H

#include "base/json.h"
#include "profile/record/guest/target.h"

enum image_check_what {
	IMAGE_CHECK_NAMES,
	IMAGE_CHECK_STACKS,
	/* The others are known of Linux alone. */
	IMAGE_CHECK_TASKS,
	IMAGE_CHECK_MODULES,
	IMAGE_CHECK_MAPPINGS,
	IMAGE_CHECK_FILES,
	IMAGE_CHECK_OFF_CPU,
	IMAGE_CHECK_COUNT
};

enum image_check_answer {
	IMAGE_CHECK_NO,
	IMAGE_CHECK_SEARCHED, /* the image does not tell; the running guest's memory may */
	IMAGE_CHECK_PARTLY,
	IMAGE_CHECK_YES,
};

struct image_check_row {
	enum image_check_answer answer;
	char text[480]; /* by what; and unless it is YES, what is missing or why */
};

struct image_check {
	enum unwind_way way; /* of stacks, as unwind() will decide; of 32-bit code, too */
	unsigned int n;	     /* rows: IMAGE_CHECK_COUNT, or IMAGE_CHECK_TASKS when it is no Linux */
	struct image_check_row row[IMAGE_CHECK_COUNT];
};

/* t: as target_open() leaves it. */
void image_check(const struct target *t, struct image_check *out);

/* "names", "off-CPU" */
const char *image_check_title(enum image_check_what what);
/* "yes", "partly", "searched", "no" */
const char *image_check_answer_name(enum image_check_answer a);

/* {"names":{"answer":"yes","text":"..."},...}, appended. */
void image_check_json(struct json_writer *w, const char *key, const struct image_check *c);

#endif
