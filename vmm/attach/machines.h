/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * machines: the processes of this host that run virtual machines under KVM.
 *
 * A machine has no name that the kernel knows. It is read from the VMM's command line, which the VMM's user chose: -name of QEMU and
 * of libvirt (guest=NAME), --id of Firecracker and its jailer, --name of crosvm and kvmtool, else the file name of
 * Cloud Hypervisor's --api-socket.
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
	size_t hidden; /* processes whose descriptors this one may not see */
};

/* Finds all. Returns 0, or -ENOMEM or what /proc failed with. For machines_free(), also after an error. */
int machines_find(struct machines *out, struct err *e);
void machines_free(struct machines *m);

/*
 * Finds the machine with this name. Returns 0, -ENOENT or, if several have it, -ENOTUNIQ; then *e names the
 * machines that there are.
 */
int machines_by_name(const char *name, pid_t *pid, struct err *e);

/* Copies the name in a command line: arguments, each with its NUL, in len bytes. "" if there is none. */
void machines_name(char *out, size_t size, const char *command, size_t len);

#endif
