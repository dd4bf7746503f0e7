/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_push: `kvmprof push`: a profile to a continuous-profiling back end.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/cmd/common.h"
#include "profile/export/export.h"
#include "profile/export/push.h"

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

struct options {
	struct stackset_options load;
	enum push_protocol protocol;
	const char *url, *path, *name, *token_file;
	struct push_access access;
	struct push_label label[PUSH_LABELS_MAX];
	size_t nlabels;
	char token[PUSH_TOKEN_MAX + 1];
};

static void usage(void)
{
	fputs("Usage: kvmprof push [OPTIONS] URL\n"
	      "\n"
	      "Send a profile, as pprof over HTTP, to a continuous-profiling back end (Pyroscope,\n"
	      "Parca, and what accepts their protocols). URL is the server's: https://HOST[:PORT]\n"
	      "\n"
	      "  -i, --input FILE       the profile (default: perf.data)\n"
	      "      --name NAME        the application's name there (default: kvmprof)\n"
	      "  -l, --label NAME=VALUE a label; may be repeated\n"
	      "      --protocol WHAT    pyroscope: its form at /ingest (default); connect: its "
	      "push\n"
	      "                         service, as JSON; parca: its WriteRaw, as JSON\n"
	      "      --path PATH        below URL, instead of the protocol's\n"
	      "      --kernel-only      only kernel frames, and samples that have some\n"
	      "      --buildid-dir DIR  perf's build-id cache (default: ~/.debug)\n"
	      "      --no-demangle      names of C++ and Rust functions as they are\n"
	      "\n"
	      "Access:\n"
	      "      --token-file FILE  send its first line as bearer token, or as the password "
	      "of\n"
	      "                         --user (default: $" TOKEN_VARIABLE ", if set)\n"
	      "      --user NAME        basic authentication\n"
	      "      --tenant ID        the header X-Scope-OrgID\n"
	      "      --cacert FILE      trust these certificates (PEM) instead of the system's\n"
	      "      --timeout SECONDS  for all of it (default 30)\n"
	      "  -h, --help             this text\n",
	      stdout);
}

enum {
	OPT_NAME = 256,
	OPT_PROTOCOL,
	OPT_PATH,
	OPT_KERNEL_ONLY,
	OPT_BUILDID_DIR,
	OPT_NO_DEMANGLE,
	OPT_TOKEN_FILE,
	OPT_USER,
	OPT_TENANT,
	OPT_CACERT,
	OPT_TIMEOUT,
};

