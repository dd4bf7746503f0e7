/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * iprof: counts by image and offset, in a directory of text files, in the manner of
 * Compaq's continuous profiler (DCPI, iprobe), whose tools looked for samples by image.
 *
 *   NAME-IMAGEID.prof, with --per-pid NAME-IMAGEID-PID.prof:
 *     *( "# " key ": " value "\n" )           the header
 *     *( "0x" offset " " count "\n" )         by offset; count: samples that were there
 *     *( "# function: 0x" offset " 0x" size " " name "\n" )      those of the counts; not the kernel's
 *   kernel.syms:
 *     *( "0x" offset " 0x" size " " name " " image "\n" )      by image, then offset
 *
 * Keys are image (its path), mode (kernel or user), unit (counts are samples), profiler (its name and version), and of
 * one process pid and comm.
 *
 * NAME is the last part of the image's path (kernel; of modules the module's name), with
 * '_' for what is no letter, digit, '.', '_' or '-'. IMAGEID is 16 digits that tell images
 * of one name apart: FNV-1a of the path. Offsets are in the file; in the kernel and its
 * modules from where they begin; in code without a file addresses. kernel.syms has the
 * functions of the kernel and modules that counts are in; blanks in their names are coded (coded.h).
 */
#include "profile/analyse/export/private.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/table.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILES 65536u
#define NAME_LEN 100u
#define ALL_PIDS UINT32_MAX
#define NO_FUNC UINT32_MAX

/* The samples counted at one place: first for one stack, then for all. */
struct iprof_place {
	uint32_t image, pid;
	uint64_t offset, count;
	uint32_t func, task; /* indexes into the stackset; NO_FUNC: none */
	uint64_t off;	     /* offset in the function */
};

struct symbol_line {
	const char *image, *name;
	uint64_t offset, size;
};

struct iprof {
	const struct stackset *s;
	const struct export_options *opt;
	const char *dir;
	struct table images; /* const char *: a stackset's equal texts are one pointer */
	struct iprof_place *place;
	size_t nplaces;
	struct symbol_line *symbol;
	size_t nsymbols;
};

static const char no_image[] = "[unknown]";

static bool equal_pointer(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return *(const char *const *)a == *(const char *const *)b;
}

static int find_places(struct iprof *p)
{
	const struct stackset *s = p->s;
	int ret = 0;

	p->place = calloc(s->nstacks + 1, sizeof(*p->place));
	if (!p->place)
		return -ENOMEM;
	for (size_t i = 0; !ret && i < s->nstacks; i++) {
		const struct stackset_stack *st = &s->stack[i];
		const struct stackset_frame *f = st->n ? &s->frame[st->frame[0]] : NULL;
		const char *image = f ? s->func[f->func].dso : no_image;
		struct iprof_place *at = &p->place[p->nplaces++];
		bool fresh;

		at->pid = p->opt->per_pid ? s->task[st->task].pid : ALL_PIDS;
		at->offset = f ? f->image : 0;
		at->count = st->samples;
		at->func = f ? f->func : NO_FUNC;
		at->off = f ? f->off : 0;
		at->task = st->task;
		ret = table_add(&p->images, table_mix((uint64_t)(uintptr_t)image, 1), &image,
				&at->image, &fresh);
	}
	return ret;
}

static int compare_places(const void *a, const void *b)
{
	const struct iprof_place *x = a, *y = b;

	if (x->image != y->image)
		return x->image < y->image ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	return x->task < y->task ? -1 : x->task > y->task;
}

/* -- files ------------------------------------------------------------------------------------- */

static void image_name(const char *image, char name[NAME_LEN])
{
	const char *slash = strrchr(image, '/'), *from = slash ? slash + 1 : image;
	size_t n = 0;

	if (!strncmp(image, "[kernel.kallsyms]", 17))
		from = "kernel";
	for (; *from && n + 1 < NAME_LEN; from++) {
		bool plain = (*from >= 'a' && *from <= 'z') || (*from >= 'A' && *from <= 'Z') ||
			     (*from >= '0' && *from <= '9') || *from == '.' || *from == '_' ||
			     *from == '-';

		if (*from == '[' || *from == ']' || (!n && *from == '.'))
			continue; /* do not create hidden files */
		name[n++] = plain ? *from : '_';
	}
	name[n] = '\0';
	if (!n)
		snprintf(name, NAME_LEN, "unnamed");
}

static int open_file(struct iprof *p, const char *name, int *fd, char **path, struct err *e)
{
	if (asprintf(path, "%s/%s", p->dir, name) < 0)
		return err_nomem(e);
	*fd = open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return *fd < 0 ? err_set(e, errno, "cannot make %s: %s", *path, strerror(errno)) : 0;
}

static void put_key(struct export_out *o, const char *key, const char *value)
{
	export_out_printf(o, "# %s: ", key);
	export_out_clean(o, value);
	export_out_char(o, '\n');
}

static bool is_kernel(const struct iprof *p, const struct iprof_place *at)
{
	const struct stackset_func *f = at->func == NO_FUNC ? NULL : &p->s->func[at->func];

	return f && stackset_kind_in_kernel(f->kind);
}

static void put_header(const struct iprof *p, struct export_out *o, const struct iprof_place *at,
		       const char *image)
{
	put_key(o, "image", image);
	put_key(o, "mode", is_kernel(p, at) ? "kernel" : "user");
	put_key(o, "unit", "samples");
	export_out_text(o, "# profiler: kvmprof ");
	export_out_clean(o, p->opt->version);
	export_out_char(o, '\n');
	if (at->pid == ALL_PIDS)
		return;
	export_out_printf(o, "# pid: %" PRIu32 "\n", at->pid);
	put_key(o, "comm", p->s->task[at->task].comm);
}

