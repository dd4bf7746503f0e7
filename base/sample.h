/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample: one observation of one vCPU, as a value.
 *
 * This is the central type of the program: the VMM fills it in place in a ring while the vCPU is
 * stopped. Unwinding, naming and writing are functions of it. A sample has no pointers to the
 * guest, so it can be replayed from a file.
 *
 * The copied stack bytes follow the struct: bytes [off, off + len) of stack[] were copied from the
 * guest-virtual range that slice[i] names.
 */
#ifndef KVMPROF_BASE_SAMPLE_H
#define KVMPROF_BASE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLE_VERSION 6
/*
 * The value of the CPU number in a profile for a thread that runs no vCPU. perf also uses -1 for
 * "no CPU".
 */
#define SAMPLE_NO_CPU UINT32_MAX
/*
 * The maximum number of stacks of one sample: the kernel's (task, IRQ, exception, NMI), and the
 * program's.
 */
#define SAMPLE_MAX_KERNEL_SLICES 4
#define SAMPLE_MAX_SLICES 5
/* The maximum bytes of one kernel stack, and of a program's stack. */
#define SAMPLE_MAX_SLICE 16384u
#define SAMPLE_MAX_USER_SLICE 65536u
/* The maximum bytes of return addresses that the function graph tracer and probes have replaced. */
#define SAMPLE_MAX_RETURNS 2048u
/* The maximum number of innermost frames of a Python thread, and their bytes. */
#define SAMPLE_MAX_PYTHON 128u
#define SAMPLE_MAX_PYTHON_BYTES (SAMPLE_MAX_PYTHON * (uint32_t)sizeof(struct sample_python))
/* The maximum bytes of stack[]. */
#define SAMPLE_MAX_STACK                                                       \
	(SAMPLE_MAX_KERNEL_SLICES * SAMPLE_MAX_SLICE + SAMPLE_MAX_USER_SLICE + \
	 SAMPLE_MAX_RETURNS + SAMPLE_MAX_PYTHON_BYTES + SAMPLE_MAX_HOST_BYTES + 16)
/*
 * The maximum number of frames of the host's kernel and of kvmprof, and the bytes of a struct
 * sample_host.
 */
#define SAMPLE_MAX_HOST 64u
#define SAMPLE_MAX_HOST_BYTES (16u + SAMPLE_MAX_HOST * 8u)
#define SAMPLE_COMM 16u
#define SAMPLE_MAX_INSN 16u /* bytes; an instruction has at most 15 (SDM vol. 2, 2.3.11) */

/* Indices of sample_regs.gpr, in the order of the instruction encoding (SDM vol. 2, table 2-2). */
/* clang-format off */
enum sample_gpr {
	GPR_RAX, GPR_RCX, GPR_RDX, GPR_RBX, GPR_RSP, GPR_RBP, GPR_RSI, GPR_RDI,
	GPR_R8, GPR_R9, GPR_R10, GPR_R11, GPR_R12, GPR_R13, GPR_R14, GPR_R15,
	GPR_COUNT
};
/* clang-format on */

struct sample_regs {
	uint64_t gpr[GPR_COUNT];
	uint64_t rip, rflags;
	uint64_t cr0, cr2, cr3, cr4, efer;
	uint64_t cr8; /* the task's priority; 0 where it is not known */
	uint64_t fs_base, gs_base;
	uint16_t cs, ss;
};

/* The reason for taking the sample. */
enum sample_reason {
	SAMPLE_TIMER = 1,  /* a host timer, of wall-clock or CPU time, expired */
	SAMPLE_CRASH = 2,  /* triple fault: the last state of the vCPU, weight 0 */
	SAMPLE_PMU = 3,	   /* a perf_event counter overflowed */
	SAMPLE_EXIT = 4,   /* a VM exit; the stack is the one that caused it */
	SAMPLE_MARKER = 5, /* a breakpoint was reached: `event` is its index, weight 0 */
	SAMPLE_LOOK = 6,   /* taken to find the kernel's address; not for the profile */
	/*
	 * A task that does not run; the sample belongs to no vCPU. rip is the address to which the
	 * task will return.
	 */
	SAMPLE_OFFCPU = 7,
	SAMPLE_IO = 8, /* a disk was notified of requests; see exit_addr */
	/*
	 * An instruction was reached by counting. Registers and stack are those at the start of its
	 * block.
	 */
	SAMPLE_INSN = 9,
	SAMPLE_HOST = 10, /* the host's work for the guest, or instead of it: struct sample_host */
	/*
	 * Another thread of the VMM, with a struct sample_host and no guest state; the sample
	 * belongs to no vCPU.
	 */
	SAMPLE_THREAD = 11,
};

