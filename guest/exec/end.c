// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reports the command's status to kvmprof, by the first way that this kernel has, and ends the
 * machine.
 *
 *   1. the debug-exit port, with ioperm(2)
 *   2. the same through /dev/port
 *   3. a message on the console, which kvmprof removes from it (profile/record/rootfs/exec_console.h)
 *
 * The times of the command are always a message on the console, before the status.
 *
 * A failure before the command runs is reported on the console only.
 */
#include "exec.h"

#include "../reboot.h"

#define PORT_DEBUG_EXIT 0x501 /* vmm/layout.h */

#define TCSBRK 0x5409
#define SYSLOG_CONSOLE_OFF 6
#define SIGSEGV 11
#define SIGBUS 7
#define SA_NODEFER 0x40000000ul
#define SA_RESTORER 0x04000000ul

static unsigned int last_status;

/* Waits until all output has left the UART. */
static void drain(void)
{
	syscall3(NR_IOCTL, 1, TCSBRK, 1);
}

/* ESC _ ... ESC \ is an application program command (ECMA-48, 8.3.2): a terminal shows none. */
static void __attribute__((noreturn)) end_by_console(struct line *l)
{
	/* Keeps lines of the kernel out of the message. */
	syscall3(NR_SYSLOG, SYSLOG_CONSOLE_OFF, 0, 0);
	line_add(l, "\033\\");
	line_write(l);
	drain();
	end_machine();
}

static void begin_message(struct line *l, const char *kind)
{
	l->n = 0;
	line_add(l, "\033_kvmprof;");
	line_add(l, plan.nonce ? plan.nonce : "");
	line_add(l, kind);
}

static void __attribute__((noreturn)) end_without_ioperm(void)
{
	struct line l;
	unsigned char byte = (unsigned char)last_status;
	long fd = syscall3(NR_OPEN, "/dev/port", O_WRONLY, 0);

	if (fd >= 0)
		syscall6(NR_PWRITE64, fd, (long)&byte, 1, PORT_DEBUG_EXIT, 0, 0);
	begin_message(&l, ";exit;");
	line_number(&l, last_status);
	end_by_console(&l);
}

/* Handles a fault of a port access that ioperm() had allowed. Never returns to the fault. */
static void faulted(int signal)
{
	(void)signal;
	end_without_ioperm();
}

static void catch (int signal)
{
	/* struct kernel_sigaction: handler, flags, restorer, mask */
	struct {
		void (*handler)(int);
		ulong_t flags;
		void (*restorer)(int);
		ulong_t mask;
	} action = { faulted, SA_NODEFER | SA_RESTORER, faulted, 0 };

	syscall6(NR_RT_SIGACTION, signal, (long)&action, 0, sizeof(action.mask), 0, 0);
}

/* Writes the times as a message on the console. Lines of the kernel would get into it. */
static void tell_spent(const struct spent *spent)
{
	struct line l;

	syscall3(NR_SYSLOG, SYSLOG_CONSOLE_OFF, 0, 0);
	begin_message(&l, ";time;");
	line_number(&l, spent->real);
	line_add(&l, ";");
	line_number(&l, spent->user);
	line_add(&l, ";");
	line_number(&l, spent->system);
	line_add(&l, "\033\\");
	line_write(&l);
}

void end_with_status(unsigned int status, const struct spent *spent)
{
	last_status = status;
	syscall0(NR_SYNC);
	tell_spent(spent);
	drain();
	if (syscall3(NR_IOPERM, PORT_DEBUG_EXIT, 2, 1) == 0) {
		catch (SIGSEGV);
		catch (SIGBUS);
		__asm__ volatile("outb %b0, %w1" : : "a"(status), "d"(PORT_DEBUG_EXIT));
	}
	end_without_ioperm();
}

void end_failed(const char *what, const char *where, long error)
{
	struct line l;

	begin_message(&l, ";fail;");
	line_number(&l, (ulong_t)-error);
	line_add(&l, ";");
	line_add(&l, what);
	line_add(&l, where);
	/* A long name is cut, so that the end of the message fits. */
	if (l.n > sizeof(l.text) - 2)
		l.n = sizeof(l.text) - 2;
	end_by_console(&l);
}
