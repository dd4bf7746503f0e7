/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The backend of struct vm: samples at counts of instructions, taken on the consumer's own thread.
 *
 * The guest runs inside the consumer's call of vm_wait_samples(). That call resumes the vCPU, waits for
 * the next stop, stores the sample in the vCPU's ring, and returns; the consumer processes it and
 * calls again. So nothing else happens while guest memory is read.
 */
#include "vmm/exact/exact.h"

#include "base/clock.h"
#include "base/count.h"
#include "vmm/attach/attach.h"
#include "vmm/exact/exact_state.h"
#include "vmm/exact/exact_words.h"
#include "vmm/exact/sha256.h"
#include "vmm/attach/foreign.h"
#include "vmm/capture/capture.h"
#include "vmm/gmem_alloc.h"
#include "vmm/vm.h"
#include "vmm/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * If the guest executes no instruction for this long, it may be halted, or QEMU may hang while it
 * ends. When all vCPUs are halted, virtual time jumps to the next timer at once, and no event
 * comes from outside: a guest that is halted for this long waits for nothing.
 */
#define STILL_NS 2000000000u
/*
 * Consecutive queries without an answer, while the guest makes no progress, after which QEMU is
 * given up.
 */
#define UNANSWERED_MOST 15u
#define BROKEN_NS 2000000000u /* grace time: QEMU may be about to end */

/* -- one sample ----------------------------------------------------------------------------- */

/*
 * Returns the instruction (from 1) of a period that is sampled: a pseudo-random one, the same in
 * each run. At fixed distances, something that the guest does periodically, such as its timer
 * interrupt, would be met always or never. With cfg.strict it is the last one.
 */
static uint64_t place_in_period(const struct exact *x, uint64_t period)
{
	/* The output function of splitmix64 (Steele et al. 2014). */
	uint64_t h = (period + 1) * UINT64_C(0x9e3779b97f4a7c15);

	if (x->cfg.strict)
		return x->cfg.period;
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return (h ^ h >> 31) % x->cfg.period + 1;
}

/*
 * Returns the instruction of the first sample after instruction `at`, or UINT64_MAX if no sample
 * is left.
 */
static uint64_t next_sample(const struct exact *x, uint64_t at)
{
	const struct exact_trace *t = x->cfg.trace;
	uint64_t from = x->facts.begun, n = (at - from) / x->cfg.period, next;

	for (unsigned int i = 0; t && i < t->nat; i++)
		if (t->at[i] > at)
			return t->at[i];
	if (t && t->nat)
		return UINT64_MAX;
	next = from + n * x->cfg.period + place_in_period(x, n);
	/* The sample of the current period may already be in the past. */
	return next > at ? next : from + (n + 1) * x->cfg.period + place_in_period(x, n + 1);
}

/*
 * Returns how many instructions had been executed at the stop: up to the sample's instruction, or
 * up to the one before the place.
 */
static uint64_t executed(const struct exact *x)
{
	return x->stop.kind == EXACT_STOP_PLACE && x->stop.at ? x->stop.at - 1 : x->stop.at;
}

/* Returns the count that the page has now, while the vCPU runs. */
static uint64_t count_now(const struct exact *x)
{
	return exact_stop_count(x->child.shared, &x->expected);
}

