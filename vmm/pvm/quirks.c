/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/quirks.h"

#include "base/clock.h"
#include "vmm/kvm.h"
#include "vmm/msr.h"
#include "vmm/pvm/probe_guest.h"

#include <cpuid.h>
#include <errno.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/*
 * The threshold per instruction: the two instructions of an iteration take well under a nanosecond
 * on a CPU, and about a microsecond when interpreted.
 */
#define INTERPRETED_PS 50000u
/*
 * The number of timed rounds. A VM exit takes longer than the whole loop: from 1 us, over 10 us in
 * a nested guest, to 70 us where the host's own SVM is emulated. The time of a bare exit is
 * therefore subtracted, and the minimum of several rounds is used, because interrupts only add to
 * it. An interpreted loop takes half a millisecond: two rounds suffice if the result exceeds the
 * threshold by so much that interrupts do not explain it.
 */
#define SPEED_ROUNDS 5u
#define SPEED_CLEAR_ROUNDS 2u
#define SPEED_CLEAR 8u
/*
 * A hypercall costs about as much as an exit. One that has used the CPU for this many exits, and
 * for this time, never returns. The thread's CPU time counts, not the time that the host kept it
 * waiting; a hypercall that only waits is given up after HANG_LOOKS.
 */
#define HANG_TRIPS 50u
#define HANG_NS 500000u
#define HANG_LOOKS 20u

#define PTE_PRESENT_RW 0x3ull
#define PTE_USER 0x4ull
#define SEL_CODE 0x10u
#define SEL_DATA 0x18u
#define SEL_TSS 0x20u
#define SEL_USER_DATA 0x33u
#define SEL_USER_CODE 0x3bu
#define KVM_HC_SEND_IPI_NR 10

/* Cycles: more than a read after a write takes, less than a host has been running. */
#define TSC_SOON (UINT64_C(1) << 34)

struct probe {
	const struct kvm_host *host;
	size_t run_size; /* the host may be gone when the probe is closed */
	struct kvm_closer fd;
	struct kvm_run *run;
	uint8_t *mem;
	uint64_t trip_ns; /* thread CPU time of a bare exit, set by probe_speed_of() */
};

/* For the signal handler, which runs on the probing thread. */
static _Thread_local struct kvm_run *probe_run;

static void on_timeout(int signo)
{
	(void)signo;
	if (probe_run)
		probe_run->immediate_exit = 1;
}

static uint64_t guest_addr(const char *label)
{
	return PROBE_CODE + (uint64_t)(label - probe_code);
}

static void put64(struct probe *p, uint32_t gpa, uint64_t v)
{
	memcpy(p->mem + gpa, &v, sizeof(v));
}

static void probe_gate(struct probe *p, unsigned int vector, uint64_t handler)
{
	uint32_t at = PROBE_IDT + vector * 16;

	put64(p, at,
	      (handler & 0xffff) | SEL_CODE << 16 | 0x8e0000000000ull |
		      (handler >> 16 & 0xffff) << 48);
	put64(p, at + 8, handler >> 32);
}

static void fill_memory(struct probe *p)
{
	put64(p, PROBE_PML4, PROBE_PDPT | PTE_PRESENT_RW | PTE_USER);
	put64(p, PROBE_PDPT, PROBE_PD | PTE_PRESENT_RW | PTE_USER);
	put64(p, PROBE_PD, PROBE_PT | PTE_PRESENT_RW | PTE_USER);
	for (uint32_t page = 0; page < PROBE_MEM / 4096; page++)
		put64(p, PROBE_PT + page * 8,
		      page * 4096ull | PTE_PRESENT_RW |
			      (page * 4096 >= PROBE_USER_CODE ? PTE_USER : 0));
	put64(p, PROBE_GDT + SEL_CODE, 0x00af9b000000ffffull);
	put64(p, PROBE_GDT + SEL_DATA, 0x00cf93000000ffffull);
	put64(p, PROBE_GDT + SEL_TSS, 0x0000890000000067ull | (uint64_t)PROBE_TSS << 16);
	put64(p, PROBE_GDT + (SEL_USER_DATA & ~7u), 0x00cff3000000ffffull);
	put64(p, PROBE_GDT + (SEL_USER_CODE & ~7u), 0x00affb000000ffffull);
	put64(p, PROBE_TSS + 4, PROBE_STACK_TOP); /* rsp0 */
	for (unsigned int i = 0; i < PROBE_IDT_GATES; i++)
		probe_gate(p, i, guest_addr(probe_fault));
	probe_gate(p, 3, guest_addr(probe_breakpoint));
	memcpy(p->mem + PROBE_CODE, probe_code, (size_t)(probe_code_end - probe_code));
	memcpy(p->mem + PROBE_USER_CODE, probe_user, (size_t)(probe_user_end - probe_user));
}

