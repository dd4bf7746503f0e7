/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that may trace. Its main thread carries out orders, the tracer's thread stores
 * samples in the rings of the board, and a third thread answers requests for guest memory.
 */
#include "vmm/attach/split_tracer.h"

#include "base/clock.h"
#include "base/count.h"
#include "base/fds.h"
#include "base/file.h"
#include "base/thread.h"
#include "base/gmem_remote.h"
#include "vmm/machine.h"
#include "vmm/control.h"
#include "vmm/attach/foreign.h"
#include "vmm/capture/capture_python.h"
#include "vmm/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Interval at which statistics are copied to the board. */
#define SHOW_NS 20000000u
/*
 * Limit of the bytes of all rings. Rings of vCPUs that may be added later need address space, and
 * memory only for samples. If they exceed the limit, no vCPUs can be added.
 */
#define RINGS_MAX (UINT64_C(1) << 30)
/* Time for the tracer's thread to release the machine after the other process has ended. */
#define LET_GO_MS 1000u
#define JOIN_LOOK_MS 50u

struct split_side {
	struct split_link link;
	struct vm *vm;
	struct split_board *board;
	uint64_t shown_ns;
	pthread_mutex_t lock; /* protects `memory`, which the tracer's thread changes */
	struct serve_memory memory;
	struct serve_answer answer; /* used by the serving thread alone */
	int signals;
	bool end_is_told;
};

/* -- samples and figures ------------------------------------------------------------------------ */

/* Shows added vCPUs on the board. The ring of a vCPU exists before it is shown. */
static void show_vcpus(struct split_side *s)
{
	const unsigned int n = s->vm->nvcpus;

	for (unsigned int i = 0; i < n; i++)
		atomic_store(&s->board->tid[i], vm_vcpu_tid(s->vm, i));
	atomic_store(&s->board->vcpus, n);
}

static void side_show(struct split_side *s)
{
	struct attach_facts facts;

	for (unsigned int i = 0; i < s->vm->nvcpus; i++)
		count_copy(&s->board->stats[i], &s->vm->vcpu[i].stats, sizeof(s->board->stats[i]));
	foreign_facts(s->vm, &facts);
	s->board->facts = facts;
	show_vcpus(s);
}

/* Updates the board. Called by the tracer's thread, between two samples. */
static void side_between(void *ctx)
{
	struct split_side *s = ctx;
	const uint64_t now = clock_mono_ns();

	if (now - s->shown_ns > SHOW_NS) {
		s->shown_ns = now;
		side_show(s);
	}
}

/* Copies the location of guest memory to the board. Called by the tracer's thread. */
static void side_memory_changed(void *ctx, const struct gmem *mem)
{
	struct split_side *s = ctx;
	struct split_map *map = &s->board->map;

	pthread_mutex_lock(&s->lock);
	s->memory.n = mem->n;
	memcpy(s->memory.region, mem->region, sizeof(s->memory.region));
	pthread_mutex_unlock(&s->lock);
	atomic_fetch_add(&map->changes, 1);
	atomic_thread_fence(memory_order_release);
	map->n = mem->n;
	memcpy(map->region, mem->region, sizeof(map->region));
	atomic_fetch_add(&map->changes, 1);
}

/*
 * Returns whether the other process has ended. Called by the tracer's thread before the serving
 * thread exists, which would notice that.
 */
static bool side_is_over(void *ctx)
{
	const struct split_side *s = ctx;
	struct pollfd p = { .fd = s->link.orders };

	return poll(&p, 1, 0) > 0;
}

/* -- guest memory ------------------------------------------------------------------------------- */

static int read_memory(void *ctx, bool tables, uint64_t host, void *dst, size_t len)
{
	struct gmem_remote *r = ctx;

	r->tables = tables;
	return r->fetch(r, host, dst, len);
}

/*
 * Answers requests for guest memory until the other process ends. Then it gives the rest of this
 * process LET_GO_MS to end, and exits, so that the kernel detaches from the machine in any case.
 */
static void *serve_main(void *arg)
{
	const struct timespec patience = { LET_GO_MS / 1000, LET_GO_MS % 1000 * 1000000 };
	struct split_side *s = arg;
	uint8_t ask[sizeof(struct serve_request) +
		    1]; /* a longer message is cut, and found to be too long */
	ssize_t n;

	for (;;) {
		size_t len;

		n = read(s->link.memory, ask, sizeof(ask));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		pthread_mutex_lock(&s->lock);
		len = serve_memory(&s->memory, ask, (size_t)n, &s->answer);
		pthread_mutex_unlock(&s->lock);
		if (!len || !split_send(s->link.memory, &s->answer, len))
			break;
	}
	shutdown(s->link.orders, SHUT_RDWR);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &patience, NULL);
	syscall(SYS_exit_group, 1);
	return NULL;
}

/* -- orders ------------------------------------------------------------------------------------- */

static void side_answer(struct split_side *s, uint32_t number)
{
	const struct serve_done done = { .number = number,
					 .first_entry_ns = vm_first_entry_ns(s->vm) };

	(void)split_send(s->link.orders, &done, sizeof(done));
}

