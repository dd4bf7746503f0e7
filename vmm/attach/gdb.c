/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine behind a gdbstub, as a struct vm.
 *
 * A thread of ours stops it at each deadline, takes a sample of each vCPU, and lets it go.
 * The consumer reads memory later, when it runs again: then it is stopped anew, and stays so
 * for a moment, as reads come in bursts. The lock guards the connection and all that follows
 * from it; it is not held where another lock is taken.
 */
#include "vmm/attach/attach.h"

#include "base/clock.h"
#include "base/count.h"
#include "base/thread.h"
#include "vmm/attach/gdb_link.h"
#include "vmm/gmem_remote.h"
#include "vmm/machine.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long it goes on standing after a read, as the next one follows soon. */
#define LINGER_NS 500000u
/* A sampler without deadlines looks at control so often. */
#define IDLE_POLL_NS 100000000u
/* Descriptor tables move once, early in boot: they are asked for at each of so many samples. */
#define TABLES_EACH 64u

struct gdb {
	struct vm *vm;
	struct attach_config cfg;
	struct gdb_link link; /* under the lock */
	pthread_mutex_t lock;
	struct kvm_run *run;		      /* one for each vCPU: registers alone */
	struct gmem_remote capture, consumer; /* one for each thread that reads */
	struct gmem capture_mem, consumer_mem;
	struct trigger trigger; /* on the machine's clock, which stands when it stands */
	unsigned int control_seen, samples;
	bool armed;
	uint64_t linger_until; /* under the lock; it stands for the consumer */
	uint64_t memory_stops; /* under the lock */
	struct err err;	       /* of the connection; under the lock */
	pthread_t thread;
	bool started, joined;
	int wake_fd;
	sem_t ended; /* no more samples */
	atomic_bool go, quit;
};

/* -- memory ------------------------------------------------------------------------------ */

static void gdb_wake(struct gdb *g)
{
	uint64_t one = 1;

	(void)!write(g->wake_fd, &one, sizeof(one));
}

/* A thread that ends while it has it gives it to the next one. */
static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t robust;

	pthread_mutexattr_init(&robust);
	pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(lock, &robust);
	pthread_mutexattr_destroy(&robust);
}

/* The consumer's, which has crashed (base/fault.h), may have been in the middle of a question. */
static void gdb_lock(struct gdb *g)
{
	if (pthread_mutex_lock(&g->lock) != EOWNERDEAD)
		return;
	g->link.dead = true;
	pthread_mutex_consistent(&g->lock);
}

/* On our own thread, which holds the lock, while it stands. */
static int fetch_for_capture(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	struct gdb *g = r->ctx;

	return gdb_link_read(&g->link, host, dst, len, &g->err);
}

/* Addresses are those of what vCPU 0 is at. Has it moved on since the walk? */
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
	/* As new as the newest sample: that is what is wanted. Virtual addresses are of its space. */
	if (!g->consumer_mem.is_virtual && gmem_remote_kept(&g->capture, host, dst, len)) {
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
		gdb_wake(g);
	return ret;
}

/* -- sampling ------------------------------------------------------------------------------ */

/* Returns whether samples are taken at all. */
static bool gdb_follow(struct gdb *g, uint64_t now)
{
	struct vm *vm = g->vm;
	unsigned int seen = atomic_load_explicit(&vm->control.changes, memory_order_acquire);
	uint64_t period = vm_period(vm, 0);
	bool armed = vm_event_is_armed(vm, 0), was_armed = g->armed;
	struct trigger *t = &g->trigger;

	g->armed = armed;
	if (g->control_seen == seen && t->period_ns == period)
		return armed;
	g->control_seen = seen;
	for (unsigned int i = 0; i < vm->nvcpus; i++) {
		vm->vcpu[i].stack_max =
			atomic_load_explicit(&vm->control.stack_max, memory_order_relaxed);
		vm->vcpu[i].source[0].period = period;
	}
	/* No sample stands for the time in which the event was not armed. */
	if (t->period_ns == period && armed == was_armed)
		return armed;
	t->period_ns = period;
	t->jitter = g->cfg.event.jitter;
	t->rng = t->rng ? t->rng : (clock_mono_ns() * 0x9e3779b97f4a7c15ull) | 1;
	t->start_ns = now;
	t->period_no = 0;
	trigger_advance(t, now);
	return armed;
}

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
		gmem_remote_forget(&g->capture);
	g->capture_mem.virtual_cr3 = run->s.regs.sregs.cr3;
	view = capture_view_of(&run->s.regs.regs, &run->s.regs.sregs, &g->capture_mem);
	capture_sample_of(v, &view, cause);
	/* The consumer is going to look at the code there: then it need not stop the machine. */
	capture_read(&view, view.regs->rip, &byte, 1);
	count_add(&v->stats.overruns, cause->missed);
	return g->err.code ? -g->err.code : 0;
}

