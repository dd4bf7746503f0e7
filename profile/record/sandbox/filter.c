/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/sandbox/filter.h"

#include "base/cleanup.h"
#include "base/fault.h"
#include "profile/record/sandbox/calls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/kvm.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

/* More than the calls of any x86-64 kernel so far; above it only the number is told. */
#define CALLS_MAX 512
/* struct seccomp_data (linux/seccomp.h); little-endian halves of what has 64 bits. */
#define DATA_NUMBER offsetof(struct seccomp_data, nr)
#define DATA_ARCH offsetof(struct seccomp_data, arch)
#define DATA_SECOND_LOW offsetof(struct seccomp_data, args[1])
#define DATA_IP_LOW offsetof(struct seccomp_data, instruction_pointer)
#define DATA_IP_HIGH (DATA_IP_LOW + 4)

struct filter {
	struct sock_filter *code; /* NULL: the kind has no list */
	unsigned short len;
};

/* Made before the first thread of its kind is there; const afterwards. */
static struct filter filters[THREAD_KINDS];
/* Written by filter_prepare() and const afterwards, but for `told`. */
static enum filter_mode filter_mode;
static bool filter_makes_code, filter_signals; /* of the plan */
static char *call_names[CALLS_MAX];
static atomic_bool told[THREAD_KINDS][CALLS_MAX];

static __thread enum thread_kind filter_kind;

/*
 * syscall(2) from one place: its address is what a program lets pass in FILTER_TELLS. Arguments:
 * the number, then a pointer to six words.
 */
long filter_syscall(long number, const long *args);
extern const char filter_syscall_after[];
__asm__(".text\n"
	".globl filter_syscall, filter_syscall_after\n"
	".type filter_syscall, @function\n"
	"filter_syscall:\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %r11\n"
	"	mov (%r11), %rdi\n"
	"	mov 8(%r11), %rsi\n"
	"	mov 16(%r11), %rdx\n"
	"	mov 24(%r11), %r10\n"
	"	mov 32(%r11), %r8\n"
	"	mov 40(%r11), %r9\n"
	"	syscall\n"
	"filter_syscall_after:\n"
	"	ret\n"
	".size filter_syscall, . - filter_syscall\n");

bool filter_probe(void)
{
	uint32_t action = SECCOMP_RET_TRAP;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

/* -- the line ---------------------------------------------------------------------------- */

struct line {
	char text[256];
	size_t len;
};

static void line_add(struct line *l, const char *s)
{
	size_t n = strlen(s), room = sizeof(l->text) - l->len;

	n = n < room ? n : room;
	memcpy(l->text + l->len, s, n);
	l->len += n;
}

static void line_add_number(struct line *l, uint64_t v, unsigned int base)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;

	digits[at] = 0;
	do {
		digits[--at] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	line_add(l, digits + at);
}

/* "openat (257)", "ioctl (16) with request 0x5401" */
static void line_add_call(struct line *l, int number, uint64_t second)
{
	if (number >= 0 && number < CALLS_MAX && call_names[number]) {
		line_add(l, call_names[number]);
		line_add(l, " ");
	}
	line_add(l, "(");
	line_add_number(l, (uint64_t)number, 10);
	line_add(l, ")");
	if (number == SYS_ioctl) {
		line_add(l, " with request 0x");
		line_add_number(l, (uint32_t)second, 16);
	}
}

/* -- what happens at a call outside of the list -------------------------------------------- */

/* On the thread that made it. Only what a handler may do, and calls that are in each list. */
static void on_bad_call(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const long args[6] = { (long)regs[REG_RDI], (long)regs[REG_RSI], (long)regs[REG_RDX],
			       (long)regs[REG_R10], (long)regs[REG_R8],	 (long)regs[REG_R9] };
	int number = info->si_syscall, saved = errno;
	bool tells = filter_mode == FILTER_TELLS;
	struct line l = { .len = 0 };

	/* What it was to record ends there, and the guest goes on: profile/live/pipeline.h. */
	if (!tells)
		fault_end_thread(signo, info, context,
				 number >= 0 && number < CALLS_MAX ? call_names[number] : NULL);
	if (!tells || number < 0 || number >= CALLS_MAX ||
	    !atomic_exchange(&told[filter_kind][number], true)) {
		line_add(&l, "kvmprof: sandbox: thread ");
		line_add(&l, thread_kind_name(filter_kind));
		line_add(&l, " calls ");
		line_add_call(&l, number, (uint64_t)args[1]);
		line_add(&l, tells ? ", which is not in its list\n"
				   : ", which is not in its list: the run ends here; "
				     "--sandbox=off runs without\n");
		(void)!write(STDERR_FILENO, l.text, l.len);
	}
	if (!tells) {
		syscall(SYS_exit_group, 1);
		__builtin_trap();
	}
	regs[REG_RAX] = (greg_t)filter_syscall(number, args);
	errno = saved;
}

/* -- making the programs ---------------------------------------------------------------------- */

static int filter_add_call(scmp_filter_ctx ctx, const struct sandbox_call *c)
{
	switch (c->rule) {
	case SANDBOX_ANY:
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, c->number, 0);
	case SANDBOX_REQUEST:
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, c->number, 1,
					SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, c->value));
	case SANDBOX_OURSELF:
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, c->number, 1,
					SCMP_A0(SCMP_CMP_EQ, (uint64_t)getpid(), 0));
	case SANDBOX_NO_EXEC:
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, c->number, 1,
					SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	case SANDBOX_FIRST:
		return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, c->number, 1,
					SCMP_A0(SCMP_CMP_EQ, c->value, 0));
	case SANDBOX_CODE:
		return filter_makes_code ? seccomp_rule_add(ctx, SCMP_ACT_ALLOW, c->number, 0) : 0;
	case SANDBOX_QEMU:
		return filter_signals ? seccomp_rule_add(ctx, SCMP_ACT_ALLOW, c->number, 0) : 0;
	}
	return -EINVAL;
}

