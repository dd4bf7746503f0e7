/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Boot entries: those of the Boot Loader Specification, and of GRUB's menu. */
#include "vmm/bootdisk/private.h"

#include "base/cleanup.h"
#include "vmm/bootdisk/bls.h"
#include "vmm/bootdisk/grubcfg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LOADER_CONF 65536u
#define MAX_GRUBENV 65536u

struct found_bls {
	struct bls_entry entry;
	unsigned int fs;
	char *path; /* of its file, as it is there; owned */
};

/* All of them, of all file systems. */
struct bls_list {
	struct found_bls *at; /* owned */
	unsigned int n;
	unsigned int ukis; /* files that were looked at for being such */
};

/* A directory that is read into it. */
struct bls_dir {
	struct diskboot *b;
	struct bls_list *list;
	unsigned int fs;
	const char *dir;
	struct err *e;
};

/* A file as a string; false: it is not there, or is no text. */
static bool read_text(struct diskboot *b, unsigned int fs, const char *path, size_t max,
		      struct buf *out)
{
	buf_init(out);
	if (b->fs[fs].fs && diskfs_read(b->fs[fs].fs, path, max, out, NULL) == 0) {
		buf_u8(out, 0);
		if (!out->failed && strlen((const char *)out->data) == out->len - 1)
			return true;
	}
	buf_deinit(out);
	return false;
}

/* Takes the entry over; path is copied. */
static int add_entry(struct bls_dir *d, struct bls_entry *entry, const char *path)
{
	struct bls_list *l = d->list;
	struct found_bls f = { .entry = *entry, .fs = d->fs }, *p;

	if (!bls_usable(entry) || l->n == DISKBOOT_MAX_ENTRIES) {
		bls_deinit(entry);
		return 0;
	}
	p = reallocarray(l->at, l->n + 1, sizeof(*p));
	if (p)
		l->at = p;
	f.path = strdup(path);
	if (!p || !f.path) {
		free(f.path);
		bls_deinit(entry);
		return err_set(d->e, ENOMEM, "out of memory");
	}
	l->at[l->n++] = f;
	return 0;
}

static int take_file(void *ctx, const char *name)
{
	struct bls_dir *d = ctx;
	struct bls_entry entry;
	char path[DISKFS_MAX_PATH];
	struct err why = { 0 };
	struct buf text;
	size_t n = strlen(name);
	int ret;

	if (n < 6 || strcmp(name + n - 5, ".conf") != 0)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", d->dir, name);
	if (!read_text(d->b, d->fs, path, BLS_MAX_FILE, &text)) {
		diskboot_note(d->b, "%s can't be read as a boot entry", path);
		return 0;
	}
	ret = bls_parse(&entry, name, (const char *)text.data, text.len - 1, &why);
	buf_deinit(&text);
	if (ret == -ENOMEM)
		return err_set(d->e, ENOMEM, "out of memory");
	if (ret) {
		diskboot_note(d->b, "%s", why.text);
		return 0;
	}
	return add_entry(d, &entry, path);
}

/* Names of what the boot loader finds by itself (auto-...), and of hidden files, are no entries. */
static int take_uki(void *ctx, const char *name)
{
	struct bls_dir *d = ctx;
	struct bls_entry entry;
	char path[DISKFS_MAX_PATH];
	struct err why = { 0 };
	size_t n = strlen(name);
	int ret;

	if (n < 5 || strcasecmp(name + n - 4, ".efi") != 0 || *name == '.' ||
	    !strncasecmp(name, "auto-", 5))
		return 0;
	snprintf(path, sizeof(path), "%s/%s", d->dir, name);
	if (d->list->ukis++ == DISKBOOT_MAX_UKIS)
		diskboot_note(d->b, "%s and what follows: more than %u unified kernel images", path,
			      DISKBOOT_MAX_UKIS);
	if (d->list->ukis > DISKBOOT_MAX_UKIS)
		return 0;
	ret = diskboot_read_uki(d->b, d->fs, path, name, &entry, &why);
	if (ret == -ENOMEM)
		return err_set(d->e, ENOMEM, "out of memory");
	if (ret) {
		diskboot_note(d->b, "%s", why.text);
		return 0;
	}
	return add_entry(d, &entry, path);
}

static int menu_compare(const void *a, const void *b)
{
	return bls_compare(&((const struct found_bls *)a)->entry,
			   &((const struct found_bls *)b)->entry);
}

