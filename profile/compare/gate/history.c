/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/compare/gate/history.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/json.h"
#include "profile/analyse/stacks/identity.h"
#include "base/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION 1
#define NAME_LEN 38u /* 20261121T185748Z-0123456789abcdef.json */

/* -- an entry's bytes -------------------------------------------------------------------------- */

static int order_texts(const char *a, const char *b)
{
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

static int compare_values(const void *a, const void *b)
{
	const struct gate_history_value *x = a, *y = b;
	int c = order_texts(x->mode, y->mode);

	c = c ? c : strcmp(x->name, y->name);
	return c ? c : order_texts(x->dso, y->dso);
}

struct history_parse {
	struct gate_history_entry *x;
	struct table value; /* struct gate_history_value; mean is a sum */
	const char *name;
	struct err *e;
};

static bool equal_value(const void *a, const void *b, const void *ctx)
{
	const struct gate_history_value *x = a, *y = b;

	(void)ctx;
	return x->name == y->name && x->dso == y->dso && x->mode == y->mode;
}

static int wrong(const struct history_parse *p, const char *what)
{
	return err_set(p->e, EINVAL, "%s: not an entry of a history: %s", p->name, what);
}

static int no_memory(const struct history_parse *p)
{
	return err_set(p->e, ENOMEM, "%s: out of memory", p->name);
}

static bool is_clean(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

static int history_keep(struct history_parse *p, const char *text, const char **out)
{
	if (!text || !is_clean(text))
		return wrong(p, "an invalid name");
	*out = texts_add(&p->x->texts, text);
	return *out ? 0 : no_memory(p);
}

static int add_value(struct history_parse *p, const char *name, const char *dso, const char *mode,
		     const json_t *number)
{
	struct gate_history_value v = { 0 }, *at;
	cleanup_free char *clone = NULL;
	double x = json_number_value(number);
	uint32_t i;
	bool fresh;
	int ret;

	if (!json_is_number(number) || !isfinite(x))
		return wrong(p, "a value that is not a number");
	if (p->value.n >= GATE_HISTORY_VALUES)
		return err_set(p->e, E2BIG, "%s: more than %u values", p->name,
			       GATE_HISTORY_VALUES);
	/* Entries of older releases have clones of one function apart. */
	if (mode && name && name[identity_name_len(name)]) {
		name = clone = strndup(name, identity_name_len(name));
		if (!clone)
			return no_memory(p);
	}
	ret = history_keep(p, name, &v.name);
	if (ret)
		return ret;
	if (mode) {
		ret = history_keep(p, dso, &v.dso);
		if (ret)
			return ret;
		ret = history_keep(p, mode, &v.mode);
		if (ret)
			return ret;
	}
	if (table_add(&p->value,
		      table_mix((uintptr_t)v.name,
				(uint64_t)(uintptr_t)v.dso ^ (uint64_t)(uintptr_t)v.mode << 7),
		      &v, &i, &fresh) < 0)
		return no_memory(p);
	at = (struct gate_history_value *)p->value.item + i;
	at->mean += x;
	at->runs++;
	return 0;
}

static int take_run(struct history_parse *p, const json_t *run)
{
	json_t *metrics = json_object_get(run, "metrics"), *value;
	const json_t *functions = json_object_get(run, "functions");
	const char *key;
	int ret = 0;

	if (!json_is_object(run) || (metrics && !json_is_object(metrics)) ||
	    (functions && !json_is_array(functions)))
		return wrong(p, "an invalid run");
	json_object_foreach(metrics, key, value)
	{
		ret = add_value(p, key, NULL, NULL, value);
		if (ret)
			return ret;
	}
	for (size_t i = 0; i < json_array_size(functions) && !ret; i++) {
		const json_t *f = json_array_get(functions, i);
		const char *mode = json_string_value(json_array_get(f, 2));

		if (json_array_size(f) != 4 || !mode)
			return wrong(p, "an invalid function");
		ret = add_value(p, json_string_value(json_array_get(f, 0)),
				json_string_value(json_array_get(f, 1)), mode,
				json_array_get(f, 3));
	}
	return ret;
}

/* Reads the list of accepted rules, which an entry may lack. */
static int take_accepted(struct history_parse *p, const json_t *list)
{
	struct gate_history_entry *x = p->x;
	int ret = 0;

	if ((list && !json_is_array(list)) || json_array_size(list) > GATE_HISTORY_ACCEPTED)
		return wrong(p, "the list of accepted rules is missing or too long");
	for (size_t i = 0; i < json_array_size(list) && !ret; i++) {
		const json_t *from = json_array_get(list, i);
		struct gate_acceptance *a = &x->accepted[i];

		ret = history_keep(p, json_string_value(json_object_get(from, "rule")), &a->rule);
		ret = ret ? ret
			  : history_keep(p, json_string_value(json_object_get(from, "by")), &a->by);
		ret = ret ? ret
			  : history_keep(p, json_string_value(json_object_get(from, "why")),
					 &a->why);
		x->naccepted += !ret;
	}
	return ret;
}

static int take_entry(struct history_parse *p, const json_t *doc)
{
	const char *label = json_string_value(json_object_get(doc, "label"));
	const char *when = json_string_value(json_object_get(doc, "time"));
	const json_t *runs = json_object_get(doc, "runs");
	struct gate_history_entry *x = p->x;
	int ret = 0;

	if (!json_is_object(doc) || json_integer_value(json_object_get(doc, "version")) != VERSION)
		return wrong(p, "not an object of version 1");
	if (!label || strlen(label) > GATE_HISTORY_LABEL || !is_clean(label))
		return wrong(p, "no label");
	if (!when || strlen(when) >= sizeof(x->time) || !is_clean(when))
		return wrong(p, "no time");
	if (!json_array_size(runs) || json_array_size(runs) > STATS_MAX_RUNS)
		return wrong(p, "no runs, or too many");
	snprintf(x->label, sizeof(x->label), "%s", label);
	snprintf(x->time, sizeof(x->time), "%s", when);
	x->runs = (unsigned int)json_array_size(runs);
	for (size_t i = 0; i < x->runs && !ret; i++)
		ret = take_run(p, json_array_get(runs, i));
	ret = ret ? ret : take_accepted(p, json_object_get(doc, "accepted"));
	if (ret)
		return ret;
	x->nvalues = p->value.n;
	x->value = take_ptr(p->value.item);
	for (size_t i = 0; i < x->nvalues; i++)
		x->value[i].mean /= x->value[i].mode ? x->runs : x->value[i].runs;
	if (x->nvalues)
		qsort(x->value, x->nvalues, sizeof(*x->value), compare_values);
	return 0;
}

int gate_history_parse(struct gate_history_entry **out, const char *name, const char *text,
		       size_t len, struct err *e)
{
	struct history_parse p = { .x = calloc(1, sizeof(*p.x)),
				   .value = TABLE_OF(struct gate_history_value, equal_value),
				   .name = name,
				   .e = e };
	json_error_t why;
	json_t *doc;
	int ret;

	if (!p.x)
		return no_memory(&p);
	doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (doc)
		ret = take_entry(&p, doc);
	else
		ret = err_set(e, EINVAL, "%s:%d:%d: not JSON: %s", name, why.line, why.column,
			      is_clean(why.text) ? why.text : "it can't be parsed");
	json_decref(doc);
	table_deinit(&p.value);
	if (ret)
		gate_history_entry_destroy(p.x);
	else
		*out = p.x;
	return ret;
}

void gate_history_entry_destroy(struct gate_history_entry *x)
{
	if (!x)
		return;
	free(x->file);
	free(x->value);
	texts_deinit(&x->texts);
	free(x);
}

const struct gate_history_value *gate_history_find(const struct gate_history_entry *x,
						   const char *name, const char *dso,
						   const char *mode)
{
	const struct gate_history_value like = { .name = name, .dso = dso, .mode = mode };

	return x->nvalues ? bsearch(&like, x->value, x->nvalues, sizeof(like), compare_values)
			  : NULL;
}

/* -- the directory ------------------------------------------------------------------------------ */

static bool is_entry_name(const char *s)
{
	static const char form[] = "########T######Z-xxxxxxxxxxxxxxxx.json";

	if (strlen(s) != NAME_LEN)
		return false;
	for (size_t i = 0; i < NAME_LEN; i++) {
		bool digit = s[i] >= '0' && s[i] <= '9';

		if (form[i] == '#'   ? !digit
		    : form[i] == 'x' ? !digit && !(s[i] >= 'a' && s[i] <= 'f')
				     : s[i] != form[i])
			return false;
	}
	return true;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list_names(const char *dir, char ***out, size_t *n, struct err *e)
{
	DIR *d = opendir(dir);
	size_t cap = 0;
	int ret = 0;

	*out = NULL;
	*n = 0;
	if (!d)
		return err_set(e, errno, "%s: cannot read the history: %s", dir, strerror(errno));
	for (struct dirent *x = readdir(d); x && !ret; x = readdir(d)) {
		if (!is_entry_name(x->d_name))
			continue;
		if (ARRAY_ROOM(*out, *n, cap) || !((*out)[*n] = strdup(x->d_name)))
			ret = err_set(e, ENOMEM, "%s: out of memory", dir);
		else if (++*n > GATE_HISTORY_ENTRIES)
			ret = err_set(e, E2BIG, "%s: more than %u entries", dir,
				      GATE_HISTORY_ENTRIES);
	}
	closedir(d);
	if (*n)
		qsort(*out, *n, sizeof(**out), compare_names);
	return ret;
}

static int load_entry(struct gate_history *h, const char *dir, char *name, struct err *e)
{
	struct gate_history_entry *x = NULL;
	struct err why = { 0 };
	struct file_map m;
	char path[4096];
	int ret;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return err_set(e, ENAMETOOLONG, "%s: the path is too long", dir);
	ret = file_map_open(&m, path, GATE_HISTORY_ENTRY_MAX, &why);
	if (!ret) {
		ret = gate_history_parse(&x, path, (const char *)m.data, m.len, &why);
		file_map_close(&m);
	}
	if (ret == -ENOMEM)
		return err_set(e, ENOMEM, "%s", why.text);
	/* One broken file does not take the others with it, but is told of. */
	if (ret) {
		if (!h->refused++)
			h->why = why;
		return 0;
	}
	x->file = strdup(name);
	if (!x->file) {
		gate_history_entry_destroy(x);
		return err_set(e, ENOMEM, "%s: out of memory", dir);
	}
	h->entry[h->n++] = x;
	return 0;
}

int gate_history_load(struct gate_history **out, const char *dir, size_t last, struct err *e)
{
	struct gate_history *h = calloc(1, sizeof(*h));
	char **name = NULL;
	size_t n = 0, first;
	int ret;

	if (!h)
		return err_set(e, ENOMEM, "%s: out of memory", dir);
	ret = list_names(dir, &name, &n, e);
	first = last && last < n ? n - last : 0;
	h->entry = calloc(n + 1, sizeof(struct gate_history_entry *));
	if (!ret && !h->entry)
		ret = err_set(e, ENOMEM, "%s: out of memory", dir);
	for (size_t i = first; i < n && !ret; i++)
		ret = load_entry(h, dir, name[i], e);
	for (size_t i = 0; i < n; i++)
		free(name[i]);
	free(name);
	if (ret)
		gate_history_destroy(h);
	else
		*out = h;
	return ret;
}

void gate_history_destroy(struct gate_history *h)
{
	if (!h)
		return;
	for (size_t i = 0; h->entry && i < h->n; i++)
		gate_history_entry_destroy(h->entry[i]);
	free(h->entry);
	free(h);
}

/* -- recording ------------------------------------------------------------------------------------ */

/* Returns whether an earlier rule has the key of rule i: rules of one metric have one value. */
static bool history_has_key(const struct gate_rules *rules, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!gate_rule_is_family(&rules->rule[k]) &&
		    !strcmp(rules->rule[k].key, rules->rule[i].key))
			return true;
	return false;
}

static void history_put_run(struct json_writer *w, const struct gate_run *run,
			    const struct gate_rules *rules)
{
	json_line(w);
	json_object_begin(w, NULL);
	json_u64(w, "samples", run->samples);
	json_object_begin(w, "metrics");
	for (size_t i = 0; i < rules->n; i++)
		if (!gate_rule_is_family(&rules->rule[i]) && isfinite(run->value[i]) &&
		    !history_has_key(rules, i)) {
			json_line(w);
			json_number(w, rules->rule[i].key, "%.10g", run->value[i]);
		}
	json_object_end(w);
	json_array_begin(w, "functions");
	for (size_t i = 0; i < run->nsymbols; i++) {
		const struct gate_symbol *s = &run->symbol[i];
		double share = s->self / run->weight;

		if (share < GATE_HISTORY_MIN_SHARE)
			continue;
		json_line(w);
		json_array_begin(w, NULL);
		json_str(w, NULL, s->name);
		json_str(w, NULL, s->dso);
		json_str(w, NULL, identity_mode_name(s->mode));
		json_number(w, NULL, "%.10g", share);
		json_array_end(w);
	}
	json_array_end(w);
	json_object_end(w);
}

/* A text with a NUL behind it, unless the buffer failed. */
static void history_put_entry(struct buf *out, const struct gate_history_runs *runs,
			      const char *when)
{
	struct json_writer w;

	json_begin(&w, out);
	json_object_begin(&w, NULL);
	json_put(&w, "version", (unsigned int)VERSION, "time", when, "label", runs->label);
	json_array_begin(&w, "runs");
	for (unsigned int i = 0; i < runs->n; i++)
		history_put_run(&w, runs->run[i], runs->rules);
	json_array_end(&w);
	if (runs->naccepted) {
		json_array_begin(&w, "accepted");
		for (unsigned int i = 0; i < runs->naccepted; i++)
			json_put_object(&w, NULL, "rule", runs->accepted[i].rule, "by",
					runs->accepted[i].by, "why", runs->accepted[i].why);
		json_array_end(&w);
	}
	json_object_end(&w);
	buf_u8(out, 0);
}

static uint64_t hash_of(const char *text)
{
	uint64_t h = strlen(text);

	for (; *text; text++)
		h = table_mix(h, (unsigned char)*text);
	return h;
}

static bool holds(const char *path, const char *text)
{
	struct file_map m;
	bool same;

	if (file_map_open(&m, path, GATE_HISTORY_ENTRY_MAX, NULL) < 0)
		return false;
	same = m.len == strlen(text) && !memcmp(m.data, text, m.len);
	file_map_close(&m);
	return same;
}

/* link() instead of rename(): what is there is never replaced. */
static int add_file(const char *dir, const char *file, const char *text, struct err *e)
{
	cleanup_close int fd = -1;
	char path[4096], tmp[4096];
	int ret = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path) ||
	    (size_t)snprintf(tmp, sizeof(tmp), "%s/.tmp-XXXXXX", dir) >= sizeof(tmp))
		return err_set(e, ENAMETOOLONG, "%s: the path is too long", dir);
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return err_set(e, errno, "%s: cannot write there: %s", dir, strerror(errno));
	ret = file_write_all(fd, text, strlen(text));
	if (!ret && fchmod(fd, 0644) < 0)
		ret = -errno;
	if (!ret && fsync(fd) < 0)
		ret = -errno;
	if (!ret && link(tmp, path) < 0 && !(errno == EEXIST && holds(path, text)))
		ret = -errno;
	unlink(tmp);
	return ret ? err_set(e, -ret, "%s: cannot write: %s", path, strerror(-ret)) : 0;
}

