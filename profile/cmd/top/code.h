/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top_code: a function's instructions in the live view, with where its time goes.
 */
#ifndef KVMPROF_PROFILE_CMD_TOP_CODE_H
#define KVMPROF_PROFILE_CMD_TOP_CODE_H

#include "base/buf.h"
#include "profile/cmd/top/feed.h"

/* Lines as annotate prints them; text ends with a NUL. -ENODATA: there are no bytes. */
int top_code_draw(struct buf *text, const struct top_code *code, struct err *e);

#endif
