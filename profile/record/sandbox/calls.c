/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/sandbox/calls.h"

#include <linux/kvm.h>
#include <linux/perf_event.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define MAIN SANDBOX_KIND(THREAD_MAIN)
#define VCPU SANDBOX_KIND(THREAD_VCPU)
#define DISK SANDBOX_KIND(THREAD_DISK)
#define POLL SANDBOX_KIND(THREAD_DISK_POLL)
#define P9 SANDBOX_KIND(THREAD_9P)
#define FILES SANDBOX_KIND(THREAD_9P_FILES)
#define REST SANDBOX_KIND(THREAD_REST)
#define USER SANDBOX_KIND(THREAD_NET_USER)
#define TAP SANDBOX_KIND(THREAD_NET_TAP)
#define PIT SANDBOX_KIND(THREAD_PIT)
#define CONSUMER SANDBOX_KIND(THREAD_CONSUMER)
#define CONSOLE SANDBOX_KIND(THREAD_CONSOLE)
#define CONTROL SANDBOX_KIND(THREAD_CONTROL)
#define ALL                                                                                      \
	(MAIN | VCPU | DISK | POLL | P9 | FILES | REST | USER | TAP | PIT | CONSUMER | CONSOLE | \
	 CONTROL)
/*
 * Threads that carry out requests to disks: vCPUs do what needs no waiting, and the main thread what came
 * while the machine was saved.
 */
#define BLK (MAIN | VCPU | DISK | POLL)
/* Threads that raise interrupts. */
#define RAISE (MAIN | VCPU | DISK | POLL | P9 | REST | USER | TAP | PIT)

#define CALL(name, kinds)                                             \
	{                                                             \
#name, SCMP_SYS(name), SANDBOX_ANY, 0, NULL, (kinds), \
	}
#define CALL_IF(name, rule, kinds)                              \
	{                                                       \
#name, SCMP_SYS(name), (rule), 0, NULL, (kinds) \
	}
#define IOCTL(request, kinds)                                                                     \
	{                                                                                         \
		"ioctl", SCMP_SYS(ioctl), SANDBOX_REQUEST, (uint32_t)(request), #request, (kinds) \
	}
#define SOCKET(family, kinds)                                                         \
	{                                                                             \
		"socket", SCMP_SYS(socket), SANDBOX_FIRST, (family), #family, (kinds) \
	}

