/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * p9_process: a share (p9.h) in a process of its own, which alone opens the share's files.
 *
 * It has no descriptor of the machine's and none of the guest's memory: requests and replies lie in
 * memory of both processes, and a socket says whose turn it is. Nothing that it says is trusted
 * but as bytes for the guest. When it ends, or the socket does, the other side is told so.
 *
 * A request of the guest is awaited for as long as it takes; all others for P9_ANSWER_MS.
 *
 * One thread at a time. A call that finds the process gone returns -EPIPE, and so does each after it.
 */
#ifndef KVMPROF_VMM_DEV_P9_PROCESS_H
#define KVMPROF_VMM_DEV_P9_PROCESS_H

#include "vmm/dev/p9.h"

/* Within two seconds after a signal a run has ended, whatever a share does. */
#define P9_ANSWER_MS 1000

struct p9_process;

/*
 * Binds the process, in it and before it opens the share. bind() may change `dir`, `proc` and `shown` of the share where
 * the process sees other names from then on. It returns 0 or -errno with e set; NULL: not bound.
 */
struct p9_confine {
	int (*bind)(void *ctx, struct p9_share *share, struct err *e);
	void *ctx;
};

/*
 * Before the process has threads whose locks the new one could find taken. -errno with e set, also where the
 * share can't be opened.
 */
int p9_process_start(struct p9_process **out, const struct p9_share *share,
		     const struct p9_confine *confine, struct err *e);
/*
 * Ends it. A process that does not end within a moment, because it is stopped or its file system does not answer, is
 * killed, also where this process may send it no signal. NULL is fine.
 */
void p9_process_end(struct p9_process *p);
/* Ends the conversation. Any thread, also while another one waits for an answer, which gets -EPIPE then. */
void p9_process_kill(struct p9_process *p);

/* P9_MSIZE bytes each. The reply's may change at any time. */
uint8_t *p9_process_request(struct p9_process *p);
const uint8_t *p9_process_reply(const struct p9_process *p);

/* p9_handle() of the first len bytes of the request: *out <= cap, cap <= P9_MSIZE. */
int p9_process_handle(struct p9_process *p, size_t len, size_t cap, size_t *out);
int p9_process_reset(struct p9_process *p);
int p9_process_save(struct p9_process *p, struct buf *out, struct err *e);
int p9_process_restore(struct p9_process *p, struct cursor *in, struct err *e);

/* After -EPIPE: how it ended, as words behind "it ". */
const char *p9_process_how(struct p9_process *p);

#endif
