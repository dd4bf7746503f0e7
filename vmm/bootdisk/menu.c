/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finds boot entries: those of the Boot Loader Specification, including unified kernel images, and
 * those of GRUB's menu.
 */
#include "vmm/bootdisk/private.h"

#include "base/cleanup.h"
#include "vmm/bootdisk/bls.h"
#include "vmm/bootdisk/grubcfg.h"
#include "vmm/image/uki.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LOADER_CONF 65536u
#define MAX_GRUBENV 65536u

struct found_bls {
	struct bls_entry entry;
	unsigned int fs;
	char *path; /* path of its file; owned */
};

/* The entries of all file systems. */
struct bls_list {
	struct found_bls *at; /* owned */
	unsigned int n;
	unsigned int ukis; /* files examined as unified kernel images */
};

/* Appends a section. Its length is at most UKI_MAX_TEXT, which uki_parse() has checked. */
static int read_uki_section(struct diskfs *fs, const char *path, const struct uki *u,
			    enum uki_section kind, struct buf *out, struct err *e)
{
	const struct diskfs_part part = { u->at[kind].off, (size_t)u->at[kind].len };
	uint64_t size;

	return part.len ? fs_read_part(fs, path, part, out, &size, e) : 0;
}

/*
 * Reads the unified kernel image at path as an entry, from its headers and texts. Returns 0, or
 * -errno with *e set if it cannot be booted.
 */
static int read_uki(struct diskboot *b, unsigned int fs, const char *path, const char *name,
		    struct bls_entry *out, struct err *e)
{
	struct diskfs *disk = b->fs[fs].fs;
	struct buf head, osrel, text, cmdline;
	uint64_t size = 0;
	struct uki u;
	int ret;

	buf_init(&head);
	buf_init(&osrel);
	buf_init(&text);
	buf_init(&cmdline);
	ret = fs_read_part(disk, path, (struct diskfs_part){ 0, UKI_HEAD }, &head, &size, e);
	if (!ret && size > DISKBOOT_MAX_KERNEL)
		ret = err_set(e, EFBIG, "%s: %llu bytes, more than the limit of %u", path,
			      (unsigned long long)size, DISKBOOT_MAX_KERNEL);
	ret = ret ? ret : uki_parse(&u, path, head.data, head.len, size, e);
	if (ret == -ENOENT && !e->code)
		err_set(e, ENOENT, "%s: not a unified kernel image", path);
	ret = ret ? ret : read_uki_section(disk, path, &u, UKI_OSREL, &osrel, e);
	ret = ret ? ret : read_uki_section(disk, path, &u, UKI_CMDLINE, &text, e);
	if (!ret)
		uki_text(text.data, text.len, &cmdline);
	if (!ret && (head.failed || osrel.failed || text.failed || cmdline.failed))
		ret = err_nomem(e);
	if (!ret)
		ret = bls_from_uki(out, name, path, (struct bytes){ osrel.data, osrel.len },
				   (const char *)cmdline.data, e);
	buf_deinit(&head);
	buf_deinit(&osrel);
	buf_deinit(&text);
	buf_deinit(&cmdline);
	return ret;
}

/* A directory that is being listed. */
struct bls_dir {
	struct diskboot *b;
	struct bls_list *list;
	unsigned int fs;
	const char *dir;
	struct err *e;
};

/* Reads a file as a string. Returns false if it does not exist or is not text. */
static bool read_text(struct diskboot *b, unsigned int fs, const char *path, size_t max,
		      struct buf *out)
{
	buf_init(out);
	if (b->fs[fs].fs && fs_read(b->fs[fs].fs, path, max, out, NULL) == 0) {
		buf_u8(out, 0);
		if (!out->failed && strlen((const char *)out->data) == out->len - 1)
			return true;
	}
	buf_deinit(out);
	return false;
}

/* Adds the entry, which the list then owns, and a copy of path. */
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
		return err_nomem(d->e);
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
		return err_nomem(d->e);
	if (ret) {
		diskboot_note(d->b, "%s", why.text);
		return 0;
	}
	return add_entry(d, &entry, path);
}

