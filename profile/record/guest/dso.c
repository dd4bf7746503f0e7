/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/guest/dso.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/table.h"
#include "symbolizer/program/elfsynth.h"
#include "symbolizer/program/userelf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct guest_dsos {
	const struct linux_mm_layout *mm;
	const struct linux_file_layout *file;
	const struct memory *memory;
	struct userfile_finder *finder;
	struct table dso; /* struct guest_dso *, owned; by its identity */
	struct guest_dso_stats stats;
};

static bool dso_equal(const void *a, const void *b, const void *ctx)
{
	const struct guest_dso *const *x = a, *const *y = b;

	(void)ctx;
	return !memcmp(&(*x)->id, &(*y)->id, sizeof((*x)->id));
}

int guest_dsos_create(struct guest_dsos **out, const struct linux_mm_layout *mm,
		      const struct linux_file_layout *file, const struct memory *memory,
		      struct userfile_finder *finder, struct err *e)
{
	struct guest_dsos *d = calloc(1, sizeof(*d));

	if (!d)
		return err_nomem(e);
	d->mm = mm;
	d->file = file;
	d->memory = memory;
	d->finder = finder;
	d->dso = TABLE_OF(struct guest_dso *, dso_equal);
	*out = d;
	return 0;
}

static struct guest_dso *dso_at(const struct guest_dsos *d, size_t i)
{
	return ((struct guest_dso **)d->dso.item)[i];
}

void guest_dsos_destroy(struct guest_dsos *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->dso.n; i++) {
		free(dso_at(d, i)->elf);
		free(dso_at(d, i)->path);
		free(dso_at(d, i));
	}
	table_deinit(&d->dso);
	free(d);
}

const struct guest_dso_stats *guest_dsos_stats(const struct guest_dsos *d)
{
	return &d->stats;
}

const struct guest_dso *guest_dsos_at(const struct guest_dsos *d, size_t i)
{
	return i < d->dso.n ? dso_at(d, i) : NULL;
}

static uint64_t dso_hash(const struct linux_file_id *id)
{
	return hash_bytes(HASH_START, id, sizeof(*id));
}

static struct guest_dso *dso_find(const struct guest_dsos *d, const struct linux_file_id *id)
{
	const struct guest_dso like = { .id = *id }, *of = &like;
	uint32_t i;

	return table_find(&d->dso, dso_hash(id), &of, &i) ? dso_at(d, i) : NULL;
}

static struct guest_dso *dso_add(struct guest_dsos *d, const struct linux_file_id *id,
				 const char *path)
{
	struct guest_dso *o;
	uint32_t index;
	bool fresh;

	if (d->dso.n >= GUEST_DSO_MAX) {
		d->stats.beyond++;
		return NULL;
	}
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->id = *id;
	o->number = (uint32_t)d->dso.n;
	o->path = strdup(path);
	if (!o->path || table_add(&d->dso, dso_hash(id), &o, &index, &fresh) < 0) {
		free(o->path);
		free(o);
		return NULL;
	}
	d->stats.files++;
	return o;
}

/* -- the candidates for a file's symbols ---------------------------------------------- */

/* The symbols of one source; the best source is kept. */
struct candidate {
	struct symtab *symbols;
	unsigned int worth; /* 0: none, 1: .dynsym and the like, 2: .symtab */
	uint64_t *counter;  /* the counter of this source in the stats */
	bool unverified;    /* the file may not be the guest's */
	bool whole;	    /* the ELF file can be carried as it is */
	struct file_source src;
};

static unsigned int worth_of(const struct userelf_names *names)
{
	return names->symtab == USERELF_READ && names->from_symtab ? 2 : 1;
}

/* Replaces *best by the symbols of *u if these are better. `from` describes their source. */
static void take_symbols(struct candidate *best, const struct userelf *u, struct candidate from,
			 char *why, size_t why_size)
{
	struct symtab *symbols = NULL;
	struct userelf_names names;
	struct err e = { 0 };

	if (userelf_symbols(u, &symbols, &names, &e) < 0) {
		if (!*why)
			snprintf(why, why_size, "%.159s", e.text);
		return;
	}
	if (worth_of(&names) <= best->worth) {
		symtab_destroy(symbols);
		return;
	}
	/* The shortcomings of a poorer source no longer matter. */
	snprintf(why, why_size, "%s", names.why);
	symtab_destroy(best->symbols);
	*best = from;
	best->symbols = symbols;
	best->worth = worth_of(&names);
	best->whole = from.whole && from.src.len <= GUEST_DSO_MAX_WHOLE;
}

static void set_build_id(struct guest_dso *o, const uint8_t *id, unsigned int len)
{
	memset(o->build_id, 0, sizeof(o->build_id));
	memcpy(o->build_id, id, len);
	o->own_id = true;
	o->id_len = (uint8_t)len;
}

static void hash(uint64_t lane[3], const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (unsigned int i = 0; i < 3; i++)
		for (size_t k = 0; k < len; k++)
			lane[i] = (lane[i] ^ p[k]) * 0x100000001b3u;
}

