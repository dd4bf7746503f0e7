/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_names: the functions of the host's kernel, from /proc/kallsyms, and of the process that runs
 * the vCPUs, from its files.
 *
 * They are read once, before rights are given up: without CAP_SYSLOG, or with kptr_restrict, all
 * addresses there are 0. The main thread reads them; afterwards they are constant, and any thread
 * may call host_names_at().
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_HOST_NAMES_H
#define KVMPROF_PROFILE_RECORD_HOST_HOST_NAMES_H

#include "base/err.h"
#include "symbolizer/core/symtab.h"

#include <sys/types.h>

/* A file of that process. */
struct host_file {
	/* range of its mapping; what to subtract to get the file's own addresses */
	uint64_t start, end, bias;
	struct symtab *symbols; /* frozen; owned; NULL: it has none, or cannot be read */
	char label[64];		/* stands for a function without a name: "[libc.so.6]" */
};

struct host_names {
	/* frozen; owned; NULL: unavailable, and addresses replace the names */
	struct symtab *kernel;
	struct host_file *file; /* executable mappings, sorted by address; owned */
	unsigned int nfiles;
};

/*
 * Reads the names; pid is the process, 0: this one. Missing files are left out. Returns 0, or
 * -errno with the reason if the kernel's functions are unavailable; *n is valid in either case, and
 * freed with host_names_deinit().
 */
int host_names_read(struct host_names *n, pid_t pid, struct err *why);
void host_names_deinit(struct host_names *n); /* accepts all zero */

/*
 * Returns the name of the function at an address of the host, or its file's label, owned by n;
 * NULL: unknown. n may be NULL.
 */
const char *host_names_at(const struct host_names *n, uint64_t ip);

#endif
