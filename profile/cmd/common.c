/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/common.h"

#include "profile/analyse/stacks/stackset.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>
#include <unistd.h>

int cmd_flush_stdout(struct err *e)
{
	struct pollfd reader = { .fd = STDOUT_FILENO, .events = POLLOUT };
	int cause;

	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	cause = errno;
	__fpurge(stdout);
	clearerr(stdout);
	/* stdio does not keep the reason of an earlier failure. */
	if (cause == EPIPE || (!cause && poll(&reader, 1, 0) == 1 && reader.revents & POLLERR))
		return -EPIPE;
	return cause ? err_set(e, cause, "standard output: cannot write: %s", strerror(cause))
		     : err_set(e, EIO,
			       "standard output: cannot write all of it (is its disk full?)");
}

int cmd_attach_set(struct attach_request *a, enum attach_selector way, const char *what,
		   struct err *e)
{
	if (a->what)
		return err_set(e, EINVAL, "give one machine only, not also '%.100s'", what);
	if (!*what)
		return err_set(e, EINVAL, "expected %s, not ''",
			       way == ATTACH_NAME     ? "a machine's name"
			       : way == ATTACH_PID    ? "a PID"
			       : way == ATTACH_DOMAIN ? "a domain"
						      : "a PID or a domain");
	a->way = way;
	a->what = what;
	return 0;
}

int cmd_attach_parse(struct attach_request *a, int argc, char **argv, const char *others)
{
	struct err e = { 0 };
	char text[256];

	if (optind < argc && cmd_attach_set(a, ATTACH_GUESS, argv[optind++], &e))
		return cmd_wrong(argv, e.text);
	if (optind < argc)
		return cmd_wrong_usage(argv, "unexpected argument", argv[optind]);
	if (!a->what) {
		snprintf(text, sizeof(text),
			 "which machine? Give a PID, a libvirt domain%s or --name; `kvmprof list "
			 "--machines` lists them",
			 others);
		return cmd_wrong(argv, text);
	}
	if ((a->way == ATTACH_PID || a->way == ATTACH_NAME) && (a->uri || a->monitor))
		return cmd_wrong_usage(argv,
				       a->uri ? "--connect cannot be combined with --pid or --name"
					      : "--monitor cannot be combined with --pid or --name",
				       a->what);
	return -1;
}

static int parse_pid(void *at, char *arg, struct err *e)
{
	return cmd_attach_set(at, ATTACH_PID, arg, e);
}

static int parse_domain(void *at, char *arg, struct err *e)
{
	return cmd_attach_set(at, ATTACH_DOMAIN, arg, e);
}

static int parse_name(void *at, char *arg, struct err *e)
{
	return cmd_attach_set(at, ATTACH_NAME, arg, e);
}

#define OPTION_STRUCT struct attach_request

const struct option_row cmd_attach_rows[] = {
	{ "connect", 'c', "URI", "libvirt's URI, as for virsh; a number is then a domain's id",
	  OPTION_TEXT(uri) },
	{ "pid", 0, "PID", "the guest of this process", OPTION_CALL(parse_pid, NULL) },
	{ "domain", 0, "DOMAIN", "the guest of this domain", OPTION_CALL(parse_domain, NULL) },
	{ "name", 0, "NAME",
	  "the machine with this name on its VMM's command line: --id of\n"
	  "Firecracker, -name of QEMU; see `kvmprof list --machines`",
	  OPTION_CALL(parse_name, NULL) },
	{ 0 },
};

int cmd_runs_add(struct cmd_runs *r, const char *path, struct err *e)
{
	if (r->n == STATS_MAX_RUNS)
		return err_set(e, E2BIG, "more than %u runs a side", STATS_MAX_RUNS);
	r->path[r->n++] = path;
	return 0;
}

