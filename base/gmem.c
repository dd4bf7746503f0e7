/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/gmem.h"

#include "base/gmem_remote.h"

#include <errno.h>
#include <string.h>

uint64_t gmem_size(const struct gmem *m)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < m->n; i++)
		sum += m->region[i].size;
	return sum;
}

/* Returns the host address of the range, in this process or the remote one, or NULL. */
static uint8_t *gmem_find(const struct gmem *m, uint64_t gpa, uint64_t len)
{
	if (!len)
		return NULL;
	for (unsigned int i = 0; i < m->n; i++) {
		const struct gmem_region *r = &m->region[i];
		uint64_t off = gpa - r->gpa;

		/*
		 * a gpa below the region wraps to a huge offset, so one comparison checks both ends
		 */
		if (off < r->size && len <= r->size - off)
			return r->host + off;
	}
	return NULL;
}

void *gmem_ptr(const struct gmem *m, uint64_t gpa, uint64_t len)
{
	return m->remote ? NULL : gmem_find(m, gpa, len);
}

uint64_t gmem_host(const struct gmem *m, uint64_t gpa)
{
	return (uintptr_t)gmem_find(m, gpa, 1);
}

int gmem_read(const struct gmem *m, uint64_t gpa, void *dst, size_t len)
{
	const void *p = gmem_find(m, gpa, len);

	if (!p)
		return len ? -EFAULT : 0;
	if (m->remote)
		return gmem_remote_read(m->remote, (uintptr_t)p, dst, len);
	memcpy(dst, p, len);
	return 0;
}

int gmem_write(const struct gmem *m, uint64_t gpa, const void *src, size_t len)
{
	void *p = gmem_ptr(m, gpa, len);

	if (!p)
		return len ? -EFAULT : 0;
	memcpy(p, src, len);
	return 0;
}
