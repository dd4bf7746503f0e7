/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_rules_value: the values in a file of rules, each checked, with its place in messages.
 * Used by rules.c only. All return 0, -EINVAL with the reason, or -ENOMEM.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_RULES_VALUE_H
#define KVMPROF_PROFILE_COMPARE_GATE_RULES_VALUE_H

#include "profile/compare/gate/rules.h"
#include "profile/compare/gate/toml.h"

struct grule_parse {
	const char *path;
	struct grules *rules;
	struct err *e;
};

/* "PATH:LINE:COLUMN: what"; -EINVAL. */
int grule_wrong(const struct grule_parse *p, const struct toml_node *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int grule_no_memory(const struct grule_parse *p);

/* TOML_REAL: integers will do. */
int grule_check_kind(const struct grule_parse *p, const struct toml_node *n, enum toml_kind kind);
/* Texts are copies, the caller's. */
int grule_take_text(const struct grule_parse *p, const struct toml_node *n, char **out);
/* The index of one of nwords (2 or 3) words; 0 when it is none of them. */
int grule_take_word(const struct grule_parse *p, const struct toml_node *n, const char *const *word,
		    unsigned int nwords, unsigned int *out);
int grule_take_part(const struct grule_parse *p, const struct toml_node *n, double least,
		    double most, double *out);
/* out is compiled when *text is set. */
int grule_take_regex(const struct grule_parse *p, const struct toml_node *n, char **text,
		     regex_t *out);
/* "2 %", "0.5 points", "20 ms" */
int grule_take_amount(const struct grule_parse *p, const struct toml_node *n,
		      enum grule_dimension d, struct grule_amount *out);
/* "0.5 %": 0.005 */
int grule_take_share(const struct grule_parse *p, const struct toml_node *n, double *out);

#endif
