/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * microvmm: a small VMM with the habits of Firecracker and Cloud Hypervisor, for tests of attach.
 *
 *     microvmm --kernel ELF [--append TEXT] [--memory anon|memfd|uffd|FILE] [--mib N] [--vcpus N]
 *              [--names firecracker|cloud-hypervisor] [--filter none|firecracker|cloud-hypervisor]
 *              [--dups N] [--reboot-ms N] [--id NAME] [--others N] [--remake 1] [--once 1]
 *              [--plug-ms N] [--restore DIR]
 *
 * It boots the ELF file by its PVH entry. vCPU threads have the names that the two VMMs give them, and their kind
 * of seccomp filter: that of Cloud Hypervisor allows nanosleep but not restart_syscall, so that a sleep which the kernel
 * itself resumes kills the process. When the guest resets itself (i8042), vCPU 0 sleeps 1 ms at a time until the
 * main thread has loaded the guest anew, as Cloud Hypervisor does. Further vCPUs have boot registers and are never started. N other machines of the process are halted. With --remake a reboot makes another
 * machine with another thread, as in Cloud Hypervisor. With --once it ends the process, as in Firecracker, and no commands are read.
 *
 * "save DIR" writes a snapshot into the directory: the memory, and the state of the machine with its first vCPU. --restore
 * makes a machine of it that goes on there, in the way of Firecracker and Cloud Hypervisor: a new process whose memory is a
 * private mapping of the file, or is served page by page (--memory uffd).
 *
 * After N ms of --plug-ms another vCPU is made, which spins in ring 0, as by a hotplug.
 *
 * Commands come one a line on stdin, and each is answered by one line on stdout: "stats" by JSON, others by "ok".
 *
 *     pause nanosleep|poll|futex|epoll, hold HOW (the last vCPU only), resume, drop, slow US, dead, alive, plug, unplug, save DIR, stats, quit
 *
 * "plug" makes another vCPU, and "unplug" ends the thread of the last one. KVM does not remove a vCPU,
 * so that the descriptor is used again by the next "plug", as QEMU does it.
 *
 * With --memory uffd a page server serves the guest's memory. "drop" makes all pages absent, "slow" makes the server wait for each
 * page, and "dead" makes it serve no page until "alive". Requests of other processes are counted apart (stats: asked_by_others).
 * With a FILE, a path with a slash, it is a private mapping of that file, as of a snapshot that is restored: "drop" writes it back before. Other memory is
 * swapped out as far as there is room.
 */
#include "tests/e2e/microvmm.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/kvm.h>
#include <poll.h>
#include <pthread.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_VCPUS 128u
#define PORT_RESET 0x64u
#define RESET 0xfeu
#define PORT_UART 0x3f8u
#define PORT_UART_STATUS 0x3fdu
#define UART_READY 0x60u
#define MS UINT64_C(1000000)
enum pause { RUNS, NANOSLEEP, POLL, FUTEX, EPOLL, PAUSES };

static const char *const pause_name[PAUSES] = { "-", "nanosleep", "poll", "futex", "epoll" };

struct vcpu {
	int fd, epoll;
	unsigned int id;
	struct kvm_run *run;
	pthread_t thread;
	pid_t tid;
	atomic_bool paused;
	bool ends;   /* its machine is replaced by another one, or it is unplugged */
	bool parked; /* it was unplugged */
};

static struct memory_config config = { .append = "seconds=600", .kind = "anon", .mib = 64 };
static const char *names = "firecracker", *filter = "none";
static const char *machine_id; /* nothing uses it: attach reads it from the command line */
static unsigned int nvcpus = 1, dups, others, remake, once, plug_ms;
static unsigned int reboot_ms = 20; /* how long the main thread needs to load the guest anew */
static struct vcpu vcpu[MAX_VCPUS];
static struct memory *memory;
static int kvm, vm, wake;
static struct kvm_regs first_regs;
static struct kvm_sregs first_sregs;
static struct kvm_irqchip first_chip[3];
static struct kvm_lapic_state first_lapic;
static struct kvm_pit_state2 first_pit;

