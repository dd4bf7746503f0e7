/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sample: one look at one vCPU, as a value.
 *
 * This is the hub type: the VMM fills it in place in a ring while the vCPU
 * stands still; unwinding, naming and writing are functions of it. Nothing in
 * it points at the guest, so a sample can be replayed from a file.
 *
 * Stack bytes follow the struct. slice[i] says which guest-virtual range the
 * bytes [off, off+len) of stack[] were copied from.
 */
#ifndef KVMPROF_BASE_SAMPLE_H
#define KVMPROF_BASE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLE_VERSION 6
/* In a profile, of a thread that runs no vCPU: perf, too, has -1 where there is no CPU. */
#define SAMPLE_NO_CPU UINT32_MAX
/* Stacks of one sample: the kernel's (task, IRQ, exception, NMI), and the program's. */
#define SAMPLE_MAX_KERNEL_SLICES 4
#define SAMPLE_MAX_SLICES 5
/* Most bytes of one of the kernel's stacks, of a program's, and of all. */
#define SAMPLE_MAX_SLICE 16384u
#define SAMPLE_MAX_USER_SLICE 65536u
/* Bytes of return addresses that the function graph tracer and probes have replaced. */
#define SAMPLE_MAX_RETURNS 2048u
/* Innermost frames of a thread of Python, and their bytes. */
#define SAMPLE_MAX_PYTHON 128u
#define SAMPLE_MAX_PYTHON_BYTES (SAMPLE_MAX_PYTHON * (uint32_t)sizeof(struct sample_python))
#define SAMPLE_MAX_STACK                                                       \
	(SAMPLE_MAX_KERNEL_SLICES * SAMPLE_MAX_SLICE + SAMPLE_MAX_USER_SLICE + \
	 SAMPLE_MAX_RETURNS + SAMPLE_MAX_PYTHON_BYTES + SAMPLE_MAX_HOST_BYTES + 16)
/* Frames of the host's kernel and of kvmprof. */
#define SAMPLE_MAX_HOST 64u
#define SAMPLE_MAX_HOST_BYTES (16u + SAMPLE_MAX_HOST * 8u)
#define SAMPLE_COMM 16u
#define SAMPLE_MAX_INSN 16u /* an instruction has 15 bytes at most (SDM vol. 2, 2.3.11) */

/* Index into sample_regs.gpr: the order of the instruction encoding (SDM vol. 2, table 2-2). */
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
	uint64_t fs_base, gs_base;
	uint16_t cs, ss;
};

/* What made us look. */
enum sample_reason {
	SAMPLE_TIMER = 1,  /* host timer, of wall-clock or of CPU time */
	SAMPLE_CRASH = 2,  /* triple fault: the last state of the vCPU, weight 0 */
	SAMPLE_PMU = 3,	   /* a perf_event counter has overflowed */
	SAMPLE_EXIT = 4,   /* a VM exit; the stack is the one that caused it */
	SAMPLE_MARKER = 5, /* a breakpoint was reached: `event` is its index, weight 0 */
	SAMPLE_LOOK = 6,   /* to find out where the kernel is; not for the profile */
	/* No vCPU's: a task that does not run. rip is the address that it will return to. */
	SAMPLE_OFFCPU = 7,
	SAMPLE_IO = 8, /* a disk was notified of requests; see exit_addr */
	/* An instruction was reached by counting; registers and stack are of the block's start. */
	SAMPLE_INSN = 9,
	SAMPLE_HOST =
		10, /* what the host did in the guest's place, or instead: struct sample_host */
	/* No vCPU's: another thread of the VMM, with a struct sample_host and nothing of a guest. */
	SAMPLE_THREAD = 11,
};

/* Where a vCPU's thread was. */
enum sample_where {
	SAMPLE_IN_GUEST = 0,
	SAMPLE_IN_KVM,
	SAMPLE_IN_VMM,
	SAMPLE_RUNNABLE, /* waited for a processor */
	SAMPLE_HALTED,
	SAMPLE_STOPPED, /* by us */
	SAMPLE_WAITING, /* asleep in KVM, and not known to be halted */
	SAMPLE_UNTOLD,	/* off its processor, in KVM or in the VMM */
	SAMPLE_WHERES
};

/* Of SAMPLE_HOST and SAMPLE_THREAD, in stack[] at exit_addr. */
struct sample_host {
	/* IN_VMM: of the exit that is worked for, as of SAMPLE_EXIT; RUNNABLE: it waited since this time. */
	uint64_t exit_addr;
	uint8_t where; /* enum sample_where */
	uint8_t exit;  /* IN_VMM: KVM_EXIT_* */
	uint16_t n;    /* of ip; SAMPLE_MAX_HOST at most */
	uint32_t tid;  /* RUNNABLE: of the thread, on the host */
	uint64_t ip
		[SAMPLE_MAX_HOST]; /* of its kernel, then of kvmprof, innermost first; only n are there */
};

enum sample_mode {
	SAMPLE_KERNEL = 1, /* CPL 0..2 */
	SAMPLE_USER = 2,   /* CPL 3 */
	SAMPLE_IDLE = 3,   /* halted (KVM_MP_STATE_HALTED) at CPL 0 */
};

/* At most so many devices of a machine are told apart. */
#define SAMPLE_MAX_DEVICES 48u
/*
 * In place of a device: a guest of the guest ran, or perhaps one (this KVM does not say whether it
 * was that or its hypervisor). Such a sample has no registers, no stack and no task.
 */
#define SAMPLE_PERHAPS_NESTED 254u
#define SAMPLE_NESTED 255u