/* A header's value must not bring further headers along. */
static bool is_header_text(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

/* 0, or -1 with the reason in *e. */
static int take_option(struct options *o, int c, const char *value, struct err *e)
{
	char *end;
	unsigned long v;

	switch (c) {
	case 'i':
		o->load.input = value;
		return 0;
	case 'l':
		if (o->nlabels == PUSH_LABELS_MAX)
			return err_set(e, E2BIG, "at most %u labels", PUSH_LABELS_MAX);
		return push_label_parse(&o->label[o->nlabels++], value, e);
	case OPT_NAME:
		o->name = value;
		return push_name_check(value, e);
	case OPT_PROTOCOL:
		o->protocol = push_protocol_find(value);
		return o->protocol < PUSH_PROTOCOLS
			       ? 0
			       : err_set(e, EINVAL,
					 "--protocol '%.60s': expected pyroscope, connect or parca",
					 value);
	case OPT_PATH:
		o->path = value;
		return *value == '/' && is_header_text(value) && !strpbrk(value, " ?#")
			       ? 0
			       : err_set(e, EINVAL,
					 "--path '%.60s': expected /PATH without a query", value);
	case OPT_KERNEL_ONLY:
		o->load.kernel_only = true;
		return 0;
	case OPT_BUILDID_DIR:
		o->load.buildid_dir = value;
		return 0;
	case OPT_NO_DEMANGLE:
		o->load.no_demangle = true;
		return 0;
	case OPT_TOKEN_FILE:
		o->token_file = value;
		return 0;
	case OPT_USER:
		o->access.user = value;
		return 0;
	case OPT_TENANT:
		o->access.tenant = value;
		return *value && is_header_text(value)
			       ? 0
			       : err_set(e, EINVAL,
					 "--tenant: expected text without control characters");
	case OPT_CACERT:
		o->access.cacert = value;
		return 0;
	default: /* OPT_TIMEOUT */
		v = strtoul(value, &end, 10);
		o->access.timeout_s = (unsigned int)v;
		return *value >= '0' && *value <= '9' && !*end && v && v <= TIMEOUT_MAX_S
			       ? 0
			       : err_set(e, EINVAL, "--timeout '%.60s': expected seconds, 1 to %u",
					 value, TIMEOUT_MAX_S);
	}
}

/* From the file, or the environment: never from the command line, which others can read. */
static int take_token(struct options *o, struct err *e)
{
	const char *value = getenv(TOKEN_VARIABLE);
	cleanup_fclose FILE *f = NULL;

	if (o->token_file) {
		f = fopen(o->token_file, "re");
		if (!f)
			return err_set(e, errno, "cannot read %s: %s", o->token_file,
				       strerror(errno));
		if (!fgets(o->token, sizeof(o->token), f))
			return err_set(e, EINVAL, "%s: no token in it", o->token_file);
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
static int when_ended(const char *input, uint64_t *ns, struct err *e)
{
	cleanup_free char *data = NULL;
	struct stat st;

	if (asprintf(&data, "%s/data", input) < 0)
		return err_set(e, ENOMEM, "out of memory");
	if (stat(data, &st) && stat(input, &st))
		return err_set(e, errno, "%s: %s", input, strerror(errno));
	*ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
	return 0;
}

static int make_pprof(const struct stackset *s, uint64_t began_ns, struct file_map *m,
		      struct err *e)
{
	struct export_options how = { .version = KVMPROF_VERSION, .began_ns = began_ns };
	cleanup_close int fd = memfd_create("pprof", MFD_CLOEXEC);
	struct export_out out;
	char path[64];
	int ret;

	if (fd < 0)
		return err_set(e, errno, "memfd_create: %s", strerror(errno));
	export_out_init(&out, fd, true);
	ret = export_pprof(&out, NULL, s, &how, e);
	ret = ret ? ret : export_out_finish(&out, "memory", e);
	export_out_deinit(&out);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return ret ? ret : file_map_open(m, path, PUSH_PROFILE_MAX, e);
}

static int push(const struct options *o, struct err *e)
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
	if (s->partial)
		fprintf(stderr, "kvmprof: %s: %s\n", input, s->message);
	ret = s->samples ? when_ended(input, &p.ended_ns, e)
			 : err_set(e, ENODATA, "%s: no sample is left to push", input);
	length = s->last_ns - s->first_ns;
	p.began_ns = p.ended_ns > length ? p.ended_ns - length : 0;
	p.event = *s->event ? s->event : "event";
	p.weight_is_ns = s->weight_is_ns;
	ret = ret ? ret : make_pprof(s, p.began_ns, &pprof, e);
	if (!ret) {
		p.pprof = pprof.data;
		p.len = pprof.len;
		ret = push_request_make(&r, o->protocol, o->url, o->path, &p, e);
		ret = ret ? ret : push_send(&r, &o->access, e);
		if (!ret)
			fprintf(stderr,
				"kvmprof: pushed %s, %" PRIu64 " samples (%zu bytes), to %.*s\n",
				input, s->samples, p.len, (int)strcspn(r.url, "?"), r.url);
		push_request_deinit(&r);
	}
	file_map_close(&pprof);
	stackset_destroy(s);
	return ret;
}

int cmd_push(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "input", required_argument, NULL, 'i' },
		{ "name", required_argument, NULL, OPT_NAME },
		{ "label", required_argument, NULL, 'l' },
		{ "protocol", required_argument, NULL, OPT_PROTOCOL },
		{ "path", required_argument, NULL, OPT_PATH },
		{ "kernel-only", no_argument, NULL, OPT_KERNEL_ONLY },
		{ "buildid-dir", required_argument, NULL, OPT_BUILDID_DIR },
		{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
		{ "token-file", required_argument, NULL, OPT_TOKEN_FILE },
		{ "user", required_argument, NULL, OPT_USER },
		{ "tenant", required_argument, NULL, OPT_TENANT },
		{ "cacert", required_argument, NULL, OPT_CACERT },
		{ "timeout", required_argument, NULL, OPT_TIMEOUT },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	cleanup_free struct options *o = calloc(1, sizeof(*o)); /* labels are long */
	struct err e = { 0 };
	int c;

	if (!o) {
		fputs("kvmprof: out of memory\n", stderr);
		return 1;
	}
	o->load = STACKSET_OPTIONS_DEFAULT;
	o->load.keep_samples = true;
	o->name = "kvmprof";
	o->access.timeout_s = TIMEOUT_S;
	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":i:l:h", long_options, NULL)) != -1) {
		if (c == 'h') {
			usage();
			return 0;
		}
		if (c == ':' || c == '?')
			return cmd_wrong_option(argv, c);
		if (take_option(o, c, optarg, &e)) {
			fprintf(stderr, "kvmprof push: %s\n", e.text);
			return 2;
		}
	}
	if (optind == argc) {
		fputs("kvmprof push: the server's URL is missing (try kvmprof push --help)\n",
		      stderr);
		return 2;
	}
	o->url = argv[optind++];
	if (optind < argc)
		return cmd_wrong_usage(argv, "unexpected argument", argv[optind]);
	if (push_url_check(o->url, &e)) {
		fprintf(stderr, "kvmprof push: %s\n", e.text);
		return 2;
	}
	if (take_token(o, &e) || push(o, &e)) {
		fprintf(stderr, "kvmprof: %s\n", e.text);
		return 1;
	}
	return 0;
}
