/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/analyse/annotate/lines.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

struct annotate_lines {
	struct srcline *kernel; /* borrowed; NULL: the function is a program's */
	uint64_t shift;		/* as in struct name */
	struct lines *own;	/* lines in the program's own file; owned */
	struct debuginfo *info;
	/* The source file opened last. */
	char *path;
	struct file_map source;
};

static int open_program(struct annotate_lines *l, const struct annotate_function *fn,
			const struct annotate_text *text, const struct debuginfo_places *places,
			struct err *why, struct err *e)
{
	int ret;

	if (text->file.data &&
	    lines_open(text->file.data, text->file.len, fn->dso, &l->own, NULL) == 0)
		return 0;
	if (!fn->id_len)
		return 0;
	ret = debuginfo_open(&l->info, places, fn->build_id, fn->id_len, why);
	/* --debuginfo is often the kernel's file: another build id is not an error here. */
	if (ret && ret != -ENOENT && ret != -ESTALE)
		return err_set(e, -ret, "%s", why->text);
	return 0;
}

int annotate_lines_open(struct annotate_lines **out, const struct annotate_function *fn,
			const struct annotate_text *text, struct srcline *srcline, struct err *why,
			struct err *e)
{
	struct annotate_lines *l = calloc(1, sizeof(*l));
	int ret;

	if (!l)
		return err_nomem(e);
	if (fn->kernel && fn->other_kernel) {
		err_set(why, ENOENT,
			"the function is that of a later kernel: choose that kernel with --epoch");
		ret = 0;
	} else if (fn->kernel) {
		l->kernel = srcline;
		l->shift = fn->shift;
		ret = srcline_load(srcline, why);
		if (!ret || ret == -ENOENT) {
			if (!ret && *srcline_reason(srcline))
				err_set(why, ENOENT, "%s", srcline_reason(srcline));
			ret = 0;
		} else {
			err_set(e, -ret, "%s", why->text);
		}
	} else {
		ret = open_program(l, fn, text, srcline_places(srcline), why, e);
	}
	if (ret)
		annotate_lines_close(l);
	else
		*out = l;
	return ret;
}

void annotate_lines_close(struct annotate_lines *l)
{
	if (!l)
		return;
	lines_close(l->own);
	debuginfo_close(l->info);
	file_map_close(&l->source);
	free(l->path);
	free(l);
}

bool annotate_lines_at(struct annotate_lines *l, uint64_t addr, struct annotate_line *out)
{
	struct line_frame frame[LINES_MAX_FRAMES];
	struct srcline_result r = { 0 };
	struct lines *from = l->own ? l->own : l->info ? debuginfo_lines(l->info) : NULL;
	int n = 0;

	if (l->kernel) {
		r = srcline_of(l->kernel, addr - l->shift);
	} else if (from) {
		n = lines_lookup(from, addr, frame, LINES_MAX_FRAMES, NULL);
		r = (struct srcline_result){ .frame = frame, .n = n > 0 ? (unsigned int)n : 0 };
	}
	if (!r.n)
		return false;
	*out = (struct annotate_line){ r.frame[0].function, r.frame[0].file, r.frame[0].line };
	return true;
}

const char *annotate_lines_source(void *ctx, const char *file, unsigned int line)
{
	struct annotate_lines *l = ctx;
	const uint8_t *p, *end;

	if (file[0] != '/')
		return NULL;
	if (!l->path || strcmp(l->path, file) != 0) {
		file_map_close(&l->source);
		l->source = (struct file_map){ 0 };
		free(l->path);
		l->path = strdup(file);
		if (!l->path)
			return NULL;
		file_map_open(&l->source, file, ANNOTATE_MAX_SOURCE, NULL);
	}
	p = l->source.data;
	end = p + l->source.len;
	while (p && p < end && --line) {
		p = memchr(p, '\n', (size_t)(end - p));
		p = p ? p + 1 : NULL;
	}
	/* The printer stops at the end of the line, so there must be one. */
	return p && p < end && memchr(p, '\n', (size_t)(end - p)) ? (const char *)p : NULL;
}
