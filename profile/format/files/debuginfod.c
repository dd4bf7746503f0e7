/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/files/debuginfod.h"

#include "base/cleanup.h"
#include "base/library.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The functions that are loaded; names and types are those of the library's header. */
/* clang-format off */
#define FUNCTIONS(X) \
	X(debuginfod_begin) \
	X(debuginfod_end) \
	X(debuginfod_find_debuginfo) \
	X(debuginfod_set_progressfn) \
	X(debuginfod_set_user_data) \
	X(debuginfod_get_url)
/* clang-format on */

struct debuginfod_functions {
	FUNCTIONS(LIBRARY_MEMBER)
};

static const char *const function_names[] = { FUNCTIONS(LIBRARY_NAME) };

struct fetch {
	const struct debuginfod_functions *lib;
	debuginfod_progress_fn *progress;
	void *ctx;
	long shown; /* megabytes shown last, plus 1 */
};

static int debuginfod_load(struct debuginfod_functions *lib, struct err *e)
{
	const struct library want = {
		.soname = DEBUGINFOD_SONAME,
		.what = "debuginfod",
		.hint = "install libdebuginfod1 or unset DEBUGINFOD_URLS",
		.names = function_names,
		.nnames = ARRAY_SIZE(function_names),
	};

	return library_load(&want, (void **)lib, e);
}

/*
 * The library calls back with its own handle only; the function that returns our pointer is in the
 * library.
 */
static struct fetch *user_data(debuginfod_client *c)
{
	void *h = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_NOLOAD), *data = NULL;
	__typeof__(&debuginfod_get_user_data) get;

	if (!h)
		return NULL;
	get = (__typeof__(get))dlsym(h, "debuginfod_get_user_data");
	if (get)
		data = get(c);
	dlclose(h);
	return data;
}

static int on_progress(debuginfod_client *c, long have, long whole)
{
	struct fetch *f = user_data(c);
	const char *url, *end;
	char text[160];

	if (!f || whole <= 0 || have / 1000000 + 1 == f->shown)
		return 0;
	f->shown = have / 1000000 + 1;
	url = f->lib->debuginfod_get_url(c);
	if (!url)
		url = "a server";
	/* Show the server only: the rest is the build id, which is long. */
	end = strstr(url, "/buildid/");
	snprintf(text, sizeof(text), "debuginfod: %ld of %ld MB from %.*s", have / 1000000,
		 whole / 1000000, (int)(end && end - url < 60 ? end - url : 60), url);
	f->progress(f->ctx, text);
	return 0;
}

int debuginfod_fetch(const uint8_t *id, size_t len, debuginfod_progress_fn *progress, void *ctx,
		     char **path, struct err *e)
{
	const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);
	struct debuginfod_functions lib;
	struct fetch f = { .lib = &lib, .progress = progress, .ctx = ctx };
	debuginfod_client *c;
	char *got = NULL;
	int fd;

	if (!urls || !*urls)
		return err_set(e, ENOENT, DEBUGINFOD_URLS_ENV_VAR " is not set");
	if (debuginfod_load(&lib, e) < 0)
		return -ENOENT;
	c = lib.debuginfod_begin();
	if (!c)
		return err_set(e, ENOMEM, "debuginfod: out of memory");
	lib.debuginfod_set_user_data(c, &f);
	if (progress)
		lib.debuginfod_set_progressfn(c, on_progress);
	fd = lib.debuginfod_find_debuginfo(c, id, (int)len, &got);
	lib.debuginfod_end(c);
	if (progress && f.shown)
		progress(ctx, NULL);
	if (fd < 0)
		return err_set(e, -fd, "debuginfod: %.150s does not provide it: %s", urls,
			       strerror(-fd));
	close(fd);
	*path = got;
	return 0;
}