static int gdb_take_samples(struct gdb *g)
{
	struct capture_cause cause = { .reason = SAMPLE_TIMER };
	struct vm *vm = g->vm;
	uint64_t asked = clock_mono_ns(), late = gdb_link_time(&g->link, asked);
	int ret = gdb_link_stop(&g->link, &g->err);

	late -= late < g->trigger.deadline_ns ? late : g->trigger.deadline_ns;
	cause.now = clock_mono_ns();
	cause.missed = trigger_advance(&g->trigger, gdb_link_time(&g->link, cause.now));
	cause.weight = (1 + (uint64_t)cause.missed) * g->trigger.period_ns;
	if (!ret && g->samples++ % TABLES_EACH == 0)
		ret = gdb_link_tables(&g->link, &g->err);
	gmem_remote_forget(&g->capture);
	for (unsigned int i = 0; !ret && i < vm->nvcpus; i++)
		ret = sample_vcpu(g, i, &cause);
	ret = ret ? ret : gdb_link_go(&g->link, &g->err);
	for (unsigned int i = 0; !ret && i < vm->nvcpus; i++) {
		hist_add(&vm->vcpu[i].stats.latency_ns, late);
		hist_add(&vm->vcpu[i].stats.stop_ns, clock_mono_ns() - cause.now);
	}
	return ret;
}

/* One turn under the lock; returns when to come again. */
static uint64_t gdb_turn(struct gdb *g, bool sampling)
{
	uint64_t now = clock_mono_ns(), time;

	if (gdb_link_look(&g->link, &g->err) || g->link.dead || g->link.let_alone)
		return now + IDLE_POLL_NS;
	if (!g->link.running) {
		if (now < g->linger_until)
			return g->linger_until;
		if (gdb_link_go(&g->link, &g->err))
			return now;
	}
	if (!sampling)
		return now + IDLE_POLL_NS;
	time = gdb_link_time(&g->link, now);
	if (!gdb_follow(g, time))
		return now + IDLE_POLL_NS;
	if (time < g->trigger.deadline_ns)
		return now + (g->trigger.deadline_ns - time);
	(void)gdb_take_samples(g);
	return now;
}

/* What is to be told to the others once the lock is free. */
static void end_on_trouble(struct gdb *g, bool let_alone, const struct err *err)
{
	if (let_alone)
		machine_end(g->vm, VM_END_STOPPED, NULL, NULL, NULL);
	else if (err->code == EPIPE || err->code == ECONNRESET)
		machine_end(g->vm, VM_END_GONE, NULL, NULL, NULL);
	else if (err->code)
		machine_end(g->vm, VM_END_ERROR, NULL, NULL, err);
}

static void gdb_wait_until(struct gdb *g, uint64_t when, bool running)
{
	struct pollfd p[2] = { { .fd = g->wake_fd, .events = POLLIN },
			       { .fd = running ? g->link.rsp.fd : -1, .events = POLLIN } };
	uint64_t now = clock_mono_ns(), word, left = when > now ? when - now : 0;
	struct timespec ts = { (time_t)(left / NSEC_PER_SEC), (long)(left % NSEC_PER_SEC) };

	if (left && ppoll(p, 2, &ts, NULL) > 0 && p[0].revents)
		(void)!read(g->wake_fd, &word, sizeof(word));
}

