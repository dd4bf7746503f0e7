/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * push_send() through libcurl, which is loaded on demand, as in debuginfod.h and for the same
 * reason: a run should neither load nor require an HTTP stack.
 */
#include "profile/analyse/export/push_http.h"

#include "base/cleanup.h"
#include "base/library.h"

#define CURL_DISABLE_TYPECHECK /* its macros do not work with function pointers */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CURL_SONAME "libcurl.so.4"
#define ANSWER_MAX 200u /* bytes of the server's answer shown in messages */
#define CONNECT_TIMEOUT_S 10L

/* clang-format off */
#define FUNCTIONS(X) \
	X(curl_global_init) \
	X(curl_easy_init) \
	X(curl_easy_setopt) \
	X(curl_easy_perform) \
	X(curl_easy_getinfo) \
	X(curl_easy_strerror) \
	X(curl_easy_cleanup) \
	X(curl_slist_append) \
	X(curl_slist_free_all)
/* clang-format on */

struct push_http_functions {
	FUNCTIONS(LIBRARY_MEMBER)
};

static const char *const function_names[] = { FUNCTIONS(LIBRARY_NAME) };

struct answer {
	char text[ANSWER_MAX + 1]; /* first line of the answer */
	size_t len;
	bool line_ended;
	char why[CURL_ERROR_SIZE]; /* curl's message if there was no answer */
};

static int push_http_load(struct push_http_functions *lib, struct err *e)
{
	const struct library want = {
		.soname = CURL_SONAME,
		.what = "cannot push",
		.hint = "install libcurl4",
		.names = function_names,
		.nnames = ARRAY_SIZE(function_names),
	};
	int ret = library_load(&want, (void **)lib, e);

	if (!ret && lib->curl_global_init(CURL_GLOBAL_DEFAULT))
		ret = err_set(e, EIO, "cannot push: libcurl does not start");
	return ret;
}

/* Keeps the first line of the answer as printable ASCII, because it is shown on a terminal. */
static size_t on_answer(char *data, size_t size, size_t n, void *ctx)
{
	struct answer *a = ctx;

	for (size_t i = 0; i < size * n && !a->line_ended && a->len < ANSWER_MAX; i++) {
		if (data[i] == '\n' || data[i] == '\r')
			a->line_ended = a->len > 0;
		else
			a->text[a->len++] = data[i] >= 0x20 && data[i] < 0x7f ? data[i] : '?';
	}
	return size * n;
}

static int add_header(const struct push_http_functions *lib, struct curl_slist **list,
		      const char *name, const char *value, struct err *e)
{
	cleanup_free char *text = NULL;
	struct curl_slist *longer = NULL;

	if (asprintf(&text, "%s: %s", name, value) >= 0)
		longer = lib->curl_slist_append(*list, text);
	if (!longer)
		return err_nomem(e);
	*list = longer;
	return 0;
}

static int headers(const struct push_http_functions *lib, const struct push_request *r,
		   const struct push_access *a, struct curl_slist **list, struct err *e)
{
	cleanup_free char *bearer = NULL;
	int ret = add_header(lib, list, "Content-Type", r->content_type, e);

	if (ret)
		return ret;
	/*
	 * Without this, curl would first ask for permission to send, and wait a second for the
	 * answer.
	 */
	ret = add_header(lib, list, "Expect", "", e);
	if (!ret && a->tenant)
		ret = add_header(lib, list, "X-Scope-OrgID", a->tenant, e);
	if (ret || !a->token || a->user)
		return ret;
	if (asprintf(&bearer, "Bearer %s", a->token) < 0)
		return err_nomem(e);
	return add_header(lib, list, "Authorization", bearer, e);
}

static int errno_of(CURLcode code)
{
	switch (code) {
	case CURLE_OPERATION_TIMEDOUT:
		return ETIMEDOUT;
	case CURLE_COULDNT_CONNECT:
		return ECONNREFUSED;
	case CURLE_COULDNT_RESOLVE_HOST:
		return EHOSTUNREACH;
	case CURLE_OUT_OF_MEMORY:
		return ENOMEM;
	default:
		return EPROTO;
	}
}

