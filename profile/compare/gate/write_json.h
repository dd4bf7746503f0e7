/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gate_write_json: appends a gate's report to a buffer as JSON, and as SARIF. See gate_write_fn for
 * results and threads.
 */
#ifndef KVMPROF_PROFILE_COMPARE_GATE_WRITE_JSON_H
#define KVMPROF_PROFILE_COMPARE_GATE_WRITE_JSON_H

#include "profile/compare/gate/write.h"

/* JSON with all data of the report (docs/gate.md). */
gate_write_fn gate_write_json;
/* SARIF 2.1.0 (OASIS): rules of the gate are rules, their findings are results. */
gate_write_fn gate_write_sarif;

#endif
