/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Executes the script while reading it: words are expanded with the current variables, and
 * commands in a branch that is not taken are read and ignored.
 */
#include "vmm/bootdisk/grubcfg.h"

#include "vmm/bootdisk/grubcfg_words.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct menu {
	const char *title, *id, *index; /* names of this submenu; "" at the top */
	unsigned int number;		/* as in struct grub_entry */
	unsigned int n;			/* entries and submenus so far */
};

struct grub {
	struct grubcfg *out;
	struct grub_reader in;
	struct grub_vars vars;
	const struct grubcfg_source *source;
	struct bytes env;
	struct menu *menu;
	struct grub_entry *entry; /* the entry whose block is being read; NULL: none */
	enum grub_search search;  /* kind of the last `search` */
	char *search_for;
	unsigned int depth;
	struct err *e;
};

/* How a list of commands ended. */
enum ended { END_FILE, END_BRACE, END_THEN, END_ELIF, END_ELSE, END_FI, END_DONE, END_ERROR };

static int no_memory(struct grub *g)
{
	return err_nomem(g->e);
}

static int set_string(struct grub *g, char **to, const char *value)
{
	free(*to);
	*to = strdup(value);
	return *to ? 0 : no_memory(g);
}

/* Removes a device that only GRUB knows, as in (hd0,gpt2)/boot/vmlinuz. */
static const char *without_device(const char *path)
{
	const char *end = *path == '(' ? strchr(path, ')') : NULL;

	return end ? end + 1 : path;
}

static int load_env(struct grub *g)
{
	const char *s = g->env.data, *end = s ? s + g->env.len : NULL;

	while (s && s < end) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));
		size_t n = nl ? (size_t)(nl - s) : (size_t)(end - s);
		const char *eq = memchr(s, '=', n);

		if (*s != '#' && eq &&
		    grubcfg_vars_set(&g->vars, s, (size_t)(eq - s), eq + 1,
				     n - (size_t)(eq - s) - 1, g->e) < 0)
			return -EINVAL;
		s += n + 1;
	}
	return 0;
}

static int cmd_search(struct grub *g, const struct grub_words *w)
{
	enum grub_search kind = GRUB_SEARCH_NONE;
	const char *name = w->at[0].text, *what = NULL;

	if (!strcmp(name, "search.fs_uuid"))
		kind = GRUB_SEARCH_UUID;
	else if (!strcmp(name, "search.fs_label"))
		kind = GRUB_SEARCH_LABEL;
	else if (!strcmp(name, "search.file"))
		kind = GRUB_SEARCH_FILE;
	for (unsigned int i = 1; i < w->n; i++) {
		const char *s = w->at[i].text;

		if (!strcmp(s, "--fs-uuid") || !strcmp(s, "-u"))
			kind = GRUB_SEARCH_UUID;
		else if (!strcmp(s, "--label") || !strcmp(s, "--fs-label") || !strcmp(s, "-l"))
			kind = GRUB_SEARCH_LABEL;
		else if (!strcmp(s, "--file") || !strcmp(s, "-f"))
			kind = GRUB_SEARCH_FILE;
		else if (!strcmp(s, "--hint") || !strcmp(s, "-h") || !strcmp(s, "--set") ||
			 !strcmp(s, "-s"))
			i += i + 2 < w->n; /* its value is a separate word */
		else if (*s != '-' && !what)
			what = s;
	}
	if (!what || !kind)
		return 0;
	g->search = kind;
	return set_string(g, &g->search_for, what);
}

/* Joins words; a word with blanks is quoted for the kernel, as GRUB does. */
static int join(struct grub *g, const struct grub_words *w, unsigned int from, char **out)
{
	size_t len = 1;
	char *s, *p;

	for (unsigned int i = from; i < w->n; i++)
		len += strlen(w->at[i].text) + 3;
	s = p = malloc(len);
	if (!s)
		return no_memory(g);
	*p = 0;
	for (unsigned int i = from; i < w->n; i++) {
		const char *q = strchr(w->at[i].text, ' ') ? "\"" : "";

		p += sprintf(p, "%s%s%s%s", p > s ? " " : "", q, w->at[i].text, q);
	}
	free(*out);
	*out = s;
	return 0;
}

