/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/dev/virtio.h"

#include <string.h>

/* One direction at a time: iov[0, n), `to` is the guest's memory. */
static size_t chain_copy(const struct iovec *iov, unsigned int n, size_t off, uint8_t *buf,
			 size_t len, bool to)
{
	size_t done = 0;

	for (unsigned int i = 0; i < n && done < len; i++) {
		size_t part = iov[i].iov_len;
		uint8_t *at = iov[i].iov_base;

		if (off >= part) {
			off -= part;
			continue;
		}
		at += off;
		part -= off;
		off = 0;
		if (part > len - done)
			part = len - done;
		if (to)
			memcpy(at, buf + done, part);
		else
			memcpy(buf + done, at, part);
		done += part;
	}
	return done;
}

size_t virtio_chain_read(const struct virtio_chain *c, size_t off, void *dst, size_t len)
{
	return chain_copy(c->iov, c->nout, off, dst, len, false);
}

size_t virtio_chain_write(const struct virtio_chain *c, size_t off, const void *src, size_t len)
{
	/* It is only read. */
	return chain_copy(c->iov + c->nout, c->nin, off, (uint8_t *)(uintptr_t)src, len, true);
}
