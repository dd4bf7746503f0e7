/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bootdisk/osrel.h"

#include <string.h>

/* Copies a value without its quotes; what follows the closing quote is ignored. */
static void unquote(const char *s, size_t len, char *to)
{
	char quote = len && (*s == '"' || *s == '\'') ? *s : 0;
	size_t n = 0;

	for (size_t i = quote ? 1 : 0; i < len && n + 1 < OSREL_MAX_VALUE; i++) {
		if (s[i] == (quote ? quote : '\r'))
			break;
		if (s[i] == '\\' && quote != '\'' && i + 1 < len)
			i++;
		to[n++] = s[i];
	}
	/*
	 * Unquoted values may not contain blanks, but blanks inside them are kept; those at the
	 * end are removed.
	 */
	while (!quote && n && (to[n - 1] == ' ' || to[n - 1] == '\t'))
		n--;
	to[n] = 0;
}

bool osrel_value(const char *text, size_t len, const char *key, char *to)
{
	const char *end = len ? memchr(text, 0, len) : NULL;
	size_t k = strlen(key);

	*to = 0;
	len = end ? (size_t)(end - text) : len;
	while (len) {
		const char *nl = memchr(text, '\n', len);
		size_t n = nl ? (size_t)(nl - text) : len, skip = 0;

		while (skip < n && (text[skip] == ' ' || text[skip] == '\t'))
			skip++;
		if (n - skip > k && !memcmp(text + skip, key, k) && text[skip + k] == '=')
			unquote(text + skip + k + 1, n - skip - k - 1, to);
		n += nl ? 1 : 0;
		text += n;
		len -= n;
	}
	return *to != 0;
}

bool osrel_first(const char *text, size_t len, const char *const *keys, char *to)
{
	*to = 0;
	for (; *keys; keys++)
		if (osrel_value(text, len, *keys, to))
			return true;
	return false;
}
