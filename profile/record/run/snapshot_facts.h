/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * snapshot_facts: what a run knew about its guest when it saved it, as a section of the snapshot
 * ("profile") that the machine does not read:
 *
 *	u8 flags, u64 slide, u64 slide of physical addresses, then the texts image, symbols,
 *	command line, guest root, nonce, message, each u32 length and the bytes without a NUL
 *
 * The image itself is the section "file:image", a file with its symbols "file:symbols". The
 * functions work on their arguments only; any thread.
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
#define SNAPSHOT_FACTS_TEXT 4096u /* longest name, in bytes */
#define SNAPSHOT_FACTS_CMDLINE 65536u

struct snapshot_facts {
	bool bzimage;	  /* booted through its decompressor: the kernel may have moved */
	bool slide_known; /* slide and pa_slide are valid */
	uint64_t slide, pa_slide;
	char *image;   /* name for messages; NULL: the embedded demo */
	char *symbols; /* name of the file, or "live"; NULL: the image's own symbols */
	char *cmdline; /* never NULL after parsing */
	/* Members for --exec: */
	bool exec;	  /* the guest runs a command, whose exit status is wanted */
	char *guest_root; /* directory that looks like the guest's root; NULL: none */
	/* nonce of its message (exec_console.h), EXEC_NONCE_LEN digits; NULL: none */
	char *nonce;
	char *message; /* the part of the message that had come; NULL: nothing */
};

/* Appends the section to *b. A lack of memory sets b->failed. */
void snapshot_facts_put(const struct snapshot_facts *f, struct buf *b);
/*
 * Parses the section. Returns 0, -EINVAL or -ENOMEM with the reason in *e; on success the caller
 * frees the strings with snapshot_facts_deinit().
 */
int snapshot_facts_parse(struct snapshot_facts *f, struct cursor *in, struct err *e);
/* Frees the strings of *f. */
void snapshot_facts_deinit(struct snapshot_facts *f);

#endif