static struct kvm_segment probe_segment(uint16_t selector, bool code)
{
	return (struct kvm_segment){
		.limit = 0xffffffff,
		.selector = selector,
		.type = code ? 11 : 3,
		.present = 1,
		.dpl = selector & 3,
		.db = !code,
		.s = 1,
		.l = code,
		.g = 1,
	};
}

/* Sets the vCPU to rip in ring 0 or 3, with clean registers. */
static int probe_set_state(struct probe *p, uint64_t rip, bool user)
{
	struct kvm_regs r = { .rip = rip,
			      .rflags = 2,
			      .rax = KVM_HC_SEND_IPI_NR,
			      .rsp = user ? PROBE_USER_STACK_TOP : PROBE_STACK_TOP };
	struct kvm_sregs s;

	if (ioctl(p->fd.vcpu, KVM_GET_SREGS, &s) < 0)
		return -errno;
	s.cs = probe_segment(user ? SEL_USER_CODE : SEL_CODE, true);
	s.ss = probe_segment(user ? SEL_USER_DATA : SEL_DATA, false);
	s.ds = s.es = s.fs = s.gs = s.ss;
	s.tr = (struct kvm_segment){
		.base = PROBE_TSS, .limit = 0x67, .selector = SEL_TSS, .type = 11, .present = 1
	};
	s.gdt.base = PROBE_GDT;
	s.gdt.limit = SEL_USER_CODE | 7;
	s.idt.base = PROBE_IDT;
	s.idt.limit = PROBE_IDT_GATES * 16 - 1;
	s.cr0 = 0x80000033; /* PG, NE, ET, MP, PE */
	s.cr3 = PROBE_PML4;
	s.cr4 = 0x620;	/* PAE, OSFXSR, OSXMMEXCPT */
	s.efer = 0x501; /* LMA, LME, SCE */
	if (ioctl(p->fd.vcpu, KVM_SET_SREGS, &s) < 0 || ioctl(p->fd.vcpu, KVM_SET_REGS, &r) < 0)
		return -errno;
	return 0;
}

static int set_syscall_msrs(struct probe *p)
{
	struct {
		struct kvm_msrs head;
		struct kvm_msr_entry entry[3];
	} m = {
		.head.nmsrs = 3,
		.entry = {
			/* STAR: kernel CS 0x10; SYSRET base so that user CS is 0x3b */
			{.index = 0xc0000081, .data = (uint64_t)SEL_CODE << 32 | 0x2bull << 48},
			{.index = 0xc0000082, .data = guest_addr(probe_lstar)},
			{.index = 0xc0000084, .data = 0},
		},
	};

	return ioctl(p->fd.vcpu, KVM_SET_MSRS, &m) == 3 ? 0 : -EIO;
}

/* Unmaps kvm_run, because the mapping keeps the vCPU, and so the VM, alive. */
static void probe_unmap_run(struct probe *p)
{
	if (p->run)
		munmap(p->run, p->run_size);
	p->run = NULL;
}

static void probe_close(struct probe *p)
{
	if (!p)
		return;
	probe_unmap_run(p);
	kvm_closer_finish(&p->fd);
	if (p->mem)
		munmap(p->mem, PROBE_MEM);
	free(p);
}

/* Hides the leaf: no probe needs it, and one checks whether it is hidden. */
static void hide_leaf7(struct kvm_cpuid2 *c)
{
	for (unsigned int i = 0; i < c->nent; i++)
		if (c->entries[i].function == 7 && c->entries[i].index == 0)
			c->entries[i].ebx = c->entries[i].ecx = c->entries[i].edx = 0;
}