/* "default PATTERN" of loader.conf(5), into to; false: none. */
static bool wanted_pattern(struct diskboot *b, unsigned int fs, const char *loader, char *to,
			   size_t cap)
{
	char path[64];
	struct buf text;
	bool found = false;

	snprintf(path, sizeof(path), "%s/loader.conf", loader);
	if (!read_text(b, fs, path, MAX_LOADER_CONF, &text))
		return false;
	for (const char *s = (const char *)text.data; *s; s += strcspn(s, "\n"), s += *s == '\n') {
		size_t n = strspn(s, " \t");
		const char *v = s + n + 7;

		if (strncmp(s + n, "default", 7) != 0 || (*v != ' ' && *v != '\t'))
			continue;
		v += strspn(v, " \t");
		snprintf(to, cap, "%.*s", (int)strcspn(v, " \t\r\n"), v);
		found = *to && *to != '@';
	}
	buf_deinit(&text);
	return found;
}

/*
 * $kernelopts and the like of Fedora's and Red Hat's entries come from the environment
 * block of GRUB, whose blscfg command reads these entries.
 */
static char *expand_options(struct diskboot *b, unsigned int fs, const char *options)
{
	static const char *const envs[] = { "/grub2/grubenv", "/boot/grub2/grubenv",
					    "/grub/grubenv", "/boot/grub/grubenv" };
	struct buf env = { 0 }, out;
	bool have = false;

	for (size_t i = 0; strchr(options, '$') && i < ARRAY_SIZE(envs) && !have; i++)
		have = read_text(b, fs, envs[i], MAX_GRUBENV, &env);
	buf_init(&out);
	for (const char *s = options + strspn(options, " "); *s;) {
		size_t n = strcspn(s, " ");
		const char *v = have && *s == '$' ? (const char *)env.data : NULL;

		if (*s != '$')
			buf_printf(&out, "%s%.*s", out.len ? " " : "", (int)n, s);
		for (; v && *v; v += strcspn(v, "\n"), v += *v == '\n')
			if (!strncmp(v, s + 1, n - 1) && v[n - 1] == '=') {
				buf_printf(&out, "%s%.*s", out.len ? " " : "",
					   (int)strcspn(v + n, "\n"), v + n);
				break;
			}
		s += n;
		s += strspn(s, " ");
	}
	buf_u8(&out, 0);
	buf_deinit(&env);
	if (out.failed) {
		buf_deinit(&out);
		return NULL;
	}
	return (char *)out.data;
}

/* An initrd that is a variable ("$tuned_initrd") is none. */
static unsigned int plain_initrds(const struct bls_entry *t, char **to)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->ninitrd; i++) {
		char *blank = strchr(t->initrd[i], ' ');

		if (blank) /* "/initramfs.img $tuned_initrd" */
			*blank = 0;
		if (*t->initrd[i] && *t->initrd[i] != '$')
			to[n++] = t->initrd[i];
	}
	return n;
}

static int take_bls(struct diskboot *b, const struct found_bls *f, struct err *e)
{
	/* Nobody expands variables in a unified kernel image's command line. */
	cleanup_free char *options = f->entry.uki ? strdup(f->entry.options)
						  : expand_options(b, f->fs, f->entry.options);
	char *initrd[BLS_MAX_INITRDS];
	struct diskboot_wanted w = {
		.source = f->entry.uki ? DISKBOOT_UKI : DISKBOOT_BLS,
		.fs = f->fs,
		.kernel_fs = f->fs,
		.from = f->path,
		.title = f->entry.title ? f->entry.title : f->entry.name,
		.options = options,
		.kernel = f->entry.linux_path,
		.initrd = initrd,
		.ninitrd = plain_initrds(&f->entry, initrd),
	};

	if (!options)
		return err_set(e, ENOMEM, "out of memory");
	return diskboot_take(b, &w, e);
}

/* entries.srel says which type the entries are of; others than type1 are not read. */
static bool is_type1(struct diskboot *b, unsigned int fs, const char *loader)
{
	char path[64];
	struct buf text;
	bool ok = true;

	snprintf(path, sizeof(path), "%s/entries.srel", loader);
	if (read_text(b, fs, path, 256, &text)) {
		ok = !strncmp((const char *)text.data, "type1", 5);
		buf_deinit(&text);
	}
	return ok;
}

/* The entries of a file system into the list; top: "" or "/boot". Damaged directories are as none. */
static int list_entries(struct diskboot *b, unsigned int fs, const char *top, struct bls_list *l,
			struct err *e)
{
	char loader[32], dir[64];
	struct bls_dir d = { .b = b, .list = l, .fs = fs, .dir = dir, .e = e };
	int ret = 0;

	snprintf(loader, sizeof(loader), "%s/loader", top);
	snprintf(dir, sizeof(dir), "%s/entries", loader);
	if (diskfs_exists(b->fs[fs].fs, dir) && is_type1(b, fs, loader))
		ret = diskfs_list(b->fs[fs].fs, dir, take_file, &d, e);
	snprintf(dir, sizeof(dir), "%s/EFI/Linux", top);
	if (ret != -ENOMEM && diskfs_exists(b->fs[fs].fs, dir))
		ret = diskfs_list(b->fs[fs].fs, dir, take_uki, &d, e);
	return ret == -ENOMEM ? ret : 0;
}

