/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stack unwound without a memo, by one that knows nothing yet, and by one that knows all of it. */
#ifndef KVMPROF_TESTS_UNIT_SYMBOLIZER_UNWIND_MEMO_FIXTURE_H
#define KVMPROF_TESTS_UNIT_SYMBOLIZER_UNWIND_MEMO_FIXTURE_H

#include "symbolizer/unwind/unwind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static inline void memo_unwind(const struct unwinder *u, const struct sample *s, struct stack *out)
{
	struct unwinder with = *u;
	struct stack again;

	unwind(u, s, out);
	with.memo = orc_memo_create();
	assert_non_null(with.memo);
	for (unsigned int i = 0; i < 2; i++) {
		unwind(&with, s, &again);
		assert_int_equal(again.n, out->n);
		assert_int_equal(again.n_kernel, out->n_kernel);
		assert_int_equal(again.end, out->end);
		assert_int_equal(again.user_end, out->user_end);
		assert_memory_equal(again.ip, out->ip, out->n * sizeof(out->ip[0]));
		assert_memory_equal(again.quality, out->quality, out->n);
		assert_memory_equal(again.exact, out->exact, out->n);
	}
	orc_memo_destroy(with.memo);
}

#endif
