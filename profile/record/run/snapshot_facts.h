/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot_facts: what a run knew about its guest when it saved it, as a section of the
 * snapshot ("profile") that the machine does not look at.
 *
 *	u8 flags, u64 slide, u64 slide of physical addresses, then the texts image, symbols,
 *	command line, guest root, nonce, message, each u32 length and the bytes without a NUL
 *
 * The image itself is the section "file:image", a file with its symbols "file:symbols".
 */
#ifndef KVMPROF_PROFILE_RECORD_RUN_SNAPSHOT_FACTS_H
#define KVMPROF_PROFILE_RECORD_RUN_SNAPSHOT_FACTS_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"
#include "profile/record/rootfs/exec_console.h"

#include <stdbool.h>
#include <stdint.h>

#define SNAPSHOT_FACTS "profile"
#define SNAPSHOT_FACTS_VERSION 2u
#define SNAPSHOT_IMAGE "file:image"
#define SNAPSHOT_SYMBOLS "file:symbols"
#define SNAPSHOT_FACTS_TEXT 4096u /* bytes of a name */
#define SNAPSHOT_FACTS_CMDLINE 65536u

struct snapshot_facts {
	bool bzimage;	  /* booted through its decompressor: the kernel may have moved */
	bool slide_known; /* ... and it was known how far */
	uint64_t slide, pa_slide;
	char *image;   /* name for messages; NULL: the embedded demo */
	char *symbols; /* name of the file, or "live"; NULL: the image's own */
	char *cmdline; /* never NULL after parsing */
	/* of --exec */
	bool exec;	  /* the guest runs a command, whose exit status is wanted */
	char *guest_root; /* directory that looks like the guest's; NULL: none */
	char *nonce;	  /* of its message (exec_console.h), EXEC_NONCE_LEN digits; NULL: none */
	char *message;	  /* as much of that as had come; NULL: nothing */
};

/* b.failed tells when there is no memory. */
void snapshot_facts_put(const struct snapshot_facts *f, struct buf *b);
/* The texts are owned: snapshot_facts_deinit(). -EINVAL, -ENOMEM. */
int snapshot_facts_parse(struct snapshot_facts *f, struct cursor *in, struct err *e);
void snapshot_facts_deinit(struct snapshot_facts *f);

#endif
