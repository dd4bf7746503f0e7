/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/x86_decoder.h"

#include <errno.h>

int x86_decoder_open(struct x86_decoder *d, struct err *e)
{
	const struct capstone *cs = capstone_get(e);
	cs_err ret;

	if (!cs)
		return -ENOENT;
	ret = cs->cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle);
	if (ret != CS_ERR_OK)
		return err_set(e, ENOSYS, "capstone cannot decode x86-64: %s",
			       cs->cs_strerror(ret));
	cs->cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	d->insn = cs->cs_malloc(d->handle);
	d->cs = cs;
	if (d->insn)
		return 0;
	cs->cs_close(&d->handle);
	return err_set(e, ENOMEM, "out of memory");
}

void x86_decoder_close(struct x86_decoder *d)
{
	d->cs->cs_free(d->insn, 1);
	d->cs->cs_close(&d->handle);
}
