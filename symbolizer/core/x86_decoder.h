/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x86_decoder: capstone for 64-bit code, with operands, and room for one instruction.
 *
 * One thread at a time. What is decoded stands in insn until the next call.
 */
#ifndef KVMPROF_SYMBOLIZER_CORE_X86_DECODER_H
#define KVMPROF_SYMBOLIZER_CORE_X86_DECODER_H

#include "base/capstone.h"
#include "base/err.h"

struct x86_decoder {
	const struct capstone *cs;
	csh handle;
	cs_insn *insn;
};

/* -ENOENT: no capstone; -ENOSYS: it knows no x86-64; -ENOMEM. Then there is nothing to close. */
int x86_decoder_open(struct x86_decoder *d, struct err *e);
void x86_decoder_close(struct x86_decoder *d);

#endif
