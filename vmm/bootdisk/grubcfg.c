/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The script is executed as it is read: words are expanded with the variables of that
 * moment, and what lies in a branch that is not taken is read and dropped.
 */
#include "vmm/bootdisk/grubcfg.h"

#include "vmm/bootdisk/grubcfg_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct menu {
	const char *title, *id, *index; /* of this submenu; "" at the top */
	unsigned int n;			/* entries and submenus so far */
};

struct grub {
	struct grubcfg *out;
	struct grub_reader in;
	struct grub_vars vars;
	struct bytes env;
	struct menu *menu;
	struct grub_entry *entry; /* whose block is read; NULL: none */
	enum grub_search search;  /* the last `search` */
	char *search_for;
	unsigned int depth;
	struct err *e;
};

/* What ended a list of commands. */
enum ended { END_FILE, END_BRACE, END_THEN, END_ELIF, END_ELSE, END_FI, END_DONE, END_ERROR };

static int no_memory(struct grub *g)
{
	return err_set(g->e, ENOMEM, "out of memory");
}

static int set_string(struct grub *g, char **to, const char *value)
{
	free(*to);
	*to = strdup(value);
	return *to ? 0 : no_memory(g);
}

/* (hd0,gpt2)/boot/vmlinuz: which device that is only GRUB knows. */
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
		    grub_vars_set(&g->vars, s, (size_t)(eq - s), eq + 1, n - (size_t)(eq - s) - 1,
				  g->e) < 0)
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
			i += i + 2 < w->n; /* its value stands apart */
		else if (*s != '-' && !what)
			what = s;
	}
	if (!what || !kind)
		return 0;
	g->search = kind;
	return set_string(g, &g->search_for, what);
}

/* A word with blanks is quoted for the kernel, as GRUB does it. */
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

/* NAME=VALUE, with `set` before it or without. */
static int assign(struct grub *g, const char *text)
{
	const char *eq = strchr(text, '=');

	return eq ? grub_vars_set(&g->vars, text, (size_t)(eq - text), eq + 1, strlen(eq + 1), g->e)
		  : 0;
}

/* One command that is no block; *truth is what it says as a condition. */
static int command(struct grub *g, const struct grub_words *w, bool *truth)
{
	const char *name = w->at[0].text;

	*truth = true;
	if (!strcmp(name, "[") || !strcmp(name, "test"))
		*truth = grub_test(w, g->env.data != NULL);
	else if (!strcmp(name, "set"))
		return w->n > 1 ? assign(g, w->at[1].text) : 0;
	else if (!strcmp(name, "load_env"))
		return load_env(g);
	else if (!strncmp(name, "search", 6))
		return cmd_search(g, w);
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

/* A list that must end so. */
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

/* The value of --id, or "". */
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

	/* '>' separates: one that is in a title is written twice. Nobody has such. */
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

/* The block of a menuentry (entry: true) or of a submenu; its "{" was read. */
static int run_menu(struct grub *g, const struct grub_words *w, bool entry)
{
	const char *title = w->n > 1 ? w->at[1].text : "", *id = id_of(w);
	struct menu *menu = g->menu, inner = { 0 };
	enum grub_search search = g->search;
	char number[16];
	char *t, *i, *x;
	bool truth;
	int ret = 0;

	snprintf(number, sizeof(number), "%u", menu->n++);
	t = path_in(menu->title, title);
	i = path_in(menu->id, *id ? id : title);
	x = path_in(menu->index, number);
	if (!t || !i || !x)
		ret = no_memory(g);
	if (!ret && entry) {
		g->entry = add_entry(g);
		ret = g->entry ? 0 : -EINVAL;
		if (g->entry) {
			g->entry->title = t;
			g->entry->id = i;
			g->entry->index = x;
			t = i = x = NULL;
		}
	} else if (!ret) {
		inner = (struct menu){ .title = t, .id = i, .index = x };
		g->menu = &inner;
	}
	ret = ret ? ret : run_until(g, true, &truth, END_BRACE, "`}'");
	if (entry) { /* what it searched for is its own */
		g->entry = NULL;
		g->search = search;
	}
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
		return run_menu(g, w, true);
	if (!strcmp(name, "submenu") && !g->entry)
		return run_menu(g, w, false);
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

/* Commands up to a word that ends them; those that are not `on` do nothing. */
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
		ret = grub_read_command(&g->in, &g->vars, &w, g->e);
		if (ret < 0)
			break;
		if (!w.n) { /* an empty one, or the end of the file */
			if (!grub_at_end(&g->in))
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
	grub_words_deinit(&w);
	return ret < 0 ? END_ERROR : end;
}

static int preset(struct grub *g)
{
	/* As GRUB for BIOS has them; `features' that scripts ask for are all there. */
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
		if (grub_vars_set(&g->vars, values[i][0], strlen(values[i][0]), values[i][1],
				  strlen(values[i][1]), g->e) < 0)
			return -EINVAL;
	return 0;
}

int grubcfg_parse(struct grubcfg *out, const char *name, struct bytes text, struct bytes env,
		  struct err *e)
{
	struct menu top = { .title = "", .id = "", .index = "" };
	struct grub g = {
		.out = out,
		.in = { .name = name,
			.s = text.data,
			.end = (const char *)text.data + text.len,
			.line = 1 },
		.env = env,
		.menu = &top,
		.e = e,
	};
	const char *chosen;
	bool truth = false;
	int ret;

	memset(out, 0, sizeof(*out));
	if (text.len > GRUBCFG_MAX_FILE || env.len > GRUBCFG_MAX_FILE)
		return err_set(e, EINVAL, "%s: more than %u bytes for a menu", name,
			       GRUBCFG_MAX_FILE);
	if (text.len && memchr(text.data, 0, text.len))
		return err_set(e, EINVAL, "%s: a menu is text, this is not", name);
	ret = preset(&g);
	ret = ret ? ret : run_until(&g, true, &truth, END_FILE, "the end of the file");
	chosen = grub_vars_get(&g.vars, "default", 7);
	if (!ret) {
		/* `saved' is another variable's value. */
		if (chosen && !strcmp(chosen, "saved"))
			chosen = grub_vars_get(&g.vars, "saved_entry", 11);
		out->chosen = strdup(chosen && *chosen ? chosen : "0");
		ret = out->chosen ? 0 : no_memory(&g);
	}
	grub_vars_deinit(&g.vars);
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
		for (unsigned int k = 0; k < t->ninitrd; k++)
			free(t->initrd[k]);
	}
	free(g->entry);
	free(g->chosen);
	memset(g, 0, sizeof(*g));
}

/* `path` is the entry, or a submenu that it is in. */
static bool matches(const char *path, const char *chosen)
{
	size_t n = strlen(chosen);

	return !strncmp(path, chosen, n) && (!path[n] || path[n] == '>');
}

const struct grub_entry *grubcfg_default(const struct grubcfg *g)
{
	const struct grub_entry *first = NULL;

	for (unsigned int i = 0; i < g->n; i++) {
		const struct grub_entry *t = &g->entry[i];
		const char *last = strrchr(t->id, '>');

		if (!t->linux_path)
			continue;
		first = first ? first : t;
		if (matches(t->index, g->chosen) || matches(t->title, g->chosen) ||
		    matches(t->id, g->chosen) || (last && !strcmp(last + 1, g->chosen)))
			return t;
	}
	return first;
}