/*
 * Reads one file as a unified kernel image. Names of entries that the boot loader generates
 * (auto-...) and hidden files are skipped.
 */
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
	ret = read_uki(d->b, d->fs, path, name, &entry, &why);
	if (ret == -ENOMEM)
		return err_nomem(d->e);
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

/* Finds "default PATTERN" of loader.conf(5). Returns false if there is none. */
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

/* Reads the environment block of GRUB, on one file system. Returns false if there is none. */
static bool read_env(struct diskboot *b, unsigned int fs, struct buf *env)
{
	static const char *const envs[] = { "/grub2/grubenv", "/boot/grub2/grubenv",
					    "/grub/grubenv", "/boot/grub/grubenv" };

	for (size_t i = 0; i < ARRAY_SIZE(envs); i++)
		if (read_text(b, fs, envs[i], MAX_GRUBENV, env))
			return true;
	return false;
}

/* Appends the value of a variable of this block. name is without the "$" and has len bytes. */
static void add_variable(struct buf *out, const struct buf *env, const char *name, size_t len)
{
	const char *v = (const char *)env->data;

	for (; v && *v; v += strcspn(v, "\n"), v += *v == '\n')
		if (!strncmp(v, name, len) && v[len] == '=') {
			buf_printf(out, "%.*s", (int)strcspn(v + len + 1, "\n"), v + len + 1);
			return;
		}
}

/*
 * Expands variables. $kernelopts and the like in Fedora's and Red Hat's entries come from the
 * environment block of GRUB, whose blscfg command reads these entries. If no menu has that
 * command, words that are a variable are replaced by its value here.
 */
static char *expand_words(struct diskboot *b, unsigned int fs, const char *text)
{
	struct buf env = { 0 }, out, word;
	bool have = strchr(text, '$') && read_env(b, fs, &env);

	buf_init(&out);
	buf_init(&word);
	for (const char *s = text + strspn(text, " \t"); *s; s += strspn(s, " \t")) {
		size_t n = strcspn(s, " \t"), brace = n > 2 && s[1] == '{' && s[n - 1] == '}';

		word.len = 0;
		if (*s != '$')
			buf_add(&word, s, n);
		else if (have)
			add_variable(&word, &env, s + 1 + brace, n - 1 - 2 * brace);
		if (word.len)
			buf_printf(&out, "%s%.*s", out.len ? " " : "", (int)word.len,
				   (const char *)word.data);
		s += n;
	}
	out.failed |= word.failed;
	buf_u8(&out, 0);
	buf_deinit(&word);
	if (have)
		buf_deinit(&env);
	if (out.failed) {
		buf_deinit(&out);
		return NULL;
	}
	return (char *)out.data;
}

/*
 * The paths of all "initrd" lines. Each line may have several, or a variable: "/initramfs.img
 * $tuned_initrd".
 */
struct initrds {
	char *line[BLS_MAX_INITRDS]; /* owned */
	char *path[DISKBOOT_MAX_INITRDS + 1];
	unsigned int n;
};

static int split_initrds(struct diskboot *b, const struct found_bls *f, struct initrds *to)
{
	for (unsigned int i = 0; i < f->entry.ninitrd; i++) {
		char *rest = NULL, *s;

		to->line[i] = expand_words(b, f->fs, f->entry.initrd[i]);
		if (!to->line[i])
			return -ENOMEM;
		for (s = strtok_r(to->line[i], " \t", &rest); s; s = strtok_r(NULL, " \t", &rest))
			if (to->n <= DISKBOOT_MAX_INITRDS)
				to->path[to->n++] = s;
	}
	return 0;
}

static int take_with(struct diskboot *b, const struct found_bls *f, const struct initrds *initrds,
		     struct err *e)
{
	/* Variables in a unified kernel image's command line are never expanded. */
	cleanup_free char *options =
		f->entry.uki ? strdup(f->entry.options) : expand_words(b, f->fs, f->entry.options);
	struct diskboot_wanted w = {
		.source = f->entry.uki ? DISKBOOT_UKI : DISKBOOT_BLS,
		.fs = f->fs,
		.kernel_fs = f->fs,
		.from = f->path,
		.title = f->entry.title ? f->entry.title : f->entry.name,
		.options = options,
		.kernel = f->entry.linux_path,
		.initrd = initrds->path,
		.ninitrd = initrds->n,
	};

