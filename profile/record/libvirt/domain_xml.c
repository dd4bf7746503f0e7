/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/libvirt/domain_xml.h"

#include "base/cleanup.h"
#include "base/library.h"
#include "vmm/image/disk_format.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <libxml/parser.h>
#include <libxml/tree.h>

#define LIBXML_SONAME "libxml2.so.2"

/* The functions of the library that are used; its trees are public structures. */
/* clang-format off */
#define FUNCTIONS(X) \
	X(xmlReadMemory) \
	X(xmlDocGetRootElement) \
	X(xmlFreeDoc) \
	X(xmlGetLastError)
/* clang-format on */

struct domain_xml_functions {
	FUNCTIONS(LIBRARY_MEMBER)
};

static const char *const function_names[] = { FUNCTIONS(LIBRARY_NAME) };

static int domain_xml_load(struct domain_xml_functions *lib, struct err *e)
{
	const struct library want = {
		.soname = LIBXML_SONAME,
		.what = "libxml2",
		.hint = "install libxml2",
		.names = function_names,
		.nnames = ARRAY_SIZE(function_names),
	};

	return library_load(&want, (void **)lib, e);
}

/* -- the tree ------------------------------------------------------------------------- */

static bool is_element(const xmlNode *n, const char *name)
{
	return n->type == XML_ELEMENT_NODE && !n->ns && !strcmp((const char *)n->name, name);
}

static const xmlNode *child(const xmlNode *n, const char *name)
{
	for (n = n ? n->children : NULL; n; n = n->next)
		if (is_element(n, name))
			return n;
	return NULL;
}

/*
 * Returns the text of the children, without surrounding blanks; NULL: none, too long, or out of
 * memory.
 */
static char *text_below(const xmlNode *first)
{
	struct buf b;
	size_t from = 0;
	char *text = NULL;

	buf_init(&b);
	for (; first; first = first->next)
		if ((first->type == XML_TEXT_NODE || first->type == XML_CDATA_SECTION_NODE) &&
		    first->content && *first->content)
			buf_add(&b, first->content, strlen((const char *)first->content));
	while (b.len && isspace(b.data[b.len - 1]))
		b.len--;
	while (from < b.len && isspace(b.data[from]))
		from++;
	if (!b.failed && b.len > from && b.len - from <= DOMAIN_XML_TEXT_MAX)
		text = strndup((const char *)b.data + from, b.len - from);
	buf_deinit(&b);
	return text;
}

static char *text_of(const xmlNode *n)
{
	return n ? text_below(n->children) : NULL;
}

static char *attribute(const xmlNode *n, const char *name)
{
	for (const xmlAttr *a = n ? n->properties : NULL; a; a = a->next)
		if (!a->ns && !strcmp((const char *)a->name, name))
			return text_below(a->children);
	return NULL;
}

/* Returns the first attribute that exists. */
static char *attribute_of(const xmlNode *n, const char *const *names)
{
	char *value = NULL;

	for (; n && *names && !value; names++)
		value = attribute(n, *names);
	return value;
}

static bool domain_xml_has(const xmlNode *n, const char *name, const char *value)
{
	cleanup_free char *got = attribute(n, name);

	return got && !strcmp(got, value);
}

/* -- the rest of the definition -------------------------------------------------------- */

