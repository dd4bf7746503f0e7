/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/rootfs/program.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <gelf.h>
#include <glob.h>
#include <libelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PROGRAM_MAX (1ull << 30)
#define DEPTH_MAX 64u /* a library of a library of ... */
#define DIRS_MAX 256u
#define CONF_DEPTH_MAX 8u
#define NAME_LEN_MAX 1024u

/* The default directories of ld.so(8), and those of Debian's (multiarch). */
static const char *const usual[] = { "/lib/x86_64-linux-gnu",
				     "/usr/lib/x86_64-linux-gnu",
				     "/lib64",
				     "/usr/lib64",
				     "/lib",
				     "/usr/lib" };

struct program_search {
	struct rootfs *r;
	struct buf *dirs;     /* separated by colons */
	char *conf[DIRS_MAX]; /* directories of ld.so.conf, owned */
	unsigned int nconf;
};

struct object {
	const char *path;
	Elf *elf;
	GElf_Ehdr header;
	const char *rpath, *runpath;
};

static int add_any(struct program_search *s, const char *path, unsigned int depth, struct err *e);

static void read_conf(struct program_search *s, const char *path, unsigned int depth)
{
	cleanup_fclose FILE *f = file_stream(path);
	char line[PATH_MAX];

	while (f && fgets(line, sizeof(line), f)) {
		char *word = line + strspn(line, " \t");

		word[strcspn(word, "#\n")] = 0;
		for (size_t n = strlen(word); n && strchr(" \t\r", word[n - 1]);)
			word[--n] = 0;
		if (!strncmp(word, "include", 7) && strchr(" \t", word[7]) &&
		    depth < CONF_DEPTH_MAX) {
			glob_t g;

			if (!glob(word + 7 + strspn(word + 7, " \t"), 0, NULL, &g)) {
				for (size_t i = 0; i < g.gl_pathc; i++)
					read_conf(s, g.gl_pathv[i], depth + 1);
				globfree(&g);
			}
		} else if (*word == '/' && s->nconf < DIRS_MAX) {
			s->conf[s->nconf] = strdup(word);
			s->nconf += s->conf[s->nconf] != NULL;
		}
	}
}

/*
 * Returns whether the file is a library for the same machine. A linker script of the same name is
 * not.
 */
static bool program_fits(const char *path, const GElf_Ehdr *header)
{
	cleanup_fclose FILE *f = file_stream(path);
	unsigned char id[20];
	struct stat st;

	if (!f || fstat(fileno(f), &st) < 0 || !S_ISREG(st.st_mode) ||
	    fread(id, sizeof(id), 1, f) != 1)
		return false;
	return !memcmp(id, ELFMAG, SELFMAG) && id[EI_CLASS] == header->e_ident[EI_CLASS] &&
	       (id[18] | id[19] << 8) == header->e_machine;
}