/* Returns whether the other process still exists. */
static bool other_side_is_there(const struct split_side *s)
{
	struct pollfd p = { .fd = s->link.orders, .events = 0 };
	int n;

	do
		n = poll(&p, 1, 0);
	while (n < 0 && errno == EINTR);
	return n == 0;
}

/* Waits until no thread is held. Limits the wait to LET_GO_MS if the other process has ended. */
static void side_join(struct split_side *s)
{
	unsigned int alone_ms = 0;

	if (!atomic_load(&s->vm->stop))
		vm_end(s->vm, VM_END_ASKED);
	while (!attach_join_for(s->vm, JOIN_LOOK_MS)) {
		alone_ms += other_side_is_there(s) ? 0 : JOIN_LOOK_MS;
		if (alone_ms > LET_GO_MS)
			syscall(SYS_exit_group, 1);
	}
	if (s->board)
		side_show(s);
}

static void side_control(struct split_side *s, const struct serve_control *c)
{
	struct vm *vm = s->vm;

	vm_collect(vm, c->collect);
	for (unsigned int i = 0; i < vm->places; i++)
		vm_collect_vcpu(vm, i, c->vcpus >> i & 1);
	if (vm_period(vm, 0) != c->period)
		vm_set_period(vm, 0, c->period);
	if (vm_event_is_armed(vm, 0) != c->armed)
		vm_arm_event(vm, 0, c->armed);
	if (atomic_load(&vm->control.stack_max) != c->stack_max)
		vm_set_stack_max(vm, c->stack_max);
}

