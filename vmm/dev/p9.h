/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * p9: serves a directory of the host to the guest with the protocol 9P2000.L.
 *
 * Requests and replies are byte strings, which virtio_9p.c transports. Formats: Linux,
 * include/net/9p/9p.h and net/9p/client.c; diod's protocol.md for the ".L" messages.
 *
 * The guest may be hostile, and cannot leave the directory. Names are walked one at a time, from a
 * descriptor of their directory, by openat2() with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, so a
 * link of the host is never followed. ".." returns to the node from which the walk came, without
 * the host. Only regular files and directories are opened. Files that the guest creates belong to
 * the user who runs kvmprof and get no set-user-ID bits. Owners cannot be set. There are no
 * extended attributes, devices or hard links.
 *
 * One thread at a time uses a struct p9.
 */
#ifndef KVMPROF_VMM_DEV_P9_H
#define KVMPROF_VMM_DEV_P9_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define P9_MSIZE (256u << 10) /* maximum bytes of a message that the server accepts */
#define P9_MAX_FIDS 4096u
/* The maximum number of descriptors for open files, and for all nodes that fids refer to. */
#define P9_MAX_FILES 16384u
#define P9_MAX_WALK 16u /* maximum number of names in a walk (9P, "walk") */
#define P9_NAME_MAX 255u
#define P9_LINK_MAX 4095u

struct p9;

struct p9_stats {
	uint64_t requests, errors; /* errors: requests answered with Rlerror */
	uint64_t read_bytes, written_bytes;
};

struct p9_share {
	const char *dir; /* directory of the host; opened by p9_create() */
	bool read_only;
	unsigned int max_files; /* maximum number of descriptors that are open for the guest */
	/*
	 * Descriptor of /proc/self/fd, which p9_create() takes over; 0: p9_create() opens it. A
	 * process without access to /proc has opened it before
	 * (profile/record/sandbox/namespace.h).
	 */
	int proc;
	const char *shown; /* name for messages; NULL: dir itself */
};

/*
 * Opens the directory. Returns 0, or -errno with *e recorded. The caller frees *out with
 * p9_destroy().
 */
int p9_create(struct p9 **out, const struct p9_share *share, struct err *e);
void p9_destroy(struct p9 *p);
/* Forgets all fids, because the guest's driver restarts. */
void p9_reset(struct p9 *p);

/*
 * Answers one request of len bytes. Returns the length of the reply, at most cap, or 0 if the
 * request is too short to have a tag. cap is at least P9_ERROR_LEN; a reply that does not fit is
 * replaced by an error.
 */
size_t p9_handle(struct p9 *p, const uint8_t *request, size_t len, uint8_t *reply, size_t cap);

/*
 * Writes the reply "failed with this errno value" to a request. Returns its length, or 0 if the
 * request has no tag. Any thread.
 */
#define P9_ERROR_LEN 11u
size_t p9_error(const uint8_t *request, size_t len, uint32_t error, uint8_t answer[P9_ERROR_LEN]);

/* Returns the counters. */
struct p9_stats p9_stats(const struct p9 *p);

#endif
