/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * why_log: the log of a guest's kernel, as text or as JSON.
 *
 * Called on the consumer's thread. Nothing is written into the guest.
 */
#ifndef KVMPROF_PROFILE_RECORD_WHY_LOG_H
#define KVMPROF_PROFILE_RECORD_WHY_LOG_H

#include "base/buf.h"
#include "profile/record/guest/guest.h"
#include "symbolizer/linux/printk.h"

#include <jansson.h>

#define WHY_LOG_LEVELS 8u
#define WHY_LOG_ALL_LEVELS 0xffu

enum why_log_form {
	WHY_LOG_TEXT, /* lines, as the guest's own dmesg prints them */
	WHY_LOG_RAW,  /* the same with "<N>" in front, as syslog(2) returns them */
	WHY_LOG_JSON, /* one object: docs/why.md */
};

struct why_log_request {
	enum why_log_form form;
	size_t most;	     /* the last so many lines (JSON: records); SIZE_MAX: all */
	unsigned int levels; /* bit N: records of level N */
};

/*
 * Appends what is requested to *out, and stores in *losses what is missing. Returns 0; -EAGAIN if
 * the kernel is not known yet; -ENOENT, -EFAULT or -ENOMEM as linux_printk_read(). *e has the
 * reason.
 */
int why_log_read(struct guest *g, const struct why_log_request *q, struct buf *out,
		 struct linux_printk_losses *losses, struct err *e);

/*
 * Returns bytes of the guest as a string of JSON, up to a NUL, with U+FFFD for what is not UTF-8. The
 * caller owns the result; NULL: memory is exhausted.
 */
json_t *why_json_bytes(const char *text, size_t len);
json_t *why_json_text(const char *text);
/* Returns the name of a level, as in `dmesg --level`, or NULL beyond the last one. */
const char *why_log_level_name(unsigned int level);

#endif
