/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * split_tracer: the process that may trace, and the data that it shares with the process that must
 * have no rights over the VMM.
 *
 * attach_open() and its threads run in the process that may trace (split_tracer.c). The other one
 * (split.c) presents the machine as a struct vm.
 *
 * No pointers are exchanged. Three socket pairs carry messages: orders and their answers (serve.h),
 * requests for guest memory (serve.h), and the end of the machine. Two memfds hold the rest: the
 * board, which only the tracer's process can write, and the tails of the rings, which only the
 * other process writes.
 */
#ifndef KVMPROF_VMM_ATTACH_SPLIT_TRACER_H
#define KVMPROF_VMM_ATTACH_SPLIT_TRACER_H

#include "base/ring.h"
#include "vmm/attach/attach.h"
#include "vmm/attach/process.h"
#include "vmm/attach/serve.h"
#include "base/gmem.h"
#include "base/vcpu_stats.h"
#include "vmm/attach/attach_facts.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

/* The sockets of one side. */
struct split_link {
	int orders, memory, end;
};

/*
 * Message of `orders`: whether attach_open() worked, with the descriptors of the board and of the
 * tails.
 */
struct split_hello {
	struct err err;			 /* code 0: success, and the members below are set */
	uint32_t vcpus, places, regions; /* places: the most vCPUs that there may be later */
	uint64_t ring_size;		 /* ring_round() of the requested size */
	struct gmem_region region[GMEM_MAX_REGIONS];
};

/* Message of `end`: the machine has ended. */
struct split_end {
	uint32_t reason; /* enum vm_end_reason */
	struct err err;
};

/* Where guest memory lies. `changes` is odd while the rest is written. */
struct split_map {
	_Atomic uint32_t changes;
	uint32_t n;
	struct gmem_region region[GMEM_MAX_REGIONS];
};

/* The first bytes of the board. The rings' bytes follow, each from a multiple of SPLIT_ALIGN on. */
#define SPLIT_ALIGN 4096u
struct split_board {
	struct attach_facts facts;
	_Atomic uint32_t vcpus;		       /* it grows when the machine gets more */
	_Atomic int32_t tid[ATTACH_MAX_VCPUS]; /* threads of the vCPUs */
	struct split_map map;
	struct vcpu_stats stats[ATTACH_MAX_VCPUS];
	struct ring_head front[ATTACH_MAX_VCPUS];
};

struct split_tails {
	struct ring_tail back[ATTACH_MAX_VCPUS];
};

/* Returns the number of bytes before the rings in the board. */
static inline size_t split_board_head(void)
{
	return (sizeof(struct split_board) + SPLIT_ALIGN - 1) & ~(size_t)(SPLIT_ALIGN - 1);
}

/* Returns the number of bytes of a board for `places` vCPUs. */
static inline size_t split_board_size(unsigned int places, size_t ring_size)
{
	return split_board_head() + places * ring_size;
}

/* Sends one message, as a whole or not at all. Returns whether it was sent. */
static inline bool split_send(int fd, const void *message, size_t len)
{
	ssize_t n;

	do
		n = write(fd, message, len);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len;
}

/*
 * Runs the tracer's process, in the child of a fork(): attaches, sends a split_hello, and serves
 * until the other process closes its sockets. Does not return.
 */
_Noreturn void split_tracer(const struct attach_config *cfg, const struct split_link *link);

#endif