	if (!options)
		return err_nomem(e);
	if (initrds->n > DISKBOOT_MAX_INITRDS) {
		diskboot_note(b, "%s: more than %u initrds", f->path, DISKBOOT_MAX_INITRDS);
		return 0;
	}
	return diskboot_use_entry(b, &w, e);
}

static int take_bls(struct diskboot *b, const struct found_bls *f, struct err *e)
{
	struct initrds initrds = { 0 };
	int ret = split_initrds(b, f, &initrds) < 0 ? err_nomem(e) : take_with(b, f, &initrds, e);

	for (unsigned int i = 0; i < ARRAY_SIZE(initrds.line); i++)
		free(initrds.line[i]);
	return ret;
}

/* Returns whether entries.srel states that the entries are of type 1; other types are not read. */
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

/* Lists the entries of a file system; top: "" or "/boot". Damaged directories count as empty. */
static int list_entries(struct diskboot *b, unsigned int fs, const char *top, struct bls_list *l,
			struct err *e)
{
	char loader[32], dir[64];
	struct bls_dir d = { .b = b, .list = l, .fs = fs, .dir = dir, .e = e };
	int ret = 0;

	snprintf(loader, sizeof(loader), "%s/loader", top);
	snprintf(dir, sizeof(dir), "%s/entries", loader);
	if (fs_exists(b->fs[fs].fs, dir) && is_type1(b, fs, loader))
		ret = fs_list(b->fs[fs].fs, dir, take_file, &d, e);
	snprintf(dir, sizeof(dir), "%s/EFI/Linux", top);
	if (ret != -ENOMEM && fs_exists(b->fs[fs].fs, dir))
		ret = fs_list(b->fs[fs].fs, dir, take_uki, &d, e);
	return ret == -ENOMEM ? ret : 0;
}

static void free_list(struct bls_list *l)
{
	for (unsigned int k = 0; k < l->n; k++) {
		bls_deinit(&l->at[k].entry);
		free(l->at[k].path);
	}
	free(l->at);
}

/*
 * Finds the entry among those at the roots of all file systems, which the boot loader joins into
 * one menu, or below /boot.
 */
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
	free_list(&l);
	return ret;
}

int diskboot_find_bls(struct diskboot *b, struct err *e)
{
	int ret = find_below(b, "", e);

	return ret ? ret : find_below(b, "/boot", e);
}

/* Returns the file system where a menu's entry first looks for its files. */
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
		    fs_exists(b->fs[i].fs, t->search_for))
			return i;
	}
	return fs;
}

/* -- GRUB menus, with their boot entries ------------------------------------------------------- */

struct grub_menu {
	struct diskboot *b;
	unsigned int fs;
	const char *path;
	bool blscfg; /* whether menus with that command are wanted now */
	struct bls_list list;
	struct grub_bls *bls; /* entries of the list, in its order; owned, and their scripts */
	struct grubcfg g;
	struct err *e;
};

/* Compares as GRUB orders entries: by file name, newest first. */
static int name_compare(const void *x, const void *y)
{
	const struct bls_entry *a = &((const struct found_bls *)x)->entry;
	const struct bls_entry *b = &((const struct found_bls *)y)->entry;
	int ret = -bls_version_compare(a->name, b->name);

	return ret ? ret : strcmp(a->name, b->name);
}

/*
 * Returns the commands that blscfg makes of an entry (create_entry() of Fedora's
 * grub-core/commands/blscfg.c), or NULL if out of memory. The caller frees them.
 */
static char *script_of(const struct bls_entry *t)
{
	struct buf s;

	buf_init(&s);
	buf_printf(&s, "linux %s %s\n", t->linux_path, t->options);
	for (unsigned int i = 0; i < t->ninitrd; i++)
		buf_printf(&s, "initrd %s\n", t->initrd[i]);
	buf_u8(&s, 0);
	if (s.failed) {
		buf_deinit(&s);
		return NULL;
	}
	return (char *)s.data;
}

