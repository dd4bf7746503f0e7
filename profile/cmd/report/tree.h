/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree: callers or callees below a row of a report (-g). Called by the main thread.
 */
#ifndef KVMPROF_PROFILE_CMD_REPORT_TREE_H
#define KVMPROF_PROFILE_CMD_REPORT_TREE_H

#include "base/json.h"
#include "profile/cmd/report/row.h"

/* Prints the tree of a row to stdout. Returns 0 or -ENOMEM. */
int report_tree(const struct report *r, const struct agg_row *row);
/*
 * Writes the tree as a list of {"functions":[...],"weight":n,"children":[...]} with this key.
 * Returns 0 or -ENOMEM.
 */
int report_tree_json(struct json_writer *w, const char *key, const struct report *r,
		     const struct agg_row *row);

#endif
