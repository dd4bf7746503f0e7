/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bootdisk/bls.h"

#include "vmm/bootdisk/osrel.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The characters that a comparison of versions considers (UAPI.10). ASCII only, in any locale. */
static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static const char *skip_others(const char *s)
{
	while (*s && !is_digit(*s) && !is_letter(*s) && !strchr("-.~^", *s))
		s++;
	return s;
}

static int compare_numbers(const char **a, const char **b)
{
	size_t na, nb;
	int ret;

	while (**a == '0')
		(*a)++;
	while (**b == '0')
		(*b)++;
	for (na = 0; is_digit((*a)[na]); na++)
		;
	for (nb = 0; is_digit((*b)[nb]); nb++)
		;
	ret = na != nb ? (na < nb ? -1 : 1) : memcmp(*a, *b, na);
	*a += na;
	*b += nb;
	return ret;
}

/*
 * Compares by ASCII, in which capitals come first; if one word is a prefix, the longer one is
 * newer.
 */
static int compare_words(const char **a, const char **b)
{
	while (is_letter(**a) && **a == **b) {
		(*a)++;
		(*b)++;
	}
	if (!is_letter(**a) && !is_letter(**b))
		return 0;
	if (!is_letter(**a) || !is_letter(**b))
		return is_letter(**a) ? 1 : -1;
	return (unsigned char)**a < (unsigned char)**b ? -1 : 1;
}

int bls_version_compare(const char *a, const char *b)
{
	static const char separators[] = "-^.";
	int ret;

	a = a ? a : "";
	b = b ? b : "";
	for (;;) {
		a = skip_others(a);
		b = skip_others(b);
		/* 1.0~rc1 is older than 1.0: '~' also precedes the end. */
		if (*a == '~' || *b == '~') {
			if (*a != *b)
				return *a == '~' ? -1 : 1;
			a++;
			b++;
			continue;
		}
		if (!*a || !*b)
			return *a ? 1 : *b ? -1 : 0;
		for (const char *s = separators; *s; s++) {
			if (*a != *s && *b != *s)
				continue;
			if (*a != *b)
				return *a == *s ? -1 : 1;
			a++;
			b++;
			goto next;
		}
		if (is_digit(*a) || is_digit(*b))
			/* A number is newer than a word. */
			ret = is_digit(*a) && is_digit(*b) ? compare_numbers(&a, &b)
			      : is_digit(*a)		   ? 1
							   : -1;
		else
			ret = compare_words(&a, &b);
		if (ret)
			return ret < 0 ? -1 : 1;
	next:;
	}
}

/* Parses NAME[+LEFT[-DONE]] and the suffix: "Boot counting" of the specification. */
static int take_name(struct bls_entry *b, const char *file_name, const char *suffix)
{
	size_t len = strlen(file_name), n = strlen(suffix);
	const char *plus, *s;

	if (len <= n || len - n > BLS_MAX_NAME || strcasecmp(file_name + len - n, suffix) != 0)
		return -EINVAL;
	memcpy(b->name, file_name, len - n);
	b->name[len - n] = 0;
	plus = strrchr(b->name, '+');
	if (!plus || !is_digit(plus[1]))
		return 0;
	for (s = plus + 1; is_digit(*s); s++)
		;
	if (*s && !(*s == '-' && is_digit(s[1]) && strspn(s + 1, "0123456789") == strlen(s + 1)))
		return 0;
	b->failed = strspn(plus + 1, "0") == (size_t)(s - plus - 1);
	b->name[plus - b->name] = 0;
	return 0;
}

static char **member(struct bls_entry *b, const char *key, size_t len)
{
	const struct {
		const char *key;
		char **at;
	} keys[] = {
		{ "title", &b->title },
		{ "version", &b->version },
		{ "machine-id", &b->machine_id },
		{ "sort-key", &b->sort_key },
		{ "linux", &b->linux_path },
		{ "uki", &b->linux_path },
		{ "architecture", &b->architecture },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strlen(keys[i].key) == len && !memcmp(keys[i].key, key, len))
			return keys[i].at;
	return NULL;
}

static int add_options(struct bls_entry *b, const char *value, size_t len)
{
	size_t old = strlen(b->options);
	char *p = realloc(b->options, old + len + 2);

	if (!p)
		return -ENOMEM;
	b->options = p;
	if (old)
		p[old++] = ' ';
	memcpy(p + old, value, len);
	p[old + len] = 0;
	return 0;
}