static int cmd_linux(struct grub *g, const struct grub_words *w)
{
	struct grub_entry *t = g->entry;

	if (!t || w->n < 2)
		return 0;
	t->search = g->search;
	if (g->search_for && set_string(g, &t->search_for, g->search_for) < 0)
		return -ENOMEM;
	if (set_string(g, &t->linux_path, without_device(w->at[1].text)) < 0)
		return -ENOMEM;
	return join(g, w, 2, &t->args);
}

static int cmd_initrd(struct grub *g, const struct grub_words *w)
{
	struct grub_entry *t = g->entry;

	for (unsigned int i = 1; t && i < w->n; i++) {
		if (t->ninitrd == GRUBCFG_MAX_INITRDS)
			return err_set(g->e, EINVAL, "%s:%u: more than %u initrds", g->in.name,
				       g->in.line, GRUBCFG_MAX_INITRDS);
		if (set_string(g, &t->initrd[t->ninitrd], without_device(w->at[i].text)) < 0)
			return -ENOMEM;
		t->ninitrd++;
	}
	return 0;
}

/* Records a command that starts something other than a supported Linux. */
static void cmd_loader(struct grub *g, const char *name)
{
	static const char *const loaders[] = {
		"multiboot", "multiboot2", "xen_hypervisor", "chainloader", "fwsetup",
		"kfreebsd",  "knetbsd",	   "kopenbsd",	     "ntldr",	    "halt",
		"reboot",    "configfile", "exit",	     "linuxloader", "uki",
	};

	for (size_t i = 0; g->entry && i < sizeof(loaders) / sizeof(loaders[0]); i++)
		if (!strcmp(name, loaders[i]) && !*g->entry->loader)
			snprintf(g->entry->loader, sizeof(g->entry->loader), "%s", name);
}

/* Executes NAME=VALUE, with or without `set` before it. */
static int assign(struct grub *g, const char *text)
{
	const char *eq = strchr(text, '=');

	return eq ? grubcfg_vars_set(&g->vars, text, (size_t)(eq - text), eq + 1, strlen(eq + 1),
				     g->e)
		  : 0;
}

static int cmd_blscfg(struct grub *g);

/* Executes one command that is not a block. *truth is its value as a condition. */
static int command(struct grub *g, const struct grub_words *w, bool *truth)
{
	const char *name = w->at[0].text;

	*truth = true;
	cmd_loader(g, name);
	if (!strcmp(name, "[") || !strcmp(name, "test"))
		*truth = grubcfg_words_test(w, g->env.data != NULL);
	else if (!strcmp(name, "set"))
		return w->n > 1 ? assign(g, w->at[1].text) : 0;
	else if (!strcmp(name, "load_env"))
		return load_env(g);
	else if (!strncmp(name, "search", 6))
		return cmd_search(g, w);
	else if (!strcmp(name, "blscfg"))
		return cmd_blscfg(g);
	else if (!strcmp(name, "linux") || !strcmp(name, "linux16") || !strcmp(name, "linuxefi"))
		return cmd_linux(g, w);
	else if (!strcmp(name, "initrd") || !strcmp(name, "initrd16") || !strcmp(name, "initrdefi"))
		return cmd_initrd(g, w);
	else if (strchr(name, '='))
		return assign(g, name);
	else
		*truth = !strcmp(name, "true") || !strcmp(name, "export") ||
			 !strcmp(name, "insmod") || !strcmp(name, "echo");
	return 0;
}

static enum ended run_list(struct grub *g, bool on, bool *truth);

/* Executes a list that must end with `want`. */
static int run_until(struct grub *g, bool on, bool *truth, enum ended want, const char *what)
{
	enum ended end = run_list(g, on, truth);

	if (end == END_ERROR)
		return -EINVAL;
	return end == want
		       ? 0
		       : err_set(g->e, EINVAL, "%s:%u: expected %s", g->in.name, g->in.line, what);
}

static int run_if(struct grub *g, bool on)
{
	bool done = !on, truth = false, take;
	enum ended end = END_ELIF;

	while (end == END_ELIF) {
		if (run_until(g, !done, &truth, END_THEN, "`then'") < 0)
			return -EINVAL;
		take = !done && truth;
		done = done || take;
		end = run_list(g, take, &truth);
	}
	if (end == END_ELSE)
		return run_until(g, !done, &truth, END_FI, "`fi'");
	if (end == END_ERROR)
		return -EINVAL;
	return end == END_FI
		       ? 0
		       : err_set(g->e, EINVAL, "%s:%u: expected `fi'", g->in.name, g->in.line);
}