static int check_label(const char *label, struct err *e)
{
	json_t *valid = json_string(label);
	bool ok = valid && *label && strlen(label) <= GATE_HISTORY_LABEL && is_clean(label);

	json_decref(valid);
	return ok ? 0
		  : err_set(e, EINVAL,
			    "bad label '%.64s': 1 to %u bytes of text without control characters",
			    is_clean(label) ? label : "", GATE_HISTORY_LABEL);
}

int gate_history_record(const char *dir, const struct gate_history_runs *runs,
			char file[GATE_HISTORY_FILE], struct err *e)
{
	char shown[32], stamp[32], name[GATE_HISTORY_FILE];
	const char *text;
	struct buf entry;
	struct tm tm;
	int ret = check_label(runs->label, e);

	if (ret)
		return ret;
	if (!runs->n || !gmtime_r(&runs->when, &tm) || tm.tm_year < 0 || tm.tm_year > 8099)
		return err_set(e, EINVAL, "%s: no runs to record, or an invalid time", dir);
	strftime(shown, sizeof(shown), "%Y-%m-%dT%H:%M:%SZ", &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
	buf_init(&entry);
	history_put_entry(&entry, runs, shown);
	text = (const char *)entry.data;
	if (entry.failed)
		ret = err_set(e, ENOMEM, "%s: out of memory", dir);
	else
		snprintf(name, sizeof(name), "%s-%016" PRIx64 ".json", stamp, hash_of(text));
	ret = ret ? ret : file_mkdirs(dir, e);
	ret = ret ? ret : add_file(dir, name, text, e);
	buf_deinit(&entry);
	if (!ret && file)
		memcpy(file, name, sizeof(name));
	return ret;
}
