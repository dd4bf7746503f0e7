/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/image/disk_header.h"

#include "base/cursor.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static uint32_t be32_at(const struct cursor *c, uint64_t off)
{
	struct cursor w = cursor_window(c, off, 4);

	return be32toh(cursor_u32(&w));
}

static uint64_t be64_at(const struct cursor *c, uint64_t off)
{
	struct cursor w = cursor_window(c, off, 8);

	return be64toh(cursor_u64(&w));
}

static uint64_t le64_at(const struct cursor *c, uint64_t off)
{
	struct cursor w = cursor_window(c, off, 8);

	return cursor_u64(&w);
}

static int damaged(const char *name, const char *format, struct err *e)
{
	return err_set(e, EINVAL, "%s: the header of this %s image is damaged or truncated", name,
		       format);
}

/* Copies a name that is len bytes long. Returns false if it is not all there, or too long. */
static bool copy_name(char *to, size_t cap, const struct cursor *c, uint64_t off, uint64_t len)
{
	struct cursor w = cursor_window(c, off, len);
	const uint8_t *p = cursor_bytes(&w, len);

	if (!p || len >= cap || memchr(p, 0, len))
		return false;
	memcpy(to, p, len);
	to[len] = '\0';
	return true;
}

/* -- qcow2 and its relatives --------------------------------------------------------------- */

/* Offsets and values of docs/interop/qcow2.rst, "Header" and "Header extensions". */
#define QCOW2_BACKING 8u
#define QCOW2_BACKING_LEN 16u
#define QCOW2_CRYPT 32u
#define QCOW2_INCOMPATIBLE 72u
#define QCOW2_HEADER_LEN 100u
#define QCOW2_V2_LEN 72u
#define QCOW2_V3_LEN 104u
#define QCOW2_EXTERNAL_DATA 4u /* bit 2 of the incompatible features */
#define QCOW2_EXT_BACKING_FORMAT 0xe2792acau
#define QCOW2_EXT_DATA_FILE 0x44415441u
#define QCOW2_MAX_EXTENSIONS 64u
/* qcow (version 1) has the method of encryption at another place: QEMU block/qcow.c. */
#define QCOW_CRYPT 36u

static const char *crypt_name(uint32_t method)
{
	return method == 0 ? NULL : method == 1 ? "AES" : "LUKS";
}

static bool read_extensions(struct disk_header *h, const struct cursor *c, uint64_t at)
{
	for (unsigned int i = 0; i < QCOW2_MAX_EXTENSIONS; i++) {
		struct cursor w = cursor_window(c, at, 8);
		uint32_t type = be32_at(c, at), len = be32_at(c, at + 4);
		bool ok = true;

		if (w.bad)
			return false;
		if (!type)
			return true;
		if (type == QCOW2_EXT_BACKING_FORMAT)
			ok = copy_name(h->backing_format, sizeof(h->backing_format), c, at + 8,
				       len);
		if (type == QCOW2_EXT_DATA_FILE)
			ok = copy_name(h->data, sizeof(h->data), c, at + 8, len);
		if (!ok)
			return false;
		at += 8 + ((uint64_t)len + 7) / 8 * 8;
	}
	return false;
}

static bool read_qcow2(struct disk_header *h, const struct cursor *c, bool first)
{
	uint32_t version = be32_at(c, 4), len = be32_at(c, QCOW2_BACKING_LEN);
	uint64_t backing = be64_at(c, QCOW2_BACKING);
	uint32_t extensions = version > 2 ? be32_at(c, QCOW2_HEADER_LEN) : QCOW2_V2_LEN;
	bool external;

	h->encryption = crypt_name(be32_at(c, first ? QCOW_CRYPT : QCOW2_CRYPT));
	if (backing && !copy_name(h->backing, sizeof(h->backing), c, backing, len))
		return false;
	if (first)
		return true;
	external = version > 2 && be64_at(c, QCOW2_INCOMPATIBLE) & QCOW2_EXTERNAL_DATA;
	if ((version > 2 && extensions < QCOW2_V3_LEN) || !read_extensions(h, c, extensions))
		return false;
	if (external && !*h->data)
		h->part_of = "its data are in another file, which it does not name";
	if (!external)
		h->data[0] = '\0';
	return true;
}

