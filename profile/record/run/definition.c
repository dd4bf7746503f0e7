/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/run/definition.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "profile/record/libvirt/host.h"
#include "vmm/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool run_definition_is_file(const char *domain)
{
	size_t len = strlen(domain);

	return strchr(domain, '/') || (len > 4 && !strcmp(domain + len - 4, ".xml"));
}

static int read_file(struct domain_xml *d, const char *path, struct err *e)
{
	struct file_map m = { 0 };
	struct err why = { 0 };
	int ret = file_map_open(&m, path, DOMAIN_XML_MAX, e);

	if (ret)
		return ret;
	ret = domain_xml_parse((const char *)m.data, m.len, d, &why);
	file_map_close(&m);
	return ret ? err_set(e, -ret, "%.200s: %s", path, why.text) : 0;
}

static int ask_libvirt(struct domain_xml *d, const struct run_options *o, struct err *e)
{
	struct libvirt_host *h = NULL;
	struct libvirt_domain domain;
	cleanup_free char *xml = NULL;
	struct err why = { 0 };
	int ret = libvirt_host_open(&h, o->connect, 0, e);

	ret = ret ? ret : libvirt_host_find(h, o->domain, &domain, e);
	ret = ret ? ret : libvirt_host_xml(h, &domain, &xml, e);
	libvirt_host_close(h);
	if (ret)
		return ret;
	ret = domain_xml_parse(xml, strlen(xml), d, &why);
	return ret ? err_set(e, -ret, "domain %s: %s", domain.name, why.text) : 0;
}

static void take_size(struct domain_xml *d, struct run_options *o)
{
	if (d->memory && !o->mem_given) {
		if (d->memory < RUN_MEM_MIN)
			domain_xml_note_unused(d, "memory (%" PRIu64 " KiB: 16 MiB is the least)",
					       d->memory >> 10);
		o->mem_size = d->memory < RUN_MEM_MIN ? RUN_MEM_MIN : d->memory;
		o->mem_given = true; /* the memory of a disk image's default does not apply */
	}
	if (d->vcpus && !o->vcpus_given) {
		if (d->vcpus > VM_MAX_VCPUS)
			domain_xml_note_unused(d, "vcpu (%u: %d is the most)", d->vcpus,
					       VM_MAX_VCPUS);
		o->vcpus = d->vcpus > VM_MAX_VCPUS ? VM_MAX_VCPUS : d->vcpus;
	}
}

/* Converts the disk to the value of a --disk: a comma in the name is written twice. */
static int disk_option(struct domain_disk *k, bool writable, struct err *e)
{
	struct buf b;

	buf_init(&b);
	for (const char *c = k->path; *c; c++)
		buf_printf(&b, *c == ',' ? ",," : "%c", *c);
	if (k->readonly || writable)
		buf_printf(&b, k->readonly ? ",readonly" : ",writable");
	if (k->serial)
		buf_printf(&b, ",serial=%s", k->serial);
	/* Without a format libvirt uses raw. */
	buf_printf(&b, ",format=%s", k->format ? k->format : "raw");
	buf_u8(&b, 0);
	k->option = b.failed ? NULL : (char *)b.data;
	if (b.failed) {
		buf_deinit(&b);
		return err_nomem(e);
	}
	return 0;
}

/* Moves the disks from number `first` on before those of the command line. */
static int take_disks(struct domain_xml *d, struct run_options *o, unsigned int first,
		      struct err *e)
{
	struct run_disk_options all = { .writable = o->disk.writable,
					.backing = o->disk.backing,
					.overlay_max = o->disk.overlay_max };
	int ret = 0;

	for (unsigned int i = first; !ret && i < d->ndisks; i++) {
		struct domain_disk *k = &d->disk[i];

		if (o->disk.n + all.n == VM_MAX_DISKS - 1) {
			domain_xml_note_unused(d, "disk %.16s (%u disks are the most)", k->target,
					       VM_MAX_DISKS - 1);
			continue;
		}
		ret = disk_option(k, o->disk.writable, e);
		all.text[all.n++] = k->option;
	}
	for (unsigned int i = 0; !ret && i < o->disk.n; i++)
		all.text[all.n++] = o->disk.text[i];
	if (!ret)
		o->disk = all;
	return ret;
}

/* Boots the image of the first disk. */
static void boot_disk(struct domain_xml *d, struct run_options *o)
{
	const struct domain_disk *k = &d->disk[0];

	o->image = k->path;
	if (k->serial)
		domain_xml_note_unused(d, "disk %.16s (its serial number %.40s)", k->target,
				       k->serial);
}

int run_definition_apply(struct domain_xml *d, struct run_options *o, struct err *e)
{
	int ret = run_definition_is_file(o->domain) ? read_file(d, o->domain, e)
						    : ask_libvirt(d, o, e);
	bool boots_disk = !ret && !d->kernel && !o->image && d->ndisks;

	if (ret)
		return ret;
	if (!d->kernel && !o->image && !o->kernel && !boots_disk)
		return err_set(e, ENOENT,
			       "domain %.100s has neither a <kernel> nor a disk to boot from: "
			       "give IMAGE, too, or start it with libvirt and use kvmprof attach",
			       d->name ? d->name : o->domain);
	take_size(d, o);
	ret = take_disks(d, o, boots_disk, e);
	if (ret)
		return ret;
	for (unsigned int i = 0; !o->disk.writable && i < d->ndisks; i++)
		if (!d->disk[i].readonly)
			domain_xml_note_unused(d, "disk %.16s (what is written stays in memory)",
					       d->disk[i].target);
	if (boots_disk) {
		boot_disk(d, o);
	} else if (!o->image && !o->kernel) {
		/* Another kernel needs another RAM disk and another command line. */
		o->image = d->kernel;
		o->initrd = o->initrd ? o->initrd : d->initrd;
		/* An empty command line in the definition means an empty one in the guest. */
		o->cmdline = o->cmdline ? o->cmdline : d->cmdline ? d->cmdline : "";
	}
	/* The disks of a kernel have this setting in their --disk. */
	if (!boots_disk && d->ndisks)
		o->disk.writable = false;
	return 0;
}

void run_definition_unused(const struct domain_xml *d, const char *prefix, unsigned int width,
			   struct buf *out)
{
	const char *s = (const char *)d->left.data;
	size_t column = 0;

	for (unsigned int i = 0; i < d->nleft; i++, s += strlen(s) + 1) {
		if (!column || column + strlen(s) + 2 > width) {
			buf_printf(out, "%s%s%s", column ? ",\n" : "", prefix, s);
			column = strlen(prefix) + strlen(s);
		} else {
			buf_printf(out, ", %s", s);
			column += strlen(s) + 2;
		}
	}
	if (d->left_beyond)
		buf_printf(out, ",\n%s%u more", prefix, d->left_beyond);
	if (column)
		buf_printf(out, "\n");
	buf_u8(out, 0);
}
