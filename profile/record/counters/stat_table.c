/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/counters/stat.h"

#include <ctype.h>
#include <linux/kvm.h>
#include <stdarg.h>
#include <string.h>

/* KVM's counters that are shown also when they are 0, and told of when they are missing. */
static const char *const kvm_shown[] = {
	"exits",	  "io_exits",	      "mmio_exits",   "halt_exits",
	"irq_exits",	  "irq_window_exits", "signal_exits", "hypercalls",
	"insn_emulation", "irq_injections",
};

/* Its index, or t->n. */
static unsigned int find_row(const struct stat_table *t, const char *name)
{
	unsigned int i = 0;

	while (i < t->n && strcmp(t->row[i].name, name) != 0)
		i++;
	return i;
}

static struct stat_row *add_row(struct stat_table *t, enum stat_unit unit, bool always,
				const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The row of this name; a new one when there is none. NULL: no more room. */
static struct stat_row *add_row(struct stat_table *t, enum stat_unit unit, bool always,
				const char *fmt, ...)
{
	char name[STAT_NAME];
	struct stat_row *r;
	unsigned int at;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	at = find_row(t, name);
	if (at == STAT_MAX_ROWS)
		return NULL;
	r = &t->row[at];
	if (at < t->n)
		return r;
	t->n++;
	memset(r, 0, sizeof(*r));
	memcpy(r->name, name, sizeof(name));
	r->unit = unit;
	r->always = always;
	r->supported = true;
	return r;
}

/* -- times -------------------------------------------------------------------------- */

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static void add_times(struct stat_table *t)
{
	struct stat_row *row[STAT_WHERES];

	for (unsigned int i = 0; i < STAT_WHERES; i++) {
		row[i] = add_row(t, STAT_NS, true, "time:%s", stat_where_name[i]);
		if (!row[i])
			return;
		row[i]->supported = true;
	}
	for (unsigned int v = 0; v < t->vcpus; v++) {
		uint64_t ns[STAT_WHERES];
		bool supported[STAT_WHERES];

		stat_time_rows(&t->time[v], t->elapsed_ns, ns, supported);
		for (unsigned int i = 0; i < STAT_WHERES; i++) {
			row[i]->supported &= supported[i];
			row[i]->v[v] = ns[i];
		}
	}
}

/* -- counts ------------------------------------------------------------------------- */

static void add_exits(struct stat_table *t, const struct stat_vcpu *vcpu)
{
	for (unsigned int k = 0; k < VCPU_EXIT_KINDS; k++) {
		const char *api = vcpu_exit_name(k);
		bool usual = k == KVM_EXIT_IO || k == KVM_EXIT_MMIO || k == KVM_EXIT_INTR;
		char name[32] = "";
		struct stat_row *r;

		for (unsigned int i = 0; api[i] && i + 1 < sizeof(name); i++)
			name[i] = (char)tolower((unsigned char)api[i]);
		r = add_row(t, STAT_COUNT, usual, "exit:%s", name);
		for (unsigned int v = 0; r && v < t->vcpus; v++)
			r->v[v] += vcpu[v].own->exits[k];
	}
}

static void add_devices(struct stat_table *t, const struct vm *vm, const struct stat_vcpu *vcpu)
{
	for (unsigned int i = 0; i < VM_MAX_DEVICES; i++) {
		const char *name = vm_device_name(vm, i);
		struct stat_row *n, *ns;

		if (!name)
			continue;
		n = add_row(t, STAT_COUNT, false, "vmm:%s", name);
		ns = add_row(t, STAT_NS, false, "vmm:%s:time", name);
		for (unsigned int v = 0; n && ns && v < t->vcpus; v++) {
			n->v[v] += vcpu[v].own->device[i].exits;
			ns->v[v] += vcpu[v].own->device[i].ns;
		}
	}
}

/* Of the whole machine: they are told with the first vCPU. */
static void add_disks(struct stat_table *t, const struct vm *vm)
{
	static const char *const type[IO_TYPES] = { "reads", "writes", "flushes", "discards",
						    "zeroes" };
	struct vm_disk_info d;

	for (unsigned int i = 0; vm && vm_disk(vm, i, &d); i++) {
		for (unsigned int k = 0; k < IO_TYPES; k++) {
			struct stat_row *n = add_row(t, STAT_COUNT, k == IO_READ || k == IO_WRITE,
						     "disk:%s:%s", d.name, type[k]);

			if (n)
				n->v[0] = d.io.requests[k];
			n = k == IO_FLUSH ? NULL
					  : add_row(t, STAT_COUNT, false, "disk:%s:%s:bytes",
						    d.name, type[k]);
			if (n)
				n->v[0] = d.io.bytes[k];
		}
	}
}

/* Only what counts up can be compared with time; and of a unit that we can tell. */
static bool is_counter(const struct kvmstats_desc *d)
{
	return d->type == KVMSTATS_CUMULATIVE && d->size == 1 &&
	       ((d->unit == KVMSTATS_NONE && !d->exponent) ||
		(d->unit == KVMSTATS_SECONDS && d->exponent == -9 && !d->base));
}

static void add_kvm(struct stat_table *t, const struct stat_vcpu *vcpu)
{
	for (size_t i = 0; i < sizeof(kvm_shown) / sizeof(kvm_shown[0]); i++) {
		struct stat_row *r = add_row(t, STAT_COUNT, true, "kvm:%s", kvm_shown[i]);

		if (r)
			r->supported = vcpu[0].kvm && kvmstats_find(vcpu[0].kvm, kvm_shown[i]);
	}
	for (unsigned int v = 0; v < t->vcpus; v++) {
		const struct kvmstats *k = vcpu[v].kvm;

		for (unsigned int i = 0; k && i < k->n; i++) {
			const struct kvmstats_desc *d = &k->desc[i];
			struct stat_row *r;

			if (!is_counter(d))
				continue;
			r = add_row(t, d->unit == KVMSTATS_SECONDS ? STAT_NS : STAT_COUNT, false,
				    "kvm:%s", d->name);
			if (r)
				r->v[v] = kvmstats_value(d, vcpu[v].kvm_data);
		}
	}
}

void stat_build(struct stat_table *t, const struct vm *vm, const struct stat_vcpu *vcpu,
		unsigned int vcpus, uint64_t elapsed_ns)
{
	t->n = 0;
	t->elapsed_ns = elapsed_ns;
	t->vcpus = vcpus < VM_MAX_VCPUS ? vcpus : VM_MAX_VCPUS;
	for (unsigned int v = 0; v < t->vcpus; v++)
		stat_time_of(&t->time[v], &vcpu[v]);
	add_times(t);
	add_exits(t, vcpu);
	add_devices(t, vm, vcpu);
	add_disks(t, vm);
	add_kvm(t, vcpu);
}

void stat_since(struct stat_table *t, const struct stat_table *before)
{
	t->elapsed_ns = less(t->elapsed_ns, before->elapsed_ns);
	for (unsigned int i = 0; i < t->n; i++) {
		unsigned int was = find_row(before, t->row[i].name);

		for (unsigned int v = 0; was < before->n && v < t->vcpus; v++)
			t->row[i].v[v] = less(t->row[i].v[v], before->row[was].v[v]);
	}
	for (unsigned int v = 0; v < t->vcpus; v++)
		stat_time_since(&t->time[v], &before->time[v]);
	add_times(t);
}

uint64_t stat_sum(const struct stat_table *t, const struct stat_row *r)
{
	uint64_t sum = 0;

	for (unsigned int v = 0; v < t->vcpus; v++)
		sum += r->v[v];
	return sum;
}
