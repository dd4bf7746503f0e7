/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * countfile: the byte format in which the plugin inside QEMU passes exact counts to the program.
 *
 *	file  := u64 magic | u32 nodes | u32 blocks | u32 counts | u32 0 | u64 stats...(10)
 *	         node...(nodes) block...(blocks) count...(counts)
 *	node  := u32 parent | u32 kind | u64 ret | u64 entry | u64 calls
 *	block := u64 pc | u16 insns | u16 off...(insns)
 *	count := u32 node | u32 block | u64 times
 *
 * Little endian, without padding. A node comes after its parent. The guest may have taken over
 * QEMU, so the reader checks each number. Not thread-safe: one thread per object.
 */
#ifndef KVMPROF_VMM_EXACT_COUNTFILE_H
#define KVMPROF_VMM_EXACT_COUNTFILE_H

#include "base/err.h"
#include "vmm/exact/callstacks.h"

#define COUNTFILE_MAGIC UINT64_C(0x31544e43464d564b) /* "KVMFCNT1" as bytes */
#define COUNTFILE_MAX_INSNS 512u		     /* instructions of a block */

struct countfile_block {
	uint64_t pc;
	uint16_t insns;
	uint32_t off; /* index in countfile.off of its first instruction's offset from pc */
};

struct countfile {
	struct calltree_node *node;
	struct countfile_block *block;
	struct calltree_count *count;
	uint16_t *off;
	uint32_t nnodes, nblocks, ncounts;
	struct callstacks_stats stats;
};

/*
 * Writes all counts of c to fd, at its file offset. Returns 0, or -errno of write(2) or -ENOMEM.
 * fd stays open.
 */
int countfile_write(int fd, const struct callstacks *c);
/*
 * Parses the file data[0..len) into *out. Returns 0; -EINVAL with the reason in *e if it is
 * damaged, or -ENOMEM. *out is written only on success; it keeps no reference to data, and the
 * caller frees it with countfile_deinit().
 */
int countfile_parse(struct countfile *out, const void *data, size_t len, struct err *e);
/* Frees what f owns and clears it. */
void countfile_deinit(struct countfile *f);

#endif
