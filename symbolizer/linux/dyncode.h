/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_dyncode: code that a running kernel has made, from its memory.
 *
 *	BPF programs and trampolines	bpf_kallsyms: struct bpf_ksym {start, end, name, lnode},
 *					since "bpf: Add struct bpf_ksym" (5.7)
 *	trampolines of ftrace		ftrace_ops_trampoline_list: struct ftrace_ops {list,
 *					trampoline, trampoline_size, flags}, since "ftrace: Add
 *					symbols for ftrace trampolines" (5.8)
 *	slots of kprobes		kprobe_insn_slots.pages, kprobe_optinsn_slots.pages:
 *					struct kprobe_insn_page {list, insns}, a page each
 *
 * Names are those of /proc/kallsyms. Addresses are run-time guest virtual ones. Any
 * thread; a list belongs to its caller.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_DYNCODE_H
#define KVMPROF_SYMBOLIZER_LINUX_DYNCODE_H

#include "base/err.h"
#include "symbolizer/core/memory.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/types/types.h"
#include "symbolizer/unwind/unwind.h"

#define LINUX_DYNCODE_MAX 16384u /* pieces in one list */
#define LINUX_DYNCODE_MAX_TEXT (4u << 20)
#define LINUX_DYNCODE_NAME 128u /* longer names are cut */

#define LINUX_DYNCODE_NONE UINT32_MAX

enum linux_dyncode_kind {
	LINUX_DYNCODE_BPF,
	LINUX_DYNCODE_FTRACE,
	LINUX_DYNCODE_KPROBE,	/* instructions that are stepped out of line */
	LINUX_DYNCODE_OPTPROBE, /* calls of probes that a jump leads to */
	LINUX_DYNCODE_KINDS
};

/* One list of the kernel's. Offsets in its structure; some may be LINUX_DYNCODE_NONE. */
struct linux_dyncode_family {
	uint64_t head;		  /* address of the list's head; 0: the kernel has no such list */
	uint32_t list, start;	  /* always known: list_head, address of the first byte */
	uint32_t end, size;	  /* of the end, or u64 length; neither: a page */
	uint32_t name, name_size; /* bytes; NONE: they have one name */
	uint32_t flags;		  /* u64 */
};

struct linux_dyncode_layout {
	struct linux_dyncode_family family[LINUX_DYNCODE_KINDS];
	uint64_t kernel_start, kernel_end; /* the kernel's own text: nothing is made there */
	/* What trampolines of ftrace are copies of, and the flag that tells which. */
	uint64_t ftrace_caller, ftrace_regs_caller, save_regs;
};

/*
 * -ENOENT with the reason: no list can be found. types and symbols may be NULL.
 */
int linux_dyncode_layout(struct linux_dyncode_layout *out, const struct types *types,
			 const struct symtab *symbols, struct err *e);

struct linux_dyncode {
	char name[LINUX_DYNCODE_NAME]; /* printable */
	enum linux_dyncode_kind kind;
	uint64_t start, end; /* [start, end) */
	uint64_t copy_of;    /* the kernel's own code that it is a copy of; 0: of none */
};

struct linux_dyncode_list {
	struct linux_dyncode *code; /* sorted, not overlapping */
	size_t n;
	size_t skipped; /* could not be believed: name or addresses */
	size_t cut; /* lists that did not come back to their head: changing, damaged or too long */
};

/* -ENOMEM, or 0. */
int linux_dyncode_list(const struct linux_dyncode_layout *l, const struct memory *m,
		       struct linux_dyncode_list *out, struct err *e);
void linux_dyncode_list_deinit(struct linux_dyncode_list *list);

/*
 * One number that changes whenever code comes or goes. -ENOENT when a list can't be
 * followed at the moment.
 */
int linux_dyncode_hash(const struct linux_dyncode_layout *l, const struct memory *m, uint64_t *out);

/* One piece as the unwinder wants it; symbols: its name, may be NULL. */
struct unwind_region linux_dyncode_region(const struct linux_dyncode *c,
					  const struct symtab *symbols);

#endif
