/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linux_dyncode: finds code that a running kernel has generated, in its memory.
 *
 *	BPF programs and trampolines	bpf_kallsyms: struct bpf_ksym {start, end, name, lnode},
 *					since "bpf: Add struct bpf_ksym" (5.7)
 *	trampolines of ftrace		ftrace_ops_trampoline_list: struct ftrace_ops {list,
 *					trampoline, trampoline_size, flags}, since "ftrace: Add
 *					symbols for ftrace trampolines" (5.8)
 *	slots of kprobes		kprobe_insn_slots.pages, kprobe_optinsn_slots.pages:
 *					struct kprobe_insn_page {list, insns}, a page each
 *
 * Names are those of /proc/kallsyms. Addresses are runtime guest-virtual ones. Pure functions apart
 * from reading memory; any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_LINUX_DYNCODE_H
#define KVMPROF_SYMBOLIZER_LINUX_DYNCODE_H

#include "base/err.h"
#include "symbolizer/core/memory.h"
#include "symbolizer/core/symtab.h"
#include "symbolizer/types/types.h"
#include "symbolizer/unwind/unwind.h"

#define LINUX_DYNCODE_MAX 16384u	  /* pieces in one list */
#define LINUX_DYNCODE_MAX_TEXT (4u << 20) /* bytes of one piece */
#define LINUX_DYNCODE_NAME 128u		  /* bytes with the NUL; longer names are truncated */

#define LINUX_DYNCODE_NONE UINT32_MAX

enum linux_dyncode_kind {
	LINUX_DYNCODE_BPF,
	LINUX_DYNCODE_FTRACE,
	LINUX_DYNCODE_KPROBE,	/* instructions that are stepped out of line */
	LINUX_DYNCODE_OPTPROBE, /* calls of probes to which a jump leads */
	LINUX_DYNCODE_KINDS
};

/* One list in the kernel: offsets in its structure. Some may be LINUX_DYNCODE_NONE. */
struct linux_dyncode_family {
	uint64_t head;		  /* address of the list's head; 0: the kernel has no such list */
	uint32_t list, start;	  /* always known: list_head, and address of the first byte */
	uint32_t end, size;	  /* address of the end, or u64 length; both unknown: a page */
	uint32_t name, name_size; /* bytes; NONE: all have one name */
	uint32_t flags;		  /* u64 */
};

struct linux_dyncode_layout {
	struct linux_dyncode_family family[LINUX_DYNCODE_KINDS];
	uint64_t kernel_start, kernel_end; /* the kernel's own text, where no code is generated */
	/* The originals of ftrace's trampolines, and the flag that says which one was copied. */
	uint64_t ftrace_caller, ftrace_regs_caller, save_regs;
};

/*
 * Finds the offsets of all lists. types and symbols may be NULL. Returns 0, or -ENOENT with the
 * reason in *e if no list can be found.
 */
int linux_dyncode_layout(struct linux_dyncode_layout *out, const struct types *types,
			 const struct symtab *symbols, struct err *e);

struct linux_dyncode {
	char name[LINUX_DYNCODE_NAME]; /* printable */
	enum linux_dyncode_kind kind;
	uint64_t start, end; /* [start, end) */
	uint64_t copy_of;    /* address of the kernel code of which it is a copy; 0: none */
};

struct linux_dyncode_list {
	struct linux_dyncode *code; /* sorted, not overlapping; owned */
	size_t n;
	size_t skipped; /* pieces with an implausible name or address */
	size_t cut;	/* lists that did not return to their head: changing, damaged or too long */
};

/*
 * Reads all lists. Returns 0, or -ENOMEM with *e set. The caller frees *out with
 * linux_dyncode_list_deinit().
 */
int linux_dyncode_list(const struct linux_dyncode_layout *l, const struct memory *m,
		       struct linux_dyncode_list *out, struct err *e);
void linux_dyncode_list_deinit(struct linux_dyncode_list *list);

/*
 * Computes a number that changes whenever code is added or removed. Returns 0, or -ENOENT if a
 * list cannot be followed at the moment.
 */
int linux_dyncode_hash(const struct linux_dyncode_layout *l, const struct memory *m, uint64_t *out);

/* Returns one piece in the unwinder's form. symbols: its name; may be NULL; borrowed. */
struct unwind_region linux_dyncode_region(const struct linux_dyncode *c,
					  const struct symtab *symbols);

#endif