/* Returns the value of --id, or "". */
static const char *id_of(const struct grub_words *w)
{
	for (unsigned int i = 1; i < w->n; i++) {
		if (!strcmp(w->at[i].text, "--id") && i + 1 < w->n)
			return w->at[i + 1].text;
		if (!strncmp(w->at[i].text, "--id=", 5))
			return w->at[i].text + 5;
	}
	return "";
}

static char *path_in(const char *menu, const char *name)
{
	char *s = NULL;

	/* '>' is the separator. One in a title would have to be doubled; real titles have none. */
	if (asprintf(&s, "%s%s%s", menu, *menu ? ">" : "", name) < 0)
		return NULL;
	return s;
}

static struct grub_entry *add_entry(struct grub *g)
{
	struct grubcfg *o = g->out;
	struct grub_entry *p;

	if (o->n == GRUBCFG_MAX_ENTRIES) {
		err_set(g->e, EINVAL, "%s:%u: more than %u menu entries", g->in.name, g->in.line,
			GRUBCFG_MAX_ENTRIES);
		return NULL;
	}
	p = reallocarray(o->entry, o->n + 1, sizeof(*p));
	if (!p) {
		no_memory(g);
		return NULL;
	}
	o->entry = p;
	p += o->n++;
	memset(p, 0, sizeof(*p));
	return p;
}

/* Stores an entry's position in its menu, and its own title and id. */
static int set_names(struct grub *g, struct grub_entry *t, const char *title, const char *id)
{
	t->menu = g->menu->number;
	t->place = g->menu->n - 1;
	return set_string(g, &t->name, title) < 0 ? -ENOMEM : set_string(g, &t->own_id, id);
}

/* Fills in the paths of an entry whose position is set. */
static int set_paths(struct grub *g, struct grub_entry *t, const char *title, const char *id)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", t->place);
	t->title = path_in(g->menu->title, title);
	t->id = path_in(g->menu->id, *id ? id : title);
	t->index = path_in(g->menu->index, number);
	return t->title && t->id && t->index ? 0 : no_memory(g);
}

/*
 * Adds an entry for each file of the Boot Loader Specification. Their blocks are executed when all
 * variables are known.
 */
static int cmd_blscfg(struct grub *g)
{
	int ret = 0;

	g->out->blscfg = true;
	for (unsigned int i = 0; i < g->source->nbls && !g->entry && !ret; i++) {
		const struct grub_bls *b = &g->source->bls[i];
		struct grub_entry *t = add_entry(g);

		if (!t)
			return -EINVAL;
		g->menu->n++;
		t->bls = i + 1;
		ret = set_names(g, t, b->title, b->id);
		ret = ret ? ret : set_paths(g, t, b->title, b->id);
	}
	return ret;
}

static int add_submenu(struct grub *g, const char *title, const char *id, unsigned int *number)
{
	struct grubcfg *o = g->out;
	struct grub_submenu *p;

	if (o->nsubmenus == GRUBCFG_MAX_MENUS)
		return err_set(g->e, EINVAL, "%s:%u: more than %u submenus", g->in.name, g->in.line,
			       GRUBCFG_MAX_MENUS);
	p = reallocarray(o->submenu, o->nsubmenus + 1, sizeof(*p));
	if (!p)
		return no_memory(g);
	o->submenu = p;
	p += o->nsubmenus++;
	*p = (struct grub_submenu){ .menu = g->menu->number, .place = g->menu->n - 1 };
	*number = o->nsubmenus;
	p->name = strdup(title);
	p->own_id = strdup(id);
	return p->name && p->own_id ? 0 : no_memory(g);
}

