/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * p9: a directory of the host for the guest, by the protocol 9P2000.L.
 *
 * Requests and replies as bytes: virtio_9p.c carries them. Formats: Linux,
 * include/net/9p/9p.h and net/9p/client.c; diod's protocol.md for the ".L" messages.
 *
 * The guest is hostile, and can't leave the directory: names are walked one at a time,
 * from a descriptor of the directory they are in, by openat2() with RESOLVE_BENEATH and
 * RESOLVE_NO_SYMLINKS, so that no link of the host is ever followed; ".." is where the
 * walk came from, and never asked of the host. Only regular files and directories are
 * opened. Files that the guest makes belong to whom kvmprof runs as, and get no set-user-ID
 * bits. Set owners are ignored. No extended attributes, no devices, no hard links.
 */
#ifndef KVMPROF_VMM_DEV_P9_H
#define KVMPROF_VMM_DEV_P9_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define P9_MSIZE (256u << 10) /* bytes of a message, the most that we agree to */
#define P9_MAX_FIDS 4096u
/* Descriptors: of files that are open, and of all that a walk has come by to a fid. */
#define P9_MAX_FILES 16384u
#define P9_MAX_WALK 16u /* names in a walk (9P, "walk") */
#define P9_NAME_MAX 255u
#define P9_LINK_MAX 4095u

struct p9;

struct p9_stats {
	uint64_t requests, errors; /* errors: answered with Rlerror */
	uint64_t read_bytes, written_bytes;
};

struct p9_share {
	const char *dir; /* of the host; opened at once */
	bool read_only;
	unsigned int max_files; /* descriptors that the guest makes us hold, at most */
	/*
	 * Descriptor of /proc/self/fd, which p9_create() takes; 0: it opens one. A process that does not see /proc has
	 * it from before (profile/record/sandbox/namespace.h).
	 */
	int proc;
	const char *shown; /* in messages, in place of dir; NULL: dir itself */
};

/* -errno with e set. */
int p9_create(struct p9 **out, const struct p9_share *share, struct err *e);
void p9_destroy(struct p9 *p);
/* Forget all fids: the guest's driver begins anew. */
void p9_reset(struct p9 *p);

/*
 * Answer one request of len bytes: the length of the reply, at most cap, or 0 when it is no
 * request that has an answer (too short to have a tag). cap is at least P9_ERROR_LEN, and
 * what it has no room for is answered with an error. One thread at a time.
 */
size_t p9_handle(struct p9 *p, const uint8_t *request, size_t len, uint8_t *reply, size_t cap);

/* The answer "it failed, for this errno value" to a request: its length, 0 where the request has no tag. */
#define P9_ERROR_LEN 11u
size_t p9_error(const uint8_t *request, size_t len, uint32_t error, uint8_t answer[P9_ERROR_LEN]);

struct p9_stats p9_stats(const struct p9 *p);

#endif
