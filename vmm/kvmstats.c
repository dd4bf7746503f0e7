/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/kvmstats.h"

#include "base/cursor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DESC_LEN 16u		/* without the name */
#define MAX_FILE_NAME_SIZE 256u /* name_size: 48 in Linux 5.14 to 6.18 */

static int kvmstats_bad(struct err *e, const char *what, uint64_t v)
{
	return err_set(e, EINVAL, "KVM's statistics: %s %llu does not fit", what,
		       (unsigned long long)v);
}

static int parse_desc(struct kvmstats_desc *d, struct cursor *c, uint32_t name_size,
		      uint32_t *data_len, struct err *e)
{
	uint32_t flags = cursor_u32(c);
	const uint8_t *name;
	uint64_t end;

	d->type = flags & 0xf;
	d->unit = flags >> 4 & 0xf;
	d->base = flags >> 8 & 0xf;
	d->exponent = (int16_t)cursor_u16(c);
	d->size = cursor_u16(c);
	d->offset = cursor_u32(c);
	cursor_skip(c, 4); /* bucket_size */
	name = cursor_bytes(c, name_size);
	if (!name)
		return kvmstats_bad(e, "a descriptor at", c->len);
	memcpy(d->name, name, name_size < sizeof(d->name) ? name_size : sizeof(d->name));
	d->name[sizeof(d->name) - 1] = 0;
	end = (uint64_t)d->offset + (uint64_t)d->size * sizeof(uint64_t);
	if (!d->size || end > KVMSTATS_MAX_FILE)
		return kvmstats_bad(e, "a value that ends at", end);
	if (end > *data_len)
		*data_len = (uint32_t)end;
	return 0;
}

int kvmstats_parse(struct kvmstats *s, const uint8_t *bytes, size_t len, struct err *e)
{
	uint32_t name_size, n, desc_offset, data_offset, data_len = 0;
	struct kvmstats_desc *desc;
	struct cursor c;
	int ret = 0;

	cursor_init(&c, bytes, len);
	cursor_skip(&c, 4); /* flags: no bit is defined */
	name_size = cursor_u32(&c);
	n = cursor_u32(&c);
	cursor_skip(&c, 4); /* id_offset */
	desc_offset = cursor_u32(&c);
	data_offset = cursor_u32(&c);
	if (c.bad)
		return kvmstats_bad(e, "a header in a file of", len);
	if (!name_size || name_size > MAX_FILE_NAME_SIZE)
		return kvmstats_bad(e, "a name size of", name_size);
	if (!n || n > KVMSTATS_MAX_DESC)
		return kvmstats_bad(e, "a number of", n);
	c = cursor_window(&c, desc_offset, (uint64_t)n * (DESC_LEN + name_size));
	if (c.bad)
		return kvmstats_bad(e, "a table at", desc_offset);
	desc = calloc(n, sizeof(*desc));
	if (!desc)
		return err_nomem(e);
	for (uint32_t i = 0; !ret && i < n; i++)
		ret = parse_desc(&desc[i], &c, name_size, &data_len, e);
	if (!ret && (data_offset > KVMSTATS_MAX_FILE || data_len > KVMSTATS_MAX_FILE - data_offset))
		ret = kvmstats_bad(e, "data at", data_offset);
	if (ret) {
		free(desc);
		return ret;
	}
	s->data_offset = data_offset;
	s->data_len = data_len;
	s->n = n;
	s->desc = desc;
	return 0;
}

int kvmstats_open(struct kvmstats *s, int fd, struct err *e)
{
	uint8_t *bytes = malloc(KVMSTATS_MAX_FILE);
	ssize_t n;
	int ret;

	memset(s, 0, sizeof(*s));
	s->fd = fd;
	n = bytes ? pread(fd, bytes, KVMSTATS_MAX_FILE, 0) : 0;
	if (!bytes)
		ret = err_nomem(e);
	else if (n < 0)
		ret = err_set(e, EIO, "KVM's statistics: %s", strerror(errno));
	else
		ret = kvmstats_parse(s, bytes, (size_t)n, e);
	free(bytes);
	if (ret)
		kvmstats_close(s);
	return ret;
}

void kvmstats_close(struct kvmstats *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	free(s->desc);
	s->desc = NULL;
	s->n = 0;
}

int kvmstats_read(const struct kvmstats *s, uint8_t *data)
{
	return pread(s->fd, data, s->data_len, s->data_offset) == (ssize_t)s->data_len ? 0 : -EIO;
}

uint64_t kvmstats_value(const struct kvmstats_desc *desc, const uint8_t *data)
{
	uint64_t v;

	memcpy(&v, data + desc->offset, sizeof(v));
	return v;
}

const struct kvmstats_desc *kvmstats_find(const struct kvmstats *s, const char *name)
{
	for (unsigned int i = 0; i < s->n; i++)
		if (!strcmp(s->desc[i].name, name))
			return &s->desc[i];
	return NULL;
}
