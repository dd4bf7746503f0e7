/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/sandbox/filter.h"

#include "base/fault.h"
#include "base/reporter.h"
#include "profile/record/sandbox/calls.h"
#include "profile/record/sandbox/program.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* More than the calls of any x86-64 kernel so far; a larger number is printed without a name. */
#define CALLS_MAX 512

/* The Makefile makes this list from the kernel's header <asm/unistd_64.h>. */
static const char *const call_names[CALLS_MAX] = {
#include <syscall_names.h>
};

struct filter {
	struct sock_filter *code; /* NULL: the kind has no list */
	unsigned short len;
};

/* Made before the first thread of its kind exists; constant afterwards. */
static struct filter filters[THREAD_KINDS];
/* Written by filter_prepare() and constant afterwards, except for `pid` and `told`. */
static enum filter_mode filter_mode;
static struct program_config filter_config;
static atomic_bool told[THREAD_KINDS][CALLS_MAX];

static __thread enum thread_kind filter_kind;

/*
 * A syscall(2) at a single address, for which a program allows every call in FILTER_TELLS.
 * Arguments: the number, then a pointer to six words.
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

/* -- the printed line ------------------------------------------------------------------- */

struct filter_line {
	char text[256];
	size_t len;
};

static void line_add(struct filter_line *l, const char *s)
{
	size_t n = strlen(s), room = sizeof(l->text) - l->len;

	n = n < room ? n : room;
	memcpy(l->text + l->len, s, n);
	l->len += n;
}

static void line_add_number(struct filter_line *l, uint64_t v, unsigned int base)
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

/* Appends "openat (257)" or "ioctl (16) with request 0x5401". */
static void line_add_call(struct filter_line *l, int number, uint64_t second)
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

/* -- a call that is not in the list ----------------------------------------------------- */

/*
 * Runs on the thread that made the call. It may do only what a handler may, with calls that are in
 * each list.
 */
static void on_bad_call(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	const long args[6] = { (long)regs[REG_RDI], (long)regs[REG_RSI], (long)regs[REG_RDX],
			       (long)regs[REG_R10], (long)regs[REG_R8],	 (long)regs[REG_R9] };
	int number = info->si_syscall, saved = errno;
	bool tells = filter_mode == FILTER_TELLS;
	struct filter_line l = { .len = 0 };

	/* The profile ends, and the guest continues: profile/record/pipeline/pipeline.h. */
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
		reporter_write_raw(l.text, l.len);
	}
	if (!tells) {
		syscall(SYS_exit_group, 1);
		__builtin_trap();
	}
	regs[REG_RAX] = (greg_t)filter_syscall(number, args);
	errno = saved;
}

/* -- making the programs ---------------------------------------------------------------------- */

int filter_make(enum thread_kind kind)
{
	struct filter *f = &filters[kind];
	struct program p;
	int ret;

	if (!sandbox_has_list(kind))
		return -EPERM;
	if (f->code)
		return 0;
	filter_config.pid = (uint32_t)getpid();
	ret = program_make(kind, &filter_config, &p);
	if (ret)
		return ret;
	f->code = malloc(p.len * sizeof(*f->code));
	if (!f->code)
		return -ENOMEM;
	memcpy(f->code, p.code, p.len * sizeof(*f->code));
	f->len = p.len;
	return 0;
}

void filter_prepare(enum filter_mode mode, const struct sandbox_plan *plan)
{
	struct sigaction sa = { .sa_sigaction = on_bad_call, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	filter_mode = mode;
	filter_config = (struct program_config){
		.when = {
			[SANDBOX_ALWAYS] = true,
			[SANDBOX_QEMU] = plan->signals,
			[SANDBOX_GDB] = plan->gdb,
			[SANDBOX_REBOOTS] = plan->reboots,
			[SANDBOX_COUNTERS] = plan->counters,
			[SANDBOX_SERVED] = plan->served,
		},
		.pass = mode == FILTER_TELLS ? (uintptr_t)filter_syscall_after : 0,
	};
	sigemptyset(&sa.sa_mask);
	sigaction(SIGSYS, &sa, NULL);
}

int filter_enter(enum thread_kind kind)
{
	struct sock_fprog program = { filters[kind].len, filters[kind].code };
	sigset_t set;

	if (!program.filter)
		return -EPERM;
	filter_kind = kind;
	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	/* No other flags. Speculation stays enabled, since no code of the guest runs here. */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		       &program) < 0
		       ? -errno
		       : 0;
}
