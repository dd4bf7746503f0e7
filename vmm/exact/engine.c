/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/engine.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/proc.h"
#include "vmm/exact/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define QEMU_NAME "qemu-system-x86_64"
#define PLUGIN_NAME "kvmprof-exact.so"
#define FETCH_QEMU "scripts/fetch-qemu.sh"
/*
 * The longest path that a message has room for, and the room for all other parts of variable
 * length.
 */
#define PLACE_LEN 240u
#define ROOM_LEN 330u
#define ADVICE                                                   \
	"%s unpacks one beside the system, $KVMPROF_QEMU names " \
	"another"

/*
 * Reads until the end of file, for ENGINE_ANSWER_MS at most; what exceeds the size is dropped.
 * Returns false if the end has not come by then.
 */
static bool read_answer(int fd, char *text, size_t size)
{
	uint64_t until = clock_mono_ns() + ENGINE_ANSWER_MS * UINT64_C(1000000);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char dropped[256];
	size_t n = 0;

	for (;;) {
		uint64_t now = clock_mono_ns();
		bool full = n == size - 1;
		ssize_t got;

		text[n] = '\0';
		if (now >= until)
			return false;
		if (poll(&p, 1, (int)((until - now) / 1000000) + 1) <= 0)
			continue;
		got = read(fd, full ? dropped : text + n, full ? sizeof(dropped) : size - 1 - n);
		if (got == 0 || (got < 0 && errno != EINTR))
			return true;
		n += got > 0 && !full ? (size_t)got : 0;
	}
}

/*
 * Waits until the process ends, for ENGINE_ANSWER_MS at most. Then it kills the process and
 * returns -ETIMEDOUT.
 */
static int wait_for_end(pid_t pid)
{
	uint64_t until = clock_mono_ns() + ENGINE_ANSWER_MS * UINT64_C(1000000);
	const struct timespec nap = { .tv_nsec = 2000000 };
	pid_t got;

	while ((got = waitpid(pid, NULL, WNOHANG)) <= 0) {
		if (got < 0 && errno != EINTR)
			return -errno;
		if (clock_mono_ns() > until) {
			kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
			return -ETIMEDOUT;
		}
		nanosleep(&nap, NULL);
	}
	return 0;
}

/* Executes argv in the child. Uses system calls only. */
static void become(char *const argv[], int out, pid_t parent)
{
	int null = open("/dev/null", O_RDONLY);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
	    dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0)
		execv(argv[0], argv);
	syscall(SYS_exit_group, 127);
}

/*
 * Runs the program and stores what it prints on both streams. Returns 0, or -errno if it cannot be
 * started or does not end.
 */
static int engine_ask(char *const argv[], char *text, size_t size)
{
	pid_t parent = getpid(), pid;
	int out[2], ret;
	bool closed;

	*text = '\0';
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (!pid)
		become(argv, out[1], parent);
	ret = pid < 0 ? -errno : 0;
	close(out[1]);
	closed = ret || read_answer(out[0], text, size);
	close(out[0]);
	if (ret)
		return ret;
	if (!closed)
		kill(pid, SIGKILL);
	ret = wait_for_end(pid);
	return closed ? ret : -ETIMEDOUT;
}

/* Appends a rejected candidate and the reason to n->sought. */
static void __attribute__((format(printf, 3, 4)))
note_sought(struct engine *n, const char *path, const char *fmt, ...)
{
	size_t len = strlen(n->sought);
	char what[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	snprintf(n->sought + len, sizeof(n->sought) - len, "%s%.200s %s", len ? ", " : "", path,
		 what);
}

/* Returns the rest of the first line that begins with `begin`, or NULL if no line does. */
static const char *line_of(const char *text, const char *begin)
{
	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (!strncmp(at, begin, strlen(begin)))
			return at + strlen(begin);
		if (!*at)
			break;
	}
	return NULL;
}

/*
 * Reads the program's release. If it is not a usable QEMU, appends the reason to n->sought and
 * returns -errno.
 */
