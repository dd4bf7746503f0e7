/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Presents a machine behind a gdbstub as a struct vm.
 *
 * A thread of kvmprof stops the machine at each deadline, takes a sample of each vCPU, and resumes
 * it. The consumer reads memory later, while the machine runs again. The machine is then stopped
 * once more, and stays stopped for a moment, because reads come in bursts. The lock guards the
 * connection and the state that depends on it. No other lock is taken while it is held.
 */
#include "vmm/attach/gdb.h"

#include "vmm/attach/attach.h"

#include "base/clock.h"
#include "base/count.h"
#include "base/thread.h"
#include "vmm/attach/gdb_link.h"
#include "vmm/attach/sampler.h"
#include "base/gmem_remote.h"
#include "vmm/machine.h"
#include "vmm/attach/attach_facts.h"
#include "vmm/attach/foreign.h"
#include "vmm/capture/capture.h"
#include "vmm/vm.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Time for which the machine stays stopped after a read, because the next read follows soon. */
#define LINGER_NS 500000u
/* Descriptor tables move once, early in boot: they are queried at every TABLES_EACH-th sample. */
#define TABLES_EACH 64u
/* Limit of the stub's answers after the machine has ended. */
#define END_HURRY_MS 5000

struct gdb {
	struct vm *vm;
	struct attach_config cfg;
	struct gdb_link link; /* under the lock */
	pthread_mutex_t lock;
	struct kvm_run *run;		      /* one for each vCPU: registers alone */
	struct gmem_remote capture, consumer; /* one for each thread that reads */
	struct gmem capture_mem, consumer_mem;
	struct sampler sampler;
	struct trigger trigger; /* on the machine's clock (gdb_link_time()) */
	unsigned int samples;
	uint64_t linger_until; /* under the lock; not resumed before */
	uint64_t memory_stops; /* under the lock */
	struct err err;	       /* error of the connection; protected by the lock */
	pthread_t thread;
	bool started, joined;
	bool is_bound, told_end; /* the thread's own */
	sem_t ended;		 /* no more samples */
	atomic_bool quit;
};

/* -- memory ------------------------------------------------------------------------------ */

/* Initialises a lock that the next thread gets if a thread ends while it holds it. */
static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t robust;

	pthread_mutexattr_init(&robust);
	pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &robust);
	pthread_mutexattr_destroy(&robust);
}

/*
 * Takes the lock. If the consumer has crashed while it had the lock (base/fault.h), a query may be
 * incomplete, so the link must not be used any more.
 */
static void gdb_lock(struct gdb *g)
{
	if (pthread_mutex_lock(&g->lock) != EOWNERDEAD)
		return;
	g->link.dead = true;
	pthread_mutex_consistent(&g->lock);
}

/*
 * Reads memory for capture, on the sampling thread, which holds the lock while the machine is
 * stopped.
 */
static int fetch_for_capture(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	struct gdb *g = r->ctx;

	return gdb_link_read(&g->link, host, dst, len, &g->err);
}

/*
 * Checks that vCPU 0 still has the address space in which the consumer has looked up `addr`.
 * Returns 0, or -EFAULT if another one is loaded.
 */
static int look_at_space(struct gdb *g, uint64_t addr)
{
	struct kvm_run run;
	uint64_t ignored, before = g->consumer_mem.virtual_cr3;
	int ret = gdb_link_regs(&g->link, 0, &run, &ignored, &g->err);

	if (ret)
		return ret;
	g->consumer_mem.virtual_cr3 = run.s.regs.sregs.cr3;
	return addr >> 63 || before == run.s.regs.sregs.cr3 ? 0 : -EFAULT;
}