void domain_xml_note_unused(struct domain_xml *d, const char *fmt, ...)
{
	char text[DOMAIN_XML_LEFT_TEXT];
	va_list ap;

	if (d->nleft == DOMAIN_XML_LEFT_MAX) {
		d->left_beyond++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* It is printed on terminals. */
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	buf_add(&d->left, text, strlen(text) + 1);
	d->nleft++;
}

/*
 * Makes "disk vda (file /x.img)", "interface (network default)", "controller (usb)", "cpu
 * (host-model)".
 */
static void leave(struct domain_xml *d, const char *prefix, const xmlNode *n)
{
	static const char *const kinds[] = { "type", "mode", "model", "offset", "bus", NULL };
	static const char *const places[] = { "file", "dev",	"network", "bridge", "name",
					      "dir",  "volume", "path",	   NULL };
	const xmlNode *source = child(n, "source");
	cleanup_free char *kind = attribute_of(n, kinds);
	cleanup_free char *place = attribute_of(source, places);
	cleanup_free char *target = attribute(child(n, "target"), "dev");
	cleanup_free char *text = text_of(n);
	const char *what = kind ? kind : text ? text : "";
	bool both = *what && place;

	domain_xml_note_unused(d, "%s%s%s%s%s%s%s%s%s%s%s", prefix,
			       n->ns && n->ns->prefix ? (const char *)n->ns->prefix : "",
			       n->ns && n->ns->prefix ? ":" : "", (const char *)n->name,
			       target ? " " : "", target ? target : "", *what || place ? " (" : "",
			       what, both ? " " : "", place ? place : "",
			       *what || place ? ")" : "");
}

/* Our machine has a console, too: on standard output. */
static bool is_our_console(const xmlNode *n)
{
	cleanup_free char *port = attribute(child(n, "target"), "port");

	return (is_element(n, "serial") || is_element(n, "console")) &&
	       (!port || !strcmp(port, "0")) &&
	       (domain_xml_has(n, "type", "pty") || domain_xml_has(n, "type", "stdio"));
}

/* -- disks ---------------------------------------------------------------------------- */

static void free_disk(struct domain_disk *k)
{
	free(k->target);
	free(k->path);
	free(k->serial);
	free(k->format);
	free(k->option);
	*k = (struct domain_disk){ 0 };
}

/* Sorts vda before vdb before vdaa, whatever the bus. */
static int by_target(const void *a, const void *b)
{
	const char *x = ((const struct domain_disk *)a)->target;
	const char *y = ((const struct domain_disk *)b)->target;

	return strlen(x) != strlen(y) ? (strlen(x) < strlen(y) ? -1 : 1) : strcmp(x, y);
}

/* Returns false if our machine cannot have the disk; its other properties are then listed. */
static bool take_disk(struct domain_xml *d, const xmlNode *n)
{
	const xmlNode *source = child(n, "source"), *target = child(n, "target");
	cleanup_free char *device = attribute(n, "device"), *bus = attribute(target, "bus");
	cleanup_free char *format = attribute(child(n, "driver"), "type");
	struct domain_disk k = { 0 };

	if (!is_element(n, "disk") || (device && strcmp(device, "disk")) ||
	    d->ndisks == DOMAIN_XML_DISKS_MAX)
		return false;
	k.target = attribute(target, "dev");
	/* Without a type it is a file. */
	k.path = attribute(source, domain_xml_has(n, "type", "block") ? "dev" : "file");
	if (!k.target || !k.path) {
		free_disk(&k);
		return false;
	}
	if (format && strcmp(format, "raw") && !disk_format_find(format)) {
		domain_xml_note_unused(d, "disk %.16s (%.20s %.80s: an unknown format)", k.target,
				       format, k.path);
		free_disk(&k);
		return true;
	}
	k.format = take_ptr(format);
	if (bus && strcmp(bus, "virtio"))
		domain_xml_note_unused(d, "disk %.16s (bus %.20s: it is a virtio disk here)",
				       k.target, bus);
	k.serial = text_of(child(n, "serial"));
	k.readonly = child(n, "readonly") != NULL;
	d->disk[d->ndisks++] = k;
	return true;
}

static void leave_devices(struct domain_xml *d, const xmlNode *devices)
{
	for (const xmlNode *n = devices->children; n; n = n->next) {
		if (n->type != XML_ELEMENT_NODE || is_our_console(n) || take_disk(d, n))
			continue;
		/* Our machine has "none", too. */
		if (!domain_xml_has(n, "model", "none") && !domain_xml_has(n, "type", "none"))
			leave(d, "", n);
	}
}

static void leave_children(struct domain_xml *d, const char *prefix, const xmlNode *parent,
			   const char *const *but)
{
	for (const xmlNode *n = parent->children; n; n = n->next) {
		bool honoured = n->type != XML_ELEMENT_NODE;

		for (unsigned int i = 0; but[i]; i++)
			honoured = honoured || is_element(n, but[i]);
		if (!honoured)
			leave(d, prefix, n);
	}
}

static void leave_rest(struct domain_xml *d, const xmlNode *root)
{
	/* Elements that are used, or that describe the domain without an effect on the guest. */
	static const char *const top[] = {
		"name",		 "uuid",	"title",     "description", "metadata",
		"memory",	 "vcpu",	"os",	     "devices",	    "features",
		"currentMemory", "on_poweroff", "on_reboot", "on_crash",    NULL
	};
	/* Without a kernel the first disk is booted. */
	static const char *const os[] = { "type", "kernel", "initrd", "cmdline", "boot", NULL };
	static const char *const none[] = { NULL };
	static const char *const ends[] = { "on_poweroff", "on_reboot", "on_crash" };

	for (const xmlNode *n = root->children; n; n = n->next) {
		if (is_element(n, "devices"))
			leave_devices(d, n);
		else if (is_element(n, "os"))
			leave_children(d, "os ", n, os);
		else if (is_element(n, "features"))
			leave_children(d, "feature ", n, none);
		/* The run ends whenever the guest ends. */
		for (unsigned int i = 0; i < ARRAY_SIZE(ends); i++) {
			cleanup_free char *what = is_element(n, ends[i]) ? text_of(n) : NULL;

			if (what && strcmp(what, "destroy"))
				leave(d, "", n);
		}
	}
	leave_children(d, "", root, top);
}

/* -- the parts that are used ---------------------------------------------------------- */

static bool parse_number(const char *s, uint64_t *out)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(s, &end, 10);
	*out = v;
	return *s >= '0' && *s <= '9' && !*end && !errno;
}

