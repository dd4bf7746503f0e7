/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds kernels without a boot entry: by the links that distributions maintain, and by version. */
#include "vmm/bootdisk/private.h"

#include "base/cleanup.h"
#include "vmm/bootdisk/bls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Returns "6.1.0-18-amd64" for "vmlinuz-6.1.0-18-amd64", or NULL if it is not a kernel's name. */
static const char *version_of(const char *name)
{
	static const char *const prefixes[] = { "vmlinuz", "bzImage" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], n) && (!name[n] || name[n] == '-'))
			return name + n + (name[n] == '-');
	}
	return NULL;
}

/*
 * Returns whether it is a rescue kernel, or a copy that a package manager has left; these come
 * last.
 */
static bool is_second_choice(const char *version)
{
	return strstr(version, "rescue") || strstr(version, "recovery") || strstr(version, ".old");
}

static int newer_first(const void *a, const void *b)
{
	const struct diskboot_file *x = a, *y = b;
	const char *vx = version_of(base_of(x->path)), *vy = version_of(base_of(y->path));

	if (is_second_choice(vx) != is_second_choice(vy))
		return is_second_choice(vx) ? 1 : -1;
	return -bls_version_compare(vx, vy);
}

struct listing {
	struct diskboot *b;
	unsigned int fs;
	const char *dir;
	struct err *e;
};

static int take_name(void *ctx, const char *name)
{
	struct listing *l = ctx;
	struct diskboot *b = l->b;
	char target[DISKFS_MAX_PATH];
	char *path;

	if (!version_of(name) || b->nkernels == DISKBOOT_MAX_KERNELS)
		return 0;
	if (asprintf(&path, "%s/%s", l->dir, name) < 0)
		return err_nomem(l->e);
	/* A link is skipped: its target is listed by its own name. */
	if (fs_link(b->fs[l->fs].fs, path, target) == 0) {
		free(path);
		return 0;
	}
	b->kernel[b->nkernels++] = (struct diskboot_file){ .fs = l->fs, .path = path };
	return 0;
}

int diskboot_list_kernels(struct diskboot *b, struct err *e)
{
	static const char *const dirs[] = { "/boot", "" };
	int ret = 0;

	for (unsigned int i = 0; i < 2 * b->nfs && ret != -ENOMEM; i++) {
		struct listing l = { .b = b, .fs = i / 2, .dir = dirs[i % 2], .e = e };

		if (b->fs[l.fs].fs && fs_exists(b->fs[l.fs].fs, *l.dir ? l.dir : "/"))
			ret = fs_list(b->fs[l.fs].fs, *l.dir ? l.dir : "/", take_name, &l, NULL);
	}
	if (ret == -ENOMEM)
		return err_nomem(e);
	if (b->nkernels)
		qsort(b->kernel, b->nkernels, sizeof(b->kernel[0]), newer_first);
	return 0;
}

int diskboot_find_link(struct diskboot *b, struct err *e)
{
	static const char *const names[][2] = {
		{ "/vmlinuz", "/initrd.img" },
		{ "/boot/vmlinuz", "/boot/initrd.img" },
		{ "/boot/vmlinuz", "/boot/initrd" },
	};
	char target[DISKFS_MAX_PATH];
	int ret = 0;

	b->candidates = 1;
	for (unsigned int fs = 0; fs < b->nfs; fs++)
		for (size_t i = 0; i < ARRAY_SIZE(names) && !ret && b->fs[fs].fs; i++) {
			char *initrd = (char *)names[i][1];
			struct diskboot_wanted w = {
				.source = DISKBOOT_LINK,
				.fs = fs,
				.kernel_fs = fs,
				.from = names[i][0],
				.kernel = names[i][0],
				.initrd = &initrd,
			};

			if (fs_link(b->fs[fs].fs, names[i][0], target) < 0)
				continue;
			w.ninitrd = fs_link(b->fs[fs].fs, initrd, target) == 0;
			/* The initrd's link may have another name, so try again. */
			if (!w.ninitrd && i == 1)
				continue;
			ret = diskboot_use_entry(b, &w, e);
		}
	return ret;
}

/* Finds the initrd by the names that initramfs-tools, dracut, mkinitcpio and mkinitfs use. */
static bool find_initrd(struct diskboot *b, const struct diskboot_file *k, char *to, size_t cap)
{
	static const char *const forms[][2] = {
		{ "initrd.img-", "" }, { "initramfs-", ".img" }, { "initrd-", "" },
		{ "initramfs-", "" },  { "initrd-", ".img" },
	};
	const char *base = base_of(k->path), *version = version_of(base);

	for (size_t i = 0; *version && i < ARRAY_SIZE(forms); i++) {
		snprintf(to, cap, "%.*s%s%s%s", (int)(base - k->path), k->path, forms[i][0],
			 version, forms[i][1]);
		if (fs_exists(b->fs[k->fs].fs, to))
			return true;
	}
	return false;
}

int diskboot_find_newest(struct diskboot *b, struct err *e)
{
	char path[DISKFS_MAX_PATH];
	char *initrd = path;
	int ret = 0;

	b->candidates = b->nkernels;
	for (unsigned int i = 0; i < b->nkernels && !ret; i++) {
		const struct diskboot_file *k = &b->kernel[i];
		struct diskboot_wanted w = {
			.source = DISKBOOT_NEWEST,
			.fs = k->fs,
			.kernel_fs = k->fs,
			.from = k->path,
			.kernel = k->path,
			.initrd = &initrd,
			.ninitrd = find_initrd(b, k, path, sizeof(path)),
		};

		ret = diskboot_use_entry(b, &w, e);
	}
	return ret;
}