static int ask_release(struct engine *n, const char *path)
{
	char *argv[] = { (char *)path, (char *)"--version", NULL };
	char text[512];
	const char *release;
	int ret = engine_ask(argv, text, sizeof(text));

	if (ret == -ETIMEDOUT) {
		note_sought(n, path, "does not answer --version");
		return ret;
	}
	release = ret ? NULL : line_of(text, "QEMU emulator version ");
	n->micro = 0;
	if (!release || sscanf(release, "%u.%u.%u", &n->major, &n->minor, &n->micro) < 2) {
		note_sought(n, path, "is not QEMU");
		return -ENOEXEC;
	}
	snprintf(n->version, sizeof(n->version), "%.*s", (int)strcspn(release, "\n"), release);
	if (n->major < ENGINE_LEAST_MAJOR ||
	    (n->major == ENGINE_LEAST_MAJOR && n->minor < ENGINE_LEAST_MINOR)) {
		note_sought(n, path, "is %u.%u.%u", n->major, n->minor, n->micro);
		return -ENOTSUP;
	}
	return 0;
}

/* Returns the interface version that this release most likely accepts. */
static int likely_api(const struct engine *n)
{
	if (n->major > 11 || (n->major == 11 && n->minor))
		return 7;
	if (n->major == 11)
		return 6;
	return n->major == 10 && n->minor ? 5 : 3;
}

size_t engine_plugin_argument(const struct engine *n, char out[ENGINE_PLUGIN_ROOM])
{
	/* Without "file=", a path that contains "=" would be parsed as an option. */
	size_t len = (size_t)snprintf(out, ENGINE_PLUGIN_ROOM, "file=");

	for (const char *c = n->plugin; *c; c++) {
		if (*c == ',')
			out[len++] = ',';
		out[len++] = *c;
	}
	out[len] = '\0';
	return len;
}

/*
 * Starts QEMU with the plugin, which declares version `api`. Returns true and stores the versions
 * in n if QEMU accepts it.
 */
static bool loads_plugin(struct engine *n, const char *path, int api, char *text, size_t size)
{
	char option[ENGINE_PLUGIN_ROOM], number[8], target[33];
	const size_t len = engine_plugin_argument(n, option);
	char *argv[] = { (char *)path,
			 (char *)"-machine",
			 (char *)"none",
			 (char *)"-display",
			 (char *)"none",
			 (char *)"-nodefaults",
			 (char *)"-no-user-config",
			 (char *)"-plugin",
			 option,
			 NULL };
	const char *answer;
	int least;

	snprintf(option + len, sizeof(option) - len, ",versions=on");
	snprintf(number, sizeof(number), "%d", api);
	setenv(ENGINE_API_VARIABLE, number, 1);
	answer = engine_ask(argv, text, size) ? NULL : line_of(text, EXACT_ANSWER " ");
	if (!answer || sscanf(answer, "%d %d %32s", &least, &n->api_newest, target) != 3 ||
	    strcmp(target, "x86_64") != 0)
		return false;
	n->api = api;
	return true;
}

/* Returns 0 if QEMU at this path is usable, else -errno, with the reason appended to n->sought. */
static int try_qemu(struct engine *n, const char *path)
{
	char first[512], text[512];
	const char *why;
	int likely, ret;

	if (access(path, X_OK))
		return -ENOENT;
	ret = ask_release(n, path);
	if (ret)
		return ret;
	/* The sandbox may hide symbolic links that lead to it. */
	if (!realpath(path, n->qemu))
		return -errno;
	likely = likely_api(n);
	if (loads_plugin(n, path, likely, first, sizeof(first)))
		return 0;
	for (int api = ENGINE_API_MOST; api >= ENGINE_API_LEAST; api--)
		if (api != likely && loads_plugin(n, path, api, text, sizeof(text)))
			return 0;
	why = strstr(first, "ould not load plugin");
	why = why ? strstr(why, ".so: ") : NULL;
	why = why ? why + strlen(".so: ") : first;
	note_sought(n, path, "is %u.%u.%u and does not load the plugin: %.*s", n->major, n->minor,
		    n->micro, (int)strcspn(why, "\n"), *why ? why : "it does not answer");
	return -ENOTSUP;
}

static int try_path(struct engine *n)
{
	const char *at = getenv("PATH");
	char path[PATH_MAX];
	int ret = -ENOENT;

	while (ret && at && *at) {
		size_t len = strcspn(at, ":");

		if (len && (size_t)snprintf(path, sizeof(path), "%.*s/" QEMU_NAME, (int)len, at) <
				   sizeof(path))
			ret = try_qemu(n, path);
		at += len + (at[len] == ':');
	}
	return ret;
}