/* Returns the same id for the same name; with id, one that is specific to that file. */
static void made_up_id(uint8_t out[GUEST_BUILD_ID], const char *name,
		       const struct linux_file_id *id)
{
	uint64_t lane[3] = { 0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu, 0x165667b19e3779f9u };

	hash(lane, name, strlen(name) + 1);
	if (id)
		hash(lane, id, sizeof(*id));
	memcpy(out, lane, GUEST_BUILD_ID);
}

void guest_dso_name_id(uint8_t id[GUEST_BUILD_ID], const char *name)
{
	made_up_id(id, name, NULL);
}

/* -- examining a file ------------------------------------------------------------------ */

static void carry_whole(struct guest_dso *o, const struct file_source *src)
{
	uint8_t *bytes = malloc(src->len);

	if (bytes && src->read(src->ctx, 0, bytes, src->len) == src->len) {
		o->elf = bytes;
		o->elf_len = src->len;
		return;
	}
	free(bytes);
}

static void carry(struct guest_dsos *d, struct guest_dso *o, const struct userelf *program,
		  struct candidate *best)
{
	struct buf out;
	struct err e = { 0 };

	if (best->symbols && best->whole && o->own_id)
		carry_whole(o, &best->src);
	if (best->symbols && !o->elf) {
		buf_init(&out);
		if (elfsynth_write(&out, program, o->build_id, GUEST_BUILD_ID, best->symbols, &e) ==
		    0) {
			o->elf = malloc(out.len);
			if (o->elf) {
				memcpy(o->elf, out.data, out.len);
				o->elf_len = out.len;
			}
		} else if (!o->why[0]) {
			snprintf(o->why, sizeof(o->why), "%.159s", e.text);
		}
		buf_deinit(&out);
	}
	o->named = o->elf != NULL;
	if (o->named) {
		d->stats.named++;
		d->stats.unverified += best->unverified;
		o->unverified = best->unverified;
		(*best->counter)++;
	} else {
		d->stats.unnamed++;
	}
	symtab_destroy(best->symbols);
	best->symbols = NULL;
}

/* An ELF file on the host. */
struct host_elf {
	struct userfile file;
	struct file_bytes bytes;
	struct file_source src;
	struct userelf elf;
};

static bool parse_host(struct host_elf *h, struct err *e)
{
	h->bytes = (struct file_bytes){ .data = h->file.map.data, .len = h->file.map.len };
	h->src = filepiece_source_of_bytes(&h->bytes);
	return userelf_open(&h->elf, h->file.path, &h->src, e) == 0;
}

/*
 * Tries the sources from the cheapest one until one has all symbols. The program headers, which
 * contain file offsets, are the program's: those of debug files differ.
 */
static void dso_load(struct guest_dsos *d, struct guest_dso *o,
		     const struct file_source *memory_src)
{
	struct host_elf host = { 0 }, debug = { 0 };
	struct candidate best = { 0 };
	const struct userelf *program = NULL;
	struct userelf in_memory;
	struct err e = { 0 };
	uint8_t id[GUEST_BUILD_ID] = { 0 }; /* to find debug files */
	unsigned int id_len = 0;
	bool unverified = false;

	if (memory_src && userelf_open(&in_memory, o->path, memory_src, &e) == 0) {
		program = &in_memory;
		id_len = in_memory.build_id_len;
		take_symbols(&best, program,
			     (struct candidate){ .counter = &d->stats.from_memory,
						 .whole = true,
						 .src = *memory_src },
			     o->why, sizeof(o->why));
	} else if (e.code) {
		snprintf(o->why, sizeof(o->why), "%.159s", e.text);
	}
	if (id_len) {
		if (!o->looks)
			set_build_id(o, in_memory.build_id, id_len);
		memcpy(id, in_memory.build_id, id_len);
	}
	if (d->finder && best.worth < 2 &&
	    userfile_open(&host.file, d->finder, o->path, id, id_len, &e) == 0 &&
	    parse_host(&host, &e)) {
		unverified = !host.file.verified;
		if (!program)
			program = &host.elf;
		if (!id_len && host.elf.build_id_len)
			memcpy(id, host.elf.build_id, id_len = host.elf.build_id_len);
		take_symbols(&best, &host.elf,
			     (struct candidate){ .counter = &d->stats.from_root,
						 .unverified = unverified,
						 .whole = true,
						 .src = host.src },
			     o->why, sizeof(o->why));
	}
	if (d->finder && best.worth < 2 && program && id_len &&
	    userfile_open_debug(&debug.file, d->finder, id, id_len, &e) == 0 &&
	    parse_host(&debug, &e))
		take_symbols(&best, &debug.elf,
			     (struct candidate){ .counter = &d->stats.from_debug,
						 .unverified = unverified,
						 .src = debug.src },
			     o->why, sizeof(o->why));
	/*
	 * Without a build id perf would read the host's file of that name. If the file has none, or
	 * if its page is not in memory, one is made from its identity in the guest.
	 */
	if (!o->own_id && !o->looks)
		made_up_id(o->build_id, o->path, &o->id);
	if (program)
		carry(d, o, program, &best);
	else
		d->stats.unnamed++;
	symtab_destroy(best.symbols);
	userfile_close(&host.file);
	userfile_close(&debug.file);
}

