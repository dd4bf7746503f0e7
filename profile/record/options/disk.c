/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/options/disk.h"

#include "profile/record/options/options.h"
#include "profile/record/options/devices.h"
#include "vmm/image/disk_format.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define OPTION_STRUCT struct run_options

/*
 * Copies the next part, up to a single comma. *text is then behind the comma, or NULL at the end.
 */
static int next_part(const char **text, char *out, size_t cap, const char *whole, struct err *e)
{
	const char *s = *text;
	size_t n = 0;

	for (; *s; s++) {
		if (*s == ',' && *++s != ',') {
			out[n] = '\0';
			*text = s;
			return 0;
		}
		if (n + 1 == cap)
			return err_set(e, ENAMETOOLONG, "%.200s: too long", whole);
		out[n++] = *s;
	}
	out[n] = '\0';
	*text = NULL;
	return 0;
}

static int set_write(struct run_disk *d, enum disk_write write, const char *text, struct err *e)
{
	if (d->write != DISK_OVERLAY)
		return err_set(e, EINVAL,
			       "%.200s: only one of readonly, writable and overlay=", text);
	d->write = write;
	return 0;
}

static int set_format(struct run_disk *d, const char *name, const char *text, struct err *e)
{
	d->format = !strcmp(name, "raw") ? "raw" : disk_format_find(name);
	return d->format ? 0
			 : err_set(e, EINVAL,
				   "%.200s: expected format=raw, qcow2, vmdk, vdi, vhdx, vpc, qcow "
				   "or "
				   "qed",
				   text);
}

static int take_setting(struct run_disk *d, const char *s, const char *text, struct err *e)
{
	int ret;

	if (!strcmp(s, "readonly"))
		return set_write(d, DISK_READ_ONLY, text, e);
	if (!strcmp(s, "writable"))
		return set_write(d, DISK_WRITABLE, text, e);
	if (!strcmp(s, "backing")) {
		d->backing = true;
		return 0;
	}
	if (!strncmp(s, "format=", 7))
		return set_format(d, s + 7, text, e);
	if (!strncmp(s, "overlay=", 8) && s[8]) {
		ret = set_write(d, DISK_OVERLAY_FILE, text, e);
		strcpy(d->overlay, s + 8); /* both have PATH_MAX bytes */
		return ret;
	}
	if (!strncmp(s, "serial=", 7) && s[7]) {
		if (strlen(s + 7) > DISK_SERIAL_LEN)
			return err_set(e, EINVAL, "%.200s: a serial number has up to %u bytes",
				       text, DISK_SERIAL_LEN);
		strcpy(d->serial, s + 7);
		return 0;
	}
	ret = run_options_rate_parse(&d->limit, s, strlen(s), "iops", e);
	if (ret)
		return ret < 0 ? ret : 0;
	return err_set(e, EINVAL,
		       "%.100s: expected readonly, writable, overlay=FILE, serial=TEXT, rate=SIZE, "
		       "iops=NUMBER, format=FORMAT or backing behind the comma, not '%.60s' (a "
		       "comma of the name itself is written "
		       "twice)",
		       text, s);
}

int run_options_disk_parse(struct run_disk *out, const char *text, struct err *e)
{
	const char *rest = text;
	char part[PATH_MAX];
	int ret;

	memset(out, 0, sizeof(*out));
	ret = next_part(&rest, out->path, sizeof(out->path), text, e);
	if (ret)
		return ret;
	if (!*out->path)
		return err_set(e, EINVAL, "'%.200s': the name of an image is missing", text);
	while (rest) {
		ret = next_part(&rest, part, sizeof(part), text, e);
		if (ret)
			return ret;
		ret = take_setting(out, part, text, e);
		if (ret)
			return ret;
	}
	return 0;
}

static int parse_disk(void *at, char *arg, struct err *e)
{
	struct run_disk_options *d = at;
	struct run_disk parsed;
	int ret = run_options_disk_parse(&parsed, arg, e);

	if (ret)
		return ret;
	/* An IMAGE that is a disk needs one place. */
	if (d->n == VM_MAX_DISKS - 1)
		return err_set(e, E2BIG, "%.200s: more than %u disks", arg, VM_MAX_DISKS - 1);
	d->text[d->n++] = arg;
	return 0;
}

const struct option_row run_disk_rows[] = {
	{ "disk", 0, "PATH[,...]",
	  "a disk (vda, vdb, ... in order): a block device or an\n"
	  "image, raw, compressed, qcow2, vmdk, vdi or vhdx, which is\n"
	  "not changed: written data are kept in memory; ,readonly:\n"
	  "writes fail; ,overlay=FILE: written data are kept in FILE;\n"
	  ",writable: a raw image is changed; ,format=raw: the format\n"
	  "is not detected; ,backing: its backing file is read, too;\n"
	  ",serial=TEXT: its serial number; ,rate=SIZE and ,iops=N:\n"
	  "limits in bytes and requests per second; may be repeated",
	  OPTION_CALL_AT(parse_disk, disk, NULL) },
	{ "overlay-max", 0, "SIZE",
	  "memory for data written to all disks, with K, M or G;\n"
	  "beyond it writes fail (default: half of the available\n"
	  "memory)",
	  OPTION_SIZE(disk.overlay_max, 1, UINT64_MAX, "a size, such as 512M") },
	{ "backing", 0, NULL,
	  "read files that disk images refer to, such as the backing\n"
	  "file of a qcow2 image; only for images that you trust",
	  OPTION_PUT(disk.backing, true) },
	{ "writable", 0, NULL, "change an IMAGE that is a disk", OPTION_PUT(disk.writable, true) },
	{ 0 },
};