static bool try_dir(const char *dir, size_t dir_len, const char *name, const struct object *o,
		    char out[PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%.*s/%s", (int)dir_len, dir, name);

	return dir_len && n < PATH_MAX && program_fits(out, &o->header);
}

/* Searches a list such as DT_RUNPATH, where $ORIGIN is the directory of the object. */
static bool try_list(const char *list, const char *name, const struct object *o, char out[PATH_MAX])
{
	const char *slash = strrchr(o->path, '/');

	while (list && *list) {
		size_t len = strcspn(list, ":");
		unsigned int skip = !strncmp(list, "$ORIGIN", 7) && len >= 7	 ? 7
				    : !strncmp(list, "${ORIGIN}", 9) && len >= 9 ? 9
										 : 0;
		char dir[PATH_MAX];
		int n = snprintf(dir, sizeof(dir), "%.*s%.*s", skip ? (int)(slash - o->path) : 0,
				 o->path, (int)(len - skip), list + skip);
		char real[PATH_MAX];

		/* "$ORIGIN/../lib": a name in the archive has no "..". */
		if (n < PATH_MAX && realpath(dir, real) &&
		    try_dir(real, strlen(real), name, o, out))
			return true;
		list += len + (list[len] == ':');
	}
	return false;
}

static bool is_usual(const char *dir, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (strlen(usual[i]) == len && !memcmp(usual[i], dir, len))
			return true;
	return false;
}

/* Notes a directory that the guest, which has no ld.so.cache, would not search. */
static void tell_directory(struct program_search *s, const char *path)
{
	size_t len = (size_t)(strrchr(path, '/') - path);
	const char *list = (const char *)s->dirs->data;

	if (is_usual(path, len))
		return;
	for (size_t at = 0; at < s->dirs->len; at++)
		if (s->dirs->len - at >= len && !memcmp(list + at, path, len) &&
		    (at + len == s->dirs->len || list[at + len] == ':'))
			return;
	buf_printf(s->dirs, "%s%.*s", s->dirs->len ? ":" : "", (int)len, path);
}

static bool find_library(struct program_search *s, const struct object *o, const char *name,
			 char out[PATH_MAX])
{
	bool found = false;

	if (strchr(name, '/')) {
		snprintf(out, PATH_MAX, "%s", name);
		return *name == '/' && program_fits(out, &o->header);
	}
	if ((!o->runpath && try_list(o->rpath, name, o, out)) || try_list(o->runpath, name, o, out))
		return true;
	found = try_list(getenv("LD_LIBRARY_PATH"), name, o, out);
	for (unsigned int i = 0; !found && i < s->nconf; i++)
		found = try_dir(s->conf[i], strlen(s->conf[i]), name, o, out);
	for (size_t i = 0; !found && i < ARRAY_SIZE(usual); i++)
		found = try_dir(usual[i], strlen(usual[i]), name, o, out);
	if (found)
		tell_directory(s, out);
	return found;
}

static int add_needed(struct program_search *s, const struct object *o, const char *name,
		      const char *interp, unsigned int depth, struct err *e)
{
	char path[PATH_MAX];

	/* musl's loader is its libc. */
	if (interp && strstr(interp, "ld-musl") && !strncmp(name, "libc.", 5))
		return 0;
	if (!find_library(s, o, name, path))
		return err_set(e, ENOENT,
			       "%.150s needs %.80s, which is not on this host: give a --rootfs "
			       "that has both",
			       o->path, name);
	return add_any(s, path, depth + 1, e);
}

/* Reads the strings of a dynamic section: first the paths, then the needed libraries. */
static int walk_dynamic(struct program_search *s, struct object *o, Elf_Scn *section,
			const char *interp, unsigned int depth, struct err *e)
{
	GElf_Shdr h;
	Elf_Data *data = elf_getdata(section, NULL);

	if (!data || !gelf_getshdr(section, &h))
		return 0;
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0;; i++) {
			GElf_Dyn d;
			const char *text;
			int ret;

			if (!gelf_getdyn(data, i, &d) || d.d_tag == DT_NULL)
				break;
			if (d.d_tag != DT_NEEDED && d.d_tag != DT_RPATH && d.d_tag != DT_RUNPATH)
				continue;
			text = elf_strptr(o->elf, h.sh_link, d.d_un.d_val);
			if (!text || strlen(text) > NAME_LEN_MAX)
				return err_set(e, EINVAL, "%.200s: damaged dynamic section",
					       o->path);
			if (!pass && d.d_tag == DT_RPATH)
				o->rpath = text;
			if (!pass && d.d_tag == DT_RUNPATH)
				o->runpath = text;
			if (!pass || d.d_tag != DT_NEEDED)
				continue;
			ret = add_needed(s, o, text, interp, depth, e);
			if (ret)
				return ret;
		}
	return 0;
}

static int add_elf(struct program_search *s, const char *path, const struct file_map *m,
		   unsigned int depth, struct err *e)
{
	struct object o = { .path = path };
	Elf_Scn *section = NULL;
	const char *interp = NULL;
	size_t n = 0;
	int ret = 0;

	elf_version(EV_CURRENT);
	o.elf = elf_memory((char *)(uintptr_t)m->data, m->len);
	if (!o.elf || !gelf_getehdr(o.elf, &o.header)) {
		elf_end(o.elf);
		return err_set(e, EINVAL, "%.200s: damaged ELF file", path);
	}
	elf_getphdrnum(o.elf, &n);
	for (size_t i = 0; !ret && i < n && i < 256; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(o.elf, (int)i, &p) || p.p_type != PT_INTERP ||
		    p.p_offset > m->len || p.p_filesz > m->len - p.p_offset || !p.p_filesz ||
		    m->data[p.p_offset + p.p_filesz - 1])
			continue;
		interp = (const char *)m->data + p.p_offset;
		ret = add_any(s, interp, depth + 1, e);
	}
	while (!ret && (section = elf_nextscn(o.elf, section))) {
		GElf_Shdr h;

		if (gelf_getshdr(section, &h) && h.sh_type == SHT_DYNAMIC)
			ret = walk_dynamic(s, &o, section, interp, depth, e);
	}
	elf_end(o.elf);
	return ret;
}

/* Adds the interpreter of a script: "#!/usr/bin/env python3" needs env, and python3. */
static int add_script(struct program_search *s, const struct file_map *m, unsigned int depth,
		      struct err *e);