static const char *advice(long status)
{
	switch (status) {
	case 401:
	case 403:
		return "; see --token-file and --user";
	case 404:
		return "; see --protocol and --path";
	case 413:
		return "; the profile is too large for this server";
	default:
		return status / 100 == 3 ? "; redirections are not followed, give the final URL"
					 : "";
	}
}

static int push_http_judge(long status, const char *url, const struct answer *a, struct err *e)
{
	if (status / 100 == 2)
		return 0;
	return err_set(e, status == 401 || status == 403 ? EACCES : EPROTO,
		       "cannot push to %.160s: HTTP status %ld%s%s%s", url, status,
		       a->len ? ": " : "", a->text, advice(status));
}

static void push_http_set_options(const struct push_http_functions *lib, CURL *c,
				  const struct push_request *r, const struct push_access *a,
				  struct curl_slist *list, struct answer *answer)
{
	lib->curl_easy_setopt(c, CURLOPT_URL, r->url);
	lib->curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	lib->curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	lib->curl_easy_setopt(c, CURLOPT_POST, 1L);
	lib->curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.len);
	lib->curl_easy_setopt(c, CURLOPT_POSTFIELDS, (const char *)r->body.data);
	lib->curl_easy_setopt(c, CURLOPT_HTTPHEADER, list);
	lib->curl_easy_setopt(c, CURLOPT_USERAGENT, "kvmprof/" KVMPROF_VERSION);
	lib->curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)a->timeout_s);
	lib->curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S);
	lib->curl_easy_setopt(c, CURLOPT_ERRORBUFFER, answer->why);
	lib->curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_answer);
	lib->curl_easy_setopt(c, CURLOPT_WRITEDATA, answer);
	if (a->cacert)
		lib->curl_easy_setopt(c, CURLOPT_CAINFO, a->cacert);
	if (a->user) {
		lib->curl_easy_setopt(c, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		lib->curl_easy_setopt(c, CURLOPT_USERNAME, a->user);
		lib->curl_easy_setopt(c, CURLOPT_PASSWORD, a->token ? a->token : "");
	}
}

static int no_answer(const struct push_http_functions *lib, CURL *c, CURLcode code, const char *url,
		     const char *why, struct err *e)
{
	long os = 0;

	/* curl reports that it could not connect, but not why. */
	if (code == CURLE_COULDNT_CONNECT)
		lib->curl_easy_getinfo(c, CURLINFO_OS_ERRNO, &os);
	return err_set(e, errno_of(code), "cannot push to %.160s: %s%s%s", url,
		       *why ? why : lib->curl_easy_strerror(code), os ? ": " : "",
		       os ? strerror((int)os) : "");
}

int push_send(const struct push_request *r, const struct push_access *a, struct err *e)
{
	struct curl_slist *list = NULL;
	struct push_http_functions lib;
	struct answer answer = { .len = 0 };
	int shown = (int)strcspn(r->url, "?");
	cleanup_free char *url = strndup(r->url, (size_t)shown);
	long status = 0;
	CURLcode code;
	CURL *c;
	int ret = url ? push_http_load(&lib, e) : err_nomem(e);

	if (ret)
		return ret;
	c = lib.curl_easy_init();
	ret = c ? headers(&lib, r, a, &list, e) : err_nomem(e);
	if (!ret) {
		push_http_set_options(&lib, c, r, a, list, &answer);
		code = lib.curl_easy_perform(c);
		if (code)
			ret = no_answer(&lib, c, code, url, answer.why, e);
	}
	if (!ret) {
		lib.curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
		ret = push_http_judge(status, url, &answer, e);
	}
	lib.curl_slist_free_all(list);
	if (c)
		lib.curl_easy_cleanup(c);
	return ret;
}
