/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private: what names.c, which looks names up, and profile.c, which tells it of a profile's
 * records and reads its files, share. For names*.c of this room alone.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_PRIVATE_H
#define KVMPROF_PROFILE_FORMAT_NAMES_PRIVATE_H

#include "base/table.h"
#include "profile/format/names/names.h"
#include "profile/format/names/spaces.h"
#include "profile/format/perfdata/format.h"
#include "symbolizer/program/userelf.h"

/* What mappings are of: a program's file, or a module. */
struct names_dso {
	char *name; /* the mapping's path, or a module's `[NAME]` */
	uint8_t build_id[PERFDATA_BUILD_ID_SIZE];
	bool kernel, has_id, tried;
	uint8_t *bytes; /* of the file, until it is read; NULL: it was not told */
	size_t len;
	struct userelf *elf; /* where its segments lie; its source is gone */
	struct symtab *symbols;
	const struct symtab *at_run_time; /* of a module; borrowed */
};

struct names_from_profile;

struct names {
	struct names_from_profile *from; /* NULL: the calls of a sink are all that is known */
	const struct symtab *kernel;
	uint64_t kernel_start, kernel_end; /* by its map; 0,0: everywhere */
	uint64_t slide;			   /* from kallsyms to where it runs */
	struct table dsos;		   /* struct names_dso */
	struct spaces spaces;
	uint64_t dsos_left_out; /* mappings of programs over the cap */
	size_t waiting;		/* bytes of files that are not read yet */
	uint32_t kernel_space;
	uint32_t stamp; /* counts mappings */
	struct names_cached *cache;
	bool relaxed; /* names_set_relaxed() */
};

/* What lies at m, dso aside. kernel: a module's range. */
int names_add_map(struct names *n, uint32_t pid, const struct mapping *m,
		  const struct names_dso *dso, struct err *e);
/* Symbols of a program; without any the file may be tried again. */
void names_read_dso(struct names_dso *d, const uint8_t *bytes, size_t len);

/* -- profile.c ------------------------------------------------------------------------ */

/* The file of a program that was not tried yet. */
void names_load_dso(const struct names *n, struct names_dso *d);
void names_from_profile_destroy(struct names_from_profile *f);

#endif