/*
 * Writes the functions of the places [from, to), each once. The kernel's functions are in
 * kernel.syms instead.
 */
static void put_functions(const struct iprof *p, struct export_out *o, size_t from, size_t to)
{
	uint32_t last = NO_FUNC;

	for (size_t i = from; i < to; i++) {
		const struct iprof_place *at = &p->place[i];
		const struct stackset_func *f;

		if (at->func == NO_FUNC || at->func == last || is_kernel(p, at))
			continue;
		f = &p->s->func[at->func];
		if (!f->named)
			continue;
		export_out_printf(o, "# function: 0x%" PRIx64 " 0x%" PRIx64 " ",
				  at->offset - at->off, f->size);
		export_out_clean(o, f->name);
		export_out_char(o, '\n');
		last = at->func;
	}
}

/* Writes one file; the places [from, to) belong to one image and process. */
static int write_counts(struct iprof *p, size_t from, size_t to, struct err *e)
{
	const struct iprof_place *at = &p->place[from];
	const char *image = ((const char *const *)p->images.item)[at->image];
	char base[NAME_LEN], name[NAME_LEN + 64];
	cleanup_free char *path = NULL;
	cleanup_close int fd = -1;
	struct export_out out;
	int ret;

	image_name(image, base);
	if (at->pid == ALL_PIDS)
		snprintf(name, sizeof(name), "%s-%016" PRIx64 ".prof", base,
			 hash_text(HASH_START, image));
	else
		snprintf(name, sizeof(name), "%s-%016" PRIx64 "-%" PRIu32 ".prof", base,
			 hash_text(HASH_START, image), at->pid);
	ret = open_file(p, name, &fd, &path, e);
	if (ret)
		return ret;
	export_out_init(&out, fd, EXPORT_UNPACKED);
	put_header(p, &out, at, image);
	for (size_t i = from; i < to;) {
		uint64_t offset = p->place[i].offset, count = 0;

		for (; i < to && p->place[i].offset == offset; i++)
			count += p->place[i].count;
		export_out_printf(&out, "0x%" PRIx64 " %" PRIu64 "\n", offset, count);
	}
	put_functions(p, &out, from, to);
	ret = export_out_finish(&out, path, e);
	export_out_deinit(&out);
	return ret;
}

static int write_all_counts(struct iprof *p, struct err *e)
{
	size_t files = 0;
	int ret = 0;

	qsort(p->place, p->nplaces, sizeof(*p->place), compare_places);
	for (size_t i = 0; !ret && i < p->nplaces;) {
		size_t end = i + 1;

		while (end < p->nplaces && p->place[end].image == p->place[i].image &&
		       p->place[end].pid == p->place[i].pid)
			end++;
		if (files++ == MAX_FILES)
			return err_set(e, E2BIG,
				       "more than %u files; leave out --per-pid, or take "
				       "some of the processes",
				       MAX_FILES);
		ret = write_counts(p, i, end, e);
		i = end;
	}
	return ret;
}

/* -- kernel.syms ------------------------------------------------------------------------------- */

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol_line *x = a, *y = b;
	int image = strcmp(x->image, y->image);

	if (image)
		return image;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Collects the kernel's functions that have counts. Their callers have none. */
static int find_symbols(struct iprof *p)
{
	p->symbol = calloc(p->nplaces + 1, sizeof(*p->symbol));
	if (!p->symbol)
		return -ENOMEM;
	for (size_t i = 0; i < p->nplaces; i++) {
		const struct iprof_place *at = &p->place[i];
		const struct stackset_func *f = &p->s->func[is_kernel(p, at) ? at->func : 0];

		if (is_kernel(p, at) && f->named)
			p->symbol[p->nsymbols++] =
				(struct symbol_line){ f->dso, f->name, at->offset - at->off,
						      f->size };
	}
	qsort(p->symbol, p->nsymbols, sizeof(*p->symbol), compare_symbols);
	return 0;
}

static int put_symbol(struct export_out *o, const struct symbol_line *l)
{
	cleanup_free char *name = utf8_clean_copy(l->name);

	if (!name)
		return -ENOMEM;
	export_out_printf(o, "0x%" PRIx64 " 0x%" PRIx64 " ", l->offset, l->size);
	for (const char *c = name; *c; c++)
		if (*c == ' ' || *c == '%')
			export_out_coded(o, *c);
		else
			export_out_char(o, *c);
	export_out_char(o, ' ');
	export_out_clean(o, l->image);
	export_out_char(o, '\n');
	return 0;
}

static int write_symbols(struct iprof *p, struct err *e)
{
	cleanup_free char *path = NULL;
	cleanup_close int fd = -1;
	struct export_out out;
	int ret;

	if (find_symbols(p) < 0)
		return err_nomem(e);
	ret = open_file(p, "kernel.syms", &fd, &path, e);
	if (ret)
		return ret;
	export_out_init(&out, fd, EXPORT_UNPACKED);
	for (size_t i = 0; !ret && i < p->nsymbols; i++) {
		const struct symbol_line *l = &p->symbol[i];

		if (!i || compare_symbols(l - 1, l))
			ret = put_symbol(&out, l);
	}
	ret = ret ? err_nomem(e) : export_out_finish(&out, path, e);
	export_out_deinit(&out);
	return ret;
}

EXPORT_WRITER(iprof)
{
	struct iprof p = {
		.s = s, .opt = opt, .dir = path, .images = TABLE_OF(const char *, equal_pointer)
	};
	int ret = find_places(&p) < 0 ? err_nomem(e) : 0;

	(void)o;
	if (!ret)
		ret = write_all_counts(&p, e);
	if (!ret)
		ret = write_symbols(&p, e);
	free(p.place);
	free(p.symbol);
	table_deinit(&p.images);
	return ret;
}