/* Why the copied stack may be shorter than the real one. */
enum sample_stack_end {
	SAMPLE_STACK_WHOLE = 0, /* up to the known end of the stack */
	SAMPLE_STACK_CAPPED,	/* the size limit of the capture plan was reached */
	SAMPLE_STACK_UNMAPPED,	/* a page of it is not mapped in the guest */
	SAMPLE_STACK_NONE,	/* not even the first bytes could be read */
};

/* What was found of the task that runs on the vCPU. */
enum sample_task_state {
	SAMPLE_TASK_UNASKED = 0, /* the capture plan has no way to it */
	SAMPLE_TASK_FOUND,
	SAMPLE_TASK_NOT_YET, /* the kernel has no current task yet, or its place is not known yet */
	SAMPLE_TASK_UNREADABLE, /* a page on the way is not mapped */
	SAMPLE_TASK_POINTER,	/* addr alone: where its members are is not known yet */
};

/* As the kernel keeps it (Linux: task_struct); valid when state is SAMPLE_TASK_FOUND. */
struct sample_task {
	uint64_t addr;	   /* guest virtual, of the structure itself */
	uint64_t mm;	   /* of its address space's; 0: a kernel thread */
	uint64_t stack;	   /* lowest byte of its kernel stack; 0 unknown */
	uint64_t start;	   /* when it started, in the kernel's unit; tells two of one tid apart */
	uint32_t tid, pid; /* Linux: pid and tgid */
	char comm[SAMPLE_COMM]; /* may lack its NUL: the guest wrote it */
	uint8_t state;		/* enum sample_task_state */
	bool has_changes;	/* mm_changes is known */
	/* How often its process has begun another program (Linux: self_exec_id, the lower half); 0: not known. */
	uint32_t exec_id;
};
_Static_assert(sizeof(struct sample_task) == 64, "no padding");

/* One frame of Python's interpreter, as its thread's state had it. Addresses are the guest's. */
struct sample_python {
	uint64_t frame, code; /* of the interpreter's frame, of its code object */
	uint64_t instr;	      /* the instruction of Python's that it is at */
	/*
	 * Where on the C stack the interpreter keeps that it was entered with this frame, a multiple
	 * of 8; 0: it was not. With SAMPLE_PYTHON_SKIPPED: by way of others, which were left out.
	 */
	uint64_t entry;
	uint64_t id[4]; /* what the code object says of itself (struct capture_python_layout) */
};

#define SAMPLE_PYTHON_SKIPPED 1u

/* What was found of a thread of Python. */
enum sample_python_state {
	SAMPLE_PYTHON_NONE = 0,	  /* not asked for, or no such thread is known */
	SAMPLE_PYTHON_WHOLE,	  /* all frames, or none is there */
	SAMPLE_PYTHON_CUT,	  /* SAMPLE_MAX_PYTHON were reached */
	SAMPLE_PYTHON_CHANGING,	  /* contradicts itself, as between two steps of the interpreter */
	SAMPLE_PYTHON_UNREADABLE, /* a page on the way is not mapped */
};

struct sample_slice {
	uint64_t va;  /* guest virtual address of the first byte */
	uint32_t off; /* into stack[] */
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
	/* That the vCPU's thread worked for when the period ended: 1 + index; or SAMPLE_..NESTED. */
	uint8_t device;
	uint8_t exit; /* SAMPLE_EXIT: KVM_EXIT_*; SAMPLE_OFFCPU: the task's state, as ps has it */
	uint8_t python_state; /* enum sample_python_state */
	uint8_t insn_len;     /* bytes at insn[]; 0: not asked for, or not readable */
	uint32_t overruns;    /* whole periods missed before it */
	uint32_t
		mm_changes; /* task.has_changes: a number of the mm that each change of its mappings changes */
	uint64_t time_ns; /* CLOCK_MONOTONIC at capture */
	uint64_t weight;  /* what it stands for: ns of the true elapsed period, or a count */
	/*
	 * SAMPLE_EXIT: port, guest-physical address or MSR; SAMPLE_IO: token; SAMPLE_INSN: bytes from rip to
	 * it; SAMPLE_HOST, SAMPLE_THREAD: where its struct sample_host is in stack[].
	 */
	uint64_t exit_addr;
	/*
	 * SAMPLE_EXIT: ns from KVM_RUN's return, less what it took to sample meanwhile, until time_ns, when
	 * the exit was handled; 0: not known. Of several that it stands for it is the last one's.
	 */
	uint64_t exit_ns;
	uint32_t stack_len; /* bytes at stack[] */
	struct sample_regs regs;
	uint64_t idt_base; /* IDTR */
	uint64_t lstar;	   /* the kernel's entry for SYSCALL; 0: not set yet, or not asked for */
	struct sample_task task;
	uint8_t insn[SAMPLE_MAX_INSN]; /* at rip */
	struct sample_slice slice[SAMPLE_MAX_SLICES];
	struct sample_slice
		python; /* no stack: struct sample_python, innermost first; va: its thread's state */
	struct sample_slice returns; /* no stack: see SAMPLE_MAX_RETURNS; len 0: there are none */
	uint8_t stack[];
};

/* Bytes that a sample takes with its stack. */
static inline size_t sample_size(const struct sample *s)
{
	return sizeof(*s) + s->stack_len;
}

/* What a SAMPLE_HOST or SAMPLE_THREAD has of the host. false: it is none, or damaged. */
bool sample_host(const struct sample *s, struct sample_host *out);

/* Appends it to stack[], which has room for it, at a multiple of 8, and sets exit_addr. */
void sample_put_host(struct sample *s, const struct sample_host *host);

#endif