/*
 * Tries the QEMUs in the cache of the scripts: $KVMPROF_CACHE, or kvmprof in the user's cache
 * directory.
 */
static int try_cache(struct engine *n)
{
	const char *own = getenv("KVMPROF_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	char pattern[PATH_MAX];
	int ret = -ENOENT;
	glob_t found;

	if (own && *own)
		snprintf(pattern, sizeof(pattern), "%s/qemu-*/bin/" QEMU_NAME, own);
	else if (xdg && *xdg)
		snprintf(pattern, sizeof(pattern), "%s/kvmprof/qemu-*/bin/" QEMU_NAME, xdg);
	else if (home && *home)
		snprintf(pattern, sizeof(pattern), "%s/.cache/kvmprof/qemu-*/bin/" QEMU_NAME, home);
	else
		return -ENOENT;
	if (glob(pattern, 0, NULL, &found))
		return -ENOENT;
	/* Names contain the version, so the newest one is last. */
	for (size_t i = found.gl_pathc; ret && i-- > 0;)
		ret = try_qemu(n, found.gl_pathv[i]);
	globfree(&found);
	return ret;
}

/*
 * Looks for a file at `place`, relative to the directory of the program. Returns true and stores
 * its path without links if it exists.
 */
static bool find_beside(const char *place, int access_mode, char out[PATH_MAX])
{
	char program[PATH_MAX], self[PATH_MAX], path[2 * PATH_MAX];
	char *slash = realpath(proc_program(program), self) ? strrchr(self, '/') : NULL;

	if (!slash)
		return false;
	snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - self), self, place);
	return access(path, access_mode) == 0 && realpath(path, out);
}

static int find_plugin(struct engine *n, struct err *e)
{
	static const char *const beside[] = { PLUGIN_NAME, "../lib/kvmprof/" PLUGIN_NAME };
	const char *named = getenv("KVMPROF_PLUGIN");

	if (named && *named) {
		return realpath(named, n->plugin) && !access(n->plugin, R_OK)
			       ? 0
			       : err_set(e, errno, "$KVMPROF_PLUGIN: %.300s: %s", named,
					 strerror(errno));
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(beside); i++)
		if (find_beside(beside[i], R_OK, n->plugin))
			return 0;
	return err_set(
		e, ENOENT,
		"--engine exact needs " PLUGIN_NAME ", which is neither beside kvmprof nor "
		"in ../lib/kvmprof: Debian's package kvmprof-exact has it, and `make` builds it");
}

/* Returns the script as `make install` and the package have it, else its place in the source. */
static const char *fetch_script(char out[PATH_MAX])
{
	return find_beside("../share/kvmprof/" FETCH_QEMU, X_OK, out) && strlen(out) < PLACE_LEN
		       ? out
		       : FETCH_QEMU;
}

int engine_find(struct engine *n, struct err *e)
{
	char path[PATH_MAX];
	const char *named = getenv("KVMPROF_QEMU"), *script = fetch_script(path);
	int ret, room = (int)(ROOM_LEN - strlen(script));

	memset(n, 0, sizeof(*n));
	ret = find_plugin(n, e);
	if (ret)
		return ret;
	if (named && *named) {
		ret = try_qemu(n, named);
		return ret ? err_set(e, -ret,
				     "$KVMPROF_QEMU: %.*s; --engine exact needs QEMU %u.%u or "
				     "later: " ADVICE,
				     room, *n->sought ? n->sought : "no such program",
				     ENGINE_LEAST_MAJOR, ENGINE_LEAST_MINOR, script)
			   : 0;
	}
	ret = try_path(n);
	ret = ret ? try_cache(n) : 0;
	return ret ? err_set(e, ENOENT, "--engine exact needs QEMU %u.%u or later%s%.*s%s: " ADVICE,
			     ENGINE_LEAST_MAJOR, ENGINE_LEAST_MINOR, *n->sought ? " (" : "", room,
			     n->sought, *n->sought ? ")" : "", script)
		   : 0;
}
