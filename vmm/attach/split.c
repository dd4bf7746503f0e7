/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process without rights over the VMM: a struct vm whose rings, statistics and memory come from
 * the tracer's process. It knows the machine's processes only by their numbers.
 */
#include "vmm/attach/split.h"

#include "base/clock.h"
#include "base/fds.h"
#include "base/thread.h"
#include "base/gmem_remote.h"
#include "vmm/machine.h"
#include "vmm/control.h"
#include "vmm/attach/foreign.h"
#include "vmm/attach/split_tracer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* An answer takes microseconds, or as long as a thread of the machine takes to stop. */
#define ANSWER_S 10
#define MEMORY_S 2
/* The socket for orders is full only if the other process does not run. */
#define ORDER_S 1
/* Interval of the wait for the child at the end, which must not stay as a zombie. */
#define END_NAP_NS 2000000
#define END_NAPS 500u
/* Interval at which cfg.gives_up() is called while the other process attaches. */
#define HELLO_LOOK_MS 50

struct split {
	struct split_link link;
	pid_t child;
	struct vm *vm;
	const struct split_board *board; /* read-only */
	size_t board_size;
	struct split_tails *tails;
	struct split_hello hello;
	struct gmem mem;
	struct gmem_remote remote;
	struct serve_answer answer; /* used by the consumer's thread */
	uint32_t memory_number;
	uint32_t map_seen;    /* used by the consumer's thread: map.changes */
	pthread_mutex_t lock; /* orders are sent under it; the next three, too */
	uint32_t number;
	bool joined, lost;
	pthread_t listener;
	bool listens;
};

/* -- messages ----------------------------------------------------------------------------------- */

static void set_timeout(int fd, int option, time_t seconds)
{
	const struct timeval t = { .tv_sec = seconds };

	(void)setsockopt(fd, SOL_SOCKET, option, &t, sizeof(t));
}

