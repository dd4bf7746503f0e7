/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbolizer/core/x86_decoder.h"

#include <errno.h>

int x86_decoder_open(struct x86_decoder *d, struct err *e)
{
	cs_err ret = cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle);

	if (ret != CS_ERR_OK)
		return err_set(e, ENOSYS, "capstone cannot decode x86-64: %s", cs_strerror(ret));
	cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	d->insn = cs_malloc(d->handle);
	if (d->insn)
		return 0;
	cs_close(&d->handle);
	return err_set(e, ENOMEM, "out of memory");
}

void x86_decoder_close(struct x86_decoder *d)
{
	cs_free(d->insn, 1);
	cs_close(&d->handle);
}
