/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/fault.h"

#include "base/reporter.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/*
 * Sanitizers give each thread an alternate signal stack, and at its end they free whatever stack is
 * installed then. A guarded thread has kvmprof's installed, so the sanitizers' stacks are turned
 * off.
 */
#ifdef __SANITIZE_ADDRESS__
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "use_sigaltstack=0";
}
#endif
#ifdef __SANITIZE_THREAD__
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "use_sigaltstack=0";
}
#endif

static const int fault_signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE };
#define NSIGNALS (sizeof(fault_signals) / sizeof(fault_signals[0]))

/* Written once, before any thread is guarded. */
static struct sigaction fault_before[NSIGNALS];
static pthread_once_t fault_once = PTHREAD_ONCE_INIT;
static int fault_refused; /* -errno */

static _Thread_local struct fault *fault_current;

void fault_end_thread(int signo, const siginfo_t *info, const void *context, const char *call_name)
{
	struct fault *f = fault_current;

	if (!f)
		return;
	f->call = info->si_syscall;
	f->call_name = call_name;
	f->sent = info->si_code <= 0;
	f->ip = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	f->addr = (uintptr_t)info->si_addr;
	if (signo == SIGSYS)
		f->addr = 0;
	atomic_store(&f->signal, signo);
	if (f->ended)
		f->ended(f);
	/* pthread_exit() is no alternative: it unwinds a stack that may be damaged. */
	for (;;)
		syscall(SYS_exit, 0);
}

/*
 * Appends a string and returns the new end. Async-signal-safe, like append_hex(), which appends a
 * number in hexadecimal.
 */
static size_t append(char *line, size_t at, const char *text)
{
	while (*text)
		line[at++] = *text++;
	return at;
}

static size_t append_hex(char *line, size_t at, uintptr_t v)
{
	int shift = 60;

	while (shift > 0 && !(v >> shift))
		shift -= 4;
	at = append(line, at, "0x");
	for (; shift >= 0; shift -= 4)
		line[at++] = "0123456789abcdef"[v >> shift & 15];
	return at;
}

/* Writes one line about the crash of a thread that is not guarded: the process ends. */
static void report_crash(int signo, const siginfo_t *info, const void *context)
{
	const char *name = sigabbrev_np(signo);
	char line[160], thread[17] = "";
	size_t at;

	(void)prctl(PR_GET_NAME, thread);
	at = append(line, 0, "kvmprof: crashed: SIG");
	at = append(line, at, name ? name : "?");
	at = append(line, at, " in thread ");
	at = append(line, at, thread);
	if (info->si_code > 0) {
		at = append(line, at, " at address ");
		at = append_hex(line, at, (uintptr_t)info->si_addr);
	}
	at = append(line, at, ", instruction ");
	at = append_hex(line, at,
			(uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]);
	line[at++] = '\n';
	reporter_write_raw(line, at);
}

static void on_fault(int signo, siginfo_t *info, void *context)
{
	fault_end_thread(signo, info, context, NULL);
	report_crash(signo, info, context);
	for (size_t i = 0; i < NSIGNALS; i++)
		if (fault_signals[i] == signo)
			sigaction(signo, &fault_before[i], NULL);
	/* An instruction that faulted raises the signal again by itself. */
	if (info->si_code <= 0)
		raise(signo);
}

static void fault_install(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	for (size_t i = 0; i < NSIGNALS; i++)
		if (sigaction(fault_signals[i], &sa, &fault_before[i]) < 0)
			fault_refused = -errno;
}

int fault_prepare(void)
{
	pthread_once(&fault_once, fault_install);
	return fault_refused;
}

int fault_guard(struct fault *f)
{
	const stack_t own = { .ss_sp = f->stack, .ss_size = sizeof(f->stack) };
	sigset_t set;

	if (sigaltstack(&own, NULL) < 0)
		return -errno;
	fault_current = f;
	/* A fault whose signal is blocked would end the process. */
	sigemptyset(&set);
	for (size_t i = 0; i < NSIGNALS; i++)
		sigaddset(&set, fault_signals[i]);
	return -pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

bool fault_happened(const struct fault *f)
{
	return atomic_load(&((struct fault *)(uintptr_t)f)->signal) != 0;
}

void fault_describe(const struct fault *f, char *out, size_t size)
{
	const char *name = sigabbrev_np(f->signal), *base;
	char where[64] = "", address[48] = "";
	Dl_info in;

	if (f->signal == SIGSYS) {
		snprintf(out, size, "its list has no system call %s (%d)",
			 f->call_name ? f->call_name : "", f->call);
		return;
	}
	if (dladdr((void *)f->ip, &in) && in.dli_fname) {
		base = strrchr(in.dli_fname, '/');
		snprintf(where, sizeof(where), ", in %.30s+0x%zx", base ? base + 1 : in.dli_fname,
			 (size_t)(f->ip - (uintptr_t)in.dli_fbase));
	} else {
		snprintf(where, sizeof(where), ", in 0x%zx", (size_t)f->ip);
	}
	if (!f->sent)
		snprintf(address, sizeof(address), " at address 0x%zx", (size_t)f->addr);
	snprintf(out, size, "SIG%s%s%s", name ? name : "?", address, where);
}
