/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symverify_map: does a text map belong to a kernel that is not Linux?
 *
 * Linux says in its image who it is; other kernels do not, so what the map says
 * is held against what the image shows. Each of these holds, fails, or has
 * nothing to look at:
 *
 *	entry	a code symbol begins at the ELF entry point (virtual or physical)
 *	calls	95 % of the direct calls in the text lead to code symbols
 *	bounds	_text, _etext, _edata, __bss_start, _end ... are where a segment or a
 *		section begins or ends; of several at most one is not
 *	code	95 % of the code symbols are in executable segments
 *	data	95 % of the data symbols are in the image, but not in its code
 *
 * Three must hold and none may fail: one alone is chance, as kernels are linked at
 * the same few addresses. Borrowed bytes, no I/O, any thread.
 */
#ifndef KVMPROF_SYMBOLIZER_KERNEL_SYMVERIFY_MAP_H
#define KVMPROF_SYMBOLIZER_KERNEL_SYMVERIFY_MAP_H

#include "symbolizer/kernel/symfile.h"

/* 0, or -ESTALE with what failed, or what could not be looked at. */
int symverify_map(const struct symfile *f, const char *name, const struct kimage *k,
		  const char *kname, struct err *e);

#endif
