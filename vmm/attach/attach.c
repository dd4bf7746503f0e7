/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/attach/attach.h"

#include "base/thread.h"
#include "vmm/attach/attach_state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* -- the tracer's thread --------------------------------------------------------------- */

/* Not to have it is an error only where it was demanded. */
static int open_peek(struct attach *a, struct err *e)
{
	struct err why = { 0 };
	int ret;

	if (a->cfg.technique == ATTACH_PTRACE)
		return 0;
	ret = peek_capture_open(&a->peek, a->vm, &why);
	for (unsigned int i = 0; !ret && i < a->ntracees; i++)
		ret = peek_aim(&a->peek.eye[i], a->cfg.pid, a->tracee[i].tid,
			       (unsigned int)a->process.vcpu[i].fd, a->process.vcpu[i].id, &why);
	if (!ret)
		return 0;
	peek_capture_close(&a->peek);
	snprintf(a->facts.why_not, sizeof(a->facts.why_not), "%s", why.text);
	return a->cfg.technique == ATTACH_BPF ? err_set(e, -ret, "%s", why.text) : 0;
}

static void close_peek(struct attach *a)
{
	const struct peek *p = &a->peek.peek;
	struct attach_facts *f = &a->facts;

	f->bpf = peek_is_usable(p);
	if (p->differs.code)
		snprintf(f->why_not, sizeof(f->why_not), "%s", p->differs.text);
	memcpy(f->peeks, p->count, sizeof(f->peeks));
	f->compared = p->compared;
	peek_capture_close(&a->peek);
}

static void *tracer_main(void *arg)
{
	struct attach *a = arg;
	int ret;

	ret = attach_hold(a, &a->err);
	ret = ret ? ret : open_peek(a, &a->err);
	sem_post(&a->ready);
	if (!ret) {
		while (sem_wait(&a->go) < 0)
			;
		attach_sample(a);
	}
	a->facts.reads = a->capture.calls;
	close_peek(a);
	attach_let_go(a);
	return NULL;
}

/* -- the machine ----------------------------------------------------------------------- */

static int open_descriptors(struct attach *a, struct err *e)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	/* A signal that nobody blocks and nobody handles is not even queued. */
	pthread_sigmask(SIG_BLOCK, &child, NULL);
	a->child_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	a->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return a->child_fd < 0 || a->wake_fd < 0
		       ? err_set(e, errno, "cannot open a descriptor: %s", strerror(errno))
		       : 0;
}

static int start_tracer(struct attach *a, struct err *e)
{
	int ret;

	ret = thread_start(&a->thread, tracer_main, a);
	if (ret)
		return err_set(e, ret, "cannot start a thread: %s", strerror(ret));
	a->started = true;
	while (sem_wait(&a->ready) < 0)
		;
	return a->err.code ? err_set(e, a->err.code, "%s", a->err.text) : 0;
}

static struct attach *self(const struct backend *b)
{
	return (struct attach *)(uintptr_t)b;
}

static void op_start(struct backend *b)
{
	sem_post(&self(b)->go);
}

static void op_wake(struct backend *b)
{
	uint64_t one = 1;

	(void)!write(self(b)->wake_fd, &one, sizeof(one));
}

static void op_join(struct backend *b)
{
	struct attach *a = self(b);

	if (a->started)
		pthread_join(a->thread, NULL);
	a->started = false;
}

static void op_destroy(struct backend *b)
{
	struct attach *a = self(b);

	/* It was never told to begin: the loop ends before its first sample. */
	if (a->started) {
		atomic_store(&a->vm->stop, true);
		sem_post(&a->go);
		op_join(b);
	}
	if (a->wake_fd >= 0)
		close(a->wake_fd);
	if (a->child_fd >= 0)
		close(a->child_fd);
	sem_destroy(&a->ready);
	sem_destroy(&a->go);
	free(a);
}

static const struct gmem *op_memory(const struct backend *b)
{
	return &self(b)->consumer_mem;
}

static void op_facts(const struct backend *b, struct attach_facts *out)
{
	const struct attach *a = self(b);

	*out = a->facts;
	out->pid = a->cfg.pid;
	memcpy(out->name, a->process.name, sizeof(out->name));
	out->memory = gmem_size(&a->consumer_mem);
	out->regions = a->consumer_mem.n;
	out->proofs = 0u + a->proof.text + a->proof.stack + a->proof.idt + a->proof.handlers +
		      a->proof.gdt;
	out->partial = a->proof.partial;
}

static const struct backend_ops attach_ops = {
	.start = op_start,
	.wake = op_wake,
	.join = op_join,
	.destroy = op_destroy,
	.memory = op_memory,
	.facts = op_facts,
};

int vm_attach(struct vm **out, const struct attach_config *cfg, struct err *e)
{
	struct attach *a = calloc(1, sizeof(*a));
	struct vm *vm;
	int ret;

	if (!a)
		return err_set(e, ENOMEM, "out of memory");
	a->base.ops = &attach_ops;
	a->cfg = *cfg;
	a->wake_fd = a->child_fd = -1;
	sem_init(&a->ready, 0, 0);
	sem_init(&a->go, 0, 0);
	gmem_remote_init(&a->capture, cfg->pid);
	gmem_remote_init(&a->consumer, cfg->pid);
	ret = process_look(&a->process, cfg->pid, e);
	vm = ret ? NULL : vm_new_foreign(&a->base, cfg, a->process.nvcpus, e);
	if (!vm) {
		op_destroy(&a->base);
		return -e->code;
	}
	a->vm = vm;
	ret = open_descriptors(a, e);
	ret = ret ? ret : start_tracer(a, e);
	if (ret) {
		op_join(&a->base);
		vm_destroy(vm);
		return ret;
	}
	*out = vm;
	return 0;
}
