/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/perfdata/sink_files.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/format/files/buildid_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int perfdata_sink_failed(struct sink_perfdata *p, const char *name, int ret)
{
	if (ret < 0 && !p->failed) {
		p->failed = ret;
		snprintf(p->at_fault, sizeof(p->at_fault), "%s", name);
	}
	return ret;
}

static char *path_in(const struct sink_perfdata *p, const char *name, struct err *e)
{
	char *path;

	if (asprintf(&path, "%s/%s", p->tmp, name) >= 0)
		return path;
	err_set(e, ENOMEM, "%s: out of memory", p->tmp);
	return NULL;
}

int perfdata_sink_create_in(struct sink_perfdata *p, const char *name, char **path, struct err *e)
{
	int fd;

	*path = path_in(p, name, e);
	if (!*path)
		return perfdata_sink_failed(p, name, -ENOMEM);
	fd = open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	perfdata_sink_failed(p, name, -errno);
	return err_set(e, errno, "%s: cannot create %s: %s", p->path, name, strerror(errno));
}

static int put_bytes(struct sink_perfdata *p, const char *name, int fd, const void *data,
		     size_t len, struct err *e)
{
	int ret = len ? file_write_all(fd, data, len) : 0;

	if (close(fd) < 0 && !ret)
		ret = -errno;
	if (!ret)
		return 0;
	perfdata_sink_failed(p, name, ret);
	return err_set(e, -ret, "%s: cannot write %s: %s", p->path, name, strerror(-ret));
}

int perfdata_sink_put_file(struct sink_perfdata *p, const char *name, const void *data, size_t len,
			   struct err *e)
{
	cleanup_free char *path = NULL;
	int fd = perfdata_sink_create_in(p, name, &path, e), ret;

	if (fd < 0)
		return fd;
	ret = put_bytes(p, name, fd, data, len, e);
	/* A partial file is useless, and the samples may need its space. */
	if (ret)
		unlink(path);
	return ret;
}

int perfdata_sink_append(struct sink_perfdata *p, const char *name, const void *data, size_t len,
			 struct err *e)
{
	cleanup_free char *path = path_in(p, name, e);
	int fd;

	if (!path)
		return perfdata_sink_failed(p, name, -ENOMEM);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0) {
		perfdata_sink_failed(p, name, -errno);
		return err_set(e, errno, "%s: cannot open: %s", path, strerror(errno));
	}
	return put_bytes(p, name, fd, data, len, e);
}

int perfdata_sink_rename_in(struct sink_perfdata *p, const char *from, const char *to,
			    struct err *e)
{
	cleanup_free char *a = path_in(p, from, e), *b = path_in(p, to, e);

	if (!a || !b)
		return perfdata_sink_failed(p, to, -ENOMEM);
	if (rename(a, b) == 0)
		return 0;
	perfdata_sink_failed(p, to, -errno);
	return err_set(e, errno, "%s: cannot rename: %s", a, strerror(errno));
}

void perfdata_sink_remove_in(struct sink_perfdata *p, const char *name)
{
	cleanup_free char *path = path_in(p, name, NULL);

	if (path)
		unlink(path);
}

void perfdata_sink_note(struct sink_perfdata *p, const struct err *ce)
{
	if (p->opt.note)
		err_set(p->opt.note, ce->code, "%s", ce->text);
}

void perfdata_sink_cache(struct sink_perfdata *p, const struct buildid_file_entry *x)
{
	struct err ce = { 0 };

	if (p->opt.no_buildid_cache ||
	    (p->opt.cache_stage && p->buildid_dir && buildid_cache_has(p->buildid_dir, x)))
		return;
	if (!p->buildid_dir)
		err_set(&ce, ENOENT,
			"HOME is not set or does not exist: %s was not added to perf's build-id "
			"cache",
			x->name);
	else
		buildid_cache_add(p->opt.cache_stage ? p->opt.cache_stage : p->buildid_dir, x, &ce);
	if (ce.code)
		perfdata_sink_note(p, &ce);
}

int perfdata_sink_publish(struct sink_perfdata *p, struct err *e)
{
	if (p->opt.in_place)
		return 0;
	return p->registered ? p->opt.publisher->publish(p->opt.publisher->ctx, e)
			     : file_publish(p->tmp, p->path, e);
}

int perfdata_sink_remove(struct sink_perfdata *p, struct err *e)
{
	return p->registered ? p->opt.publisher->remove(p->opt.publisher->ctx, e)
			     : file_remove_tree(p->tmp, e);
}
