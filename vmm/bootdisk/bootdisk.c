/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bootdisk/bootdisk.h"

#include "base/cleanup.h"
#include "vmm/bootdisk/private.h"
#include "vmm/bootdisk/osrel.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OS_RELEASE 65536u

void diskboot_note(struct diskboot *b, const char *fmt, ...)
{
	struct err *note = &b->note[b->nnotes];
	va_list ap;

	if (b->nnotes == DISKBOOT_MAX_NOTES)
		return;
	note->code = ENOENT;
	va_start(ap, fmt);
	vsnprintf(note->text, sizeof(note->text), fmt, ap);
	va_end(ap);
	b->nnotes++;
}

/* Reads PRETTY_NAME, such as "Debian GNU/Linux 12 (bookworm)", os-release(5). */
static void read_release(struct diskboot_fs *f)
{
	char name[OSREL_MAX_VALUE];
	struct buf text;

	buf_init(&text);
	if (fs_read(f->fs, "/etc/os-release", MAX_OS_RELEASE, &text, NULL) == 0 ||
	    fs_read(f->fs, "/usr/lib/os-release", MAX_OS_RELEASE, &text, NULL) == 0) {
		snprintf(f->os, sizeof(f->os), "an operating system");
		if (osrel_value((const char *)text.data, text.len, "PRETTY_NAME", name))
			snprintf(f->os, sizeof(f->os), "%.*s", (int)sizeof(f->os) - 1, name);
	}
	buf_deinit(&text);
}

static void open_file_systems(struct diskboot *b, const struct disk_reader *disk)
{
	static const char *const inits[] = { "/sbin/init", "/usr/sbin/init", "/lib/systemd/systemd",
					     "/usr/lib/systemd/systemd" };
	static const char *const links[] = { "/sbin/init" };
	char target[DISKFS_MAX_PATH];

	for (unsigned int i = 0; i < b->layout.n && b->nfs < DISKBOOT_MAX_FS; i++) {
		const struct disk_part *p = &b->layout.part[i];
		struct volume v = { .disk = *disk, .off = p->off, .len = p->len };
		struct diskboot_fs *f = &b->fs[b->nfs];

		if (!*p->fs || !strcmp(p->fs, "swap"))
			continue;
		f->part = p;
		b->nfs++;
		if (fs_open(&f->fs, &v, p->fs, &f->why) < 0)
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(inits); k++)
			f->init = f->init || fs_exists(f->fs, inits[k]);
		/* A link may lead to another file system, so the link itself is sufficient. */
		f->init = f->init || fs_link(f->fs, links[0], target) == 0;
		read_release(f);
	}
}

/* Chooses the root: the file system with an init, else one with an os-release. */
static void find_root(struct diskboot *b)
{
	b->root_fs = b->nfs;
	for (unsigned int i = b->nfs; i-- > 0;)
		if (*b->fs[i].os)
			b->root_fs = i;
	for (unsigned int i = b->nfs; i-- > 0;)
		if (b->fs[i].init)
			b->root_fs = i;
}

/* Stores the reason if kvmprof boots another entry than GRUB would. */
static void explain_grub(struct diskboot *b)
{
	struct diskboot_grub *g = &b->grub;

	if (!g->from || g->taken || g->other.code)
		return;
	if (b->entry.source == DISKBOOT_BLS || b->entry.source == DISKBOOT_UKI)
		err_set(&g->other, ENOENT,
			"boot entries of the Boot Loader Specification are there, and this menu "
			"has no "
			"blscfg");
	else
		err_set(&g->other, ENOENT,
			"none of its entries boots a Linux whose files are there");
}

int diskboot_open(struct diskboot *b, const struct disk_reader *disk, const char *path,
		  struct err *e)
{
	static int (*const finders[])(struct diskboot *, struct err *) = {
		diskboot_find_blscfg, diskboot_find_bls,    diskboot_find_grub,
		diskboot_find_link,   diskboot_find_newest,
	};
	int ret;

	memset(b, 0, sizeof(*b));
	ret = layout_read(&b->layout, disk, path, e);
	if (ret)
		return ret;
	open_file_systems(b, disk);
	find_root(b);
	ret = diskboot_list_kernels(b, e);
	for (size_t i = 0; i < ARRAY_SIZE(finders) && !ret; i++)
		ret = finders[i](b, e);
	if (ret < 0)
		diskboot_close(b);
	else
		explain_grub(b);
	return ret < 0 ? ret : 0;
}

static void free_entry(struct diskboot_entry *t)
{
	free(t->from);
	free(t->title);
	free(t->options);
	free(t->kernel.path);
	for (unsigned int i = 0; i < t->ninitrd; i++)
		free(t->initrd[i].path);
	memset(t, 0, sizeof(*t));
}