/* Returns the bytes of the next message, 0 at the end, or -errno. */
static ssize_t next_message(int fd, void *dst, size_t room)
{
	ssize_t n;

	do
		n = read(fd, dst, room);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* Sends an order. Called with the lock held. */
static bool send_order(struct split *s, struct serve_order *o)
{
	o->number = ++s->number;
	s->lost |= !split_send(s->link.orders, o, sizeof(*o));
	return !s->lost;
}

static void split_tell(struct split *s, struct serve_order *o)
{
	pthread_mutex_lock(&s->lock);
	if (!s->lost)
		(void)send_order(s, o);
	pthread_mutex_unlock(&s->lock);
}

/* Sends an order and waits for its answer. Returns whether there was one. */
static bool split_ask(struct split *s, enum serve_op op, struct serve_done *out)
{
	struct serve_order o = { .op = op };
	struct serve_done done = { .number = 0 };
	bool good = false;

	pthread_mutex_lock(&s->lock);
	if (!s->lost && send_order(s, &o)) {
		while (!good && !s->lost) {
			s->lost = next_message(s->link.orders, &done, sizeof(done)) != sizeof(done);
			good = !s->lost && done.number == o.number;
		}
	}
	pthread_mutex_unlock(&s->lock);
	if (good)
		*out = done;
	return good;
}

/* -- guest memory ------------------------------------------------------------------------------- */

static int fetch_piece(struct split *s, uint64_t host, void *dst, uint32_t len)
{
	const struct serve_request a = {
		.number = ++s->memory_number, .len = len, .host = host, .tables = s->remote.tables
	};
	ssize_t n;

	if (!split_send(s->link.memory, &a, sizeof(a)))
		return -ESRCH;
	/* A late answer to an earlier request is skipped. */
	do {
		n = next_message(s->link.memory, &s->answer, sizeof(s->answer));
		if (n < (ssize_t)SERVE_ANSWER_HEAD)
			return n == -EAGAIN ? -EFAULT : -ESRCH;
	} while (s->answer.number != a.number);
	if (s->answer.ret)
		return s->answer.ret < 0 ? s->answer.ret : -EFAULT;
	if ((size_t)n != SERVE_ANSWER_HEAD + len)
		return -EFAULT;
	memcpy(dst, s->answer.bytes, len);
	return 0;
}

static int fetch_memory(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	int ret = 0;

	for (size_t done = 0; !ret && done < len;) {
		size_t n = len - done < SERVE_MAX ? len - done : SERVE_MAX;

		ret = fetch_piece(r->ctx, host + done, (uint8_t *)dst + done, (uint32_t)n);
		done += n;
	}
	return ret;
}

/* -- the machine -------------------------------------------------------------------------------- */

/* Turns the end of the other machine, or of the tracer's process, into the end of this struct vm. */
static void *listen_main(void *arg)
{
	struct split *s = arg;
	struct split_end end;
	struct err e = { 0 };

	if (next_message(s->link.end, &end, sizeof(end)) == sizeof(end) &&
	    end.reason > VM_RUNNING && end.reason <= VM_END_ERROR) {
		end.err.text[sizeof(end.err.text) - 1] = 0;
		if (end.err.code)
			err_set(&e, end.err.code > 0 ? end.err.code : EIO, "%s", end.err.text);
		machine_end(s->vm, (enum vm_end_reason)end.reason, NULL, NULL, e.code ? &e : NULL);
	} else {
		err_set(&e, ECONNRESET,
			"the process that held the machine's threads has ended; the machine goes "
			"on, "
			"and the profile ends here");
		machine_end(s->vm, VM_END_ERROR, NULL, NULL, &e);
	}
	return NULL;
}

static int op_start(struct vm *vm, struct err *e)
{
	struct split *s = vm->attached;
	struct serve_done done;
	/*
	 * Started last, because the thread is bound when it begins. Messages until then wait in its
	 * socket.
	 */
	int ret = thread_start(&s->listener, THREAD_ATTACH_LINK, listen_main, s);

	if (ret)
		return err_set(e, ret, "cannot start a thread: %s", strerror(ret));
	s->listens = true;
	vm->ops->changed(vm, VM_CHANGED_CONTROL, NULL);
	if (!split_ask(s, SERVE_START, &done))
		return err_set(e, ECONNRESET,
			       "the process that held the machine's threads has ended");
	atomic_store(&vm->first_entry_ns, done.first_entry_ns);
	return 0;
}

static void op_changed(struct vm *vm, enum vm_change what, const void *how)
{
	struct split *s = vm->attached;
	struct serve_order o = { .op = SERVE_CONTROL };

	switch (what) {
	case VM_CHANGED_CONTROL:
		o.u.control = (struct serve_control){
			.period = vm_period(vm, 0),
			.stack_max = atomic_load(&vm->control.stack_max),
			.collect = vm_is_collecting(vm),
			.armed = vm_event_is_armed(vm, 0),
		};
		for (unsigned int i = 0; i < vm->places; i++)
			o.u.control.vcpus |= (uint64_t)vm_vcpu_is_collecting(vm, i) << i;
		break;
	case VM_CHANGED_SLIDE:
		o.op = SERVE_SLIDE;
		memcpy(&o.u.slide, how, sizeof(o.u.slide));
		break;
	case VM_CHANGED_TASK:
		o.op = SERVE_TASK;
		memcpy(&o.u.task, how, sizeof(o.u.task));
		break;
	case VM_CHANGED_LAYOUT:
		o.op = SERVE_LAYOUT;
		memcpy(&o.u.layout, how, sizeof(o.u.layout));
		break;
	case VM_CHANGED_THREAD:
		o.op = SERVE_THREAD;
		memcpy(&o.u.thread, how, sizeof(o.u.thread));
		break;
	}
	split_tell(s, &o);
}

static void op_wake(struct vm *vm)
{
	struct serve_order o = { .op = SERVE_END };

	if (atomic_load(&vm->stop))
		split_tell(vm->attached, &o);
	else
		op_changed(vm, VM_CHANGED_CONTROL, NULL);
}

static void op_suspend(struct vm *vm)
{
	struct serve_done done;

	(void)split_ask(vm->attached, SERVE_REST, &done);
}

static void op_resume(struct vm *vm)
{
	struct serve_done done;

	(void)split_ask(vm->attached, SERVE_RESUME, &done);
}

static void op_join(struct vm *vm)
{
	struct split *s = vm->attached;
	struct serve_done done;

	if (!s->joined)
		(void)split_ask(s, SERVE_JOIN, &done);
	s->joined = true;
}

static void close_link(struct split_link *l)
{
	const int fd[] = { l->orders, l->memory, l->end };

	for (unsigned int i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		if (fd[i] >= 0)
			close(fd[i]);
	*l = (struct split_link){ -1, -1, -1 };
}

/*
 * Waits for the child, which ends by itself without its sockets. If it takes longer, init reaps it.
 */
static void reap(pid_t child)
{
	const struct timespec nap = { .tv_nsec = END_NAP_NS };

	for (unsigned int i = 0; child > 0 && i < END_NAPS; i++) {
		pid_t got = waitpid(child, NULL, WNOHANG);

		if (got > 0 || (got < 0 && errno != EINTR))
			return;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	}
}

static void split_free(struct split *s)
{
	if (s->listens) {
		shutdown(s->link.end, SHUT_RDWR);
		pthread_join(s->listener, NULL);
	}
	close_link(&s->link);
	reap(s->child);
	if (s->board)
		munmap((void *)(uintptr_t)s->board, s->board_size);
	if (s->tails)
		munmap(s->tails, sizeof(*s->tails));
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void op_destroy(struct vm *vm)
{
	op_join(vm);
	split_free(vm->attached);
}

static const struct gmem *op_memory(const struct vm *vm)
{
	return &((const struct split *)vm->attached)->mem;
}

/* Adopts vCPUs that were added. Their number comes from another process and is checked. */
static void look_at_vcpus(struct split *s)
{
	const uint32_t n = atomic_load(&s->board->vcpus);

	if (n > s->vm->nvcpus && n <= s->vm->places)
		s->vm->nvcpus = n;
}

/*
 * Copies the location of memory if it has changed. The bytes come from another process and are
 * checked.
 */
static void op_look_at_memory(struct vm *vm)
{
	struct split *s = vm->attached;
	const struct split_map *map = &s->board->map;
	const uint32_t changes = atomic_load(&map->changes);
	struct gmem now = s->mem;

	look_at_vcpus(s);
	if (changes == s->map_seen || changes % 2)
		return;
	now.n = map->n;
	memcpy(now.region, map->region, sizeof(now.region));
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load(&map->changes) != changes || now.n > GMEM_MAX_REGIONS)
		return;
	s->map_seen = changes;
	s->mem.n = now.n;
	memcpy(s->mem.region, now.region, sizeof(now.region));
	gmem_remote_invalidate(&s->remote);
}

static void op_facts(const struct vm *vm, struct attach_facts *out)
{
	const struct split *s = vm->attached;

	*out = s->board->facts;
	/* The other process may be writing them. */
	out->name[sizeof(out->name) - 1] = 0;
	out->memory_why_not[sizeof(out->memory_why_not) - 1] = 0;
	out->why_not[sizeof(out->why_not) - 1] = 0;
	out->where[sizeof(out->where) - 1] = 0;
	out->added_ids[sizeof(out->added_ids) - 1] = 0;
}

static pid_t op_vcpu_tid(const struct vm *vm, unsigned int vcpu)
{
	const struct split *s = vm->attached;

	return vcpu < vm->nvcpus ? atomic_load(&s->board->tid[vcpu]) : 0;
}

static const struct machine_ops split_ops = {
	.start = op_start,
	.wake = op_wake,
	.changed = op_changed,
	.suspend = op_suspend,
	.resume = op_resume,
	.join = op_join,
	.destroy = op_destroy,
	.memory = op_memory,
	.refresh_memory = op_look_at_memory,
	.vcpu_tid = op_vcpu_tid,
	.facts = op_facts,
};

/* -- the two processes -------------------------------------------------------------------------- */

static int pair(int *here, int *there)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) < 0)
		return -errno;
	*here = fd[0];
	*there = fd[1];
	return 0;
}

