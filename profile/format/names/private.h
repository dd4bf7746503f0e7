/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * private: shared by names.c (lookup), reader.c (records of a profile), names_kernel.c and
 * names_program.c (search for files with symbols) and names_stack.c (copies of stacks). The rules
 * of names.h for threads and errors apply.
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

/* The file of a program, or a module, that mappings refer to. */
struct names_dso {
	char *name; /* owned in the table: the mapping's path, or a module's `[NAME]` */
	uint8_t build_id[PERFDATA_BUILD_ID_SIZE];
	uint8_t id_len; /* bytes of build_id; 0: unknown */
	bool kernel, tried;
	bool stripped; /* the file was read and has no symbol table except .dynsym */
	/* The inode recorded with the mapping, for files without a build id. ino 0: unknown. */
	struct {
		uint32_t major, minor;
		uint64_t ino, generation;
	} inode;
	char *path;		     /* owned; the host's file that was read; NULL: none */
	struct names_frames *frames; /* owned; names_stack.c; NULL: not needed yet */
	uint8_t *bytes; /* owned; contents of the file until they are parsed; NULL: none */
	size_t len;
	struct userelf *elf; /* owned; the file's segments; its source is not valid any more */
	/* owned; from the file */
	struct symtab *symbols;
	/* borrowed; symbols of a module or of a later kernel, with run-time addresses */
	const struct symtab *at_run_time;
	uint64_t shift; /* run-time address minus address in at_run_time, for a later kernel */
	/* a later kernel that is another build, or addresses that were mapped before it */
	bool other_kernel;
};

/* The functions that kallsyms attributes to one module. */
struct profile_table_module {
	char *name; /* `[NAME]` */
	struct symtab *symbols;
};

/*
 * Counts of samples with copies of stacks: all; those unwound to the program's start; those with
 * the innermost function only.
 */
struct names_stacks {
	uint64_t copied, whole, alone;
};

struct names_from_profile {
	struct names_from_profile *
		/* owned; the names of the kernel before this one; NULL: this is the first one */
		before;
	const struct perfdata *profile;
	char *dir, *buildid_dir;
	struct symtab *kernel;
	struct profile_table_module *module;
	size_t nmodules, module_cap;
	struct err unread;	/* the first error of the host while reading a program's file */
	struct cfi_cache *rows; /* owned; call frame information; NULL: not needed yet */
	struct names_stacks stacks;
	struct stack_words *words; /* owned; names_stack.c; NULL: not needed yet */
};

struct names {
	struct names_from_profile *from; /* owned; NULL: the input is the calls of a sink */
	const struct symtab *kernel;
	uint64_t kernel_start, kernel_end; /* range of the kernel's map; 0,0: everywhere */
	bool kernel_is_set;		   /* names_kernel() was called */
	uint64_t slide;			   /* run-time address minus address in kallsyms */
	struct table dsos;		   /* struct names_dso */
	struct spaces spaces;
	uint64_t dsos_left_out; /* mappings of programs over the cap */
	size_t waiting;		/* bytes of files that were not parsed yet */
	uint32_t kernel_space;
	uint32_t stamp; /* incremented with each change of the mappings */
	struct names_cached *cache;
	bool relaxed; /* names_set_relaxed() */
};

/*
 * Adds the mapping m of dso to process pid, or to the kernel if dso->kernel. m->dso is ignored.
 * Returns 0 or -ENOMEM; over a limit the mapping is counted as left out.
 */
int names_add_map(struct names *n, uint32_t pid, const struct mapping *m,
		  const struct names_dso *dso, struct err *e);

/*
 * Removes all mappings because another kernel begins to run. Until it is mapped, no address of the
 * kernel's half has a name. Returns 0 or -ENOMEM.
 */
int names_forget_all(struct names *n, struct err *e);

/* -- names_kernel.c ------------------------------------------------------------------- */

/*
 * Sets n->kernel and the modules' tables. Returns 0, also if no symbols of this kernel were found,
 * or -errno.
 */
int names_load_kernel(struct names_from_profile *n, struct err *e);

/* -- names_program.c ------------------------------------------------------------------ */

/*
 * Maps the file at path, up to max bytes; the caller closes *m with file_map_close(). A file that
 * is missing or not readable by this user costs names. A failure of the host (I/O error, too many
 * open files, no memory) could give a different result the next time without notice; it is
 * therefore stored in *e, unless *e has an error already. Returns 0 or -errno.
 */
int names_open_file(struct file_map *m, const char *path, size_t max, struct err *e);
/*
 * Sets d's segments and symbols from the bytes of a program's file. Returns false if they are not
 * such a file. Returns true also if it has no symbols.
 */
bool names_read_program(struct names_dso *d, const uint8_t *bytes, size_t len);
/* Reads the file of the program d, and its debug file. Called once for each program. */
void names_load_dso(const struct names *n, struct names_dso *d);

/* -- names_stack.c -------------------------------------------------------------------- */

#define NAMES_MAX_CALLERS 512u

/* Frees f; does nothing for NULL. */
void names_frames_destroy(struct names_frames *f);
/* Frees the state that names_unwind_copy() keeps in f. */
void names_stack_deinit(struct names_from_profile *f);

/* -- reader.c ------------------------------------------------------------------------- */

/* Frees f and those of earlier kernels; does nothing for NULL. */
void names_from_profile_destroy(struct names_from_profile *f);

#endif
