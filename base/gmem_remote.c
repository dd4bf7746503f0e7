/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/gmem_remote.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

static bool is_present(struct gmem_remote *r, uint64_t host, size_t len)
{
	return !r->present || r->present(r->ctx, host, len) == len;
}

static int fetch_process(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	struct iovec local = { dst, len };
	struct iovec remote = { (void *)(uintptr_t)host, len };
	ssize_t n;

	if (!is_present(r, host, len)) {
		r->absent++;
		return -ENODATA;
	}
	n = process_vm_readv(r->pid, &local, 1, &remote, 1, 0);
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
	r->as_is = r->lacking = false;
	r->present = NULL;
	r->calls = r->absent = 0;
	r->generation = 1;
	r->expected = NULL;
	memset(r->valid, 0, sizeof(r->valid));
}

void gmem_remote_init(struct gmem_remote *r, pid_t pid)
{
	gmem_remote_init_by(r, fetch_process, NULL);
	r->pid = pid;
}

void gmem_remote_only_present(struct gmem_remote *r,
			      size_t (*present)(void *ctx, uint64_t host, size_t len), void *ctx)
{
	r->present = present;
	r->ctx = ctx;
}

void gmem_remote_invalidate(struct gmem_remote *r)
{
	r->generation++;
	r->expected = NULL;
}

static int remote_fetch(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	r->calls++;
	return r->fetch(r, host, dst, len);
}

/*
 * Returns the slot of a page in the cache. The tables of one walk often differ only in high bits,
 * so all bits are mixed.
 */
static size_t slot_of(uint64_t base)
{
	return (size_t)((base >> 12) * 0x9e3779b97f4a7c15ull >> 58) & (GMEM_REMOTE_PAGES - 1);
}

bool gmem_remote_cached(const struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	uint64_t base = host & ~(uint64_t)(GMEM_REMOTE_PAGE - 1);
	size_t i = slot_of(base);

	if (r->valid[i] != r->generation || r->at[i] != base ||
	    host - base + len > GMEM_REMOTE_PAGE)
		return false;
	memcpy(dst, r->page[i] + (host - base), len);
	return true;
}

/* Ages the pages and removes those that have not been used for GMEM_REMOTE_AGE samples. */
static void grow_older(struct gmem_remote_expected *x)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < x->n; i++) {
		if (x->age[i] >= GMEM_REMOTE_AGE)
			continue;
		x->at[n] = x->at[i];
		x->age[n++] = (uint8_t)(x->age[i] + 1);
	}
	x->n = n;
}

static void remote_note_use(struct gmem_remote *r, uint64_t base)
{
	struct gmem_remote_expected *x = r->expected;

	if (!x)
		return;
	for (unsigned int i = 0; i < x->n; i++)
		if (x->at[i] == base) {
			x->age[i] = 0;
			return;
		}
	if (x->n < GMEM_REMOTE_EXPECT) {
		x->at[x->n] = base;
		x->age[x->n++] = 0;
	}
}

void gmem_remote_prefetch(struct gmem_remote *r, struct gmem_remote_expected *x)
{
	struct iovec local[GMEM_REMOTE_EXPECT], remote[GMEM_REMOTE_EXPECT];
	size_t slot[GMEM_REMOTE_EXPECT], n = 0;
	ssize_t got;

	gmem_remote_invalidate(r);
	if (!r->pid)
		return;
	r->expected = x;
	grow_older(x);
	for (unsigned int i = 0; i < x->n; i++) {
		size_t s = slot_of(x->at[i]);

		/* If two pages share a slot, the first one gets it. */
		if (r->valid[s] == r->generation || !is_present(r, x->at[i], GMEM_REMOTE_PAGE))
			continue;
		r->valid[s] = r->generation;
		r->at[s] = x->at[i];
		local[n] = (struct iovec){ r->page[s], GMEM_REMOTE_PAGE };
		remote[n] = (struct iovec){ (void *)(uintptr_t)x->at[i], GMEM_REMOTE_PAGE };
		slot[n++] = s;
	}
	if (!n)
		return;
	r->calls++;
	got = process_vm_readv(r->pid, local, n, remote, n, 0);
	/* The call stops at the first page that cannot be read. */
	for (size_t i = got < 0 ? 0 : (size_t)got / GMEM_REMOTE_PAGE; i < n; i++)
		r->valid[slot[i]] = 0;
}

static int page_of(struct gmem_remote *r, uint64_t base, const uint8_t **page)
{
	size_t i = slot_of(base);
	int ret = 0;

	remote_note_use(r, base);
	if (r->valid[i] != r->generation || r->at[i] != base) {
		r->valid[i] = 0;
		ret = remote_fetch(r, base, r->page[i], GMEM_REMOTE_PAGE);
		if (!ret) {
			r->at[i] = base;
			r->valid[i] = r->generation;
		}
	}
	*page = r->page[i];
	return ret;
}

/* Returns how many of len bytes, from host on, precede the first page that is cached. */
static size_t not_kept(const struct gmem_remote *r, uint64_t host, size_t len)
{
	size_t done = 0;

	while (done < len) {
		uint64_t base = (host + done) & ~(uint64_t)(GMEM_REMOTE_PAGE - 1);
		size_t i = slot_of(base);

		if (r->valid[i] == r->generation && r->at[i] == base)
			break;
		done = base + GMEM_REMOTE_PAGE - host;
	}
	return done < len ? done : len;
}

/* Reads page by page: cached pages from the cache, others directly and without caching them. */
static int read_long(struct gmem_remote *r, uint64_t host, uint8_t *dst, size_t len)
{
	while (len) {
		size_t n = not_kept(r, host, len);

		if (n) {
			int ret = remote_fetch(r, host, dst, n);

			if (ret)
				return ret;
			for (uint64_t at = host & ~(uint64_t)(GMEM_REMOTE_PAGE - 1); at < host + n;
			     at += GMEM_REMOTE_PAGE)
				remote_note_use(r, at);
		} else {
			uint64_t off = host & (GMEM_REMOTE_PAGE - 1);

			n = GMEM_REMOTE_PAGE - off < len ? GMEM_REMOTE_PAGE - off : len;
			remote_note_use(r, host - off);
			memcpy(dst, r->page[slot_of(host - off)] + off, n);
		}
		host += n;
		dst += n;
		len -= n;
	}
	return 0;
}

int gmem_remote_read(struct gmem_remote *r, uint64_t host, void *dst, size_t len)
{
	uint64_t base = host & ~(uint64_t)(GMEM_REMOTE_PAGE - 1);
	const uint8_t *page;
	int ret;

	if (r->as_is)
		return remote_fetch(r, host, dst, len);
	if (len > GMEM_REMOTE_SMALL || host - base + len > GMEM_REMOTE_PAGE)
		return r->expected ? read_long(r, host, dst, len) : remote_fetch(r, host, dst, len);
	ret = page_of(r, base, &page);
	if (!ret)
		memcpy(dst, page + (host - base), len);
	return ret;
}