void diskboot_close(struct diskboot *b)
{
	free_entry(&b->entry);
	free(b->grub.from);
	free(b->grub.title);
	free(b->grub.index);
	free(b->grub.name);
	for (unsigned int i = 0; i < b->nkernels; i++)
		free(b->kernel[i].path);
	for (unsigned int i = 0; i < b->nfs; i++)
		fs_close(b->fs[i].fs);
	memset(b, 0, sizeof(*b));
}

/*
 * Joins base's directory and target, resolving "." and "..". Returns false if the result is too
 * long.
 */
static bool join_path(char *out, const char *base, const char *target)
{
	char all[2 * DISKFS_MAX_PATH];
	const char *slash = strrchr(base, '/');
	size_t n = 0;

	snprintf(all, sizeof(all), "%.*s/%s", *target == '/' || !slash ? 0 : (int)(slash - base),
		 base, target);
	for (const char *s = all; *s;) {
		size_t len = strcspn(s, "/");

		if (len == 2 && !memcmp(s, "..", 2)) {
			while (n && out[--n] != '/')
				;
		} else if (len && !(len == 1 && *s == '.')) {
			if (n + len + 2 > DISKFS_MAX_PATH)
				return false;
			out[n++] = '/';
			memcpy(out + n, s, len);
			n += len;
		}
		s += len + (s[len] == '/');
	}
	out[n] = 0;
	return n > 0;
}

/*
 * Replaces path by the target of the link, if it is one within this file system: the target's name
 * contains the version.
 */
static void follow_name(struct diskfs *fs, char *path)
{
	char target[DISKFS_MAX_PATH], next[DISKFS_MAX_PATH];

	for (unsigned int i = 0; i < DISKBOOT_MAX_LINKS; i++) {
		if (fs_link(fs, path, target) < 0 || !join_path(next, path, target) ||
		    !fs_exists(fs, next))
			return;
		memcpy(path, next, strlen(next) + 1);
	}
}

static bool is_there(struct diskboot *b, unsigned int fs, const char *path)
{
	return b->fs[fs].fs && fs_exists(b->fs[fs].fs, path);
}

static bool found_at(struct diskboot *b, unsigned int fs, const char *path,
		     struct diskboot_file *out)
{
	char real[DISKFS_MAX_PATH];

	if (!is_there(b, fs, path))
		return false;
	snprintf(real, sizeof(real), "%s", path);
	follow_name(b->fs[fs].fs, real);
	out->fs = fs;
	out->path = strdup(real);
	return out->path != NULL;
}

static bool locate(struct diskboot *b, unsigned int fs, const char *path, unsigned int links,
		   struct diskboot_file *out)
{
	static const char boot[] = "/boot/";
	char other[DISKFS_MAX_PATH + 8], target[DISKFS_MAX_PATH], next[DISKFS_MAX_PATH];
	size_t n = sizeof(boot) - 2;

	if (fs < b->nfs && found_at(b, fs, path, out))
		return true;
	if (!strncmp(path, boot, n + 1))
		snprintf(other, sizeof(other), "%s", path + n);
	else
		snprintf(other, sizeof(other), "/boot%s%s", *path == '/' ? "" : "/", path);
	for (unsigned int i = 0; i < b->nfs; i++)
		if (found_at(b, i, path, out) || found_at(b, i, other, out))
			return true;
	/* The path may be a link out of its file system. */
	for (unsigned int i = 0; i < b->nfs && links < DISKBOOT_MAX_LINKS; i++)
		if (b->fs[i].fs && fs_link(b->fs[i].fs, path, target) == 0 &&
		    join_path(next, path, target) && strcmp(next, path) != 0 &&
		    locate(b, fs, next, links + 1, out))
			return true;
	return false;
}

bool diskboot_locate(struct diskboot *b, unsigned int fs, const char *path,
		     struct diskboot_file *out)
{
	if (strlen(path) >= DISKFS_MAX_PATH)
		return false;
	return locate(b, fs, path, 0, out);
}

int diskboot_use_entry(struct diskboot *b, const struct diskboot_wanted *w, struct err *e)
{
	struct diskboot_entry t = { .source = w->source, .by_grub = w->by_grub, .from_fs = w->fs };

	if (!diskboot_locate(b, w->kernel_fs, w->kernel, &t.kernel)) {
		diskboot_note(b, "%s names %s, which is on no file system that can be read",
			      w->from, w->kernel);
		return 0;
	}
	for (unsigned int i = 0; i < w->ninitrd && i < DISKBOOT_MAX_INITRDS; i++) {
		if (diskboot_locate(b, t.kernel.fs, w->initrd[i], &t.initrd[t.ninitrd])) {
			t.ninitrd++;
			continue;
		}
		diskboot_note(b, "%s names the initrd %s, which is on no file system", w->from,
			      w->initrd[i]);
		free_entry(&t);
		return 0;
	}
	t.from = strdup(w->from);
	t.title = w->title ? strdup(w->title) : NULL;
	t.options = strdup(w->options ? w->options : "");
	if (!t.from || !t.options || (w->title && !t.title)) {
		free_entry(&t);
		return err_nomem(e);
	}
	b->entry = t;
	return 1;
}

