/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/export/push.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "profile/analyse/export/export.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static const struct {
	const char *name, *path;
} protocols[PUSH_PROTOCOLS] = {
	[PUSH_PYROSCOPE] = { "pyroscope", "/ingest" },
	[PUSH_CONNECT] = { "connect", "/push.v1.PusherService/Push" },
	[PUSH_PARCA] = { "parca", "/api/profiles/writeraw" },
};

enum push_protocol push_protocol_find(const char *name)
{
	unsigned int i = 0;

	while (i < PUSH_PROTOCOLS && strcmp(protocols[i].name, name))
		i++;
	return (enum push_protocol)i;
}

/* -- what the user says ---------------------------------------------------------------------- */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Refuses characters that Pyroscope's ?name=app{a=b,c=d} cannot quote. */
static int value_check(const char *what, const char *value, struct err *e)
{
	cleanup_free char *utf8 = utf8_copy(value);

	if (!utf8)
		return err_nomem(e);
	if (!*value || strlen(value) >= PUSH_TEXT_MAX)
		return err_set(e, EINVAL, "%s: expected 1 to %u bytes", what, PUSH_TEXT_MAX - 1);
	if (strcmp(utf8, value))
		return err_set(e, EINVAL, "%s: not valid UTF-8", what);
	for (const char *p = value; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f || strchr("{},=\"", *p))
			return err_set(e, EINVAL,
				       "%s: control characters and any of {},=\" are not allowed",
				       what);
	return 0;
}

int push_label_parse(struct push_label *l, const char *text, struct err *e)
{
	const char *equals = strchr(text, '=');
	size_t n = equals ? (size_t)(equals - text) : 0;

	if (!n || n >= PUSH_TEXT_MAX)
		return err_set(e, EINVAL, "label '%.60s': expected NAME=VALUE", text);
	for (size_t i = 0; i < n; i++)
		if (!is_letter(text[i]) && !(i && text[i] >= '0' && text[i] <= '9'))
			return err_set(e, EINVAL,
				       "label '%.60s': a name consists of letters, digits and _, "
				       "and does not begin with a digit",
				       text);
	if (value_check("label value", equals + 1, e))
		return -EINVAL;
	memcpy(l->name, text, n);
	l->name[n] = '\0';
	memcpy(l->value, equals + 1, strlen(equals + 1) + 1);
	if (!strcmp(l->name, "__name__") || !strcmp(l->name, "service_name") ||
	    !strcmp(l->name, "job"))
		return err_set(e, EINVAL, "label '%s' is set by --name", l->name);
	return 0;
}

int push_name_check(const char *name, struct err *e)
{
	return value_check("--name", name, e);
}

int push_url_check(const char *url, struct err *e)
{
	size_t scheme = !strncmp(url, "https://", 8) ? 8 : !strncmp(url, "http://", 7) ? 7 : 0;
	const char *host = url + scheme;

	if (!scheme || !*host || *host == '/')
		return err_set(e, EINVAL,
			       "'%.200s' is not a URL: expected http://HOST or https://HOST", url);
	for (const char *p = url; *p; p++)
		if ((unsigned char)*p <= 0x20 || *p == 0x7f)
			return err_set(e, EINVAL, "the URL has a blank or a control character");
	if (strcspn(host, "@") < strcspn(host, "/"))
		return err_set(e, EINVAL,
			       "the URL contains a user, which logs would show: use --user");
	if (strpbrk(host, "?#"))
		return err_set(e, EINVAL, "the URL has a query or fragment: give the server alone");
	return 0;
}

/* -- requests ---------------------------------------------------------------------------------- */

static void push_add(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

/* Appends a text with all characters escaped except those of RFC 3986, section 2.3. */
static void add_escaped(struct buf *b, const char *text)
{
	for (; *text; text++) {
		if (is_letter(*text) || (*text >= '0' && *text <= '9') || strchr("-.~", *text))
			buf_u8(b, (uint8_t)*text);
		else
			buf_printf(b, "%%%02X", (unsigned char)*text);
	}
}

/* Appends data as in RFC 4648, section 4. */
static void add_base64(struct buf *b, const uint8_t *data, size_t len)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < len; i += 3) {
		size_t n = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)data[i] << 16 | (n > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
			     (n > 2 ? data[i + 2] : 0);
		char four[4] = { digit[v >> 18], digit[v >> 12 & 63], digit[v >> 6 & 63],
				 digit[v & 63] };

		if (n < 3)
			four[3] = '=';
		if (n < 2)
			four[2] = '=';
		buf_add(b, four, sizeof(four));
	}
}

/* Appends ?name=app{label=value,...}&from=...; times are seconds since 1970. */
static void pyroscope_query(struct buf *url, const struct push_profile *p)
{
	struct buf name;

	buf_init(&name);
	push_add(&name, p->name);
	for (size_t i = 0; i < p->nlabels; i++)
		buf_printf(&name, "%c%s=%s", i ? ',' : '{', p->label[i].name, p->label[i].value);
	push_add(&name, p->nlabels ? "}" : "");
	buf_u8(&name, 0);
	push_add(url, "?name=");
	if (name.failed)
		url->failed = true;
	else
		add_escaped(url, (const char *)name.data);
	/* The server requires a span, so it has at least one second. */
	buf_printf(url, "&from=%" PRIu64 "&until=%" PRIu64 "&spyName=kvmprof",
		   p->began_ns / 1000000000, p->ended_ns / 1000000000 + 1);
	buf_deinit(&name);
}

