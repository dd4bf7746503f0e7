/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host_bpf: a small BPF program of ours in the host's kernel.
 *
 * Each program has one block of memory that it shares with us: we write a question there, run it,
 * and read the answer. Program and memory belong to our descriptors, and go with them.
 *
 * Source: bpf(2), Documentation/bpf/libbpf. All calls of one thread.
 */
#ifndef KVMPROF_VMM_ATTACH_HOST_BPF_H
#define KVMPROF_VMM_ATTACH_HOST_BPF_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct host_bpf {
	struct bpf_object *object; /* NULL: not open */
	int program_fd;
	void *block;
	size_t block_len;
};

/*
 * Load the program `name` of a compiled object; its .bss is the block, of block_len bytes. Takes some
 * 20 ms, in which the kernel's types are looked through. -EPERM, -ENOENT, -ENOTSUP and others: it
 * can't be, for the reason that *e gives; nothing is left then.
 */
int host_bpf_open(struct host_bpf *b, const uint8_t *object, size_t len, const char *name,
		  size_t block_len, struct err *e);
/* Not open is fine. */
void host_bpf_close(struct host_bpf *b);

/* Run it on a processor, in an interrupt; -1: here, in this thread's context. 0 or -errno. */
int host_bpf_run(const struct host_bpf *b, int cpu);

#endif
