/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/options/disk.h"

#include "profile/options/options.h"

#include <errno.h>
#include <string.h>

/* The next part, up to a single comma; *text is behind it then, or NULL at the end. */
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

static int take_setting(struct run_disk *d, const char *s, const char *text, struct err *e)
{
	int ret;

	if (!strcmp(s, "readonly"))
		return set_write(d, DISK_READ_ONLY, text, e);
	if (!strcmp(s, "writable"))
		return set_write(d, DISK_WRITABLE, text, e);
	if (!strncmp(s, "overlay=", 8) && s[8]) {
		ret = set_write(d, DISK_OVERLAY_FILE, text, e);
		strcpy(d->overlay, s + 8); /* both are of PATH_MAX */
		return ret;
	}
	if (!strncmp(s, "serial=", 7) && s[7]) {
		if (strlen(s + 7) > VIRTIO_BLK_ID_LEN)
			return err_set(e, EINVAL, "%.200s: a serial number has up to %u bytes",
				       text, VIRTIO_BLK_ID_LEN);
		strcpy(d->serial, s + 7);
		return 0;
	}
	return err_set(
		e, EINVAL,
		"%.100s: expected readonly, writable, overlay=FILE or serial=TEXT behind the "
		"comma, not '%.60s' (a comma of the name itself is written twice)",
		text, s);
}

int run_disk_parse(struct run_disk *out, const char *text, struct err *e)
{
	const char *rest = text;
	char part[PATH_MAX];
	int ret;

	memset(out, 0, sizeof(*out));
	ret = next_part(&rest, out->path, sizeof(out->path), text, e);
	if (!ret && !*out->path)
		ret = err_set(e, EINVAL, "'%.200s': the name of an image is missing", text);
	while (!ret && rest) {
		ret = next_part(&rest, part, sizeof(part), text, e);
		ret = ret ? ret : take_setting(out, part, text, e);
	}
	return ret;
}

int run_options_take_disk(struct run_options *o, int opt, const char *arg)
{
	struct run_disk_options *d = &o->disk;
	struct run_disk parsed;
	struct err e = { 0 };

	if (opt == OPT_WRITABLE) {
		d->writable = true;
		return -1;
	}
	if (run_disk_parse(&parsed, arg, &e) < 0)
		return run_options_wrong(o, "--disk %s", e.text);
	/* An IMAGE that is a disk takes one place. */
	if (d->n == VM_MAX_DISKS - 1)
		return run_options_wrong(o, "--disk %s: more than %u disks", arg, VM_MAX_DISKS - 1);
	d->text[d->n++] = arg;
	return -1;
}

int run_disks_add(struct run_disks *d, const struct disk_config *cfg, const char *serial,
		  struct err *e)
{
	struct vm_disk *disk = &d->at[d->n];
	int ret;

	if (d->n == VM_MAX_DISKS)
		return err_set(e, ENOSPC, "%s: more than %u disks", cfg->path, VM_MAX_DISKS);
	ret = disk_open(&disk->disk, cfg, e);
	if (ret)
		return ret;
	disk->serial = NULL;
	if (serial && *serial) {
		memcpy(d->serial[d->n], serial, strnlen(serial, VIRTIO_BLK_ID_LEN));
		disk->serial = d->serial[d->n];
	}
	d->n++;
	return 0;
}

int run_disks_open(struct run_disks *d, const struct run_disk_options *o, struct err *e)
{
	int ret = 0;

	for (unsigned int i = 0; !ret && i < o->n; i++) {
		struct run_disk parsed;
		struct disk_config cfg = { .path = parsed.path, .overlay = parsed.overlay };

		ret = run_disk_parse(&parsed, o->text[i], e);
		cfg.write = parsed.write;
		ret = ret ? ret : run_disks_add(d, &cfg, parsed.serial, e);
	}
	return ret;
}

void run_disks_configure(const struct run_disks *d, struct vm_config *cfg)
{
	for (unsigned int i = 0; i < d->n && cfg->ndisks < VM_MAX_DISKS; i++)
		cfg->disk[cfg->ndisks++] = d->at[i];
}

void run_disks_close(struct run_disks *d)
{
	for (unsigned int i = 0; i < d->n; i++)
		disk_close(d->at[i].disk);
	d->n = 0;
}
