/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_list: `kvmprof list`: the events that this host offers, and why not the others; or
 * libvirt's domains, or all machines under KVM.
 */
#include "profile/cmd/cmd.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "profile/cmd/common.h"
#include "profile/record/counters/events.h"
#include "profile/record/libvirt/host.h"
#include "profile/record/libvirt/pid.h"
#include "vmm/attach/machines.h"
#include "vmm/attach/process.h"
#include "vmm/attach/regs_page.h"
#include "vmm/kvm.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum list_form { LIST_TEXT, LIST_JSON };

/* Ends, prints and frees the text. */
static int list_put_json(struct json_writer *w)
{
	bool failed = json_close(w, stdout) != 0;

	if (failed)
		fputs("kvmprof list: out of memory\n", stderr);
	return failed;
}

struct list_row {
	const struct libvirt_domain *d;
	pid_t pid;	/* 0: none, or not found */
	struct err why; /* it can't be attached to; code 0: it can */
};

/*
 * Mapping a vCPU's page needs what attaching needs, and changes nothing: the vCPU's
 * registers are not asked for, and no thread is stopped.
 */
static void try_it(struct list_row *r)
{
	const struct libvirt_domain *d = r->d;
	struct process process;
	struct kvm_run *page;

	if (!d->active) {
		err_set(&r->why, ENODEV, "it does not run");
		return;
	}
	if (libvirt_pid_find(d->name, d->uuid, &r->pid, &r->why) < 0 ||
	    process_look(&process, r->pid, &r->why) < 0)
		return;
	if (regs_page_map(&page, r->pid, process.vcpu[0].fd, &r->why) < 0)
		return;
	regs_page_unmap(page);
	if (!d->running)
		err_set(&r->why, ENODEV, "it is %s", d->state);
}

/* Names are what users make them. */
static int width_of(const struct list_row *row, size_t n)
{
	size_t width = 4;

	for (size_t i = 0; i < n; i++)
		width = strlen(row[i].d->name) > width ? strlen(row[i].d->name) : width;
	return (int)width;
}

static void put_number(char *out, size_t size, long v)
{
	snprintf(out, size, v >= 0 ? "%ld" : "-", v);
}

static void print_text(const struct list_row *row, size_t n, const char *uri)
{
	int width = width_of(row, n);

	if (!n) {
		printf("%s has no domains\n", uri);
		return;
	}
	printf("%4s  %-*s  %-11s  %7s  %5s  %9s  attach\n", "id", width, "name", "state", "PID",
	       "vCPUs", "memory");
	for (size_t i = 0; i < n; i++) {
		const struct libvirt_domain *d = row[i].d;
		char id[24], pid[24];

		put_number(id, sizeof(id), d->id);
		put_number(pid, sizeof(pid), row[i].pid ? row[i].pid : -1);
		printf("%4s  %-*s  %-11s  %7s  %5u  %5" PRIu64 " MiB  %s%s\n", id, width, d->name,
		       d->state, pid, d->vcpus, d->memory >> 20, row[i].why.code ? "no: " : "yes",
		       row[i].why.text);
	}
}

static struct json_value number_or_null(long v)
{
	return v >= 0 ? json_of_i64(v) : json_of_str(NULL);
}

static int print_json(const struct list_row *row, size_t n, const char *uri)
{
	struct json_writer w;

	json_open(&w);
	json_str(&w, "uri", uri);
	json_array_begin(&w, "domains");
	for (size_t i = 0; i < n; i++) {
		const struct libvirt_domain *d = row[i].d;

		json_object_begin(&w, NULL);
		json_put(&w, "name", d->name, "uuid", d->uuid, "state", d->state, "vcpus", d->vcpus,
			 "memory", d->memory, "id", number_or_null(d->id), "pid",
			 number_or_null(row[i].pid ? row[i].pid : -1), "attachable",
			 json_of_bool(!row[i].why.code));
		if (*row[i].why.text)
			json_str(&w, "why", row[i].why.text);
		json_object_end(&w);
	}
	json_array_end(&w);
	return list_put_json(&w);
}

