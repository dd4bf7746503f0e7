/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private: what names.c, which looks names up, reader.c, which hands it a profile's records, and
 * names_kernel.c and names_program.c, which find the files with the names, share.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_PRIVATE_H
#define KVMPROF_PROFILE_FORMAT_NAMES_PRIVATE_H

#include "base/file.h"
#include "base/table.h"
#include "profile/format/names/names.h"
#include "profile/format/names/spaces.h"
#include "profile/format/perfdata/format.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/program/userelf.h"

/* The file of a program, or a module, that mappings are of. */
struct names_dso {
	char *name; /* the mapping's path, or a module's `[NAME]` */
	uint8_t build_id[PERFDATA_BUILD_ID_SIZE];
	uint8_t id_len; /* bytes of build_id; 0: not known */
	bool kernel, tried;
	bool stripped; /* the file was read and has no symbol table but .dynsym */
	/* As in the mapping, for files without a build id. ino 0: not known. */
	struct {
		uint32_t major, minor;
		uint64_t ino, generation;
	} inode;
	char *path;		     /* the host's file that was read; NULL: none */
	struct names_frames *frames; /* names_stack.c; NULL: not asked for yet */
	uint8_t *bytes; /* the contents of the file until they are parsed; NULL: none were given */
	size_t len;
	struct userelf *elf; /* where its segments lie; its source is gone */
	struct symtab *symbols;
	const struct symtab *at_run_time; /* symbols of a module or of a later kernel; borrowed */
	uint64_t shift; /* distance of a later kernel from where at_run_time has it */
	bool other_kernel; /* a later kernel that is another build, or addresses that were mapped before it */
};

/* Functions that kallsyms gives to one module. */
struct profile_table_module {
	char *name; /* `[NAME]` */
	struct symtab *symbols;
};

/* Samples with copies of stacks: all, those followed to the program's start, and those with their innermost function alone. */
struct names_stacks {
	uint64_t copied, whole, alone;
};

struct names_from_profile {
	struct names_from_profile *
		before; /* the names of the kernel before this one, owned; NULL: this is the first one */
	const struct perfdata *profile;
	char *dir, *buildid_dir;
	struct symtab *kernel;
	struct profile_table_module *module;
	size_t nmodules, module_cap;
	struct err unread;	/* the first failure of the host to read a program's file */
	struct cfi_cache *rows; /* call frame information; NULL: not needed yet */
	struct names_stacks stacks;
	struct stack_words *words; /* names_stack.c; NULL: not needed yet */
};

struct names {
	struct names_from_profile *from; /* NULL: the calls of a sink are all that is known */
	const struct symtab *kernel;
	uint64_t kernel_start, kernel_end; /* by its map; 0,0: everywhere */
	bool kernel_told;		   /* names_kernel() was called */
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

/* Another kernel runs: no process has a mapping, and no address of the kernel's half has a name until it is mapped. */
int names_forget_all(struct names *n, struct err *e);

/* -- names_kernel.c ------------------------------------------------------------------- */

/* Sets n->kernel and the modules' tables. Returns 0 also if there are no symbols of this kernel. */
int names_load_kernel(struct names_from_profile *n, struct err *e);

/* -- names_program.c ------------------------------------------------------------------ */

/*
 * Maps a file. What is not there, not ours to read or no such file costs names. What the host fails to
 * read (an I/O error, too many open files, no memory) may be there the next time, and without a word the result would be
 * another one: *e is set then, unless it is set already. Returns 0 or -errno.
 */
int names_open_file(struct file_map *m, const char *path, size_t max, struct err *e);
/* Sets d's segments and symbols by a program's file; false: it is no such file. Symbols may be missing nevertheless. */
bool names_read_program(struct names_dso *d, const uint8_t *bytes, size_t len);
/* Reads the file of a program that was not tried yet, and its debug file. */
void names_load_dso(const struct names *n, struct names_dso *d);

/* -- names_stack.c -------------------------------------------------------------------- */

#define NAMES_MAX_CALLERS 512u

void names_frames_destroy(struct names_frames *f);
/* Frees what names_unwind_copy() keeps in f. */
void names_stack_deinit(struct names_from_profile *f);

/* -- reader.c ------------------------------------------------------------------------- */

void names_from_profile_destroy(struct names_from_profile *f);

#endif
