/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * countfile: exact counts as bytes, from the plugin inside QEMU to the program.
 *
 *	file  := u64 magic | u32 nodes | u32 blocks | u32 counts | u32 0 | u64 stats...(10)
 *		 node...(nodes) block...(blocks) count...(counts)
 *	node  := u32 parent | u32 kind | u64 ret | u64 entry | u64 calls
 *	block := u64 pc | u16 insns | u16 off...(insns)
 *	count := u32 node | u32 block | u64 times
 *
 * Little endian, without padding. A node stands behind its parent. QEMU may be in the guest's hands:
 * the reader checks each number.
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
	uint32_t off; /* index into countfile.off of its first instruction's distance from pc */
};

struct countfile {
	struct calltree_node *node;
	struct countfile_block *block;
	struct calltree_count *count;
	uint16_t *off;
	uint32_t nnodes, nblocks, ncounts;
	struct callstacks_stats stats;
};

/* All of it to a descriptor. 0, or -errno. */
int countfile_write(int fd, const struct callstacks *c);
/* -EINVAL: it is none, with the reason; -ENOMEM. Owned by *out afterwards, which needs no data. */
int countfile_parse(struct countfile *out, const void *data, size_t len, struct err *e);
void countfile_deinit(struct countfile *f);

#endif
