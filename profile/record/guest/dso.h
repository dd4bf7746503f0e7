/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest_dso: the programs and libraries that a guest has mapped, with their names.
 *
 * A file is looked at once, however many processes map it, and some times more as long as
 * it has no names: pages may come to memory later. Its build id and its
 * names come from the guest's own memory (page cache), from a root directory or
 * debug files on the host that prove the same build id, whichever knows most. Where the
 * guest's memory does not tell a build id, the file of that path in the root directory is
 * believed, but counted, and its build id is not taken for the guest's.
 * What a profile carries of it is an ELF file, the guest's own or one with just
 * its names. Used by the consumer's thread alone.
 */
#ifndef KVMPROF_PROFILE_RECORD_GUEST_DSO_H
#define KVMPROF_PROFILE_RECORD_GUEST_DSO_H

#include "profile/format/files/userfile.h"
#include "profile/format/sink/sink.h"
#include "symbolizer/linux/file.h"
#include "symbolizer/linux/mm.h"
#include "symbolizer/linux/mm_path.h"

#define GUEST_DSO_MAX 16384u
/* A file of the guest that is carried as it is; of larger ones only the names. */
#define GUEST_DSO_MAX_WHOLE (32u << 20)
#define GUEST_BUILD_ID 20u

struct guest_dso {
	uint32_t number;	 /* of all, counted from 0 */
	struct linux_file_id id; /* of a vdso: only inode, the kernel's image of it */
	uint8_t build_id[GUEST_BUILD_ID];
	uint8_t id_len; /* of the file's own; 0: the guest's memory has not told it */
	bool own_id; /* the file's; else made up from its identity, so that perf reads no other */
	bool unverified; /* the names are of a file of that path that may be another */
	bool named;	 /* there are names: elf, until the sink has it */
	uint8_t *elf;	 /* owned */
	size_t elf_len;
	uint64_t file; /* the struct file it was looked at by; 0: a vdso */
	uint32_t looks, asked;
	char *path;    /* where it was first seen */
	char why[160]; /* why there are no names, or fewer than there could be; "" */
};

struct guest_dso_stats {
	uint64_t files, named, unnamed;
	uint64_t
		unverified; /* of `named`: by a file of the host that could not prove to be the guest's */
	uint64_t beyond; /* times that a mapping's file was over GUEST_DSO_MAX, without names */
	uint64_t from_memory, from_root, from_debug; /* where the names of `named` came from */
};

struct guest_dsos;

/*
 * All pointers must outlive it. file NULL: the guest's page cache is not known, and files
 * are those of the host alone; finder NULL: nothing of the host is looked at.
 */
int guest_dsos_create(struct guest_dsos **out, const struct linux_mm_layout *mm,
		      const struct linux_file_layout *file, const struct memory *memory,
		      struct userfile_finder *finder, struct err *e);
void guest_dsos_destroy(struct guest_dsos *d);

/* The file behind a mapping with one. NULL: it cannot be told which that is. */
struct guest_dso *guest_dso_of_file(struct guest_dsos *d, uint64_t file, const char *path);
/* The vdso of this process; space is its CR3. NULL: it cannot be read. */
struct guest_dso *guest_dso_of_vdso(struct guest_dsos *d, uint64_t mm, uint64_t space);
/* Of what was looked at before; NULL: that was not. */
struct guest_dso *guest_dso_known(const struct guest_dsos *d, const struct linux_file_id *id);
/* Its pages, by a struct file that a mapping had. false: there are none, or it is another file's now. */
bool guest_dso_pages(const struct guest_dsos *d, const struct guest_dso *o, uint64_t file,
		     struct linux_file *out);
/* The same file, or its debug file, on the host, by its build id alone. The caller closes it. */
enum guest_dso_host { GUEST_DSO_PROGRAM, GUEST_DSO_DEBUG };
bool guest_dso_on_host(struct guest_dsos *d, const struct guest_dso *o, enum guest_dso_host what,
		       struct userfile *out);
/* The sink has its elf, which is not needed any more. */
void guest_dso_told(struct guest_dso *o);
/* A build id made of a name, for what has none: perf takes what shares one for the same. */
void guest_dso_name_id(uint8_t id[GUEST_BUILD_ID], const char *name);

/*
 * Once at the end: look again for what has no names yet, and tell the sink of it; mappings
 * that it knows have that build id. Errors are the sink's.
 */
int guest_dsos_finish(struct guest_dsos *d, struct sink *sink, struct err *e);

const struct guest_dso_stats *guest_dsos_stats(const struct guest_dsos *d);
/* i-th of all, for reports; NULL behind the last. */
const struct guest_dso *guest_dsos_at(const struct guest_dsos *d, size_t i);

#endif
