/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capture_plan: what a look at a vCPU copies besides registers, as a value.
 *
 * Whoever knows the guest's kernel and programs fills a plan with addresses and offsets; the
 * capture path executes it without further knowledge. Each read that a plan leads to is checked.
 */
#ifndef KVMPROF_BASE_CAPTURE_PLAN_H
#define KVMPROF_BASE_CAPTURE_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define CAPTURE_NONE UINT32_MAX

/*
 * The per-CPU area of Linux with the stacks that the processor itself switches to (NMI,
 * machine check, and the one on which each entry from a program begins), a page each:
 * Documentation/arch/x86/x86_64/mm.rst, "cpu_entry_area mapping".
 */
#define LINUX_ENTRY_AREA UINT64_C(0xfffffe0000000000)
#define LINUX_ENTRY_AREA_LEN (UINT64_C(1) << 39)

/*
 * Where a traced task keeps its return addresses (Linux: struct ftrace_ret_stack), and a probed
 * one (struct rethook_node).
 */
struct capture_returns_plan {
	uint32_t entry;	       /* bytes of one; 0: not known, and the next four mean nothing */
	uint32_t stack, index; /* offsets in the task: of the pointer, of an s32 */
	uint32_t unit;	       /* bytes by which index counts */
	bool top;	       /* index is the topmost one's, not how many there are */
	uint32_t node;	       /* bytes of one on the list; 0: not known, nor the next two */
	uint32_t list, link;   /* offsets of pointers: in the task, in a node */
};

/*
 * Where a thread of Python's interpreter keeps its frames; offsets in bytes. Of one build of
 * CPython.
 */
struct capture_python_layout {
	uint32_t thread_id; /* in the thread's state: what fs_base is in that thread */
	uint32_t current;   /* in the thread's state: pointer to the innermost frame; see cframe */
	uint32_t
		top; /* in the thread's state: two pointers, between which no frame is; CAPTURE_NONE */
	/* 3.11 and 3.12: `current` leads to a structure on the C stack, in which these are. */
	bool cframe;
	uint32_t cframe_current, cframe_previous;
	/* In a frame: pointers, and single bytes. span: all lie in so many bytes. */
	uint32_t code, previous, instr, owner, span;
	uint32_t is_entry;  /* 3.11: a byte, 1 in frames that the interpreter was entered with */
	uint8_t shim;	    /* since 3.12: owner of a frame on the C stack that tells the same */
	uint8_t heap_owner; /* owner of frames below `top` */
	uint32_t id[4];	    /* in a code object: of struct sample_python's id; CAPTURE_NONE: 0 */
};
#define CAPTURE_PYTHON_MAX_SPAN 128u
/* At most so many layouts for one machine. */
#define CAPTURE_PYTHON_LAYOUTS 16u

/* A thread that runs Python. */
struct capture_python_thread {
	uint64_t mm;	     /* the mm of its program, as in struct sample_task */
	uint64_t fs_base;    /* the FS base of the thread */
	uint64_t tstate;     /* address of its state */
	unsigned int layout; /* number of a struct capture_python_layout */
};

/* Where the running task is and what of it to copy; offsets are into its structure. */
struct capture_task_plan {
	bool known;
	/*
	 * Another kernel runs than the one that the machine was started with: `current` is its address at run time, and the
	 * addresses of the capture plan (irq_stack_ptr) say nothing about it.
	 */
	bool other_kernel;
	/* The pointer to the task: an offset from the kernel's GS base if percpu, else an address. */
	uint64_t current;
	bool percpu;
	bool members; /* the offsets below are known */
	uint32_t tid, pid, comm, mm;
	uint32_t start, stack; /* may be CAPTURE_NONE */
	uint32_t exec_id;      /* 4 bytes; may be CAPTURE_NONE */
	uint32_t
		mm_changes; /* 4 bytes, in the structure that `mm` points to; may be CAPTURE_NONE */
	uint32_t comm_size; /* <= SAMPLE_COMM */
	uint32_t stack_align; /* as in capture_plan, learned later; 0: as it is there */
	struct capture_returns_plan returns;
};

/* The memory that capture copies besides registers. It is computed once; capture does not question it. */
struct capture_plan {
	uint32_t stack_max; /* bytes of one stack, <= SAMPLE_MAX_SLICE */
	/*
	 * Bytes of the program's stack, <= SAMPLE_MAX_USER_SLICE; 0: none of it below the kernel's.
	 * While the program runs it is stack_max where that is more.
	 */
	uint32_t user_stack_max;
	uint32_t
		stack_align; /* kernel stacks end at multiples of this (Linux: their size); 0 unknown */
	/*
	 * Where the guest keeps the address of the topmost word of its interrupt stack
	 * (Linux: hardirq_stack_ptr): a virtual address, or with irq_stack_percpu an
	 * offset from the GS base; 0 unknown.
	 */
	uint64_t irq_stack_ptr;
	bool irq_stack_percpu;
	struct capture_task_plan task;
	bool want_insn;	 /* copy the bytes at rip */
	bool want_fs;	 /* fs_base must be there: threads of Python are known by it */
	bool want_lstar; /* ask for MSR_LSTAR until the kernel has set it */
	/*
	 * Addresses here and in `task` inside [image_start, image_end) are as linked, and
	 * move with the kernel. slide_unknown: they can't be used before the slide is known.
	 */
	uint64_t image_start, image_end;
	bool slide_unknown;
};

#endif
