/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/files/buildid_cache.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void buildid_hex(char hex[BUILDID_HEX_MAX], const uint8_t *id, size_t len)
{
	static const char digit[] = "0123456789abcdef";
	size_t n = 0;

	for (size_t i = 0; i < len && n + 2 < BUILDID_HEX_MAX; i++) {
		hex[n++] = digit[id[i] >> 4];
		hex[n++] = digit[id[i] & 15];
	}
	hex[n] = '\0';
}

char *buildid_default_dir(void)
{
	const char *home = getenv("HOME");
	char *dir;

	/* Do not create a home directory that does not exist. */
	if (!home || !*home || access(home, F_OK) < 0 || asprintf(&dir, "%s/.debug", home) < 0)
		return NULL;
	return dir;
}

const char *buildid_file(const char *dso_name)
{
	/* As dso__is_vdso() in tools/perf/util/vdso.c. */
	return !strcmp(dso_name, "[vdso]") || !strcmp(dso_name, "[vdso32]") ||
			       !strcmp(dso_name, "[vdsox32]")
		       ? "vdso"
		       : "elf";
}

/* The name comes from the guest, so it must not lead out of the cache. */
static bool name_is_safe(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len > 1024 || name[0] == '.' || !strncmp(name, "/.", 2))
		return false;
	for (const char *p = name; p; p = strchr(p, '/')) {
		while (*p == '/')
			p++;
		if (!strcmp(p, "..") || !strncmp(p, "../", 3))
			return false;
	}
	return true;
}

static int write_file(const char *path, const void *data, size_t len, struct err *e)
{
	cleanup_free char *tmp = NULL;

	if (access(path, F_OK) == 0)
		return 0;
	if (asprintf(&tmp, "%s.tmp-%d", path, (int)getpid()) < 0)
		return err_set(e, ENOMEM, "%s: out of memory", path);
	/* The temporary file of a killed process with the same pid may exist. */
	return file_replace(tmp, path, data, len, e);
}

/* Returns the path of a file's directory below the cache. */
static const char *name_in_cache(const struct buildid_file_entry *x)
{
	const char *name = name_is_safe(x->name) ? x->name : "kvmprof";

	return name + strspn(name, "/");
}

bool buildid_cache_has(const char *dir, const struct buildid_file_entry *x)
{
	const char *name = name_in_cache(x);
	cleanup_free char *path = NULL;
	char hex[BUILDID_HEX_MAX];

	buildid_hex(hex, x->id, x->id_len);
	if (asprintf(&path, "%s/%s/%s/%s", dir, name, hex, x->file) < 0)
		path = NULL;
	return path && access(path, F_OK) == 0;
}

int buildid_cache_add(const char *dir, const struct buildid_file_entry *x, struct err *e)
{
	const char *name = name_in_cache(x);
	cleanup_free char *place = NULL, *path = NULL, *bucket = NULL, *link = NULL, *target = NULL;
	char hex[BUILDID_HEX_MAX];
	int ret;

	buildid_hex(hex, x->id, x->id_len);
	if (asprintf(&place, "%s/%s/%s", dir, name, hex) < 0 ||
	    asprintf(&path, "%s/%s", place, x->file) < 0 ||
	    asprintf(&bucket, "%s/.build-id/%.2s", dir, hex) < 0 ||
	    asprintf(&link, "%s/%s", bucket, hex + 2) < 0 ||
	    asprintf(&target, "../../%s/%s", name, hex) < 0)
		return err_set(e, ENOMEM, "%s: out of memory", dir);
	ret = file_mkdirs(place, e);
	if (!ret)
		ret = write_file(path, x->data, x->len, e);
	if (!ret)
		ret = file_mkdirs(bucket, e);
	/* An existing link leads to the same bytes under another name. */
	if (!ret && symlink(target, link) < 0 && errno != EEXIST)
		ret = err_set(e, errno, "%s: cannot create link: %s", link, strerror(errno));
	return ret;
}
