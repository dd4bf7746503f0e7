/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/bootdisk/cmdline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *diskboot_word(const char *options, const char *key, size_t *len)
{
	const char *found = NULL;
	size_t k = strlen(key);

	for (const char *s = options + strspn(options, " "); *s;) {
		size_t n = strcspn(s, " ");

		if (n > k && !memcmp(s, key, k) && s[k] == '=') {
			found = s + k + 1;
			*len = n - k - 1;
		}
		s += n;
		s += strspn(s, " ");
	}
	return found;
}

/* Compares a value. Quotes around a value of UUID= and such, as in fstab, are not part of it. */
static bool same(const char *value, size_t len, const char *text)
{
	return *text && strlen(text) == len && !strncasecmp(value, text, len);
}

/*
 * Returns the number at the end of /dev/sda2, /dev/vda2, /dev/nvme0n1p2 or /dev/pmem0p2; 0 for the
 * whole disk; -1 if it is not a name of the first disk.
 */
static int part_of_name(const char *s, size_t len)
{
	static const char *const letters[] = { "sd", "vd", "hd", "xvd" };
	static const char *const numbers[] = { "nvme0n", "mmcblk", "pmem" };
	const char *end = s + len;
	size_t n = 0;

	if (len < 5 || memcmp(s, "/dev/", 5) != 0)
		return -1;
	s += 5;
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]) && !n; i++)
		if (!strncmp(s, letters[i], strlen(letters[i]))) {
			n = strlen(letters[i]);
			if ((size_t)(end - s) <= n || s[n] != 'a') /* other disks are unknown */
				return -1;
			s += n + 1;
			n = 1;
		}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && !n; i++)
		if (!strncmp(s, numbers[i], strlen(numbers[i]))) {
			s += strlen(numbers[i]);
			while (s < end && *s >= '0' && *s <= '9')
				s++;
			s += s < end && *s == 'p';
			n = 1;
		}
	if (!n || end - s > 3)
		return -1;
	n = 0;
	for (; s < end; s++) {
		if (*s < '0' || *s > '9')
			return -1;
		n = n * 10 + (size_t)(*s - '0');
	}
	return (int)n;
}

const struct disk_part *diskboot_root_part(const struct disk_layout *l, const char *root,
					   size_t len)
{
	static const struct {
		const char *prefix;
		size_t member;
	} forms[] = {
		{ "UUID=", offsetof(struct disk_part, uuid) },
		{ "LABEL=", offsetof(struct disk_part, label) },
		{ "PARTUUID=", offsetof(struct disk_part, partuuid) },
		{ "PARTLABEL=", offsetof(struct disk_part, name) },
		{ "/dev/disk/by-uuid/", offsetof(struct disk_part, uuid) },
		{ "/dev/disk/by-label/", offsetof(struct disk_part, label) },
		{ "/dev/disk/by-partuuid/", offsetof(struct disk_part, partuuid) },
		{ "/dev/disk/by-partlabel/", offsetof(struct disk_part, name) },
	};
	int number = part_of_name(root, len);

	for (unsigned int i = 0; i < l->n; i++) {
		const struct disk_part *p = &l->part[i];

		if (number >= 0 && p->number == (unsigned int)number)
			return p;
		for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
			size_t n = strlen(forms[f].prefix);

			if (len > n && !memcmp(root, forms[f].prefix, n) &&
			    same(root + n, len - n, (const char *)p + forms[f].member))
				return p;
		}
	}
	return NULL;
}

/* Writes a name of p that the kernel, or its initrd, can find. */
static void name_part(const struct disk_part *p, const struct diskboot_root *r, char *to,
		      size_t cap)
{
	char last = r->name[strlen(r->name) - 1];

	if (r->initrd && *p->uuid)
		snprintf(to, cap, "UUID=%s", p->uuid);
	else if (*p->partuuid)
		snprintf(to, cap, "PARTUUID=%s", p->partuuid);
	else if (p->number)
		snprintf(to, cap, "%s%s%u", r->name, last >= '0' && last <= '9' ? "p" : "",
			 p->number);
	else
		snprintf(to, cap, "%s", r->name);
}

/* Returns whether the kernel by itself, or its initrd, finds this root in this machine. */
static bool can_find(const struct diskboot_root *r, const char *root, size_t len)
{
	if (len >= 5 && !memcmp(root, "/dev/", 5)) {
		size_t n = strlen(r->name);

		if (part_of_name(root, len) >= 0)
			return len >= n && !memcmp(root, r->name, n);
		return r->initrd; /* /dev/mapper/..., /dev/disk/... */
	}
	return r->initrd || (len > 9 && (!memcmp(root, "PARTUUID=", 9) ||
					 (len > 10 && !memcmp(root, "PARTLABEL=", 10))));
}

static void add_word(struct buf *b, const char *word, size_t len)
{
	if (len)
		buf_printf(b, "%s%.*s", b->len ? " " : "", (int)len, word);
}

void diskboot_cmdline(const char *options, const struct diskboot_root *r, struct buf *out,
		      struct buf *note)
{
	char name[DISK_LAYOUT_TEXT + 16] = "";
	size_t len = 0;
	const char *root = diskboot_word(options, "root", &len);
	const struct disk_part *p = root ? diskboot_root_part(r->layout, root, len) : NULL;
	bool keep = root && !r->given && (can_find(r, root, len) || (!p && !r->found));

	if (!keep && r->given)
		snprintf(name, sizeof(name), "%s", r->given);
	else if (!keep && (p || r->found))
		name_part(p ? p : r->found, r, name, sizeof(name));
	for (const char *s = options + strspn(options, " "); *s;) {
		size_t n = strcspn(s, " ");

		if (keep || strncmp(s, "root=", 5) != 0)
			add_word(out, s, n);
		s += n;
		s += strspn(s, " ");
	}
	if (*name) {
		buf_printf(out, "%sroot=%s", out->len ? " " : "", name);
		/*
		 * Menus say "ro": the root is mounted read-only, checked, and then made writable.
		 */
		if (!root && !strstr(options, " ro") && !strstr(options, "rw"))
			buf_printf(out, " ro");
		if (root && !r->given)
			buf_printf(note, "root=%.*s became root=%s, which %s finds", (int)len, root,
				   name, r->initrd ? "this machine" : "a kernel without an initrd");
	} else if (!keep) {
		buf_printf(note,
			   "no file system has an init, so there is no root=: say --root DEV");
	}
	buf_u8(out, 0);
	buf_u8(note, 0);
}