static _Atomic uint32_t pausing; /* enum pause; also the futex */
static atomic_int held = -1;	 /* the only vCPU that is paused; -1: all */
static atomic_bool rebooting, saving;
static atomic_ulong reboots, runs, kicked, interrupted[PAUSES];
static __thread struct vcpu *own;

/* -- vCPUs ---------------------------------------------------------------------------------- */

static void on_kick(int signo)
{
	(void)signo;
	if (own)
		own->run->immediate_exit = 1;
}

static void kick_all(void)
{
	for (unsigned int i = 0; i < nvcpus; i++) {
		atomic_fetch_add(&kicked, 1);
		pthread_kill(vcpu[i].thread, SIGRTMIN);
	}
}

/*
 * Installs a filter as that of the VMMs' vCPU threads (Cloud Hypervisor: vmm/src/seccomp_filters.rs, vcpu_thread_rules;
 * Firecracker: resources/seccomp). Pauses need some calls more.
 */
static void install_filter(void)
{
	static const int calls[] = {
		SCMP_SYS(brk),	       SCMP_SYS(clock_gettime),	 SCMP_SYS(clock_nanosleep),
		SCMP_SYS(close),       SCMP_SYS(epoll_ctl),	 SCMP_SYS(epoll_wait),
		SCMP_SYS(exit),	       SCMP_SYS(exit_group),	 SCMP_SYS(fstat),
		SCMP_SYS(futex),       SCMP_SYS(gettid),	 SCMP_SYS(ioctl),
		SCMP_SYS(madvise),     SCMP_SYS(mmap),		 SCMP_SYS(mprotect),
		SCMP_SYS(munmap),      SCMP_SYS(nanosleep),	 SCMP_SYS(poll),
		SCMP_SYS(read),	       SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
		SCMP_SYS(sched_yield), SCMP_SYS(sigaltstack),	 SCMP_SYS(tgkill),
		SCMP_SYS(write),       SCMP_SYS(getpid)
	};
	scmp_filter_ctx f;

	if (!strcmp(filter, "none"))
		return;
	f = seccomp_init(SCMP_ACT_KILL_PROCESS);
	NEED(f, "seccomp");
	for (unsigned int i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		NEED(!seccomp_rule_add(f, SCMP_ACT_ALLOW, calls[i], 0), "seccomp rule");
	if (!strcmp(filter, "firecracker"))
		NEED(!seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(restart_syscall), 0),
		     "seccomp rule");
	NEED(!seccomp_load(f), "seccomp filter");
	seccomp_release(f);
}

/* One wait of a paused vCPU; it counts the times that something interrupts it. */
static void wait_once(struct vcpu *v, enum pause how)
{
	struct timespec ms = { .tv_nsec = (long)MS }, second = { .tv_sec = 1 };
	struct epoll_event event;
	long ret = 0;

	if (how == NANOSLEEP)
		ret = syscall(SYS_nanosleep, &ms, &ms);
	else if (how == POLL)
		ret = poll(NULL, 0, 1000);
	else if (how == FUTEX)
		ret = syscall(SYS_futex, &pausing, FUTEX_WAIT_PRIVATE, (uint32_t)FUTEX, &second,
			      NULL, 0);
	else
		ret = epoll_wait(v->epoll, &event, 1, 1000);
	if (ret < 0 && errno == EINTR)
		atomic_fetch_add(&interrupted[how], 1);
}

static void stay_paused(struct vcpu *v)
{
	enum pause how = (enum pause)atomic_load(&pausing);
	int only = atomic_load(&held);

	if (how == RUNS || (only >= 0 && v->id != (unsigned int)only))
		return;
	/* An instruction that reads a port is complete after the next KVM_RUN only. */
	if (atomic_load(&saving)) {
		v->run->immediate_exit = 1;
		(void)ioctl(v->fd, KVM_RUN, 0);
		v->run->immediate_exit = 0;
	}
	atomic_store(&v->paused, true);
	while ((how = (enum pause)atomic_load(&pausing)) != RUNS)
		wait_once(v, how);
	atomic_store(&v->paused, false);
}

