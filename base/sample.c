/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/sample.h"

#include <string.h>

bool sample_host(const struct sample *s, struct sample_host *out)
{
	const size_t head = offsetof(struct sample_host, ip);

	if ((s->reason != SAMPLE_HOST && s->reason != SAMPLE_THREAD) ||
	    s->exit_addr > s->stack_len || s->stack_len - s->exit_addr < head)
		return false;
	memset(out, 0, sizeof(*out));
	memcpy(out, s->stack + s->exit_addr, head);
	if (out->n > SAMPLE_MAX_HOST || out->where >= SAMPLE_WHERES ||
	    (s->stack_len - s->exit_addr - head) / sizeof(out->ip[0]) < out->n)
		return false;
	memcpy(out->ip, s->stack + s->exit_addr + head, out->n * sizeof(out->ip[0]));
	return true;
}

void sample_put_host(struct sample *s, const struct sample_host *host)
{
	const size_t len = offsetof(struct sample_host, ip) + host->n * sizeof(host->ip[0]);

	s->stack_len = (s->stack_len + 7) & ~7u;
	s->exit_addr = s->stack_len;
	memcpy(s->stack + s->stack_len, host, len);
	s->stack_len += (uint32_t)len;
}
