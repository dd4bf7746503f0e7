/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * push: a profile to a continuous-profiling back end, as pprof over HTTP POST.
 *
 *   pyroscope  URL/ingest?name=..&from=..&until=..&spyName=kvmprof, multipart/form-data with
 *              the fields profile (pprof) and sample_type_config (JSON). There is no
 *              format=pprof in it: with that the server takes the whole body for a pprof.
 *   connect    URL/push.v1.PusherService/Push, JSON: Pyroscope's own push protocol
 *   parca      URL/api/profiles/writeraw, JSON: WriteRaw of Parca's
 *              parca/profilestore/v1alpha1/profilestore.proto through its gateway
 *
 * Sources: Pyroscope's "Server HTTP API" and pkg/og/convert/pprof (fields of the form),
 * Parca's profilestore.proto and pkg/server/server.go (where the gateway is mounted).
 *
 * A request is bytes, made without a network; push_http.h sends it. Any
 * thread, one at a time.
 */
#ifndef KVMPROF_PROFILE_ANALYSE_EXPORT_PUSH_H
#define KVMPROF_PROFILE_ANALYSE_EXPORT_PUSH_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUSH_LABELS_MAX 32u
#define PUSH_TEXT_MAX 1024u	     /* bytes of a label's name or value */
#define PUSH_URL_MAX 2048u	     /* bytes */
#define PUSH_PROFILE_MAX (64u << 20) /* bytes of pprof */
#define PUSH_TOKEN_MAX 8192u	     /* bytes */

enum push_protocol { PUSH_PYROSCOPE, PUSH_CONNECT, PUSH_PARCA, PUSH_PROTOCOLS };

struct push_label {
	char name[PUSH_TEXT_MAX], value[PUSH_TEXT_MAX];
};

/* What is pushed, and as what. All borrowed. */
struct push_profile {
	const uint8_t *pprof; /* compressed or not */
	size_t len;
	uint64_t began_ns, ended_ns; /* since 1970 */
	const char *event;	     /* of the second sample type: "wall" */
	bool weight_is_ns;
	const char *name; /* the application's */
	const struct push_label *label;
	size_t nlabels;
};

struct push_request {
	char url[PUSH_URL_MAX];
	char content_type[128];
	struct buf body;
};

/* "pyroscope", "connect", "parca"; PUSH_PROTOCOLS: no such name. */
enum push_protocol push_protocol_find(const char *name);

/* "name=value" of the characters that all three take. -EINVAL with the reason. */
int push_label_parse(struct push_label *l, const char *text, struct err *e);
/* The application's name obeys the rules of a label's value. */
int push_name_check(const char *name, struct err *e);
/* http:// or https://, a host, no user, query or fragment. */
int push_url_check(const char *url, struct err *e);

/*
 * path replaces the protocol's, which is appended to url; NULL: the protocol's.
 * -EINVAL, -E2BIG, -ENOMEM. r is to be released in any case.
 */
int push_request_make(struct push_request *r, enum push_protocol protocol, const char *url,
		      const char *path, const struct push_profile *p, struct err *e);
void push_request_deinit(struct push_request *r);

#endif
