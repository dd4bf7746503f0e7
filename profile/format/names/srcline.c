/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/format/names/srcline.h"

#include "base/table.h"
#include "profile/format/files/elf_id.h"
#include "profile/format/perfdata/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct srcline_entry {
	uint64_t addr;
	struct line_frame *frame; /* owned; NULL: nothing is known */
	unsigned int n;
};

struct srcline {
	struct debuginfo_places places;
	char release[256];
	uint8_t id[ELF_ID_MAX];
	size_t id_len;
	bool has_text, tried;
	uint64_t text; /* run-time address of _text */
	struct debuginfo *info;
	int status; /* result of the search */
	struct err why;
	struct table entries; /* struct srcline_entry */
};

static bool equal_entry(const void *a, const void *b, const void *ctx)
{
	(void)ctx;
	return ((const struct srcline_entry *)a)->addr == ((const struct srcline_entry *)b)->addr;
}

int srcline_create(struct srcline **out, const struct debuginfo_places *places, struct err *e)
{
	struct srcline *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(e);
	s->places = *places;
	s->entries = TABLE_OF(struct srcline_entry, equal_entry);
	*out = s;
	return 0;
}

static void srcline_forget(struct srcline *s)
{
	struct srcline_entry *x = s->entries.item;

	for (size_t i = 0; i < s->entries.n; i++)
		free(x[i].frame);
	table_deinit(&s->entries);
}

void srcline_destroy(struct srcline *s)
{
	if (!s)
		return;
	srcline_forget(s);
	debuginfo_close(s->info);
	free(s);
}

void srcline_set_id(struct srcline *s, const uint8_t *id, size_t len)
{
	s->id_len = len < sizeof(s->id) ? len : sizeof(s->id);
	if (s->id_len)
		memcpy(s->id, id, s->id_len);
}

/*
 * Sets the run-time address of _text; the slide is its distance from the linked address. Default:
 * no slide.
 */
static void srcline_set_text(struct srcline *s, uint64_t runtime_text)
{
	if (!s->has_text || s->text != runtime_text)
		srcline_forget(s);
	s->text = runtime_text;
	s->has_text = true;
}

void srcline_set_profile(struct srcline *s, const struct perfdata *p)
{
	if (p->kernel_id_len)
		srcline_set_id(s, p->kernel_id, p->kernel_id_len);
	memcpy(s->release, p->osrelease, sizeof(s->release));
	s->release[sizeof(s->release) - 1] = 0;
	if (!s->places.release && s->release[0])
		s->places.release = s->release;
}

/*
 * pgoff is the address of the symbol at the end of the name; without one, the map's start is used.
 */
void srcline_set_map(struct srcline *s, const struct perfdata_record *r)
{
	size_t n = strlen(PERFDATA_KERNEL_DSO);
	const char *ref;

	if (!r->kernel || r->owner != PERFDATA_RECORDED ||
	    strncmp(r->map.path, PERFDATA_KERNEL_DSO, n) != 0)
		return;
	ref = r->map.path + n;
	srcline_set_text(s, (!strcmp(ref, "_text") || !strcmp(ref, "_stext")) && r->map.pgoff
				    ? r->map.pgoff
				    : r->map.addr);
}

int srcline_load(struct srcline *s, struct err *e)
{
	if (!s->tried) {
		s->tried = true;
		s->status = debuginfo_open(&s->info, &s->places, s->id, s->id_len, &s->why);
	}
	return s->status ? err_set(e, -s->status, "%s", s->why.text) : 0;
}

const struct debuginfo_places *srcline_places(const struct srcline *s)
{
	return &s->places;
}

const char *srcline_reason(const struct srcline *s)
{
	if (!s->why.code && s->info)
		return debuginfo_note(s->info);
	return s->why.text;
}

const char *srcline_file(const struct srcline *s)
{
	return s->info ? debuginfo_path(s->info) : NULL;
}

/* An address outside the image is refused: a module's, minus the slide, could be one inside. */
bool srcline_linked(const struct srcline *s, uint64_t addr, uint64_t *va)
{
	uint64_t text = debuginfo_text(s->info), end = debuginfo_text_end(s->info);

	*va = addr;
	if (!s->has_text || !text)
		return true;
	*va = addr - s->text + text;
	return addr >= s->text && *va < end;
}

uint64_t srcline_text(const struct srcline *s)
{
	return debuginfo_text(s->info);
}

uint64_t srcline_text_end(const struct srcline *s)
{
	return debuginfo_text_end(s->info);
}

struct lines *srcline_lines(const struct srcline *s)
{
	return debuginfo_lines(s->info);
}

static void srcline_look(struct srcline *s, struct srcline_entry *x)
{
	struct line_frame frame[LINES_MAX_FRAMES];
	struct err e = { 0 };
	uint64_t va;
	int n;

	if (!srcline_linked(s, x->addr, &va))
		return;
	n = lines_lookup(debuginfo_lines(s->info), va, frame, LINES_MAX_FRAMES, &e);
	if (n < 0)
		s->why = e;
	if (n <= 0)
		return;
	x->frame = malloc((size_t)n * sizeof(*frame));
	if (!x->frame)
		return;
	memcpy(x->frame, frame, (size_t)n * sizeof(*frame));
	x->n = (unsigned int)n;
}

struct srcline_result srcline_of(struct srcline *s, uint64_t addr)
{
	const struct srcline_entry like = { .addr = addr };
	struct srcline_result none = { 0 };
	struct srcline_entry *x;
	uint32_t index;
	bool fresh;

	if (srcline_load(s, NULL))
		return none;
	if (s->entries.n >= SRCLINE_MAX_ADDRESSES)
		srcline_forget(s);
	if (table_add(&s->entries, table_mix(addr, 0), &like, &index, &fresh))
		return none;
	x = (struct srcline_entry *)s->entries.item + index;
	if (fresh)
		srcline_look(s, x);
	return (struct srcline_result){ .frame = x->frame, .n = x->n };
}

const char *srcline_basename(const struct line_frame *f)
{
	const char *slash = f->file ? strrchr(f->file, '/') : NULL;

	return slash && slash[1] ? slash + 1 : f->file ? f->file : "??";
}