static int probe_open(struct probe *p)
{
	struct kvm_userspace_memory_region slot = { .memory_size = PROBE_MEM };
	struct {
		struct kvm_cpuid2 head;
		struct kvm_cpuid_entry2 entry[128];
	} cpuid = { .head.nent = 128 };
	void *map;

	p->fd.vm = kvm_vm_create(p->host);
	if (p->fd.vm < 0)
		return p->fd.vm;
	map = mmap(NULL, PROBE_MEM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return -errno;
	p->mem = map;
	slot.userspace_addr = (uintptr_t)p->mem;
	fill_memory(p);
	if (p->host->tss_addr)
		(void)ioctl(p->fd.vm, KVM_SET_TSS_ADDR, 0xfffbd000ul);
	if (ioctl(p->fd.vm, KVM_SET_USER_MEMORY_REGION, &slot) < 0)
		return -errno;
	if (p->host->emulation_exit) {
		struct kvm_enable_cap cap = { .cap = KVM_CAP_EXIT_ON_EMULATION_FAILURE,
					      .args = { 1 } };

		(void)ioctl(p->fd.vm, KVM_ENABLE_CAP, &cap);
	}
	p->fd.vcpu = ioctl(p->fd.vm, KVM_CREATE_VCPU, 0);
	if (p->fd.vcpu < 0)
		return -errno;
	map = mmap(NULL, p->host->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd.vcpu, 0);
	if (map == MAP_FAILED)
		return -errno;
	p->run = probe_run = map;
	if (ioctl(p->host->fd, KVM_GET_SUPPORTED_CPUID, &cpuid) < 0)
		return -errno;
	hide_leaf7(&cpuid.head);
	if (ioctl(p->fd.vcpu, KVM_SET_CPUID2, &cpuid) < 0)
		return -errno;
	return set_syscall_msrs(p);
}

enum outcome { OUT_DONE, OUT_FAULT, OUT_REFUSED, OUT_TIMEOUT, OUT_OTHER };

/* Runs until a report port, a refusal or the timer. */
static enum outcome probe_until_report(struct probe *p)
{
	while (ioctl(p->fd.vcpu, KVM_RUN, 0) < 0) {
		if (errno != EINTR)
			return OUT_OTHER;
		/* A signal other than the timer's: the process was stopped and has continued. */
		if (!p->run->immediate_exit)
			continue;
		p->run->immediate_exit = 0;
		return OUT_TIMEOUT;
	}
	if (p->run->exit_reason == KVM_EXIT_IO)
		return p->run->io.port == PROBE_PORT_FAULT ? OUT_FAULT : OUT_DONE;
	if (p->run->exit_reason == KVM_EXIT_INTERNAL_ERROR &&
	    p->run->internal.suberror == KVM_INTERNAL_ERROR_EMULATION)
		return OUT_REFUSED;
	return OUT_OTHER;
}

/* Returns thread CPU time: a busy host must not look like an interpreting one. */
static uint64_t thread_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Measures the time from START to DONE, and lowers *least to it. */
static int time_least(struct probe *p, const char *label, uint64_t *least)
{
	int ret = probe_set_state(p, guest_addr(label), false);
	uint64_t t0, ns;

	if (ret)
		return ret;
	if (probe_until_report(p) != OUT_DONE || p->run->io.port != PROBE_PORT_START)
		return -EIO;
	t0 = thread_ns();
	if (probe_until_report(p) != OUT_DONE)
		return -EIO;
	ns = thread_ns() - t0;
	if (ns < *least)
		*least = ns;
	return 0;
}

static int probe_speed_of(struct probe *p, struct quirks *q)
{
	uint64_t trip = UINT64_MAX, loop = UINT64_MAX, ps = 0;
	int ret = 0;

	for (unsigned int i = 0; !ret && i < SPEED_ROUNDS; i++) {
		if (i >= SPEED_CLEAR_ROUNDS && ps > SPEED_CLEAR * INTERPRETED_PS)
			break;
		ret = time_least(p, probe_trip, &trip);
		ret = ret ? ret : time_least(p, probe_speed, &loop);
		ps = loop > trip ? (loop - trip) * 1000 / (2 * PROBE_LOOP) : 0;
	}
	if (ret)
		return ret;
	p->trip_ns = trip;
	q->ring0_ps_per_insn = ps;
	q->interpreted = q->ring0_ps_per_insn > INTERPRETED_PS;
	return 0;
}

/* Runs the hypercall under a timer; the signal also ends a loop inside KVM_RUN. */
static bool hypercall_hangs(struct probe *p)
{
	uint64_t limit = HANG_NS > HANG_TRIPS * p->trip_ns ? HANG_NS : HANG_TRIPS * p->trip_ns;
	struct sigaction sa = { .sa_handler = on_timeout }, old;
	const struct timespec after = clock_timespec(limit);
	/*
	 * The timer repeats: ThreadSanitizer runs handlers late, and a single signal may end
	 * nothing.
	 */
	struct itimerspec its = { .it_interval = after, .it_value = after };
	struct sigevent ev;
	enum outcome out;
	timer_t timer;
	uint64_t t0;

	memset(&ev, 0, sizeof(ev));
	ev.sigev_notify = SIGEV_THREAD_ID;
	ev.sigev_signo = SIGRTMIN;
	ev.sigev_notify_thread_id = gettid();
	if (probe_set_state(p, guest_addr(probe_ipi_intel), false) < 0 ||
	    timer_create(CLOCK_MONOTONIC, &ev, &timer) < 0)
		return false;
	sigaction(SIGRTMIN, &sa, &old);
	t0 = thread_ns();
	for (unsigned int i = 0; i < HANG_LOOKS; i++) {
		/* Without the timer nothing would end a hang. */
		if (timer_settime(timer, 0, &its, NULL) < 0)
			break;
		out = probe_until_report(p);
		if (out != OUT_TIMEOUT || thread_ns() - t0 >= limit)
			break;
	}
	timer_delete(timer);
	sigaction(SIGRTMIN, &old, NULL);
	p->run->immediate_exit = 0;
	return out == OUT_TIMEOUT;
}

/* Writes 0 and reads it back: KVM reports success for both. */
static bool tsc_is_fixed(const struct probe *p)
{
	struct kvm_msr_entry m = { .index = MSR_IA32_TSC };

	return msr_write(p->fd.vcpu, &m) && msr_read(p->fd.vcpu, &m) && m.data > TSC_SOON;
}

/*
 * Returns whether the processor has them; without them the same bytes are correctly executed as BSR
 * and BSF.
 */
static bool cpu_counts_zeros(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000001, &a, &b, &c, &d) && c & bit_LZCNT &&
	       __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_BMI;
}