/* Copies the registers into KVM's structures. */
static void take_regs(const struct exact_regs *r, struct kvm_run *run)
{
	struct kvm_regs *g = &run->s.regs.regs;
	struct kvm_sregs *s = &run->s.regs.sregs;

	memset(s, 0, sizeof(*s));
	g->rax = r->gpr[0];
	g->rcx = r->gpr[1];
	g->rdx = r->gpr[2];
	g->rbx = r->gpr[3];
	g->rsp = r->gpr[4];
	g->rbp = r->gpr[5];
	g->rsi = r->gpr[6];
	g->rdi = r->gpr[7];
	g->r8 = r->gpr[8];
	g->r9 = r->gpr[9];
	g->r10 = r->gpr[10];
	g->r11 = r->gpr[11];
	g->r12 = r->gpr[12];
	g->r13 = r->gpr[13];
	g->r14 = r->gpr[14];
	g->r15 = r->gpr[15];
	g->rip = r->rip;
	/*
	 * In real mode RIP is an offset in its segment (SDM vol. 3, 20.1.1), but symbols have
	 * linear addresses.
	 */
	if (!(r->cr0 & 1) && r->rip < EXACT_REAL_MODE)
		g->rip += r->cs << 4;
	g->rflags = r->rflags;
	s->cs.selector = (uint16_t)r->cs;
	s->cs.dpl = r->cr0 & 1 ? r->cs & 3 : 0;
	s->ss.selector = (uint16_t)r->ss;
	s->fs.base = r->fs_base;
	s->gs.base = r->gs_base;
	s->cr0 = r->cr0;
	s->cr2 = r->cr2;
	s->cr3 = r->cr3;
	s->cr4 = r->cr4;
	s->efer = r->efer;
}

#define CR4_LA57 (UINT64_C(1) << 12) /* 5 levels; QEMU's qemu64 has 4 */

static void capture(struct exact *x, const struct capture_cause *cause)
{
	const struct exact_regs *regs = &x->stop.regs;
	struct capture_view view;
	uint64_t gs = regs->gs_base & EXACT_KERNEL_HALF ? regs->gs_base : regs->k_gs_base;
	int cpu = exact_cpu_of(&x->cpus, x->vm->nvcpus, gs);
	/* A vCPU without a base is taken for the first one. */
	struct vcpu *v = &x->vm->vcpu[cpu < 0 ? 0 : cpu];

	v->kernel_gs = gs & EXACT_KERNEL_HALF ? gs : 0;
	take_regs(regs, x->run);
	view = capture_view_of(&x->run->s.regs.regs, &x->run->s.regs.sregs, &x->mem);
	if (cause->reason == SAMPLE_MARKER)
		count_add(&v->stats.breakpoints[cause->event], 1);
	if (!capture_sample_of(v, &view, cause))
		count_add(&v->stats.overruns, 1);
}

/* Advances the clock and the console to this moment, and calls cfg.moment(). */
static void moment(struct exact *x, uint64_t now)
{
	atomic_store(&x->now, now);
	x->facts.instructions = executed(x);
	exact_forward_console(x);
	if (x->cfg.moment)
		x->cfg.moment(x->cfg.moment_ctx, now);
}

/* Stores the page tables of this stop if it is in the kernel, for look_for_disks(). */
static void note_tables(struct exact *x)
{
	const struct exact_regs *r = &x->stop.regs;

	if (r->cs & 3 || !(r->rip & EXACT_KERNEL_HALF))
		return;
	x->kernel_tables =
		(struct mmu_root){ .cr0 = r->cr0, .cr3 = r->cr3, .cr4 = r->cr4, .efer = r->efer };
	x->kernel_rip = r->rip;
}

static void take_sample(struct exact *x)
{
	const struct capture_cause cause = {
		.reason = SAMPLE_INSN,
		.now = EXACT_NS_AT(x->stop.at),
		.weight = x->cfg.period,
		.exit_addr = x->stop.ahead,
	};

	moment(x, cause.now);
	note_tables(x);
	if (atomic_load(&x->vm->stop))
		return;
	capture(x, &cause);
	if (next_sample(x, x->stop.at) == UINT64_MAX)
		machine_end(x->vm, VM_END_SAMPLES, NULL, NULL, NULL);
}

/*
 * Handles a stop at a place. The marker's sample is captured before anything reacts to the marker.
 */
static void take_place(struct exact *x)
{
	const struct capture_cause cause = { .reason = SAMPLE_MARKER,
					     .now = EXACT_NS_AT(x->stop.at),
					     .event = (uint8_t)x->stop.place };
	const struct vm_breakpoint *b;

	if (exact_places_begin_part(x->child.shared, &x->stop, x->vm, &x->facts))
		return;
	b = exact_places_reached(&x->stop, x->vm, cause.now); /* NULL: cause.event is none of its */
	if (!b)
		return;
	capture(x, &cause);
	moment(x, cause.now);
	if (b->action != VM_BREAKPOINT_STOP || atomic_load(&x->vm->stop))
		return;
	vm_collect(x->vm, false);
	machine_end(x->vm, VM_END_MARKER, NULL, NULL, NULL);
}

