/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sample_check: checks whether a sample is well-formed, for tests of code that makes samples. */
#ifndef KVMPROF_TESTS_SAMPLE_CHECK_H
#define KVMPROF_TESTS_SAMPLE_CHECK_H

#include "base/sample.h"

#include <errno.h>
#include <string.h>

static inline int sample_slice_check(const struct sample *s, const struct sample_slice *sl)
{
	return sl->off > s->stack_len || sl->len > s->stack_len - sl->off ? -EINVAL : 0;
}

/*
 * Checks a sample: version, counts and slices inside stack_len, total equal to len. Returns 0 or
 * -EINVAL.
 */
static inline int sample_check(const struct sample *s, size_t len)
{
	if (len < sizeof(*s) || s->version != SAMPLE_VERSION || s->nslices > SAMPLE_MAX_SLICES ||
	    s->insn_len > SAMPLE_MAX_INSN || s->stack_len > SAMPLE_MAX_STACK ||
	    len != sample_size(s))
		return -EINVAL;
	for (unsigned int i = 0; i < s->nslices; i++)
		if (sample_slice_check(s, &s->slice[i]))
			return -EINVAL;
	if (s->python_state > SAMPLE_PYTHON_UNREADABLE ||
	    s->python.len % sizeof(struct sample_python) ||
	    s->python.len > SAMPLE_MAX_PYTHON_BYTES || sample_slice_check(s, &s->python))
		return -EINVAL;
	return sample_slice_check(s, &s->returns);
}

/*
 * Copies n bytes at guest-virtual address va from the stack slices. Returns 0, or -EFAULT if they
 * are not all in one slice.
 */
static inline int sample_read(const struct sample *s, uint64_t va, void *dst, size_t n)
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

#endif
