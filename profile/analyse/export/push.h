/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * push: a request that sends a profile to a continuous-profiling back end, as pprof over HTTP POST.
 *
 *   pyroscope  URL/ingest?name=..&from=..&until=..&spyName=kvmprof, multipart/form-data with
 *              the fields profile (pprof) and sample_type_config (JSON). There is no
 *              format=pprof in it: with that the server takes the whole body for a pprof.
 *   connect    URL/push.v1.PusherService/Push, JSON: Pyroscope's own push protocol
 *   parca      URL/api/profiles/writeraw, JSON: WriteRaw of Parca's
 *              parca/profilestore/v1alpha1/profilestore.proto through its gateway
 *
 * Sources: Pyroscope's "Server HTTP API" and pkg/og/convert/pprof (fields of the form), Parca's
 * profilestore.proto and pkg/server/server.go (where the gateway is mounted).
 *
 * A request is made in memory, without a network; push_http.h sends it. The functions keep no
 * state; any thread may call them. Errors are -errno with the reason in e.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PUSH_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PUSH_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUSH_LABELS_MAX 32u
#define PUSH_TEXT_MAX 1024u	     /* bytes of a label's name or value, with the NUL */
#define PUSH_URL_MAX 2048u	     /* bytes, with the NUL */
#define PUSH_PROFILE_MAX (64u << 20) /* bytes of pprof */
#define PUSH_TOKEN_MAX 8192u	     /* bytes */

enum push_protocol { PUSH_PYROSCOPE, PUSH_CONNECT, PUSH_PARCA, PUSH_PROTOCOLS };

struct push_label {
	char name[PUSH_TEXT_MAX], value[PUSH_TEXT_MAX];
};

/* A profile to push, with its labels. All pointers are borrowed. */
struct push_profile {
	const uint8_t *pprof; /* compressed or not */
	size_t len;
	uint64_t began_ns, ended_ns; /* times since 1970 */
	const char *event;	     /* name of the second sample type, e.g. "wall" */
	bool weight_is_ns;
	const char *name; /* the application's name */
	const struct push_label *label;
	size_t nlabels;
};

/* A request; body is owned. */
struct push_request {
	char url[PUSH_URL_MAX];
	char content_type[128];
	struct buf body;
};

/* Returns the protocol "pyroscope", "connect" or "parca"; PUSH_PROTOCOLS for any other name. */
enum push_protocol push_protocol_find(const char *name);

/*
 * Parses "name=value"; only characters that all three back ends accept are allowed. Returns 0 or
 * -EINVAL.
 */
int push_label_parse(struct push_label *l, const char *text, struct err *e);
/* Checks the application's name by the rules of a label's value. Returns 0 or -EINVAL. */
int push_name_check(const char *name, struct err *e);
/*
 * Checks that url is http:// or https:// with a host, without user, query or fragment. Returns 0 or
 * -EINVAL.
 */
int push_url_check(const char *url, struct err *e);

/*
 * Makes a request to url with the protocol's path, or with `path` unless that is NULL. Returns 0,
 * -EINVAL, -E2BIG, -ENOMEM, or an error of getrandom(2). The caller calls push_request_deinit() in
 * any case.
 */
int push_request_make(struct push_request *r, enum push_protocol protocol, const char *url,
		      const char *path, const struct push_profile *p, struct err *e);
/* Frees the body. */
void push_request_deinit(struct push_request *r);

#endif