/* Called by the thread of vCPU 0. */
static void reset(void)
{
	struct kvm_vcpu_events events;

	for (unsigned int i = 0; i < 3; i++)
		NEED(!ioctl(vm, KVM_SET_IRQCHIP, &first_chip[i]), "KVM_SET_IRQCHIP");
	NEED(!ioctl(vm, KVM_SET_PIT2, &first_pit), "KVM_SET_PIT2");
	NEED(!ioctl(vcpu[0].fd, KVM_SET_LAPIC, &first_lapic), "KVM_SET_LAPIC");
	memset(&events, 0, sizeof(events));
	NEED(!ioctl(vcpu[0].fd, KVM_SET_VCPU_EVENTS, &events), "KVM_SET_VCPU_EVENTS");
	NEED(!ioctl(vcpu[0].fd, KVM_SET_SREGS, &first_sregs), "KVM_SET_SREGS");
	NEED(!ioctl(vcpu[0].fd, KVM_SET_REGS, &first_regs), "KVM_SET_REGS");
}

/*
 * As Cloud Hypervisor's i8042: the thread that reset the guest sleeps until it may run it again. It completes the
 * I/O instruction first, as the next KVM_RUN would do so with the new registers.
 */
static void wait_for_reboot(struct vcpu *v)
{
	const uint64_t one = 1;

	if (once)
		exit(0);
	v->run->immediate_exit = 1;
	(void)ioctl(v->fd, KVM_RUN, 0);
	v->run->immediate_exit = 0;
	atomic_store(&rebooting, true);
	(void)!write(wake, &one, sizeof(one));
	v->ends = remake;
	if (v->ends)
		return;
	while (atomic_load(&rebooting)) {
		struct timespec ms = { .tv_nsec = (long)MS };

		if (syscall(SYS_nanosleep, &ms, &ms) < 0 && errno == EINTR)
			atomic_fetch_add(&interrupted[NANOSLEEP], 1);
	}
	reset();
}

static void serve_port(struct vcpu *v)
{
	struct kvm_run *r = v->run;
	uint8_t *data = (uint8_t *)r + r->io.data_offset;

	if (r->io.direction == KVM_EXIT_IO_IN) {
		memset(data, 0, r->io.size * r->io.count);
		if (r->io.port == PORT_UART_STATUS)
			*data = UART_READY;
	} else if (r->io.port == PORT_UART) {
		(void)!write(STDERR_FILENO, data, r->io.size * r->io.count);
	} else if (r->io.port == PORT_RESET && *data == RESET) {
		wait_for_reboot(v);
	}
}

static void *vcpu_main(void *arg)
{
	struct vcpu *v = arg;
	char name[16];

	snprintf(name, sizeof(name), strcmp(names, "firecracker") ? "vcpu%u" : "fc_vcpu %u", v->id);
	prctl(PR_SET_NAME, name);
	own = v;
	v->tid = (pid_t)syscall(SYS_gettid);
	install_filter();
	while (!v->ends) {
		int ret;

		stay_paused(v);
		atomic_fetch_add(&runs, 1);
		ret = ioctl(v->fd, KVM_RUN, 0);
		if (ret < 0 && (errno == EINTR || errno == EAGAIN)) {
			atomic_fetch_add(&interrupted[RUNS], errno == EINTR);
			v->run->immediate_exit = 0;
		} else if (ret < 0) {
			exit(3);
		} else if (v->run->exit_reason == KVM_EXIT_IO) {
			serve_port(v);
		} else if (v->run->exit_reason == KVM_EXIT_MMIO) {
			memset(v->run->mmio.data, 0xff, v->run->mmio.is_write ? 0 : 8);
		} else if (v->run->exit_reason == KVM_EXIT_SHUTDOWN) {
			wait_for_reboot(v);
		} else if (v->run->exit_reason != KVM_EXIT_INTR &&
			   v->run->exit_reason != KVM_EXIT_HLT) {
			fprintf(stderr, "microvmm: exit %u\n", v->run->exit_reason);
			exit(4);
		}
	}
	return NULL;
}

