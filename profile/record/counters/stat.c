/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The counters' sources of a machine: opened, read while it runs, and kept when its
 * threads end. stat_table.c makes the table of them.
 */
#include "profile/record/counters/stat.h"

#include "base/clock.h"
#include "vmm/vm.h"
#include "vmm/vcpu_thread.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stat_reader {
	struct vm *vm;
	struct kvmstats kvm[VM_MAX_VCPUS];
	uint8_t *data[VM_MAX_VCPUS];	     /* owned; NULL: no statistics */
	struct vcpu_stats own[VM_MAX_VCPUS]; /* as of the last stat_read() */
	struct stat_thread last[VM_MAX_VCPUS];
	struct stat_thread_files files[VM_MAX_VCPUS];
	atomic_bool ended[VM_MAX_VCPUS]; /* `last` is final */
};

int stat_open(struct stat_reader **out, struct vm *vm, struct err *e)
{
	struct stat_reader *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(e);
	s->vm = vm;
	for (unsigned int i = 0; i < VM_MAX_VCPUS; i++)
		s->kvm[i].fd = s->files[i].sched = s->files[i].times = -1;
	for (unsigned int i = 0; i < vm_vcpus(vm); i++) {
		int fd = vm_stats_fd(vm, i);

		/* Without them their counters are not supported; the others are shown. */
		if (fd < 0 || kvmstats_open(&s->kvm[i], fd, NULL) < 0)
			continue;
		s->data[i] = calloc(1, s->kvm[i].data_len);
		if (!s->data[i]) {
			stat_close(s);
			return err_nomem(e);
		}
	}
	*out = s;
	return 0;
}

void stat_close(struct stat_reader *s)
{
	if (!s)
		return;
	for (unsigned int i = 0; i < VM_MAX_VCPUS; i++) {
		kvmstats_close(&s->kvm[i]);
		stat_thread_close(&s->files[i]);
		free(s->data[i]);
	}
	free(s);
}

void stat_vcpu_begins(struct stat_reader *s, unsigned int vcpu)
{
	stat_thread_open(&s->files[vcpu], gettid());
}

void stat_vcpu_ends(struct stat_reader *s, unsigned int vcpu)
{
	stat_thread_read_files(&s->last[vcpu], &s->files[vcpu]);
	atomic_store_explicit(&s->ended[vcpu], true, memory_order_release);
}

/*
 * Extends the account to now: the thread's processor time since its last exit is read from outside.
 */
static void account_up_to(struct account *a, uint64_t now, const struct stat_thread *th, int tid)
{
	enum account_span span = (enum account_span)a->span;
	uint64_t len = now > a->now_ns ? now - a->now_ns : 0;
	struct account_thread t = { th->have_sched, 0, th->delay_ns };

	/*
	 * clock_getcpuclockid(3) of a thread: its number as the kernel packs it,
	 * CPUCLOCK_PERTHREAD_MASK | SCHED.
	 */
	t.cpu_ns = clock_ns((clockid_t)((~(unsigned int)tid << 3) | 6));
	if (!a->begun_ns || !len)
		return;
	/* The host counts a wait for a processor only when it ends. */
	if (th->have_sched && th->have_times && th->state == 'R')
		t.delay_ns = UINT64_MAX;
	account_next(a, span, now);
	if (t.cpu_ns)
		account_update(a, &t, span, len);
}

void stat_read(struct stat_reader *s, struct stat_table *out)
{
	struct stat_vcpu v[VM_MAX_VCPUS] = { 0 };
	uint64_t first = UINT64_MAX, end = 0;
	unsigned int n = vm_vcpus(s->vm);

	for (unsigned int i = 0; i < n; i++) {
		bool ended = atomic_load_explicit(&s->ended[i], memory_order_acquire);
		int tid = vm_vcpu_tid(s->vm, i);
		struct account *a = &v[i].account;

		s->own[i] = vm_stats(s->vm, i);
		v[i].own = &s->own[i];
		if (ended)
			v[i].thread = s->last[i];
		else if (tid)
			stat_thread_read(&v[i].thread, tid);
		vm_account(s->vm, i, a);
		if (!ended && tid)
			account_up_to(a, clock_mono_ns(), &v[i].thread, tid);
		if (s->data[i] && kvmstats_read(&s->kvm[i], s->data[i]) == 0) {
			v[i].kvm = &s->kvm[i];
			v[i].kvm_data = s->data[i];
		}
		if (a->begun_ns && a->begun_ns < first)
			first = a->begun_ns;
		if (a->now_ns > end)
			end = a->now_ns;
	}
	stat_build(out, s->vm, v, n, end > first ? end - first : 0);
}