/* The state of a vCPU's thread. */
enum sample_where {
	SAMPLE_IN_GUEST = 0,
	SAMPLE_IN_KVM,
	SAMPLE_IN_VMM,
	SAMPLE_RUNNABLE, /* waited for a processor */
	SAMPLE_HALTED,
	SAMPLE_STOPPED, /* stopped by kvmprof */
	SAMPLE_WAITING, /* asleep in KVM, and not known to be halted */
	SAMPLE_UNTOLD,	/* off its processor in KVM or in the VMM; not known in which of them */
	SAMPLE_WHERES
};

/* The host's part of a SAMPLE_HOST or SAMPLE_THREAD, in stack[] at exit_addr. */
struct sample_host {
	/*
	 * IN_VMM: exit_addr of the exit being handled, as in SAMPLE_EXIT. RUNNABLE: CLOCK_MONOTONIC
	 * since when it waited.
	 */
	uint64_t exit_addr;
	uint8_t where; /* enum sample_where */
	uint8_t exit;  /* IN_VMM: KVM_EXIT_* being handled */
	uint16_t n;    /* number of addresses in ip[], at most SAMPLE_MAX_HOST */
	uint32_t tid;  /* RUNNABLE: id of the thread on the host */
	/* Call chain, kernel then kvmprof, innermost first; n are stored. */
	uint64_t ip[SAMPLE_MAX_HOST];
};

enum sample_mode {
	SAMPLE_KERNEL = 1, /* CPL 0..2 */
	SAMPLE_USER = 2,   /* CPL 3 */
	SAMPLE_IDLE = 3,   /* halted (KVM_MP_STATE_HALTED) at CPL 0 */
};

/* The maximum number of devices of a machine with counters of their own. */
#define SAMPLE_MAX_DEVICES 48u
/*
 * Values of sample.device without a device: a nested guest ran, or perhaps did (this KVM does not
 * report whether the nested guest or its hypervisor ran). Such a sample has no registers, no stack
 * and no task.
 */
#define SAMPLE_PERHAPS_NESTED 254u
#define SAMPLE_NESTED 255u

/* The reason why the copied stack may be shorter than the real one. */
enum sample_stack_end {
	SAMPLE_STACK_WHOLE = 0, /* copied up to the known end of the stack */
	SAMPLE_STACK_CAPPED,	/* the size limit of the capture plan was reached */
	SAMPLE_STACK_UNMAPPED,	/* one of its pages is not mapped in the guest */
	SAMPLE_STACK_NONE,	/* not even the first bytes could be read */
};

/* The result of reading the task that runs on the vCPU. */
enum sample_task_state {
	SAMPLE_TASK_UNASKED = 0, /* the capture plan does not describe it */
	SAMPLE_TASK_FOUND,
	SAMPLE_TASK_NOT_YET, /* the kernel has no current task yet, or its place is not known yet */
	SAMPLE_TASK_UNREADABLE, /* a page on the way to it is not mapped */
	/* Only addr is valid: the offsets of the members are not known yet. */
	SAMPLE_TASK_POINTER,
};

/* A task as the kernel stores it (Linux: task_struct); valid if state is SAMPLE_TASK_FOUND. */
struct sample_task {
	uint64_t addr;	/* guest-virtual address of the structure itself */
	uint64_t mm;	/* address of its address space's mm; 0: a kernel thread */
	uint64_t stack; /* lowest byte of its kernel stack; 0: unknown */
	/* Start time in the kernel's unit; distinguishes two tasks with one tid. */
	uint64_t start;
	uint32_t tid, pid;	/* Linux: pid and tgid */
	char comm[SAMPLE_COMM]; /* may lack its NUL, because the guest wrote it */
	uint8_t state;		/* enum sample_task_state */
	bool has_changes;	/* sample.mm_changes is known */
	/*
	 * Number of programs that its process has started by execve() (Linux: lower half of
	 * self_exec_id); 0: unknown.
	 */
	uint32_t exec_id;
};
_Static_assert(sizeof(struct sample_task) == 64, "no padding");