static void *gdb_main(void *arg)
{
	struct gdb *g = arg;
	bool ended = false;

	while (!atomic_load(&g->quit)) {
		bool stop = atomic_load(&g->vm->stop), running, let_alone;
		struct err err;
		uint64_t when;

		/* The consumer may still have questions: so this goes on. */
		if (stop && !ended && atomic_load(&g->go)) {
			ended = true;
			sem_post(&g->ended);
		}
		gdb_lock(g);
		when = gdb_turn(g, atomic_load(&g->go) && !stop);
		running = g->link.running && !g->link.dead && !g->link.let_alone;
		let_alone = g->link.let_alone;
		err = g->err;
		pthread_mutex_unlock(&g->lock);
		if (!stop && atomic_load(&g->go))
			end_on_trouble(g, let_alone, &err);
		gdb_wait_until(g, when, running);
	}
	return NULL;
}

/* -- the machine ----------------------------------------------------------------------- */

static int op_start(struct vm *vm, struct err *e)
{
	struct gdb *g = vm->attached;

	(void)e;
	atomic_store(&vm->first_entry_ns, clock_mono_ns());
	atomic_store(&g->go, true);
	gdb_wake(g);
	return 0;
}

static void op_wake(struct vm *vm)
{
	gdb_wake(vm->attached);
}

/* Keeps the lock until op_resume(), so that no other thread stops the machine meanwhile. */
static void op_rest(struct vm *vm)
{
	struct gdb *g = vm->attached;

	gdb_lock(g);
	if (!g->link.running && !g->link.dead && !g->link.let_alone)
		(void)gdb_link_go(&g->link, &g->err);
}

static void op_resume(struct vm *vm)
{
	struct gdb *g = vm->attached;

	/* No sample stands for the periods that have passed meanwhile. */
	g->trigger.period_ns = 0;
	pthread_mutex_unlock(&g->lock);
	gdb_wake(g);
}

static void op_join(struct vm *vm)
{
	struct gdb *g = vm->attached;

	while (g->started && atomic_load(&g->go) && !g->joined)
		g->joined = sem_wait(&g->ended) == 0;
}

static void gdb_free(struct gdb *g)
{
	atomic_store(&g->quit, true);
	if (g->started) {
		gdb_wake(g);
		pthread_join(g->thread, NULL);
	}
	gdb_link_close(&g->link);
	if (g->wake_fd >= 0)
		close(g->wake_fd);
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
	.rest = op_rest,
	.resume = op_resume,
	.join = op_join,
	.destroy = op_destroy,
	.memory = op_memory,
	.facts = op_facts,
};

/* Registers of all vCPUs once: what does not answer is found out before anything begins. */
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

int vm_attach_gdb(struct vm **out, const struct attach_config *cfg, struct err *e)
{
	struct gdb *g = calloc(1, sizeof(*g));
	struct vm *vm;
	int ret;

	if (!g)
		return err_set(e, ENOMEM, "out of memory");
	g->cfg = *cfg;
	g->link.rsp.fd = -1;
	init_lock(&g->lock);
	sem_init(&g->ended, 0, 0);
	gmem_remote_init_by(&g->capture, fetch_for_capture, g);
	gmem_remote_init_by(&g->consumer, fetch_for_consumer, g);
	g->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = g->wake_fd < 0 ? err_set(e, errno, "eventfd: %s", strerror(errno)) : 0;
	ret = ret ? ret : gdb_link_open(&g->link, cfg->gdb, e);
	g->run = ret ? NULL : calloc(g->link.nthreads, sizeof(*g->run));
	if (!ret && !g->run)
		ret = err_set(e, ENOMEM, "out of memory");
	vm = ret ? NULL : machine_new_foreign(&gdb_ops, g, cfg, g->link.nthreads, e);
	if (!vm) {
		gdb_free(g);
		return -e->code;
	}
	g->vm = vm;
	ret = gdb_prepare(g, e);
	ret = ret ? ret : start_thread(g, e);
	if (ret) {
		vm_destroy(vm);
		return ret;
	}
	*out = vm;
	return 0;
}
