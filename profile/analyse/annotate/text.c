/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Code of the kernel and of modules comes from the profile's `text`, a program's from the file in
 * the profile or in perf's build-id cache.
 */
#include "profile/analyse/annotate/text.h"

#include "base/cleanup.h"
#include "profile/format/files/buildid_cache.h"
#include "symbolizer/program/userelf.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/perfdata/textstore.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define FROM_TEXT "guest memory"
#define FROM_FILE "the program's file"

void annotate_text_deinit(struct annotate_text *t)
{
	free(t->live);
	free(t->image);
	file_map_close(&t->file);
	*t = (struct annotate_text){ 0 };
}

static int copy_range(struct annotate_text *out, const struct textstore_range *r,
		      const struct annotate_function *fn, struct err *e)
{
	size_t skip = (size_t)(fn->addr - r->addr);
	cleanup_free uint8_t *image = NULL;

	out->len = r->len - skip < fn->size ? r->len - skip : (size_t)fn->size;
	out->live = malloc(out->len);
	if (r->has_image) {
		image = malloc(r->len);
		out->image = malloc(out->len);
	}
	if (!out->live || (r->has_image && (!image || !out->image)))
		return err_nomem(e);
	memcpy(out->live, r->live + skip, out->len);
	if (r->has_image) {
		textstore_image(r, image);
		memcpy(out->image, image + skip, out->len);
	}
	out->source = FROM_TEXT;
	return 0;
}

static int kernel_text(struct annotate_text *out, const struct annotate_function *fn, struct err *e)
{
	const struct textstore_range *r;
	struct textstore *store = NULL;
	cleanup_free char *path = NULL;
	struct file_map map = { 0 };
	char module[TEXTSTORE_MAX_NAME] = "";
	size_t n = strlen(fn->dso);
	int ret;

	if (!fn->from->dir)
		return err_set(e, ENOENT,
			       "%s: a profile of one file has no code of the kernel; record "
			       "without --single-file",
			       fn->symbol->name);
	if (strcmp(fn->dso, PERFDATA_KERNEL_DSO) != 0 && n > 2)
		snprintf(module, sizeof(module), "%.*s", (int)(n - 2), fn->dso + 1);
	if (asprintf(&path, "%s/text", fn->from->dir) < 0) {
		path = NULL;
		return err_nomem(e);
	}
	if (access(path, F_OK) < 0)
		return err_set(e, ENOENT,
			       "%s: missing, so the profile has no code of the kernel; record it "
			       "again with this kvmprof",
			       path);
	ret = file_map_open(&map, path, TEXTSTORE_MAX_FILE, e);
	ret = ret ? ret : textstore_parse(&store, path, map.data, map.len, e);
	if (!ret) {
		r = textstore_find(store, module, fn->addr);
		ret = r ? copy_range(out, r, fn, e)
			: err_set(e, ENOENT,
				  "%s has no code of %s: it could not be read from the guest's "
				  "memory",
				  path, fn->symbol->name);
	}
	textstore_destroy(store);
	file_map_close(&map);
	return ret;
}

/* Returns 0 also if there is no such file, or no code in it. */
static int program_text(struct annotate_text *out, const struct annotate_function *fn,
			const char *path)
{
	struct file_map m = { 0 };
	struct file_bytes bytes;
	struct file_source src;
	const uint8_t *p;
	struct userelf u;
	size_t n = 0;

	if (file_map_open(&m, path, NAMES_MAX_ELF, NULL) < 0)
		return 0;
	bytes = (struct file_bytes){ m.data, m.len };
	src = filepiece_source_of_bytes(&bytes);
	if (fn->size <= TEXTSTORE_MAX_LEN && userelf_open(&u, path, &src, NULL) == 0)
		n = userelf_text_at(&u, m.data, m.len, fn->addr, (size_t)fn->size, &p);
	out->live = n ? malloc(n) : NULL;
	if (!out->live) {
		file_map_close(&m);
		return n ? -ENOMEM : 0;
	}
	memcpy(out->live, p, n);
	out->len = n;
	out->source = FROM_FILE;
	out->file = m;
	return 1;
}

static int user_text(struct annotate_text *out, const struct annotate_function *fn,
		     const char *buildid_dir, struct err *e)
{
	cleanup_free char *own = NULL, *cached = NULL, *home = NULL;
	char hex[BUILDID_HEX_MAX];
	int ret = 0;

	buildid_hex(hex, fn->build_id, fn->id_len);
	if (!buildid_dir)
		buildid_dir = home = buildid_default_dir();
	if (fn->id_len && fn->from->dir && asprintf(&own, "%s/dso/%s", fn->from->dir, hex) > 0)
		ret = program_text(out, fn, own);
	if (!ret && fn->id_len && buildid_dir &&
	    asprintf(&cached, "%s/.build-id/%.2s/%s/%s", buildid_dir, hex, hex + 2,
		     buildid_file(fn->dso)) > 0)
		ret = program_text(out, fn, cached);
	if (ret < 0)
		return err_set(e, -ret, "out of memory");
	if (!ret && !strncmp(fn->dso, "[jit:", 5))
		return err_set(e, ENOENT,
			       "%s: code that the guest generated at run time; the profile has its "
			       "names but not the code",
			       fn->dso);
	return ret ? 0
		   : err_set(e, ENOENT,
			     "%s: the profile has its names but not its code (all of the file was "
			     "not in the guest's page cache); `kvmprof run --guest-root DIR` takes "
			     "it from there",
			     fn->dso);
}

int annotate_text(struct annotate_text *out, const struct annotate_function *fn,
		  const char *buildid_dir, struct err *e)
{
	int ret;

	*out = (struct annotate_text){ 0 };
	ret = fn->kernel ? kernel_text(out, fn, e) : user_text(out, fn, buildid_dir, e);
	if (ret)
		annotate_text_deinit(out);
	return ret;
}
