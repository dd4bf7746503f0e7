/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_names: functions of the host's kernel, by /proc/kallsyms, and of the process that runs the vCPUs, by its files.
 *
 * Read once, before rights are given up: without CAP_SYSLOG, or with kptr_restrict, all addresses there are 0.
 */
#ifndef KVMPROF_PROFILE_RECORD_HOST_HOST_NAMES_H
#define KVMPROF_PROFILE_RECORD_HOST_HOST_NAMES_H

#include "base/err.h"
#include "symbolizer/core/symtab.h"

#include <sys/types.h>

/* A file of that process. */
struct host_file {
	uint64_t start, end, bias; /* where it is mapped; of the addresses that it has itself */
	struct symtab *symbols;	   /* frozen; NULL: it has none, or can't be read */
	char label[64];		   /* what stands for a function without a name: "[libc.so.6]" */
};

struct host_names {
	struct symtab *kernel;	/* frozen; NULL: not to be had, and addresses stand for names */
	struct host_file *file; /* mapped with rights to execute, by address */
	unsigned int nfiles;
};

/* pid: whose files; 0: ours. What can't be had is left out. -errno with the reason where that is the kernel's functions. */
int host_names_read(struct host_names *n, pid_t pid, struct err *why);
void host_names_deinit(struct host_names *n); /* all zero is fine */

/* The function at an address of the host, or its file's label; NULL: not known. n may be NULL. */
const char *host_names_at(const struct host_names *n, uint64_t ip);

#endif