/*
 * Appends sample_type_config; without it the server drops sample types whose names it does not
 * know.
 */
static void sample_types(struct buf *b, const struct push_profile *p)
{
	struct json_writer w;

	json_begin(&w, b);
	json_object_begin(&w, NULL);
	json_put_object(&w, "samples", "units", "samples", "aggregation", "sum", "display-name",
			"samples");
	json_put_object(&w, p->event, "units", p->weight_is_ns ? "nanoseconds" : "samples",
			"aggregation", "sum", "display-name", p->event);
	json_object_end(&w);
}

static int pyroscope_body(struct push_request *r, const struct push_profile *p, struct err *e)
{
	char boundary[48];
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_set(e, errno, "getrandom: %s", strerror(errno));
	/* 128 random bits do not occur in the profile. */
	snprintf(boundary, sizeof(boundary), "kvmprof-%016" PRIx64 "%016" PRIx64, random[0],
		 random[1]);
	snprintf(r->content_type, sizeof(r->content_type), "multipart/form-data; boundary=%s",
		 boundary);
	buf_printf(&r->body,
		   "--%s\r\nContent-Disposition: form-data; name=\"profile\"; "
		   "filename=\"profile.pprof\"\r\nContent-Type: application/octet-stream\r\n\r\n",
		   boundary);
	buf_add(&r->body, p->pprof, p->len);
	buf_printf(&r->body,
		   "\r\n--%s\r\nContent-Disposition: form-data; name=\"sample_type_config\"; "
		   "filename=\"sample_type_config.json\"\r\nContent-Type: application/json\r\n\r\n",
		   boundary);
	sample_types(&r->body, p);
	buf_printf(&r->body, "\r\n--%s--\r\n", boundary);
	return 0;
}

/* Makes a body in protobuf's JSON mapping: lowerCamelCase names, bytes in base64. */
static void json_body(struct push_request *r, bool parca, const struct push_profile *p)
{
	struct json_writer w;
	struct buf base64;

	snprintf(r->content_type, sizeof(r->content_type), "application/json");
	buf_init(&base64);
	add_base64(&base64, p->pprof, p->len);
	buf_u8(&base64, 0);
	json_begin(&w, &r->body);
	json_object_begin(&w, NULL);
	json_array_begin(&w, "series");
	json_object_begin(&w, NULL);
	if (parca)
		json_object_begin(&w, "labels");
	json_array_begin(&w, "labels");
	/* __name__ is the type of profile, such as process_cpu. */
	json_put_object(&w, NULL, "name", "__name__", "value", "kvmprof");
	json_put_object(&w, NULL, "name", parca ? "job" : "service_name", "value", p->name);
	for (size_t i = 0; i < p->nlabels; i++)
		json_put_object(&w, NULL, "name", p->label[i].name, "value", p->label[i].value);
	json_array_end(&w);
	if (parca)
		json_object_end(&w);
	json_array_begin(&w, "samples");
	if (base64.failed)
		r->body.failed = true;
	else
		json_put_object(&w, NULL, "rawProfile", (const char *)base64.data);
	json_array_end(&w);
	json_object_end(&w);
	json_array_end(&w);
	/* Addresses of user code are addresses in files already. */
	if (parca)
		json_bool(&w, "normalized", true);
	json_object_end(&w);
	buf_deinit(&base64);
}

int push_request_make(struct push_request *r, enum push_protocol protocol, const char *url,
		      const char *path, const struct push_profile *p, struct err *e)
{
	size_t base = strlen(url);
	struct buf to;
	int ret = 0;

	memset(r, 0, sizeof(*r));
	buf_init(&r->body);
	if (p->len > PUSH_PROFILE_MAX)
		return err_set(e, E2BIG, "a pprof of %zu bytes, at most %u can be pushed", p->len,
			       PUSH_PROFILE_MAX);
	while (base && url[base - 1] == '/')
		base--;
	buf_init(&to);
	buf_add(&to, url, base);
	push_add(&to, path ? path : protocols[protocol].path);
	if (protocol == PUSH_PYROSCOPE) {
		pyroscope_query(&to, p);
		ret = pyroscope_body(r, p, e);
	} else {
		json_body(r, protocol == PUSH_PARCA, p);
	}
	if (!ret && (to.failed || r->body.failed))
		ret = err_nomem(e);
	if (!ret && to.len >= sizeof(r->url))
		ret = err_set(e, E2BIG, "the URL with all labels has %zu bytes, at most %zu",
			      to.len, sizeof(r->url) - 1);
	if (!ret)
		memcpy(r->url, to.data, to.len);
	buf_deinit(&to);
	return ret;
}

void push_request_deinit(struct push_request *r)
{
	buf_deinit(&r->body);
}
