/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/counters/stat_table.h"

#include "vmm/device.h"
#include "vmm/devices.h"

#include <ctype.h>
#include <inttypes.h>
#include <linux/kvm.h>
#include <stdarg.h>
#include <string.h>

/* -- one vCPU's time -------------------------------------------------------------------- */

/*
 * Rows are computed such that their sum is the elapsed time. The base is the thread's own account
 * (base/account.h): in KVM_RUN, in the VMM, stopped by us, each with its processor time. The other
 * sources only divide the time in KVM_RUN: running, by the host's accounting of guests; off its
 * processor, by KVM's own times of halts. Time that none of them explains has a row of its own.
 */

const char *const stat_where_name[STAT_WHERES] = {
	[STAT_GUEST] = "guest",	      [STAT_KVM] = "kvm",	[STAT_VMM] = "vmm",
	[STAT_RUNNABLE] = "runnable", [STAT_HALTED] = "halted", [STAT_STOPPED] = "stopped",
	[STAT_WAITING] = "waiting",   [STAT_UNTOLD] = "untold",
};

static bool kvm_value(const struct stat_vcpu *v, const char *name, uint64_t *out)
{
	const struct kvmstats_desc *d = v->kvm ? kvmstats_find(v->kvm, name) : NULL;

	if (d)
		*out = kvmstats_value(d, v->kvm_data);
	return d != NULL;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void stat_time_of(struct stat_time *t, const struct stat_vcpu *v)
{
	const struct account *a = &v->account;
	uint64_t hit = 0, miss = 0, blocking = 0;

	memset(t, 0, sizeof(*t));
	memcpy(t->wall, a->wall, sizeof(t->wall));
	memcpy(t->delay, a->delay, sizeof(t->delay));
	memcpy(t->blocked, a->blocked, sizeof(t->blocked));
	t->elsewhere = a->elsewhere;
	t->have_guest = v->thread.have_times;
	t->guest = v->thread.guest_ns;
	t->have_delay = v->thread.have_sched;
	t->have_halted = kvm_value(v, "halt_wait_ns", &t->halted);
	/* Polling for an interrupt, in case the halt is short. */
	kvm_value(v, "halt_poll_success_ns", &hit);
	kvm_value(v, "halt_poll_fail_ns", &miss);
	t->polled = hit + miss;
	/* KVM counts a halt when it ends; until then it reports that there is one. */
	if (t->have_halted && kvm_value(v, "blocking", &blocking) && blocking)
		t->halted =
			a->blocked[ACCOUNT_RUN] > t->halted ? a->blocked[ACCOUNT_RUN] : t->halted;
}

static void stat_time_since(struct stat_time *t, const struct stat_time *before)
{
	for (unsigned int i = 0; i < ACCOUNT_SPANS; i++) {
		/* A wait that continued then may turn out to be of the other kind. */
		uint64_t delay = less(before->delay[i], t->delay[i]);
		uint64_t blocked = less(before->blocked[i], t->blocked[i]);

		t->wall[i] = less(t->wall[i], before->wall[i]);
		t->delay[i] = less(t->delay[i], before->delay[i] + blocked);
		t->blocked[i] = less(t->blocked[i], before->blocked[i] + delay);
	}
	t->elsewhere = less(t->elsewhere, before->elsewhere);
	t->guest = less(t->guest, before->guest);
	t->halted = less(t->halted, before->halted);
	t->polled = less(t->polled, before->polled);
}

/* out and supported have STAT_WHERES members; an unavailable one is not supported, and 0. */
static void stat_time_rows(const struct stat_time *t, uint64_t elapsed_ns, uint64_t *out,
			   bool *supported)
{
	uint64_t wall = 0, ran[ACCOUNT_SPANS], blocked[ACCOUNT_SPANS], polled;

	for (unsigned int i = 0; i < STAT_WHERES; i++) {
		out[i] = 0;
		supported[i] = true;
	}
	for (unsigned int i = 0; i < ACCOUNT_SPANS; i++) {
		uint64_t delay = least(t->delay[i], t->wall[i]);

		wall += t->wall[i];
		blocked[i] = least(t->blocked[i], t->wall[i] - delay);
		ran[i] = t->wall[i] - delay - blocked[i];
		out[STAT_RUNNABLE] += delay;
	}
	/* The excess, if an account has more of a span than its length. */
	out[STAT_UNTOLD] = least(t->elsewhere, ran[ACCOUNT_RUN]);
	ran[ACCOUNT_RUN] -= out[STAT_UNTOLD];
	out[STAT_UNTOLD] += less(elapsed_ns, wall);

	polled = least(t->polled, ran[ACCOUNT_RUN]);
	out[STAT_VMM] = ran[ACCOUNT_VMM] + blocked[ACCOUNT_VMM];
	out[STAT_STOPPED] = ran[ACCOUNT_STOPPED] + blocked[ACCOUNT_STOPPED];
	out[STAT_GUEST] = least(t->guest, ran[ACCOUNT_RUN] - polled);
	out[STAT_KVM] = ran[ACCOUNT_RUN] - polled - out[STAT_GUEST];
	out[STAT_HALTED] = polled + least(blocked[ACCOUNT_RUN], t->halted);
	out[STAT_WAITING] = less(blocked[ACCOUNT_RUN], t->halted);

	supported[STAT_GUEST] = supported[STAT_KVM] = t->have_guest;
	supported[STAT_HALTED] = t->have_halted;
	supported[STAT_RUNNABLE] = t->have_delay;
	/* In this case these include other waits. */
	supported[STAT_WAITING] = t->have_halted && t->have_delay;
	for (unsigned int i = 0; i < STAT_UNTOLD; i++) {
		if (supported[i])
			continue;
		out[STAT_UNTOLD] += out[i];
		out[i] = 0;
	}
}

/* -- the table -------------------------------------------------------------------------- */

/* KVM's counters that are shown even if they are 0, and reported if they are missing. */
static const char *const kvm_shown[] = {
	"exits",	  "io_exits",	      "mmio_exits",   "halt_exits",
	"irq_exits",	  "irq_window_exits", "signal_exits", "hypercalls",
	"insn_emulation", "irq_injections",
};

/* Returns the row's index, or t->n. */
static unsigned int find_row(const struct stat_table *t, const char *name)
{
	unsigned int i = 0;

	while (i < t->n && strcmp(t->row[i].name, name) != 0)
		i++;
	return i;
}

static struct stat_row *add_row(struct stat_table *t, enum stat_unit unit, bool always,
				const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * Returns the row of this name, which is added if it does not exist. Returns NULL if there is no
 * room.
 */
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
		const char *api = vm_exit_name(k);
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

/* Counters of the whole machine, which are shown with the first vCPU. */
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

/* Returns whether it counts up, so that it can be compared with time, in a known unit. */
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

void stat_subtract(struct stat_table *t, const struct stat_table *before)
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

/* -- formats ---------------------------------------------------------------------------- */

/* Formats a number in groups of three digits. */
static void grouped(char *out, size_t size, uint64_t v)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, v);
	size_t at = 0;

	for (int i = 0; i < n && at + 2 < size; i++) {
		if (i && (n - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = digits[i];
	}
	out[at] = 0;
}

/*
 * Returns the rate of a row over `vcpus` vCPUs together: percent of their time, or counts per
 * second.
 */
static double metric(const struct stat_table *t, const struct stat_row *r, uint64_t v,
		     unsigned int vcpus)
{
	double seconds = (double)t->elapsed_ns / 1e9;

	if (!t->elapsed_ns)
		return 0;
	return r->unit == STAT_NS ? 100 * (double)v / 1e9 / (seconds * vcpus) : (double)v / seconds;
}

static void print_line(const struct stat_table *t, const struct stat_row *r, int vcpu,
		       const struct stat_style *s, FILE *out)
{
	uint64_t v = vcpu < 0 ? stat_sum(t, r) : r->v[vcpu];
	double m = metric(t, r, v, vcpu < 0 ? t->vcpus : 1);
	const char *unit = r->unit == STAT_NS ? "msec" : "";
	const char *of = r->unit == STAT_NS ? "% of the time" : "/sec";
	char value[40];

	if (!r->supported)
		snprintf(value, sizeof(value), "<not supported>");
	else if (r->unit == STAT_NS)
		snprintf(value, sizeof(value), "%.3f", (double)v / 1e6);
	else if (s->sep)
		snprintf(value, sizeof(value), "%" PRIu64, v);
	else
		grouped(value, sizeof(value), v);
	if (s->interval)
		fprintf(out, s->sep ? "%.6f%s" : "%14.6f ", (double)s->time_ns / 1e9, s->sep);
	if (s->per_vcpu)
		fprintf(out, s->sep ? "CPU%d%s" : "CPU%-4d", vcpu, s->sep);
	if (s->sep) {
		fprintf(out, "%s%s%s%s%s%s", value, s->sep, unit, s->sep, r->name, s->sep);
		if (r->supported)
			fprintf(out, "%.3f%s%s\n", m, s->sep, of);
		else
			fprintf(out, "%s\n", s->sep);
		return;
	}
	fprintf(out, "%18s %-4s  %-28s", value, unit, r->name);
	if (r->supported)
		fprintf(out, " #%12.3f %s", m, of);
	fputc('\n', out);
}

void stat_print(const struct stat_table *t, const struct stat_style *s, FILE *out)
{
	for (unsigned int i = 0; i < t->n; i++) {
		const struct stat_row *r = &t->row[i];

		if (!r->always && r->supported && !stat_sum(t, r))
			continue;
		if (!s->per_vcpu)
			print_line(t, r, -1, s, out);
		for (unsigned int v = 0; s->per_vcpu && v < t->vcpus; v++)
			print_line(t, r, (int)v, s, out);
	}
}

void stat_json(struct json_writer *w, const struct stat_table *t)
{
	json_put(w, "elapsed_ns", t->elapsed_ns, "vcpus", t->vcpus);
	json_object_begin(w, "counters");
	for (unsigned int i = 0; i < t->n; i++) {
		const struct stat_row *r = &t->row[i];

		if (!r->supported) {
			json_str(w, r->name, NULL);
			continue;
		}
		json_object_begin(w, r->name);
		json_put(w, "unit", r->unit == STAT_NS ? "ns" : "", "sum", stat_sum(t, r));
		json_array_begin(w, "vcpu");
		for (unsigned int v = 0; v < t->vcpus; v++)
			json_u64(w, NULL, r->v[v]);
		json_array_end(w);
		json_object_end(w);
	}
	json_object_end(w);
}
