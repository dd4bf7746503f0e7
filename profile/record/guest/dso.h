/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_dso: the programs and libraries that a guest has mapped, with their symbols.
 *
 * A file is examined once, however many processes map it, and a few times more while it has no
 * symbols, because its pages may come to memory later. Its build id and symbols come from the
 * guest's page cache, or from a root directory or debug files on the host that prove to have the
 * same build id, whichever has most symbols. If the guest's memory does not contain a build id, the
 * file of the same path in the root directory is used but counted as unverified, and its build id
 * is not taken for the guest's. The profile contains the guest's own ELF file or one with only its
 * symbols.
 *
 * All functions are called by the consumer thread only.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_DSO_H
#define KVMPROF_PROFILE_RECORD_GUEST_DSO_H

#include "profile/format/files/userfile.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/linux/file.h"
#include "symbolizer/linux/mm.h"
#include "symbolizer/linux/mm_path.h"

#define GUEST_DSO_MAX 16384u
/* The largest file that is carried as it is; of larger ones only the symbols are carried. */
#define GUEST_DSO_MAX_WHOLE (32u << 20)
#define GUEST_BUILD_ID 20u

struct guest_dso {
	uint32_t number;	 /* index in the order of first use */
	struct linux_file_id id; /* for the vDSO only `inode`, which is the kernel's image of it */
	uint8_t build_id[GUEST_BUILD_ID];
	uint8_t id_len; /* length of the file's own build id; 0: not found in the guest's memory */
	/*
	 * build_id is the file's own; else it is made from its identity, so that perf reads no
	 * other file
	 */
	bool own_id;
	bool unverified; /* the symbols are of a file with the same path that may be another one */
	bool named;	 /* symbols exist; `elf` contains them until the sink has it */
	uint8_t *elf;	 /* owned */
	size_t elf_len;
	uint64_t file; /* address of the struct file by which it was examined; 0: a vDSO */
	/* how often it was examined, and how often it was mapped again */
	uint32_t looks, asked;
	char *path;    /* path of its first mapping; owned */
	char why[160]; /* why symbols are missing; "" if none are */
};

struct guest_dso_stats {
	uint64_t files, named, unnamed;
	/* the part of `named` whose symbols are of an unverified file on the host */
	uint64_t unverified;
	/* mappings of files beyond GUEST_DSO_MAX, which have no symbols */
	uint64_t beyond;
	uint64_t from_memory, from_root, from_debug; /* the source of the symbols of `named` */
};

struct guest_dsos;

/*
 * Creates an empty list. All pointers must outlive it. file is NULL if the guest's page cache
 * cannot be read: then only files of the host are used. finder is NULL if the host's files must not
 * be used. Returns 0 or -ENOMEM. The caller frees it with guest_dsos_destroy(), which accepts NULL.
 */
int guest_dsos_create(struct guest_dsos **out, const struct linux_mm_layout *mm,
		      const struct linux_file_layout *file, const struct memory *memory,
		      struct userfile_finder *finder, struct err *e);
void guest_dsos_destroy(struct guest_dsos *d);

/*
 * Returns the dso of a mapping's struct file at kernel address `file`, and examines it if
 * necessary. Returns NULL if the file cannot be identified, if there are GUEST_DSO_MAX files, or if
 * out of memory. As all dsos it is owned by d.
 */
struct guest_dso *guest_dso_of_file(struct guest_dsos *d, uint64_t file, const char *path);
/*
 * Returns the vDSO of the process with this mm_struct; space is its CR3. Returns NULL if it cannot
 * be read.
 */
struct guest_dso *guest_dso_of_vdso(struct guest_dsos *d, uint64_t mm, uint64_t space);
/* Returns the dso with this identity, or NULL if guest_dso_of_file() has not returned it before. */
struct guest_dso *guest_dso_find(const struct guest_dsos *d, const struct linux_file_id *id);
/*
 * Opens the page cache of a dso by the struct file of one of its mappings. Returns false if it
 * cannot be found, or if the struct file is now another file's. *out owns nothing.
 */
bool guest_dso_pages(const struct guest_dsos *d, const struct guest_dso *o, uint64_t file,
		     struct linux_file *out);
/* The file of the host that guest_dso_open_on_host() opens. */
enum guest_dso_host { GUEST_DSO_PROGRAM, GUEST_DSO_DEBUG };
/*
 * Opens the same file (or its debug file) on the host, found by its build id only. Returns false if
 * there is none. The caller closes *out with userfile_close().
 */
bool guest_dso_open_on_host(struct guest_dsos *d, const struct guest_dso *o,
			    enum guest_dso_host what, struct userfile *out);
/* Frees o->elf, after the sink was given it. */
void guest_dso_free_elf(struct guest_dso *o);
/*
 * Makes a build id from a name, for an object that has none: perf treats objects with the same
 * build id as the same.
 */
void guest_dso_name_id(uint8_t id[GUEST_BUILD_ID], const char *name);

/*
 * Examines all files without symbols once more and reports those with new symbols to the sink,
 * whose mappings have that build id already. To be called once, after the last sample. Returns 0 or
 * the error of the sink.
 */
int guest_dsos_finish(struct guest_dsos *d, struct sink *sink, struct err *e);

/* Returns the counters, valid as long as d. */
const struct guest_dso_stats *guest_dsos_stats(const struct guest_dsos *d);
/* Returns dso number i, or NULL beyond the last one. */
const struct guest_dso *guest_dsos_at(const struct guest_dsos *d, size_t i);

#endif