/* -- the machine ---------------------------------------------------------------------------- */

static void set_first_state(void)
{
	struct kvm_segment code = { .limit = UINT32_MAX,
				    .selector = 0x10,
				    .type = 0xb,
				    .present = 1,
				    .db = 1,
				    .s = 1,
				    .g = 1 };
	struct kvm_segment data = code;
	struct kvm_sregs s;

	data.type = 3;
	data.selector = 0x18;
	NEED(!ioctl(vcpu[0].fd, KVM_GET_SREGS, &s), "KVM_GET_SREGS");
	s.cs = code;
	s.ds = s.es = s.fs = s.gs = s.ss = data;
	s.tr = (struct kvm_segment){ .limit = 0x67, .type = 0xb, .present = 1 };
	s.cr0 = 1;
	s.cr3 = s.cr4 = s.efer = 0;
	first_sregs = s;
	first_regs = (struct kvm_regs){ .rip = memory->entry, .rbx = START_INFO, .rflags = 2 };
	for (unsigned int i = 0; i < 3; i++) {
		first_chip[i].chip_id = i;
		NEED(!ioctl(vm, KVM_GET_IRQCHIP, &first_chip[i]), "KVM_GET_IRQCHIP");
	}
	NEED(!ioctl(vm, KVM_GET_PIT2, &first_pit), "KVM_GET_PIT2");
	NEED(!ioctl(vcpu[0].fd, KVM_GET_LAPIC, &first_lapic), "KVM_GET_LAPIC");
}

static void restore(const char *directory);

static void make_vcpu(unsigned int i, int size)
{
	static struct {
		struct kvm_cpuid2 head;
		struct kvm_cpuid_entry2 entry[256];
	} cpuid;
	struct vcpu *v = &vcpu[i];

	v->id = i;
	v->ends = false;
	v->fd = ioctl(vm, KVM_CREATE_VCPU, i);
	NEED(v->fd >= 0, "KVM_CREATE_VCPU");
	for (unsigned int k = 0; k < dups; k++)
		NEED(dup(v->fd) >= 0, "dup");
	v->epoll = epoll_create1(EPOLL_CLOEXEC);
	v->run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, v->fd, 0);
	NEED(v->run != MAP_FAILED, "kvm_run");
	cpuid.head.nent = 256;
	NEED(!ioctl(kvm, KVM_GET_SUPPORTED_CPUID, &cpuid), "KVM_GET_SUPPORTED_CPUID");
	NEED(!ioctl(v->fd, KVM_SET_CPUID2, &cpuid), "KVM_SET_CPUID2");
}

