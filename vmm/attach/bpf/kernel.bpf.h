/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel.bpf: definitions that kvmprof's BPF programs share: the kernel's integer types, libbpf's
 * helpers, and the lookup of the object behind a task's descriptor.
 *
 * Structures are declared only with the members that are used; libbpf finds their offsets in the
 * running kernel (CO-RE).
 *
 * Sources: include/linux/fdtable.h, include/linux/fs.h.
 */
#ifndef KVMPROF_VMM_ATTACH_BPF_KERNEL_BPF_H
#define KVMPROF_VMM_ATTACH_BPF_KERNEL_BPF_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* A copy of the kernel's definition in linux/bpf.h. */
struct bpf_pidns_info {
	__u32 pid, tgid;
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define KERNEL_TYPE __attribute__((preserve_access_index))

struct file {
	void *private_data;
} KERNEL_TYPE;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} KERNEL_TYPE;

struct files_struct {
	struct fdtable *fdt;
} KERNEL_TYPE;

/* Returns private_data of the open file with descriptor fd, or 0 if there is none. */
static __always_inline void *bpf_file_data(struct files_struct *files, unsigned int fd)
{
	struct fdtable *table = BPF_CORE_READ(files, fdt);
	struct file **open = BPF_CORE_READ(table, fd), *file = 0;

	if (fd >= BPF_CORE_READ(table, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), open + fd))
		return 0;
	return BPF_CORE_READ(file, private_data);
}

#endif