/*
 * Finds out whether the guest uses its disks. The guest has ended, so its memory no longer
 * changes. If a page table was freed in the meantime, it no longer maps the code of its sample,
 * and the result stays unknown.
 */
static void look_for_disks(struct exact *x)
{
	struct exact_facts *f = &x->facts;
	uint64_t above = x->mem.n > 1 ? x->mem.region[1].size : 0, from, len;
	struct mmu_page page;

	if (!f->ndisks || !x->kernel_tables.cr3 || x->kernel_tables.cr4 & CR4_LA57 ||
	    mmu_walk(&x->mem, &x->kernel_tables, x->kernel_rip, &page))
		return;
	len = nvdimm_range(f->disk, f->ndisks, above, &from);
	f->disks = nvdimm_is_mapped(&x->mem, x->kernel_tables.cr3, from, from + len)
			   ? EXACT_DISKS_TAKEN
			   : EXACT_DISKS_NOT_TAKEN;
}

/* -- the end -------------------------------------------------------------------------------- */

/*
 * Ends the machine's work: QEMU has ended or is about to, and guest memory no longer changes.
 * count: executed instructions.
 */
static void exact_is_over(struct exact *x, uint64_t count)
{
	exact_finish_counts(x);
	child_end(&x->child);
	x->over = true;
	x->facts.instructions = count;
	look_for_disks(x);
	atomic_store(&x->now, EXACT_NS_AT(count));
	exact_forward_console(x);
	if (x->cfg.moment && !atomic_load(&x->vm->stop))
		x->cfg.moment(x->cfg.moment_ctx, EXACT_NS_AT(count));
}

static void end_without_reason(struct exact *x)
{
	const struct child *c = &x->child;
	struct err e = { 0 };

	/* isa-debug-exit: twice the guest's number and 1 (hw/misc/debugexit.c of QEMU). */
	if (WIFEXITED(c->status) && WEXITSTATUS(c->status) & 1 && !*c->said) {
		vm_exit(x->vm, WEXITSTATUS(c->status) >> 1);
		return;
	}
	if (WIFSIGNALED(c->status))
		err_set(&e, EIO, "QEMU was ended by signal %d (%s)%s%s", WTERMSIG(c->status),
			strsignal(WTERMSIG(c->status)), *c->said ? ": " : "", c->said);
	else
		err_set(&e, EIO, "QEMU ended with status %d: %s", WEXITSTATUS(c->status),
			*c->said ? c->said : "it reported no reason");
	machine_end(x->vm, VM_END_ERROR, NULL, NULL, &e);
}

/* Ends the machine after a power-off or an exit; QEMU's monitor reports both as a shutdown. */
static void end_by_itself(struct exact *x)
{
	if (x->stop.kind == EXACT_STOP_EXIT)
		vm_exit(x->vm, x->stop.status);
	else
		machine_end(x->vm, VM_END_POWEROFF, NULL, NULL, NULL);
}

/* Ends QEMU, which violates the protocol of our plugin. Earlier results are kept. */
static void qemu_is_bad(struct exact *x, const struct err *why)
{
	child_end(&x->child);
	exact_is_over(x, x->answered ? count_now(x) : executed(x));
	machine_end(x->vm, VM_END_ERROR, NULL, NULL, why);
	sem_post(&x->ended);
}

static void qemu_has_ended(struct exact *x)
{
	struct err e = { 0 };

	exact_is_over(x, count_now(x));
	(void)monitor_read(&x->monitor);
	if (x->child.triple_fault) {
		err_set(&e, EFAULT, "triple fault on one of %u vCPUs", x->vm->nvcpus);
		machine_end(x->vm, VM_END_TRIPLE_FAULT, NULL, NULL, &e);
	} else if (x->monitor.end == MONITOR_RESET) {
		machine_end(x->vm, VM_END_RESET, NULL, NULL, NULL);
	} else if (x->monitor.end == MONITOR_POWEROFF) {
		end_by_itself(x);
	} else {
		end_without_reason(x);
	}
	sem_post(&x->ended);
}