static bool find_in_path(const char *word, char out[PATH_MAX])
{
	const char *path = getenv("PATH");

	for (path = path ? path : "/usr/bin:/bin"; *path;) {
		size_t len = strcspn(path, ":");
		struct stat st;

		if (len && snprintf(out, PATH_MAX, "%.*s/%s", (int)len, path, word) < PATH_MAX &&
		    access(out, X_OK) == 0 && stat(out, &st) == 0 && S_ISREG(st.st_mode))
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

static int add_script(struct program_search *s, const struct file_map *m, unsigned int depth,
		      struct err *e)
{
	char line[256] = "", path[PATH_MAX], *save = NULL, *interp, *arg;
	size_t n = m->len - 2 < sizeof(line) - 1 ? m->len - 2 : sizeof(line) - 1;
	int ret;

	memcpy(line, m->data + 2, n);
	line[strcspn(line, "\n")] = 0;
	interp = strtok_r(line, " \t\r", &save);
	arg = strtok_r(NULL, " \t\r", &save);
	if (!interp || *interp != '/')
		return 0; /* the guest's kernel will report it */
	ret = add_any(s, interp, depth + 1, e);
	if (!ret && arg && !strcmp(strrchr(interp, '/'), "/env") && find_in_path(arg, path))
		ret = add_any(s, path, depth + 1, e);
	return ret;
}

static int add_any(struct program_search *s, const char *path, unsigned int depth, struct err *e)
{
	struct file_map m = { 0 };
	int ret;

	if (rootfs_has(s->r, path))
		return 0;
	if (depth > DEPTH_MAX)
		return err_set(e, ELOOP, "%.200s: libraries need libraries more than %u deep", path,
			       DEPTH_MAX);
	ret = rootfs_add_file(s->r, path, path, 0, e);
	ret = ret ? ret : file_map_open(&m, path, PROGRAM_MAX, e);
	if (!ret && m.len > SELFMAG && !memcmp(m.data, ELFMAG, SELFMAG))
		ret = add_elf(s, path, &m, depth, e);
	else if (!ret && m.len > 2 && !memcmp(m.data, "#!", 2))
		ret = add_script(s, &m, depth, e);
	file_map_close(&m);
	return ret;
}

/*
 * Finds an absolute path without "..". Symbolic links stay, since a program may depend on its name.
 */
static int find_program(const char *word, char name[PATH_MAX], struct err *e)
{
	static const char *const shell[] = { "exit", "cd",    "export", "set",	"unset",  "source",
					     ".",    "alias", "eval",	"trap", "ulimit", "umask",
					     "if",   "for",   "while",	"case", "exec",	  "wait" };
	char found[PATH_MAX], dir[PATH_MAX], *slash;

	for (size_t i = 0; i < sizeof(shell) / sizeof(shell[0]); i++)
		if (!strcmp(word, shell[i]))
			return err_set(e, ENOENT,
				       "%.200s: is a word of the shell, not a program: give a "
				       "--rootfs with /bin/sh in it, or say -- sh -c '...'",
				       word);
	if (!strchr(word, '/') && !find_in_path(word, found))
		return err_set(e, ENOENT,
			       "%.200s: not found in PATH; without --rootfs the program to run "
			       "comes from this host",
			       word);
	if (strchr(word, '/') && snprintf(found, sizeof(found), "%s", word) >= (int)sizeof(found))
		return err_set(e, ENAMETOOLONG, "%.100s...: too long a name", word);
	if (access(found, X_OK) < 0)
		return err_set(
			e, errno,
			"%.200s: %s; without --rootfs the program to run comes from this host",
			found, errno == EACCES ? "may not be executed" : strerror(errno));
	slash = strrchr(found, '/');
	*slash = 0;
	if (!realpath(slash == found ? "/" : found, dir) ||
	    snprintf(name, PATH_MAX, "%s/%s", strcmp(dir, "/") ? dir : "", slash + 1) >= PATH_MAX)
		return err_set(e, errno, "%.200s: %s", found, strerror(errno));
	return 0;
}

int rootfs_add_program(struct rootfs *r, const char *word, char *name, struct buf *library_path,
		       struct err *e)
{
	struct program_search s = { .r = r, .dirs = library_path };
	int ret = find_program(word, name, e);

	read_conf(&s, "/etc/ld.so.conf", 0);
	ret = ret ? ret : add_any(&s, name, 0, e);
	for (unsigned int i = 0; i < s.nconf; i++)
		free(s.conf[i]);
	return ret;
}