/* Lists the domains of libvirt, and whether they can be attached to. uri NULL: the one that virsh uses. */
static int list_domains(const char *uri, enum list_form form)
{
	cleanup_free struct libvirt_domain *domains = NULL;
	cleanup_free struct list_row *row = NULL;
	struct libvirt_host *h = NULL;
	struct err e = { 0 };
	size_t n = 0;
	int status = 0, ret;

	ret = libvirt_host_open(&h, uri, 0, &e);
	ret = ret ? ret : libvirt_host_list(h, &domains, &n, &e);
	row = calloc(n + 1, sizeof(*row));
	if (!ret && !row)
		ret = err_nomem(&e);
	for (size_t i = 0; !ret && i < n; i++) {
		row[i].d = &domains[i];
		try_it(&row[i]);
	}
	if (ret) {
		fprintf(stderr, "kvmprof list: %s\n", e.text);
		status = 1;
	} else if (form == LIST_JSON) {
		status = print_json(row, n, libvirt_host_uri(h));
	} else {
		print_text(row, n, libvirt_host_uri(h));
	}
	libvirt_host_close(h);
	return status;
}

/* -- machines ----------------------------------------------------------------------------------- */

static const char *owner_of(const struct machines_one *m, char *text, size_t size)
{
	const struct passwd *user = getpwuid(m->owner);

	snprintf(text, size, "%u", (unsigned int)m->owner);
	return user ? user->pw_name : text;
}

static void print_machines(const struct machines *all)
{
	char owner[16];

	if (!all->n)
		puts("no process runs a machine under KVM");
	else
		printf("%7s  %-15s  %-24s  %5s  %9s  %10s  %s\n", "PID", "VMM", "name", "vCPUs",
		       "in memory", "up", "owner");
	for (size_t i = 0; i < all->n; i++) {
		const struct machines_one *m = &all->at[i];

		printf("%7d  %-15s  %-24s  %5u  %5" PRIu64 " MiB  %8" PRIu64 " s  %s\n",
		       (int)m->pid, m->vmm, *m->name ? m->name : "-", m->vcpus, m->resident >> 20,
		       m->uptime_s, owner_of(m, owner, sizeof(owner)));
	}
	if (all->hidden)
		printf("processes that may not be looked into: %zu (as root, with CAP_SYS_PTRACE, "
		       "all machines are seen)\n",
		       all->hidden);
}

static int print_machines_json(const struct machines *all)
{
	struct json_writer w;
	char owner[16];

	json_open(&w);
	json_array_begin(&w, "machines");
	for (size_t i = 0; i < all->n; i++) {
		const struct machines_one *m = &all->at[i];

		json_put_object(&w, NULL, "pid", (uint64_t)m->pid, "vmm", m->vmm, "name",
				json_of_str(*m->name ? m->name : NULL), "vcpus", m->vcpus,
				"resident", m->resident, "uptime_seconds", m->uptime_s, "owner",
				owner_of(m, owner, sizeof(owner)));
	}
	json_array_end(&w);
	json_put(&w, "hidden", (uint64_t)all->hidden);
	return list_put_json(&w);
}

/* Lists the processes with machines under KVM. Returns the exit status. */
static int list_machines(enum list_form form)
{
	struct machines all;
	struct err e = { 0 };
	int status = 0;

	if (machines_find(&all, &e)) {
		fprintf(stderr, "kvmprof list: %s\n", e.text);
		status = 1;
	} else if (form == LIST_JSON) {
		status = print_machines_json(&all);
	} else {
		print_machines(&all);
	}
	machines_free(&all);
	return status;
}

#define MAX_LISTED 256u
#define WIDTH 90u

struct listed {
	char name[EVENT_NAME_MAX];
	const char *text;
	enum event_class class;
	bool here;
	struct err why; /* text "": nothing to say */
};

