/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names: maps addresses to symbols and DSOs, according to the mappings at the time of a sample.
 *
 * The input is either the records of a perf.data file (names_create()), or the calls of a sink
 * while the guest runs (names_create_live()); in the latter case all symbols come from memory. Not
 * thread-safe: the caller serialises calls on one object.
 *
 * Sources of symbols for a file:
 * * Kernel and modules: kcore_dir/kallsyms in the profile's directory, otherwise the file with the
 * kernel's build id in the build-id cache, /usr/lib/debug or /boot. For profiles that perf made,
 * also /proc/kallsyms if the same kernel still runs. A module's functions are used only where its
 * map is.
 * * User programs: dso/<build id> in the profile's directory, otherwise the ELF file in the
 * build-id cache. The file at the mapped path is the host's, not the guest's, so it is not read.
 * The exception are profiles that perf made, if the file has the same build id or, without one, is
 * the same inode. Programs, libraries and files with symbols only (elfsynth.h) are accepted.
 * Stripped symbols come from the debug file of the same build id.
 *
 * A missing file means missing names, not an error.
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
#define NAMES_MAX_LIVE_DSOS 8192u /* limit for DSOs reported by a sink */
/* limit in bytes for files reported by a sink that were not read yet */
#define NAMES_MAX_WAITING (64u << 20)

struct names;

/*
 * Result of a lookup. The pointers are valid as long as the names object, symbols of a sink as long
 * as its caller keeps them.
 */
struct name {
	/* address minus the symbol's; negative (as int64_t): in front of it (__cfi_) */
	const struct symbol *symbol;
	/* address minus the symbol's; negative (as int64_t): in front of it (__cfi_) */
	uint64_t off;
	const char *dso; /* never NULL: "[kernel.kallsyms]", a path, or "[unknown]" */
	/* offset in the file minus user address; added to an address it gives perf's file offset */
	uint64_t to_file;
	/* start of the mapping (also the kernel's) with the address; 0: no mapping */
	uint64_t map_start;
	/* for a user address: number for names_build_id(); otherwise NAMES_NONE */
	uint32_t program;
	const struct symtab *symbols; /* the table with symbol; NULL if symbol is */
	/* address in a later kernel minus address of the same code in the first kernel */
	uint64_t shift;
	bool other_kernel; /* the address belongs to a later kernel that is another build */
	/*
	 * The address keeps this name in this address space (struct names_view) for the rest of the
	 * input; otherwise until names_stamp() changes.
	 */
	bool settled;
};
#define NAMES_NONE UINT32_MAX

/*
 * Moves the address of a kernel frame to the same code in the guest's first kernel, whose debug
 * information is used (srcline.h). Returns false if that kernel does not have the code.
 */
static inline bool names_to_first_kernel(const struct name *n, uint64_t *addr)
{
	*addr -= n->shift;
	return !n->other_kernel;
}

/* Returns the offset to display: 0 for an address in front of the function. */
static inline uint64_t names_shown_off(const struct name *n)
{
	return (int64_t)n->off < 0 ? 0 : n->off;
}

/*
 * Creates names for the profile p, which is borrowed until names_destroy(), and reads the kernel's
 * symbols. buildid_dir NULL means $HOME/.debug. Missing symbols are not an error. Returns 0 or
 * -errno. The caller frees *out with names_destroy().
 */
int names_create(struct names **out, const struct perfdata *p, const char *buildid_dir,
		 struct err *e);
/*
 * Returns an empty object for the calls of a sink, or NULL if out of memory. The caller frees it
 * with names_destroy().
 */
struct names *names_create_live(void);
/* Frees n; does nothing for NULL. */
void names_destroy(struct names *n);
/*
 * If relaxed, an address between the end of a symbol and the next symbol gets the name of the
 * former (symtab_before()).
 */
void names_set_relaxed(struct names *n, bool relaxed);

