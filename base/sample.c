/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/sample.h"

#include <errno.h>
#include <string.h>

static int slice_check(const struct sample *s, const struct sample_slice *sl)
{
	return sl->off > s->stack_len || sl->len > s->stack_len - sl->off ? -EINVAL : 0;
}

int sample_check(const struct sample *s, size_t len)
{
	if (len < sizeof(*s) || s->version != SAMPLE_VERSION || s->nslices > SAMPLE_MAX_SLICES ||
	    s->insn_len > SAMPLE_MAX_INSN || s->stack_len > SAMPLE_MAX_STACK ||
	    len != sample_size(s))
		return -EINVAL;
	for (unsigned int i = 0; i < s->nslices; i++)
		if (slice_check(s, &s->slice[i]))
			return -EINVAL;
	if (s->python_state > SAMPLE_PYTHON_UNREADABLE ||
	    s->python.len % sizeof(struct sample_python) ||
	    s->python.len > SAMPLE_MAX_PYTHON_BYTES || slice_check(s, &s->python))
		return -EINVAL;
	return slice_check(s, &s->returns);
}

int sample_read(const struct sample *s, uint64_t va, void *dst, size_t n)
{
	for (unsigned int i = 0; i < s->nslices; i++) {
		const struct sample_slice *sl = &s->slice[i];
		uint64_t rel = va - sl->va;

		if (va >= sl->va && rel <= sl->len && n <= sl->len - rel) {
			memcpy(dst, s->stack + sl->off + rel, n);
			return 0;
		}
	}
	return -EFAULT;
}

bool sample_host(const struct sample *s, struct sample_host *out)
{
	const size_t head = offsetof(struct sample_host, ip);

	if ((s->reason != SAMPLE_HOST && s->reason != SAMPLE_THREAD) || s->exit_addr > s->stack_len ||
	    s->stack_len - s->exit_addr < head)
		return false;
	memset(out, 0, sizeof(*out));
	memcpy(out, s->stack + s->exit_addr, head);
	if (out->n > SAMPLE_MAX_HOST || out->where >= SAMPLE_WHERES ||
	    (s->stack_len - s->exit_addr - head) / sizeof(out->ip[0]) < out->n)
		return false;
	memcpy(out->ip, s->stack + s->exit_addr + head, out->n * sizeof(out->ip[0]));
	return true;
}
