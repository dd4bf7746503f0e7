/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_push: `kvmprof push`: a profile to a continuous-profiling back end.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "profile/cmd/common.h"
#include "profile/analyse/stacks/selection.h"
#include "profile/analyse/export/export.h"
#include "profile/analyse/export/push.h"
#include "profile/analyse/export/push_http.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define TOKEN_VARIABLE "KVMPROF_PUSH_TOKEN"
#define TIMEOUT_S 30u
#define TIMEOUT_MAX_S 3600u

struct push_options {
	struct stackset_options load;
	struct selection selection;
	enum push_protocol protocol;
	const char *url, *path, *name, *token_file;
	struct push_access access;
	struct push_label label[PUSH_LABELS_MAX];
	size_t nlabels;
	bool json;
	char token[PUSH_TOKEN_MAX + 1];
};

/* A header's value must not bring further headers along. */
static bool is_header_text(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

static int parse_label(void *at, char *arg, struct err *e)
{
	struct push_options *o = at;

	if (o->nlabels == PUSH_LABELS_MAX)
		return err_set(e, E2BIG, "at most %u labels", PUSH_LABELS_MAX);
	return push_label_parse(&o->label[o->nlabels++], arg, e);
}

static int parse_name(void *at, char *arg, struct err *e)
{
	*(const char **)at = arg;
	return push_name_check(arg, e);
}

static int parse_protocol(void *at, char *arg, struct err *e)
{
	struct push_options *o = at;

	(void)e;
	o->protocol = push_protocol_find(arg);
	return o->protocol < PUSH_PROTOCOLS ? 0 : -EINVAL;
}

static int parse_path(void *at, char *arg, struct err *e)
{
	(void)e;
	*(const char **)at = arg;
	return *arg == '/' && is_header_text(arg) && !strpbrk(arg, " ?#") ? 0 : -EINVAL;
}

static int parse_tenant(void *at, char *arg, struct err *e)
{
	(void)e;
	*(const char **)at = arg;
	return *arg && is_header_text(arg) ? 0 : -EINVAL;
}

#define OPTION_STRUCT struct push_options

static const struct option_row rows[] = {
	CMD_INPUT(load.input),
	{ "name", 0, "NAME", "the application's name there (default: kvmprof)",
	  OPTION_CALL_AT(parse_name, name, NULL) },
	{ "label", 'l', "NAME=VALUE", "a label; may be repeated", OPTION_CALL(parse_label, NULL) },
	{ "protocol", 0, "WHAT",
	  "pyroscope: its form at /ingest (default); connect: its push\n"
	  "service, as JSON; parca: its WriteRaw, as JSON",
	  OPTION_CALL(parse_protocol, "pyroscope, connect or parca") },
	{ "path", 0, "PATH", "path below URL, instead of the protocol's",
	  OPTION_CALL_AT(parse_path, path, "/PATH without a query") },
	{ "json", 0, NULL, "what was sent, as one JSON object", OPTION_PUT(json, true) },
	OPTION_HEADING("\nWhich samples:\n"),
	CMD_EVENT(load.event),
	CMD_EPOCH(load.epoch),
	OPTION_ROWS(selection_sample_rows, selection),
	OPTION_HEADING("\n"),
	CMD_BUILDID_DIR(load.buildid_dir),
	CMD_NO_DEMANGLE(load.no_demangle),
	OPTION_HEADING("\nAccess:\n"),
	{ "token-file", 0, "FILE",
	  "send its first line as bearer token, or as the password of\n"
	  "--user (default: $" TOKEN_VARIABLE ", if set)",
	  OPTION_TEXT_OF(token_file, "a file") },
	{ "user", 0, "NAME", "basic authentication", OPTION_TEXT(access.user) },
	{ "tenant", 0, "ID", "the header X-Scope-OrgID",
	  OPTION_CALL_AT(parse_tenant, access.tenant, "text without control characters") },
	{ "cacert", 0, "FILE", "trust these certificates (PEM) instead of the system's",
	  OPTION_TEXT_OF(access.cacert, "a file") },
	{ "timeout", 0, "SECONDS", "limit of the whole transfer (default 30)",
	  OPTION_WHOLE(access.timeout_s, 1, TIMEOUT_MAX_S, "seconds, 1 to 3600") },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof push [OPTIONS] [PROFILE] URL\n"
		 "\n"
		 "Send a profile, as pprof over HTTP, to a continuous-profiling back end "
		 "(Pyroscope,\n"
		 "Parca, and what accepts their protocols). URL is the server's: "
		 "https://HOST[:PORT]\n"
		 "\n",
	.rows = rows,
};

/* From the file, or the environment: never from the command line, which others can read. */
static int push_read_token(struct push_options *o, struct err *e)
{
	const char *value = getenv(TOKEN_VARIABLE);
	cleanup_fclose FILE *f = NULL;

	if (o->token_file) {
		f = fopen(o->token_file, "re");
		if (!f)
			return err_set(e, errno, "cannot read %s: %s", o->token_file,
				       strerror(errno));
		if (!fgets(o->token, sizeof(o->token), f))
			return err_set(e, EINVAL, "%s: contains no token", o->token_file);
		o->token[strcspn(o->token, "\r\n")] = '\0';
	} else if (value && *value) {
		if (strlen(value) > PUSH_TOKEN_MAX)
			return err_set(e, E2BIG, "$" TOKEN_VARIABLE " has more than %u bytes",
				       PUSH_TOKEN_MAX);
		memcpy(o->token, value, strlen(value) + 1);
	}
	if (!is_header_text(o->token))
		return err_set(e, EINVAL, "the token has control characters in it");
	if (*o->token)
		o->access.token = o->token;
	return 0;
}

/* When the profile was written, which is when the run ended. */
static int push_end_time(const char *input, uint64_t *ns, struct err *e)
{
	cleanup_free char *data = NULL;
	struct stat st;

	if (asprintf(&data, "%s/data", input) < 0)
		return err_nomem(e);
	if (stat(data, &st) && stat(input, &st))
		return err_set(e, errno, "%s: %s", input, strerror(errno));
	*ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
	return 0;
}

static int push_make_pprof(const struct stackset *s, uint64_t began_ns, struct file_map *m,
			   struct err *e)
{
	struct export_options how = { .version = KVMPROF_VERSION, .began_ns = began_ns };
	cleanup_close int fd = memfd_create("pprof", MFD_CLOEXEC);
	struct export_out out;
	char path[64];
	int ret;

	if (fd < 0)
		return err_set(e, errno, "memfd_create: %s", strerror(errno));
	export_out_init(&out, fd, EXPORT_GZIPPED);
	ret = export_pprof(&out, NULL, s, &how, e);
	ret = ret ? ret : export_out_finish(&out, "memory", e);
	export_out_deinit(&out);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return ret ? ret : file_map_open(m, path, PUSH_PROFILE_MAX, e);
}

static int push_print(const struct push_options *o, const char *input, uint64_t samples, size_t len,
		      const char *url, struct err *e)
{
	int shown = (int)strcspn(url, "?");
	struct json_writer w;

	if (!o->json) {
		fprintf(stderr, "kvmprof: pushed %s, %" PRIu64 " samples (%zu bytes), to %.*s\n",
			input, samples, len, shown, url);
		return 0;
	}
	json_open(&w);
	json_put(&w, "profile", input, "samples", samples, "bytes", (uint64_t)len);
	json_strf(&w, "url", "%.*s", shown, url);
	return json_close(&w, stdout) ? err_nomem(e) : cmd_flush_stdout(e);
}

static int push_run(const struct push_options *o, struct err *e)
{
	const char *input = o->load.input ? o->load.input : "perf.data";
	struct push_profile p = { .name = o->name, .label = o->label, .nlabels = o->nlabels };
	struct push_request r = { .url = "" };
	struct file_map pprof = { 0 };
	struct stackset *s = NULL;
	uint64_t length;
	int ret = stackset_load(&s, &o->load, e);

	if (ret)
		return ret;
	cmd_report_missing(input, s);
	ret = s->samples ? push_end_time(input, &p.ended_ns, e)
			 : err_set(e, ENODATA, "%s: %s", input,
				   *s->missed ? s->missed : "no sample is left to push");
	length = s->last_ns - s->first_ns;
	p.began_ns = p.ended_ns > length ? p.ended_ns - length : 0;
	p.event = *s->event ? s->event : "event";
	p.weight_is_ns = s->weight_is_ns;
	ret = ret ? ret : push_make_pprof(s, p.began_ns, &pprof, e);
	if (!ret) {
		p.pprof = pprof.data;
		p.len = pprof.len;
		ret = push_request_make(&r, o->protocol, o->url, o->path, &p, e);
		ret = ret ? ret : push_send(&r, &o->access, e);
		ret = ret ? ret : push_print(o, input, s->samples, p.len, r.url, e);
		push_request_deinit(&r);
	}
	file_map_close(&pprof);
	stackset_destroy(s);
	return ret;
}

int cmd_push(int argc, char **argv)
{
	cleanup_free struct push_options *o = calloc(1, sizeof(*o)); /* labels are long */
	struct err e = { 0 };
	int status;

	if (!o)
		return cmd_no_memory();
	o->load.keep_samples = true;
	o->load.selection = &o->selection;
	o->name = "kvmprof";
	o->access.timeout_s = TIMEOUT_S;
	status = cmd_options(&set, o, argc, argv);
	if (status >= 0)
		return status;
	if (selection_check(&o->selection, &e))
		return cmd_wrong(argv, e.text);
	cmd_take_profile(argc, argv, NULL, &o->load.input);
	if (optind == argc)
		return cmd_wrong(argv, "the server's URL is missing");
	o->url = argv[optind++];
	if (optind < argc)
		return cmd_wrong_usage(argv, "unexpected argument", argv[optind]);
	if (push_url_check(o->url, &e))
		return cmd_wrong(argv, e.text);
	status = cmd_status(push_read_token(o, &e) || push_run(o, &e), &e);
	selection_deinit(&o->selection);
	return status;
}