/* Runs the probes for errors that only a KVM that interprets ring 0 has. */
static int probe_interpreter(struct probe *p, struct quirks *q)
{
	int ret = probe_set_state(p, guest_addr(probe_int3), false);

	if (ret)
		return ret;
	q->refuses_insns = probe_until_report(p) != OUT_DONE;
	ret = probe_set_state(p, guest_addr(probe_zero_counts), false);
	if (ret)
		return ret;
	/* A refusal is no error: pvm/ then completes the instructions. */
	q->zero_counts_wrong = cpu_counts_zeros() && probe_until_report(p) == OUT_FAULT;
	ret = probe_set_state(p, guest_addr(probe_leaf7), false);
	if (ret)
		return ret;
	q->cpuid_leaks = probe_until_report(p) == OUT_FAULT;
	q->hypercalls_hang = hypercall_hangs(p);
	return 0;
}

static int run_probes(struct probe *p, struct quirks *q)
{
	int ret = probe_speed_of(p, q);

	if (ret)
		return ret;
	q->tsc_khz = kvm_tsc_khz(p->host, p->fd.vcpu);
	q->tsc_fixed = tsc_is_fixed(p);
	ret = probe_set_state(p, PROBE_USER_CODE, true);
	if (ret)
		return ret;
	/* Only a page fault at LSTAR needs the work-around. */
	q->syscall_keeps_cpl = probe_until_report(p) == OUT_FAULT;
	/* A KVM that runs ring 0 natively neither refuses instructions there nor hangs. */
	return q->interpreted ? probe_interpreter(p, q) : 0;
}

void quirks_probe(const struct kvm_host *h, struct quirks *q)
{
	struct probe *p = calloc(1, sizeof(*p));
	uint64_t t0 = clock_ns(CLOCK_MONOTONIC);
	int ret = p ? 0 : -ENOMEM;

	memset(q, 0, sizeof(*q));
	if (p) {
		p->host = h;
		p->run_size = h->run_size;
		p->fd.vm = p->fd.vcpu = -1;
		ret = probe_open(p);
		ret = ret ? ret : run_probes(p, q);
	}
	if (ret)
		snprintf(q->why, sizeof(q->why), "the probe guest did not run: %s (exit reason %u)",
			 strerror(-ret), p && p->run ? p->run->exit_reason : 0);
	q->probed = ret == 0;
	q->probe = p;
	probe_run = NULL;
	q->probe_ns = clock_ns(CLOCK_MONOTONIC) - t0;
}

void quirks_close(struct quirks *q)
{
	if (!q->probe)
		return;
	probe_unmap_run(q->probe);
	kvm_closer_start(&q->probe->fd);
}

void quirks_release(struct quirks *q)
{
	probe_close(q->probe);
	q->probe = NULL;
}
