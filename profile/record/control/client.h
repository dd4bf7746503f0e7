/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_client: sends requests to a running `kvmprof run --control` (docs/control.md).
 *
 * Not thread-safe: one thread uses a client. A server that does not answer within
 * CONTROL_CLIENT_TIMEOUT_MS is an error.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_CLIENT_H
#define KVMPROF_PROFILE_RECORD_CONTROL_CLIENT_H

#include "base/err.h"

#include <jansson.h>

#define CONTROL_CLIENT_TIMEOUT_MS 10000
/* bytes of one line; the server sends at most 16 MiB */
#define CONTROL_CLIENT_MAX_REPLY (17u << 20)

struct control_client;

/*
 * Connects to the socket at path. Returns 0, -ENOENT or -ECONNREFUSED if no run listens there, or
 * another -errno; *e has the reason. The caller frees *out with control_client_close().
 */
int control_client_open(struct control_client **out, const char *path, struct err *e);
/* Closes the connection; NULL is allowed. */
void control_client_close(struct control_client *c);

/*
 * Sends a request and waits for its reply. The reference to `request` is consumed, also on failure
 * (NULL: out of memory). The caller owns *reply and frees it with json_decref(). Returns 0; -EINVAL
 * with the server's text if it refused; -ETIMEDOUT, -EINTR after a signal, -EPIPE if the run has
 * ended, or another -errno.
 */
int control_client_request(struct control_client *c, json_t *request, json_t **reply,
			   struct err *e);

#endif