const struct sandbox_call sandbox_calls[] = {
	/* What libc needs for locks, memory (qsort(3) asks how much there is) and an end in order. */
	CALL(futex, ALL),
	CALL_IF(mmap, SANDBOX_NO_EXEC, ALL),
	CALL_IF(mprotect, SANDBOX_NO_EXEC, ALL),
	CALL(munmap, ALL),
	CALL_IF(mmap, SANDBOX_CODE, VCPU),
	CALL_IF(rt_sigaction, SANDBOX_CODE, VCPU), /* it may fault */
	CALL(rt_sigaction, MAIN),
	CALL(mremap, ALL),
	CALL(madvise, ALL),
	CALL(brk, ALL),
	CALL(rt_sigprocmask, ALL),
	CALL(rt_sigreturn, ALL),
	CALL(restart_syscall, ALL),
	CALL(exit, (ALL & ~MAIN)),
	CALL(exit_group, ALL),
	/* A clock that is no TSC has no vDSO. */
	CALL(clock_gettime, ALL),
	CALL(clock_nanosleep, CONSUMER | CONTROL),
	CALL(getpid, MAIN | VCPU | CONTROL | CONSUMER | USER),
	CALL(gettid, VCPU | CONSUMER), /* abort(3): base/fault.h */
	CALL_IF(tgkill, SANDBOX_OURSELF, MAIN | VCPU | CONTROL | CONSUMER),
	/* For the process of a share, and QEMU where it counts. There is no pidfd of another one. */
	CALL(wait4, MAIN | VCPU | P9),
	CALL(pidfd_send_signal, MAIN | VCPU | P9),
	CALL_IF(wait4, SANDBOX_QEMU, CONSUMER),
	CALL_IF(pidfd_send_signal, SANDBOX_QEMU, CONSUMER),

	/* Bytes of descriptors that are open. */
	CALL(read, MAIN | VCPU | P9 | FILES | USER | TAP | PIT | CONSUMER | CONTROL),
	CALL(write, ALL),
	CALL(ppoll, MAIN),
	CALL(poll, MAIN | USER | TAP | CONSOLE | CONTROL),
	CALL_IF(poll, SANDBOX_QEMU, CONSUMER),
	CALL_IF(ppoll, SANDBOX_QEMU, CONSUMER),
	CALL(pread64, BLK | FILES | CONSUMER),
	CALL(pwrite64, BLK | FILES | CONSUMER),
	CALL(preadv2, BLK),
	CALL(pwritev, BLK),
	CALL(fdatasync, BLK),
	CALL(fallocate, BLK),
	CALL(lseek, BLK | FILES | USER | CONSUMER),
	CALL(close, MAIN | VCPU | P9 | FILES | USER | PIT | CONSUMER | CONTROL),
	CALL(fcntl, MAIN | VCPU | FILES | USER | CONSUMER),
	CALL(ftruncate, MAIN | CONSUMER),
	CALL(fsync, MAIN | FILES | CONSUMER),
	CALL(flock, CONSUMER),
	CALL(copy_file_range, CONSUMER),

	/* Files by name: where, is for Landlock to say. */
	CALL(openat, MAIN | VCPU | FILES | USER | PIT | CONSUMER | CONTROL),
	CALL(openat2, FILES | CONSUMER),
	CALL(newfstatat, BLK | FILES | USER | CONSUMER | CONTROL),
	CALL(fstat, BLK | FILES | USER | CONSUMER | CONTROL),
	CALL(fstatfs, FILES),
	CALL(access, MAIN | CONSUMER),
	CALL(readlink, MAIN | FILES | CONSUMER),
	CALL(getcwd, MAIN | CONSUMER), /* realpath(3) */
	CALL(readlinkat, FILES | CONSUMER),
	CALL(getdents64, MAIN | FILES | CONSUMER),
	CALL(mkdir, MAIN | CONSUMER),
	CALL(mkdirat, FILES),
	CALL(rename, MAIN | CONSUMER),
	CALL(renameat2, MAIN | CONSUMER),
	CALL(renameat, FILES),
	CALL(unlink, MAIN | CONSUMER),
	CALL(unlinkat, MAIN | FILES),
	CALL(rmdir, MAIN | CONSUMER),
	CALL(linkat, MAIN | CONSUMER),
	CALL(symlink, MAIN | CONSUMER),
	CALL(symlinkat, FILES),
	CALL(chmod, FILES),
	CALL(truncate, FILES),
	CALL(utimensat, FILES),
	CALL(memfd_create, MAIN | CONSUMER),

	/* The vCPU's own timers and counters, and where it runs. */
	CALL(timer_create, VCPU),
	CALL(timer_settime, VCPU),
	CALL(timer_delete, VCPU),
	CALL(perf_event_open, VCPU),
	CALL(sched_getaffinity, VCPU | MAIN),
	CALL(sched_setaffinity, VCPU),
	/* --mem: the NUMA node of a page. */
	CALL(move_pages, CONSUMER),
	CALL(getrandom, ALL),
	IOCTL(PERF_EVENT_IOC_ENABLE, VCPU),
	IOCTL(PERF_EVENT_IOC_DISABLE, VCPU),
	IOCTL(PERF_EVENT_IOC_REFRESH, VCPU),
	IOCTL(PERF_EVENT_IOC_PERIOD, VCPU),
	IOCTL(PERF_EVENT_IOC_SET_FILTER, VCPU),

	/* KVM: the guest runs, is looked at, and gets interrupts. */
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

	/* A person's terminal. */
	IOCTL(TCGETS, MAIN | USER),
	IOCTL(TIOCGWINSZ, MAIN | CONSOLE),

	/* The guest's network, and clients of the control socket. */
	SOCKET(AF_INET, USER),
	SOCKET(AF_INET6, USER),
	CALL(bind, USER),
	CALL(connect, USER),
	CALL(listen, USER),
	CALL(accept, USER),
	CALL(accept4, CONTROL),
	CALL(sendto, USER | CONTROL),
	CALL(recvfrom, USER | CONTROL),
	CALL(recvmsg, USER),
	CALL(getsockname, USER),
	CALL(getpeername, USER),
	CALL(getsockopt, USER | CONTROL),
	CALL(setsockopt, USER),
	CALL(shutdown, USER),
	IOCTL(FIONREAD, USER),

	/* The profile's header: the host and its processors. */
	CALL(uname, CONSUMER),
	CALL(sysinfo, ALL),
	{ .name = NULL },
};

bool sandbox_has_list(enum thread_kind kind)
{
	return ALL & SANDBOX_KIND(kind);
}