/* Lists the text entries on one file system: in `blsdir`, or at the usual places. */
static int list_for_grub(struct grub_menu *m, unsigned int fs, const char *blsdir)
{
	static const char *const dirs[] = { "/loader/entries", "/boot/loader/entries" };
	struct bls_dir d = { .b = m->b, .list = &m->list, .fs = fs, .e = m->e };
	int ret = 0;

	d.dir = blsdir;
	if (*blsdir && fs_exists(m->b->fs[fs].fs, blsdir))
		ret = fs_list(m->b->fs[fs].fs, blsdir, take_file, &d, m->e);
	for (size_t i = 0; i < ARRAY_SIZE(dirs) && !m->list.n && ret != -ENOMEM; i++) {
		d.dir = dirs[i];
		if (fs_exists(m->b->fs[fs].fs, dirs[i]))
			ret = fs_list(m->b->fs[fs].fs, dirs[i], take_file, &d, m->e);
	}
	return ret == -ENOMEM ? ret : 0;
}

static int list_bls(struct grub_menu *m, const struct buf *env)
{
	struct buf dir;
	int ret;

	buf_init(&dir);
	add_variable(&dir, env, "blsdir", 6);
	buf_u8(&dir, 0);
	ret = dir.failed ? err_nomem(m->e) : list_for_grub(m, m->fs, (const char *)dir.data);
	for (unsigned int fs = 0; fs < m->b->nfs && !ret && !m->list.n; fs++)
		if (m->b->fs[fs].fs)
			ret = list_for_grub(m, fs, (const char *)dir.data);
	buf_deinit(&dir);
	if (ret || !m->list.n)
		return ret;
	qsort(m->list.at, m->list.n, sizeof(*m->list.at), name_compare);
	m->bls = calloc(m->list.n, sizeof(*m->bls));
	for (unsigned int i = 0; i < m->list.n && m->bls; i++) {
		const struct bls_entry *t = &m->list.at[i].entry;
		char *script = script_of(t);

		if (!script)
			return err_nomem(m->e);
		m->bls[i] = (struct grub_bls){ .title = t->title ? t->title : t->name,
					       .id = t->name,
					       .script = script };
	}
	return m->bls ? 0 : err_nomem(m->e);
}

static void free_menu(struct grub_menu *m)
{
	for (unsigned int i = 0; i < m->list.n && m->bls; i++)
		free((char *)(uintptr_t)m->bls[i].script);
	free(m->bls);
	free_list(&m->list);
	grubcfg_deinit(&m->g);
}

/* Stores what the first menu would boot. */
static int keep_grub(struct grub_menu *m, const struct grub_entry *t)
{
	struct diskboot_grub *k = &m->b->grub;

	if (k->from)
		return 0;
	k->from = strdup(m->path);
	k->from_fs = m->fs;
	k->by = m->g.chosen_by;
	k->name = strdup(m->g.chosen);
	k->title = t ? strdup(t->title) : NULL;
	k->index = t ? strdup(t->index) : NULL;
	if (!k->from || !k->name || (t && (!k->title || !k->index)))
		return err_nomem(m->e);
	if (t && !t->linux_path)
		err_set(&k->other, ENOTSUP, "it starts no Linux%s%s", *t->loader ? ", but " : "",
			!strncmp(t->loader, "multiboot", 9) || !strcmp(t->loader, "xen_hypervisor")
				? "another kernel, such as Xen, by multiboot"
				: t->loader);
	return 0;
}

static int take_entry(struct grub_menu *m, const struct grub_entry *c)
{
	const struct found_bls *f = c->bls ? &m->list.at[c->bls - 1] : NULL;
	unsigned int fs = f ? f->fs : m->fs;
	const struct diskboot_wanted w = {
		.source = f ? DISKBOOT_BLS : DISKBOOT_GRUB,
		.by_grub = true,
		.fs = fs,
		.kernel_fs = searched_fs(m->b, c, fs),
		.from = f ? f->path : m->path,
		.title = c->title,
		.options = c->args,
		.kernel = c->linux_path,
		.initrd = c->initrd,
		.ninitrd = c->ninitrd,
	};

	return diskboot_use_entry(m->b, &w, m->e);
}

/*
 * Takes the default entry; if it does not boot Linux or its files are missing, the first one whose
 * files exist.
 */