/* Executes the block of a menuentry, after its "{". */
static int run_entry(struct grub *g, const struct grub_words *w)
{
	const char *title = w->n > 1 ? w->at[1].text : "", *id = id_of(w);
	enum grub_search search = g->search;
	bool truth;
	int ret;

	g->menu->n++;
	g->entry = add_entry(g);
	if (!g->entry)
		return -EINVAL;
	ret = set_names(g, g->entry, title, id);
	ret = ret ? ret : set_paths(g, g->entry, title, id);
	ret = ret ? ret : run_until(g, true, &truth, END_BRACE, "`}'");
	/* The entry's own `search` does not apply to later entries. */
	g->entry = NULL;
	g->search = search;
	return ret;
}

/* Executes the block of a submenu, after its "{". */
static int run_submenu(struct grub *g, const struct grub_words *w)
{
	const char *title = w->n > 1 ? w->at[1].text : "", *id = id_of(w);
	struct menu *menu = g->menu, inner = { 0 };
	char number[16];
	bool truth;
	char *t, *i, *x;
	int ret;

	snprintf(number, sizeof(number), "%u", menu->n++);
	t = path_in(menu->title, title);
	i = path_in(menu->id, *id ? id : title);
	x = path_in(menu->index, number);
	inner = (struct menu){ .title = t, .id = i, .index = x };
	ret = t && i && x ? add_submenu(g, title, id, &inner.number) : no_memory(g);
	g->menu = &inner;
	ret = ret ? ret : run_until(g, true, &truth, END_BRACE, "`}'");
	g->menu = menu;
	free(t);
	free(i);
	free(x);
	return ret;
}

static int run_block(struct grub *g, const struct grub_words *w, bool on, bool *truth)
{
	const char *name = w->at[0].text;

	if (!strcmp(name, "function") || !on)
		return run_until(g, false, truth, END_BRACE, "`}'");
	if (!strcmp(name, "menuentry") && !g->entry)
		return run_entry(g, w);
	if (!strcmp(name, "submenu") && !g->entry)
		return run_submenu(g, w);
	return run_until(g, on, truth, END_BRACE, "`}'");
}

static enum ended ends_list(const struct grub_words *w)
{
	static const struct {
		const char *word;
		enum ended end;
	} words[] = {
		{ "}", END_BRACE },   { "then", END_THEN }, { "elif", END_ELIF },
		{ "else", END_ELSE }, { "fi", END_FI },	    { "done", END_DONE },
	};

	for (size_t i = 0; !w->at[0].quoted && i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(w->at[0].text, words[i].word))
			return words[i].end;
	return END_FILE;
}

static bool is_word(const struct grub_words *w, const char *text)
{
	return !w->at[0].quoted && !strcmp(w->at[0].text, text);
}

/* Executes commands up to a word that ends the list. If not `on`, they are only read. */
static enum ended run_list(struct grub *g, bool on, bool *truth)
{
	struct grub_words w = { 0 };
	enum ended end = END_ERROR;
	int ret = 0;

	if (++g->depth > GRUBCFG_MAX_DEPTH) {
		err_set(g->e, EINVAL, "%s:%u: more than %u blocks in blocks", g->in.name,
			g->in.line, GRUBCFG_MAX_DEPTH);
		g->depth--;
		return END_ERROR;
	}
	while (!ret) {
		ret = grubcfg_words_read(&g->in, &g->vars, &w, g->e);
		if (ret < 0)
			break;
		if (!w.n) { /* an empty command, or the end of the file */
			if (!grubcfg_words_at_end(&g->in))
				continue;
			end = END_FILE;
			break;
		}
		end = ends_list(&w);
		if (end != END_FILE)
			break;
		end = END_ERROR;
		if (is_word(&w, "if"))
			ret = run_if(g, on);
		else if (is_word(&w, "for") || is_word(&w, "while") || is_word(&w, "until"))
			ret = run_until(g, false, truth, END_DONE, "`done'");
		else if (w.block)
			ret = run_block(g, &w, on, truth);
		else if (on && !is_word(&w, "do"))
			ret = command(g, &w, truth);
	}
	g->depth--;
	grubcfg_words_deinit(&w);
	return ret < 0 ? END_ERROR : end;
}

