/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/cmd/list.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "profile/record/libvirt/host.h"
#include "profile/record/libvirt/pid.h"
#include "vmm/attach/process.h"
#include "vmm/attach/regs_page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
	const struct libvirt_domain *d;
	pid_t pid;	/* 0: none, or not found */
	struct err why; /* it can't be attached to; code 0: it can */
};

/*
 * Mapping a vCPU's page needs what attaching needs, and changes nothing: the vCPU's
 * registers are not asked for, and no thread is stopped.
 */
static void try_it(struct row *r)
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
static int width_of(const struct row *row, size_t n)
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

static void print_text(const struct row *row, size_t n, const char *uri)
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

static void json_number(struct buf *b, const char *key, long v)
{
	if (v >= 0)
		buf_printf(b, ",\"%s\":%ld", key, v);
	else
		buf_printf(b, ",\"%s\":null", key);
}

static int print_json(const struct row *row, size_t n, const char *uri)
{
	struct buf b;

	buf_init(&b);
	buf_printf(&b, "{\"uri\":");
	json_quote(&b, uri);
	buf_printf(&b, ",\"domains\":[");
	for (size_t i = 0; i < n; i++) {
		const struct libvirt_domain *d = row[i].d;

		buf_printf(&b, "%s{\"name\":", i ? "," : "");
		json_quote(&b, d->name);
		buf_printf(&b, ",\"uuid\":\"%s\",\"state\":\"%s\",\"vcpus\":%u,\"memory\":%" PRIu64,
			   d->uuid, d->state, d->vcpus, d->memory);
		json_number(&b, "id", d->id);
		json_number(&b, "pid", row[i].pid ? row[i].pid : -1);
		buf_printf(&b, ",\"attachable\":%s", row[i].why.code ? "false" : "true");
		list_add_why(&b, &row[i].why);
		buf_printf(&b, "}");
	}
	buf_printf(&b, "]}");
	return list_put_json(&b);
}

int list_domains(const char *uri, enum list_form form)
{
	cleanup_free struct libvirt_domain *domains = NULL;
	cleanup_free struct row *row = NULL;
	struct libvirt_host *h = NULL;
	struct err e = { 0 };
	size_t n = 0;
	int status = 0, ret;

	ret = libvirt_host_open(&h, uri, 0, &e);
	ret = ret ? ret : libvirt_host_list(h, &domains, &n, &e);
	row = calloc(n + 1, sizeof(*row));
	if (!ret && !row)
		ret = err_set(&e, ENOMEM, "out of memory");
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