/*
 * Returns the number of mappings not stored because a limit was reached; their addresses have no
 * names.
 */
uint64_t names_left_out(const struct names *n);

/*
 * Returns -errno, with the reason in *e, if a program's file exists but could not be read because
 * of an error of the host, so that a second run may find more names. Otherwise returns 0.
 */
int names_read_error(const struct names *n, struct err *e);

/*
 * Applies a record. Records must come in order of time. MAP, FORK, COMM (exec) and EPOCH have an
 * effect, others are ignored. Returns 0 or -errno. For names_create() only.
 */
int names_record(struct names *n, const struct perfdata_record *r, struct err *e);

/*
 * Do the same for the calls of a sink (profile/format/sink/sink.h), for names_create_live(). Symbol
 * tables are borrowed; files are copied up to NAMES_MAX_WAITING bytes. Return 0 or -ENOMEM; a limit
 * on the number of mappings is not an error (see names_left_out()).
 */
struct profile_kernel;
struct profile_module;
struct profile_map;
struct profile_dso;
void names_kernel(struct names *n, const struct profile_kernel *k);
int names_module(struct names *n, const struct profile_module *m, struct err *e);
int names_map(struct names *n, const struct profile_map *m, struct err *e);
int names_dso(struct names *n, const struct profile_dso *d, struct err *e);
int names_fork(struct names *n, uint32_t pid, uint32_t ppid, struct err *e);
/* Removes all mappings of process pid. */
int names_exec(struct names *n, uint32_t pid, struct err *e);

/*
 * Identifies the mappings of a process and of the kernel at one moment. It stays valid: addresses
 * of a sample can be looked up later, whatever was mapped meanwhile.
 */
struct names_view {
	uint32_t kernel, user;
};
/* Returns the present mappings of process pid and of the kernel. */
struct names_view names_view(const struct names *n, uint32_t pid);

/* Returns a number that changes whenever names that are not settled may change. */
uint32_t names_stamp(const struct names *n);

/*
 * Looks addr up in the mappings of view and fills *out. Cannot fail: an unknown address has symbol
 * NULL and the dso "[unknown]".
 */
void names_lookup_in(struct names *n, struct names_view view, enum names_of whose, uint64_t addr,
		     struct name *out);
/*
 * Looks up a frame of a call chain. A caller is named by the byte before its return address,
 * because the call may be its function's last instruction; if that byte is in front of the kernel
 * function entered at the return address (a retpoline's stack), that function is used. An
 * interrupted frame is named by its own address, which may be the first of its function. exact:
 * addresses are inside the calls already, as in kvmprof's own files. A frame of another machine
 * than the recorded one has no symbol. Returns the address that was looked up.
 */
uint64_t names_lookup_frame(struct names *n, struct names_view view, const struct perfdata_frame *f,
			    bool exact, struct name *out);
/* Looks addr up in the present mappings of process pid. */
void names_lookup(struct names *n, uint32_t pid, enum names_of whose, uint64_t addr,
		  struct name *out);

/*
 * Returns the build id of a program (name.program) and its length in *len; NULL if it is unknown.
 * Valid until the next mapping is added.
 */
const uint8_t *names_build_id(const struct names *n, uint32_t program, size_t *len);

/*
 * Unwinds the copy of the stack in sample *r, if it has one, and adds the user frames to its chain.
 * The new chain belongs to p (see perfdata_keep_chain()). The chain ends where the unwinder fails.
 * For names_create() only.
 */
void names_unwind_copy(struct names *n, struct perfdata *p, struct perfdata_record *r);
#define NAMES_NOTE_MAX 320u
/*
 * Writes one line to out about data in the profile that is not shown; "" if there is none. Call it
 * after the last sample.
 */
void names_note(const struct names *n, char out[NAMES_NOTE_MAX]);

/* Returns true if the kernel's symbols are known. */
bool names_have_kernel(const struct names *n);

#endif