/* Units as in formatdomain.html, "Memory Allocation"; without a unit it is KiB. */
static bool unit_size(const char *unit, uint64_t *out)
{
	static const struct {
		const char *name;
		uint64_t size;
	} units[] = {
		{ "b", 1 },
		{ "bytes", 1 },
		{ "k", 1024 },
		{ "KiB", 1024 },
		{ "KB", 1000 },
		{ "M", UINT64_C(1) << 20 },
		{ "MiB", UINT64_C(1) << 20 },
		{ "MB", 1000000 },
		{ "G", UINT64_C(1) << 30 },
		{ "GiB", UINT64_C(1) << 30 },
		{ "GB", 1000000000 },
		{ "T", UINT64_C(1) << 40 },
		{ "TiB", UINT64_C(1) << 40 },
		{ "TB", UINT64_C(1000000000000) },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcasecmp(unit, units[i].name)) {
			*out = units[i].size;
			return true;
		}
	return false;
}

static int take_memory(struct domain_xml *d, const xmlNode *root, struct err *e)
{
	const xmlNode *n = child(root, "memory"), *now = child(root, "currentMemory");
	cleanup_free char *text = text_of(n), *unit = attribute(n, "unit");
	cleanup_free char *current = text_of(now);
	uint64_t v, size = 1024;

	if (!n)
		return 0;
	if (!text || !parse_number(text, &v) || !v || (unit && !unit_size(unit, &size)) ||
	    __builtin_mul_overflow(v, size, &d->memory))
		return err_set(e, EINVAL, "<memory%s%.20s%s> %.40s: expected a size",
			       unit ? " unit='" : "", unit ? unit : "", unit ? "'" : "",
			       text ? text : "is empty");
	/* A balloon would take the rest from the guest. */
	if (current && strcmp(current, text))
		leave(d, "", now);
	return 0;
}

