/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_rules_name: what a rule is called. Used by rules.c only.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_RULES_NAME_H
#define KVMPROF_PROFILE_COMPARE_GATE_RULES_NAME_H

#include "profile/compare/gate/rules_value.h"

/*
 * Sets r->key, what it measures as text, and r->name, the same where the file gives none. No other
 * rule before it may have that name. 0, -EINVAL with the reason, -ENOMEM. r is the last of p->rules
 * and owns both texts.
 */
int grule_settle_name(const struct grule_parse *p, const struct toml_node *table, struct grule *r);

#endif