int diskboot_explain_none(const struct diskboot *b, const char *path, struct err *e)
{
	for (unsigned int i = 0; i < b->nfs && b->nfs == 1; i++)
		if (!b->fs[i].fs)
			return err_set(e, ENOENT,
				       "%s: %s: give a kernel with --kernel and --initrd", path,
				       b->fs[i].why.text);
	return err_set(
		e, ENOENT,
		"%s: a disk without a kernel to boot%s%s; `kvmprof inspect` shows what is on "
		"it, --kernel FILE and --root DEV boot it all the same",
		path, b->nnotes ? ": " : "", b->nnotes ? b->note[0].text : "");
}

static void say_place(const struct diskboot *b, unsigned int fs, struct buf *out)
{
	if (b->fs[fs].part->number)
		buf_printf(out, " on partition %u", b->fs[fs].part->number);
}

void diskboot_entry_text(const struct diskboot *b, struct buf *out)
{
	const struct diskboot_entry *t = &b->entry;

	switch (t->source) {
	case DISKBOOT_BLS:
		buf_printf(out, "the boot entry %s, %s of %u", t->from,
			   t->by_grub && !b->grub.taken ? "not the default" : "the default",
			   b->candidates);
		break;
	case DISKBOOT_UKI:
		buf_printf(out, "the unified kernel image %s, the default of %u", t->from,
			   b->candidates);
		break;
	case DISKBOOT_GRUB:
		buf_printf(out, "%s of %u entr%s in %s",
			   b->grub.taken ? "the default" : "not the default", b->candidates,
			   b->candidates == 1 ? "y" : "ies", t->from);
		break;
	case DISKBOOT_LINK:
		buf_printf(out, "the link %s", t->from);
		break;
	case DISKBOOT_NEWEST:
		buf_printf(out, "the newest of %u kernel%s", b->candidates,
			   b->candidates == 1 ? "" : "s");
		break;
	case DISKBOOT_NONE:
		return;
	}
	say_place(b, t->from_fs, out);
}

void diskboot_grub_text(const struct diskboot *b, struct buf *out)
{
	const struct diskboot_grub *g = &b->grub;

	if (!g->from)
		return;
	if (g->title)
		buf_printf(out, "entry %s \"%s\" (%s=%s) of %s", g->index, g->title, g->by, g->name,
			   g->from);
	else
		buf_printf(out, "nothing: there is no entry in %s", g->from);
	say_place(b, g->from_fs, out);
}

int diskboot_read_kernel(const struct diskboot *b, struct buf *out, struct err *e)
{
	const struct diskboot_file *k = &b->entry.kernel;

	return fs_read(b->fs[k->fs].fs, k->path, DISKBOOT_MAX_KERNEL, out, e);
}

int diskboot_read_initrd(const struct diskboot *b, struct buf *out, struct err *e)
{
	int ret = 0;

	for (unsigned int i = 0; i < b->entry.ninitrd && !ret; i++) {
		const struct diskboot_file *f = &b->entry.initrd[i];

		/*
		 * Each archive begins at a multiple of 4
		 * (Documentation/driver-api/early-userspace).
		 */
		buf_align(out, 4);
		if (out->len > DISKBOOT_MAX_INITRD)
			return err_set(e, EFBIG, "more than %u bytes of initrds",
				       DISKBOOT_MAX_INITRD);
		ret = fs_read(b->fs[f->fs].fs, f->path, DISKBOOT_MAX_INITRD - out->len, out, e);
	}
	if (!ret && out->failed)
		ret = err_nomem(e);
	return ret;
}

int diskboot_read_map(const struct diskboot *b, struct buf *out, struct buf *name, struct err *e)
{
	const struct diskboot_file *k = &b->entry.kernel;
	const char *base = strrchr(k->path, '/');
	const char *dash = strchr(base ? base : k->path, '-');
	char path[DISKFS_MAX_PATH + 16];

	if (!dash)
		return err_set(e, ENOENT, "%s: its name has no version", k->path);
	snprintf(path, sizeof(path), "%.*s/System.map%s", base ? (int)(base - k->path) : 0, k->path,
		 dash);
	buf_printf(name, "%s", path);
	buf_u8(name, 0);
	return fs_read(b->fs[k->fs].fs, path, DISKBOOT_MAX_MAP, out, e);
}