static int fetch_for_consumer(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	struct gdb *g = r->ctx;
	bool ran;
	int ret;

	gdb_lock(g);
	/*
	 * The sample's pages are recent enough for the consumer. Virtual addresses belong to
	 * another space.
	 */
	if (!g->consumer_mem.is_virtual && gmem_remote_cached(&g->capture, host, dst, len)) {
		pthread_mutex_unlock(&g->lock);
		return 0;
	}
	ran = g->link.running;
	ret = gdb_link_stop(&g->link, &g->err);
	if (!ret && ran)
		g->memory_stops++;
	if (!ret && ran && g->consumer_mem.is_virtual)
		ret = look_at_space(g, host);
	ret = ret ? ret : gdb_link_read(&g->link, host, dst, len, &g->err);
	g->linger_until = clock_mono_ns() + LINGER_NS;
	pthread_mutex_unlock(&g->lock);
	if (ran)
		sampler_wake(&g->sampler);
	return ret;
}

/* -- sampling ------------------------------------------------------------------------------ */

static int sample_vcpu(struct gdb *g, unsigned int i, const struct capture_cause *cause)
{
	struct vcpu *v = &g->vm->vcpu[i];
	struct kvm_run *run = &g->run[i];
	struct capture_view view;
	uint64_t kernel_gs;
	uint8_t byte;
	int ret = gdb_link_regs(&g->link, i, run, &kernel_gs, &g->err);

	if (ret)
		return ret;
	if (kernel_gs >> 63)
		v->kernel_gs = kernel_gs;
	/* Physical pages are the same for all vCPUs. */
	if (g->capture_mem.is_virtual)
		gmem_remote_invalidate(&g->capture);
	g->capture_mem.virtual_cr3 = run->s.regs.sregs.cr3;
	view = capture_view_of(&run->s.regs.regs, &run->s.regs.sregs, &g->capture_mem);
	capture_sample_of(v, &view, cause);
	/*
	 * Reads the code at RIP into the cache, so that the consumer need not stop the machine for
	 * it.
	 */
	capture_read(&view, view.regs->rip, &byte, 1);
	count_add(&v->stats.overruns, cause->missed);
	return g->err.code ? -g->err.code : 0;
}

static void gdb_take(void *ctx)
{
	struct gdb *g = ctx;
	struct capture_cause cause;
	struct vm *vm = g->vm;
	uint64_t late = sampler_late(&g->trigger, gdb_link_time(&g->link, clock_mono_ns())), now;
	int ret = gdb_link_stop(&g->link, &g->err);

	now = clock_mono_ns();
	cause = sampler_cause(&g->trigger, now, gdb_link_time(&g->link, now));
	if (!ret && g->samples++ % TABLES_EACH == 0)
		ret = gdb_link_tables(&g->link, &g->err);
	gmem_remote_invalidate(&g->capture);
	for (unsigned int i = 0; !ret && i < vm->nvcpus; i++)
		ret = sample_vcpu(g, i, &cause);
	ret = ret ? ret : gdb_link_resume(&g->link, &g->err);
	for (unsigned int i = 0; !ret && i < vm->nvcpus; i++) {
		hist_add(&vm->vcpu[i].stats.latency_ns, late);
		hist_add(&vm->vcpu[i].stats.stop_ns, clock_mono_ns() - cause.now);
	}
}

/* Ends the machine after a failed exchange with the stub. Called without the lock. */
static void end_on_trouble(struct gdb *g, bool let_alone, const struct err *err)
{
	if (let_alone)
		machine_end(g->vm, VM_END_STOPPED, NULL, NULL, NULL);
	else if (err->code == EPIPE || err->code == ECONNRESET)
		machine_end(g->vm, VM_END_GONE, NULL, NULL, NULL);
	else if (err->code)
		machine_end(g->vm, VM_END_ERROR, NULL, NULL, err);
}

/* -- the driver of the sampler ---------------------------------------------------------------- */

/*
 * Begins a turn, which holds the lock. The consumer may still read memory after the last sample, so
 * turns continue.
 */
static bool gdb_begin_turn(void *ctx)
{
	struct gdb *g = ctx;
	const bool go = atomic_load(&g->sampler.go);

	if (atomic_load(&g->quit))
		return false;
	if (go && !g->is_bound) {
		g->is_bound = true;
		thread_bind(THREAD_GDB);
	}
	if (go && !g->told_end && atomic_load(&g->vm->stop)) {
		g->told_end = true;
		sem_post(&g->ended);
	}
	gdb_lock(g);
	return true;
}

