/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/exact/engine.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define QEMU_NAME "qemu-system-x86_64"
#define PLUGIN_NAME "kvmprof-exact.so"
#define ADVICE "scripts/fetch-qemu.sh unpacks one beside the system, $KVMPROF_QEMU names another"

extern char **environ;

/* The first line of `path --version`, or -errno. */
static int ask_version(const char *path, char *line, size_t size)
{
	char *argv[] = { (char *)path, (char *)"--version", NULL };
	posix_spawn_file_actions_t actions;
	size_t n = 0;
	ssize_t got;
	int out[2], ret, status;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	ret = -posix_spawn(&pid, path, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(out[1]);
	while (!ret && n < size - 1 && (got = read(out[0], line + n, size - 1 - n)) > 0)
		n += (size_t)got;
	close(out[0]);
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (ret)
		return ret;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return status ? -ENOEXEC : 0;
}

static bool is_new_enough(const struct engine *n)
{
	return n->major > ENGINE_LEAST_MAJOR ||
	       (n->major == ENGINE_LEAST_MAJOR && n->minor >= ENGINE_LEAST_MINOR);
}

/* 0: it will do; what it is otherwise is added to n->sought. */
static int try_qemu(struct engine *n, const char *path)
{
	static const char says[] = "QEMU emulator version ";
	size_t len = strlen(n->sought);
	char line[256];
	int ret;

	if (access(path, X_OK))
		return -ENOENT;
	ret = ask_version(path, line, sizeof(line));
	if (!ret && strncmp(line, says, strlen(says)) != 0)
		ret = -ENOEXEC;
	n->micro = 0;
	if (!ret && sscanf(line + strlen(says), "%u.%u.%u", &n->major, &n->minor, &n->micro) < 2)
		ret = -ENOEXEC;
	if (ret) {
		snprintf(n->sought + len, sizeof(n->sought) - len, "%s%.200s is no QEMU",
			 len ? ", " : "", path);
		return ret;
	}
	snprintf(n->version, sizeof(n->version), "%.127s", line + strlen(says));
	if (!is_new_enough(n)) {
		snprintf(n->sought + len, sizeof(n->sought) - len, "%s%.200s is %u.%u.%u",
			 len ? ", " : "", path, n->major, n->minor, n->micro);
		return -ENOTSUP;
	}
	snprintf(n->qemu, sizeof(n->qemu), "%s", path);
	return 0;
}

static int try_path(struct engine *n)
{
	const char *at = getenv("PATH");
	char path[PATH_MAX];

	while (at && *at) {
		size_t len = strcspn(at, ":");

		if (len &&
		    (size_t)snprintf(path, sizeof(path), "%.*s/" QEMU_NAME, (int)len, at) <
			    sizeof(path) &&
		    !access(path, X_OK))
			return try_qemu(n, path);
		at += len + (at[len] == ':');
	}
	return -ENOENT;
}

/* As the scripts have it: $KVMPROF_CACHE, or kvmprof in the user's cache. */
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
	/* By name, the newest last. */
	for (size_t i = found.gl_pathc; ret && i-- > 0;)
		ret = try_qemu(n, found.gl_pathv[i]);
	globfree(&found);
	return ret;
}

static int find_plugin(struct engine *n, struct err *e)
{
	static const char *const beside[] = { "/" PLUGIN_NAME, "/../lib/kvmprof/" PLUGIN_NAME };
	const char *named = getenv("KVMPROF_PLUGIN");
	char self[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 64);
	char *slash;

	if (named && *named) {
		snprintf(n->plugin, sizeof(n->plugin), "%s", named);
		return access(n->plugin, R_OK) ? err_set(e, errno, "$KVMPROF_PLUGIN: %.300s: %s",
							 named, strerror(errno))
					       : 0;
	}
	self[len > 0 ? len : 0] = '\0';
	slash = strrchr(self, '/');
	for (unsigned int i = 0; slash && i < ARRAY_SIZE(beside); i++) {
		strcpy(slash, beside[i]);
		if (!access(self, R_OK)) {
			memcpy(n->plugin, self, sizeof(self));
			return 0;
		}
	}
	return err_set(e, ENOENT,
		       "--engine exact needs " PLUGIN_NAME ", which is neither beside kvmprof nor "
		       "in ../lib/kvmprof: Debian's package kvmprof-exact has it, and `make` builds it");
}

int engine_find(struct engine *n, struct err *e)
{
	const char *named = getenv("KVMPROF_QEMU");
	int ret;

	memset(n, 0, sizeof(*n));
	if (named && *named) {
		ret = try_qemu(n, named);
		if (ret)
			return err_set(e, -ret,
				       "$KVMPROF_QEMU: %s; --engine exact needs QEMU %u.%u or "
				       "later: " ADVICE,
				       *n->sought ? n->sought : "no such program",
				       ENGINE_LEAST_MAJOR, ENGINE_LEAST_MINOR);
		return find_plugin(n, e);
	}
	ret = try_path(n);
	ret = ret ? try_cache(n) : 0;
	if (ret)
		return err_set(e, ENOENT,
			       "--engine exact needs QEMU %u.%u or later%s%.200s%s: " ADVICE,
			       ENGINE_LEAST_MAJOR, ENGINE_LEAST_MINOR, *n->sought ? " (" : "",
			       n->sought, *n->sought ? ")" : "");
	return find_plugin(n, e);
}