struct list_list {
	struct listed at[MAX_LISTED];
	unsigned int n;
	struct err tracefs; /* why there are no tracepoints */
};

static const char *class_key(enum event_class class)
{
	static const char *const key[] = {
		[EVENT_WALL] = "clock",
		[EVENT_CPU] = "clock",
		[EVENT_HOST] = "clock",
		[EVENT_EXIT] = "exit",
		[EVENT_IO] = "io",
		[EVENT_NET] = "net",
		[EVENT_KERNEL_EXIT] = "kernel-exit",
		[EVENT_HARDWARE] = "hardware",
		[EVENT_SOFTWARE] = "software",
		[EVENT_TRACEPOINT] = "tracepoint",
	};

	return key[class];
}

static void list_try(struct list_list *l, const char *name, const char *text, struct kvm_host *host)
{
	static const struct events_rate rate = { .freq_hz = 997 };
	struct listed *x = &l->at[l->n];
	struct event_name parsed;
	struct vm_event ignored;

	if (l->n == MAX_LISTED || event_name_parse(&parsed, name, strlen(name), &x->why) < 0)
		return;
	snprintf(x->name, sizeof(x->name), "%s", name);
	x->text = text;
	x->class = parsed.class;
	x->here = events_probe(&parsed, &rate, host, &ignored, &x->why) == 0;
	l->n++;
}

static void list_fill(struct list_list *l, struct kvm_host *host)
{
	struct kvm_host untried = { .fd = -1 };
	const struct event_word *w;
	char **names;
	size_t n;

	for (unsigned int i = 0; (w = event_word(i)); i++) {
		bool tried = w->class == EVENT_KERNEL_EXIT && l->n &&
			     l->at[l->n - 1].class == EVENT_KERNEL_EXIT;

		/* One guest tells of all: whether KVM reports exits. */
		if (tried && !l->at[l->n - 1].here) {
			struct listed *x = &l->at[l->n];

			*x = l->at[l->n - 1];
			snprintf(x->name, sizeof(x->name), "%s", w->name);
			x->text = w->text;
			l->n++;
		} else {
			list_try(l, w->name, w->text, tried ? &untried : host);
		}
	}
	n = events_tracepoints("kvm", &names, &l->tracefs);
	for (size_t i = 0; i < n; i++) {
		list_try(l, names[i], NULL, &untried);
		free(names[i]);
	}
	free(names);
}

/* Names side by side. */
static void list_print_names(const struct list_list *l, const bool *chosen)
{
	unsigned int column = 0;

	for (unsigned int i = 0; i < l->n; i++) {
		unsigned int len = (unsigned int)strlen(l->at[i].name);

		if (!chosen[i])
			continue;
		if (column && column + len + 1 > WIDTH) {
			putchar('\n');
			column = 0;
		}
		column += (unsigned int)printf("%s%s", column ? " " : "    ", l->at[i].name);
	}
	putchar('\n');
}

/* The refused ones of a class, those with the same reason together. */
static void print_refused(const struct list_list *l, const char *key)
{
	bool done[MAX_LISTED] = { false };

	for (unsigned int i = 0; i < l->n; i++) {
		bool same[MAX_LISTED] = { false };

		if (done[i] || l->at[i].here || strcmp(class_key(l->at[i].class), key))
			continue;
		for (unsigned int k = i; k < l->n; k++)
			same[k] = !l->at[k].here && !strcmp(class_key(l->at[k].class), key) &&
				  !strcmp(l->at[k].why.text, l->at[i].why.text);
		for (unsigned int k = i; k < l->n; k++)
			done[k] |= same[k];
		printf("  not here: %s\n", l->at[i].why.text);
		list_print_names(l, same);
	}
}