static int take_line(struct bls_entry *b, const char *line, size_t len, struct err *e)
{
	static const char blanks[] = " \t\r";
	size_t key = 0, at;
	char **to;

	while (len && strchr(blanks, line[len - 1]))
		len--;
	while (len && strchr(blanks, *line)) {
		line++;
		len--;
	}
	if (!len || *line == '#')
		return 0;
	while (key < len && !strchr(blanks, line[key]))
		key++;
	for (at = key; at < len && strchr(blanks, line[at]);)
		at++;
	if (at == len) /* a key without a value is ignored */
		return 0;
	if (key == 7 && !memcmp(line, "options", 7))
		return add_options(b, line + at, len - at) < 0 ? err_nomem(e) : 0;
	if (key == 6 && !memcmp(line, "initrd", 6)) {
		if (b->ninitrd == BLS_MAX_INITRDS)
			return err_set(e, EINVAL, "%s.conf: more than %u initrds", b->name,
				       BLS_MAX_INITRDS);
		to = &b->initrd[b->ninitrd++];
	} else {
		to = member(b, line, key);
		if (!to || *to) /* the first one counts */
			return 0;
	}
	*to = strndup(line + at, len - at);
	return *to ? 0 : err_nomem(e);
}

int bls_parse(struct bls_entry *b, const char *file_name, const char *text, size_t len,
	      struct err *e)
{
	int ret;

	memset(b, 0, sizeof(*b));
	if (take_name(b, file_name, ".conf") < 0)
		return err_set(e, EINVAL, "%s: a boot entry's name ends with .conf", file_name);
	if (len > BLS_MAX_FILE)
		return err_set(e, EINVAL,
			       "%s: %zu bytes are too many for a boot entry (at most %u)",
			       file_name, len, BLS_MAX_FILE);
	if (len && memchr(text, 0, len))
		return err_set(e, EINVAL, "%s: a boot entry is text, this is not", file_name);
	b->options = calloc(1, 1);
	ret = b->options ? 0 : err_nomem(e);
	while (!ret && len) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		ret = take_line(b, text, n, e);
		n += end ? 1 : 0;
		text += n;
		len -= n;
	}
	if (ret)
		bls_deinit(b);
	return ret;
}

/*
 * Returns a copy of the first of these keys that os-release has. Returns NULL if it has none, or
 * if out of memory, and then sets *no_memory.
 */
static char *first_of(struct bytes osrel, const char *const *keys, bool *no_memory)
{
	char value[OSREL_MAX_VALUE];
	char *copy;

	if (!osrel_first(osrel.data, osrel.len, keys, value))
		return NULL;
	copy = strdup(value);
	*no_memory |= !copy;
	return copy;
}

int bls_from_uki(struct bls_entry *b, const char *file_name, const char *path, struct bytes osrel,
		 const char *cmdline, struct err *e)
{
	static const char *const titles[] = { "PRETTY_NAME", "IMAGE_ID", "NAME", "ID", NULL };
	static const char *const versions[] = { "IMAGE_VERSION", "VERSION", "VERSION_ID",
						"BUILD_ID", NULL };
	static const char *const keys[] = { "IMAGE_ID", "ID", NULL };
	bool no_memory = false;

	memset(b, 0, sizeof(*b));
	if (take_name(b, file_name, ".efi") < 0)
		return err_set(e, EINVAL, "%s: a unified kernel image's name ends with .efi",
			       file_name);
	b->uki = true;
	b->title = first_of(osrel, titles, &no_memory);
	b->version = first_of(osrel, versions, &no_memory);
	b->sort_key = first_of(osrel, keys, &no_memory);
	b->linux_path = strdup(path);
	b->options = strdup(cmdline);
	if (!no_memory && b->linux_path && b->options)
		return 0;
	bls_deinit(b);
	return err_nomem(e);
}

void bls_deinit(struct bls_entry *b)
{
	free(b->title);
	free(b->version);
	free(b->machine_id);
	free(b->sort_key);
	free(b->architecture);
	free(b->linux_path);
	for (unsigned int i = 0; i < b->ninitrd; i++)
		free(b->initrd[i]);
	free(b->options);
	memset(b, 0, sizeof(*b));
}

bool bls_usable(const struct bls_entry *b)
{
	return b->linux_path && (!b->architecture || !strcasecmp(b->architecture, "x64"));
}

bool bls_matches(const struct bls_entry *b, const char *pattern)
{
	char id[BLS_MAX_NAME + 8];

	snprintf(id, sizeof(id), "%s%s", b->name, b->uki ? ".efi" : ".conf");
	return fnmatch(pattern, id, FNM_CASEFOLD) == 0 ||
	       (!b->uki && fnmatch(pattern, b->name, FNM_CASEFOLD) == 0);
}

int bls_compare(const struct bls_entry *a, const struct bls_entry *b)
{
	int ret;

	if (a->failed != b->failed)
		return a->failed ? 1 : -1;
	if (!a->sort_key != !b->sort_key)
		return a->sort_key ? -1 : 1;
	if (a->sort_key) {
		ret = strcmp(a->sort_key, b->sort_key);
		if (!ret)
			ret = strcmp(a->machine_id ? a->machine_id : "",
				     b->machine_id ? b->machine_id : "");
		if (!ret)
			ret = -bls_version_compare(a->version, b->version);
		if (ret)
			return ret;
	}
	/* The newest name comes first, as in a boot menu. */
	ret = -bls_version_compare(a->name, b->name);
	return ret ? ret : strcmp(a->name, b->name);
}
