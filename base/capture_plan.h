/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_plan: the memory that a sample copies besides registers, as a value.
 *
 * The code that knows the guest's kernel and programs fills a plan with addresses and offsets. The
 * capture code executes the plan without further knowledge and checks each read.
 */
#ifndef KVMPROF_BASE_CAPTURE_PLAN_H
#define KVMPROF_BASE_CAPTURE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

/* A member offset that is absent. */
#define CAPTURE_NONE UINT32_MAX

/*
 * The area of Linux with the stacks that the processor itself switches to (NMI, machine check, and
 * the stack on which each entry from a program begins), one page each:
 * Documentation/arch/x86/x86_64/mm.rst, "cpu_entry_area mapping".
 */
#define LINUX_ENTRY_AREA UINT64_C(0xfffffe0000000000)
#define LINUX_ENTRY_AREA_LEN (UINT64_C(1) << 39)

/*
 * The places where a task keeps the return addresses that the function graph tracer (Linux: struct
 * ftrace_ret_stack) and return probes (struct rethook_node) have replaced.
 */
struct capture_returns_plan {
	uint32_t entry;	       /* bytes of one entry; 0: the first five members are unknown */
	uint32_t stack, index; /* offsets in the task: pointer to the entries, s32 index */
	uint32_t unit;	       /* bytes per step of the index */
	/* The index is that of the topmost entry, not the number of entries. */
	bool top;
	uint32_t node; /* bytes of one list node; 0: node, list and link are unknown */
	/* Offsets of pointers: first node in the task, next node in a node. */
	uint32_t list, link;
};

/*
 * The layout of one build of CPython: where a thread of the interpreter keeps its frames. Offsets
 * in bytes.
 */
struct capture_python_layout {
	uint32_t thread_id; /* in the thread state: the thread's fs_base */
	uint32_t current;   /* in the thread state: pointer to the innermost frame; see cframe */
	/* In the thread state: two pointers that bound an area without frames; CAPTURE_NONE. */
	uint32_t top;
	/*
	 * Python 3.11 and 3.12: `current` points to a structure on the C stack, which has these two
	 * pointers.
	 */
	bool cframe;
	uint32_t cframe_current, cframe_previous;
	/*
	 * Offsets in a frame: three pointers and a byte (owner). All of them lie within the first
	 * `span` bytes.
	 */
	uint32_t code, previous, instr, owner, span;
	/*
	 * 3.11: offset of a byte that is 1 in frames through which C code entered the interpreter
	 */
	uint32_t is_entry;
	/* Since 3.12: `owner` of a frame on the C stack that marks such an entry. */
	uint8_t shim;
	uint8_t heap_owner; /* owner of frames below `top` */
	/* In a code object: members copied to sample_python.id; CAPTURE_NONE: 0. */
	uint32_t id[4];
};
#define CAPTURE_PYTHON_MAX_SPAN 128u
/* The maximum number of layouts for one machine. */
#define CAPTURE_PYTHON_LAYOUTS 16u

/* A thread of the guest that runs Python. */
struct capture_python_thread {
	uint64_t mm;	     /* address of its program's mm, as in struct sample_task */
	uint64_t fs_base;    /* the FS base of the thread */
	uint64_t tstate;     /* guest-virtual address of its thread state */
	unsigned int layout; /* index of its struct capture_python_layout */
};

/* The place of the running task and the members to copy. Offsets are into the task structure. */
struct capture_task_plan {
	bool known;
	/*
	 * The running kernel is not the one that the machine was started with: `current` is a
	 * run-time address, and the addresses of the capture plan (irq_stack_ptr) do not apply.
	 */
	bool other_kernel;
	/*
	 * Place of the pointer to the task: an offset from the kernel's GS base if percpu, else an
	 * address.
	 */
	uint64_t current;
	bool percpu;
	bool members; /* the offsets below are known */
	uint32_t tid, pid, comm, mm;
	uint32_t start, stack; /* may be CAPTURE_NONE */
	uint32_t exec_id;      /* counter of execve() calls, 4 bytes; may be CAPTURE_NONE */
	/* In the structure at `mm`: its change counter, 4 bytes; may be CAPTURE_NONE. */
	uint32_t mm_changes;
	uint32_t comm_size;   /* <= SAMPLE_COMM */
	uint32_t stack_align; /* as capture_plan.stack_align, learned later; 0: use that one */
	struct capture_returns_plan returns;
};

/*
 * The memory that a sample copies besides registers. The plan is computed once and not modified by
 * the capture code.
 */
struct capture_plan {
	uint32_t stack_max; /* maximum bytes of one stack, <= SAMPLE_MAX_SLICE */
	/*
	 * Maximum bytes of the program's stack, <= SAMPLE_MAX_USER_SLICE; 0: a sample in the kernel
	 * has none. In samples of a running program the larger one of this and stack_max applies.
	 */
	uint32_t user_stack_max;
	/* Kernel stacks end at multiples of this (Linux: their size); 0: unknown. */
	uint32_t stack_align;
	/*
	 * The place of the pointer to the topmost word of the interrupt stack (Linux:
	 * hardirq_stack_ptr): a guest-virtual address, or an offset from the GS base if
	 * irq_stack_percpu; 0: unknown.
	 */
	uint64_t irq_stack_ptr;
	bool irq_stack_percpu;
	struct capture_task_plan task;
	bool want_insn;	 /* copy the bytes at rip */
	bool want_fs;	 /* read fs_base, which identifies threads of Python */
	bool want_lstar; /* read MSR_LSTAR until the kernel has set it */
	/*
	 * Addresses here and in `task` that lie in [image_start, image_end) are link-time
	 * addresses, to which the kernel's slide is added. slide_unknown: they cannot be used yet.
	 */
	uint64_t image_start, image_end;
	bool slide_unknown;
};

#endif
