/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/sandbox/calls.h"

#include <fcntl.h>
#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define MAIN SANDBOX_KIND(THREAD_MAIN)
#define VCPU SANDBOX_KIND(THREAD_VCPU)
#define DISK SANDBOX_KIND(THREAD_DISK)
#define POLL SANDBOX_KIND(THREAD_DISK_POLL)
#define P9 SANDBOX_KIND(THREAD_9P)
#define FILES SANDBOX_KIND(THREAD_9P_FILES)
#define KEEPER SANDBOX_KIND(THREAD_KEEPER)
#define REST SANDBOX_KIND(THREAD_REST)
#define USER SANDBOX_KIND(THREAD_NET_USER)
#define SLIRP SANDBOX_KIND(THREAD_NET_SLIRP)
#define TAP SANDBOX_KIND(THREAD_NET_TAP)
#define PIT SANDBOX_KIND(THREAD_PIT)
#define CONSUMER SANDBOX_KIND(THREAD_CONSUMER)
#define CONSOLE SANDBOX_KIND(THREAD_CONSOLE)
#define CONTROL SANDBOX_KIND(THREAD_CONTROL)
#define TRACER SANDBOX_KIND(THREAD_TRACER)
#define GDB SANDBOX_KIND(THREAD_GDB)
#define LIBVIRT SANDBOX_KIND(THREAD_LIBVIRT)
#define ATTACH SANDBOX_KIND(THREAD_ATTACH_MAIN)
#define SERVE SANDBOX_KIND(THREAD_ATTACH_SERVE)
#define LINK SANDBOX_KIND(THREAD_ATTACH_LINK)
#define GUARD SANDBOX_KIND(THREAD_ATTACH_GUARD)
#define MSR SANDBOX_KIND(THREAD_MSR_FILTER)
#define PROBE SANDBOX_KIND(THREAD_PROBE)
/* Threads of a run of its own machine, then those that access another process's machine. */
#define OWN                                                                                    \
	(MAIN | VCPU | DISK | POLL | P9 | FILES | REST | USER | SLIRP | TAP | PIT | CONSUMER | \
	 CONSOLE | CONTROL | MSR | KEEPER | PROBE)
#define ALL (OWN | TRACER | GDB | LIBVIRT | ATTACH | SERVE | LINK | GUARD)
/*
 * Threads that carry out requests to disks: vCPUs carry out those that need no waiting, and the
 * main thread those that came while the machine was saved.
 */
#define BLK (MAIN | VCPU | DISK | POLL)
/* Threads that raise interrupts. */
#define RAISE (MAIN | VCPU | DISK | POLL | P9 | REST | USER | TAP | PIT)

#define ENTRY(name, rule, value, text, kinds, when)                                   \
	{                                                                             \
#name, SYS_##name, (rule), (uint32_t)(value), (text), (kinds), (when) \
	}