static int take_entries(struct grub_menu *m)
{
	const struct grub_entry *t = grubcfg_default(&m->g);
	struct diskboot_grub *k = &m->b->grub;
	unsigned int notes = m->b->nnotes;
	int ret = keep_grub(m, t);
	bool mine = !ret && k->from_fs == m->fs && !strcmp(k->from, m->path);

	m->b->candidates = 0;
	for (unsigned int i = 0; i < m->g.n; i++)
		m->b->candidates += m->g.entry[i].linux_path != NULL;
	if (!ret && t && t->linux_path) {
		ret = take_entry(m, t);
		if (ret == 1 && mine)
			k->taken = true;
		else if (!ret && mine)
			err_set(&k->other, ENOENT, "%s",
				m->b->nnotes > notes ? m->b->note[m->b->nnotes - 1].text
						     : "a file that it names is not there");
	}
	for (unsigned int i = 0; !ret && i < m->g.n; i++)
		if (m->g.entry[i].linux_path && &m->g.entry[i] != t)
			ret = take_entry(m, &m->g.entry[i]);
	return ret;
}

static int parse_menu(struct grub_menu *m)
{
	struct grubcfg_source source = { .name = m->path };
	char env_path[80];
	struct err why = { 0 };
	struct buf text, env;
	bool have_env;
	int ret;

	if (!read_text(m->b, m->fs, m->path, GRUBCFG_MAX_FILE, &text))
		return 0;
	snprintf(env_path, sizeof(env_path), "%.*s/grubenv", (int)(strrchr(m->path, '/') - m->path),
		 m->path);
	have_env = read_text(m->b, m->fs, env_path, MAX_GRUBENV, &env);
	source.text = (struct bytes){ text.data, text.len - 1 };
	if (have_env)
		source.env = (struct bytes){ env.data, env.len - 1 };
	ret = grubcfg_parse(&m->g, &source, &why);
	if (!ret && m->g.blscfg && m->blscfg) {
		/* Parse it again, now with the boot entries that it has requested. */
		grubcfg_deinit(&m->g);
		ret = list_bls(m, have_env ? &env : &(struct buf){ 0 });
		source.bls = m->bls;
		source.nbls = m->bls ? m->list.n : 0;
		ret = ret ? ret : grubcfg_parse(&m->g, &source, &why);
	}
	buf_deinit(&text);
	if (have_env)
		buf_deinit(&env);
	if (ret == -ENOMEM)
		return err_nomem(m->e);
	/* diskboot_find_grub() parses it again and reports the error then. */
	if (ret && !m->blscfg)
		diskboot_note(m->b, "%s", why.text);
	return ret ? 0 : 1;
}

static int take_menu(struct diskboot *b, unsigned int fs, const char *path, bool blscfg,
		     struct err *e)
{
	struct grub_menu m = { .b = b, .fs = fs, .path = path, .blscfg = blscfg, .e = e };
	int ret = parse_menu(&m);

	if (ret == 1) {
		ret = 0;
		/*
		 * A menu without entries includes another one (configfile), as on boot partitions.
		 */
		if (m.g.n && m.g.blscfg == blscfg)
			ret = take_entries(&m);
		else if (m.g.n)
			ret = keep_grub(&m, grubcfg_default(&m.g));
	}
	free_menu(&m);
	return ret;
}

static int find_menu(struct diskboot *b, bool blscfg, struct err *e)
{
	static const char *const paths[] = {
		"/boot/grub/grub.cfg",	"/boot/grub2/grub.cfg",	   "/grub/grub.cfg",
		"/grub2/grub.cfg",	"/EFI/BOOT/grub.cfg",	   "/boot/grub/grub.conf",
		"/EFI/fedora/grub.cfg", "/EFI/redhat/grub.cfg",	   "/EFI/centos/grub.cfg",
		"/EFI/rocky/grub.cfg",	"/EFI/almalinux/grub.cfg",
	};
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		for (unsigned int fs = 0; fs < b->nfs && !ret; fs++)
			ret = take_menu(b, fs, paths[i], blscfg, e);
	return ret;
}

int diskboot_find_blscfg(struct diskboot *b, struct err *e)
{
	return find_menu(b, true, e);
}

int diskboot_find_grub(struct diskboot *b, struct err *e)
{
	return find_menu(b, false, e);
}