static void make_machine(void)
{
	uint64_t identity = 0xfffbc000;
	struct kvm_pit_config pit = { .flags = KVM_PIT_SPEAKER_DUMMY };
	struct kvm_userspace_memory_region region = { 0 };
	int size;

	kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	NEED(kvm >= 0, "/dev/kvm");
	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	NEED(vm >= 0, "KVM_CREATE_VM");
	NEED(!ioctl(vm, KVM_SET_TSS_ADDR, 0xfffbd000), "KVM_SET_TSS_ADDR");
	NEED(!ioctl(vm, KVM_SET_IDENTITY_MAP_ADDR, &identity), "KVM_SET_IDENTITY_MAP_ADDR");
	NEED(!ioctl(vm, KVM_CREATE_IRQCHIP, 0) && !ioctl(vm, KVM_CREATE_PIT2, &pit), "irqchip");
	memory = memory_make(&config);
	region.memory_size = (uint64_t)config.mib << 20;
	region.userspace_addr = (uint64_t)(uintptr_t)memory->ram;
	NEED(!ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
	size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	for (unsigned int i = 0; i < nvcpus; i++)
		make_vcpu(i, size);
	set_first_state();
	for (unsigned int i = 0; i < nvcpus; i++) {
		NEED(!ioctl(vcpu[i].fd, KVM_SET_SREGS, &first_sregs), "KVM_SET_SREGS");
		NEED(!ioctl(vcpu[i].fd, KVM_SET_REGS, &first_regs), "KVM_SET_REGS");
	}
	if (config.restore)
		restore(config.restore);
	for (unsigned int i = 0; i < nvcpus; i++)
		NEED(!pthread_create(&vcpu[i].thread, NULL, vcpu_main, &vcpu[i]), "vCPU thread");
}

static void pause_all(enum pause how)
{
	atomic_store(&pausing, how);
	kick_all();
	for (unsigned int i = 0; i < nvcpus; i++)
		while (!atomic_load(&vcpu[i].paused))
			usleep(1000);
}

static void hold_last(enum pause how)
{
	atomic_store(&held, (int)nvcpus - 1);
	atomic_store(&pausing, how);
	kick_all();
	while (!atomic_load(&vcpu[nvcpus - 1].paused))
		usleep(1000);
}

static void resume_all(void)
{
	atomic_store(&held, -1);
	atomic_store(&pausing, RUNS);
	syscall(SYS_futex, &pausing, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	for (unsigned int i = 0; i < nvcpus; i++)
		while (atomic_load(&vcpu[i].paused))
			usleep(1000);
}

/* MSRs of a snapshot: TSC, STAR, LSTAR, CSTAR, SYSCALL_MASK, KERNEL_GS_BASE (SDM vol. 4, 2.1). */
static const uint32_t saved_msrs[] = { 0x10,	   0xc0000081, 0xc0000082,
				       0xc0000083, 0xc0000084, 0xc0000102 };
#define SAVED_MSRS (sizeof(saved_msrs) / sizeof(saved_msrs[0]))

struct snapshot {
	struct kvm_regs regs;
	struct kvm_sregs sregs;
	struct kvm_xsave xsave;
	struct kvm_lapic_state lapic;
	struct kvm_vcpu_events events;
	struct kvm_mp_state mp;
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry[SAVED_MSRS];
	} msrs;
	struct kvm_irqchip chip[3];
	struct kvm_pit_state2 pit;
};

/* Opens the file of the state. */
static int open_state(const char *directory, int flags)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/state", directory);
	fd = open(path, flags | O_CLOEXEC, 0600);
	NEED(fd >= 0, path);
	return fd;
}

static void save(const char *directory)
{
	const int file = open_state(directory, O_WRONLY | O_CREAT | O_TRUNC), fd = vcpu[0].fd;
	static struct snapshot s;

	atomic_store(&saving, true);
	pause_all(NANOSLEEP);
	s.msrs.head.nmsrs = SAVED_MSRS;
	for (unsigned int i = 0; i < SAVED_MSRS; i++)
		s.msrs.entry[i].index = saved_msrs[i];
	NEED(!ioctl(fd, KVM_GET_REGS, &s.regs) && !ioctl(fd, KVM_GET_SREGS, &s.sregs) &&
		     !ioctl(fd, KVM_GET_XSAVE, &s.xsave) && !ioctl(fd, KVM_GET_LAPIC, &s.lapic) &&
		     !ioctl(fd, KVM_GET_VCPU_EVENTS, &s.events) &&
		     !ioctl(fd, KVM_GET_MP_STATE, &s.mp) &&
		     ioctl(fd, KVM_GET_MSRS, &s.msrs) == (int)SAVED_MSRS &&
		     !ioctl(vm, KVM_GET_PIT2, &s.pit),
	     "state of the vCPU");
	for (unsigned int i = 0; i < 3; i++) {
		s.chip[i].chip_id = i;
		NEED(!ioctl(vm, KVM_GET_IRQCHIP, &s.chip[i]), "KVM_GET_IRQCHIP");
	}
	NEED(write(file, &s, sizeof(s)) == sizeof(s), "state");
	close(file);
	memory_save(directory);
	atomic_store(&saving, false);
	resume_all();
}