/* Most instructions in front of libseccomp's, whose jumps are relative. */
#define FRONT_MAX 12

/* Calls from filter_syscall() pass. */
static unsigned int filter_front_own(struct sock_filter *f)
{
	uintptr_t ip = (uintptr_t)filter_syscall_after;

	f[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA_IP_LOW);
	f[1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)ip, 0, 3);
	f[2] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA_IP_HIGH);
	f[3] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
					    (uint32_t)((uint64_t)ip >> 32), 0, 1);
	f[4] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return 5;
}

/*
 * KVM_RUN, which each VM exit ends in: libseccomp looks at requests from the largest number down, and
 * this one is among the last. The table has it, or this is not there.
 */
static unsigned int filter_front_run(struct sock_filter *f)
{
	f[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA_ARCH);
	f[1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 5);
	f[2] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA_NUMBER);
	f[3] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3);
	f[4] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, DATA_SECOND_LOW);
	f[5] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, KVM_RUN, 0, 1);
	f[6] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return 7;
}

static unsigned int filter_front(struct sock_filter f[FRONT_MAX], enum thread_kind kind)
{
	unsigned int n = 0;

	for (const struct sandbox_call *c = sandbox_calls; c->name; c++)
		if (c->rule == SANDBOX_REQUEST && c->value == KVM_RUN &&
		    c->kinds & SANDBOX_KIND(kind))
			n += filter_front_run(f + n);
	if (filter_mode == FILTER_TELLS)
		n += filter_front_own(f + n);
	return n;
}

/* libseccomp gives its program to a file only. */
static int filter_export(enum thread_kind kind, scmp_filter_ctx ctx)
{
	struct filter *f = &filters[kind];
	cleanup_close int fd = memfd_create("seccomp", MFD_CLOEXEC);
	struct sock_filter front[FRONT_MAX];
	size_t nfront = filter_front(front, kind), n;
	struct stat st;
	int ret;

	if (fd < 0)
		return -errno;
	ret = seccomp_export_bpf(ctx, fd);
	if (ret < 0)
		return ret;
	if (fstat(fd, &st) < 0)
		return -errno;
	n = (size_t)st.st_size / sizeof(*f->code);
	if (!n || nfront + n > BPF_MAXINSNS)
		return -E2BIG;
	f->code = calloc(nfront + n, sizeof(*f->code));
	if (!f->code)
		return -ENOMEM;
	memcpy(f->code, front, nfront * sizeof(*front));
	if (pread(fd, f->code + nfront, n * sizeof(*f->code), 0) != (ssize_t)(n * sizeof(*f->code)))
		return -EIO;
	f->len = (unsigned short)(nfront + n);
	return 0;
}

int filter_make(enum thread_kind kind)
{
	scmp_filter_ctx ctx;
	int ret = 0;

	if (filters[kind].code || !sandbox_has_list(kind))
		return 0;
	ctx = seccomp_init(SCMP_ACT_TRAP);
	if (!ctx)
		return -ENOMEM;
	seccomp_syscall_priority(ctx, SCMP_SYS(ioctl), UINT8_MAX);
	for (const struct sandbox_call *c = sandbox_calls; !ret && c->name; c++)
		if (c->kinds & SANDBOX_KIND(kind))
			ret = filter_add_call(ctx, c);
	ret = ret ? ret : filter_export(kind, ctx);
	seccomp_release(ctx);
	return ret;
}

void filter_prepare(enum filter_mode mode, const struct sandbox_plan *plan)
{
	struct sigaction sa = { .sa_sigaction = on_bad_call, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	filter_mode = mode;
	filter_makes_code = plan->makes_code;
	filter_signals = plan->signals;
	for (int i = 0; i < CALLS_MAX; i++)
		call_names[i] = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, i);
	sigemptyset(&sa.sa_mask);
	sigaction(SIGSYS, &sa, NULL);
}

int filter_enter(enum thread_kind kind)
{
	struct sock_fprog program = { filters[kind].len, filters[kind].code };
	sigset_t set;

	if (!program.filter)
		return 0;
	filter_kind = kind;
	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	/* Other flags: none. Speculation stays as it is, since no code of a guest's runs here. */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		       &program) < 0
		       ? -errno
		       : 0;
}
