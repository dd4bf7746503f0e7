/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The counters' sources of a machine: opened, read while it runs, and kept when its
 * threads end. stat_table.c makes the table of them.
 */
#include "profile/counters/stat.h"

#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct stat {
	struct vm *vm;
	struct kvmstats kvm[VM_MAX_VCPUS];
	uint8_t *data[VM_MAX_VCPUS];	     /* owned; NULL: no statistics */
	struct vcpu_stats own[VM_MAX_VCPUS]; /* as stat_read() saw them last */
	struct threadstat last[VM_MAX_VCPUS];
	atomic_bool ended[VM_MAX_VCPUS]; /* last is final */
};

int stat_open(struct stat **out, struct vm *vm, struct err *e)
{
	struct stat *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(e, ENOMEM, "out of memory");
	s->vm = vm;
	for (unsigned int i = 0; i < VM_MAX_VCPUS; i++)
		s->kvm[i].fd = -1;
	for (unsigned int i = 0; i < vm_vcpus(vm); i++) {
		int fd = vm_stats_fd(vm, i);

		/* Without them their counters are not supported; what there is, is shown. */
		if (fd < 0 || kvmstats_open(&s->kvm[i], fd, NULL) < 0)
			continue;
		s->data[i] = calloc(1, s->kvm[i].data_len);
		if (!s->data[i]) {
			stat_close(s);
			return err_set(e, ENOMEM, "out of memory");
		}
	}
	*out = s;
	return 0;
}

void stat_close(struct stat *s)
{
	if (!s)
		return;
	for (unsigned int i = 0; i < VM_MAX_VCPUS; i++) {
		kvmstats_close(&s->kvm[i]);
		free(s->data[i]);
	}
	free(s);
}

void stat_vcpu_ends(struct stat *s, unsigned int vcpu)
{
	threadstat_read(&s->last[vcpu], gettid());
	atomic_store_explicit(&s->ended[vcpu], true, memory_order_release);
}

void stat_read(struct stat *s, struct stat_table *out)
{
	struct stat_vcpu v[VM_MAX_VCPUS] = { 0 };
	uint64_t first = vm_first_entry_ns(s->vm), end = clock_mono_ns();
	unsigned int n = vm_vcpus(s->vm);
	bool all = true;

	for (unsigned int i = 0; i < n; i++) {
		int tid = vm_vcpu_tid(s->vm, i);

		s->own[i] = vm_stats(s->vm, i);
		v[i].own = &s->own[i];
		if (atomic_load_explicit(&s->ended[i], memory_order_acquire)) {
			v[i].thread = s->last[i];
		} else {
			all = false;
			if (tid)
				threadstat_read(&v[i].thread, tid);
		}
		if (s->data[i] && kvmstats_read(&s->kvm[i], s->data[i]) == 0) {
			v[i].kvm = &s->kvm[i];
			v[i].kvm_data = s->data[i];
		}
	}
	if (all)
		end = vm_result(s->vm)->end_ns;
	stat_build(out, s->vm, v, n, first && end > first ? end - first : 0);
}
