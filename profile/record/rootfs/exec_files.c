/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/rootfs/exec_files.h"

#include "base/cleanup.h"
#include "profile/record/rootfs/archive.h"
#include "profile/record/rootfs/disk.h"
#include "profile/record/rootfs/modules.h"
#include "profile/record/rootfs/program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* guest/exec, embedded by the Makefile. */
extern const uint8_t exec_init[], exec_init_end[];

#define GUEST_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Characters that a shell treats specially outside of quotations. */
#define OPERATORS "|&;<>()$`*?"

struct exec_files_maker {
	struct exec_files *x;
	const struct exec_options *o;
	struct rootfs r;
	struct buf plan, words, library_path, modules;
	unsigned int nwords;
	bool shell; /* the guest has a shell */
	char program[PATH_MAX], cwd[PATH_MAX];
};

/* -- words ------------------------------------------------------------------------------ */

/* Appends a quotation to the words; *s is behind its first quote, and then behind its last one. */
static bool take_quoted(const char **s, char quote, struct buf *words, bool *needs_shell)
{
	for (; **s && **s != quote; (*s)++) {
		if (quote == '"' && **s == '\\' && (*s)[1] && strchr("\"\\$`", (*s)[1]))
			(*s)++;
		else if (quote == '"' && (**s == '$' || **s == '`'))
			*needs_shell = true;
		buf_u8(words, (uint8_t) * *s);
	}
	return *(*s)++ == quote;
}

int exec_split(const char *s, struct buf *words, unsigned int *n, bool *needs_shell, struct err *e)
{
	const char *whole = s;

	*n = 0;
	*needs_shell = false;
	for (;;) {
		s += strspn(s, " \t\n");
		if (!*s)
			return 0;
		while (*s && !strchr(" \t\n", *s)) {
			char c = *s++;

			if (c == '\'' || c == '"') {
				if (!take_quoted(&s, c, words, needs_shell))
					return err_set(e, EINVAL,
						       "--exec %.200s: a quotation does not end",
						       whole);
				continue;
			}
			if (c == '\\' && *s)
				c = *s++;
			else if (strchr(OPERATORS, c))
				*needs_shell = true;
			buf_u8(words, (uint8_t)c);
		}
		buf_u8(words, 0);
		(*n)++;
	}
}

/* Collects the command's words. */
static int take_words(struct exec_files_maker *m, struct err *e)
{
	bool needs_shell = false;
	int ret;

	for (unsigned int i = 0; i < m->o->nwords; i++)
		buf_add(&m->words, m->o->words[i], strlen(m->o->words[i]) + 1);
	m->nwords = m->o->nwords;
	if (m->nwords)
		return 0;
	ret = exec_split(m->o->command, &m->words, &m->nwords, &needs_shell, e);
	if (ret)
		return ret;
	if (!m->nwords)
		return err_set(e, EINVAL, "--exec: an empty command");
	if (needs_shell && !m->shell)
		return err_set(
			e, EINVAL,
			"--exec %.200s: needs a shell: give a --rootfs with /bin/sh in it, or "
			"words without operators, patterns and variables",
			m->o->command);
	return 0;
}

/* -- files ------------------------------------------------------------------------------ */

static bool has_shell(const struct rootfs *r)
{
	return rootfs_has(r, "bin/sh") || (rootfs_has(r, "bin") && rootfs_has(r, "usr/bin/sh"));
}

/* The guest follows symbolic links within it. */
static bool is_below(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       lstat(path, &st) == 0;
}

static int add_disk(struct exec_files_maker *m, const struct stat *st, struct err *e)
{
	const char *dir = m->o->rootfs;

	if (!S_ISDIR(st->st_mode))
		return err_set(e, ENOTDIR,
			       "--rootfs %.200s: a disk is made of a directory only; an archive "
			       "becomes an initramfs",
			       dir);
	if (!exec_wanted(m->o))
		return err_set(e, EINVAL, "--rootfs-as ext4 needs --exec: say what to run");
	m->x->guest_root = dir;
	m->shell = is_below(dir, "bin/sh") || (is_below(dir, "bin") && is_below(dir, "usr/bin/sh"));
	return rootfs_disk_make(dir, m->x->disk, e);
}

