/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machines: finds the processes of this host that run virtual machines under KVM.
 *
 * The kernel knows no name for a machine. The name is read from the VMM's command line, which the
 * VMM's user chose: -name of QEMU and of libvirt (guest=NAME), --id of Firecracker and its jailer,
 * --name of crosvm and kvmtool, else the file name of Cloud Hypervisor's --api-socket.
 *
 * The functions keep no state. Any thread may call them.
 */
#ifndef KVMPROF_VMM_ATTACH_MACHINES_H
#define KVMPROF_VMM_ATTACH_MACHINES_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MACHINES_NAME_MAX 128u
/* Bytes of a command line that are read. */
#define MACHINES_COMMAND_MAX 65536u

struct machines_one {
	pid_t pid;
	char vmm[16];		      /* the process's name */
	char name[MACHINES_NAME_MAX]; /* UTF-8, printable; "": its command line has none */
	unsigned int vcpus;
	uint64_t resident; /* bytes in memory */
	uint64_t uptime_s;
	uid_t owner;
};

struct machines {
	struct machines_one *at; /* by PID */
	size_t n;
	size_t hidden; /* processes whose descriptors kvmprof has no right to read */
};

/*
 * Finds all machines, sorted by PID. Returns 0, -ENOMEM, or -errno if /proc cannot be read.
 * machines_free() must follow, also after an error.
 */
int machines_find(struct machines *out, struct err *e);
/* Frees the list and makes it empty. */
void machines_free(struct machines *m);

/*
 * Stores the PID of the machine with this name in *pid. Returns 0; -ENOENT if there is none, and *e
 * lists the machines that exist; -ENOTUNIQ if several have the name, and *e lists these; or an
 * error of machines_find().
 */
int machines_by_name(const char *name, pid_t *pid, struct err *e);

/*
 * Copies the machine's name in a command line to out[0, size), "" if it has none. command:
 * arguments, each with its NUL, len bytes in all.
 */
void machines_name(char *out, size_t size, const char *command, size_t len);

#endif
