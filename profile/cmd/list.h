/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cmd_list: what `kvmprof list` and `kvmprof list --domains` share. They print and return the
 * exit status. Main thread only.
 */
#ifndef KVMPROF_PROFILE_CMD_LIST_H
#define KVMPROF_PROFILE_CMD_LIST_H

#include "base/buf.h"
#include "base/err.h"

enum list_form { LIST_TEXT, LIST_JSON };

/* list_domains.c: libvirt's domains, and whether they can be attached to. uri NULL: as virsh has it. */
int list_domains(const char *uri, enum list_form form);

/* A member "why" behind others, unless there is nothing to say. */
void list_add_why(struct buf *b, const struct err *why);
/* Print the JSON text as a line, and free it. */
int list_put_json(struct buf *b);

#endif
