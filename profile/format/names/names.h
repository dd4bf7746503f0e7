/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names: from addresses to symbols and DSOs, over what is mapped at the time.
 *
 * Told by the records of a perf.data file, or by the calls of a sink while the guest runs:
 * then all names come from memory. One thread.
 *
 * Of a file:
 * Kernel and modules: the directory's kcore_dir/kallsyms, else what the build-id cache, /usr/lib/debug
 * or /boot have under the kernel's build id; for profiles that perf made also /proc/kallsyms, if the very kernel
 * still runs. A module's functions count where its map is. User
 * programs: the directory's dso/<build id>, else the build-id cache's ELF. The
 * file at the mapped path is the host's, not the guest's: it is never read, but
 * for profiles that perf made, and then only when it has the very build id, or, if it has none, is the very
 * inode. Programs, libraries and files of symbols alone (elfsynth.h) will do; what was stripped off is
 * taken from the debug file of the same build id.
 * What is missing costs names, not the report.
 */
#ifndef KVMPROF_PROFILE_FORMAT_NAMES_NAMES_H
#define KVMPROF_PROFILE_FORMAT_NAMES_NAMES_H

#include "profile/format/perfdata/read.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/core/demangle.h"

#define NAMES_MAX_KALLSYMS (512u << 20)
#define NAMES_MAX_ELF (1ull << 30)
#define NAMES_MAX_VMLINUX (4ull << 30)
#define NAMES_MAX_MODULES 16384u
#define NAMES_MAX_DSOS (1u << 20)
#define NAMES_MAX_LIVE_DSOS 8192u     /* of what a sink is told */
#define NAMES_MAX_WAITING (64u << 20) /* bytes of its files that wait to be read */

struct names;

struct name {
	const struct symbol *symbol; /* NULL when there is none */
	uint64_t off;		     /* of the address in it; below 0: in front of it (__cfi_) */
	const char *dso;	     /* never NULL: "[kernel.kallsyms]", a path, "[unknown]" */
	uint64_t to_file;   /* added to a user address: the offset in its file, as perf prints it */
	uint64_t map_start; /* of the mapping it is in, the kernel's too; 0: in none */
	uint32_t program;   /* of a user address, for names_build_id(); NAMES_NONE */
	const struct symtab *symbols; /* that symbol is of; NULL as symbol */
	uint64_t
		shift; /* distance of a later kernel's address from the same code of the first kernel */
	bool other_kernel; /* the address is one of a later kernel that is another build */
};
#define NAMES_NONE UINT32_MAX

/*
 * Moves the address of a kernel's frame to where the guest's first kernel has the same code, which is the kernel whose debug
 * information is searched (srcline.h). Returns false if that kernel does not have the code.
 */
static inline bool names_to_first_kernel(const struct name *n, uint64_t *addr)
{
	*addr -= n->shift;
	return !n->other_kernel;
}

/* The offset that is shown: 0 for what lies in front of the function. */
static inline uint64_t names_shown_off(const struct name *n)
{
	return (int64_t)n->off < 0 ? 0 : n->off;
}

/* buildid_dir NULL: $HOME/.debug. p is borrowed until destroy. Missing symbols are no error. */
int names_create(struct names **out, const struct perfdata *p, const char *buildid_dir,
		 struct err *e);
/* Empty, for the calls of a sink. NULL: no memory. */
struct names *names_create_live(void);
void names_destroy(struct names *n);
/* Addresses behind the end of a symbol are its own, up to the next one (symtab_before()). */
void names_set_relaxed(struct names *n, bool relaxed);

/* Mappings that were left out, over a cap: their addresses have no names. */
uint64_t names_left_out(const struct names *n);

/* -errno: a program's file is there, and the host could not read it: names are missing that may be there
 * the next time. Else 0. */
int names_unread(const struct names *n, struct err *e);

/* Take note of a record, in order of time: MAP, FORK, COMM and EPOCH matter, others are ignored. */
int names_record(struct names *n, const struct perfdata_record *r, struct err *e);

/* The same of a sink's calls. Symbols are borrowed, files are copied within a limit. */
struct profile_kernel;
struct profile_module;
struct profile_map;
struct profile_dso;
void names_kernel(struct names *n, const struct profile_kernel *k);
int names_module(struct names *n, const struct profile_module *m, struct err *e);
int names_map(struct names *n, const struct profile_map *m, struct err *e);
int names_dso(struct names *n, const struct profile_dso *d, struct err *e);
int names_fork(struct names *n, uint32_t pid, uint32_t ppid, struct err *e);
/* pid has nothing mapped any more. */
int names_exec(struct names *n, uint32_t pid, struct err *e);

/*
 * What is mapped in a process and the kernel at this moment: with it, addresses
 * of a sample can be looked up later, whatever was mapped since.
 */
struct names_view {
	uint32_t kernel, user;
};
struct names_view names_view(const struct names *n, uint32_t pid);

void names_lookup_in(struct names *n, struct names_view view, enum names_of whose, uint64_t addr,
		     struct name *out);
/*
 * The same of a frame. A caller is named by the byte in front of the address that its call returns
 * to, as a call may be its function's last instruction; an address of a retpoline's stack is the
 * function that is entered. A frame that was interrupted is named by its own address, which may be its function's first.
 * exact: addresses lie in the calls already, as in our own files.
 * Code of another machine than the recorded one has no name: nothing that was mapped here is its code.
 * Returns the address that was looked up.
 */
uint64_t names_lookup_frame(struct names *n, struct names_view view, const struct perfdata_frame *f,
			    bool exact, struct name *out);
/* The same of an address as things are now. */
void names_lookup(struct names *n, uint32_t pid, enum names_of whose, uint64_t addr,
		  struct name *out);

/* Returns a program's build id, valid until the next mapping comes, and its length in *len; NULL: not known. */
const uint8_t *names_build_id(const struct names *n, uint32_t program, size_t *len);

/*
 * Adds a sample's user frames, out of its copy of the stack, to its chain, which is p's then. What cannot be followed is
 * left out.
 */
void names_unwind_copy(struct names *n, struct perfdata *p, struct perfdata_record *r);
#define NAMES_NOTE_MAX 320u
/*
 * Writes one line about what the profile has and is not shown into out; "" if there is nothing. Called after the last sample.
 */
void names_note(const struct names *n, char out[NAMES_NOTE_MAX]);

/* Are there kernel symbols? */
bool names_have_kernel(const struct names *n);

#endif