/* Checks, when no sample has come for a while, whether there is anything left to wait for. */
static void look_for_end(struct exact *x)
{
	uint64_t now = clock_mono_ns(), count = count_now(x);
	enum monitor_answer answer;
	struct err e = { 0 };

	if (count != x->seen_count) {
		x->seen_count = count;
		x->seen_ns = now;
		x->unanswered = 0;
	}
	if (now - x->seen_ns < STILL_NS)
		return;
	if (x->monitor.end != MONITOR_RUNS) { /* QEMU hangs */
		child_end(&x->child);
		qemu_has_ended(x);
		return;
	}
	answer = monitor_is_halted(&x->monitor, &x->vm->stop);
	if (answer == MONITOR_IS_HALTED) {
		exact_is_over(x, count);
		machine_end(x->vm, VM_END_HALTED, NULL, NULL, NULL);
		sem_post(&x->ended);
	} else if (answer == MONITOR_IS_NOT_HALTED) {
		x->unanswered = 0;
	} else if (++x->unanswered >= UNANSWERED_MOST) {
		err_set(&e, ETIMEDOUT, "QEMU does not answer, and its guest does not continue");
		qemu_is_bad(x, &e);
	}
	x->seen_ns = clock_mono_ns();
}

/* -- on the consumer's thread --------------------------------------------------------------- */

static void set_next(struct exact *x, uint64_t next)
{
	x->expected.least = executed(x);
	x->expected.next = next;
	x->child.shared->next = next;
}

/* Resumes the vCPU until the next sample. */
static void let_go(struct exact *x)
{
	exact_page *page = x->child.shared;

	exact_places_relocate(page, x->vm, &x->facts);
	if (!x->begun && vm_is_collecting(x->vm)) {
		x->begun = true;
		x->facts.begun = executed(x);
		page->anew = x->cfg.counts && x->facts.begun;
		set_next(x, next_sample(x, executed(x)));
	} else if (x->stop.kind != EXACT_STOP_PLACE) {
		set_next(x, next_sample(x, x->stop.at));
	} else {
		x->expected.least = executed(x);
	}
	child_resume(&x->child);
	x->answered = true;
}

static void guest_stands(struct exact *x)
{
	struct err e = { 0 };

	if (exact_stop_take(x->child.shared, &x->expected, &x->stop, &e)) {
		qemu_is_bad(x, &e);
		return;
	}
	switch (x->stop.kind) {
	case EXACT_STOP_PLACE:
		take_place(x);
		return;
	case EXACT_STOP_SAMPLE:
		take_sample(x);
		return;
	default:
		exact_is_over(x, x->stop.count);
		end_by_itself(x);
		sem_post(&x->ended);
	}
}

static void wait_for_more(struct exact *x, uint64_t ns)
{
	struct pollfd p[6] = {
		{ .fd = x->broken_ns ? -1 : x->child.request, .events = POLLIN },
		{ .fd = x->child.pidfd, .events = POLLIN },
		{ .fd = x->wake_fd, .events = POLLIN },
		{ .fd = x->console_closed ? -1 : x->child.console, .events = POLLIN },
		{ .fd = x->monitor.fd, .events = POLLIN },
		{ .fd = x->errors_closed ? -1 : x->child.errors, .events = POLLIN }
	};
	struct timespec ts = { 0, (long)ns };
	struct err e = { 0 };
	uint64_t token;
	int ret;

	if (ppoll(p, 6, &ts, NULL) <= 0)
		memset(p, 0, sizeof(p));
	if (p[2].revents)
		(void)!read(x->wake_fd, &token, sizeof(token));
	if (exact_read_output(x, &p[3], &p[4], &p[5], &e)) {
		qemu_is_bad(x, &e);
		return;
	}
	ret = p[0].revents ? child_stopped(&x->child) : -EAGAIN;
	if (!ret) {
		x->answered = false;
		x->unanswered = 0;
		guest_stands(x);
	} else if (p[1].revents) {
		qemu_has_ended(x);
	} else if (ret == -EPROTO) {
		x->broken_ns = clock_mono_ns();
	} else if (x->broken_ns && clock_mono_ns() - x->broken_ns > BROKEN_NS) {
		err_set(&e, EPROTO, "QEMU has closed its connection");
		qemu_is_bad(x, &e);
	} else {
		/*
		 * A QEMU that sends output all the time may still have a guest that makes no
		 * progress.
		 */
		look_for_end(x);
	}
}