/* What is at the root of any file system: the boot loader makes one menu of it; or below /boot. */
static int find_below(struct diskboot *b, const char *top, struct err *e)
{
	struct bls_list l = { 0 };
	char loader[32], pattern[256];
	bool wanted = false;
	int ret = 0;

	for (unsigned int fs = 0; fs < b->nfs && !ret; fs++)
		ret = b->fs[fs].fs ? list_entries(b, fs, top, &l, e) : 0;
	if (l.n) {
		qsort(l.at, l.n, sizeof(*l.at), menu_compare);
		b->candidates = l.n;
	}
	snprintf(loader, sizeof(loader), "%s/loader", top);
	for (unsigned int fs = 0; fs < b->nfs && l.n && !wanted; fs++)
		wanted = wanted_pattern(b, fs, loader, pattern, sizeof(pattern));
	for (unsigned int k = 0; k < l.n && !ret && wanted; k++)
		if (bls_matches(&l.at[k].entry, pattern))
			ret = take_bls(b, &l.at[k], e);
	for (unsigned int k = 0; k < l.n && !ret; k++)
		ret = take_bls(b, &l.at[k], e);
	for (unsigned int k = 0; k < l.n; k++) {
		bls_deinit(&l.at[k].entry);
		free(l.at[k].path);
	}
	free(l.at);
	return ret;
}

int diskboot_find_bls(struct diskboot *b, struct err *e)
{
	int ret = find_below(b, "", e);

	return ret ? ret : find_below(b, "/boot", e);
}

/* Where a menu's entry looks for its files first. */
static unsigned int searched_fs(const struct diskboot *b, const struct grub_entry *t,
				unsigned int fs)
{
	for (unsigned int i = 0; t->search_for && i < b->nfs; i++) {
		const struct disk_part *p = b->fs[i].part;

		if (t->search == GRUB_SEARCH_UUID && !strcasecmp(p->uuid, t->search_for))
			return i;
		if (t->search == GRUB_SEARCH_LABEL && !strcmp(p->label, t->search_for))
			return i;
		if (t->search == GRUB_SEARCH_FILE && b->fs[i].fs &&
		    diskfs_exists(b->fs[i].fs, t->search_for))
			return i;
	}
	return fs;
}

static int take_menu(struct diskboot *b, unsigned int fs, const char *path, struct err *e)
{
	struct grubcfg g;
	const struct grub_entry *t;
	struct diskboot_wanted w;
	char env_path[64];
	struct err why = { 0 };
	const struct bytes none = { NULL, 0 };
	struct buf text, env;
	bool have_env;
	int ret;

	if (!read_text(b, fs, path, GRUBCFG_MAX_FILE, &text))
		return 0;
	snprintf(env_path, sizeof(env_path), "%.*s/grubenv", (int)(strrchr(path, '/') - path),
		 path);
	have_env = read_text(b, fs, env_path, MAX_GRUBENV, &env);
	ret = grubcfg_parse(&g, path, (struct bytes){ text.data, text.len - 1 },
			    have_env ? (struct bytes){ env.data, env.len - 1 } : none, &why);
	buf_deinit(&text);
	if (have_env)
		buf_deinit(&env);
	if (ret == -ENOMEM)
		return err_set(e, ENOMEM, "out of memory");
	if (ret) {
		diskboot_note(b, "%s", why.text);
		return 0;
	}
	b->candidates = 0;
	for (unsigned int i = 0; i < g.n; i++)
		b->candidates += g.entry[i].linux_path != NULL;
	t = grubcfg_default(&g);
	/* When the default's files are gone, the first whose files are there. */
	for (unsigned int i = 0; t && !ret && i <= g.n; i++) {
		const struct grub_entry *c = i ? &g.entry[i - 1] : t;

		if (!c->linux_path || (i && c == t))
			continue;
		w = (struct diskboot_wanted){
			.source = DISKBOOT_GRUB,
			.fs = fs,
			.kernel_fs = searched_fs(b, c, fs),
			.from = path,
			.title = c->title,
			.options = c->args,
			.kernel = c->linux_path,
			.initrd = c->initrd,
			.ninitrd = c->ninitrd,
		};
		ret = diskboot_take(b, &w, e);
	}
	grubcfg_deinit(&g);
	return ret;
}

int diskboot_find_grub(struct diskboot *b, struct err *e)
{
	static const char *const paths[] = { "/boot/grub/grub.cfg", "/boot/grub2/grub.cfg",
					     "/grub/grub.cfg",	    "/grub2/grub.cfg",
					     "/EFI/BOOT/grub.cfg",  "/boot/grub/grub.conf" };
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		for (unsigned int fs = 0; fs < b->nfs && !ret; fs++)
			ret = take_menu(b, fs, paths[i], e);
	return ret;
}