/* QEMU docs/interop/qed_spec.rst, "Header". */
static bool read_qed(struct disk_header *h, const struct cursor *c)
{
	struct cursor w = cursor_window(c, 56, 8);
	uint32_t off = cursor_u32(&w), len = cursor_u32(&w);

	return !(le64_at(c, 16) & 1) || copy_name(h->backing, sizeof(h->backing), c, off, len);
}

/* -- VMware's, VirtualBox's and Microsoft's ----------------------------------------------------- */

/* "Virtual Disk Format 1.1", "Hosted Sparse Extent Header". */
#define VMDK_DESCRIPTOR 28u
#define VMDK_DESCRIPTOR_LEN 36u
#define VMDK_TEXT_MAX 65536u
#define SECTOR 512u

/* Searches the descriptor's text, which has no NUL, for a word. */
static bool text_has(const char *text, size_t len, const char *word)
{
	return memmem(text, len, word, strlen(word)) != NULL;
}

static bool read_vmdk(struct disk_header *h, const struct cursor *c)
{
	bool sparse = c->len >= 4 && memcmp(c->base, "KDMV", 4) == 0;
	bool text = c->len >= 4 && memcmp(c->base, "# Di", 4) == 0;
	uint64_t at = 0, len = c->len;
	const char *p = (const char *)c->base;

	if (sparse) {
		at = le64_at(c, VMDK_DESCRIPTOR);
		len = le64_at(c, VMDK_DESCRIPTOR_LEN);
		if (!at)
			h->part_of = "it is one part of an image in several files";
		if (!at || at > c->len / SECTOR)
			return !at;
		at *= SECTOR;
		len = len < VMDK_TEXT_MAX / SECTOR ? len * SECTOR : VMDK_TEXT_MAX;
	} else if (!text) {
		return true; /* ESX's format has no descriptor of its own */
	}
	if (at >= c->len)
		return false;
	len = len < c->len - at ? len : c->len - at;
	len = strnlen(p + at, len < VMDK_TEXT_MAX ? len : VMDK_TEXT_MAX);
	if (text_has(p + at, len, "encryption."))
		h->encryption = "VMware's";
	else if (text_has(p + at, len, "parentFileNameHint"))
		h->part_of = "it has the differences to a parent image only";
	else if (text)
		h->part_of = "it is a description of an image whose data are in other files";
	return true;
}

/* VDIIMAGETYPE: 1 dynamic, 2 fixed, 3 undo, 4 differences. */
static bool read_vdi(struct disk_header *h, const struct cursor *c)
{
	struct cursor w = cursor_window(c, 76, 4);
	uint32_t type = cursor_u32(&w);

	if (type == 3 || type == 4)
		h->part_of = "it has the differences to a parent image only";
	return !w.bad;
}

/* "Hard Disk Footer Format": disk type 4 is a differencing disk. */
static bool read_vpc(struct disk_header *h, const struct cursor *c)
{
	if (be32_at(c, 60) == 4)
		h->part_of = "it has the differences to a parent image only";
	return c->len >= SECTOR;
}

int disk_header_parse(struct disk_header *h, const char *name, const char *format,
		      const uint8_t *head, size_t len, struct err *e)
{
	struct cursor c;
	bool ok = true;

	memset(h, 0, sizeof(*h));
	cursor_init(&c, head, len < DISK_HEADER_MAX ? len : DISK_HEADER_MAX);
	if (!strcmp(format, "qcow2") || !strcmp(format, "qcow"))
		ok = c.len >= QCOW2_V2_LEN && read_qcow2(h, &c, !strcmp(format, "qcow"));
	else if (!strcmp(format, "qed"))
		ok = c.len >= 64 && read_qed(h, &c);
	else if (!strcmp(format, "vmdk"))
		ok = read_vmdk(h, &c);
	else if (!strcmp(format, "vdi"))
		ok = read_vdi(h, &c);
	else if (!strcmp(format, "vpc"))
		ok = read_vpc(h, &c);
	return ok ? 0 : damaged(name, format, e);
}