int cmd_runs_add_list(struct cmd_runs *r, char *list, struct err *e)
{
	char *save = NULL;
	int ret = 0;

	if (access(list, F_OK) == 0)
		return cmd_runs_add(r, list, e);
	for (char *p = strtok_r(list, ",", &save); p && !ret; p = strtok_r(NULL, ",", &save))
		ret = cmd_runs_add(r, p, e);
	return ret;
}

__attribute__((format(printf, 2, 0))) static void cmd_report(void *ctx, const char *fmt, va_list ap)
{
	(void)ctx;
	vfprintf(stderr, fmt, ap);
}

const struct reporter cmd_reporter = { cmd_report, NULL };

int cmd_no_memory(void)
{
	fputs("kvmprof: out of memory\n", stderr);
	return 1;
}

void cmd_report_missing(const char *input, const struct stackset *s)
{
	if (s->partial)
		fprintf(stderr, "kvmprof: %s: %s\n", input, s->message);
	if (s->note && s->note[0])
		fprintf(stderr, "kvmprof: %s: %s\n", input, s->note);
}

int cmd_status(int ret, const struct err *e)
{
	if (ret)
		fprintf(stderr, "kvmprof: %s\n", e->text);
	return ret ? 1 : 0;
}

int cmd_wrong(char *const argv[], const char *text)
{
	fprintf(stderr, "kvmprof %s: %s; see `kvmprof %s --help`\n", argv[0], text, argv[0]);
	return 2;
}

int cmd_wrong_usage(char *const argv[], const char *what, const char *arg)
{
	char text[600];

	snprintf(text, sizeof(text), "%s '%.400s'", what, arg);
	return cmd_wrong(argv, text);
}

int cmd_options(const struct option_set *set, void *at, int argc, char **argv)
{
	struct err e = { 0 };
	int ret = option_parse(set, at, argc, argv, &e);

	if (ret < 0)
		return cmd_wrong(argv, e.text);
	if (ret == OPTION_ASKED_HELP)
		option_help(set, stdout);
	return ret ? 0 : -1;
}

void cmd_take_profile(int argc, char **argv, const char *by_default, const char **input)
{
	char *other;
	int i;

	if (*input != by_default || optind + 2 != argc)
		return;
	i = access(argv[optind], F_OK) < 0 && access(argv[optind + 1], F_OK) == 0;
	*input = argv[optind + i];
	other = argv[optind + 1 - i];
	argv[++optind] = other;
}

/* -- source lines ----------------------------------------------------------------------------- */

#undef OPTION_STRUCT
#define OPTION_STRUCT struct debuginfo_places

const struct option_row cmd_debuginfo_rows[] = {
	{ "debuginfo", 0, "PATH", "the kernel's debug file, or a directory to search for it",
	  OPTION_TEXT_OF(given, "a path") },
	{ "build-id-map", 0, "FILE", "paths of files, as written by `kvmprof scan`",
	  OPTION_TEXT_OF(map_file, "a file") },
	{ 0 },
};

static void debuginfo_progress(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "\r\033[K%s", text ? text : "");
	fflush(stderr);
}

void cmd_debuginfo_show_progress(struct debuginfo_places *places)
{
	if (isatty(STDERR_FILENO))
		places->progress = debuginfo_progress;
}

/* Loads, and says on stderr what is missing. */
static int debuginfo_load(struct srcline *s, struct err *e)
{
	struct err why = { 0 };
	int ret = srcline_load(s, &why);

	if (ret && ret != -ENOENT)
		return err_set(e, -ret, "%s", why.text);
	if (*srcline_reason(s))
		fprintf(stderr, "kvmprof: %s%s\n", ret ? "no source lines: " : "",
			srcline_reason(s));
	return 0;
}

int cmd_debuginfo_open(struct srcline **out, struct debuginfo_places *places,
		       const struct perfdata *p, struct err *e)
{
	int ret;

	cmd_debuginfo_show_progress(places);
	ret = srcline_create(out, places, e);
	if (ret)
		return ret;
	srcline_set_profile(*out, p);
	return debuginfo_load(*out, e);
}
