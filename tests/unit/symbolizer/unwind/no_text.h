/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text of a kernel for an unwinder that is asked for programs' stacks alone: there is none. */
#ifndef KVMPROF_TESTS_UNIT_SYMBOLIZER_UNWIND_NO_TEXT_H
#define KVMPROF_TESTS_UNIT_SYMBOLIZER_UNWIND_NO_TEXT_H

#include <stddef.h>
#include <stdint.h>

static size_t no_text(void *ctx, uint64_t va, void *dst, size_t len)
{
	(void)ctx;
	(void)va;
	(void)dst;
	(void)len;
	return 0;
}

#endif