static void op_rest(struct vm *vm, uint64_t ns)
{
	struct exact *x = vm->attached;
	struct timespec ts = { 0, (long)ns };

	if (atomic_load(&x->alone)) {
		child_end(&x->child);
	} else if (x->over || !atomic_load(&x->go)) {
		nanosleep(&ts, NULL);
	} else if (atomic_load(&vm->stop)) {
		/* The guest is at a sample, which ends the run, or anywhere between two samples. */
		exact_is_over(x, x->answered ? count_now(x) : executed(x));
		sem_post(&x->ended);
	} else {
		if (!x->answered)
			let_go(x);
		wait_for_more(x, ns);
	}
}

static void op_wait_is_over(struct vm *vm)
{
	struct exact *x = vm->attached;

	atomic_store(&x->alone, true);
	sem_post(&x->ended); /* async-signal-safe */
}

/* -- the machine ---------------------------------------------------------------------------- */

static int op_start(struct vm *vm, struct err *e)
{
	struct exact *x = vm->attached;
	int ret = x->cfg.ready ? x->cfg.ready(x->cfg.ready_ctx, e) : 0;

	if (ret)
		return ret;
	atomic_store(&vm->first_entry_ns, EXACT_NS_AT(0));
	x->seen_ns = clock_mono_ns();
	atomic_store(&x->go, true);
	return 0;
}

static void op_wake(struct vm *vm)
{
	struct exact *x = vm->attached;
	uint64_t one = 1;

	(void)!write(x->wake_fd, &one, sizeof(one));
}

static void op_join(struct vm *vm)
{
	struct exact *x = vm->attached;

	while (atomic_load(&x->go) && !x->joined)
		x->joined = sem_wait(&x->ended) == 0;
}

static void exact_free(struct exact *x)
{
	child_deinit(&x->child);
	if (!atomic_load(&x->alone))
		buf_deinit(&x->kept);
	for (unsigned int i = 0; i < x->mem.n; i++)
		gmem_alloc_unreserve(x->mem.region[i].host, x->mem.region[i].size);
	if (x->wake_fd >= 0)
		close(x->wake_fd);
	sem_destroy(&x->ended);
	free(x->run);
	free(x);
}

static void op_destroy(struct vm *vm)
{
	exact_free(vm->attached);
}

static const struct gmem *op_memory(const struct vm *vm)
{
	const struct exact *x = vm->attached;

	return &x->mem;
}

static uint64_t op_now(const struct vm *vm)
{
	struct exact *x = vm->attached;

	return atomic_load(&x->now);
}

static const struct machine_ops exact_ops = {
	.start = op_start,
	.wake = op_wake,
	.join = op_join,
	.destroy = op_destroy,
	.memory = op_memory,
	.wait = op_rest,
	.consumer_gone = op_wait_is_over,
	.now = op_now,
};

static int map_region(struct exact *x, uint64_t gpa, uint64_t off, uint64_t size, struct err *e)
{
	void *at = gmem_alloc_reserve(size, 4096);

	if (!at)
		return err_set(e, errno, "cannot map guest memory: %s", strerror(errno));
	if (mmap(at, size, PROT_READ, MAP_SHARED | MAP_FIXED, x->child.ram, (off_t)off) ==
	    MAP_FAILED) {
		int ret = err_set(e, errno, "cannot map guest memory: %s", strerror(errno));

		gmem_alloc_unreserve(at, size);
		return ret;
	}
	x->mem.region[x->mem.n++] = (struct gmem_region){ .gpa = gpa, .size = size, .host = at };
	return 0;
}

