/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_write_json: a gate's report as JSON, and as SARIF.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_WRITE_JSON_H
#define KVMPROF_PROFILE_COMPARE_GATE_WRITE_JSON_H

#include "profile/compare/gate/write.h"

/* Everything. */
gate_write_fn gate_write_json;
/* SARIF 2.1.0 (OASIS): a rule is a rule, what came out of it a result. */
gate_write_fn gate_write_sarif;

#endif
