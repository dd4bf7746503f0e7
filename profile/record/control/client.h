/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control_client: requests to a running `kvmprof run --control` (docs/control.md).
 *
 * One thread. A server that does not answer within CONTROL_CLIENT_TIMEOUT_MS is an error.
 */
#ifndef KVMPROF_PROFILE_RECORD_CONTROL_CLIENT_H
#define KVMPROF_PROFILE_RECORD_CONTROL_CLIENT_H

#include "base/err.h"

#include <jansson.h>

#define CONTROL_CLIENT_TIMEOUT_MS 10000
#define CONTROL_CLIENT_MAX_REPLY (17u << 20) /* bytes of one line; the server's cap is 16 MiB */

struct control_client;

/* -ENOENT, -ECONNREFUSED: nobody listens there. */
int control_client_open(struct control_client **out, const char *path, struct err *e);
void control_client_close(struct control_client *c);

/*
 * Send a request, whose reference is taken over, and wait for its reply, which the
 * caller owns. A reply that says no is an error with the server's words.
 */
int control_client_ask(struct control_client *c, json_t *request, json_t **reply, struct err *e);

#endif
