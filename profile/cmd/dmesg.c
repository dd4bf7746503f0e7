/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_dmesg: `kvmprof dmesg`, which prints the log of a guest's kernel from its memory. */
#include "profile/cmd/cmd.h"

#include "base/err.h"
#include "profile/cmd/common.h"
#include "profile/cmd/target.h"
#include "profile/record/why/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Samples a second, by which the kernel is found. */
#define FREQ_HZ 49
#define LEVELS_EXPECTED \
	"emerg, alert, crit, err, warn, notice, info or debug, several with commas, or warn+"

struct dmesg_options {
	struct cmd_target target;
	unsigned int levels; /* as in why_log_request */
	size_t lines;
	bool json, raw;
};

struct dmesg {
	struct why_log_request request;
	struct buf log;
	struct linux_printk_losses losses;
};

/* Finds a level by its name of `len` bytes. Returns WHY_LOG_LEVELS if there is none. */
static unsigned int find_level(const char *name, size_t len)
{
	unsigned int i = 0;

	while (i < WHY_LOG_LEVELS && (strlen(why_log_level_name(i)) != len ||
				      memcmp(why_log_level_name(i), name, len) != 0))
		i++;
	return i;
}

static int parse_levels(void *at, char *arg, struct err *e)
{
	unsigned int levels = 0;

	(void)e;
	for (const char *name = arg;; name++) {
		size_t len = strcspn(name, ",");
		bool higher = len && name[len - 1] == '+';
		unsigned int level = find_level(name, len - higher);

		if (level == WHY_LOG_LEVELS)
			return -EINVAL;
		/* Lower numbers are more severe. */
		levels |= higher ? (2u << level) - 1 : 1u << level;
		name += len;
		if (!*name)
			break;
	}
	*(unsigned int *)at = levels;
	return 0;
}

#define OPTION_STRUCT struct dmesg_options

static const struct option_row rows[] = {
	OPTION_ROWS(cmd_target_rows, target),
	{ "level", 'l', "LEVELS",
	  "only records of these levels: emerg, alert, crit, err, warn,\n"
	  "notice, info, debug; with commas, or warn+ with all above",
	  OPTION_CALL_AT(parse_levels, levels, LEVELS_EXPECTED) },
	{ "lines", 0, "N", "only the last N lines",
	  OPTION_WHOLE(lines, 1, SIZE_MAX, "a number of lines") },
	{ "raw", 'r', NULL, "with the level in front of each line, as syslog(2) returns it",
	  OPTION_PUT(raw, true) },
	{ "json", 0, NULL, "as JSON: one object", OPTION_PUT(json, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof dmesg [OPTIONS] PID|DOMAIN|SNAPSHOT\n"
		 "       kvmprof dmesg [OPTIONS] --gdb HOST:PORT\n"
		 "\n"
		 "The log of a guest's kernel, read from its memory, while the guest runs or "
		 "stands\n"
		 "still: what `dmesg` inside would print.\n"
		 "\n",
	.rows = rows,
	.column = 26,
};

static int read_log(void *ctx, struct guest *g, struct err *e)
{
	struct dmesg *d = ctx;

	d->log.len = 0;
	return why_log_read(g, &d->request, &d->log, &d->losses, e);
}

static int visit_log(struct visit *v, void *ctx, struct err *e)
{
	(void)ctx;
	return visit_look(v, read_log, e);
}

/* Prints the log without control characters: a guest must not control the terminal. */
static void print_safely(const struct buf *b)
{
	for (size_t i = 0; i < b->len; i++) {
		uint8_t c = b->data[i];

		/* C1 controls are a byte of 0x80 to 0x9f, or the same behind 0xc2 in UTF-8. */
		if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ||
		    (c >= 0x80 && c < 0xa0 &&
		     (!i || b->data[i - 1] < 0x80 || b->data[i - 1] == 0xc2)))
			printf("\\x%02x", c);
		else
			putchar(c);
	}
}

static void say_loss(uint64_t n, const char *why)
{
	if (n)
		fprintf(stderr, "kvmprof dmesg: %" PRIu64 " record%s left out: %s\n", n,
			n == 1 ? "" : "s", why);
}

static void say_losses(const struct linux_printk_losses *l)
{
	say_loss(l->unfinished, "the kernel has not finished writing");
	say_loss(l->overwritten, "the kernel has overwritten the text");
	say_loss(l->absent, "the host does not have the pages in memory");
	if (l->ended_early)
		fprintf(stderr, "kvmprof dmesg: the log is damaged: records may be missing after "
				"the last one\n");
}

static int parse(struct dmesg_options *o, int argc, char **argv)
{
	int status = cmd_options(&set, o, argc, argv);

	if (status < 0 && o->json && o->raw)
		return cmd_wrong(argv, "--raw or --json, not both: JSON has the level in any case");
	return status < 0 ? cmd_target_parse(&o->target, argc, argv) : status;
}

int cmd_dmesg(int argc, char **argv)
{
	struct dmesg_options o = { .levels = WHY_LOG_ALL_LEVELS, .lines = SIZE_MAX };
	struct dmesg d = { 0 };
	struct visit_request request = {
		.command = "dmesg",
		.reporter = &cmd_reporter,
		.freq_hz = FREQ_HZ,
		.explains = true,
		.ctx = &d,
		.body = visit_log,
	};
	int status = parse(&o, argc, argv), ret;
	struct err e = { 0 };

	if (status >= 0)
		return status;
	d.request = (struct why_log_request){
		.form = o.json	? WHY_LOG_JSON
			: o.raw ? WHY_LOG_RAW
				: WHY_LOG_TEXT,
		.most = o.lines,
		.levels = o.levels,
	};
	cmd_target_visit(&o.target, &request);
	buf_init(&d.log);
	ret = visit_machine(&request, &e);
	if (ret)
		fprintf(stderr, "kvmprof dmesg: %s\n", e.text);
	else if (isatty(STDOUT_FILENO))
		print_safely(&d.log);
	else
		fwrite(d.log.data, 1, d.log.len, stdout);
	if (!ret)
		say_losses(&d.losses);
	buf_deinit(&d.log);
	return ret ? 1 : 0;
}