/* Examines a file once. */
static void dso_look(struct guest_dsos *d, struct guest_dso *o, uint64_t file)
{
	struct linux_file f;
	struct file_source src;

	o->why[0] = '\0';
	if (d->file && linux_file_open(&f, d->file, d->memory, file) == LINUX_OK) {
		src = (struct file_source){ linux_file_read_cb, &f, linux_file_size(&f) };
		dso_load(d, o, &src);
	} else {
		snprintf(o->why, sizeof(o->why), "%s",
			 d->file ? "its pages cannot be found in guest memory"
				 : "where this kernel keeps the pages of files is not known");
		dso_load(d, o, NULL);
	}
	o->file = file;
	o->looks++;
}

/*
 * Examines a file again, as its pages may come to memory after it was mapped. What was reported
 * stays: mappings have its build id, made or not.
 */
static void dso_look_again(struct guest_dsos *d, struct guest_dso *o, uint64_t file)
{
	d->stats.unnamed--;
	dso_look(d, o, file);
}

struct guest_dso *guest_dso_of_file(struct guest_dsos *d, uint64_t file, const char *path)
{
	struct linux_file_id id;
	struct guest_dso *o;

	memset(&id, 0, sizeof(id));
	if (linux_file_identify(d->mm, d->memory, file, &id) != LINUX_OK)
		return NULL;
	o = dso_find(d, &id);
	if (!o) {
		o = dso_add(d, &id, path);
		if (o)
			dso_look(d, o, file);
		return o;
	}
	/* When it is mapped again for the first, second, fourth ... time. */
	o->asked++;
	if (!o->named && !(o->asked & (o->asked - 1)))
		dso_look_again(d, o, file);
	return o;
}

struct guest_dso *guest_dso_find(const struct guest_dsos *d, const struct linux_file_id *id)
{
	return dso_find(d, id);
}

bool guest_dso_pages(const struct guest_dsos *d, const struct guest_dso *o, uint64_t file,
		     struct linux_file *out)
{
	struct linux_file_id id;

	memset(&id, 0, sizeof(id));
	return d->file && linux_file_identify(d->mm, d->memory, file, &id) == LINUX_OK &&
	       !memcmp(&id, &o->id, sizeof(id)) &&
	       linux_file_open(out, d->file, d->memory, file) == LINUX_OK;
}

bool guest_dso_open_on_host(struct guest_dsos *d, const struct guest_dso *o,
			    enum guest_dso_host what, struct userfile *out)
{
	struct err e = { 0 };

	if (!d->finder || !o->id_len)
		return false;
	return (what == GUEST_DSO_DEBUG
			? userfile_open_debug(out, d->finder, o->build_id, o->id_len, &e)
			: userfile_open(out, d->finder, o->path, o->build_id, o->id_len, &e)) == 0;
}

int guest_dsos_finish(struct guest_dsos *d, struct sink *sink, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; i < d->dso.n && !ret; i++) {
		struct guest_dso *o = dso_at(d, i);
		struct linux_file_id id;

		memset(&id, 0, sizeof(id));
		if (o->named || !o->file ||
		    linux_file_identify(d->mm, d->memory, o->file, &id) != LINUX_OK ||
		    memcmp(&id, &o->id, sizeof(id)) != 0)
			continue;
		dso_look_again(d, o, o->file);
		if (!o->elf)
			continue;
		ret = sink->ops->dso(
			sink, &(struct profile_dso){ o->path, o->build_id, o->elf, o->elf_len }, e);
		guest_dso_free_elf(o);
	}
	return ret;
}

void guest_dso_free_elf(struct guest_dso *o)
{
	free(o->elf);
	o->elf = NULL;
	o->elf_len = 0;
}

/* 32-bit programs have another vDSO. */
static bool identify_vdso(const struct guest_dsos *d, uint64_t mm, struct linux_file_id *id)
{
	memset(id, 0, sizeof(*id));
	return d->mm->mm_vdso_image == LINUX_NO_MEMBER ||
	       memory_u64(d->memory, mm + d->mm->mm_vdso_image, &id->inode);
}

struct guest_dso *guest_dso_of_vdso(struct guest_dsos *d, uint64_t mm, uint64_t space)
{
	cleanup_free uint8_t *bytes = NULL;
	struct linux_file_id id;
	struct file_source src;
	struct file_bytes b;
	struct guest_dso *o;

	if (!identify_vdso(d, mm, &id))
		return NULL;
	o = dso_find(d, &id);
	if (o)
		return o;
	bytes = malloc(LINUX_VDSO_MAX);
	b = (struct file_bytes){ .data = bytes };
	if (bytes)
		b.len = linux_vdso_read(d->mm, d->memory, mm, space, bytes);
	o = b.len ? dso_add(d, &id, "[vdso]") : NULL;
	if (!o)
		return NULL;
	src = filepiece_source_of_bytes(&b);
	dso_load(d, o, &src);
	return o;
}
