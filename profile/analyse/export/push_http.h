/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * push_http: sends a request of push.h to its server.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PUSH_HTTP_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PUSH_HTTP_H

#include "profile/analyse/export/push.h"

/* How to get there. All borrowed; NULL: none. */
struct push_access {
	const char *token;	/* sent as Authorization: Bearer, or as the password of user */
	const char *user;	/* Authorization: Basic */
	const char *tenant;	/* X-Scope-OrgID */
	const char *cacert;	/* file with the certificates to trust; NULL: the system's */
	unsigned int timeout_s; /* for the whole exchange */
};

/*
 * One attempt; redirections are not followed. Anything but a status of 2xx is an error, whose
 * text has the first line of the answer. -ETIMEDOUT, -ECONNREFUSED, -EPROTO and others.
 */
int push_send(const struct push_request *r, const struct push_access *a, struct err *e);

#endif