static void side_start(struct split_side *s)
{
	const struct timespec nap = { .tv_nsec = 100000 };
	struct err ignored = { 0 };

	(void)vm_start(s->vm, &ignored);
	for (unsigned int i = 0; i < 10000 && !vm_first_entry_ns(s->vm); i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
}

static void side_carry_out(struct split_side *s, const struct serve_order *o)
{
	switch ((enum serve_op)o->op) {
	case SERVE_START:
		side_start(s);
		break;
	case SERVE_END:
		vm_end(s->vm, VM_END_ASKED);
		return;
	case SERVE_JOIN:
		side_join(s);
		break;
	case SERVE_REST:
		foreign_suspend(s->vm);
		break;
	case SERVE_RESUME:
		foreign_resume(s->vm);
		break;
	case SERVE_CONTROL:
		side_control(s, &o->u.control);
		return;
	case SERVE_SLIDE:
		vm_set_slide(s->vm, o->u.slide);
		return;
	case SERVE_TASK:
		vm_set_task_plan(s->vm, &o->u.task);
		return;
	case SERVE_LAYOUT:
		(void)capture_python_find_layout(s->vm, &o->u.layout);
		return;
	case SERVE_THREAD:
		capture_python_find_thread(s->vm, &o->u.thread);
		return;
	}
	side_answer(s, o->number);
}

/* Carries out the next order. Returns false if the other process has ended. */
static bool side_take_order(struct split_side *s)
{
	struct serve_order o;
	uint8_t bytes[sizeof(o) + 1];
	ssize_t n = read(s->link.orders, bytes, sizeof(bytes));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (!n || serve_order(&o, bytes, (size_t)n))
		return false;
	side_carry_out(s, &o);
	return true;
}

static void side_tell_end(struct split_side *s)
{
	const struct vm_result *r = vm_result(s->vm);
	struct split_end end = { .reason = r->reason, .err = r->err };

	s->end_is_told = true;
	(void)split_send(s->link.end, &end, sizeof(end));
}

static void side_serve(struct split_side *s)
{
	struct pollfd p[3] = { { .fd = s->link.orders, .events = POLLIN },
			       { .fd = vm_end_fd(s->vm), .events = POLLIN },
			       { .fd = s->signals, .events = POLLIN } };

	for (;;) {
		if (poll(p, 3, -1) < 0)
			continue;
		if (p[2].revents) {
			vm_end(s->vm, VM_END_INTERRUPTED);
			p[2].fd = -1;
		}
		if (p[1].revents) {
			side_tell_end(s);
			p[1].fd = -1;
		}
		if (p[0].revents && !side_take_order(s))
			return;
	}
}

/* -- the process -------------------------------------------------------------------------------- */

/*
 * Closes all descriptors that this process does not need: the other process's files, its terminal
 * and its standard output.
 */
static void close_others(const struct split_link *link)
{
	const int keep[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO,
			     link->orders, link->memory,  link->end };
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (none >= 0) {
		dup2(none, STDIN_FILENO);
		dup2(none, STDOUT_FILENO);
	}
	fds_close_others(keep, sizeof(keep) / sizeof(keep[0]));
}

/*
 * Leaves the process group, so that a terminal's or a shell's signals reach the other process only.
 * Signals to this process end the samples.
 */
static int take_signals(struct split_side *s)
{
	sigset_t all, end;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	/*
	 * setsid() is not used, because each session has a separate share of the processor
	 * (sched(7), autogroup).
	 */
	(void)setpgid(0, 0);
	sigemptyset(&end);
	sigaddset(&end, SIGINT);
	sigaddset(&end, SIGTERM);
	sigaddset(&end, SIGHUP);
	s->signals = signalfd(-1, &end, SFD_CLOEXEC);
	return s->signals < 0 ? -errno : 0;
}

/* Returns the number of vCPUs for which there are rings. */
static unsigned int places_for(const struct vm *vm, size_t ring_size)
{
	const size_t most = RINGS_MAX / ring_size;

	return most >= vm->places  ? vm->places
	       : most > vm->nvcpus ? (unsigned int)most
				   : vm->nvcpus;
}

static int make_board(struct split_side *s, size_t ring_size, int fd[2], struct err *e)
{
	const size_t size = split_board_size(s->vm->places, ring_size);
	struct split_board *board;
	struct split_tails *tails;
	void *p;
	int ret = file_in_memory("samples", size, &fd[0], e);

	if (ret)
		return ret;
	ret = file_in_memory("tails of rings", sizeof(*tails), &fd[1], e);
	if (ret)
		return ret;
	ret = file_seal(fd[0], FILE_SEAL_SIZE, "samples", e);
	if (ret)
		return ret;
	ret = file_seal(fd[1], FILE_SEAL_SIZE, "tails of rings", e);
	if (ret)
		return ret;
	board = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd[0], 0);
	p = mmap(NULL, sizeof(*tails), PROT_READ, MAP_SHARED, fd[1], 0);
	if (board == MAP_FAILED || p == MAP_FAILED)
		return err_set(e, errno, "cannot map memory for rings: %s", strerror(errno));
	/* From here on it can only be mapped for reading (Linux 5.1). */
	if (fcntl(fd[0], F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0)
		return err_set(e, errno, "cannot seal memory: %s", strerror(errno));
	tails = p;
	/* Samples are written to the shared rings. None is taken before vm_start(). */
	for (unsigned int i = 0; i < s->vm->places; i++) {
		ring_init_shared(&s->vm->vcpu[i].ring,
				 (uint8_t *)board + split_board_head() + i * ring_size, ring_size,
				 &board->front[i], &tails->back[i]);
	}
	foreign_facts(s->vm, &board->facts);
	s->board = board;
	show_vcpus(s);
	return 0;
}

static void say_hello(const struct split_side *s, const struct split_hello *h, const int fd[2])
{
	const struct fds fds = { { fd[0], fd[1] }, h->err.code ? 0 : 2 };

	(void)fds_send(s->link.orders, h, sizeof(*h), &fds, MSG_NOSIGNAL);
}

static int side_attach(struct split_side *s, const struct attach_config *cfg, struct err *e)
{
	struct attach_config own = *cfg;
	int ret = take_signals(s);

	if (ret)
		return err_set(e, -ret, "signalfd: %s", strerror(-ret));
	own.ring_size = 0; /* make_board() */
	own.between = side_between;
	own.is_over = side_is_over;
	own.memory_changed = side_memory_changed;
	own.between_ctx = s;
	ret = cfg->bind ? cfg->bind(cfg->bind_ctx, ATTACH_BIND_PROCESS, e) : 0;
	return ret ? ret : attach_open(&s->vm, &own, e);
}

static int side_prepare(struct split_side *s, const struct attach_config *cfg,
			struct split_hello *h, int fd[2])
{
	int ret = side_attach(s, cfg, &h->err);
	const struct gmem *mem;
	pthread_t serving;

	if (ret)
		return ret;
	mem = vm_memory(s->vm);
	h->vcpus = s->vm->nvcpus;
	h->regions = s->memory.n = mem->n;
	h->ring_size = ring_round(cfg->ring_size);
	h->places = s->vm->places = places_for(s->vm, h->ring_size);
	memcpy(h->region, mem->region, sizeof(h->region));
	memcpy(s->memory.region, mem->region, sizeof(h->region));
	s->memory.read = read_memory;
	s->memory.ctx = mem->remote;
	ret = make_board(s, h->ring_size, fd, &h->err);
	if (ret)
		return ret;
	ret = thread_start(&serving, THREAD_ATTACH_SERVE, serve_main, s);
	if (ret)
		return err_set(&h->err, ret, "cannot start a thread: %s", strerror(ret));
	return cfg->bind ? cfg->bind(cfg->bind_ctx, ATTACH_BIND_MAIN, &h->err) : 0;
}

_Noreturn void split_tracer(const struct attach_config *cfg, const struct split_link *link)
{
	struct split_side *s = calloc(1, sizeof(*s));
	struct split_hello hello = { .vcpus = 0 };
	int fd[2] = { -1, -1 }, ret;

	prctl(PR_SET_NAME, "kvmprof-tracer");
	if (!s)
		syscall(SYS_exit_group, 1);
	s->link = *link;
	pthread_mutex_init(&s->lock, NULL);
	close_others(link);
	ret = side_prepare(s, cfg, &hello, fd);
	say_hello(s, &hello, fd);
	for (unsigned int i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	if (!ret)
		side_serve(s);
	if (s->vm)
		side_join(s);
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}