/*
 * Returns whether the machine runs, and samples can be taken. Resumes it unless it stays stopped
 * for the consumer.
 */
static bool gdb_is_ready(void *ctx, uint64_t now, uint64_t *when)
{
	struct gdb *g = ctx;

	if (gdb_link_poll(&g->link, &g->err) || g->link.dead || g->link.let_alone)
		return false;
	if (g->link.running)
		return true;
	if (now < g->linger_until) {
		*when = g->linger_until;
		return false;
	}
	if (!gdb_link_resume(&g->link, &g->err))
		return true;
	*when = now;
	return false;
}

static uint64_t gdb_time(const void *ctx, uint64_t now)
{
	const struct gdb *g = ctx;

	return gdb_link_time(&g->link, now);
}

static uint64_t gdb_due(const void *ctx)
{
	const struct gdb *g = ctx;

	/*
	 * A machine that is still stopped after a sample is resumed in the next turn, which is due
	 * at once.
	 */
	return g->link.running ? g->trigger.deadline_ns : 0;
}

static void gdb_end_turn(void *ctx, uint64_t when)
{
	struct gdb *g = ctx;
	const bool let_alone = g->link.let_alone;
	const bool running = g->link.running && !g->link.dead && !let_alone;
	const struct err err = g->err;

	pthread_mutex_unlock(&g->lock);
	if (atomic_load(&g->sampler.go) && !atomic_load(&g->vm->stop))
		end_on_trouble(g, let_alone, &err);
	sampler_wait(&g->sampler, running ? g->link.rsp.fd : -1, when);
}

static const struct sampler_driver gdb_driver = {
	.begin = gdb_begin_turn,
	.is_ready = gdb_is_ready,
	.time = gdb_time,
	.due = gdb_due,
	.take = gdb_take,
	.end = gdb_end_turn,
};

static void *gdb_main(void *arg)
{
	struct gdb *g = arg;

	sampler_run(&g->sampler);
	return NULL;
}

/* -- the machine ----------------------------------------------------------------------- */

static int op_start(struct vm *vm, struct err *e)
{
	struct gdb *g = vm->attached;
	int ret = thread_bind_prepare(THREAD_GDB);

	if (ret)
		return err_set(e, ret, "cannot bind a thread: %s", strerror(ret));
	atomic_store(&vm->first_entry_ns, clock_mono_ns());
	sampler_start(&g->sampler);
	return 0;
}

static void op_wake(struct vm *vm)
{
	struct gdb *g = vm->attached;

	/* The consumer still reads names from guest memory, if the stub answers. */
	if (atomic_load(&vm->stop))
		gdb_link_limit_wait(&g->link, vm_result(vm)->reason == VM_END_INTERRUPTED
						      ? RSP_HURRY_MS
						      : END_HURRY_MS);
	sampler_wake(&g->sampler);
}

/* Keeps the lock until op_resume(), so that no other thread stops the machine meanwhile. */
static void op_suspend(struct vm *vm)
{
	struct gdb *g = vm->attached;

	gdb_lock(g);
	if (!g->link.running && !g->link.dead && !g->link.let_alone)
		(void)gdb_link_resume(&g->link, &g->err);
}

static void op_resume(struct vm *vm)
{
	struct gdb *g = vm->attached;

	/* The periods that have passed meanwhile have no samples. */
	g->sampler.armed = false;
	pthread_mutex_unlock(&g->lock);
	sampler_wake(&g->sampler);
}

static void op_join(struct vm *vm)
{
	struct gdb *g = vm->attached;

	while (g->started && atomic_load(&g->sampler.go) && !g->joined)
		g->joined = sem_wait(&g->ended) == 0;
}

static void gdb_free(struct gdb *g)
{
	atomic_store(&g->quit, true);
	if (g->started) {
		sampler_wake(&g->sampler);
		pthread_join(g->thread, NULL);
	}
	gdb_link_close(&g->link);
	sampler_close(&g->sampler);
	sem_destroy(&g->ended);
	pthread_mutex_destroy(&g->lock);
	free(g->run);
	free(g);
}

