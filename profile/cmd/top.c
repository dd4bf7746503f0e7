/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_top: `kvmprof top`: a running guest's hottest functions, live.
 */
#include "profile/cmd/cmd.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/signals.h"
#include "profile/cmd/common.h"
#include "profile/cmd/top/feed.h"
#include "profile/cmd/top/terminal.h"
#include "profile/record/control/client.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct top_guest {
	pid_t pid;  /* 0: none */
	int status; /* status from waitpid(2) after it has ended */
	char dir[64], socket[80], log[80];
};

#define CONNECT_TRIES 500
#define CONNECT_NAP_NS 20000000 /* 10 s in all: a host under load */
/* For the run to end in order; less when a signal ends the view. */
#define END_MS 20000
#define END_ASKED_MS 1000
#define END_NAP_NS 5000000
#define STARTS_WITH 10 /* arguments of our own in front, at most */

/* In the child. Nothing but system calls from here on. */
static void become_run(const struct top_guest *g, char **argv)
{
	int null = open("/dev/null", O_RDWR);
	char program[PATH_MAX];
	int log = open(g->log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	/* Ctrl-C is for the view, which then ends the guest; and no view, no guest. */
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (null >= 0 && log >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
	    dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0)
		execv(proc_program(program), argv);
	_exit(127);
}

/* Stores the arguments of our own: of `run`, or of `attach` to a machine. Returns how many there are. */
static size_t top_own_words(char **out, const struct attach_request *machine, char *socket)
{
	static char program[] = "kvmprof", run[] = "run", attach[] = "attach", quiet[] = "--quiet",
		    none[] = "--no-output", control[] = "--control", connect[] = "--connect";
	static char *const ways[] = {
		[ATTACH_PID] = "--pid", [ATTACH_DOMAIN] = "--domain", [ATTACH_NAME] = "--name"
	};
	const bool attaches = machine->what;
	size_t n = 0;

	out[n++] = program;
	out[n++] = attaches ? attach : run;
	if (!attaches)
		out[n++] = quiet;
	out[n++] = none;
	out[n++] = control;
	out[n++] = socket;
	if (machine->uri) {
		out[n++] = connect;
		out[n++] = (char *)(uintptr_t)machine->uri;
	}
	if (!attaches)
		return n;
	if (machine->way != ATTACH_GUESS)
		out[n++] = ways[machine->way];
	out[n++] = (char *)(uintptr_t)machine->what;
	return n;
}

/* args: options of `run` and the image, or of `attach`, argc of them. */
static int top_guest_start(struct top_guest *g, const struct attach_request *machine, int argc,
			   char **args, struct err *e)
{
	cleanup_free char **argv = calloc((size_t)argc + STARTS_WITH + 1, sizeof(*argv));
	const char *tmp = getenv("TMPDIR");

	if (!argv)
		return err_nomem(e);
	if (!tmp || !*tmp || strlen(tmp) > 40)
		tmp = "/tmp";
	snprintf(g->dir, sizeof(g->dir), "%s/kvmprof.XXXXXX", tmp);
	if (!mkdtemp(g->dir)) {
		int cause = errno;

		g->dir[0] = '\0';
		return err_set(e, cause, "%s: cannot make a directory there: %s", tmp,
			       strerror(cause));
	}
	snprintf(g->socket, sizeof(g->socket), "%s/control", g->dir);
	snprintf(g->log, sizeof(g->log), "%s/log", g->dir);
	(void)signals_remove(g->socket);
	(void)signals_remove(g->log);
	(void)signals_remove(g->dir);
	memcpy(argv + top_own_words(argv, machine, g->socket), args, (size_t)argc * sizeof(*args));
	g->pid = fork();
	if (g->pid == 0)
		become_run(g, argv);
	if (g->pid < 0) {
		g->pid = 0;
		return err_set(e, errno, "cannot start the run: %s", strerror(errno));
	}
	return 0;
}

static bool has_ended(struct top_guest *g)
{
	if (g->pid && waitpid(g->pid, &g->status, WNOHANG) == g->pid)
		g->pid = 0;
	return !g->pid;
}

/* Wait until it listens; -ECHILD: it has ended without. */
static int top_guest_connect(struct top_guest *g, struct control_client **out, struct err *e)
{
	const struct timespec nap = { .tv_nsec = CONNECT_NAP_NS };
	int ret = -ENOENT;

	for (int i = 0; i < CONNECT_TRIES && (ret == -ENOENT || ret == -ECONNREFUSED); i++) {
		struct err why = { 0 };

		ret = control_client_open(out, g->socket, &why);
		if (ret && has_ended(g))
			return err_set(e, ECHILD, "the run has ended");
		if (ret && signals_pending())
			return err_set(e, EINTR, "interrupted");
		if (ret)
			nanosleep(&nap, NULL);
		if (ret && ret != -ENOENT && ret != -ECONNREFUSED)
			return err_set(e, -ret, "%s", why.text);
	}
	return ret ? err_set(e, ETIMEDOUT, "the run did not start") : 0;
}

/* False: it still runs after so long. */
static bool top_guest_wait(struct top_guest *g, unsigned int ms)
{
	const struct timespec nap = { .tv_nsec = END_NAP_NS };
	uint64_t end = clock_mono_ns() + ms * UINT64_C(1000000);

	while (!has_ended(g)) {
		if (clock_mono_ns() > end)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

/* A signal ends it as Ctrl-C does; waits until it has ended. */
static void top_guest_end(struct top_guest *g)
{
	if (!g->pid)
		return;
	kill(g->pid, SIGINT);
	if (!top_guest_wait(g, signals_pending() ? END_ASKED_MS : END_MS)) {
		kill(g->pid, SIGKILL);
		(void)top_guest_wait(g, END_ASKED_MS);
	}
	g->pid = 0;
}

/* Its exit status, or 1 when it was killed. After top_guest_end(). */
static int top_guest_exit_status(const struct top_guest *g)
{
	return WIFEXITED(g->status) ? WEXITSTATUS(g->status) : 1;
}

/* Remove what was left behind; ends it first. */
static void top_guest_deinit(struct top_guest *g)
{
	top_guest_end(g);
	if (*g->dir)
		file_remove_tree(g->dir, NULL);
	g->dir[0] = '\0';
}

#define MAX_ITERATIONS 1000000000u
#define FOOT                                                                                       \
	"Enter callers  a code  / filter  s sort  i idle  f freeze  c collect  z zero  h help  q " \
	"quit"

struct top_options {
	const char *control;
	double delay_s;
	uint64_t iterations; /* 0: without end */
	bool stdio, zero, json;
};

struct top_top {
	struct top_options opt;
	struct attach_request machine; /* what NULL: a run of its own */
	struct top_guest guest;
	struct control_client *client;
	struct top_model *model;
	struct top_status status;
	struct top_choice choice;
	struct top_screen screen;
	char title[256], event[64];
	struct err end; /* why there is nothing more */
	uint64_t seq, updates;
	bool forget;
};

/* -- options ------------------------------------------------------------------------- */

static int parse_filter(void *at, char *arg, struct err *e)
{
	struct top_top *t = at;

	(void)e;
	if (strlen(arg) >= TOP_FILTER)
		return -EINVAL;
	strcpy(t->choice.filter, arg);
	return 0;
}

static const char *const orders[] = { "children", "self", NULL };

#define OPTION_STRUCT struct top_top

static const struct option_row rows[] = {
	{ "control", 0, "PATH", "the socket of a running `kvmprof run --control PATH`",
	  OPTION_TEXT_OF(opt.control, "a path") },
	OPTION_ROWS(cmd_attach_rows, machine),
	{ "delay", 'd', "SECONDS", "between updates (default 1)",
	  OPTION_SECONDS(opt.delay_s, 0.05, 3600, "0.05 to 3600 seconds") },
	{ "iterations", 'n', "N", "end after N updates",
	  OPTION_WHOLE(opt.iterations, 1, MAX_ITERATIONS, "a number of updates") },
	{ "stdio", 0, NULL,
	  "plain text, one list for each update (default without a\n"
	  "terminal)",
	  OPTION_PUT(opt.stdio, true) },
	{ "json", 0, NULL, "one JSON object on a line for each update",
	  OPTION_PUT(opt.json, true) },
	{ "sort", 's', "KEY", "children (default) or self", OPTION_WORD(choice.order, orders) },
	{ "no-idle", 0, NULL, "without the functions of halted vCPUs",
	  OPTION_PUT(choice.no_idle, true) },
	{ "zero", 'z', NULL, "discard older counts at each update", OPTION_PUT(opt.zero, true) },
	{ "filter", 0, "TEXT", "functions whose name or DSO contains TEXT",
	  OPTION_CALL(parse_filter, "a shorter text") },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof top [OPTIONS] [--] [IMAGE or options of `kvmprof run`]\n"
		 "       kvmprof top [OPTIONS] PID|DOMAIN [options of `kvmprof attach`]\n"
		 "       kvmprof top [OPTIONS] --control PATH\n"
		 "\n"
		 "Show the hottest functions of a guest while it runs: of one that is started here "
		 "like by\n"
		 "`kvmprof run` (the demo guest without IMAGE), of a machine of another VMM, like "
		 "by\n"
		 "`kvmprof attach`, or of a run that listens on a control socket. A word that is "
		 "not "
		 "a file\n"
		 "is a PID or a domain. Older counts fade: the view covers about the last ten "
		 "updates. No\n"
		 "profile is written, unless the options of the run have -o PATH.\n"
		 "\n",
	.after = "\n"
		 "Keys: up, down, page up, page down, home, end: choose a function; Enter: its "
		 "callers;\n"
		 "a: its instructions; /: filter; s: sort by self or children; i: idle or not; z: "
		 "forget;\n"
		 "f or space: freeze; c: stop and resume collecting; h: help; q: quit\n",
	.rows = rows,
	.column = 26,
	.hint = "options of `kvmprof run` and `attach` follow --: kvmprof top --",
	.order = OPTION_FIRST, /* what stands behind IMAGE is for the run */
};

/* An image is a file, and its path often has a slash. Anything else is the name of a machine. */
static bool is_machine(const char *word)
{
	return *word && *word != '-' && !strchr(word, '/') && access(word, F_OK) != 0;
}

/* -1 to go on, else the exit status. */
static int top_parse(struct top_top *t, int argc, char **argv)
{
	struct err e = { 0 };
	int status;

	t->opt.delay_s = 1;
	status = cmd_options(&set, t, argc, argv);
	if (status >= 0)
		return status;
	if (t->opt.control && (optind < argc || t->machine.what || t->machine.uri))
		return cmd_wrong_usage(argv, "--control watches an existing run; unexpected",
				       optind < argc	 ? argv[optind]
				       : t->machine.what ? t->machine.what
							 : t->machine.uri);
	/* Behind -- stands what is for the run. */
	if (!t->machine.what && optind < argc && strcmp(argv[optind - 1], "--") != 0 &&
	    is_machine(argv[optind]))
		return cmd_attach_set(&t->machine, ATTACH_GUESS, argv[optind++], &e)
			       ? cmd_wrong(argv, e.text)
			       : -1;
	if (t->machine.uri && !t->machine.what)
		return cmd_wrong_usage(argv, "--connect is for a domain; which one?",
				       t->machine.uri);
	return -1;
}

/* -- the run ------------------------------------------------------------------------- */

static int top_hello(struct top_top *t, struct err *e)
{
	json_t *reply, *event;
	const char *image, *name;
	int ret = control_client_request(
		t->client, json_pack("{s:s,s:i}", "cmd", "hello", "version", 1), &reply, e);

	if (ret)
		return ret;
	image = json_string_value(json_object_get(reply, "image"));
	event = json_array_get(json_object_get(reply, "events"), 0);
	name = json_string_value(event);
	snprintf(t->title, sizeof(t->title), "%s, pid %lld", image && *image ? image : "demo guest",
		 (long long)json_integer_value(json_object_get(reply, "pid")));
	snprintf(t->event, sizeof(t->event), "%s", name ? name : "wall");
	t->status.title = t->title;
	t->status.event = t->event;
	json_decref(reply);
	return 0;
}

static int top_ask_profile(struct top_top *t, struct err *e)
{
	json_t *reply;
	int ret = control_client_request(t->client,
					 json_pack("{s:s,s:I,s:i}", "cmd", "profile", "since",
						   (json_int_t)t->seq, "max_stacks", 10000),
					 &reply, e);
	bool forget;

	if (ret)
		return ret;
	/* Gathering has begun anew, or what is shown is of the last update alone. */
	forget = t->forget || t->opt.zero ||
		 json_integer_value(json_object_get(reply, "since")) == 0;
	ret = top_feed_profile(t->model, reply, forget ? TOP_OLDER_FORGET : TOP_OLDER_FADE, &t->seq,
			       e);
	t->forget = false;
	json_decref(reply);
	return ret;
}

static int top_update(struct top_top *t, struct err *e)
{
	json_t *reply;
	int ret = control_client_request(t->client, json_pack("{s:s}", "cmd", "status"), &reply, e);

	if (ret)
		return ret;
	ret = top_feed_status(&t->status, reply, e);
	json_decref(reply);
	ret = ret ? ret : top_ask_profile(t, e);
	t->updates++;
	return ret;
}

/* An update, or what there is instead of one. */
static void top_update_or_end(struct top_top *t)
{
	if (!t->status.end && top_update(t, &t->end))
		t->status.end = t->end.text;
}

static bool top_is_done(const struct top_top *t)
{
	return signals_pending() || (t->opt.iterations && t->updates >= t->opt.iterations);
}

/* -- plain text ---------------------------------------------------------------------- */

static void top_sleep(double seconds)
{
	const struct timespec ts = { (time_t)seconds,
				     (long)((seconds - (double)(time_t)seconds) * 1e9) };

	nanosleep(&ts, NULL);
}

/* Writes an update as one line of JSON. Returns 0 or -ENOMEM. */
static int top_put_json(struct top_top *t, struct err *e)
{
	static const char *const modes[] = { "kernel", "user", "idle" };
	const struct top_filter filter = { *t->choice.filter ? t->choice.filter : NULL,
					   t->choice.no_idle };
	const struct top_status *st = &t->status;
	struct top_rows all;
	struct json_writer w;
	int ret = top_model_rows(t->model, t->choice.order, &filter, &all, e);

	if (ret)
		return ret;
	json_open(&w);
	json_put(&w, "title", st->title, "event", st->event, "elapsed_s",
		 json_fixed(3, st->elapsed_s), "rate_hz", json_fixed(1, st->rate_hz), "samples",
		 st->samples, "lost", st->lost, "overruns", st->overruns, "stopped_us",
		 json_fixed(1, st->stop_us), "collecting", json_of_bool(st->collecting));
	json_array_begin(&w, "functions");
	for (size_t i = 0; i < all.n; i++) {
		const struct top_row *r = &all.row[i];
		double part = all.total > 0 ? 100 / all.total : 0;

		json_put_object(&w, NULL, "symbol", r->name, "dso", r->dso, "mode", modes[r->mode],
				"self_percent", json_fixed(2, part * r->self), "children_percent",
				json_fixed(2, part * r->children));
	}
	json_array_end(&w);
	return json_close(&w, stdout) ? err_nomem(e) : 0;
}

static int top_put_text(struct top_top *t, struct err *e)
{
	int ret = top_view_draw(&t->screen, t->model, &t->status, &t->choice,
				(struct top_size){ 0 }, e);

	if (!ret) {
		fwrite(t->screen.text.data, 1, t->screen.text.len, stdout);
		putchar('\n');
	}
	return ret;
}

static int top_show_stdio(struct top_top *t, struct err *e)
{
	int ret = top_update(t, e); /* begins the gathering: nothing is in it yet */

	t->updates = 0;
	while (!ret && !t->status.end && !top_is_done(t)) {
		top_sleep(t->opt.delay_s);
		if (signals_pending())
			break;
		top_update_or_end(t);
		/* Nothing new: the last list stands. */
		if (t->status.end)
			break;
		ret = t->opt.json ? top_put_json(t, e) : top_put_text(t, e);
		if (ret)
			break;
		ret = cmd_flush_stdout(e);
		if (ret == -EPIPE)
			return 0;
	}
	if (!ret && t->status.end)
		fprintf(stderr, "kvmprof top: %s\n", t->status.end);
	return ret;
}

/* -- the terminal -------------------------------------------------------------------- */

/* Text that fills the screen until a key ends it. */
static void top_show_text(const char *title, const char *text)
{
	unsigned int first = 0, n = 0;

	for (const char *c = text; *c; c++)
		n += *c == '\n';
	while (!signals_pending()) {
		unsigned int lines = top_terminal_size().lines;
		unsigned int page = lines > 3 ? lines - 3 : 1;

		if (first + page > n)
			first = n > page ? n - page : 0;
		top_terminal_show_text(title, text, first, "up, down: scroll  q: back");
		switch (top_terminal_key(1000)) {
		case TOP_KEY_UP:
			first -= first > 0;
			break;
		case TOP_KEY_DOWN:
			first++;
			break;
		case TOP_KEY_PAGE_UP:
			first -= first < page ? first : page;
			break;
		case TOP_KEY_PAGE_DOWN:
			first += page;
			break;
		case TOP_KEY_HOME:
			first = 0;
			break;
		case TOP_KEY_END:
			first = n;
			break;
		case 'q':
		case 'a':
		case TOP_KEY_ESCAPE:
			return;
		}
	}
}

static void top_show_help(void)
{
	cleanup_free char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	option_help(&set, f);
	if (!fclose(f))
		top_show_text("kvmprof top", text);
}

static void top_show_code(struct top_top *t)
{
	const struct top_row *row = &t->screen.selected;
	struct top_code code = { 0 };
	struct err e = { 0 };
	char addr[24], title[300];
	struct buf text;
	json_t *reply;
	int ret = 0;

	if (!row->name || !row->addr) {
		top_show_text("No code",
			      "Only functions in which samples were taken have code to show.\n");
		return;
	}
	buf_init(&text);
	snprintf(addr, sizeof(addr), "0x%" PRIx64, row->addr);
	ret = control_client_request(t->client, json_pack("{s:s,s:s}", "cmd", "text", "addr", addr),
				     &reply, &e);
	if (!ret) {
		ret = top_feed_code(&code, reply, &e);
		json_decref(reply);
		ret = ret ? ret : top_code_draw(&text, &code, &e);
		snprintf(title, sizeof(title), "%s, %zu bytes", code.symbol, code.code.len);
		top_code_deinit(&code);
	}
	if (ret) {
		snprintf(title, sizeof(title), "%.250s", row->name);
		text.len = 0;
		buf_printf(&text, "%s\n", e.text);
		buf_u8(&text, 0);
	}
	if (!text.failed)
		top_show_text(title, (const char *)text.data);
	buf_deinit(&text);
}

static void top_type_filter(struct top_choice *c, int key)
{
	size_t len = strlen(c->filter);

	if (key == TOP_KEY_ENTER) {
		c->typing = false;
	} else if (key == TOP_KEY_ESCAPE) {
		c->typing = false;
		c->filter[0] = '\0';
	} else if (key == TOP_KEY_BACKSPACE && len) {
		c->filter[len - 1] = '\0';
	} else if (key >= ' ' && key < 127 && len + 1 < TOP_FILTER) {
		c->filter[len] = (char)key;
		c->filter[len + 1] = '\0';
	}
}

static void top_toggle_collecting(struct top_top *t)
{
	struct err e = { 0 };
	json_t *reply;

	if (!t->status.end && !control_client_request(t->client,
						      json_pack("{s:s,s:b}", "cmd", "collect", "on",
								!t->status.collecting),
						      &reply, &e)) {
		t->status.collecting = !t->status.collecting;
		json_decref(reply);
	}
}

static void top_select_row(struct top_top *t, int key)
{
	struct top_choice *c = &t->choice;
	unsigned int lines = top_terminal_size().lines;
	size_t page = lines > 10 ? lines - 10 : 1;

	switch (key) {
	case TOP_KEY_UP:
		c->selected -= c->selected > 0;
		break;
	case TOP_KEY_DOWN:
		c->selected++;
		break;
	case TOP_KEY_PAGE_UP:
		c->selected -= c->selected < page ? c->selected : page;
		break;
	case TOP_KEY_PAGE_DOWN:
		c->selected += page;
		break;
	case TOP_KEY_HOME:
		c->selected = 0;
		break;
	case TOP_KEY_END:
		c->selected = SIZE_MAX;
		break;
	}
}

/* False: that was the end. */
static bool top_handle_key(struct top_top *t, int key)
{
	struct top_choice *c = &t->choice;

	if (c->typing) {
		top_type_filter(c, key);
		return true;
	}
	switch (key) {
	case 'q':
		return false;
	case TOP_KEY_ENTER:
	case '+':
		c->expanded = !c->expanded;
		break;
	case TOP_KEY_ESCAPE:
		c->filter[0] = '\0';
		c->expanded = false;
		break;
	case 'a':
		top_show_code(t);
		break;
	case '/':
		c->typing = true;
		break;
	case 's':
		c->order = c->order == TOP_BY_SELF ? TOP_BY_CHILDREN : TOP_BY_SELF;
		break;
	case 'i':
		c->no_idle = !c->no_idle;
		break;
	case 'f':
	case ' ':
		c->frozen = !c->frozen;
		break;
	case 'z':
		t->forget = true;
		break;
	case 'c':
		top_toggle_collecting(t);
		break;
	case 'h':
	case '?':
		top_show_help();
		break;
	default:
		top_select_row(t, key);
	}
	return true;
}

static int top_draw(struct top_top *t, struct err *e)
{
	struct top_size room = top_terminal_size();
	int ret;

	if (room.lines > 1)
		room.lines--; /* FOOT's */
	ret = top_view_draw(&t->screen, t->model, &t->status, &t->choice, room, e);
	if (!ret)
		top_terminal_show(&t->screen, FOOT);
	return ret;
}

static int top_show_terminal(struct top_top *t, struct err *e)
{
	uint64_t next = clock_mono_ns(), now;
	bool more = true;
	int ret = 0;

	while (!ret && more && !top_is_done(t)) {
		now = clock_mono_ns();
		if (now >= next) {
			if (!t->choice.frozen)
				top_update_or_end(t);
			next = clock_mono_ns() + (uint64_t)(t->opt.delay_s * 1e9);
			now = clock_mono_ns();
		}
		ret = top_draw(t, e);
		if (!ret)
			more = top_handle_key(t,
					      top_terminal_key((int)((next - now) / 1000000) + 1));
	}
	return ret;
}

/* -- all together -------------------------------------------------------------------- */

static int top_watch(struct top_top *t, int argc, char **argv, struct err *e)
{
	int ret;

	if (t->opt.control) {
		ret = control_client_open(&t->client, t->opt.control, e);
	} else {
		ret = top_guest_start(&t->guest, &t->machine, argc - optind, argv + optind, e);
		if (ret)
			return ret;
		ret = top_guest_connect(&t->guest, &t->client, e);
	}
	if (ret)
		return ret;
	ret = top_model_create(&t->model, e);
	if (ret)
		return ret;
	ret = top_hello(t, e);
	if (ret)
		return ret;
	if (t->opt.stdio || t->opt.json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return top_show_stdio(t, e);
	ret = top_terminal_open(e);
	if (ret)
		return ret;
	ret = top_show_terminal(t, e);
	top_terminal_close();
	return ret;
}

/* Prints the messages of the run that was started here. */
static void top_show_log(const struct top_guest *g)
{
	struct file_map m = { 0 };
	struct err ignored = { 0 };

	if (*g->log && !file_map_open(&m, g->log, 1u << 20, &ignored)) {
		fwrite(m.data, 1, m.len, stderr);
		file_map_close(&m);
	}
}

int cmd_top(int argc, char **argv)
{
	struct top_top t = { 0 };
	struct err e = { 0 };
	int status = top_parse(&t, argc, argv), ret;

	if (status >= 0)
		return status;
	signals_set(SIGNALS_REPORT);
	signal(SIGPIPE, SIG_IGN);
	top_screen_init(&t.screen);
	ret = top_watch(&t, argc, argv, &e);
	control_client_close(t.client);
	top_guest_end(&t.guest);
	top_show_log(&t.guest);
	/* The run has said itself why it could not begin. */
	status = ret == -ECHILD ? top_guest_exit_status(&t.guest) : ret != 0;
	if (!ret && !t.opt.control)
		status = top_guest_exit_status(&t.guest);
	if (ret && ret != -ECHILD)
		fprintf(stderr, "kvmprof top: %s\n", e.text);
	top_guest_deinit(&t.guest);
	top_model_destroy(t.model);
	top_screen_deinit(&t.screen);
	return status;
}