static void print_class(const struct list_list *l, const char *key, const char *title)
{
	bool bare[MAX_LISTED] = { false }, any = false;

	printf("%s\n", title);
	for (unsigned int i = 0; i < l->n; i++) {
		const struct listed *x = &l->at[i];

		if (!x->here || strcmp(class_key(x->class), key))
			continue;
		if (x->text || *x->why.text)
			printf("  %-26s %s%s%s\n", x->name, x->text ? x->text : "",
			       x->text && *x->why.text ? "; " : "", x->why.text);
		else
			bare[i] = any = true;
	}
	if (any)
		list_print_names(l, bare);
	print_refused(l, key);
	putchar('\n');
}

static void list_print_text(const struct list_list *l)
{
	print_class(l, "clock", "Time");
	print_class(l, "exit",
		    "VM exits that come to kvmprof, each one; also exit:N, by KVM's number");
	print_class(l, "io", "Requests to the guest's disks, a sample each");
	print_class(l, "net", "Packets of the guest, a sample each");
	print_class(l, "kernel-exit", "VM exits inside of KVM");
	print_class(l, "hardware", "Hardware events; also rNNN, the processor's own number in hex");
	print_class(l, "software", "Software events of the host, on the vCPUs' threads");
	print_class(l, "tracepoint", "Tracepoints of the host; others as SUBSYSTEM:NAME");
	if (*l->tracefs.text)
		printf("  not here: %s\n", l->tracefs.text);
}

static int list_print_json(const struct list_list *l)
{
	struct json_writer w;

	json_open(&w);
	json_array_begin(&w, "events");
	for (unsigned int i = 0; i < l->n; i++) {
		const struct listed *x = &l->at[i];

		json_object_begin(&w, NULL);
		json_put(&w, "name", x->name, "kind", class_key(x->class), "available", x->here);
		if (*x->why.text)
			json_str(&w, "why", x->why.text);
		json_object_end(&w);
	}
	json_array_end(&w);
	return list_put_json(&w);
}

struct list_options {
	const char *uri;
	bool domains, machines, json;
};

#define OPTION_STRUCT struct list_options

static const struct option_row rows[] = {
	{ "domains", 0, NULL, "list the domains of this machine's libvirt",
	  OPTION_PUT(domains, true) },
	{ "machines", 0, NULL, "list the processes that run machines under KVM",
	  OPTION_PUT(machines, true) },
	{ "connect", 'c', "URI", "libvirt's URI, as for virsh; with --domains", OPTION_TEXT(uri) },
	{ "json", 0, NULL, "one JSON object, for scripts", OPTION_PUT(json, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage = "Usage: kvmprof list [OPTIONS]\n"
		 "\n"
		 "List the events of kvmprof run --event that this host has, and why it lacks the\n"
		 "others. Each one is tried. With --domains: the domains of libvirt, with what\n"
		 "kvmprof attach needs to know, and whether it can. With --machines: every process "
		 "with\n"
		 "a machine under KVM, of whatever VMM: PID, VMM, name, vCPUs, memory, uptime, "
		 "owner.\n"
		 "\n",
	.rows = rows,
	.order = OPTION_ALONE,
};

int cmd_list(int argc, char **argv)
{
	static struct list_list l;
	struct kvm_host host = { .fd = -1 };
	struct err ignored = { 0 };
	struct list_options o = { 0 };
	int status = cmd_options(&set, &o, argc, argv);

	if (status >= 0)
		return status;
	if (o.uri && !o.domains)
		return cmd_wrong_usage(argv, "only --domains asks libvirt at", o.uri);
	if (o.domains && o.machines)
		return cmd_wrong(argv, "--domains or --machines, one of them");
	if (o.machines)
		return list_machines(o.json ? LIST_JSON : LIST_TEXT);
	if (o.domains)
		return list_domains(o.uri, o.json ? LIST_JSON : LIST_TEXT);
	if (kvm_host_open(&host, &ignored) < 0)
		host.fd = -1;
	list_fill(&l, &host);
	status = 0;
	if (o.json)
		status = list_print_json(&l);
	else
		list_print_text(&l);
	if (host.fd >= 0)
		kvm_host_close(&host);
	return status;
}
