/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vmm/gmem_remote.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

static int fetch_process(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	struct iovec local = { dst, len };
	struct iovec remote = { (void *)(uintptr_t)host, len };
	ssize_t n = process_vm_readv(r->pid, &local, 1, &remote, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

void gmem_remote_init_by(struct gmem_remote *r,
			 int (*fetch)(struct gmem_remote *r, uint64_t host, void *dst, size_t len),
			 void *ctx)
{
	r->fetch = fetch;
	r->ctx = ctx;
	r->pid = 0;
	r->calls = 0;
	r->generation = 1;
	memset(r->valid, 0, sizeof(r->valid));
}

void gmem_remote_init(struct gmem_remote *r, pid_t pid)
{
	gmem_remote_init_by(r, fetch_process, NULL);
	r->pid = pid;
}

void gmem_remote_forget(struct gmem_remote *r)
{
	r->generation++;
}

static int fetch(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	r->calls++;
	return r->fetch(r, host, dst, len);
}

/* Tables of one walk often differ in high bits alone. */
static size_t slot_of(uint64_t base)
{
	return (size_t)((base >> 12) * 0x9e3779b97f4a7c15ull >> 58) & (GMEM_REMOTE_PAGES - 1);
}

bool gmem_remote_kept(const struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	uint64_t base = host & ~(uint64_t)(GMEM_REMOTE_PAGE - 1);
	size_t i = slot_of(base);

	if (r->valid[i] != r->generation || r->at[i] != base ||
	    host - base + len > GMEM_REMOTE_PAGE)
		return false;
	memcpy(dst, r->page[i] + (host - base), len);
	return true;
}

static int page_of(struct gmem_remote *r, uint64_t base, const uint8_t **page)
{
	size_t i = slot_of(base);
	int ret = 0;

	if (r->valid[i] != r->generation || r->at[i] != base) {
		r->valid[i] = 0;
		ret = fetch(r, base, r->page[i], GMEM_REMOTE_PAGE);
		if (!ret) {
			r->at[i] = base;
			r->valid[i] = r->generation;
		}
	}
	*page = r->page[i];
	return ret;
}

int gmem_remote_read(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	uint64_t base = host & ~(uint64_t)(GMEM_REMOTE_PAGE - 1);
	const uint8_t *page;
	int ret;

	if (len > GMEM_REMOTE_SMALL || host - base + len > GMEM_REMOTE_PAGE)
		return fetch(r, host, dst, len);
	ret = page_of(r, base, &page);
	if (!ret)
		memcpy(dst, page + (host - base), len);
	return ret;
}