static int add_rootfs(struct exec_files_maker *m, struct err *e)
{
	const char *path = m->o->rootfs;
	struct stat st;
	int ret;

	if (stat(path, &st) < 0)
		return err_set(e, errno, "--rootfs %.200s: %s", path, strerror(errno));
	if (m->o->rootfs_disk)
		return add_disk(m, &st, e);
	if (S_ISDIR(st.st_mode)) {
		m->x->guest_root = path;
		ret = rootfs_add_directory(&m->r, path, e);
	} else if (S_ISREG(st.st_mode)) {
		ret = rootfs_add_archive(&m->r, path, e);
	} else {
		ret = err_set(e, EINVAL, "--rootfs %.200s: neither a directory nor a regular file",
			      path);
	}
	if (!ret && !m->r.entries)
		ret = err_set(e, ENOENT, "--rootfs %.200s: it is empty", path);
	m->shell = has_shell(&m->r);
	return ret;
}

/* The first word is the program; it is named by its path, whatever the working directory is. */
static int add_program(struct exec_files_maker *m, struct err *e)
{
	const char *word = (const char *)m->words.data;
	struct buf rest = m->words;
	int ret = rootfs_add_program(&m->r, word, m->program, &m->library_path, e);

	if (ret)
		return ret;
	buf_init(&m->words);
	buf_add(&m->words, m->program, strlen(m->program) + 1);
	buf_add(&m->words, rest.data + strlen(word) + 1, rest.len - strlen(word) - 1);
	buf_deinit(&rest);
	m->x->guest_root = "/";
	if (!m->o->cwd && getcwd(m->cwd, sizeof(m->cwd)))
		ret = rootfs_add_node(&m->r, m->cwd, S_IFDIR | 0755, 0, 0, e);
	return ret;
}

/* Adds mount points, and the console that the kernel opens for the init. */
static int add_basics(struct exec_files_maker *m, struct err *e)
{
	static const struct {
		const char *name;
		uint32_t mode, major, minor;
	} node[] = {
		{ "dev", S_IFDIR | 0755, 0, 0 },	 { "proc", S_IFDIR | 0755, 0, 0 },
		{ "sys", S_IFDIR | 0755, 0, 0 },	 { "run", S_IFDIR | 0755, 0, 0 },
		{ "tmp", S_IFDIR | 01777, 0, 0 },	 { "root", S_IFDIR | 0700, 0, 0 },
		{ "dev/console", S_IFCHR | 0600, 5, 1 }, { "dev/null", S_IFCHR | 0666, 1, 3 },
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(node); i++)
		ret = rootfs_add_node(&m->r, node[i].name, node[i].mode, node[i].major,
				      node[i].minor, e);
	return ret;
}

/* -- the plan --------------------------------------------------------------------------- */

static void plan_add(struct exec_files_maker *m, char kind, const char *text)
{
	buf_u8(&m->plan, (uint8_t)kind);
	buf_add(&m->plan, text, strlen(text) + 1);
}

static void plan_list(struct exec_files_maker *m, char kind, const struct buf *list)
{
	const char *s = (const char *)list->data;

	for (size_t at = 0; at < list->len; at += strlen(s + at) + 1)
		plan_add(m, kind, s + at);
}

/* Adds a variable unless it was given: getenv() takes the first one. */
static void plan_default(struct exec_files_maker *m, const char *variable)
{
	size_t len = strcspn(variable, "=") + 1;

	for (unsigned int i = 0; i < m->o->nenv; i++)
		if (!strncmp(m->o->env[i], variable, len))
			return;
	plan_add(m, 'e', variable);
}

