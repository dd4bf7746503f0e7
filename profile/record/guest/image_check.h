/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * image_check: what kvmprof will be able to report about a kernel, judged by its image only.
 *
 * This is the only place that decides it: commands print it, and tests of kernels compare it with
 * what must be. Nothing is run, and the kernel's version does not matter. All functions are pure
 * and may be called by any thread.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_IMAGE_CHECK_H
#define KVMPROF_PROFILE_RECORD_GUEST_IMAGE_CHECK_H

#include "base/json.h"
#include "profile/record/guest/target.h"

enum image_check_what {
	IMAGE_CHECK_NAMES,
	IMAGE_CHECK_STACKS,
	/* the following are known for Linux only */
	IMAGE_CHECK_TASKS,
	IMAGE_CHECK_MODULES,
	IMAGE_CHECK_MAPPINGS,
	IMAGE_CHECK_FILES,
	IMAGE_CHECK_OFF_CPU,
	IMAGE_CHECK_COUNT
};

enum image_check_answer {
	IMAGE_CHECK_NO,
	IMAGE_CHECK_SEARCHED, /* the image does not contain it; the running guest's memory may */
	IMAGE_CHECK_PARTLY,
	IMAGE_CHECK_YES,
};

struct image_check_row {
	enum image_check_answer answer;
	/* the source of the information; unless the answer is YES also what is missing or why */
	char text[480];
};

struct image_check {
	/* how stacks will be unwound, as unwind() decides; also for 32-bit code */
	enum unwind_method way;
	/* number of rows: IMAGE_CHECK_COUNT, or IMAGE_CHECK_TASKS if the kernel is not Linux */
	unsigned int n;
	struct image_check_row row[IMAGE_CHECK_COUNT];
};

/* Fills in *out. *t must be as target_open() leaves it. */
void image_check(const struct target *t, struct image_check *out);

/* Returns a static title such as "names" or "off-CPU". */
const char *image_check_title(enum image_check_what what);
/* Returns "yes", "partly", "searched" or "no". */
const char *image_check_answer_name(enum image_check_answer a);

/*
 * Appends the member {"names":{"answer":"yes","text":"..."},...} named `key` to the JSON object
 * that is open in *w.
 */
void image_check_json(struct json_writer *w, const char *key, const struct image_check *c);

#endif