static void restore(const char *directory)
{
	const int file = open_state(directory, O_RDONLY), fd = vcpu[0].fd;
	static struct snapshot s;

	NEED(read(file, &s, sizeof(s)) == sizeof(s), "state");
	close(file);
	for (unsigned int i = 0; i < 3; i++)
		NEED(!ioctl(vm, KVM_SET_IRQCHIP, &s.chip[i]), "KVM_SET_IRQCHIP");
	NEED(!ioctl(vm, KVM_SET_PIT2, &s.pit) && !ioctl(fd, KVM_SET_MP_STATE, &s.mp) &&
		     !ioctl(fd, KVM_SET_SREGS, &s.sregs) && !ioctl(fd, KVM_SET_REGS, &s.regs) &&
		     !ioctl(fd, KVM_SET_XSAVE, &s.xsave) && !ioctl(fd, KVM_SET_LAPIC, &s.lapic) &&
		     ioctl(fd, KVM_SET_MSRS, &s.msrs) == (int)SAVED_MSRS &&
		     !ioctl(fd, KVM_SET_VCPU_EVENTS, &s.events),
	     "state of the vCPU");
}

/* Where the code of further vCPUs is, behind the command line, and where the demo guest maps it. */
#define SPIN 0x9000u
#define DEMO_MAP UINT64_C(0xffffffff80000000)

/* Makes another vCPU, which spins with the first one's page tables. */
static void plug(void)
{
	static const uint8_t code[] = { 0xf3, 0x90, 0xeb, 0xfc }; /* pause; jmp to it */
	const struct kvm_segment text = { .limit = UINT32_MAX,
					  .selector = 8,
					  .type = 0xb,
					  .present = 1,
					  .l = 1,
					  .s = 1,
					  .g = 1 };
	const struct kvm_segment data = { .limit = UINT32_MAX,
					  .selector = 0x10,
					  .type = 3,
					  .present = 1,
					  .db = 1,
					  .s = 1,
					  .g = 1 };
	struct kvm_regs r = { .rip = DEMO_MAP + SPIN,
			      .rsp = DEMO_MAP + SPIN + 0x1000,
			      .rflags = 2 };
	struct kvm_mp_state runs = { .mp_state = KVM_MP_STATE_RUNNABLE };
	struct kvm_sregs s;

	NEED(nvcpus < MAX_VCPUS, "too many vCPUs");
	pause_all(NANOSLEEP);
	NEED(!ioctl(vcpu[0].fd, KVM_GET_SREGS, &s), "KVM_GET_SREGS");
	memcpy(memory->ram + SPIN, code, sizeof(code));
	s.cs = text;
	s.ds = s.es = s.fs = s.gs = s.ss = data;
	if (!vcpu[nvcpus].parked)
		make_vcpu(nvcpus, ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0));
	vcpu[nvcpus].ends = vcpu[nvcpus].parked = false;
	NEED(!ioctl(vcpu[nvcpus].fd, KVM_SET_SREGS, &s) &&
		     !ioctl(vcpu[nvcpus].fd, KVM_SET_REGS, &r) &&
		     !ioctl(vcpu[nvcpus].fd, KVM_SET_MP_STATE, &runs),
	     "registers");
	resume_all();
	NEED(!pthread_create(&vcpu[nvcpus].thread, NULL, vcpu_main, &vcpu[nvcpus]), "vCPU thread");
	nvcpus++;
}

static void unplug(void)
{
	struct vcpu *v = &vcpu[nvcpus - 1];

	NEED(nvcpus > 1, "no vCPU to unplug");
	v->ends = true;
	pthread_kill(v->thread, SIGRTMIN);
	pthread_join(v->thread, NULL);
	v->parked = true;
	nvcpus--;
}