static int preset(struct grub *g)
{
	/* Values as in GRUB for BIOS; scripts test for `features', and all of them are present. */
	static const char *const values[][2] = {
		{ "prefix", "/boot/grub" },
		{ "root", "hd0" },
		{ "grub_platform", "pc" },
		{ "grub_cpu", "x86_64" },
		{ "feature_menuentry_id", "y" },
		{ "feature_platform_search_hint", "y" },
		{ "feature_all_video_module", "y" },
		{ "feature_default_font_path", "y" },
		{ "feature_200_final", "y" },
		{ "feature_nativedisk_cmd", "y" },
		{ "feature_ntldr", "y" },
		{ "feature_timeout_style", "y" },
	};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (grubcfg_vars_set(&g->vars, values[i][0], strlen(values[i][0]), values[i][1],
				     strlen(values[i][1]), g->e) < 0)
			return -EINVAL;
	return 0;
}

/*
 * Executes the blocks of `blscfg`'s entries with all variables, as GRUB does when one is chosen. A
 * block that is not a valid script, which GRUB could not execute either, leaves its entry without
 * a kernel.
 */
static int run_bls(struct grub *g)
{
	for (unsigned int i = 0; i < g->out->n; i++) {
		struct grub_entry *t = &g->out->entry[i];
		const char *script = t->bls ? g->source->bls[t->bls - 1].script : NULL;
		struct err why = { 0 }, *e = g->e;
		bool truth;
		int ret;

		if (!script)
			continue;
		g->in = (struct grub_reader){
			.name = t->own_id, .s = script, .end = script + strlen(script), .line = 1
		};
		g->entry = t;
		g->search = GRUB_SEARCH_NONE;
		g->e = &why;
		ret = run_until(g, true, &truth, END_FILE, "the end of the entry");
		g->entry = NULL;
		g->e = e;
		if (why.code == ENOMEM)
			return no_memory(g);
		if (ret) {
			free(t->linux_path);
			t->linux_path = NULL;
			snprintf(t->loader, sizeof(t->loader), "damaged commands");
		}
	}
	return 0;
}

/* Stores the final value of `default` and the variable from which it comes. */
static int take_chosen(struct grub *g)
{
	struct grubcfg *out = g->out;
	const char *chosen = grubcfg_vars_get(&g->vars, "default", 7), *saved, *next = NULL;
	size_t len = 0;

	/* `saved' stands for the value of another variable. */
	saved = grubcfg_vars_get(&g->vars, "saved_entry", 11);
	if (chosen && !strcmp(chosen, "saved"))
		chosen = saved;
	if (!chosen || !*chosen)
		chosen = "0";
	out->chosen = strdup(chosen);
	if (!out->chosen)
		return no_memory(g);
	/* The script empties next_entry after its use. */
	for (const char *s = g->env.data, *end = s ? s + g->env.len : NULL; s && s < end;) {
		const char *nl = memchr(s, '\n', (size_t)(end - s));
		size_t n = nl ? (size_t)(nl - s) : (size_t)(end - s);

		if (n > 11 && !memcmp(s, "next_entry=", 11)) {
			next = s + 11;
			len = n - 11;
		}
		s += n + (nl != NULL);
	}
	out->chosen_by = next && strlen(chosen) == len && !memcmp(chosen, next, len) ? "next_entry"
			 : saved && !strcmp(chosen, saved)			     ? "saved_entry"
										     : "default";
	return 0;
}

int grubcfg_parse(struct grubcfg *out, const struct grubcfg_source *source, struct err *e)
{
	const struct bytes text = source->text;
	struct menu top = { .title = "", .id = "", .index = "" };
	struct grub g = {
		.out = out,
		.in = { .name = source->name,
			.s = text.data,
			.end = (const char *)text.data + text.len,
			.line = 1 },
		.source = source,
		.env = source->env,
		.menu = &top,
		.e = e,
	};
	bool truth = false;
	int ret;

	memset(out, 0, sizeof(*out));
	if (text.len > GRUBCFG_MAX_FILE || source->env.len > GRUBCFG_MAX_FILE)
		return err_set(e, EINVAL, "%s: more than %u bytes for a menu", source->name,
			       GRUBCFG_MAX_FILE);
	if (text.len && memchr(text.data, 0, text.len))
		return err_set(e, EINVAL, "%s: a menu is text, this is not", source->name);
	ret = preset(&g);
	ret = ret ? ret : run_until(&g, true, &truth, END_FILE, "the end of the file");
	ret = ret ? ret : take_chosen(&g);
	ret = ret ? ret : run_bls(&g);
	grubcfg_vars_deinit(&g.vars);
	free(g.search_for);
	if (ret)
		grubcfg_deinit(out);
	return ret;
}

