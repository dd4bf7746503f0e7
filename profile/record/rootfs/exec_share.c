/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "profile/record/rootfs/exec_share.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_tag(const char *s, size_t len)
{
	static const char fine[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return len && len <= EXEC_TAG_MAX && strspn(s, fine) >= len && s[0] != '.';
}

/* Where PLACE begins: the last colon, with a tag or an absolute path behind it. */
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
	/* Lines of the plan. */
	if (strchr(s->place, '\n'))
		return err_set(e, EINVAL, "--share: a line end in the name of a place");
	return 0;
}
