/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * p9_process: serves a share (p9.h) in a process of its own, the only one that opens the share's
 * files.
 *
 * The process has no descriptor of the machine and none of the guest's memory. Requests and replies
 * are in memory shared by both processes, and messages on a socket transfer control. Its replies
 * are trusted only as bytes for the guest. When the process or the socket ends, the other side
 * notices.
 *
 * A reply to a guest's request may take any time; all other replies must arrive within
 * P9_ANSWER_MS.
 *
 * Not thread-safe except where stated: one thread at a time. If a call finds that the process is
 * gone, it and all later calls return -EPIPE.
 */
#ifndef KVMPROF_VMM_DEV_P9_PROCESS_H
#define KVMPROF_VMM_DEV_P9_PROCESS_H

#include "vmm/dev/p9.h"

/*
 * The limit for replies, in ms. A run ends within two seconds after a signal, whatever a share
 * does.
 */
#define P9_ANSWER_MS 1000

struct p9_process;

/*
 * Confines the process, before it opens the share. bind() runs in the process and may change `dir`,
 * `proc` and `shown` of the share if the process sees other names from then on. It returns 0, or
 * -errno with *e recorded; NULL: not confined.
 */
struct p9_confine {
	int (*bind)(void *ctx, struct p9_share *share, struct err *e);
	void *ctx;
};

/*
 * Starts the process. Call it before this process has threads whose locks the child could inherit
 * locked. Returns 0, or -errno with *e recorded, also if the share cannot be opened. The caller
 * ends it with p9_process_end().
 */
int p9_process_start(struct p9_process **out, const struct p9_share *share,
		     const struct p9_confine *confine, struct err *e);
/*
 * Ends the process and frees *p. A process that does not end within 100 ms, because it is stopped
 * or its file system does not respond, is killed, also if this process may not send it signals.
 * Accepts NULL.
 */
void p9_process_end(struct p9_process *p);
/*
 * Closes the connection and kills the process. Any thread may call it; a thread that waits for a
 * reply then gets -EPIPE.
 */
void p9_process_kill(struct p9_process *p);

/* Returns the area for a request, P9_MSIZE bytes, which belongs to *p. */
uint8_t *p9_process_request(struct p9_process *p);
/*
 * Returns the area for a reply, P9_MSIZE bytes, which belongs to *p. The process may change it at
 * any time.
 */
const uint8_t *p9_process_reply(const struct p9_process *p);

/*
 * Calls p9_handle() in the process for the first len bytes of the request area, and stores the
 * length of the reply in *out, at most cap; cap <= P9_MSIZE. Returns 0, -EPIPE or another -errno.
 */
int p9_process_handle(struct p9_process *p, size_t len, size_t cap, size_t *out);
/* Calls p9_reset() in the process. Returns its result, or -EPIPE. */
int p9_process_reset(struct p9_process *p);
/* Calls p9_save() in the process. Returns its result, or -EPIPE. */
int p9_process_save(struct p9_process *p, struct buf *out, struct err *e);
/* Calls p9_restore() in the process. Returns its result, or -EPIPE. */
int p9_process_restore(struct p9_process *p, struct cursor *in, struct err *e);

/* Returns how the process ended, as text that follows "it ". Valid after -EPIPE; belongs to *p. */
const char *p9_process_how(struct p9_process *p);

#endif