/* One frame of the Python interpreter, as its thread state had it. Addresses are guest-virtual. */
struct sample_python {
	uint64_t frame, code; /* addresses of the interpreter's frame and of its code object */
	uint64_t instr;	      /* address of the current Python instruction */
	/*
	 * Address on the C stack (a multiple of 8) where the interpreter records that C code
	 * entered it with this frame; 0: it was not entered here. With SAMPLE_PYTHON_SKIPPED set,
	 * frames between the two were omitted.
	 */
	uint64_t entry;
	uint64_t id[4]; /* words that identify the code object (struct capture_python_layout) */
};

#define SAMPLE_PYTHON_SKIPPED 1u

/* The result of reading a Python thread's frames. */
enum sample_python_state {
	SAMPLE_PYTHON_NONE = 0,	  /* not requested, or the thread is not known */
	SAMPLE_PYTHON_WHOLE,	  /* all frames, possibly none */
	SAMPLE_PYTHON_CUT,	  /* the limit SAMPLE_MAX_PYTHON was reached */
	SAMPLE_PYTHON_CHANGING,	  /* inconsistent, as between two steps of the interpreter */
	SAMPLE_PYTHON_UNREADABLE, /* a page on the way to them is not mapped */
};

struct sample_slice {
	uint64_t va;  /* guest-virtual address of the first byte */
	uint32_t off; /* offset in stack[] */
	uint32_t len;
};

struct sample {
	uint16_t version;  /* SAMPLE_VERSION */
	uint16_t vcpu;	   /* index, 0-based */
	uint8_t reason;	   /* enum sample_reason */
	uint8_t mode;	   /* enum sample_mode */
	uint8_t stack_end; /* enum sample_stack_end */
	uint8_t nslices;
	uint8_t event; /* index into the machine's events */
	/*
	 * The device that the vCPU's thread worked for when the period ended: 1 + index; or
	 * SAMPLE_..NESTED.
	 */
	uint8_t device;
	/* SAMPLE_EXIT: KVM_EXIT_*; SAMPLE_OFFCPU: the task's state as a letter of ps */
	uint8_t exit;
	uint8_t python_state; /* enum sample_python_state */
	uint8_t insn_len;     /* bytes in insn[]; 0: not requested or not readable */
	uint32_t overruns;    /* number of whole periods missed before this sample */
	uint32_t mm_changes;  /* if task.has_changes: counter of changes of the mm's mappings */
	uint64_t time_ns;     /* CLOCK_MONOTONIC at capture */
	/* The amount that the sample represents: ns of the true elapsed period, or a count. */
	uint64_t weight;
	/*
	 * SAMPLE_EXIT: port, guest-physical address or MSR. SAMPLE_IO: token. SAMPLE_INSN: distance
	 * in bytes from rip to the instruction. SAMPLE_HOST, SAMPLE_THREAD: offset of the struct
	 * sample_host in stack[].
	 */
	uint64_t exit_addr;
	/*
	 * SAMPLE_EXIT: ns from KVM_RUN's return to time_ns, when the exit had been handled, without
	 * the time spent on sampling; 0: unknown. If the sample represents several exits, it is
	 * that of the last one.
	 */
	uint64_t exit_ns;
	uint32_t stack_len; /* bytes in stack[] */
	struct sample_regs regs;
	uint64_t idt_base; /* IDTR */
	/* MSR_LSTAR, the kernel's entry for SYSCALL; 0: not set yet, or not requested */
	uint64_t lstar;
	struct sample_task task;
	uint8_t insn[SAMPLE_MAX_INSN]; /* bytes at rip */
	struct sample_slice slice[SAMPLE_MAX_SLICES];
	/* Not a stack: array of struct sample_python, innermost first; va: thread state. */
	struct sample_slice python;
	struct sample_slice returns; /* not a stack: see SAMPLE_MAX_RETURNS; len 0: none */
	uint8_t stack[];
};

/* Returns the bytes of a sample with its stack. */
static inline size_t sample_size(const struct sample *s)
{
	return sizeof(*s) + s->stack_len;
}

/*
 * Copies the host's part of a SAMPLE_HOST or SAMPLE_THREAD to *out. Returns false if the sample has
 * none or is damaged. Any thread may call it.
 */
bool sample_host(const struct sample *s, struct sample_host *out);

/*
 * Appends *host to stack[] at a multiple of 8 and sets exit_addr. The caller has checked that
 * stack[] has room. Called by the sample's owner.
 */
void sample_put_host(struct sample *s, const struct sample_host *host);

#endif