static int make_links(struct split_link *here, struct split_link *there)
{
	int ret = pair(&here->orders, &there->orders);

	if (ret)
		return ret;
	ret = pair(&here->memory, &there->memory);
	return ret ? ret : pair(&here->end, &there->end);
}

static int begin_child(struct split *s, const struct attach_config *cfg, struct err *e)
{
	struct split_link there = { -1, -1, -1 };
	int ret = make_links(&s->link, &there);

	if (!ret) {
		fflush(NULL);
		s->child = fork();
		if (!s->child)
			split_tracer(cfg, &there);
		ret = s->child < 0 ? -errno : 0;
	}
	close_link(&there);
	return ret ? err_set(e, -ret, "cannot start a process: %s", strerror(-ret)) : 0;
}

/*
 * Checks the first message of the other process, and terminates the text of its error. came: number
 * of bytes received, or -1.
 */
static int check_hello(struct split_hello *h, ssize_t came, const struct fds *fds, struct err *e)
{
	if (came != sizeof(*h))
		return err_set(e, ECONNRESET, "the process that looks for the machine has ended");
	h->err.text[sizeof(h->err.text) - 1] = 0;
	if (h->err.code)
		return err_set(e, h->err.code > 0 ? h->err.code : EIO, "%s", h->err.text);
	if (fds->n != 2 || !h->vcpus || h->vcpus > h->places || h->places > ATTACH_MAX_VCPUS ||
	    h->regions > GMEM_MAX_REGIONS || h->ring_size != ring_round(h->ring_size) ||
	    h->ring_size > SIZE_MAX / 2 / h->places)
		return err_set(e, EPROTO, "the process that traces does not answer in order");
	return 0;
}