static int take_vcpus(struct domain_xml *d, const xmlNode *root, struct err *e)
{
	const xmlNode *n = child(root, "vcpu");
	cleanup_free char *most = text_of(n), *now = attribute(n, "current");
	uint64_t v;

	if (!n)
		return 0;
	if (!most || !parse_number(now ? now : most, &v) || !v || v > UINT_MAX)
		return err_set(e, EINVAL, "<vcpu> %.40s: expected a number",
			       now    ? now
			       : most ? most
				      : "is empty");
	d->vcpus = (unsigned int)v;
	if (now && strcmp(now, most))
		domain_xml_note_unused(d, "vcpu (%.40s that may be plugged in)", most);
	return 0;
}

static int take_os(struct domain_xml *d, const xmlNode *root, struct err *e)
{
	const xmlNode *os = child(root, "os"), *type = child(os, "type");
	cleanup_free char *kind = text_of(type), *arch = attribute(type, "arch");

	if (kind && strcmp(kind, "hvm"))
		return err_set(e, ENOTSUP, "<type> %.40s: only hvm is a machine that KVM runs",
			       kind);
	if (arch && strcmp(arch, "x86_64"))
		return err_set(e, ENOTSUP, "<type arch='%.40s'>: only x86_64 runs here", arch);
	d->kernel = text_of(child(os, "kernel"));
	d->initrd = text_of(child(os, "initrd"));
	d->cmdline = text_of(child(os, "cmdline"));
	return 0;
}

static int domain_xml_take(struct domain_xml *d, const xmlNode *root, struct err *e)
{
	int ret;

	if (!root || !is_element(root, "domain"))
		return err_set(e, EINVAL, "not the definition of a domain: <%.40s>",
			       root ? (const char *)root->name : "");
	d->name = text_of(child(root, "name"));
	if ((ret = take_os(d, root, e)) || (ret = take_memory(d, root, e)) ||
	    (ret = take_vcpus(d, root, e)))
		return ret;
	leave_rest(d, root);
	if (d->ndisks)
		qsort(d->disk, d->ndisks, sizeof(d->disk[0]), by_target);
	return d->left.failed ? err_nomem(e) : 0;
}

/* -- the whole definition ------------------------------------------------------------- */

static int no_xml(const struct domain_xml_functions *lib, struct err *e)
{
	const xmlError *last = lib->xmlGetLastError();
	char text[200];

	snprintf(text, sizeof(text), "%s",
		 last && last->message ? last->message : "not well-formed");
	text[strcspn(text, "\n")] = '\0';
	for (char *c = text; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	return err_set(e, EINVAL, "not XML, line %d: %s", last ? last->line : 0, text);
}

int domain_xml_parse(const char *text, size_t len, struct domain_xml *out, struct err *e)
{
	struct domain_xml_functions lib = { 0 };
	xmlDocPtr doc;
	int ret;

	memset(out, 0, sizeof(*out));
	buf_init(&out->left);
	if (len > DOMAIN_XML_MAX)
		return err_set(e, EINVAL, "more than %u KiB: not the definition of a domain",
			       DOMAIN_XML_MAX >> 10);
	/* libvirt writes none, and entities or other files are not needed here. */
	if (memmem(text, len, "<!DOCTYPE", 9) || memchr(text, '\0', len))
		return err_set(e, EINVAL,
			       "a DOCTYPE or a NUL byte: not the definition of a domain");
	ret = domain_xml_load(&lib, e);
	if (ret)
		return ret;
	/* The encoding is given, so that no declaration can hide a DOCTYPE in another one. */
	doc = lib.xmlReadMemory(text, (int)len, "domain.xml", "UTF-8",
				XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	if (!doc)
		return no_xml(&lib, e);
	ret = doc->intSubset ? err_set(e, EINVAL, "a DOCTYPE: not the definition of a domain")
			     : domain_xml_take(out, lib.xmlDocGetRootElement(doc), e);
	lib.xmlFreeDoc(doc);
	return ret;
}

void domain_xml_deinit(struct domain_xml *d)
{
	free(d->name);
	free(d->kernel);
	free(d->initrd);
	free(d->cmdline);
	for (unsigned int i = 0; i < d->ndisks; i++)
		free_disk(&d->disk[i]);
	buf_deinit(&d->left);
	memset(d, 0, sizeof(*d));
}
