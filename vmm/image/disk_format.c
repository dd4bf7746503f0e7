/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/image/disk_format.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name; /* name in qemu-img */
	size_t off, len;
	const char *magic;
} formats[] = {
	{ "qcow2", 0, 4, "QFI\xfb" },
	{ "vmdk", 0, 4, "KDMV" }, /* sparse extent */
	{ "vmdk", 0, 4, "COWD" }, /* ESX */
	{ "vmdk", 0, 20, "# Disk DescriptorFil" },
	{ "vdi", 64, 4, "\x7f\x10\xda\xbe" },
	{ "vhdx", 0, 8, "vhdxfile" },
	{ "vpc", 0, 8, "conectix" },
	{ "qed", 0, 4, "QED" },
};

const char *disk_format_name(const uint8_t *head, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (formats[i].off + formats[i].len <= len &&
		    memcmp(head + formats[i].off, formats[i].magic, formats[i].len) == 0)
			return formats[i].name;
	return NULL;
}

/* Writes the path quoted for a shell. */
static void quote(char *out, size_t cap, const char *path)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+:@%,=";
	size_t n = 0;

	if (path[strspn(path, plain)] == '\0') {
		snprintf(out, cap, "%s", path);
		return;
	}
	if (cap > 1)
		out[n++] = '\'';
	for (; *path && n + 6 < cap; path++) {
		if (*path == '\'')
			n += (size_t)snprintf(out + n, cap - n, "'\\''");
		else
			out[n++] = *path;
	}
	snprintf(out + n, cap - n, "'");
}

int disk_format_refuse(const char *path, const uint8_t *head, size_t len, struct err *e)
{
	const char *name = disk_format_name(head, len);
	const char *base, *dot;
	char raw[200], from[200], to[200];
	int keep;

	if (!name)
		return 0;
	/* The suggested name of disk.qcow2 is disk.raw. */
	base = strrchr(path, '/');
	dot = strrchr(base ? base : path, '.');
	keep = dot && dot != (base ? base + 1 : path) ? (int)(dot - path) : (int)strlen(path);
	snprintf(raw, sizeof(raw), "%.*s.raw", keep, path);
	quote(from, sizeof(from), path);
	quote(to, sizeof(to), raw);
	return err_set(
		e, ENOTSUP,
		"%s: a %s image; kvmprof reads raw ones: qemu-img convert -f %s -O raw %s %s", path,
		name, name, from, to);
}