/* Waits for the other process to attach, until the time limit or until the caller gives up. */
static int await_hello(const struct split *s, const struct attach_config *cfg, struct err *e)
{
	struct pollfd p = { .fd = s->link.orders, .events = POLLIN };

	while (cfg->until_ns || cfg->gives_up) {
		if (cfg->until_ns && clock_mono_ns() >= cfg->until_ns)
			return err_set(e, ETIMEDOUT,
				       "--timeout: there was no guest before the time was over");
		if (cfg->gives_up && cfg->gives_up())
			return err_set(e, EINTR, "interrupted before the VMM ran a guest");
		if (poll(&p, 1, HELLO_LOOK_MS) > 0)
			break;
	}
	return 0;
}

static int take_hello(struct split *s, int fd[2], struct err *e)
{
	struct split_hello *h = &s->hello;
	struct fds fds = { .n = 2 };
	const ssize_t came = fds_receive(s->link.orders, h, sizeof(*h), &fds, 0);
	int ret = check_hello(h, came, &fds, e);

	if (ret)
		fds_close(&fds);
	else
		memcpy(fd, fds.fd, 2 * sizeof(int));
	return ret;
}

static int map_board(struct split *s, const int fd[2], struct err *e)
{
	void *p;

	s->board_size = split_board_size(s->hello.places, s->hello.ring_size);
	p = mmap(NULL, s->board_size, PROT_READ, MAP_SHARED, fd[0], 0);
	if (p == MAP_FAILED)
		return err_set(e, errno, "cannot map rings: %s", strerror(errno));
	s->board = p;
	p = mmap(NULL, sizeof(*s->tails), PROT_READ | PROT_WRITE, MAP_SHARED, fd[1], 0);
	if (p == MAP_FAILED)
		return err_set(e, errno, "cannot map rings: %s", strerror(errno));
	s->tails = p;
	return 0;
}

static void show_vcpus(struct split *s)
{
	uint8_t *rings = (uint8_t *)(uintptr_t)s->board + split_board_head();

	for (unsigned int i = 0; i < s->vm->places; i++) {
		struct vcpu *v = &s->vm->vcpu[i];

		v->shown = &s->board->stats[i];
		ring_init_shared(&v->ring, rings + i * s->hello.ring_size, s->hello.ring_size,
				 (struct ring_head *)(uintptr_t)&s->board->front[i],
				 &s->tails->back[i]);
	}
}

static int make_machine(struct split *s, const struct attach_config *cfg, struct err *e)
{
	struct attach_config own = *cfg;

	own.ring_size = 0;
	s->mem.n = s->hello.regions;
	memcpy(s->mem.region, s->hello.region, sizeof(s->mem.region));
	s->mem.remote = &s->remote;
	gmem_remote_init_by(&s->remote, fetch_memory, s);
	set_timeout(s->link.memory, SO_RCVTIMEO, MEMORY_S);
	set_timeout(s->link.memory, SO_SNDTIMEO, MEMORY_S);
	set_timeout(s->link.orders, SO_RCVTIMEO, ANSWER_S);
	set_timeout(s->link.orders, SO_SNDTIMEO, ORDER_S);
	s->vm = foreign_machine_new(&split_ops, s, &own,
				    (struct foreign_vcpus){ s->hello.vcpus, s->hello.places }, e);
	if (!s->vm)
		return -e->code;
	show_vcpus(s);
	return 0;
}

/*
 * Starts the other process, waits until it has attached, and makes the struct vm. Stores the
 * descriptors of the board and of the tails in fd[], which the caller closes, also after an error.
 */
static int split_begin(struct split *s, const struct attach_config *cfg, int fd[2], struct err *e)
{
	int ret = begin_child(s, cfg, e);

	if (ret)
		return ret;
	ret = await_hello(s, cfg, e);
	if (ret)
		return ret;
	ret = take_hello(s, fd, e);
	if (ret)
		return ret;
	ret = map_board(s, fd, e);
	return ret ? ret : make_machine(s, cfg, e);
}

int split_open(struct vm **out, const struct attach_config *cfg, struct err *e)
{
	struct split *s = calloc(1, sizeof(*s));
	int fd[2] = { -1, -1 }, ret;

	if (!s)
		return err_nomem(e);
	s->link = (struct split_link){ -1, -1, -1 };
	pthread_mutex_init(&s->lock, NULL);
	ret = split_begin(s, cfg, fd, e);
	for (unsigned int i = 0; i < 2; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	if (ret) {
		split_free(s);
		return ret;
	}
	*out = s->vm;
	return 0;
}