/* Maps guest memory as QEMU's pc places it (pc_init1 of hw/i386/pc_piix.c). */
static int map_memory(struct exact *x, struct err *e)
{
	uint64_t size = x->cfg.mem_size, low = size < EXACT_RAM_FITS ? size : EXACT_RAM_LOW;
	int ret = map_region(x, 0, 0, low, e);

	return ret || low == size ? ret : map_region(x, UINT64_C(1) << 32, low, size - low, e);
}

static void hash(const struct exact_bytes *b, char hex[65])
{
	struct sha256_ctx c;

	if (!b->len)
		return;
	sha256_begin(&c);
	sha256_add(&c, b->data, b->len);
	sha256_hex(&c, hex);
}

static void configure(struct exact *x)
{
	struct vm *vm = x->vm;
	struct exact_facts *f = &x->facts;

	f->plugin = EXACT_VERSION;
	f->machine = x->child.machine;
	f->cmdline = x->cfg.cmdline;
	f->mem_size = x->cfg.mem_size;
	f->vcpus = x->cfg.vcpus;
	f->disk = x->child.disk;
	f->ndisks = x->child.ndisks;
	f->period = x->cfg.period;
	f->strict = x->cfg.strict;
	f->counts = x->cfg.counts;
	hash(&x->cfg.kernel, f->kernel_sha256);
	hash(&x->cfg.initrd, f->initrd_sha256);
	vm->cfg.look_for_kernel = x->cfg.look_for_kernel;
	memcpy(vm->cfg.breakpoint, x->cfg.breakpoint, sizeof(vm->cfg.breakpoint));
	vm->cfg.nbreakpoints = x->cfg.nbreakpoints;
	x->expected.nplaces = x->child.nplaces;
	f->nparts = x->cfg.nparts;
	memcpy(f->part, x->cfg.part, sizeof(f->part));
	for (unsigned int i = 0; i < vm->nvcpus; i++) {
		vm->vcpu[i].exact = true;
		vm->vcpu[i].stack_max = x->cfg.plan.stack_max;
		vm->vcpu[i].source[0].period = x->cfg.period;
	}
}

/* Creates everything that exact_free() frees, except the struct vm. */
static int begin(struct exact *x, struct err *e)
{
	int ret;

	x->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (x->wake_fd < 0)
		return err_set(e, errno, "eventfd: %s", strerror(errno));
	x->run = calloc(1, sizeof(*x->run));
	if (!x->run)
		return err_nomem(e);
	ret = sha256_load(e);
	if (ret)
		return ret;
	ret = engine_find(&x->facts.engine, e);
	if (ret)
		return ret;
	ret = child_start(&x->child, &x->facts.engine, &x->cfg, e);
	if (ret)
		return ret;
	monitor_init(&x->monitor, x->child.monitor);
	return map_memory(x, e);
}

int exact_open(struct vm **out, const struct exact_config *cfg, struct err *e)
{
	const struct attach_config as = {
		.host = cfg->host,
		.quirks = cfg->quirks,
		.event = { .kind = VM_EVENT_PERF, .period = cfg->period },
		.plan = cfg->plan,
		.ring_size = cfg->ring_size,
		.idle_start = cfg->idle_start,
	};
	struct exact *x = calloc(1, sizeof(*x));
	int ret;

	if (!x)
		return err_nomem(e);
	x->cfg = *cfg;
	child_init(&x->child);
	buf_init(&x->kept);
	sem_init(&x->ended, 0, 0);
	ret = begin(x, e);
	x->vm = ret ? NULL
		    : foreign_machine_new(&exact_ops, x, &as,
					  (struct foreign_vcpus){ cfg->vcpus, cfg->vcpus }, e);
	if (x->vm) {
		x->vm->boot_low = cfg->boot_low;
		x->vm->boot_high = cfg->boot_high;
	}
	if (!x->vm) {
		exact_free(x);
		return ret ? ret : -e->code;
	}
	configure(x);
	*out = x->vm;
	return 0;
}

const struct exact_facts *exact_facts_of(const struct vm *vm)
{
	const struct exact *x = vm->attached;

	return vm->ops == &exact_ops ? &x->facts : NULL;
}