static void remake_machine(void)
{
	pthread_join(vcpu[0].thread, NULL);
	munmap(vcpu[0].run, (size_t)ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0));
	close(vcpu[0].fd);
	close(vcpu[0].epoll);
	close(vm);
	close(kvm);
	munmap(memory->ram, (size_t)config.mib << 20);
	make_machine();
}

static void reboot(void)
{
	for (unsigned int i = 0; i < reboot_ms; i++)
		usleep(1000);
	if (remake)
		remake_machine();
	else
		memory_reload();
	atomic_fetch_add(&reboots, 1);
	atomic_store(&rebooting, false);
}

/* With less memory it would be no guest: vmm/attach/slots_kvm.c. */
#define OTHER_MEMORY (1u << 20)

/* Another machine of this process, in real mode, which halts for good. */
static void *other_main(void *arg)
{
	static const uint8_t code[] = { 0xf4, 0xeb, 0xfd }; /* hlt; jmp to it */
	struct kvm_userspace_memory_region region = { .memory_size = OTHER_MEMORY };
	int other = ioctl(kvm, KVM_CREATE_VM, 0), fd;
	struct kvm_sregs s;
	struct kvm_regs r = { .rflags = 2 };
	void *page = mmap(NULL, OTHER_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	(void)arg;
	NEED(other >= 0 && page != MAP_FAILED, "another machine");
	memcpy(page, code, sizeof(code));
	region.userspace_addr = (uint64_t)(uintptr_t)page;
	NEED(!ioctl(other, KVM_SET_TSS_ADDR, 0xfffbd000), "KVM_SET_TSS_ADDR");
	NEED(!ioctl(other, KVM_CREATE_IRQCHIP, 0), "irqchip");
	NEED(!ioctl(other, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
	fd = ioctl(other, KVM_CREATE_VCPU, 0);
	NEED(fd >= 0 && !ioctl(fd, KVM_GET_SREGS, &s), "KVM_CREATE_VCPU");
	s.cs.base = s.cs.selector = 0;
	NEED(!ioctl(fd, KVM_SET_SREGS, &s) && !ioctl(fd, KVM_SET_REGS, &r), "registers");
	for (;;)
		(void)ioctl(fd, KVM_RUN, 0);
	return NULL;
}

/* -- commands ------------------------------------------------------------------------------- */

/* As a restore from a snapshot: no page of the guest is there any more. */
static void drop_all(void)
{
	pause_all(NANOSLEEP);
	memory_drop();
	resume_all();
}

static void print_stats(void)
{
	printf("{\"reboots\":%lu,\"runs\":%lu,\"kicked\":%lu,\"served\":%lu,\"refused\":%lu,"
	       "\"asked_by_others\":%lu",
	       atomic_load(&reboots), atomic_load(&runs), atomic_load(&kicked),
	       atomic_load(&memory->served), atomic_load(&memory->refused),
	       atomic_load(&memory->asked_by_others));
	printf(",\"eintr\":{\"run\":%lu", atomic_load(&interrupted[RUNS]));
	for (unsigned int i = NANOSLEEP; i < PAUSES; i++)
		printf(",\"%s\":%lu", pause_name[i], atomic_load(&interrupted[i]));
	printf("},\"tid\":[");
	for (unsigned int i = 0; i < nvcpus; i++)
		printf("%s%d", i ? "," : "", (int)vcpu[i].tid);
	printf("]}\n");
}

static void obey(char *line)
{
	line[strcspn(line, "\n")] = 0;
	for (unsigned int i = NANOSLEEP; i < PAUSES; i++) {
		if (!strncmp(line, "pause ", 6) && !strcmp(line + 6, pause_name[i]))
			pause_all((enum pause)i);
		if (!strncmp(line, "hold ", 5) && !strcmp(line + 5, pause_name[i]))
			hold_last((enum pause)i);
	}
	if (!strcmp(line, "quit"))
		exit(0);
	if (!strcmp(line, "stats")) {
		print_stats();
		return;
	}
	if (!strcmp(line, "resume"))
		resume_all();
	else if (!strcmp(line, "drop"))
		drop_all();
	else if (!strncmp(line, "save ", 5))
		save(line + 5);
	else if (!strcmp(line, "plug"))
		plug();
	else if (!strcmp(line, "unplug"))
		unplug();
	else if (!strncmp(line, "slow ", 5))
		atomic_store(&memory->slow_us, (unsigned int)atoi(line + 5));
	else if (!strcmp(line, "dead") || !strcmp(line, "alive"))
		atomic_store(&memory->dead, *line == 'd');
	printf("ok\n");
}

/* A thread as Firecracker's for its API, which waits in epoll_wait all the time. */
static void *api_main(void *arg)
{
	struct epoll_event event;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	(void)arg;
	prctl(PR_SET_NAME, strcmp(names, "firecracker") ? "http-server" : "fc_api");
	for (;;)
		(void)epoll_wait(epoll, &event, 1, -1);
	return NULL;
}

static void attend(void)
{
	struct pollfd p[2] = { { .fd = once ? -1 : STDIN_FILENO, .events = POLLIN },
			       { .fd = wake, .events = POLLIN } };
	char line[128];
	uint64_t word;

	for (;;) {
		const int n = poll(p, 2, plug_ms ? (int)plug_ms : -1);

		NEED(n >= 0, "poll");
		if (!n) {
			plug_ms = 0;
			plug();
		}
		if (p[1].revents && read(wake, &word, sizeof(word)) == sizeof(word))
			reboot();
		if (!p[0].revents)
			continue;
		if (!fgets(line, sizeof(line), stdin))
			exit(0);
		obey(line);
	}
}

static void read_options(char **v)
{
	for (v++; v[0] && v[1]; v += 2) {
		const struct {
			const char *name, **text;
			unsigned int *number;
		} option[] = { { "--kernel", &config.kernel, NULL },
			       { "--append", &config.append, NULL },
			       { "--memory", &config.kind, NULL },
			       { "--names", &names, NULL },
			       { "--filter", &filter, NULL },
			       { "--mib", NULL, &config.mib },
			       { "--vcpus", NULL, &nvcpus },
			       { "--dups", NULL, &dups },
			       { "--reboot-ms", NULL, &reboot_ms },
			       { "--id", &machine_id, NULL },
			       { "--others", NULL, &others },
			       { "--remake", NULL, &remake },
			       { "--once", NULL, &once },
			       { "--plug-ms", NULL, &plug_ms },
			       { "--restore", &config.restore, NULL } };

		for (unsigned int i = 0; i < sizeof(option) / sizeof(option[0]); i++)
			if (strcmp(v[0], option[i].name))
				continue;
			else if (option[i].text)
				*option[i].text = v[1];
			else
				*option[i].number = (unsigned int)atoi(v[1]);
	}
	if ((!config.kernel && !config.restore) || !nvcpus || nvcpus > MAX_VCPUS ||
	    strlen(config.append) >= 4096) {
		fprintf(stderr, "usage: microvmm --kernel ELF [OPTION VALUE]...\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct sigaction kick = { .sa_handler = on_kick };
	pthread_t api, other;

	(void)argc;
	read_options(argv);
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, strcmp(names, "firecracker") ? "cloud-hyperviso" : names);
	NEED(!sigaction(SIGRTMIN, &kick, NULL), "sigaction");
	wake = eventfd(0, EFD_CLOEXEC);
	NEED(wake >= 0, "eventfd");
	NEED(!pthread_create(&api, NULL, api_main, NULL), "thread");
	make_machine();
	for (unsigned int i = 0; i < others; i++)
		NEED(!pthread_create(&other, NULL, other_main, NULL), "thread");
	attend();
}