static void op_destroy(struct vm *vm)
{
	gdb_free(vm->attached);
}

static const struct gmem *op_memory(const struct vm *vm)
{
	const struct gdb *g = vm->attached;

	return &g->consumer_mem;
}

static void op_facts(const struct vm *vm, struct attach_facts *out)
{
	struct gdb *g = vm->attached;

	memset(out, 0, sizeof(*out));
	gdb_lock(g);
	strncpy(out->where, g->cfg.gdb, sizeof(out->where) - 1);
	out->virtual_only = !g->link.is_physical;
	out->memory = out->virtual_only ? 0 : gmem_size(&g->consumer_mem);
	out->regions = g->consumer_mem.n;
	out->reads = g->capture.calls;
	out->stops = g->link.stops;
	out->memory_stops = g->memory_stops;
	out->stood_ns = g->link.stood_ns;
	out->longest_ns = g->link.longest_ns;
	pthread_mutex_unlock(&g->lock);
}

static const struct machine_ops gdb_ops = {
	.start = op_start,
	.wake = op_wake,
	.suspend = op_suspend,
	.resume = op_resume,
	.join = op_join,
	.destroy = op_destroy,
	.memory = op_memory,
	.facts = op_facts,
};

/*
 * Reads the registers of all vCPUs once, so that a stub that does not answer is noticed before
 * anything begins.
 */
static int gdb_prepare(struct gdb *g, struct err *e)
{
	uint64_t ignored;
	int ret = gdb_link_regions(&g->link, &g->capture_mem, e);

	for (unsigned int i = 0; !ret && i < g->vm->nvcpus; i++)
		ret = gdb_link_regs(&g->link, i, &g->run[i], &ignored, e);
	if (ret)
		return ret;
	g->capture_mem.virtual_cr3 = g->run[0].s.regs.sregs.cr3;
	g->consumer_mem = g->capture_mem;
	g->capture_mem.remote = &g->capture;
	g->consumer_mem.remote = &g->consumer;
	return 0;
}

static int start_thread(struct gdb *g, struct err *e)
{
	int ret;

	ret = thread_start(&g->thread, THREAD_GDB, gdb_main, g);
	g->started = ret == 0;
	return ret ? err_set(e, ret, "cannot start a thread: %s", strerror(ret)) : 0;
}

static int gdb_connect(struct gdb *g, struct err *e)
{
	int ret = sampler_open(&g->sampler);

	if (ret)
		return err_set(e, -ret, "eventfd: %s", strerror(-ret));
	ret = gdb_link_open(&g->link, g->cfg.gdb, e);
	if (ret)
		return ret;
	g->run = calloc(g->link.nthreads, sizeof(*g->run));
	return g->run ? 0 : err_nomem(e);
}

int gdb_open(struct vm **out, const struct attach_config *cfg, struct err *e)
{
	struct gdb *g = calloc(1, sizeof(*g));
	struct vm *vm;
	int ret;

	if (!g)
		return err_nomem(e);
	g->cfg = *cfg;
	g->link.rsp.fd = -1;
	init_lock(&g->lock);
	sem_init(&g->ended, 0, 0);
	gmem_remote_init_by(&g->capture, fetch_for_capture, g);
	gmem_remote_init_by(&g->consumer, fetch_for_consumer, g);
	ret = gdb_connect(g, e);
	vm = ret ? NULL
		 : foreign_machine_new(&gdb_ops, g, cfg,
				       (struct foreign_vcpus){ g->link.nthreads, g->link.nthreads },
				       e);
	if (!vm) {
		gdb_free(g);
		return -e->code;
	}
	g->vm = vm;
	g->sampler.driver = &gdb_driver;
	g->sampler.ctx = g;
	g->sampler.vm = vm;
	g->sampler.trigger = &g->trigger;
	g->sampler.ntriggers = 1;
	ret = gdb_prepare(g, e);
	ret = ret ? ret : start_thread(g, e);
	if (ret) {
		vm_destroy(vm);
		return ret;
	}
	*out = vm;
	return 0;
}