static void plan_environment(struct exec_files_maker *m, enum exec_input input)
{
	const char *term = input == EXEC_INPUT_TERMINAL ? getenv("TERM") : NULL;
	char variable[256];

	plan_default(m, "PATH=" GUEST_PATH);
	plan_default(m, "HOME=/root");
	snprintf(variable, sizeof(variable), "TERM=%.200s", term ? term : "linux");
	plan_default(m, variable);
	if (m->library_path.len) {
		struct buf b;

		buf_init(&b);
		buf_printf(&b, "LD_LIBRARY_PATH=%.*s", (int)m->library_path.len,
			   (const char *)m->library_path.data);
		buf_u8(&b, 0);
		if (!b.failed)
			plan_default(m, (const char *)b.data);
		m->plan.failed |= b.failed;
		buf_deinit(&b);
	}
	for (unsigned int i = 0; i < m->o->nenv; i++)
		plan_add(m, 'e', m->o->env[i]);
}

static int make_nonce(struct exec_files *x, bool repeats, struct err *e)
{
	uint8_t random[EXEC_NONCE_LEN / 2] = { 0 };

	if (!repeats && getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_set(e, errno, "getrandom: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(random); i++)
		sprintf(x->nonce + 2 * i, "%02x", random[i]);
	return 0;
}

static int add_plan(struct exec_files_maker *m, const struct exec_share *share,
		    enum exec_input input, struct err *e)
{
	const struct exec_options *o = m->o;
	int ret = make_nonce(m->x, o->repeats, e);

	if (ret)
		return ret;
	plan_add(m, 'x', m->x->nonce);
	if (input == EXEC_INPUT_TERMINAL)
		plan_add(m, 'i', "");
	if (*m->x->disk)
		plan_add(m, 'r', "ext4");
	plan_list(m, 'm', &m->modules);
	for (unsigned int i = 0; i < o->nshare; i++) {
		buf_printf(&m->plan, "s%s\n%s\n%s", share[i].tag, share[i].place,
			   share[i].read_only ? "ro" : "rw");
		buf_u8(&m->plan, 0);
	}
	if (o->command && m->shell)
		plan_add(m, 'c', o->command);
	plan_list(m, 'a', &m->words);
	plan_environment(m, input);
	plan_add(m, 'd', o->cwd ? o->cwd : *m->cwd ? m->cwd : "/");
	buf_u8(&m->plan, 0);
	if (m->plan.failed || m->words.failed || m->library_path.failed || m->modules.failed)
		return err_nomem(e);
	if (m->plan.len > EXEC_PLAN_MAX)
		return err_set(e, E2BIG,
			       "the command, its environment and the modules have %zu bytes, more "
			       "than %u",
			       m->plan.len, EXEC_PLAN_MAX);
	ret = rootfs_add_bytes(&m->r, EXEC_PLAN, S_IFREG | 0400, m->plan.data, m->plan.len, e);
	m->x->init = EXEC_INIT;
	return ret ? ret
		   : rootfs_add_bytes(&m->r, EXEC_INIT, S_IFREG | 0500, exec_init,
				      (size_t)(exec_init_end - exec_init), e);
}

/* Without a command the root file system's own init runs. */
static int choose_init(struct exec_files_maker *m, struct err *e)
{
	static const char *const init[] = { "/init", "/sbin/init", "/usr/sbin/init", "/linuxrc" };

	for (size_t i = 0; i < ARRAY_SIZE(init); i++)
		if (rootfs_has(&m->r, init[i])) {
			m->x->init = init[i];
			return 0;
		}
	return err_set(
		e, ENOENT,
		"--rootfs %.200s has neither /init nor /sbin/init: say with --exec what to run",
		m->o->rootfs);
}

static int pack_files(struct exec_files_maker *m, const struct exec_share *share,
		      const char *osrelease, enum exec_input input, struct err *e)
{
	const struct exec_options *o = m->o;
	const bool wanted = exec_wanted(o);
	int ret;

	if ((o->rootfs && (ret = add_rootfs(m, e))) || (wanted && (ret = take_words(m, e))) ||
	    (wanted && !o->rootfs && (ret = add_program(m, e))))
		return ret;
	if (o->modules &&
	    (ret = rootfs_add_modules(&m->r, o->modules, o->modprobe, osrelease, &m->modules, e)))
		return ret;
	if ((ret = add_basics(m, e)) ||
	    (ret = wanted ? add_plan(m, share, input, e) : choose_init(m, e)))
		return ret;
	return rootfs_finish(&m->r, &m->x->initrd, e);
}

int exec_files_make(struct exec_files *x, const struct exec_options *o,
		    const struct exec_share *share, const char *osrelease, enum exec_input input,
		    struct err *e)
{
	cleanup_free struct exec_files_maker *m = calloc(1, sizeof(*m));
	int ret;

	*x = (struct exec_files){ 0 };
	if (!m)
		return err_nomem(e);
	m->x = x;
	m->o = o;
	ret = rootfs_init(&m->r, e);
	ret = ret ? ret : pack_files(m, share, osrelease, input, e);
	x->files = m->r.files;
	x->left_out = m->r.left_out;
	memcpy(x->first_left, m->r.first_left, sizeof(x->first_left));
	rootfs_deinit(&m->r);
	buf_deinit(&m->plan);
	buf_deinit(&m->words);
	buf_deinit(&m->library_path);
	buf_deinit(&m->modules);
	return ret;
}

void exec_files_close(struct exec_files *x)
{
	file_map_close(&x->initrd);
	exec_files_close_disk(x);
}

void exec_files_close_disk(struct exec_files *x)
{
	if (*x->disk)
		unlink(x->disk);
	*x->disk = 0;
}

/* -- --share --------------------------------------------------------------------------- */

static bool is_tag(const char *s, size_t len)
{
	static const char fine[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return len && len <= EXEC_TAG_MAX && strspn(s, fine) >= len && s[0] != '.';
}

/* Returns where PLACE begins: after the last colon that a tag or an absolute path follows. */
static const char *find_place(const char *text, size_t len)
{
	for (size_t i = len; i > 0; i--)
		if (text[i - 1] == ':')
			return text + i;
	return NULL;
}

int exec_share_parse(struct exec_share *s, const char *text, unsigned int index, struct err *e)
{
	size_t len = strlen(text), dir_len, place_len;
	char dir[PATH_MAX];
	const char *place;
	struct stat st;

	*s = (struct exec_share){ 0 };
	if (len > 3 && (!strcmp(text + len - 3, ",ro") || !strcmp(text + len - 3, ",rw"))) {
		s->read_only = text[len - 1] == 'o';
		len -= 3;
	}
	place = find_place(text, len);
	dir_len = place ? (size_t)(place - text) - 1 : len;
	place_len = place ? len - dir_len - 1 : 0;
	if (dir_len == 0 || dir_len >= sizeof(dir) || place_len >= sizeof(s->place) - 8)
		return err_set(e, EINVAL, "--share %.200s: expected DIR[:PLACE][,ro]", text);
	snprintf(dir, sizeof(dir), "%.*s", (int)dir_len, text);
	if (!realpath(dir, s->dir) || stat(s->dir, &st) < 0)
		return err_set(e, errno, "--share %.200s: %s", dir, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(e, ENOTDIR, "--share %.200s: not a directory", dir);
	snprintf(s->tag, sizeof(s->tag), "share%u", index);
	if (place_len && *place == '/') {
		snprintf(s->place, sizeof(s->place), "%.*s", (int)place_len, place);
	} else if (place_len) {
		if (!is_tag(place, place_len))
			return err_set(
				e, EINVAL,
				"--share %.200s: PLACE is an absolute path in the guest, or a "
				"word of up to 31 letters, digits, '.', '_' and '-'",
				text);
		snprintf(s->tag, sizeof(s->tag), "%.*s", (int)place_len, place);
	}
	if (!*s->place)
		snprintf(s->place, sizeof(s->place), "/mnt/%s", s->tag);
	/* The plan separates these by line feeds. */
	if (strchr(s->place, '\n'))
		return err_set(e, EINVAL, "--share: a line end in the name of a place");
	return 0;
}
