/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names: from the addresses of a perf.data file to symbols and DSOs.
 *
 * Kernel: the directory's kcore_dir/kallsyms, else the build-id cache's. User
 * programs: the directory's dso/<build id>, else the build-id cache's ELF; the
 * file at the mapped path is never read, as it is the host's, not the guest's.
 * What is missing costs names, not the report.
 */
#ifndef KVMPROF_PROFILE_NAMES_H
#define KVMPROF_PROFILE_NAMES_H

#include "profile/perfdata_read.h"
#include "symbolizer/symtab.h"

#define NAMES_MAX_KALLSYMS (512u << 20)
#define NAMES_MAX_ELF (1ull << 30)
#define NAMES_MAX_MAPS (1u << 20)
#define NAMES_MAX_DSOS 65536u

struct names;

struct name {
	const struct symbol *symbol; /* NULL when there is none */
	uint64_t off;		     /* of the address in it */
	const char *dso;	     /* never NULL: "[kernel.kallsyms]", a path, "[unknown]" */
	uint64_t to_file; /* added to a user address: the offset in its file, as perf prints it */
};

/* buildid_dir NULL: $HOME/.debug. p is borrowed. Missing symbols are no error. */
int names_create(struct names **out, const struct perfdata *p, const char *buildid_dir,
		 struct err *e);
void names_destroy(struct names *n);

/* Take note of a mapping; later ones hide earlier ones of the same process. */
int names_map(struct names *n, const struct perfdata_record *map, struct err *e);

/* addr is the address to look up (the caller's is inside its call). */
void names_lookup(struct names *n, uint32_t pid, bool kernel, uint64_t addr, struct name *out);

/* Are there kernel symbols? */
bool names_have_kernel(const struct names *n);

#endif