void grubcfg_deinit(struct grubcfg *g)
{
	for (unsigned int i = 0; i < g->n; i++) {
		struct grub_entry *t = &g->entry[i];

		free(t->title);
		free(t->id);
		free(t->index);
		free(t->linux_path);
		free(t->args);
		free(t->search_for);
		free(t->name);
		free(t->own_id);
		for (unsigned int k = 0; k < t->ninitrd; k++)
			free(t->initrd[k]);
	}
	for (unsigned int i = 0; i < g->nsubmenus; i++) {
		free(g->submenu[i].name);
		free(g->submenu[i].own_id);
	}
	free(g->submenu);
	free(g->entry);
	free(g->chosen);
	memset(g, 0, sizeof(*g));
}

/* -- which entry GRUB boots ------------------------------------------------------------------- */

/*
 * Returns whether a part of `default` names this item. ">>" in it stands for ">" (menuentry_eq()
 * of GRUB).
 */
static bool matches(const char *name, const char *part, size_t len)
{
	const char *end = part + len;

	for (; part < end && *name; part++, name++) {
		if (*part != *name)
			return false;
		part += *part == '>' && end - part > 1 && part[1] == '>';
	}
	return part == end && !*name && len;
}

/* Returns the number of bytes up to a single ">". */
static size_t part_of(const char *s)
{
	size_t n = 0;

	while (s[n] && (s[n] != '>' || s[n + 1] == '>'))
		n += s[n] == '>' ? 2 : 1;
	return n;
}

/* One item of a menu: an entry, or a submenu's number. */
struct grub_item {
	const struct grub_entry *entry;
	unsigned int submenu;
};

/* The item to find in a menu: by its title or id (part), or, if part is NULL, by its position. */
struct grub_wanted {
	unsigned int menu;
	const char *part;
	size_t len;
	unsigned long place;
	unsigned int best; /* position of the first one found so far; UINT_MAX: none */
};

/*
 * Returns whether an item of this menu, position and names matches and precedes those found so
 * far.
 */
static bool is_wanted(struct grub_wanted *w, unsigned int menu, unsigned int place,
		      const char *name, const char *id)
{
	if (menu != w->menu || place >= w->best)
		return false;
	if (w->part ? !matches(name, w->part, w->len) && !matches(id, w->part, w->len)
		    : place != w->place)
		return false;
	w->best = place;
	return true;
}

static bool find_item(const struct grubcfg *g, struct grub_wanted w, struct grub_item *out)
{
	w.best = UINT_MAX;
	for (unsigned int i = 0; i < g->n; i++) {
		const struct grub_entry *t = &g->entry[i];

		if (is_wanted(&w, t->menu, t->place, t->name, t->own_id))
			*out = (struct grub_item){ .entry = t };
	}
	for (unsigned int i = 0; i < g->nsubmenus; i++) {
		const struct grub_submenu *t = &g->submenu[i];

		if (is_wanted(&w, t->menu, t->place, t->name, t->own_id))
			*out = (struct grub_item){ .submenu = i + 1 };
	}
	return w.best != UINT_MAX;
}

const struct grub_entry *grubcfg_default(const struct grubcfg *g)
{
	const char *s = g->chosen;
	unsigned int menu = 0;

	for (unsigned int depth = 0; depth <= GRUBCFG_MAX_DEPTH; depth++) {
		size_t len = part_of(s);
		bool number = len && len < 10 && strspn(s, "0123456789") >= len;
		const struct grub_wanted first = { .menu = menu };
		struct grub_wanted wanted = { .menu = menu, .part = s, .len = len };
		struct grub_item it;

		if (number)
			wanted =
				(struct grub_wanted){ .menu = menu, .place = strtoul(s, NULL, 10) };
		/* GRUB chooses the first item if there is no such name or position. */
		if (!find_item(g, wanted, &it) && !find_item(g, first, &it))
			return NULL;
		if (it.entry)
			return it.entry;
		menu = it.submenu;
		s += len + (s[len] == '>');
	}
	return NULL;
}
