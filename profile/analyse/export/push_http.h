/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * push_http: sends a request of push.h to its server. Any thread may call push_send(), one at a
 * time.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PUSH_HTTP_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PUSH_HTTP_H

#include "profile/analyse/export/push.h"

/* Access to the server. All pointers are borrowed; NULL: none. */
struct push_access {
	const char *token;	/* sent as Authorization: Bearer, or as the password of user */
	const char *user;	/* Authorization: Basic */
	const char *tenant;	/* X-Scope-OrgID */
	const char *cacert;	/* file with the trusted certificates; NULL: the system's */
	unsigned int timeout_s; /* limit for the whole exchange, in seconds */
};

/*
 * Sends the request once and waits for the answer; redirections are not followed. A status other
 * than 2xx is an error, whose message has the first line of the answer. Returns 0, -EACCES (status
 * 401 or 403), -EPROTO (other status), -ETIMEDOUT, -ECONNREFUSED or another -errno.
 */
int push_send(const struct push_request *r, const struct push_access *a, struct err *e);

#endif