#define CALL(name, kinds) ENTRY(name, SANDBOX_ANY, 0, NULL, kinds, SANDBOX_ALWAYS)
#define CALL_IF(name, rule, kinds) ENTRY(name, rule, 0, NULL, kinds, SANDBOX_ALWAYS)
#define CALL_WHEN(name, when, kinds) ENTRY(name, SANDBOX_ANY, 0, NULL, kinds, when)
#define IOCTL(request, kinds) \
	ENTRY(ioctl, SANDBOX_REQUEST, request, #request, kinds, SANDBOX_ALWAYS)
#define IOCTL_WHEN(request, when, kinds) \
	ENTRY(ioctl, SANDBOX_REQUEST, request, #request, kinds, when)
#define SOCKET(family, kinds) ENTRY(socket, SANDBOX_FIRST, family, #family, kinds, SANDBOX_ALWAYS)
#define FCNTL(command, kinds) ENTRY(fcntl, SANDBOX_SECOND, command, #command, kinds, SANDBOX_ALWAYS)
#define FCNTL_WHEN(command, when, kinds) \
	ENTRY(fcntl, SANDBOX_SECOND, command, #command, kinds, when)
#define PTRACE(request, kinds) \
	ENTRY(ptrace, SANDBOX_FIRST, request, #request, kinds, SANDBOX_ALWAYS)

const struct sandbox_call sandbox_calls[] = {
	/*
	 * Calls that libc needs for locks, memory (qsort(3) reads how much there is) and an orderly
	 * exit.
	 */
	CALL(futex, ALL),
	CALL_IF(mmap, SANDBOX_NO_EXEC, ALL),
	CALL_IF(mprotect, SANDBOX_NO_EXEC, ALL),
	CALL(munmap, ALL),
	CALL(rt_sigaction, MAIN | VCPU), /* base/fault.c: a crash restores the default action */
	CALL(mremap, ALL),
	CALL(madvise, ALL),
	CALL(brk, ALL),
	CALL(rt_sigprocmask, ALL),
	CALL(rt_sigreturn, ALL),
	CALL(restart_syscall, ALL),
	CALL(exit, (ALL & ~MAIN)),
	CALL(exit_group, ALL),
	/* Without a TSC the vDSO cannot read a clock. */
	CALL(clock_gettime, ALL),
	/* Waiting for the end of a device's process is limited: MAIN, VCPU, P9, USER. */
	CALL(clock_nanosleep,
	     CONSUMER | CONTROL | MAIN | VCPU | P9 | USER | TRACER | GDB | ATTACH | SERVE),
	CALL(setitimer, MAIN), /* base/signals.h: at the end, and when a signal comes */
	CALL(getpid, MAIN | VCPU | CONTROL | CONSUMER | SLIRP | TRACER | GDB | LIBVIRT),
	CALL(gettid, VCPU | CONSUMER | TRACER | GDB | LIBVIRT), /* abort(3): base/fault.h */
	CALL_IF(tgkill, SANDBOX_OURSELF, MAIN | VCPU | CONTROL | CONSUMER | TRACER | GDB | LIBVIRT),
	/* Reads how the process of a share, of the network or of results has ended. */
	CALL_IF(wait4, SANDBOX_NO_WAIT, MAIN | VCPU | P9 | USER | CONTROL),
	CALL_WHEN(wait4, SANDBOX_QEMU, MAIN | CONSUMER),
	CALL_WHEN(pidfd_send_signal, SANDBOX_QEMU, MAIN | CONSUMER),

	/* Access to descriptors that are open. */
	CALL(read, KEEPER | MAIN | VCPU | P9 | FILES | USER | SLIRP | TAP | CONSUMER | CONTROL |
			   TRACER | GDB | LIBVIRT | ATTACH | SERVE | LINK),
	CALL(write, ALL),
	CALL(ppoll, MAIN | TRACER | GDB),
	CALL(poll, MAIN | VCPU | P9 | USER | SLIRP | TAP | CONSOLE | CONTROL | TRACER | GDB |
			   LIBVIRT | ATTACH | GUARD),
	CALL_WHEN(poll, SANDBOX_QEMU, CONSUMER),
	CALL_WHEN(ppoll, SANDBOX_QEMU, CONSUMER),
	/*
	 * The consumer requests memory from the stub itself; the main thread lets the machine
	 * continue.
	 */
	CALL_WHEN(poll, SANDBOX_GDB, CONSUMER),
	CALL_WHEN(sendto, SANDBOX_GDB, CONSUMER | MAIN),
	CALL_WHEN(recvfrom, SANDBOX_GDB, CONSUMER | MAIN),
	/* libnbd reads a disk image through the socket of qemu-nbd. */
	CALL_WHEN(poll, SANDBOX_SERVED, DISK | POLL),
	CALL_WHEN(close, SANDBOX_SERVED, DISK | POLL),
	CALL_WHEN(sendto, SANDBOX_SERVED, DISK | POLL),
	CALL_WHEN(recvfrom, SANDBOX_SERVED, MAIN | DISK | POLL),
	CALL(pread64, BLK | FILES | CONSUMER | CONTROL | PIT | TRACER | SERVE | GUARD),
	CALL(pwrite64, BLK | FILES | CONSUMER),
	CALL(preadv2, BLK),
	CALL(pwritev, BLK),
	CALL(fdatasync, BLK),
	CALL(fallocate, BLK),
	CALL(lseek, BLK | FILES | SLIRP | CONSUMER | TRACER),
	CALL(close, KEEPER | MAIN | VCPU | P9 | FILES | USER | SLIRP | CONSUMER | CONTROL | TRACER |
			    GDB | LIBVIRT | ATTACH),
	/* No command sets a signal's owner except those of a counter that is opened again. */
	FCNTL(F_GETFD, MAIN | FILES | SLIRP | CONSUMER),
	FCNTL(F_SETFD, MAIN | KEEPER | FILES | SLIRP | CONSUMER),
	FCNTL(F_GETFL, MAIN | KEEPER | FILES | SLIRP | CONSUMER),
	CALL_IF(fcntl, SANDBOX_SETFL, MAIN | FILES | SLIRP | CONSUMER),
	FCNTL(F_DUPFD_CLOEXEC, MAIN | FILES | CONSUMER),
	FCNTL(F_ADD_SEALS, MAIN | CONSUMER), /* seals of memory files */
	FCNTL_WHEN(F_SETOWN_EX, SANDBOX_COUNTERS, VCPU),
	FCNTL_WHEN(F_SETSIG, SANDBOX_COUNTERS, VCPU),
	FCNTL_WHEN(F_SETFL, SANDBOX_COUNTERS, VCPU),
	CALL(ftruncate, MAIN | FILES | CONSUMER),
	CALL(fsync, MAIN | FILES | CONSUMER),
	CALL(flock, CONSUMER),
	CALL(copy_file_range, CONSUMER),

	CALL(fstat, ALL),

	/*
	 * Files by name, which Landlock restricts. Threads that carry out a guest's requests have
	 * none of these: their files are open before their lists take effect
	 * (thread_start_early()).
	 */
	CALL(openat, KEEPER | MAIN | FILES | SLIRP | CONSUMER | TRACER),
	CALL(openat2, FILES | CONSUMER | KEEPER),
	CALL(newfstatat, KEEPER | MAIN | FILES | SLIRP | CONSUMER | TRACER),
	CALL(fstatfs, FILES),
	CALL(access, MAIN | CONSUMER | TRACER),
	CALL(faccessat2, TRACER),
	CALL(readlink, MAIN | CONSUMER | TRACER),
	CALL(getcwd, MAIN | CONSUMER), /* realpath(3) */
	CALL(readlinkat, FILES | CONSUMER | KEEPER | TRACER),
	CALL(getdents64, KEEPER | MAIN | FILES | CONSUMER | TRACER),
	CALL(mkdir, MAIN | CONSUMER),
	CALL(mkdirat, FILES | KEEPER),
	CALL(rename, MAIN | CONSUMER),
	CALL(renameat2, MAIN | CONSUMER | KEEPER),
	CALL(renameat, FILES | KEEPER),
	CALL(unlink, MAIN | CONSUMER),
	CALL(unlinkat, MAIN | FILES | KEEPER),
	CALL(rmdir, MAIN | CONSUMER),
	CALL(linkat, CONSUMER | KEEPER),
	CALL(symlink, MAIN | CONSUMER),
	CALL(symlinkat, FILES | KEEPER),
	CALL(fchmod, FILES | KEEPER),
	CALL(fchown, KEEPER),
	CALL_IF(utimensat, SANDBOX_NO_PATH, FILES),
	CALL(memfd_create, MAIN | CONSUMER | TRACER),

	/* The vCPU's own timers and counters, and its processor. */
	CALL(timer_create, VCPU),
	CALL(timer_settime, VCPU),
	CALL(timer_delete, VCPU),
	ENTRY(perf_event_open, SANDBOX_COUNT, 0, NULL, VCPU, SANDBOX_COUNTERS),
	CALL(sched_getaffinity, VCPU | MAIN | TRACER),
	CALL_IF(sched_setaffinity, SANDBOX_SELF, VCPU | TRACER),
	/* --mem: the NUMA node of a page. */
	CALL_IF(move_pages, SANDBOX_SELF, CONSUMER),
	CALL(getrandom, ALL),
	IOCTL(PERF_EVENT_IOC_ENABLE, VCPU | TRACER),
	IOCTL(PERF_EVENT_IOC_DISABLE, VCPU | TRACER),
	IOCTL(PERF_EVENT_IOC_REFRESH, VCPU | TRACER),
	IOCTL(PERF_EVENT_IOC_PERIOD, VCPU | TRACER),
	IOCTL(PERF_EVENT_IOC_SET_FILTER, VCPU | TRACER),

	/* KVM: runs the guest, reads its state, and raises interrupts. */
	IOCTL(KVM_RUN, VCPU),
	IOCTL(KVM_GET_REGS, VCPU | MAIN),
	IOCTL(KVM_SET_REGS, VCPU),
	IOCTL(KVM_GET_SREGS, VCPU | MAIN),
	IOCTL(KVM_GET_MSRS, VCPU | MAIN),
	IOCTL(KVM_SET_MSRS, VCPU),
	IOCTL(KVM_GET_MP_STATE, VCPU | MAIN),
	IOCTL(KVM_SET_GUEST_DEBUG, VCPU),
	IOCTL(KVM_GET_DEBUGREGS, VCPU | MAIN),
	IOCTL(KVM_SET_DEBUGREGS, VCPU),
	IOCTL(KVM_GET_VCPU_EVENTS, VCPU | MAIN),
	IOCTL(KVM_SET_VCPU_EVENTS, VCPU),
	IOCTL(KVM_KVMCLOCK_CTRL, VCPU),
	/* Instructions that KVM does not emulate: vmm/pvm. */
	IOCTL(KVM_SET_SREGS, VCPU),
	IOCTL(KVM_GET_XSAVE, VCPU | MAIN),
	IOCTL(KVM_SET_XSAVE, VCPU),
	IOCTL(KVM_GET_XCRS, VCPU | MAIN),
	IOCTL(KVM_SET_XCRS, VCPU),
	IOCTL(KVM_IRQ_LINE, RAISE),
	IOCTL(KVM_SIGNAL_MSI, (RAISE & ~PIT)),
	/* A snapshot. */
	IOCTL(KVM_CHECK_EXTENSION, MAIN),
	IOCTL(KVM_GET_MSR_INDEX_LIST, MAIN),
	IOCTL(KVM_GET_CPUID2, MAIN),
	IOCTL(KVM_GET_SUPPORTED_CPUID, MAIN),
	IOCTL(KVM_GET_LAPIC, MAIN),
	IOCTL(KVM_GET_XSAVE2, MAIN),
	IOCTL(KVM_GET_IRQCHIP, MAIN),
	IOCTL(KVM_GET_PIT2, MAIN),
	IOCTL(KVM_GET_CLOCK, MAIN),
	IOCTL(KVM_GET_DEVICE_ATTR, MAIN), /* the offset of a vCPU's TSC */

	/* A reset restores a vCPU and the machine to their state before the first instruction. */
	IOCTL_WHEN(KVM_SET_REGS, SANDBOX_REBOOTS, MAIN),
	IOCTL_WHEN(KVM_SET_SREGS, SANDBOX_REBOOTS, MAIN),
	IOCTL_WHEN(KVM_SET_MSRS, SANDBOX_REBOOTS, MAIN),
	IOCTL_WHEN(KVM_SET_XSAVE, SANDBOX_REBOOTS, MAIN),
	IOCTL_WHEN(KVM_SET_XCRS, SANDBOX_REBOOTS, MAIN),
	IOCTL_WHEN(KVM_SET_DEBUGREGS, SANDBOX_REBOOTS, MAIN),
	IOCTL_WHEN(KVM_SET_VCPU_EVENTS, SANDBOX_REBOOTS, MAIN),
	IOCTL_WHEN(KVM_SET_MP_STATE, SANDBOX_REBOOTS, MAIN),
	IOCTL_WHEN(KVM_SET_LAPIC, SANDBOX_REBOOTS, MAIN),
	IOCTL_WHEN(KVM_SET_IRQCHIP, SANDBOX_REBOOTS, MAIN),
	IOCTL_WHEN(KVM_SET_PIT2, SANDBOX_REBOOTS, MAIN),
	IOCTL_WHEN(KVM_SET_GUEST_DEBUG, SANDBOX_REBOOTS, MAIN),

	/* The user's terminal. */
	IOCTL(TCGETS, MAIN | SLIRP),
	IOCTL(TIOCGWINSZ, MAIN | CONSOLE),

	/* The guest's network, and clients of the control socket. */
	SOCKET(AF_INET, SLIRP),
	SOCKET(AF_INET6, SLIRP),
	CALL(bind, SLIRP),
	CALL(connect, SLIRP),
	CALL(listen, SLIRP),
	CALL(accept, SLIRP),
	CALL(accept4, CONTROL),
	CALL(sendto, SLIRP | CONTROL | KEEPER | MAIN),
	CALL(recvfrom, SLIRP | CONTROL | KEEPER),
	CALL(recvmsg, SLIRP),
	CALL(getsockname, SLIRP),
	CALL(getpeername, SLIRP),
	CALL(getsockopt, SLIRP | CONTROL),
	CALL(setsockopt, SLIRP),
	CALL(shutdown, SLIRP | USER | MAIN | VCPU | P9 | CONTROL |
			       SERVE), /* shares' processes close their sockets with it, too */
	IOCTL(FIONREAD, SLIRP),

	/* attach: another process's machine, and BPF programs in this host's kernel. */
	PTRACE(PTRACE_SEIZE, TRACER),
	PTRACE(PTRACE_INTERRUPT, TRACER),
	PTRACE(PTRACE_LISTEN, TRACER),
	PTRACE(PTRACE_CONT, TRACER),
	PTRACE(PTRACE_SYSCALL, TRACER),
	PTRACE(PTRACE_SETOPTIONS, TRACER),
	PTRACE(PTRACE_GETEVENTMSG, TRACER),
	PTRACE(PTRACE_DETACH, TRACER),
	PTRACE(PTRACE_GETREGS, TRACER),
	PTRACE(PTRACE_SETREGS, TRACER),
	PTRACE(PTRACE_GETSIGINFO, TRACER),
	PTRACE(PTRACE_SETSIGINFO, TRACER),
	PTRACE(PTRACE_PEEKSIGINFO, TRACER),
	/* The guard ends the tracer's process, of which it has the only descriptor. */
	ENTRY(pidfd_send_signal, SANDBOX_SECOND, SIGKILL, "SIGKILL", GUARD, SANDBOX_ALWAYS),
	CALL(process_vm_readv, TRACER | SERVE),
	CALL(wait4, TRACER),
	CALL(waitid, TRACER),
	CALL(kcmp, TRACER),
	CALL(pidfd_open, TRACER),
	CALL(pidfd_getfd, TRACER),
	CALL(bpf, TRACER),
	CALL(perf_event_open, TRACER), /* on threads of the machine */
	FCNTL(F_SETOWN_EX, TRACER),    /* counters signal this thread */
	FCNTL(F_SETSIG, TRACER),
	FCNTL(F_SETFL, TRACER),
	FCNTL(F_GETFL, TRACER),
	FCNTL(F_GETFD, TRACER),
	FCNTL(F_SETFD, TRACER),
	FCNTL(F_DUPFD_CLOEXEC, TRACER),
	IOCTL(PERF_EVENT_IOC_SET_BPF, TRACER),
	CALL(sched_yield, TRACER),
	CALL(timer_create, TRACER | GDB),
	CALL(timer_settime, TRACER | GDB),
	CALL(timer_delete, TRACER | GDB),
	CALL(uname, TRACER),
	CALL(epoll_wait, TRACER),
	CALL(epoll_pwait, TRACER),
	CALL(epoll_create1, TRACER),
	CALL(epoll_ctl, TRACER),
	CALL(sched_yield, TRACER),
	CALL(statfs, TRACER), /* libbpf: finds tracefs */
	CALL(prlimit64, TRACER),
	CALL(sendto, GDB | LIBVIRT),
	CALL(recvfrom, GDB | LIBVIRT),
	CALL(sendmsg, LIBVIRT | ATTACH), /* starts the protocol with the other process */
	CALL(recvmsg, LIBVIRT),
	CALL(writev, LIBVIRT),
	CALL(shutdown, GDB | LIBVIRT),
	CALL(setsockopt, LIBVIRT),
	CALL(getsockopt, LIBVIRT),
	CALL(getsockname, LIBVIRT),
	CALL(getpeername, LIBVIRT),
	CALL_IF(openat, SANDBOX_FAILS,
		LIBVIRT), /* it reports why its daemon is gone, and searches for catalogs */
	CALL(gettimeofday, LIBVIRT),
	FCNTL(F_GETFD, LIBVIRT),
	FCNTL(F_SETFD, LIBVIRT),
	FCNTL(F_GETFL, LIBVIRT),
	CALL_IF(fcntl, SANDBOX_SETFL, LIBVIRT),

	/* One request while the machine is created. */
	IOCTL(KVM_X86_SET_MSR_FILTER, MSR),
	/*
	 * The probe guest, which runs before the lists take effect and has ended before the guest
	 * begins.
	 */
	CALL(close, PROBE),

	/* The profile's header: the host and its processors. */
	CALL(uname, CONSUMER),
	CALL(sysinfo, ALL),
	{ .name = NULL },
};

bool sandbox_has_list(enum thread_kind kind)
{
	return ALL & SANDBOX_KIND(kind);
}
