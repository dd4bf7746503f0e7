/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_list: `kvmprof list`: the events that this host offers, and why not the others; or
 * libvirt's domains.
 */
#include "profile/cmd/list.h"

#include "base/json.h"
#include "profile/cmd/cmd.h"
#include "profile/cmd/common.h"
#include "profile/record/counters/events.h"
#include "profile/record/counters/tracefs.h"
#include "vmm/kvm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LISTED 256u
#define WIDTH 90u

struct listed {
	char name[EVENT_NAME_MAX];
	const char *text;
	enum event_class class;
	bool here;
	struct err why; /* text "": nothing to say */
};

struct list {
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

static void list_try(struct list *l, const char *name, const char *text, struct kvm_host *host)
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
	x->here = event_probe(&parsed, &rate, host, &ignored, &x->why) == 0;
	l->n++;
}

static void list_fill(struct list *l, struct kvm_host *host)
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
	n = tracefs_list("kvm", &names, &l->tracefs);
	for (size_t i = 0; i < n; i++) {
		list_try(l, names[i], NULL, &untried);
		free(names[i]);
	}
	free(names);
}

/* Names side by side. */
static void list_print_names(const struct list *l, const bool *chosen)
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
static void print_refused(const struct list *l, const char *key)
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

static void print_class(const struct list *l, const char *key, const char *title)
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

static void list_print_text(const struct list *l)
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

int list_put_json(struct buf *b)
{
	bool failed;

	buf_u8(b, 0);
	failed = b->failed;
	if (failed)
		fputs("kvmprof list: out of memory\n", stderr);
	else
		puts((const char *)b->data);
	buf_deinit(b);
	return failed;
}

void list_add_why(struct buf *b, const struct err *why)
{
	if (!*why->text)
		return;
	buf_printf(b, ",\"why\":");
	json_quote(b, why->text);
}

static int list_print_json(const struct list *l)
{
	struct buf b;

	buf_init(&b);
	buf_printf(&b, "{\"events\":[");
	for (unsigned int i = 0; i < l->n; i++) {
		const struct listed *x = &l->at[i];

		buf_printf(&b, "%s{\"name\":", i ? "," : "");
		json_quote(&b, x->name);
		buf_printf(&b, ",\"kind\":\"%s\",\"available\":%s", class_key(x->class),
			   x->here ? "true" : "false");
		list_add_why(&b, &x->why);
		buf_printf(&b, "}");
	}
	buf_printf(&b, "]}");
	return list_put_json(&b);
}

struct options {
	const char *uri;
	bool domains, json;
};

#define OPTION_STRUCT struct options

static const struct option_row rows[] = {
	{ "domains", 0, NULL, "list the domains of this machine's libvirt",
	  OPTION_PUT(domains, true) },
	{ "connect", 'c', "URI", "libvirt's, as for virsh; with --domains", OPTION_TEXT(uri) },
	{ "json", 0, NULL, "one JSON object, for scripts", OPTION_PUT(json, true) },
	OPTION_HELP,
	{ 0 },
};

static const struct option_set set = {
	.usage =
		"Usage: kvmprof list [OPTIONS]\n"
		"\n"
		"List the events of kvmprof run --event: those that this host has, and why not "
		"the\n"
		"others. Each one is tried out. With --domains: the domains of libvirt, with what\n"
		"kvmprof attach needs to know, and whether it can.\n"
		"\n",
	.rows = rows,
	.order = OPTION_ALONE,
};

int cmd_list(int argc, char **argv)
{
	static struct list l;
	struct kvm_host host = { .fd = -1 };
	struct err ignored = { 0 };
	struct options o = { 0 };
	int status = cmd_options(&set, &o, argc, argv);

	if (status >= 0)
		return status;
	if (o.uri && !o.domains)
		return cmd_wrong_usage(argv, "only --domains asks libvirt at", o.uri);
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
